"""fastmc: linear multi-class classifiers with a certificate of how far they are from optimal.

>>> import numpy as np
>>> import fastmc
>>> model = fastmc.train(np.eye(3), ["a", "b", "c"])
>>> model.certificate.relative_gap <= 1e-3
True

`fastmc.path` gives solutions for all lambda, `fastmc.boosting` has MultiBoost, and
`python -m fastmc` the command line.
"""
import importlib
import importlib.machinery

__version__ = "0.1.0"

if importlib.machinery.PathFinder.find_spec("fastmc._samples", __path__) is None:
    # Python in a folder of the source takes that before an installed fastmc.
    raise ImportError(f"fastmc in {__path__[0]} is not compiled: run `make build` there, or start Python in another "
                      "folder if fastmc is installed")

# Imported on first use: `import fastmc` takes no time, and Ctrl-C ends the command line from its start.
_HOMES = {
    "Certificate": "_certificate", "ConvergenceWarning": "_train", "Model": "_model",
    "ModelError": "_model", "RegularizationPath": "_path", "SvmlightError": "svmlight",
    "dump_svmlight": "svmlight", "load_model": "_model", "load_svmlight": "svmlight",
    "path": "_path", "train": "_train"}
_MODULES = ("boosting", "losses", "stumps", "svmlight")
__all__ = list(_HOMES)


def __getattr__(name):
    if name in _MODULES:
        return importlib.import_module(f"fastmc.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'fastmc' has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(f"fastmc.{_HOMES[name]}"), name)
    return value


def __dir__():
    return sorted({*globals(), *_HOMES, *_MODULES})
