"""The dual as short lists. See fastmc.reference.dual_rows."""
import numpy as np
from libc.stdlib cimport calloc, free, malloc

from fastmc._vector cimport PREFETCH

cdef enum:
    FEW = 4


cdef class DualRows:
    """See fastmc.reference.dual_rows.DualRows."""

    def __cinit__(self, n_samples, n_classes, DualRows owner=None):
        self.n_samples, self.n_classes = n_samples, n_classes
        self.owner, self.owned = owner, owner is None
        cdef Py_ssize_t i
        if owner is not None:
            self.rows = owner.rows
        else:
            self.rows = <Row*> calloc(n_samples, sizeof(Row))
            self.block = <Entry*> malloc(n_samples * FEW * sizeof(Entry))
            if self.rows == NULL or self.block == NULL:
                raise MemoryError(f"no memory for the dual of {n_samples} samples")
            for i in range(self.n_samples):
                self.rows[i].entries, self.rows[i].capacity = self.block + FEW * i, FEW
        cdef int[::1] classes = np.zeros(n_classes, dtype=np.intc)
        cdef int[::1] slot = np.zeros(n_classes, dtype=np.intc)
        cdef double[:, ::1] beta = np.zeros((2, n_classes))
        self._keep_alive = [classes, slot, beta]
        self.classes, self.slot = &classes[0], &slot[0]
        self.beta, self.ahead = &beta[0, 0], &beta[1, 0]

    def __dealloc__(self):
        cdef Py_ssize_t i
        if self.owned and self.rows != NULL and self.block != NULL:
            for i in range(self.n_samples):
                if self.rows[i].capacity > FEW:
                    free(self.rows[i].entries)
        if self.owned:
            free(self.rows)
            free(self.block)

    cdef void expect(self, Py_ssize_t i) noexcept nogil:
        PREFETCH(&self.rows[i])

    cdef void expect_row(self, Py_ssize_t i) noexcept nogil:
        cdef const char* entries = <const char*> self.rows[i].entries
        PREFETCH(entries)
        PREFETCH(entries + 64)
        PREFETCH(entries + 128)

    cdef void open(self, Py_ssize_t i, double momentum) noexcept nogil:
        cdef Row* row = &self.rows[i]
        cdef Entry* entry = row.entries
        cdef Py_ssize_t k
        self.count = row.count if momentum > 0.0 else row.n_now
        for k in range(self.count):
            self.classes[k] = entry[k].j
            self.beta[k] = entry[k].beta
            self.ahead[k] = entry[k].beta + momentum * entry[k].beta - momentum * entry[k].before

    cdef int replace(self, Py_ssize_t i, const Py_ssize_t* classes, const double* beta,
                     Py_ssize_t count) noexcept nogil:
        cdef Row* row = &self.rows[i]
        cdef Entry* entry
        cdef Py_ssize_t k, at, kept = 0, n_before = row.n_now
        for k in range(n_before):
            self.slot[self.classes[k]] = k + 1
        for k in range(count):
            kept += self.slot[classes[k]] != 0
        if count + n_before - kept > row.capacity and self.grow(row, count + n_before - kept) < 0:
            for k in range(n_before):
                self.slot[self.classes[k]] = 0
            return -1
        row.n_now, row.count = count, count + n_before - kept
        entry = row.entries
        for k in range(count):
            at = self.slot[classes[k]]
            self.slot[classes[k]] = 0
            entry[k].j, entry[k].beta = classes[k], beta[k]
            entry[k].before = self.beta[at - 1] if at else 0.0
        entry += count
        for k in range(n_before):
            if self.slot[self.classes[k]]:
                self.slot[self.classes[k]] = 0
                entry.j, entry.beta, entry.before = self.classes[k], 0.0, self.beta[k]
                entry += 1
        return 0

    cdef int grow(self, Row* row, Py_ssize_t needed) noexcept nogil:
        """Room for more entries; what is there is in the open row."""
        cdef Py_ssize_t capacity = 2 * row.capacity
        cdef Entry* entries
        while capacity < needed:
            capacity *= 2
        entries = <Entry*> malloc(capacity * sizeof(Entry))
        if entries == NULL:
            return -1
        if row.capacity > FEW:
            free(row.entries)
        row.entries, row.capacity = entries, capacity
        return 0

    def view(self):
        return DualRows(self.n_samples, self.n_classes, self)

    def forget(self):
        """The lists before are the current ones."""
        cdef Py_ssize_t i, k
        cdef Row* row
        for i in range(self.n_samples):
            row = &self.rows[i]
            row.count = row.n_now
            for k in range(row.count):
                row.entries[k].before = row.entries[k].beta

    def still(self, samples):
        cdef const Py_ssize_t[::1] asked = samples
        cdef Py_ssize_t at, k
        cdef Row* row
        out = np.empty(len(samples), dtype=bool)
        cdef unsigned char[::1] flags = out.view(np.uint8)
        for at in range(asked.shape[0]):
            row = &self.rows[asked[at]]
            flags[at] = row.count == row.n_now
            for k in range(row.n_now):
                if row.entries[k].beta != row.entries[k].before:
                    flags[at] = False
        return out

    def scale(self, double factor):
        cdef Py_ssize_t i, k
        cdef Row* row
        for i in range(self.n_samples):
            row = &self.rows[i]
            for k in range(row.n_now):
                row.entries[k].beta = factor * row.entries[k].beta

    def set_rows(self, indptr, indices, values):
        cdef const long long[::1] starts = np.ascontiguousarray(indptr, dtype=np.int64)
        cdef const Py_ssize_t[::1] classes = np.ascontiguousarray(indices, dtype=np.intp)
        cdef const double[::1] beta = np.ascontiguousarray(values, dtype=np.float64)
        cdef Py_ssize_t i
        cdef Py_ssize_t at, count
        for i in range(self.n_samples):
            at, count = starts[i], starts[i + 1] - starts[i]
            self.open(i, 0.0)
            if self.replace(i, &classes[at] if count else NULL, &beta[at] if count else NULL, count) < 0:
                raise MemoryError("no memory for the dual")
        self.forget()

    def rows_of(self):
        cdef Py_ssize_t i, k, at = 0
        cdef Row* row
        cdef long long[::1] indptr = np.zeros(self.n_samples + 1, dtype=np.int64)
        for i in range(self.n_samples):
            indptr[i + 1] = indptr[i] + self.rows[i].n_now
        indices = np.empty(indptr[self.n_samples], dtype=np.intc)
        values = np.empty(indptr[self.n_samples])
        cdef int[::1] classes = indices
        cdef double[::1] beta = values
        for i in range(self.n_samples):
            row = &self.rows[i]
            for k in range(row.n_now):
                classes[at] = row.entries[k].j
                beta[at] = row.entries[k].beta
                at += 1
        return np.asarray(indptr), indices, values
