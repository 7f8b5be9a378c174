"""LIBLINEAR's text format for models, solver type MCSVM_CS: weights, labels and bias.

A header of `key value` lines ends with the line `w`; then row j holds the weights of feature j,
one per class in the order of the label line. A bias that is not negative has a row of its own,
the last. -1 means no bias.
"""
import numbers
import os
import re
from array import array

import numpy as np

from fastmc._files import replacing

KEYS = (b"solver_type", b"nr_class", b"label", b"nr_feature", b"bias")
INT32 = np.iinfo(np.int32)


class ModelError(ValueError):
    """A model file that cannot be read; one line that names the file and the fault."""


def save(model, path):
    """Write the weights, labels and bias of `model`; see `Model.save`."""
    labels = text_labels(model.classes_, path)
    bias = f"{model.bias:.17g}" if model.bias else "-1"
    # 17 significant digits bring every double back to its bits.
    row_format = " ".join(["%.17g"] * len(labels)) + "\n"
    with replacing(path, "w", encoding="ascii", newline="\n") as file:
        file.write(f"solver_type MCSVM_CS\nnr_class {len(labels)}\n"
                   f"label {' '.join(map(str, labels))}\n"
                   f"nr_feature {model.n_features_in_}\nbias {bias}\nw\n")
        file.writelines(row_format % tuple(row.tolist()) for row in model.weights)


def text_labels(classes, path):
    """The classes as ints of 32 bits, or a ValueError that points to .npz."""
    labels = np.asarray(classes).tolist()
    for label in labels:
        number = isinstance(label, numbers.Real) and not isinstance(label, bool)
        if not (number and INT32.min <= label <= INT32.max and label == int(label)):
            name = os.fsdecode(path).removesuffix(".model") + ".npz"
            raise ValueError(f"label {label!r} is not a whole number of 32 bits, which a text "
                             f"model needs; name the model {name!r} to keep any label")
    return [int(label) for label in labels]


def load(path):
    """The arguments of the Model in a file; see `load_model`."""
    with open(path, "rb") as file:
        lines = _Lines(file, os.fsdecode(path))
        header = _read_header(lines)
        has_row = header["bias"] >= 0.0
        shape = header["nr_feature"] + has_row, header["nr_class"]
        weights = _read_rows(lines, *shape)
    if header["bias"] == 0.0:
        # A constant feature of value zero: its row never counts.
        weights = weights[:-1]
    order = np.argsort(header["label"])
    return {"weights": weights[:, order], "classes": np.array(header["label"], np.int64)[order],
            "bias": max(header["bias"], 0.0)}


class _Lines:
    """The lines of a file and where we are in it."""

    def __init__(self, file, name):
        self.file, self.name = file, name
        self.line, self.number = b"", 0

    def next(self, missing):
        """The next line as words; `missing` tells what the file lacks if it ends here."""
        self.number += 1
        self.line = self.file.readline()
        if not self.line:
            self.fail(f"the file ends where {missing} should be")
        if not self.line.endswith(b"\n"):
            # The last number may have lost digits.
            self.fail("the file is cut: its last line has no end")
        return self.line.split()

    def fail(self, message, number=None):
        raise ModelError(f"{self.name}, line {number or self.number}: {message}")


def _read_header(lines):
    header, where = {}, {}
    while (words := lines.next("the line 'w'")) != [b"w"]:
        key = words[0] if words else b""
        if key not in KEYS:
            lines.fail(f"{_shown(key)} is no part of a model's header")
        if key in where:
            lines.fail(f"{_shown(key)} stands twice")
        where[key] = lines.number
        header[key.decode()] = _header_value(lines, key, words[1:])
    for key in KEYS:
        if key not in where:
            lines.fail(f"the header has no {key.decode()}")
    count, labels = header["nr_class"], header["label"]
    if len(labels) != count:
        lines.fail(f"{len(labels)} labels for nr_class {count}", where[b"label"])
    if len(set(labels)) != count:
        lines.fail("a label stands twice", where[b"label"])
    return header


def _header_value(lines, key, words):
    if key == b"label":
        return [_whole(lines, word, INT32.min) for word in words]
    if len(words) != 1:
        lines.fail(f"{key.decode()} needs one value, not {len(words)}")
    if key == b"solver_type":
        if words[0] != b"MCSVM_CS":
            lines.fail(f"solver_type {_shown(words[0])} cannot be read, only MCSVM_CS")
        return "MCSVM_CS"
    if key == b"bias":
        return _number(lines, words[0])
    return _whole(lines, words[0], 1)


def _read_rows(lines, n_rows, n_classes):
    """The weights; memory grows with what the file holds, not with what its header claims."""
    values, first = array("d"), lines.number + 1
    for row in range(n_rows):
        words = lines.next(f"row {row + 1} of {n_rows}")
        if len(words) != n_classes:
            lines.fail(f"{len(words)} weights in a row, expected {n_classes}")
        try:
            values.extend(map(float, words))
            odd = b"_" in lines.line  # float() takes 1_000
        except ValueError:
            odd = True
        if odd:
            for word in words:
                _number(lines, word)
    for line in lines.file:
        lines.number += 1
        if line.strip():
            lines.fail(f"more lines than the {n_rows} rows of weights")
    weights = np.frombuffer(values, dtype=np.float64).reshape(n_rows, n_classes)
    if not np.isfinite(weights).all():
        row, column = np.argwhere(~np.isfinite(weights))[0]
        lines.fail(f"weight {column + 1} is {weights[row, column]}", first + row)
    return weights


def _whole(lines, word, least):
    if not re.fullmatch(rb"[+-]?[0-9]{1,12}", word) or not least <= int(word) <= INT32.max:
        lines.fail(f"{_shown(word)} is not a whole number from {least} to {INT32.max}")
    return int(word)


def _number(lines, word):
    try:
        value = float(word)
    except ValueError:
        value = np.nan
    if b"_" in word or not np.isfinite(value):
        lines.fail(f"{_shown(word)} is not a finite number")
    return value


def _shown(word):
    """A word of the file for a message: ASCII, quoted, not too long."""
    text = word[:40].decode("ascii", "backslashreplace")
    return f"'{text}'" + ("..." if len(word) > 40 else "")
