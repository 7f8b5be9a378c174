"""What the .npz files of all kinds of models share: `meta`, a JSON text, besides the arrays.

`meta` holds the format number, the `kind` of any but linear models, and everything that is no array.
Nothing is pickled.
"""
import json

import numpy as np

from fastmc._files import replacing

FORMAT = 1


def write(path, meta, arrays):
    """An archive of arrays and of what `meta` says besides the format."""
    text = json.dumps({"format": FORMAT, **meta}, default=_plain_number)
    with replacing(path, "wb") as file:
        np.savez(file, meta=np.array(text), **arrays)


def plain_labels(classes):
    """(labels as an array that needs no pickling, whether they were objects)."""
    plain = classes
    if classes.dtype.kind == "O":
        values = classes.tolist()
        plain = np.array(values)
        same = plain.shape == classes.shape and len(set(map(type, values))) == 1
        if not (same and plain.tolist() == values):
            raise ValueError("these labels cannot be saved: a model file keeps numbers, booleans "
                             "or strings, all of one type")
    if plain.dtype.kind not in "biufUS":
        raise ValueError(f"labels of dtype {plain.dtype} cannot be saved")
    return plain, plain is not classes


def _plain_number(value):
    """NumPy's scalars as Python's, for JSON."""
    return value.item()


def array(archive, key, kinds, ndim):
    """An array of these kinds of dtype and that many dimensions."""
    if key not in archive:
        raise ValueError(f"no {key} in the archive")
    values = archive[key]
    if values.dtype.kind not in kinds or values.ndim != ndim:
        raise ValueError(f"{key} has dtype {values.dtype} and shape {values.shape}")
    return values
