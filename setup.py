"""Build script: the extension modules, their compiler flags and Cython directives.

FASTMC_DEBUG=1 builds with bounds checks and overflow checks instead. Changing
directives alone does not trigger a rebuild, so that build forces itself and
keeps its C files and objects in a folder of its own. FASTMC_NO_EXTENSIONS=1 leaves
the modules out, for an editable install whose modules `build_ext --inplace` makes.
"""
import os
import sys
from glob import glob

from Cython.Build import cythonize
from setuptools import Extension, setup

DEBUG = os.environ.get("FASTMC_DEBUG", "") not in ("", "0")

# No -march and no -ffast-math: the same bits on every CPU, equal to the pure-Python
# mirror. Contraction to fused multiply-add would break that as well.
if sys.platform == "win32":
    FLAGS = ["/O2", "/fp:precise"]
else:
    FLAGS = ["-O1" if DEBUG else "-O3", "-ffp-contract=off", "-fno-math-errno"]

# Directives stand here only: a misspelt one in a file header is silently ignored.
DIRECTIVES = {
    "language_level": 3,
    "binding": True,
    "cdivision": True,
    "boundscheck": DEBUG,
    "wraparound": False,
    "initializedcheck": DEBUG,
    "nonecheck": DEBUG,
    "overflowcheck": False,
}

HEADERS = {"_vector.pyx": sorted(glob("fastmc/_vector*.h")),
           "_batches.pyx": ["fastmc/_team.h"], "_team.pyx": ["fastmc/_team.h"]}

sources = [] if os.environ.get("FASTMC_NO_EXTENSIONS") else sorted(glob("fastmc/_*.pyx"))
extensions = [
    Extension("fastmc." + os.path.basename(path)[:-4], [path], extra_compile_args=FLAGS,
              include_dirs=["fastmc"],
              depends=HEADERS.get(os.path.basename(path), []))
    for path in sources
]

setup(
    ext_modules=cythonize(
        extensions,
        build_dir="build/cython-debug" if DEBUG else "build/cython",
        compiler_directives=DIRECTIVES,
        force=DEBUG,
        show_all_warnings=False,
    )
)
