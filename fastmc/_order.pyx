"""Which sample is visited next. See fastmc.reference.order."""
import numpy as np


cdef class Order:
    """See fastmc.reference.order.Order."""

    cdef Py_ssize_t next(self, Py_ssize_t position) noexcept nogil:
        return 0

    cdef void saw(self, Py_ssize_t i, double gap) noexcept nogil:
        pass

    cdef Py_ssize_t soon(self, Py_ssize_t position) noexcept nogil:
        """The sample at a later position if it is known by now, else -1."""
        return -1


cdef class ListOrder(Order):
    """See fastmc.reference.order.ListOrder."""

    def __init__(self, samples):
        self.samples = samples

    cdef Py_ssize_t next(self, Py_ssize_t position) noexcept nogil:
        return self.samples[position]

    cdef Py_ssize_t soon(self, Py_ssize_t position) noexcept nogil:
        return self.samples[position] if position < self.samples.shape[0] else -1


cdef class GapOrder(Order):
    """See fastmc.reference.order.GapOrder."""

    def __init__(self, samples, n_samples):
        cdef Py_ssize_t at
        self.samples = samples
        self.n_leaves = len(samples)
        self.base = 1
        while self.base < self.n_leaves:
            self.base *= 2
        self.tree = np.zeros(2 * self.base)
        self.leaf = np.zeros(n_samples, dtype=np.intp)
        for at in range(self.n_leaves):
            self.leaf[self.samples[at]] = at

    def refresh(self, gaps):
        cdef const double[::1] g = gaps
        cdef Py_ssize_t at
        for at in range(self.n_leaves):
            self.tree[self.base + at] = max(g[self.samples[at]], 0.0)
        for at in range(self.base - 1, 0, -1):
            self.tree[at] = self.tree[2 * at] + self.tree[2 * at + 1]

    def draw(self, uniforms):
        self.uniforms = uniforms

    cdef Py_ssize_t next(self, Py_ssize_t position) noexcept nogil:
        cdef double target = self.uniforms[position] * self.tree[1]
        cdef Py_ssize_t node = 1
        if not self.tree[1] > 0.0:
            return self.samples[<Py_ssize_t> (self.uniforms[position] * self.n_leaves)]
        while node < self.base:
            node *= 2
            if target >= self.tree[node] and self.tree[node + 1] > 0.0:
                target -= self.tree[node]
                node += 1
        return self.samples[node - self.base]

    cdef void saw(self, Py_ssize_t i, double gap) noexcept nogil:
        cdef Py_ssize_t node = self.base + self.leaf[i]
        self.tree[node] = max(gap, 0.0)
        while node > 1:
            node //= 2
            self.tree[node] = self.tree[2 * node] + self.tree[2 * node + 1]
