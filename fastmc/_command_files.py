"""The files of a command: checks before the work is done, and the cost matrix."""
import errno
import math
import os
import tempfile

import numpy as np

from fastmc._arguments import UsageError
from fastmc._model_text import text_labels
from fastmc.svmlight import read_pieces


class InputError(Exception):
    """Something wrong with the data: exit 1."""


def check_files(inputs, outputs, devices=False):
    """See to it, before the work, that each output can be written and is no other of our files.

    A model or a table must be a file; `devices` allows /dev/stdout, /dev/null and pipes too.
    """
    used = {os.path.realpath(path) for path in inputs if path}
    for path in outputs:
        if path is None:
            continue
        check_writable(path, devices)
        real = os.path.realpath(path)
        if real in used:
            raise UsageError(f"{path} would be written over another file of this command")
        used.add(real)


def check_writable(path, devices):
    code = None
    if os.path.isdir(path):
        code = errno.EISDIR
    elif is_device(path):
        if not devices:
            raise OSError(errno.EINVAL, "not a regular file", path)
        code = None if os.access(path, os.W_OK) else errno.EACCES
    else:
        try:
            tempfile.TemporaryFile(dir=os.path.dirname(os.path.realpath(path))).close()
        except OSError as error:
            code = error.errno
    if code is not None:
        raise OSError(code, os.strerror(code), path)


def is_device(path):
    """Whether there is something else than a file, such as a pipe."""
    return os.path.exists(path) and not os.path.isfile(path)


def check_text_labels(path, y, model_file):
    try:
        text_labels(np.unique(y), model_file)
    except ValueError as error:
        raise InputError(f"{path}: {error}") from None


def read_cost(path):
    """The square matrix of numbers in a file."""
    with open(path, "rb") as file:
        lines = file.read().rstrip().split(b"\n")
    matrix = np.empty((len(lines), len(lines)))
    for row, line in enumerate(lines):
        words = line.split()
        if len(words) != len(lines):
            raise InputError(f"{path}, line {row + 1}: {len(words)} numbers in one of "
                             f"{len(lines)} rows; the matrix must be square")
        for column, word in enumerate(words):
            matrix[row, column] = cost_value(word, f"{path}, line {row + 1}", row == column)
    return matrix


def cost_value(word, place, own):
    text = word.decode("ascii", "backslashreplace")
    try:
        value = float(word)
    except ValueError:
        value = math.nan
    if not 0.0 <= value < math.inf:
        raise InputError(f"{place}: '{text}' is not a finite number of at least 0")
    if own and value != 0.0:
        raise InputError(f"{place}: '{text}' stands on the diagonal; the own class must cost 0")
    return value


def read_names(path, n_features):
    """The names of the features, one a line of a file; those that are not needed are left out."""
    try:
        names = b"".join(read_pieces(path)).decode("utf-8-sig").split("\n")[:-1]
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: names must be in UTF-8, byte {error.start + 1} is not") from None
    if len(names) < n_features:
        raise InputError(f"{path}: {len(names)} names, but the model has {n_features} features")
    return [name.strip() for name in names[:n_features]]


def check_cost_size(path, cost, y):
    n_classes = len(np.unique(y))
    if cost is not None and len(cost) != n_classes:
        raise InputError(f"{path}: {len(cost)} rows, but the training data has {n_classes} "
                         "classes")
    return cost
