"""Configuration of the documentation; `make docs` builds it into build/docs."""
import os
import sys

import fastmc

project = "fastmc"
author = copyright = "the fastmc developers"
release = version = fastmc.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinxcontrib.programoutput"]
html_theme = "furo"
html_title = f"fastmc {release}"
# Indented blocks are formulas and commands.
highlight_language = "none"
myst_heading_anchors = 3

# The docstrings hold the types; the signatures stay short.
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True}
napoleon_google_docstring = False
napoleon_use_ivar = True

# A single backtick marks code, as in the pages.
default_role = "code"

# The command line that the pages show is that of this Python.
os.environ["PATH"] = os.path.dirname(sys.executable) + os.pathsep + os.environ["PATH"]
os.environ["COLUMNS"] = "80"


def setup(app):
    app.connect("autodoc-process-docstring", keep_formulas, priority=900)


def keep_formulas(app, what, name, obj, options, lines):
    """Formulas are plain text: those of modules stand as they are, elsewhere a | is no markup."""
    if what == "module":
        lines[:] = ["::", "", *("    " + line for line in lines), ""]
    else:
        lines[:] = [line.replace("|", r"\|") for line in lines]
