"""The two loss families. See fastmc.reference.losses for the formulas."""
import numpy as np
from libc.math cimport INFINITY, fabs

# Up to this many ranks insertion beats a heap.
cdef enum:
    SHORT = 32


cdef double* doubles(Py_ssize_t n, list keep_alive):
    cdef double[::1] view = np.zeros(n)
    keep_alive.append(view)
    return &view[0]


cdef Py_ssize_t* integers(Py_ssize_t n, list keep_alive):
    cdef Py_ssize_t[::1] view = np.zeros(n, dtype=np.intp)
    keep_alive.append(view)
    return &view[0]


cdef class Loss:
    """See fastmc.reference.losses.Loss."""

    def __init__(self, n_classes, rho):
        cdef const double[::1] rho_view = rho
        if rho_view.shape[0] != n_classes:
            raise ValueError("rho must have n_classes entries")
        self.n_classes = n_classes
        self.n_ranks = int(np.count_nonzero(rho))
        self.rho = &rho_view[0]
        self.uniform = rho_view[self.n_ranks - 1] == rho_view[0]
        keep = self._keep_alive = [rho]
        self.order, self.spare_order = integers(n_classes, keep), integers(n_classes, keep)
        self.start = integers(n_classes + 1, keep)
        self.target, self.margin = doubles(n_classes, keep), doubles(n_classes, keep)
        self.z, self.spare_z = doubles(n_classes, keep), doubles(n_classes, keep)
        self.sum_z, self.sum_rho = doubles(n_classes, keep), doubles(n_classes, keep)
        self.block = doubles(n_classes, keep)
        self.low, self.low_cap = doubles(n_classes, keep), doubles(n_classes, keep)
        self.low_rho = doubles(n_classes, keep)
        self.high, self.high_cap = doubles(n_classes, keep), doubles(n_classes, keep)
        self.high_rho = doubles(n_classes, keep)
        self.beta, self.rest_z = doubles(n_classes, keep), doubles(n_classes, keep)
        self.rest_order = integers(n_classes, keep)

    def oracle(self, scores, label):
        cdef const double[::1] s = self._checked(scores)
        cdef double[::1] vertex = np.zeros(self.n_classes)
        value = self.c_oracle(&s[0], label, &vertex[0])
        return value, list(vertex)

    def project(self, target, label, weight=1.0):
        cdef const double[::1] v = self._checked(target)
        cdef double[::1] dual = np.zeros(self.n_classes)
        self.c_project(&v[0], label, weight, &dual[0])
        return list(dual)

    def project_rows(self, targets, label):
        cdef const double[:, ::1] v = np.ascontiguousarray(targets, dtype=np.float64)
        cdef const long long[::1] y = np.ascontiguousarray(label, dtype=np.int64)
        cdef double[:, ::1] dual = np.zeros(targets.shape)
        cdef Py_ssize_t i
        with nogil:
            for i in range(v.shape[0]):
                self.c_project(&v[i, 0], y[i], 1.0, &dual[i, 0])
        return np.asarray(dual)

    def block_max(self, scores, label, dual, weight, q, gamma):
        cdef const double[::1] s = self._checked(scores)
        cdef double[::1] new = self._checked(dual).copy()
        self.c_block_max(&s[0], label, weight, q, gamma, &new[0])
        return list(new)

    def _checked(self, values):
        values = np.ascontiguousarray(values, dtype=np.float64)
        if values.shape != (self.n_classes,):
            raise ValueError(f"expected {self.n_classes} values, got shape {values.shape}")
        return values

    cdef double c_oracle(self, const double* scores, Py_ssize_t label, double* vertex) noexcept nogil:
        return 0.0

    cdef double sorted_value(self, Py_ssize_t count, double own) noexcept nogil:
        return 0.0

    cdef double least(self, double weight, double own) noexcept nogil:
        return -INFINITY

    cdef double solve(self, Py_ssize_t count, double weight, double own) noexcept nogil:
        return -INFINITY

    cdef void c_block_max(self, const double* scores, Py_ssize_t label, double weight, double q,
                          double gamma, double* dual) noexcept nogil:
        cdef Py_ssize_t j
        cdef double total = q + gamma
        cdef double* target = self.target
        if total == 0.0:
            self.c_oracle(scores, label, dual)
            for j in range(self.n_classes):
                dual[j] = weight * dual[j]
            return
        for j in range(self.n_classes):
            target[j] = (q * dual[j] - scores[j]) / total
        self.c_project(target, label, weight, dual)

    cdef void c_project(self, const double* target, Py_ssize_t label, double weight,
                        double* dual) noexcept nogil:
        cdef Py_ssize_t j, count
        cdef double own = self.margins(target, label), total = 0.0
        for j in range(self.n_classes):
            dual[j] = 0.0
        if own > 0.0:
            count = self.gather(label, weight, self.least(weight, own))
            self.scale = 1.0
            if count > 0:
                self.solve(count, weight, own)
            for j in range(count):
                if self.beta[j] > 0.0:
                    dual[self.order[j]] = -self.beta[j]
                    total += self.beta[j]
            dual[label] = total

    cdef void rank(self, const double* values, Py_ssize_t skip, Py_ssize_t count) noexcept nogil:
        """Fill self.order and self.z with the `count` best classes."""
        cdef Py_ssize_t j, held = 0
        if count > SHORT:
            for j in range(self.n_classes):
                if j != skip:
                    self.order[held] = j
                    self.z[held] = values[j]
                    held += 1
            self.select(held, count)
            return
        for j in range(self.n_classes):
            if j == skip:
                continue
            if held == count:
                if values[j] <= self.z[held - 1]:
                    continue
                held -= 1
            self.insert(0, held, values[j], j)
            held += 1

    cdef Py_ssize_t select(self, Py_ssize_t held, Py_ssize_t count) noexcept nogil:
        """Sort the `count` best of the classes held in self.order and self.z; returns how many there are."""
        cdef Py_ssize_t r
        count = min(count, held)
        if count > SHORT:
            self.make_heap(held)
            for r in range(count):
                self.pop(held - r, r)
            self.use_spare()
            return count
        for r in range(1, held):
            if r < count:
                self.insert(0, r, self.z[r], self.order[r])
            elif self.z[r] > self.z[count - 1]:
                self.insert(0, count - 1, self.z[r], self.order[r])
        return count

    cdef void insert(self, Py_ssize_t first, Py_ssize_t last, double value, Py_ssize_t j) noexcept nogil:
        """Put (value, j) into its place among the sorted entries first..last-1, after equals."""
        while last > first and self.z[last - 1] < value:
            self.z[last] = self.z[last - 1]
            self.order[last] = self.order[last - 1]
            last -= 1
        self.z[last] = value
        self.order[last] = j

    cdef void sift(self, Py_ssize_t root, Py_ssize_t count) noexcept nogil:
        """Restore the heap below `root`: larger values first, of equals the lower class."""
        cdef Py_ssize_t child, j = self.order[root]
        cdef double value = self.z[root]
        while True:
            child = 2 * root + 1
            if child >= count:
                break
            if child + 1 < count and (self.z[child + 1] > self.z[child] or (
                    self.z[child + 1] == self.z[child] and self.order[child + 1] < self.order[child])):
                child += 1
            if self.z[child] < value or (self.z[child] == value and self.order[child] > j):
                break
            self.z[root], self.order[root] = self.z[child], self.order[child]
            root = child
        self.z[root], self.order[root] = value, j

    cdef void make_heap(self, Py_ssize_t count) noexcept nogil:
        cdef Py_ssize_t root
        for root in range(count // 2 - 1, -1, -1):
            self.sift(root, count)

    cdef void pop(self, Py_ssize_t count, Py_ssize_t to) noexcept nogil:
        """Move the best of a heap of `count` to place `to` of the spare arrays."""
        self.spare_z[to], self.spare_order[to] = self.z[0], self.order[0]
        self.z[0], self.order[0] = self.z[count - 1], self.order[count - 1]
        self.sift(0, count - 1)

    cdef void use_spare(self) noexcept nogil:
        self.z, self.spare_z = self.spare_z, self.z
        self.order, self.spare_order = self.spare_order, self.order

    cdef double margins(self, const double* target, Py_ssize_t label) noexcept nogil:
        cdef Py_ssize_t j
        cdef double top = -INFINITY
        for j in range(self.n_classes):
            if j != label and -target[j] > top:
                top = -target[j]
        for j in range(self.n_classes):
            self.margin[j] = -target[j] - top
        return target[label] + top

    cdef Py_ssize_t gather(self, Py_ssize_t label, double weight, double least) noexcept nogil:
        cdef Py_ssize_t j, count = 0, taken, blocks = 0
        cdef double floor = 0.0
        if self.n_ranks > 1:
            self.rank(self.margin, label, self.n_ranks)
            floor = self.z[self.n_ranks - 1]
        floor = max(least, floor - weight * self.rho[0])
        for j in range(self.n_classes):
            if j != label and self.margin[j] >= floor:
                self.order[count] = j
                self.z[count] = self.margin[j]
                count += 1
        self.make_heap(count)
        for taken in range(count):
            if taken >= self.n_ranks and self.z[0] <= self.block[blocks - 1]:
                count = taken
                break
            self.pop(count - taken, taken)
            blocks = self.push(self.spare_z, taken, weight * self.rho[taken], 1.0, blocks)
        self.use_spare()
        return count

    cdef Py_ssize_t trim(self, Py_ssize_t count, double weight, double* floor) noexcept nogil:
        cdef Py_ssize_t taken, blocks = 0
        for taken in range(count):
            if self.z[taken] < floor[0]:
                return taken
            if taken >= self.n_ranks and self.z[taken] <= self.block[blocks - 1]:
                count = taken
                break
            blocks = self.push(self.z, taken, weight * self.rho[taken], 1.0, blocks)
        if count >= self.n_ranks:
            floor[0] = max(floor[0], self.block[blocks - 1])
        return count

    cdef Py_ssize_t push(self, const double* z, Py_ssize_t j, double sum_rho, double t,
                         Py_ssize_t b) noexcept nogil:
        """Add entry j to b pooled blocks; returns how many there are then."""
        cdef Py_ssize_t first = j
        cdef double sum_z = 0.0, block = z[j] - t * sum_rho
        while b > 0 and self.block[b - 1] < block:
            b -= 1
            sum_z = self.sum_z[b] + (sum_z + (j + 1 - first) * (z[first] - z[self.start[b]]))
            sum_rho, first = self.sum_rho[b] + sum_rho, self.start[b]
            block = z[first] + (sum_z - t * sum_rho) / (j + 1 - first)
        self.sum_z[b], self.sum_rho[b] = sum_z, sum_rho
        self.start[b], self.block[b] = first, block
        return b + 1

    cdef void pool(self, Py_ssize_t count, Py_ssize_t first_rank, double weight, double t,
                   double* value, double* cap, double* mean_rho) noexcept nogil:
        cdef Py_ssize_t j, b = 0, first
        cdef double mean_z, rho
        cdef Py_ssize_t* start = self.start
        for j in range(count):
            b = self.push(self.z, j, weight * self.rho[first_rank + j], t, b)
        start[b] = count
        for first in range(b):
            mean_z = self.sum_z[first] / (start[first + 1] - start[first])
            rho = self.sum_rho[first] / (start[first + 1] - start[first])
            for j in range(start[first], start[first + 1]):
                value[j] = self.block[first]
                cap[j] = (self.z[j] - self.z[start[first]] - mean_z) + t * rho
                mean_rho[j] = rho

    cdef double threshold(self, Py_ssize_t count, double own, Py_ssize_t* n_low_out,
                          Py_ssize_t* n_high_out) noexcept nogil:
        cdef Py_ssize_t n_low = 0, n_high = 0, j
        cdef double total = 0.0, u, next_low, next_high
        for j in range(count):
            total += self.high_cap[j]
        total -= own
        u = total
        while True:
            next_high = self.high[n_high] if n_high < count else -INFINITY
            next_low = self.low[n_low] if n_low < count else -INFINITY
            if n_low == n_high or next_high >= next_low:
                if next_high <= u:
                    break
                total += self.z[n_high] - self.high_cap[n_high]
                n_high += 1
            else:
                if next_low <= u:
                    break
                total += self.low_cap[n_low] - self.z[n_low]
                n_low += 1
            u = total / (1 + n_high - n_low)
        n_low_out[0], n_high_out[0] = n_low, n_high
        return u

    cdef double solve_box(self, Py_ssize_t count, double cap, double own) noexcept nogil:
        cdef Py_ssize_t n_low, n_high, j
        cdef double total = 0.0, u = self.walk(count, cap, own, 0, &n_low, &n_high)
        self.fill_box(count, cap, u, 0, n_low, n_high)
        for j in range(n_high):
            total += self.beta[j]
        if total > self.n_ranks * cap:
            u = self.walk(count, cap, own, self.n_ranks, &n_low, &n_high)
            self.fill_box(count, cap, u, self.n_ranks, n_low, n_high)
        return u

    cdef double walk(self, Py_ssize_t count, double cap, double own, Py_ssize_t n_caps,
                     Py_ssize_t* n_low_out, Py_ssize_t* n_high_out) noexcept nogil:
        cdef Py_ssize_t n_low = 0, n_high = 0, slope = 0 if n_caps else 1, free
        cdef double total = -n_caps * cap if n_caps else -own
        cdef double u = -INFINITY if n_caps else -own, next_low, next_high
        while True:
            next_high = self.z[n_high] if n_high < count else -INFINITY
            next_low = self.z[n_low] - cap if n_low < n_high else -INFINITY
            if max(next_high, next_low) <= u:
                break
            if next_high >= next_low:
                total += self.z[n_high]
                n_high += 1
            else:
                total += cap - self.z[n_low]
                n_low += 1
                if n_caps and n_low == n_caps:
                    u, n_high = next_low, n_low
                    break
            free = slope + n_high - n_low
            u = total / free if free else -INFINITY
        n_low_out[0], n_high_out[0] = n_low, n_high
        return u

    cdef void fill_box(self, Py_ssize_t count, double cap, double u, Py_ssize_t n_caps, Py_ssize_t n_low,
                       Py_ssize_t n_high) noexcept nogil:
        cdef Py_ssize_t j
        cdef double first = self.z[n_low] - u
        if n_caps and n_high > n_low:
            first = ((n_caps - n_low) * cap - self.behind(n_low, n_high)) / (n_high - n_low)
            while (self.z[n_high - 1] - self.z[n_low]) + first < 0.0:
                n_high -= 1
                first = ((n_caps - n_low) * cap - self.behind(n_low, n_high)) / (n_high - n_low)
        for j in range(count):
            if j < n_low:
                self.beta[j] = cap
            elif j < n_high:
                self.beta[j] = min(max((self.z[j] - self.z[n_low]) + first, 0.0), cap)
            else:
                self.beta[j] = 0.0

    cdef double behind(self, Py_ssize_t first, Py_ssize_t last) noexcept nogil:
        cdef Py_ssize_t j
        cdef double total = 0.0
        for j in range(first, last):
            total += self.z[j] - self.z[first]
        return total

    cdef void fill(self, Py_ssize_t kept, Py_ssize_t count, double u, Py_ssize_t n_low,
                   Py_ssize_t n_high) noexcept nogil:
        cdef Py_ssize_t j
        for j in range(count):
            if j >= kept:
                self.beta[j] = 0.0
            elif j < n_low:
                self.beta[j] = self.low_cap[j]
            elif j < n_high:
                self.beta[j] = min(max(self.z[j] - u, self.high_cap[j]), self.low_cap[j])
            else:
                self.beta[j] = self.high_cap[j]


cdef class UsunierLoss(Loss):
    """See fastmc.reference.losses.UsunierLoss."""

    cdef double c_oracle(self, const double* scores, Py_ssize_t label, double* vertex) noexcept nogil:
        cdef Py_ssize_t r, j
        cdef double h, value = 0.0, total = 0.0
        self.rank(scores, label, self.n_ranks)
        if vertex != NULL:
            for j in range(self.n_classes):
                vertex[j] = 0.0
        for r in range(self.n_ranks):
            h = self.z[r] - scores[label]
            if h <= 0.0:
                break
            value += self.rho[r] * h
            if vertex != NULL:
                total += self.rho[r]
                vertex[self.order[r]] = -self.rho[r]
        if vertex != NULL:
            vertex[label] = total
        return value

    cdef double sorted_value(self, Py_ssize_t count, double own) noexcept nogil:
        cdef Py_ssize_t r
        cdef double value = 0.0
        for r in range(min(count, self.n_ranks)):
            if self.z[r] <= own:
                break
            value += self.rho[r] * (self.z[r] - own)
        return value

    cdef double least(self, double weight, double own) noexcept nogil:
        if self.n_ranks == 1:
            return max(-0.5 * own, -weight * self.rho[0])
        return max(-own, min(-0.5 * own, weight * self.rho[0] - own))

    cdef double solve(self, Py_ssize_t count, double weight, double own) noexcept nogil:
        cdef Py_ssize_t n_low, n_high, kept, j
        cdef double u, floor
        if self.uniform:
            return self.solve_box(count, weight * self.rho[0], own)
        floor = self.least(weight, own)
        kept = self.trim(count, weight, &floor)
        self.pool(kept, 0, weight, 1.0, self.low, self.low_cap, self.low_rho)
        for j in range(kept):
            self.high[j] = self.z[j]
            self.high_cap[j] = 0.0
        u = self.threshold(kept, own, &n_low, &n_high)
        self.fill(kept, count, u, n_low, n_high)
        return max(u, floor)


cdef class TopKLoss(Loss):
    """See fastmc.reference.losses.TopKLoss."""

    def __init__(self, n_classes, rho, own_class=True):
        super().__init__(n_classes, rho)
        self.own_class = own_class

    cdef double c_oracle(self, const double* scores, Py_ssize_t label, double* vertex) noexcept nogil:
        cdef Py_ssize_t r, j
        cdef double value = 0.0, total = 0.0
        self.rank(scores, -1 if self.own_class else label, self.n_ranks)
        for r in range(self.n_ranks):
            value += self.rho[r] * (self.z[r] - scores[label])
        if vertex != NULL:
            for j in range(self.n_classes):
                vertex[j] = 0.0
        if not value > 0.0:
            return 0.0
        if vertex != NULL:
            for r in range(self.n_ranks):
                if self.order[r] != label:
                    vertex[self.order[r]] = -self.rho[r]
                    total += self.rho[r]
            vertex[label] = total
        return value

    cdef double sorted_value(self, Py_ssize_t count, double own) noexcept nogil:
        cdef Py_ssize_t r = 0, j
        cdef bint placed = not self.own_class
        cdef double value = 0.0
        for j in range(count):
            if not placed and self.z[j] < own:
                placed = True
                r += 1
            if r >= self.n_ranks:
                break
            value += self.rho[r] * (self.z[j] - own)
            r += 1
        return max(value, 0.0)

    cdef double solve(self, Py_ssize_t count, double weight, double own) noexcept nogil:
        cdef Py_ssize_t n_low, n_high, tries = 0, n_known = count
        cdef double floor = -INFINITY, f
        cdef double t = self.scale, t_low = 0.0, t_high = INFINITY, u, slope, step, moved
        if self.uniform and self.own_class:
            return self.solve_capped(count, weight, own)
        count = self.trim(count, weight, &floor)
        f = self.excess(count, own, weight, t, &u, &slope, &n_low, &n_high)
        if f < 0.0 and self.value_at_zero(count, own, weight) <= 0.0:
            self.fill_box(n_known, 0.0, 0.0, 0, 0, 0)
            return INFINITY
        while (f < 0.0 or (f > 0.0 and t < 1.0)) and tries < 200:
            tries += 1
            if f > 0.0:
                t_low = t
            else:
                t_high = t
            step = min(t - f / slope, 1.0) if slope < 0.0 else -1.0
            if fabs(step - t) <= 1e-15 * t:
                break
            if not t_low < step < t_high:
                step = 0.5 * (t_low + min(t_high, 1.0))
            moved = fabs(step - t)
            t = step
            f = self.excess(count, own, weight, t, &u, &slope, &n_low, &n_high)
            if moved <= 1e-15 * t:
                break
        self.scale = t
        self.fill(count, n_known, u, n_low, n_high)
        return self.low[count - 1] if count >= self.n_ranks else floor

    cdef double solve_capped(self, Py_ssize_t count, double weight, double own) noexcept nogil:
        cdef Py_ssize_t others = self.n_ranks - 1, n_low, n_high, r, s, j
        cdef double cap = weight * self.rho[0], factor, sum_capped = 0.0, total = 0.0, first, share = 0.0
        cdef double u = self.walk(count, cap, own, 0, &n_low, &n_high)
        if n_low >= others or u + own >= others * cap:
            u = self.solve_box(count, cap, own)
            for j in range(count):
                total += self.beta[j]
            if total < others * cap:
                u = self.walk(count, cap, own, others, &n_low, &n_high)
                self.fill_box(count, cap, u, others, n_low, n_high)
            return u
        if self.value_at_zero(count, own, weight) <= 0.0:
            self.fill_box(count, 0.0, 0.0, 0, 0, 0)
            return INFINITY
        for r in range(others):
            factor = (others * others + r) / <double> (others - r)
            s, total, u = 0, 0.0, -INFINITY
            while r + s < count and self.z[r + s] > u:
                total += self.z[r + s]
                s += 1
                u = ((factor * total - others * own) - sum_capped) / (factor * s + (others - r))
            share = (total - s * u) / (others - r)
            if self.z[r] - u <= share:
                break
            sum_capped += self.z[r]
        else:
            r, s, share = others, 0, (sum_capped + others * own) / (others * self.n_ranks)
            u = self.z[others - 1] - share
        first = self.z[r] - u if s else 0.0
        if r + s > others:
            first = max(first, -self.behind(r, r + s) / (r + s - others))
        total = 0.0
        for j in range(r, count):
            self.beta[j] = max((self.z[j] - self.z[r]) + first, 0.0) if j < r + s else 0.0
            total += self.beta[j]
        if r < others:
            share = total / (others - r)
        for j in range(r):
            self.beta[j] = share
        if share > cap:
            u = self.walk(count, cap, own, others, &n_low, &n_high)
            self.fill_box(count, cap, u, others, n_low, n_high)
        return u

    cdef double value_at_zero(self, Py_ssize_t count, double own, double weight) noexcept nogil:
        cdef Py_ssize_t j, r = 0
        cdef bint placed = not self.own_class
        cdef double x, f = 0.0
        for j in range(count):
            x = self.z[j] + own
            if not placed and x < 0.0:
                placed = True
                r += 1
            if r >= self.n_ranks:
                break
            f += weight * self.rho[r] * x
            r += 1
        return f

    cdef double excess(self, Py_ssize_t count, double own, double weight, double t, double* u_out,
                       double* slope_out, Py_ssize_t* n_low_out, Py_ssize_t* n_high_out) noexcept nogil:
        cdef Py_ssize_t j, n_low, n_high
        cdef double u, f = 0.0, slope = 0.0, du = 0.0
        self.pool(count, 0, weight, t, self.low, self.low_cap, self.low_rho)
        if self.own_class:
            self.pool(count, 1, weight, t, self.high, self.high_cap, self.high_rho)
        else:
            for j in range(count):
                self.high[j] = self.low[j]
                self.high_cap[j] = self.low_cap[j]
        u = self.threshold(count, own, &n_low, &n_high)
        if not self.own_class:
            n_low = n_high = count
        for j in range(count):
            if j < n_low:
                du += self.low_rho[j]
            elif j >= n_high:
                du += self.high_rho[j]
        du /= 1 + n_high - n_low
        for j in range(count):
            if j < n_low:
                f += weight * self.rho[j] * (self.low[j] - u)
                slope -= weight * self.rho[j] * (self.low_rho[j] + du)
            elif j >= n_high:
                f += weight * self.rho[j + 1] * (self.high[j] - u)
                slope -= weight * self.rho[j + 1] * (self.high_rho[j] + du)
        u_out[0], slope_out[0] = u, slope
        n_low_out[0], n_high_out[0] = n_low, n_high
        return f
