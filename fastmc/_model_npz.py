"""The native model format: a NumPy .npz archive without pickled objects.

`weights` and `classes` are always there besides the `meta` of _npz; `sample_weight`, `dual_*` (the
parts of a CSR array) and `history_*` (one per column) where the model has them. Other kinds of models:
see _boosting_npz.
"""
import json
import os
import zipfile

import numpy as np
import scipy.sparse as sp

from fastmc import _boosting_npz
from fastmc._certificate import Certificate
from fastmc._history import COLUMNS, History
from fastmc._model_text import ModelError
from fastmc._npz import FORMAT, array, plain_labels, write
from fastmc._problem import check_matrix
from fastmc.losses import LOSSES, LossSpec

KIND = "linear"
CSR_PARTS = ("data", "indices", "indptr")
NUMBERS = ("bias", "smoothing", "C", "lam", "n_samples", "n_passes")
TEXTS = ("solver", "status")


def save(model, path):
    """Write all of `model`; see `Model.save`."""
    classes, are_objects = plain_labels(model.classes_)
    meta = {"object_labels": are_objects, "spec": None, "certificate": None}
    meta |= {key: getattr(model, key) for key in NUMBERS + TEXTS}
    if model.spec is not None:
        meta["spec"] = [model.spec.name, list(model.spec.rho), model.spec.own_class]
    if model.certificate is not None:
        meta["certificate"] = list(model.certificate)
    arrays = {"weights": model.weights, "classes": classes}
    if model.sample_weight is not None:
        arrays["sample_weight"] = np.asarray(model.sample_weight, dtype=np.float64)
    if model.dual_ is not None:
        dual = sp.csr_array(model.dual_)
        arrays |= {f"dual_{part}": getattr(dual, part) for part in CSR_PARTS}
    if model.history is not None:
        arrays |= {f"history_{column}": model.history[column] for column in COLUMNS}
    write(path, meta, arrays)


def load(path):
    """(kind, parts) of the model in a file: for KIND the arguments of Model; see `load_model`."""
    with open(path, "rb") as file:
        try:
            if not zipfile.is_zipfile(file):
                raise ValueError("not an .npz archive")
            file.seek(0)
            with np.load(file, allow_pickle=False) as archive:
                return _read(archive)
        except Exception as error:  # a damaged archive can raise nearly anything
            reason = " ".join(str(error).split()) or type(error).__name__
            raise ModelError(f"{os.fsdecode(path)}: not a model file: {reason}") from None


def _read(archive):
    meta = json.loads(str(array(archive, "meta", "U", 0)))
    version = meta.get("format") if isinstance(meta, dict) else None
    if version != FORMAT:
        raise ValueError(f"format {version!r} is unknown, this version reads {FORMAT}")
    kind = meta.get("kind", KIND)
    readers = {KIND: _parts, _boosting_npz.KIND: _boosting_npz.parts}
    if kind not in readers:
        raise ValueError(f"kind {kind!r} is unknown")
    return kind, readers[kind](archive, meta)


def _parts(archive, meta):
    _check_meta(meta)
    classes = array(archive, "classes", "biufUS", 1)
    n_samples, n_classes = meta["n_samples"], len(classes)
    parts = {key: meta[key] for key in NUMBERS + TEXTS}
    parts["weights"] = array(archive, "weights", "f", 2)
    parts["classes"] = classes.astype(object) if meta["object_labels"] else classes
    if meta["spec"] is not None:
        parts["spec"] = _spec(n_classes, *meta["spec"])
    if meta["certificate"] is not None:
        parts["certificate"] = Certificate(*map(float, meta["certificate"]))
    if "sample_weight" in archive:
        parts["sample_weight"] = array(archive, "sample_weight", "f", 1)
        if len(parts["sample_weight"]) != n_samples:
            raise ValueError(f"sample_weight does not fit {n_samples} samples")
    if "dual_data" in archive:
        parts["dual"] = _dual(archive, (n_samples, n_classes))
    if "history_passes" in archive:
        parts["history"] = _history(archive)
    return parts


def _check_meta(meta):
    for key in (*NUMBERS, *TEXTS, "object_labels", "spec", "certificate"):
        if key not in meta:
            raise ValueError(f"no {key} in meta")
    for key in NUMBERS:
        kinds = int if key.startswith("n_") else (int, float)
        required = key in ("bias", "smoothing")
        if not (isinstance(meta[key], kinds) or meta[key] is None and not required):
            raise ValueError(f"{key} is {meta[key]!r}")
    for key in TEXTS:
        if not isinstance(meta[key], str | None):
            raise ValueError(f"{key} is {meta[key]!r}")


def _spec(n_classes, name, rho, own_class):
    ranks = np.array(rho, dtype=np.float64)
    fits = ranks.shape == (n_classes,) and np.isfinite(ranks).all() and ranks[0] > ranks[-1] == 0
    if name not in LOSSES or not fits or (np.diff(ranks) > 0).any():
        raise ValueError(f"loss {name!r} with rank weights {rho!r} does not fit "
                         f"{n_classes} classes")
    return LossSpec(name, tuple(ranks.tolist()), bool(own_class))


def _dual(archive, shape):
    kinds = zip(CSR_PARTS, ("f", "i", "i"))
    parts = [array(archive, f"dual_{part}", kind, 1) for part, kind in kinds]
    dual = sp.csr_array(shape, dtype=np.float64)
    dual.data, dual.indices, dual.indptr = parts
    return check_matrix(dual, "dual")


def _history(archive):
    columns = [array(archive, f"history_{column}", "fi", 1) for column in COLUMNS]
    if len(set(map(len, columns))) != 1:
        raise ValueError("the columns of the history differ in length")
    return History(zip(*[column.tolist() for column in columns]))
