"""The checked training problem. The only place that casts, copies or refuses input arrays."""
import math
import os
import warnings

import numpy as np
import scipy.sparse as sp

from fastmc import _samples, reference
from fastmc._types import Array, Matrix

# Up to this part of non-zeros CSR takes fewer bytes and several times less time than a dense array.
SPARSE = 0.25


class Problem:
    """Rows, labels, costs and weights of one training problem, checked.

    Parameters
    ----------
    X : sparse matrix or array, or array-like, shape (n_samples, n_features)
        float32 and float64 are used as they are, other real types are cast. CSR with sorted
        unique columns and C-ordered dense arrays are not copied, but for dense arrays that are zero in
        three places of four or more: these become CSR, which is a fraction of their size. Never changed.
    y : array-like, shape (n_samples,)
        Labels of any sortable kind.
    cost : array-like or None
        (n_classes, n_classes), row = own class in sorted order, or (n_samples, n_classes).
    bias : float or None
        Value of a constant feature appended to each row.
    class_weight : None, "balanced" or dict
    sample_weight : None or array-like, shape (n_samples,)

    Raises
    ------
    ValueError
        Naming the argument and what is wrong with it.
    MemoryError
        If W and the dual would not fit in this machine's memory.
    """

    def __init__(self, X, y, cost=None, bias=None, class_weight=None, sample_weight=None):
        self.X = check_matrix(X, pack=True)
        self.n_samples, self.n_features = self.X.shape
        if 0 in self.X.shape:
            raise ValueError(f"X is empty: shape {self.X.shape}")
        self.classes, self.label = encode_labels(y, self.n_samples)
        self.n_classes = len(self.classes)
        self.bias = check_bias(bias)
        self._check_memory()
        self.weight = self._sample_weights(sample_weight, class_weight)
        self.cost = self._check_cost(cost)
        self.sqnorm = squared_row_norms(self.X) + self.bias * self.bias
        if not np.isfinite(self.sqnorm).all():
            row = int(np.argmin(np.isfinite(self.sqnorm)))
            raise ValueError(f"X: the squared norm of row {row} overflows; scale the data")

    @property
    def n_weights(self):
        """Rows of W: the features, and one more for the bias."""
        return self.n_features + (self.bias != 0.0)

    def samples(self, engine="cython", stride=None, values=None):
        """The compiled (or mirror) view of the rows that the passes work on; W has `stride` columns.

        `values` are those of X in another precision, as `values_in` makes them.
        """
        module = _samples if engine == "cython" else reference.samples
        own, *places = kernel_rows(self.X, 0, self.n_samples)
        return module.Samples(own if values is None else values, *places, self.n_classes, self.label, self.weight,
                              self.sqnorm, self.n_features, self.cost, self.bias, stride)

    def values_in(self, dtype):
        """The values of X in a precision; no copy where they are in it."""
        return (self.X.data if sp.issparse(self.X) else self.X).astype(dtype, copy=False)

    def scores(self, weights, rows=slice(None)):
        """Scores of a slice of rows, shape (rows, n_classes), float64."""
        scores = self.X[rows] @ weights[: self.n_features]
        if self.bias:
            scores += self.bias * weights[self.n_features]
        return scores

    def augmented(self, weights, rows=slice(None)):
        """Scores plus costs of a slice of rows; the own class costs nothing."""
        return self.add_costs(self.scores(weights, rows), rows)

    def costs(self, rows):
        """Costs of a slice of rows, shape (rows, n_classes)."""
        return self.add_costs(np.zeros((len(self.label[rows]), self.n_classes)), rows)

    def add_costs(self, scores, rows):
        """Add the costs of a slice of rows to their scores, in place; returns them."""
        label = self.label[rows]
        if self.cost is None:
            own = np.take_along_axis(scores, label[:, None], axis=1)
            scores += 1.0
            np.put_along_axis(scores, label[:, None], own, axis=1)
        else:
            scores += self.cost[label] if len(self.cost) == self.n_classes else self.cost[rows]
        return scores

    def weights_of(self, dual, lam):
        """W(A) = 1/(lambda n) sum_i x_i alpha_i^T, shape (n_weights, n_classes), for dense or sparse A."""
        weights = self.transposed(dual)
        weights /= lam * self.n_samples
        return weights

    def transposed(self, columns):
        """X^T times a vector or a dense or sparse matrix, with a row for the bias; dense, float64."""
        out = np.empty((self.n_weights, *columns.shape[1:]))
        product = self.X.T @ columns
        out[: self.n_features] = product.toarray() if sp.issparse(product) else product
        if self.bias:
            out[self.n_features] = self.bias * columns.sum(axis=0)
        return out

    def _check_memory(self):
        # W and its best copy; the dual and its best copy.
        need = 16 * self.n_classes * (self.n_weights + self.n_samples)
        have = physical_memory()
        if need > have:
            raise MemoryError(
                f"{self.n_classes} classes x ({self.n_features} features + {self.n_samples} "
                f"samples) need {need / 2**30:.1f} GiB, this machine has {have / 2**30:.1f} GiB")

    def _sample_weights(self, sample_weight, class_weight):
        weight = check_weights(sample_weight, self.n_samples)
        factors = self._class_weights(class_weight, weight)[self.label]
        with np.errstate(over="ignore"):
            weight *= factors
        if not np.isfinite(weight).all():
            row = int(np.argmin(np.isfinite(weight)))
            raise ValueError(f"the weight of sample {row} overflows: sample_weight times class_weight")
        if not weight.any():
            raise ValueError("all samples have weight zero")
        return weight

    def _class_weights(self, class_weight, weight):
        factors = np.ones(self.n_classes)
        if class_weight is None:
            return factors
        if isinstance(class_weight, str):
            if class_weight != "balanced":
                raise ValueError(f'class_weight={class_weight!r} must be "balanced", a dict or None')
            counts = np.bincount(self.label, weights=weight, minlength=self.n_classes)
            factors[counts > 0] = counts.sum() / (self.n_classes * counts[counts > 0])
            return factors
        if not isinstance(class_weight, dict):
            raise ValueError(f'class_weight={class_weight!r} must be "balanced", a dict or None')
        position = {label: at for at, label in enumerate(self.classes.tolist())}
        for label, factor in class_weight.items():
            factor = check_numbers(factor, f"class_weight[{label!r}]")
            if factor.ndim or factor < 0:
                raise ValueError(f"class_weight[{label!r}]={factor} must be a number >= 0")
            if label in position:
                factors[position[label]] = factor
            else:
                warnings.warn(f"class_weight: there is no class {label!r} in the data", stacklevel=5)
        return factors

    def _check_cost(self, cost):
        if cost is None:
            return None
        cost = np.ascontiguousarray(check_numbers(cost, "cost"))
        n, m = self.n_samples, self.n_classes
        if cost.shape not in ((m, m), (n, m)):
            raise ValueError(f"cost has shape {cost.shape}, expected ({m}, {m}) or ({n}, {m})")
        if (cost < 0).any():
            row, column = np.argwhere(cost < 0)[0]
            raise ValueError(f"cost[{row}, {column}]={cost[row, column]} is negative")
        own = np.arange(m) if len(cost) == m else self.label
        bad = cost[np.arange(len(cost)), own] != 0
        if bad.any():
            row = int(np.argmax(bad))
            raise ValueError(f"cost[{row}, {own[row]}]={cost[row, own[row]]} must be zero: "
                             "it is the own class")
        # 1 for every wrong class is the default, which passes have a shorter way for.
        return None if np.count_nonzero(cost == 1.0) == cost.size - len(cost) else cost


def check_matrix(X: Matrix, name: str = "X", pack: bool = False) -> "sp.csr_array | Array":
    """A CSR matrix with sorted unique columns or a C-ordered 2-D array, float32 or float64.

    `pack` asks for CSR as well where a dense X has few entries other than zero.
    """
    if sp.issparse(X):
        return _check_sparse(X, name)
    X = _as_array(X, name)
    if X.ndim != 2:
        raise ValueError(f"{name} must be two-dimensional, got shape {X.shape}")
    X = np.ascontiguousarray(_check_type(X, name))
    packed = to_csr(X, SPARSE) if pack else None
    if not np.isfinite(X if packed is None else packed.data).all():
        row, column = np.argwhere(~np.isfinite(X))[0]
        raise ValueError(f"{name}[{row}, {column}] is {X[row, column]}: values must be finite")
    return X if packed is None else packed


def check_width(X: Matrix, n_features: int) -> "sp.csr_array | Array":
    """X as `check_matrix` gives it, with the columns that a model has."""
    X = check_matrix(X)
    if X.shape[1] != n_features:
        raise ValueError(f"X has {X.shape[1]} features, the model has {n_features}")
    return X


def to_csr(X, part):
    """A dense X as CSR; None unless less than this part of it is not zero."""
    most = math.ceil(part * X.size) - 1
    if most < 0:
        return None
    index = np.int32 if X.size <= np.iinfo(np.int32).max else np.int64
    # Room for a row more, as a row is written whole; memory that nothing is written to is none.
    values, columns = np.empty(most + X.shape[1], X.dtype), np.empty(most + X.shape[1], index)
    starts = np.empty(len(X) + 1, index)
    if not _samples.pack(X, values, columns, starts):
        return None
    return sp.csr_array((values[:starts[-1]], columns[:starts[-1]], starts), shape=X.shape)


def kernel_rows(X, start, stop):
    """Values, column numbers and row starts of some rows of a checked X, as `Samples` takes them."""
    if not sp.issparse(X):
        return X[start:stop], None, None
    # The row starts are few: one width for them, whatever the caller's is.
    return X.data, X.indices, X.indptr[start:stop + 1].astype(np.int64)


def _check_sparse(X, name):
    if X.ndim != 2:
        raise ValueError(f"{name} must be two-dimensional, got shape {X.shape}")
    if X.format != "csr":
        # A conversion trusts the indices: it would write outside of its arrays.
        if X.format in ("csc", "bsr"):
            X.check_format()
        if X.format == "coo":
            for index, size in zip(X.coords, X.shape):
                if X.nnz and (index.min() < 0 or index.max() >= size):
                    bad = index[(index < 0) | (index >= size)][0]
                    raise ValueError(f"{name} has index {bad} outside 0..{size - 1}")
        X = X.tocsr()
    n, d = X.shape
    indptr, indices = _check_index(X.indptr, f"{name}.indptr"), _check_index(X.indices, f"{name}.indices")
    if len(indptr) != n + 1 or indptr[0] != 0 or (np.diff(indptr) < 0).any():
        raise ValueError(f"{name}.indptr must start at 0, never decrease and have {n + 1} entries")
    nnz = int(indptr[-1])
    if nnz > len(indices) or nnz > len(X.data):
        raise ValueError(f"{name}.indptr ends at {nnz} but there are {len(indices)} indices "
                         f"and {len(X.data)} values")
    data, indices = _check_type(X.data[:nnz], name), indices[:nnz]
    if nnz and (indices.min() < 0 or indices.max() >= d):
        bad = indices[(indices < 0) | (indices >= d)][0]
        raise ValueError(f"{name} has column index {bad} outside 0..{d - 1}")
    if not np.isfinite(data).all():
        at = int(np.argmin(np.isfinite(data)))
        row = int(np.searchsorted(indptr, at, side="right")) - 1
        raise ValueError(f"{name}[{row}, {indices[at]}] is {data[at]}: values must be finite")
    sorted_rows = _rows_increase(indices, indptr)
    if not sorted_rows:
        data, indices = data.copy(), indices.copy()
    if data is X.data and indices is X.indices and data.flags.c_contiguous:
        return X
    checked = (sp.csr_array if isinstance(X, sp.sparray) else sp.csr_matrix)((n, d), dtype=data.dtype)
    # Set directly: the constructor would narrow 64-bit indices, which is a copy.
    checked.data, checked.indices, checked.indptr = np.ascontiguousarray(data), indices, indptr
    if not sorted_rows:
        checked.indptr = indptr.copy()
        checked.has_sorted_indices = checked.has_canonical_format = False
        checked.sum_duplicates()
    return checked


def _check_index(values, name):
    """Native int32 or int64 without gaps; those are not copied."""
    if values.dtype.kind not in "iu":
        raise ValueError(f"{name} has dtype {values.dtype}; integers are needed")
    if values.dtype not in (np.int32, np.int64):
        values = values.astype(np.int64)
    return np.ascontiguousarray(values)


def _rows_increase(indices, indptr):
    rises = indices[1:] > indices[:-1]
    # The first entry of a row may be lower than the last one of the row before.
    rises[indptr[(indptr > 0) & (indptr < len(indices))] - 1] = True
    return rises.all()


def _check_type(values, name):
    if values.dtype.kind not in "fiub":
        raise ValueError(f"{name} has dtype {values.dtype}; real numbers are needed")
    single = values.dtype.kind == "f" and values.dtype.itemsize == 4
    # What is beyond float64 becomes infinite, which the caller refuses.
    with np.errstate(over="ignore"):
        return values.astype(np.float32 if single else np.float64, copy=False)


def check_numbers(values, name):
    """`values` as a finite float64 array."""
    _refuse_masked(values, name)
    try:
        if np.asarray(values).dtype.kind == "c":
            raise ValueError
        numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name}={values!r} must hold numbers") from None
    if not np.isfinite(numbers).all():
        at = tuple(np.argwhere(~np.isfinite(numbers))[0].tolist())
        # As it was given: None, which NumPy takes for nan, is None here.
        raise ValueError(f"{name}{list(at) if at else ''} is {np.asarray(values, dtype=object)[at]}: "
                         "values must be finite")
    return numbers


def _refuse_masked(values, name):
    if np.ma.is_masked(values):
        raise ValueError(f"{name} is a masked array with masked values; fill them first")


def _as_array(values: object, name: str) -> Array:
    """`values` as an array; lists of different lengths, of which NumPy makes none, are named."""
    _refuse_masked(values, name)
    try:
        return np.asarray(values)
    except ValueError as error:
        raise ValueError(f"{name} is not an array, nor lists of the same length: {error}") from None


def check_weights(sample_weight, n_samples):
    """A fresh array of n_samples non-negative weights, ones for None."""
    if sample_weight is None:
        return np.ones(n_samples)
    weight = check_numbers(sample_weight, "sample_weight").copy()
    if weight.shape != (n_samples,):
        raise ValueError(f"sample_weight has shape {weight.shape}, expected ({n_samples},)")
    if (weight < 0).any():
        row = int(np.argmax(weight < 0))
        raise ValueError(f"sample_weight[{row}]={weight[row]} is negative")
    return weight


def check_bias(bias):
    """The value of the constant feature, 0.0 for none."""
    if bias is None:
        return 0.0
    value = check_numbers(bias, "bias")
    if value.ndim or value <= 0:
        raise ValueError(f"bias={bias!r} must be a positive number, or None for no bias: it is the "
                         "value of a constant feature")
    return float(value)


def label_array(y, n_samples):
    """`y` as an array with a label for each row of X."""
    if sp.issparse(y):
        raise ValueError(f"y is a sparse matrix of shape {y.shape}, expected an array of shape ({n_samples},)")
    y = _as_array(y, "y")
    if y.shape != (n_samples,):
        raise ValueError(f"y has shape {y.shape}, expected ({n_samples},) as X has {n_samples} rows")
    return y


def encode_labels(y, n_samples):
    """(classes, label): the sorted distinct labels and each sample's position among them."""
    y = label_array(y, n_samples)
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        row = int(np.argmin(np.isfinite(y)))
        raise ValueError(f"y[{row}] is {y[row]}: labels must be finite")
    try:
        if y.dtype.kind in "cmMO":
            # NaN and NaT, the labels that differ from themselves, have no place in an order.
            missing = [row for row, label in enumerate(y) if label != label]
            if missing:
                raise ValueError(f"y[{missing[0]}] is {y[missing[0]]}: labels must be finite")
        classes, label = np.unique(y, return_inverse=True)
    except TypeError:
        raise ValueError("y mixes labels that cannot be sorted together") from None
    if len(classes) < 2:
        raise ValueError(f"y has one class only ({classes.tolist()[0]!r}); at least two are needed")
    return classes, label.astype(np.int64).reshape(-1)


@np.errstate(over="ignore")
def squared_row_norms(X):
    """||x_i||^2 in float64, shape (n_samples,); infinite where it overflows."""
    if not sp.issparse(X):
        return np.einsum("ij,ij->i", X, X, dtype=np.float64)
    n = X.shape[0]
    norms = np.zeros(n)
    # Some rows at a time: their squares stay in the cache.
    block = max(1, 2**15 * n // max(X.nnz, n))
    for first in range(0, n, block):
        starts = X.indptr[first:first + block + 1]
        squares = np.square(X.data[starts[0]:starts[-1]], dtype=np.float64)
        # reduceat sums from one start to the next; rows without entries have no start of their own.
        filled = np.diff(starts) > 0
        if filled.any():
            norms[first:first + block][filled] = np.add.reduceat(squares, starts[:-1][filled] - starts[0])
    return norms


def physical_memory():
    """Bytes of this machine's memory; infinity where the system does not tell."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return float("inf")
