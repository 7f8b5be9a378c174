"""The corners that each sample's dual is made of, and its cache. See fastmc.reference.active_set.

Atoms of all samples lie in one pool of slots with `slot` entries each, linked per sample;
`reserve` grows the pool between slices, so that no pass allocates.
"""
import numpy as np

cdef enum:
    ZERO = -1    # the zero corner, which needs no atom; also the end of a list

cdef enum:
    AFTER, SIZE, STAMP, CLASSES    # columns of `numbers`

cdef enum:
    WEIGHT, VALUES    # columns of `reals`


cdef class ActiveSet:
    """See fastmc.reference.active_set.ActiveSet."""

    def __init__(self, n_samples, slot, cache_size=0):
        self.n_samples, self.slot, self.cache_size = n_samples, slot, cache_size
        self.head = np.full(n_samples, ZERO, dtype=np.intp)
        self.count = np.zeros(n_samples, dtype=np.intp)
        self.zero_weight = np.ones(n_samples)
        self.free = ZERO
        self.numbers = np.zeros((0, CLASSES + slot), dtype=np.intp)
        self.reals = np.zeros((0, VALUES + slot))

    def reserve(self, extra):
        cdef Py_ssize_t atom, old = len(self.numbers), grow = max(<Py_ssize_t> extra - self.n_free, old // 2)
        if self.n_free >= extra:
            return
        numbers, reals = np.asarray(self.numbers), np.asarray(self.reals)
        self.numbers = np.concatenate([numbers, np.zeros((grow, numbers.shape[1]), dtype=np.intp)])
        self.reals = np.concatenate([reals, np.zeros((grow, reals.shape[1]))])
        for atom in range(old, old + grow):
            self.numbers[atom, AFTER] = self.free
            self.free = atom
        self.n_free = self.n_free + grow

    def start_from(self, dual, label, weight):
        cdef double[::1] corner
        cdef Py_ssize_t i, atom
        cdef long long[::1] y = label
        rows = np.flatnonzero(np.any(dual, axis=1) & (weight > 0))
        self.reserve(len(rows) + 1)
        for i in rows:
            corner = dual[i] / weight[i]
            atom = self.put(i, &corner[0], corner.shape[0], y[i])
            # In this order: a row that underflows to nothing is the zero corner.
            self.zero_weight[i] = 0.0
            self.set_weight(i, atom, 1.0)

    def shrink_weights(self, factor):
        cdef Py_ssize_t i
        for i in range(self.n_samples):
            self.scale(i, factor)
            self.zero_weight[i] += 1.0 - <double> factor

    def items(self, Py_ssize_t i):
        cdef Py_ssize_t atom = self.head[i], r
        found = [({}, self.zero_weight[i])]
        while atom != ZERO:
            corner = {self.numbers[atom, CLASSES + r]: self.reals[atom, VALUES + r]
                      for r in range(self.numbers[atom, SIZE])}
            found.append((corner, self.reals[atom, WEIGHT]))
            atom = self.numbers[atom, AFTER]
        return found

    cdef Py_ssize_t put(self, Py_ssize_t i, const double* corner, Py_ssize_t m, Py_ssize_t label) noexcept nogil:
        cdef Py_ssize_t j, size = 0, new = self.free, atom
        for j in range(m):
            if j != label and corner[j] != 0.0:
                self.numbers[new, CLASSES + size] = j
                self.reals[new, VALUES + size] = -corner[j]
                size += 1
        if size == 0:
            return ZERO
        self.numbers[new, SIZE] = size
        self.clock = self.clock + 1
        atom = self.head[i]
        while atom != ZERO and not self.same(atom, new):
            atom = self.numbers[atom, AFTER]
        if atom == ZERO:
            atom = new
            self.free = self.numbers[new, AFTER]
            self.n_free = self.n_free - 1
            self.reals[new, WEIGHT] = 0.0
            self.numbers[new, AFTER] = self.head[i]
            self.head[i] = new
            self.count[i] += 1
        self.numbers[atom, STAMP] = self.clock
        return atom

    cdef bint same(self, Py_ssize_t one, Py_ssize_t other) noexcept nogil:
        cdef Py_ssize_t r, size = self.numbers[one, SIZE]
        if size != self.numbers[other, SIZE]:
            return False
        for r in range(size):
            if (self.numbers[one, CLASSES + r] != self.numbers[other, CLASSES + r]
                    or self.reals[one, VALUES + r] != self.reals[other, VALUES + r]):
                return False
        return True

    cdef double height(self, Py_ssize_t atom, const double* shifted, Py_ssize_t label) noexcept nogil:
        cdef Py_ssize_t r
        cdef double total = 0.0
        if atom != ZERO:
            for r in range(self.numbers[atom, SIZE]):
                total += self.reals[atom, VALUES + r] * (
                    shifted[label] - shifted[self.numbers[atom, CLASSES + r]])
        return total

    cdef void add(self, Py_ssize_t atom, double factor, double* delta, Py_ssize_t label) noexcept nogil:
        cdef Py_ssize_t r
        cdef double value
        if atom != ZERO:
            for r in range(self.numbers[atom, SIZE]):
                value = factor * self.reals[atom, VALUES + r]
                delta[self.numbers[atom, CLASSES + r]] -= value
                delta[label] += value

    cdef Py_ssize_t lowest(self, Py_ssize_t i, const double* shifted, Py_ssize_t label) noexcept nogil:
        cdef Py_ssize_t best = ZERO, atom = self.head[i]
        cdef double least = 0.0, height
        while atom != ZERO:
            height = self.height(atom, shifted, label)
            if height < least:
                best, least = atom, height
            atom = self.numbers[atom, AFTER]
        return best

    cdef Py_ssize_t highest(self, Py_ssize_t i, const double* shifted, Py_ssize_t label) noexcept nogil:
        cdef Py_ssize_t best = ZERO, atom = self.head[i]
        cdef double most = 0.0, height
        cdef bint found = self.zero_weight[i] > 0.0
        while atom != ZERO:
            if self.reals[atom, WEIGHT] > 0.0:
                height = self.height(atom, shifted, label)
                if not found or height > most:
                    best, most, found = atom, height, True
            atom = self.numbers[atom, AFTER]
        return best

    cdef double get_weight(self, Py_ssize_t i, Py_ssize_t atom) noexcept nogil:
        return self.zero_weight[i] if atom == ZERO else self.reals[atom, WEIGHT]

    cdef void set_weight(self, Py_ssize_t i, Py_ssize_t atom, double weight) noexcept nogil:
        if atom == ZERO:
            self.zero_weight[i] = weight
        else:
            self.reals[atom, WEIGHT] = weight

    cdef void scale(self, Py_ssize_t i, double factor) noexcept nogil:
        cdef Py_ssize_t atom = self.head[i]
        self.zero_weight[i] *= factor
        while atom != ZERO:
            self.reals[atom, WEIGHT] *= factor
            atom = self.numbers[atom, AFTER]

    cdef void tidy(self, Py_ssize_t i, bint normalise) noexcept nogil:
        cdef Py_ssize_t atom, oldest
        cdef double total = self.zero_weight[i]
        if normalise:
            atom = self.head[i]
            while atom != ZERO:
                total += self.reals[atom, WEIGHT]
                atom = self.numbers[atom, AFTER]
            # By division: a corner that is left alone gets exactly one.
            self.zero_weight[i] /= total
            atom = self.head[i]
            while atom != ZERO:
                self.reals[atom, WEIGHT] /= total
                atom = self.numbers[atom, AFTER]
        while self.count[i] > self.cache_size:
            oldest = ZERO
            atom = self.head[i]
            while atom != ZERO:
                if self.reals[atom, WEIGHT] == 0.0 and (
                        oldest == ZERO or self.numbers[atom, STAMP] < self.numbers[oldest, STAMP]):
                    oldest = atom
                atom = self.numbers[atom, AFTER]
            if oldest == ZERO:
                return
            self.remove(i, oldest)

    cdef void remove(self, Py_ssize_t i, Py_ssize_t atom) noexcept nogil:
        cdef Py_ssize_t before = self.head[i]
        if before == atom:
            self.head[i] = self.numbers[atom, AFTER]
        else:
            while self.numbers[before, AFTER] != atom:
                before = self.numbers[before, AFTER]
            self.numbers[before, AFTER] = self.numbers[atom, AFTER]
        self.numbers[atom, AFTER] = self.free
        self.free = atom
        self.n_free = self.n_free + 1
        self.count[i] -= 1

    cdef void point(self, Py_ssize_t i, double weight, double* alpha, Py_ssize_t m,
                    Py_ssize_t label) noexcept nogil:
        cdef Py_ssize_t j, atom = self.head[i]
        for j in range(m):
            alpha[j] = 0.0
        while atom != ZERO:
            self.add(atom, weight * self.reals[atom, WEIGHT], alpha, label)
            atom = self.numbers[atom, AFTER]

    cdef void mark(self, Py_ssize_t i, char* marked) noexcept nogil:
        cdef Py_ssize_t r, atom = self.head[i]
        while atom != ZERO:
            for r in range(self.numbers[atom, SIZE]):
                marked[self.numbers[atom, CLASSES + r]] = 1
            atom = self.numbers[atom, AFTER]
