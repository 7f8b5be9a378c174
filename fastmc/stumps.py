"""Decision stumps, the weak learners of class-wise boosting: the best one of every class at once.

A stump is polarity * (+1 if x[feature] > threshold else -1). L stumps are three arrays of length
L: feature (int64), threshold (float64) and polarity (int8).
"""
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import scipy.sparse as sp

from fastmc import _stumps, reference
from fastmc._problem import check_matrix

# Entries that are sorted, or numbers that are compared with thresholds, at a time.
BLOCK = 2**16


class Stumps:
    """Training rows, sorted once by the values of every feature.

    Parameters
    ----------
    X : sparse matrix or array, or array-like, shape (n_samples, n_features)
        Dense or sparse, the same stumps are found. No reference to it is kept. An absent entry
        is a value of zero like any other.
    engine : {"cython", "reference"}

    Attributes
    ----------
    n_samples, n_features : int
    values : ndarray, shape (n_bins,)
        The distinct values of every feature, features one after the other, each sorted.

    Notes
    -----
    Memory is 4 bytes for every row whose value is not the most frequent one of its feature, and
    16 bytes for every distinct value: O(nnz + n_features) for sparse X.

    Raises
    ------
    ValueError
        If X is empty or holds values that are not finite real numbers.
    """

    def __init__(self, X, engine="cython"):
        X = check_matrix(X)
        if 0 in X.shape:
            raise ValueError(f"X is empty: shape {X.shape}")
        self.n_samples, self.n_features = X.shape
        if self.n_samples >= 2**31:
            raise ValueError(f"X has {self.n_samples} rows, at most {2**31 - 1} are supported")
        parts = [_sort_columns(block) for block in _column_blocks(X)]
        self.values, rows, sizes, widths, usual = map(np.concatenate, zip(*parts))
        self._bin_start = _starts(widths)
        self._row_start = _starts(sizes)
        self._kernel = _stumps if engine == "cython" else reference.stumps
        self._bins = self._kernel.Bins(self.n_samples, rows, self._row_start, self._bin_start,
                                       self._bin_start[:-1] + usual)

    def best(self, U, n_threads=1):
        """The stump of the largest edge for every column of U.

        Parameters
        ----------
        U : array-like, shape (n_samples, K)
            Weights of the rows for every class; any sign.
        n_threads : int
            The result does not depend on it.

        Returns
        -------
        feature, threshold, polarity : ndarray, shape (K,)
            Of all stumps that differ on the training rows, one with the largest edge
            sum_i U[i, c] h(x_i); of equals that of the lowest feature, then the lowest threshold,
            then polarity +1. Thresholds lie halfway between neighbouring values. Edges are compared
            as rounded: those closer than the rounding of a sum over the rows count as either.
        edge : ndarray, shape (K,)
            Summed from the outputs of the winner in the order of the rows.

            If every feature is constant there is no stump: feature -1, threshold 0, polarity 1,
            edge 0.

        Raises
        ------
        ValueError
            If U has another shape, or its sums are not finite.
        """
        U, half = self._check_weights(U)
        bounds = self._thread_bounds(n_threads)
        searches = [_Search(self._bins, U, half, *bound) for bound in zip(bounds, bounds[1:])]
        if len(searches) == 1:
            searches[0].run()
        else:
            with ThreadPoolExecutor(len(searches)) as pool:
                list(pool.map(_Search.run, searches))
        top, feature = searches[0].top, searches[0].feature
        for other in searches[1:]:
            # Not "not smaller": ties go to the lower features, which come first.
            better = other.top > top
            top[better], feature[better] = other.top[better], other.feature[better]
        return self._describe(U, half, top, feature)

    def best_shared(self, U, n_threads=1):
        """One stump for all classes: that of the largest edge over all columns of U.

        Returns what `best` returns for that column alone (the lowest of equals): four arrays of
        length 1. This is the weak learner of MultiBoost with shared learners, whose dual has the
        constraint that no learner has an edge above a bound for any class.
        """
        found = self.best(U, n_threads)
        column = int(np.argmax(found[3]))
        return tuple(part[column:column + 1] for part in found)

    def outputs(self, feature, threshold, polarity):
        """Outputs of stumps on the training rows: int8, shape (n_samples, L), -1 or +1."""
        feature, threshold, polarity = check_stumps(feature, threshold, polarity, self.n_features)
        # The last distinct value, of all features, that is not above the threshold.
        last = np.empty_like(feature)
        for j, (f, at) in enumerate(zip(feature, threshold)):
            first, end = self._bin_start[f:f + 2]
            last[j] = first + np.searchsorted(self.values[first:end], at, side="right") - 1
        return self._outputs(feature, last, polarity)

    def _check_weights(self, U):
        U = np.ascontiguousarray(U, dtype=np.float64)
        if U.ndim != 2 or len(U) != self.n_samples or U.shape[1] == 0:
            raise ValueError(f"U has shape {U.shape}, expected ({self.n_samples}, K)")
        with np.errstate(over="ignore", invalid="ignore"):
            # Twice the sum of the absolute values bounds whatever the search computes.
            bound = 2.0 * np.abs(U).sum(axis=0)
        if not np.isfinite(bound).all():
            raise ValueError(f"U: column {int(np.argmin(np.isfinite(bound)))} holds values that "
                             "are not finite or overflow when summed")
        return U, 0.5 * U.sum(axis=0)

    def _thread_bounds(self, n_threads):
        """First features of the threads' shares, with about equal numbers of rows and bins."""
        if n_threads < 1:
            raise ValueError(f"n_threads={n_threads!r} must be at least 1")
        work = self._row_start[self._bin_start] + self._bin_start
        n_threads = min(n_threads, self.n_features)
        cuts = np.searchsorted(work, work[-1] * np.arange(1, n_threads) / n_threads)
        return [0, *cuts.tolist(), self.n_features]

    def _describe(self, U, half, top, feature):
        """(feature, threshold, polarity, edge) of the winners that the sweep found."""
        edge, polarity = np.zeros(len(top)), np.ones(len(top), dtype=np.int8)
        if feature[0] < 0:
            return feature, np.zeros(len(top)), polarity, edge
        last = np.empty_like(feature)
        self._bins.split(U, half, top, feature, last, polarity)
        self._kernel.edges(U, self._outputs(feature, last, polarity), edge)
        # An edge that is zero but for rounding may have the other sign when summed again.
        polarity[edge < 0] *= -1
        return feature, midpoint(self.values[last], self.values[last + 1]), polarity, np.abs(edge)

    def _outputs(self, feature, last, polarity):
        out = np.empty((self.n_samples, len(feature)), dtype=np.int8)
        self._bins.outputs(feature, last, polarity, out)
        return out


class _Search:
    """The best stumps of one range of features."""

    def __init__(self, bins, U, half, start, stop):
        self.arguments = bins, U, half, start, stop
        # Below any edge, as one of the two polarities has an edge of at least zero.
        self.top = np.full(U.shape[1], -1.0)
        self.feature = np.full(U.shape[1], -1, dtype=np.int64)

    def run(self):
        bins, U, half, start, stop = self.arguments
        bins.sweep(U, half, self.top, self.feature, start, stop)


def outputs(X, feature, threshold, polarity):
    """Outputs of L stumps on the rows of X.

    Parameters
    ----------
    X : sparse matrix or array, or array-like, shape (n_samples, n_features)
    feature, threshold, polarity : array-like, shape (L,)

    Returns
    -------
    ndarray of int8, shape (n_samples, L), entries -1 and +1
    """
    X = check_matrix(X)
    feature, threshold, polarity = check_stumps(feature, threshold, polarity, X.shape[1])
    if sp.issparse(X):
        columns = X[:, feature].tocsc()
        above = np.repeat((0.0 > threshold)[None, :], X.shape[0], axis=0)
        stump = np.repeat(np.arange(len(feature)), np.diff(columns.indptr))
        above[columns.indices, stump] = columns.data > threshold[stump]
    else:
        above = np.empty((X.shape[0], len(feature)), dtype=bool)
        step = max(1, BLOCK // max(1, len(feature)))
        for start in range(0, len(X), step):
            # Thresholds are float64, so float32 values are compared exactly.
            above[start:start + step] = X[start:start + step][:, feature] > threshold
    return np.where(above, polarity, -polarity)


def check_stumps(feature, threshold, polarity, n_features):
    """The three arrays of stumps in their types, or ValueError."""
    parts = [np.asarray(part) for part in (feature, threshold, polarity)]
    if parts[0].ndim != 1 or any(part.shape != parts[0].shape for part in parts):
        raise ValueError("feature, threshold and polarity must be of one length, got shapes "
                         + ", ".join(str(part.shape) for part in parts))
    feature = parts[0].astype(np.int64)
    bad = (feature < 0) | (feature >= n_features) | (feature != parts[0])
    if bad.any():
        raise ValueError(f"feature={parts[0][bad][0]} is not one of 0..{n_features - 1}")
    if np.isnan(parts[1]).any():
        raise ValueError("threshold holds NaN")
    if not np.isin(parts[2], (-1, 1)).all():
        raise ValueError("polarity must be -1 or +1")
    return feature, parts[1].astype(np.float64), parts[2].astype(np.int8)


def midpoint(low, high):
    """A number in [low, high) halfway between two neighbouring values."""
    # Halves first: the sum of two large numbers overflows.
    middle = 0.5 * low + 0.5 * high
    # Rounded up to `high`, the upper value would fall on the lower side; halves of the
    # smallest numbers may even round out of the interval.
    return np.where((low <= middle) & (middle < high), middle, low)


def _column_blocks(X):
    """X as CSC matrices of neighbouring columns, of about BLOCK entries each."""
    size = X.nnz if sp.issparse(X) else X.size
    width = max(1, X.shape[1] * BLOCK // max(size, 1))
    if sp.issparse(X):
        X = X.tocsc()
    for start in range(0, X.shape[1], width):
        yield sp.csc_array(X[:, start:start + width])


def _sort_columns(X):
    """The bins of the columns of a CSC matrix: one for every column and distinct value of it.

    Returns
    -------
    values : (n_bins,) float64
        Column after column, sorted.
    rows : (n_entries,) int32
        Rows of every bin, in order; none for the usual value (the most frequent, lowest of
        equals) of a column.
    sizes : (n_bins,) int64
        Number of `rows` of every bin.
    widths, usual : (n_columns,) int64
        Number of bins of every column, and which of them is the usual one.
    """
    X.eliminate_zeros()
    columns, values, sizes, row = _distinct_values(X)
    widths = np.bincount(columns, minlength=X.shape[1])
    usual = _most_frequent(columns, sizes, _starts(widths))
    is_usual = np.zeros(len(values), dtype=bool)
    is_usual[usual] = True
    # Rows with a zero have no entry among `row`: they are those that the others leave.
    is_zero = values == 0
    kept = np.repeat(~is_usual[~is_zero], sizes[~is_zero])
    sizes = np.where(is_usual, 0, sizes)
    from_zero = np.repeat(is_zero, sizes)
    rows = np.empty(len(from_zero), dtype=np.int32)
    rows[~from_zero] = row[kept]
    rows[from_zero] = _rows_without(X, columns[is_zero & ~is_usual])
    return values, rows, sizes, widths, usual - _starts(widths)[:-1]


def _distinct_values(X):
    """Column, value and number of rows of every bin; the rows of all that are not zero."""
    column = np.repeat(np.arange(X.shape[1]), np.diff(X.indptr))
    # Stable: rows of one value stay in order.
    order = np.lexsort((X.data, column))
    column, value = column[order], X.data[order].astype(np.float64)
    first = np.ones(len(value), dtype=bool)
    first[1:] = (column[1:] != column[:-1]) | (value[1:] != value[:-1])
    heads = np.flatnonzero(first)
    absent = X.shape[0] - np.diff(X.indptr).astype(np.int64)
    zeros = np.flatnonzero(absent)
    columns = np.concatenate([column[heads], zeros])
    values = np.concatenate([value[heads], np.zeros(len(zeros))])
    sizes = np.concatenate([np.diff(heads, append=len(value)), absent[zeros]])
    merged = np.lexsort((values, columns))
    return columns[merged], values[merged], sizes[merged], X.indices[order]


def _most_frequent(columns, sizes, start):
    """For every column its largest bin, the first of equals."""
    largest = np.maximum.reduceat(sizes, start[:-1])
    frequent = np.flatnonzero(sizes == largest[columns])
    return frequent[np.unique(columns[frequent], return_index=True)[1]]


def _rows_without(X, columns):
    """The rows without an entry in the given columns of a CSC matrix, column after column."""
    absent = []
    for column in columns:
        mask = np.ones(X.shape[0], dtype=bool)
        mask[X.indices[X.indptr[column]:X.indptr[column + 1]]] = False
        absent.append(np.flatnonzero(mask))
    return np.concatenate(absent) if absent else np.empty(0, dtype=np.int64)


def _starts(sizes):
    """Where each of consecutive pieces starts, and the end."""
    starts = np.zeros(len(sizes) + 1, dtype=np.int64)
    np.cumsum(sizes, out=starts[1:])
    return starts
