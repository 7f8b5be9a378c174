"""The rows of a problem as the kernels see them. See fastmc.reference.samples.

The weights W are (n_features, n_classes) in C order, so that one non-zero of a row
touches one contiguous row of W. `load` finds a row of X, whatever its layout, as values and
their 32-bit columns: where they lie, or converted; `scores` (a row times W) and `update` (a
rank-one change of W) work on the loaded row and know nothing of layouts. W may be float32 or float64,
and wants the values in its own precision: who has them so need not convert them visit after visit.
"""
import numpy as np
from libc.limits cimport INT_MAX
from libc.math cimport INFINITY

from fastmc._vector cimport PREFETCH, table

ctypedef fused value_t:
    float
    double

ctypedef fused index_t:
    int
    long long

cdef enum:
    # Entries at the beginning of a row that are asked for before its turn
    SOON = 64


cdef inline void copy_values(const value_t* source, Py_ssize_t count, real* out) noexcept nogil:
    cdef Py_ssize_t t
    for t in range(count):
        out[t] = <real> source[t]


cdef inline void expect_bytes(const char* start, Py_ssize_t count) noexcept nogil:
    """As many bytes, and perhaps a line more: they need not begin with a line."""
    cdef Py_ssize_t at
    for at in range(0, count + 64, 64):
        PREFETCH(start + at)


cdef inline void copy_columns(const index_t* source, Py_ssize_t count, int* out) noexcept nogil:
    cdef Py_ssize_t t
    for t in range(count):
        out[t] = <int> source[t]


cdef inline Py_ssize_t lower_bound(const index_t* indices, Py_ssize_t low, Py_ssize_t high,
                                   Py_ssize_t column) noexcept nogil:
    cdef Py_ssize_t middle
    while low < high:
        middle = (low + high) // 2
        if indices[middle] < column:
            low = middle + 1
        else:
            high = middle
    return low


def pack(const value_t[:, ::1] X, value_t[::1] values, index_t[::1] columns, index_t[::1] starts):
    """The entries of X that are not 0 as CSR arrays; False if they are too many to leave room for one row more."""
    cdef Py_ssize_t i, j, count = 0, room = values.shape[0] - X.shape[1]
    with nogil:
        for i in range(X.shape[0]):
            starts[i] = <index_t> count
            if count > room:
                break
            for j in range(X.shape[1]):
                # Written in any case: a branch would be guessed wrong too often.
                values[count], columns[count] = X[i, j], <index_t> j
                count += X[i, j] != 0
    starts[X.shape[0]] = <index_t> count
    return count <= room


cdef class Samples:
    """See fastmc.reference.samples.Samples."""

    def __init__(self, values, indices, indptr, n_classes, label, weight, sqnorm, width,
                 cost=None, bias=0.0, stride=None):
        cdef const long long[::1] label_view = label
        cdef const double[::1] weight_view = weight
        cdef const double[::1] sqnorm_view = sqnorm
        self.n_samples = label_view.shape[0]
        self.n_classes = n_classes
        self.stride = n_classes if stride is None else stride
        self.vector = table()
        self.width = width
        self.bias = bias
        self.n_features = width + (bias != 0.0)
        if self.width >= INT_MAX:
            raise ValueError(f"X has {width} columns; at most {INT_MAX - 1} are supported")
        if weight_view.shape[0] != self.n_samples or sqnorm_view.shape[0] != self.n_samples:
            raise ValueError("label, weight and sqnorm must have one entry per sample")
        self._keep_alive = [values, indices, indptr, label, weight, sqnorm, cost]
        self.label = &label_view[0]
        self.weight = &weight_view[0]
        self.sqnorm = &sqnorm_view[0]
        if indices is None:
            self._set_dense(values)
        else:
            self._set_csr(values, indices, indptr)
        self._set_cost(cost)

    def _set_dense(self, values):
        cdef const float[:, ::1] single
        cdef const double[:, ::1] double_
        if values.shape != (self.n_samples, self.width):
            raise ValueError("values must be of shape (n_samples, width)")
        self.single = values.dtype == np.float32
        if self.single:
            single = values
            self.values = &single[0, 0]
        else:
            double_ = values
            self.values = &double_[0, 0]
        self._make_scratch(self.width)
        # The columns of a dense row never change.
        for t in range(self.n_features):
            self.own_column[t] = t

    def _set_csr(self, values, indices, indptr):
        cdef const float[::1] single
        cdef const double[::1] double_
        cdef const int[::1] narrow
        cdef const long long[::1] wide
        cdef const long long[::1] indptr_view = indptr
        if indptr_view.shape[0] != self.n_samples + 1:
            raise ValueError("indptr must have n_samples + 1 entries")
        self.indptr = &indptr_view[0]
        self.single, self.wide = values.dtype == np.float32, indices.dtype.itemsize == 8
        self._make_scratch(int(np.diff(indptr).max()))
        if len(values) == 0:
            return
        if self.single:
            single = values
            self.values = &single[0]
        else:
            double_ = values
            self.values = &double_[0]
        if self.wide:
            wide = indices
            self.indices = &wide[0]
        else:
            narrow = indices
            self.indices = &narrow[0]

    def _make_scratch(self, longest):
        cdef double[::1] doubles = np.zeros(longest + 1)
        cdef float[::1] floats = np.zeros(longest + 1, dtype=np.float32)
        cdef int[::1] column = np.zeros(longest + 1, dtype=np.intc)
        cdef Py_ssize_t[::1] changed = np.zeros(self.n_classes, dtype=np.intp)
        self._keep_alive += [doubles, floats, column, changed]
        self.own_doubles, self.own_floats = &doubles[0], &floats[0]
        self.own_column = self.column = &column[0]
        self.changed = &changed[0]

    def _set_cost(self, cost):
        cdef const double[:, ::1] cost_view
        if cost is None:
            return
        cost_view = cost
        self.cost_per_sample = cost_view.shape[0] != self.n_classes
        if cost_view.shape[1] != self.n_classes or (
                self.cost_per_sample and cost_view.shape[0] != self.n_samples):
            raise ValueError("cost must have n_classes columns and n_classes or n_samples rows")
        self.cost = &cost_view[0, 0]

    def cut(self, columns):
        """Cut the rows of a CSR matrix up at some columns; where the parts begin, to be shared with others."""
        cdef Py_ssize_t i, k, count = len(columns)
        cdef long long[:, ::1] places = np.empty((self.n_samples, count + 2), dtype=np.int64)
        cdef long long column
        for i in range(self.n_samples):
            places[i, 0], places[i, count + 1] = self.indptr[i], self.indptr[i + 1]
        for k in range(count):
            column = columns[k]
            for i in range(self.n_samples):
                places[i, k + 1] = self._place(places[i, k], places[i, count + 1], column)
        self.share_cuts(np.asarray(places))
        return np.asarray(places)

    def share_cuts(self, places):
        cdef const long long[:, ::1] view = places
        self._keep_alive.append(places)
        self.places, self.n_parts = &view[0, 0], view.shape[1] - 1

    cdef void expect(self, Py_ssize_t i) noexcept nogil:
        """Bring into the cache what tells where the row is."""
        PREFETCH(&self.label[i])
        PREFETCH(&self.weight[i])
        PREFETCH(&self.sqnorm[i])
        if self.indptr != NULL:
            PREFETCH(&self.indptr[i])

    cdef void expect_row(self, Py_ssize_t i) noexcept nogil:
        """Bring the beginning of the row into the cache; the processor sees how it goes on."""
        if self.indptr == NULL:
            self._expect_entries(i * self.width, self.width)
        else:
            self._expect_entries(self.indptr[i], self.indptr[i + 1] - self.indptr[i])

    cdef void expect_part(self, Py_ssize_t i, Py_ssize_t part) noexcept nogil:
        PREFETCH(self.places + i * (self.n_parts + 1) + part)

    cdef void expect_part_row(self, Py_ssize_t i, Py_ssize_t part) noexcept nogil:
        cdef const long long* place = self.places + i * (self.n_parts + 1) + part
        self._expect_entries(place[0], place[1] - place[0])

    cdef void _expect_entries(self, Py_ssize_t start, Py_ssize_t count) noexcept nogil:
        cdef Py_ssize_t wide = 4 if self.single else 8
        cdef Py_ssize_t index = 8 if self.wide else 4
        count = min(count, SOON)
        expect_bytes(<const char*> self.values + start * wide, count * wide)
        if self.indptr != NULL:
            expect_bytes(<const char*> self.indices + start * index, count * index)

    cdef void load(self, Py_ssize_t i) noexcept nogil:
        if self.indptr == NULL:
            self._take(i * self.width, self.width)
        else:
            self._take(self.indptr[i], self.indptr[i + 1] - self.indptr[i])
        self._append_bias()

    cdef Py_ssize_t _place(self, Py_ssize_t low, Py_ssize_t high, Py_ssize_t column) noexcept nogil:
        """The first place from low to high whose column is at least `column`."""
        if self.wide:
            return lower_bound(<const long long*> self.indices, low, high, column)
        return lower_bound(<const int*> self.indices, low, high, column)

    cdef void load_columns(self, Py_ssize_t i, Py_ssize_t first, Py_ssize_t last) noexcept nogil:
        cdef Py_ssize_t start, stop
        if self.indptr == NULL:
            self.load(i)
            return
        start, stop = self.indptr[i], self.indptr[i + 1]
        if first > 0:
            start = self._place(start, stop, first)
        if last < self.width:
            stop = self._place(start, stop, last)
        self._take(start, stop - start)
        if first <= self.width < last:
            self._append_bias()

    cdef void load_part(self, Py_ssize_t i, Py_ssize_t part) noexcept nogil:
        cdef const long long* place = self.places + i * (self.n_parts + 1) + part
        self._take(place[0], place[1] - place[0])
        if part == self.n_parts - 1:
            self._append_bias()

    cdef void _take(self, Py_ssize_t start, Py_ssize_t count) noexcept nogil:
        """`count` entries of X from `start` on; columns as they lie there, or converted with room for the bias."""
        self.nnz = count
        self.doubles, self.floats = NULL, NULL
        if self.single:
            self.floats = <const float*> self.values + start
        else:
            self.doubles = <const double*> self.values + start
        if self.wide:
            copy_columns(<const long long*> self.indices + start, count, self.own_column)
        elif self.indptr != NULL and self.bias != 0.0:
            copy_columns(<const int*> self.indices + start, count, self.own_column)
        elif self.indptr != NULL:
            self.column = <const int*> self.indices + start

    cdef void _append_bias(self) noexcept nogil:
        if self.bias != 0.0:
            if self.single:
                copy_values(self.floats, self.nnz, self.own_doubles)
                copy_values(self.floats, self.nnz, self.own_floats)
            else:
                copy_values(self.doubles, self.nnz, self.own_doubles)
                copy_values(self.doubles, self.nnz, self.own_floats)
            self.own_doubles[self.nnz], self.own_floats[self.nnz] = self.bias, <float> self.bias
            self.doubles, self.floats = self.own_doubles, self.own_floats
            self.own_column[self.nnz] = <int> self.width
            self.nnz = self.nnz + 1

    cdef const double* x(self) noexcept nogil:
        if self.doubles == NULL:
            copy_values(self.floats, self.nnz, self.own_doubles)
            self.doubles = self.own_doubles
        return self.doubles

    cdef void scores(self, const real* weights, real* out) noexcept nogil:
        if real is float:
            if self.floats != NULL:
                self.vector.scores_f(self.floats, self.column, self.nnz, weights, self.stride, out)
            else:
                self.vector.scores_df(self.doubles, self.column, self.nnz, weights, self.stride, out)
        else:
            self.vector.scores_d(self.x(), self.column, self.nnz, weights, self.stride, out)

    cdef void exact_scores(self, const real* weights, double* out) noexcept nogil:
        if real is float:
            self.vector.scores_fd(self.x(), self.column, self.nnz, weights, self.stride, out)
        else:
            self.vector.scores_d(self.x(), self.column, self.nnz, weights, self.stride, out)

    cdef void class_scores(self, const double* weights, const Py_ssize_t* classes, Py_ssize_t count,
                           double* out) noexcept nogil:
        cdef Py_ssize_t t, k
        cdef const double* row
        cdef const double* x = self.x()
        for k in range(count):
            out[classes[k]] = 0.0
        for t in range(self.nnz):
            row = weights + self.column[t] * self.stride
            for k in range(count):
                out[classes[k]] += x[t] * row[classes[k]]

    cdef double class_cost(self, Py_ssize_t i, Py_ssize_t j) noexcept nogil:
        if j == self.label[i]:
            return 0.0
        if self.cost == NULL:
            return 1.0
        return self.cost[(i if self.cost_per_sample else self.label[i]) * self.n_classes + j]

    cdef void add_cost(self, Py_ssize_t i, real* scores) noexcept nogil:
        cdef Py_ssize_t y = self.label[i], j
        cdef real own = scores[y]
        cdef const double* cost
        if self.cost == NULL:
            scores[y] = own - 1
            return
        cost = self.cost + (i if self.cost_per_sample else y) * self.n_classes
        for j in range(self.n_classes):
            scores[j] += <real> cost[j]
        scores[y] = own

    cdef double margin(self, double* scores, Py_ssize_t y) noexcept nogil:
        cdef double own = scores[y], top
        scores[y] = -INFINITY
        top = self.vector.largest_d(scores, self.n_classes)
        scores[y] = own
        return top - own

    cdef void update(self, const double* coef, double* weights) noexcept nogil:
        cdef Py_ssize_t count = 0, j
        for j in range(self.n_classes):
            if coef[j] != 0.0:
                self.changed[count] = j
                count += 1
        self.update_classes(coef, self.changed, count, self.stride, weights)

    cdef void update_classes(self, const real* coef, const Py_ssize_t* classes, Py_ssize_t count,
                             Py_ssize_t width, real* weights) noexcept nogil:
        cdef Py_ssize_t t, k
        cdef real* row
        cdef real value
        cdef const double* x
        if real is double:
            x = self.x()
        # Adding zeros to the classes that stay as they are gives the same W.
        if 8 * (count + 1) >= width:
            if real is float and self.floats != NULL:
                self.vector.update_f(self.floats, self.column, self.nnz, coef, width, weights)
            elif real is float:
                self.vector.update_df(self.doubles, self.column, self.nnz, coef, width, weights)
            else:
                self.vector.update_d(x, self.column, self.nnz, coef, width, weights)
            return
        for t in range(self.nnz):
            row = weights + self.column[t] * self.stride
            if real is float:
                value = self.floats[t] if self.floats != NULL else <float> self.doubles[t]
            else:
                value = x[t]
            for k in range(count):
                row[classes[k]] += value * coef[classes[k]]
