"""The dual as short lists. See fastmc.reference.dual_rows."""
import numpy as np
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy

from fastmc._vector cimport PREFETCH


cdef class DualRows:
    """See fastmc.reference.dual_rows.DualRows."""

    def __cinit__(self, n_samples, n_classes, DualRows owner=None):
        self.n_samples, self.n_classes = n_samples, n_classes
        self.owner, self.owned = owner, owner is None
        self.rows = owner.rows if owner is not None else <Row*> calloc(n_samples, sizeof(Row))
        if self.rows == NULL:
            raise MemoryError(f"no memory for the dual of {n_samples} samples")
        cdef int[::1] classes = np.zeros(n_classes, dtype=np.intc)
        cdef int[::1] slot = np.zeros(n_classes, dtype=np.intc)
        cdef double[:, ::1] beta = np.zeros((2, n_classes))
        self._keep_alive = [classes, slot, beta]
        self.classes, self.slot = &classes[0], &slot[0]
        self.beta, self.ahead = &beta[0, 0], &beta[1, 0]

    def __dealloc__(self):
        cdef Py_ssize_t i
        if self.rows != NULL and self.owned:
            for i in range(self.n_samples):
                free(self.rows[i].betas)
            free(self.rows)

    cdef void expect(self, Py_ssize_t i) noexcept nogil:
        PREFETCH(&self.rows[i])

    cdef void expect_row(self, Py_ssize_t i) noexcept nogil:
        if self.rows[i].betas != NULL:
            PREFETCH(self.rows[i].betas)
            PREFETCH(self.rows[i].classes)

    cdef void open(self, Py_ssize_t i, double momentum) noexcept nogil:
        cdef Row* row = &self.rows[i]
        cdef Py_ssize_t now = row.side * row.capacity, before = (1 - row.side) * row.capacity
        cdef Py_ssize_t count = row.count[row.side], k, at
        cdef int* classes = self.classes
        cdef int* slot = self.slot
        cdef double* beta = self.beta
        cdef double* ahead = self.ahead
        for k in range(count):
            classes[k] = row.classes[now + k]
            beta[k] = ahead[k] = row.betas[now + k]
        if momentum > 0.0:
            for k in range(count):
                ahead[k] += momentum * beta[k]
                slot[classes[k]] = k + 1
            for k in range(row.count[1 - row.side]):
                at = slot[row.classes[before + k]] - 1
                if at < 0:
                    at, count = count, count + 1
                    classes[at] = row.classes[before + k]
                    beta[at] = ahead[at] = 0.0
                ahead[at] -= momentum * row.betas[before + k]
            for k in range(count):
                slot[classes[k]] = 0
        self.count = count

    cdef int replace(self, Py_ssize_t i, const Py_ssize_t* classes, const double* beta,
                     Py_ssize_t count) noexcept nogil:
        cdef Row* row = &self.rows[i]
        cdef Py_ssize_t start, k
        if count > row.capacity and self.grow(row, count) < 0:
            return -1
        row.side = 1 - row.side
        row.count[row.side] = count
        start = row.side * row.capacity
        for k in range(count):
            row.classes[start + k] = classes[k]
            row.betas[start + k] = beta[k]
        return 0

    cdef int grow(self, Row* row, Py_ssize_t needed) noexcept nogil:
        cdef Py_ssize_t capacity = max(4, 2 * row.capacity), side
        cdef double* betas
        cdef int* classes
        while capacity < needed:
            capacity *= 2
        betas = <double*> malloc(2 * capacity * (sizeof(double) + sizeof(int)))
        if betas == NULL:
            return -1
        classes = <int*> (betas + 2 * capacity)
        for side in range(2):
            memcpy(betas + side * capacity, row.betas + side * row.capacity,
                   row.count[side] * sizeof(double))
            memcpy(classes + side * capacity, row.classes + side * row.capacity,
                   row.count[side] * sizeof(int))
        free(row.betas)
        row.betas, row.classes, row.capacity = betas, classes, capacity
        return 0

    def view(self):
        return DualRows(self.n_samples, self.n_classes, self)

    def forget(self):
        """The lists before are the current ones."""
        cdef Py_ssize_t i, k, count, now, before
        cdef Row* row
        for i in range(self.n_samples):
            row = &self.rows[i]
            now, before = row.side * row.capacity, (1 - row.side) * row.capacity
            count = row.count[row.side]
            row.count[1 - row.side] = count
            for k in range(count):
                row.classes[before + k] = row.classes[now + k]
                row.betas[before + k] = row.betas[now + k]

    def scale(self, double factor):
        cdef Py_ssize_t i, k, first
        cdef Row* row
        for i in range(self.n_samples):
            row = &self.rows[i]
            first = row.side * row.capacity
            for k in range(first, first + row.count[row.side]):
                row.betas[k] *= factor

    def set_rows(self, indptr, indices, values):
        cdef const long long[::1] starts = np.ascontiguousarray(indptr, dtype=np.int64)
        cdef const Py_ssize_t[::1] classes = np.ascontiguousarray(indices, dtype=np.intp)
        cdef const double[::1] beta = np.ascontiguousarray(values, dtype=np.float64)
        cdef Py_ssize_t i
        cdef Py_ssize_t at, count
        for i in range(self.n_samples):
            at, count = starts[i], starts[i + 1] - starts[i]
            if self.replace(i, &classes[at] if count else NULL, &beta[at] if count else NULL, count) < 0:
                raise MemoryError("no memory for the dual")
        self.forget()

    def rows_of(self):
        cdef Py_ssize_t i, k, at = 0
        cdef Row* row
        cdef long long[::1] indptr = np.zeros(self.n_samples + 1, dtype=np.int64)
        for i in range(self.n_samples):
            indptr[i + 1] = indptr[i] + self.rows[i].count[self.rows[i].side]
        indices = np.empty(indptr[self.n_samples], dtype=np.intc)
        values = np.empty(indptr[self.n_samples])
        cdef int[::1] classes = indices
        cdef double[::1] beta = values
        for i in range(self.n_samples):
            row = &self.rows[i]
            for k in range(row.side * row.capacity, row.side * row.capacity + row.count[row.side]):
                classes[at] = row.classes[k]
                beta[at] = row.betas[k]
                at += 1
        return np.asarray(indptr), indices, values
