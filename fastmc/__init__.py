"""fastmc: linear multi-class classifiers with a certificate of how far they are from optimal.

>>> import numpy as np
>>> import fastmc
>>> model = fastmc.train(np.eye(3), ["a", "b", "c"])
>>> model.certificate.relative_gap <= 1e-3
True

`fastmc.path` gives solutions for all lambda, `fastmc.boosting` has MultiBoost, and
`python -m fastmc` the command line.
"""
from fastmc._certificate import Certificate
from fastmc._model import Model, ModelError, load_model
from fastmc._path import RegularizationPath, path
from fastmc._train import ConvergenceWarning, train
from fastmc.svmlight import SvmlightError, dump_svmlight, load_svmlight

__version__ = "0.1.0"
__all__ = ["Certificate", "ConvergenceWarning", "Model", "ModelError", "RegularizationPath",
           "SvmlightError", "dump_svmlight", "load_model", "load_svmlight", "path", "train"]
