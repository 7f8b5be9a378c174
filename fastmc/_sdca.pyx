"""Exact block maximisation, one pass over a slice of the order. See fastmc.reference.sdca."""
import numpy as np
from libc.math cimport INFINITY, fabs

from fastmc._dual_rows cimport DualRows
from fastmc._losses cimport Loss
from fastmc._order cimport Order
from fastmc._samples cimport Samples, real
from fastmc._vector cimport CHUNK

cdef enum:
    # Classes of which it pays to look at a few of the best before the candidates are collected
    MANY = 96


cdef inline real largest(Samples samples, const real* scores) noexcept nogil:
    if real is float:
        return samples.vector.largest_f(scores, samples.n_classes)
    else:
        return samples.vector.largest_d(scores, samples.n_classes)


cdef inline void lane_maxima(Samples samples, const real* scores, real* best) noexcept nogil:
    if real is float:
        samples.vector.lane_maxima_f(scores, samples.n_classes, best)
    else:
        samples.vector.lane_maxima_d(scores, samples.n_classes, best)


cdef inline real lane_bound(Samples samples, const real* scores, Py_ssize_t count) noexcept nogil:
    if real is float:
        return samples.vector.lane_bound_f(scores, samples.n_classes, count)
    else:
        return samples.vector.lane_bound_d(scores, samples.n_classes, count)


cdef inline Py_ssize_t at_least(Samples samples, const real* scores, real floor,
                                Py_ssize_t* found) noexcept nogil:
    if real is float:
        return samples.vector.at_least_f(scores, samples.n_classes, floor, found)
    else:
        return samples.vector.at_least_d(scores, samples.n_classes, floor, found)


cdef void expect(Samples samples, DualRows rows, Order order, Py_ssize_t position) noexcept nogil:
    """In random order every row would be waited for; ask for those that come soon."""
    cdef Py_ssize_t i = order.soon(position + 8)
    if i >= 0:
        samples.expect(i)
        rows.expect(i)
    i = order.soon(position + 3)
    if i >= 0:
        samples.expect_row(i)
        rows.expect_row(i)


cdef void take_out(DualRows rows, Block* b, real* scores, double* support) noexcept nogil:
    """Scores plus costs of the open row's classes and of the own class; -inf in their places."""
    cdef Py_ssize_t k
    b.own = scores[b.y]
    b.least = INFINITY
    scores[b.y] = <real> -INFINITY
    for k in range(rows.count):
        support[k] = scores[rows.classes[k]]
        scores[rows.classes[k]] = <real> -INFINITY
        b.least = min(b.least, min(support[k] - b.gamma * rows.beta[k], support[k] + b.q * rows.ahead[k]))


cdef inline real rounded_down(const real* scores, double limit, double top) noexcept nogil:
    """A score that is not above the limit, in the precision of the scores."""
    return <real> (limit - (1e-6 if real is float else 1e-15) * (fabs(limit) + fabs(top)))


cdef void rank_rest(Samples samples, Loss loss, Py_ssize_t n_listed, Block* b, real* scores, double top) noexcept nogil:
    """Take the best of the other classes out into loss.rest_z and loss.rest_order, best first.

    As many as there are ranks, or fewer if the classes of the list fill the ranks without them. No class
    that is left is above b.bound. `top` is the best of one rank.
    """
    cdef Py_ssize_t k, n_found
    cdef real floor
    if loss.n_ranks == 1:
        # Which class it is shows when the candidates are collected.
        loss.rest_z[0] = top
        loss.n_rest = 1
        return
    if n_listed < loss.n_ranks:
        floor = lane_bound(samples, scores, loss.n_ranks)
    else:
        floor = rounded_down(scores, b.least, b.least)
    n_found = at_least(samples, scores, floor, samples.changed)
    for k in range(n_found):
        loss.z[k], loss.order[k] = scores[samples.changed[k]], samples.changed[k]
    loss.n_rest = loss.select(n_found, loss.n_ranks)
    for k in range(loss.n_rest):
        loss.rest_z[k], loss.rest_order[k] = loss.z[k], loss.order[k]
        scores[loss.order[k]] = <real> -INFINITY
    b.bound = loss.rest_z[loss.n_rest - 1] if n_found >= loss.n_ranks else floor


cdef double block_gap(Loss loss, DualRows rows, Block* b, const double* support, double* phi) noexcept nogil:
    """omega Phi(st) + <c + st, alpha> at st = s + gamma alpha, from the ranked rest and the support."""
    cdef Py_ssize_t k, count = 0
    cdef double total = 0.0, inner = 0.0, own, value
    for k in range(rows.count):
        total += rows.beta[k]
    own = b.own + b.gamma * total
    for k in range(rows.count):
        value = support[k] - b.gamma * rows.beta[k]
        inner += rows.beta[k] * (value - own)
        if count < loss.n_ranks:
            count += 1
        elif value <= loss.z[count - 1]:
            continue
        loss.insert(0, count - 1, value, rows.classes[k])
    for k in range(loss.n_rest):
        if count < loss.n_ranks:
            count += 1
        elif loss.rest_z[k] <= loss.z[count - 1]:
            break
        loss.insert(0, count - 1, loss.rest_z[k], loss.rest_order[k])
    phi[0] = loss.sorted_value(count, own)
    return b.weight * phi[0] - inner


cdef Py_ssize_t collect(Samples samples, Loss loss, Block* b, real* scores, Py_ssize_t count, double top, double total,
                        double floor) noexcept nogil:
    """Take out the other classes with z above the floor to the sorted ones; returns how many these are."""
    cdef double z, limit = top + floor * total
    cdef Py_ssize_t k, j, n_found
    cdef real least = rounded_down(scores, limit, top)
    if b.bound < least:
        return count
    n_found = at_least(samples, scores, least, samples.changed)
    for k in range(n_found):
        j = samples.changed[k]
        z = (scores[j] - top) / total
        if z > floor:
            loss.insert(0, count, z, j)
            scores[j] = <real> -INFINITY
            count += 1
    # A floor above this one needs no look at those that are left.
    b.bound = limit + 1e-15 * (fabs(limit) + fabs(top))
    return count


cdef Py_ssize_t sieve(double* z, Py_ssize_t* order, Py_ssize_t count, double cap, double own,
                      double* floor) noexcept nogil:
    """Keep those above the solution of one rank, which `floor`, a lower bound, becomes; returns how many."""
    cdef Py_ssize_t k, before = count + 1, kept = 0
    cdef double total = 0.0, u = floor[0]
    for k in range(count):
        if z[k] > u:
            z[kept], order[kept] = z[k], order[k]
            kept += 1
            total += z[k]
            u = max((total - own) / (kept + 1), (total - cap) / kept)
    while kept < before:
        before, kept, total = kept, 0, 0.0
        for k in range(before):
            if z[k] > u:
                z[kept], order[kept] = z[k], order[k]
                kept += 1
                total += z[k]
        if kept:
            u = max((total - own) / (kept + 1), (total - cap) / kept)
    floor[0] = u
    return kept


cdef Py_ssize_t maximise_one(Samples samples, Loss loss, DualRows rows, Block* b, const real* scores,
                             const double* support, double top, double own) noexcept nogil:
    """`maximise` for one rank, where beta = max(z - u, 0) needs no order."""
    cdef double z, total = b.q + b.gamma, cap = b.weight * loss.rho[0], u = max(-0.5 * own, -cap), floor
    cdef Py_ssize_t k, n_found, count
    cdef real lanes[CHUNK]
    cdef real least
    for k in range(rows.count):
        loss.z[k], loss.order[k] = (support[k] - top) / total, rows.classes[k]
    count = sieve(loss.z, loss.order, rows.count, cap, own, &u)
    least = rounded_down(scores, top + u * total, top)
    if loss.rest_z[0] >= least:
        floor = u
        if samples.n_classes >= MANY:
            # A few of the best raise the floor, so that few are found.
            lane_maxima(samples, scores, lanes)
            for k in range(CHUNK):
                loss.spare_z[k] = (lanes[k] - top) / total
            sieve(loss.spare_z, loss.spare_order, CHUNK, cap, own, &floor)
            least = rounded_down(scores, top + floor * total, top)
        n_found = at_least(samples, scores, least, samples.changed)
        for k in range(n_found):
            z = (scores[samples.changed[k]] - top) / total
            if z > floor:
                loss.z[count], loss.order[count] = z, samples.changed[k]
                count += 1
        count = sieve(loss.z, loss.order, count, cap, own, &u)
    for k in range(count):
        loss.beta[k] = loss.z[k] - u
    return count


cdef Py_ssize_t maximise(Samples samples, Loss loss, DualRows rows, Block* b, real* scores,
                         double* support) noexcept nogil:
    """The new beta into loss.order and loss.beta; returns how many classes are there.

    Solved for the classes of the list and the best others; then any that exceed the solution's
    threshold join, until none does.
    """
    cdef Py_ssize_t k, count, known
    cdef double total = b.q + b.gamma, ahead = 0.0, top, own, floor
    top = loss.rest_z[0] if loss.n_rest else -INFINITY
    for k in range(rows.count):
        ahead += rows.ahead[k]
        support[k] += b.q * rows.ahead[k]
        top = max(top, support[k])
    own = (top - (b.own - b.q * ahead)) / total
    if not own > 0.0:
        return 0
    if loss.n_ranks == 1:
        return maximise_one(samples, loss, rows, b, scores, support, top, own)
    # The list is in order, or nearly so, and the others come after it for the most part.
    for k in range(rows.count):
        loss.insert(0, k, (support[k] - top) / total, rows.classes[k])
    count = rows.count
    for k in range(loss.n_rest):
        loss.insert(0, count, (loss.rest_z[k] - top) / total, loss.rest_order[k])
        count += 1
    loss.scale = 1.0
    floor = max(loss.least(b.weight, own), loss.solve(count, b.weight, own))
    known = -1
    while count != known and floor < INFINITY:
        known = count
        count = collect(samples, loss, b, scores, count, top, total, floor)
        if count > known:
            floor = loss.solve(count, b.weight, own)
    return count


cdef Py_ssize_t corner(Samples samples, Loss loss, Block* b, Py_ssize_t i, double* dense) noexcept nogil:
    """The maximiser for a row of zeros without smoothing: a corner for the costs alone."""
    cdef Py_ssize_t j, count = 0, m = samples.n_classes
    for j in range(m):
        dense[j] = 0.0
    samples.add_cost(i, dense)
    loss.c_oracle(dense, b.y, dense + m)
    for j in range(m):
        if dense[m + j] < 0.0:
            loss.order[count], loss.beta[count] = j, b.weight * -dense[m + j]
            count += 1
    return count


cdef Py_ssize_t write(Samples samples, Loss loss, DualRows rows, Block* b, Py_ssize_t i, Py_ssize_t count,
                      double* change, Py_ssize_t* classes, double* gain) noexcept nogil:
    """Replace the list by the positive beta; returns how many classes may change, `change` tells by what.

    -1 if there is no memory for the list.
    """
    cdef Py_ssize_t k, j, kept = 0, n_changed = 0
    cdef double own = 0.0, ahead = 0.0, squares = 0.0
    gain[0] = 0.0
    for k in range(rows.count):
        ahead += rows.ahead[k]
        change[rows.classes[k]] = rows.ahead[k]
        classes[n_changed] = rows.classes[k]
        n_changed += 1
    for k in range(count):
        if loss.beta[k] > 0.0:
            j = loss.order[k]
            if change[j] == 0.0:
                # Perhaps a second time, if its old change is zero: it is cleared only once.
                classes[n_changed] = j
                n_changed += 1
            change[j] -= loss.beta[k]
            own += loss.beta[k]
            squares += loss.beta[k] * loss.beta[k]
            gain[0] += loss.beta[k] * samples.class_cost(i, j)
            loss.order[kept], loss.beta[kept] = j, loss.beta[k]
            kept += 1
    if rows.replace(i, loss.order, loss.beta, kept) < 0:
        return -1
    gain[0] -= 0.5 * b.gamma * (squares + own * own)
    change[b.y] = own - ahead
    classes[n_changed] = b.y
    return n_changed + 1


cdef Py_ssize_t coefficients(double* change, Py_ssize_t* classes, Py_ssize_t count, double lam_n,
                             real* coef) noexcept nogil:
    """coef = change / (lambda n) in the precision of W; keeps the classes that change, once each."""
    cdef Py_ssize_t k, kept = 0
    for k in range(count):
        if change[classes[k]] != 0.0:
            coef[classes[k]] = <real> (change[classes[k]] / lam_n)
            change[classes[k]] = 0.0
            classes[kept] = classes[k]
            kept += 1
    return kept


cdef class Step:
    """What one thread needs to maximise block after block. See fastmc.reference.sdca.Step."""

    def __init__(self, Samples samples, Loss loss, DualRows rows, double[::1] gaps, double[::1] gains,
                 double lam_n, double smoothing, double momentum):
        cdef double[::1] scratch = np.zeros(4 * samples.n_classes)
        self.samples, self.loss, self.rows = samples, loss, rows
        self.lam_n, self.smoothing, self.momentum = lam_n, smoothing, momentum
        self._keep_alive = [scratch, gaps, gains]
        self.gaps, self.gains = &gaps[0], &gains[0]
        self.support = &scratch[0]
        self.change = &scratch[samples.n_classes]
        self.dense = &scratch[2 * samples.n_classes]

    cdef Py_ssize_t take(self, Py_ssize_t i, real* scores, real* coef, Py_ssize_t* classes) noexcept nogil:
        cdef Py_ssize_t count
        cdef double phi, top = INFINITY
        cdef Block b
        b.y, b.weight = self.samples.label[i], self.samples.weight[i]
        b.gamma, b.q = self.smoothing / b.weight, self.samples.sqnorm[i] / self.lam_n
        self.samples.add_cost(i, scores)
        self.rows.open(i, self.momentum)
        take_out(self.rows, &b, scores, self.support)
        if self.rows.count == 0 or self.loss.n_ranks == 1:
            top = largest(self.samples, scores)
        if self.rows.count > 0 or not top <= b.own:
            rank_rest(self.samples, self.loss, self.rows.count, &b, scores, top)
            self.gaps[i] = block_gap(self.loss, self.rows, &b, self.support, &phi)
        else:
            # Neither a loss nor a list
            self.gaps[i] = phi = 0.0
        if self.rows.count == 0 and phi <= 0.0:
            count = 0
        elif b.q + b.gamma == 0.0:
            count = corner(self.samples, self.loss, &b, i, self.dense)
        else:
            count = maximise(self.samples, self.loss, self.rows, &b, scores, self.support)
        count = write(self.samples, self.loss, self.rows, &b, i, count, self.change, classes, &self.gains[i])
        if count < 0:
            return -1
        return coefficients(self.change, classes, count, self.lam_n, coef)


def sdca_pass(Samples samples, Loss loss, real[:, ::1] weights, DualRows rows, double[::1] gaps,
              double[::1] gains, Order order, Py_ssize_t start, Py_ssize_t stop, double lam_n,
              double smoothing, double momentum):
    cdef Step step = Step(samples, loss, rows, gaps, gains, lam_n, smoothing, momentum)
    cdef Py_ssize_t position, i, k, count = 0
    cdef Py_ssize_t[::1] classes = np.zeros(2 * samples.n_classes + 1, dtype=np.intp)
    cdef real[:, ::1] two = np.zeros((2, weights.shape[1]), dtype=np.asarray(weights).dtype)
    cdef real* scores = &two[0, 0]
    cdef real* coef = &two[1, 0]
    with nogil:
        for position in range(start, stop):
            expect(samples, rows, order, position)
            i = order.next(position)
            samples.load(i)
            samples.scores(&weights[0, 0], scores)
            count = step.take(i, scores, coef, &classes[0])
            if count < 0:
                break
            order.saw(i, gaps[i])
            if count > 0:
                samples.update_classes(coef, &classes[0], count, samples.stride, &weights[0, 0])
                for k in range(count):
                    coef[classes[k]] = 0
    if count < 0:
        raise MemoryError("no memory for the dual")


cdef void extrapolate_rows(Samples samples, real* weights, real* last, Py_ssize_t size, double momentum) noexcept nogil:
    if real is float:
        samples.vector.extrapolate_f(weights, last, size, <float> momentum)
    else:
        samples.vector.extrapolate_d(weights, last, size, momentum)


cdef void add_row_squares(Samples samples, const real* weights, Py_ssize_t n_rows, double* sums) noexcept nogil:
    if real is float:
        samples.vector.add_squares_f(weights, n_rows, samples.stride, sums)
    else:
        samples.vector.add_squares_d(weights, n_rows, samples.stride, sums)


def extrapolate(Samples samples, real[:, ::1] weights, real[:, ::1] last, double momentum):
    with nogil:
        extrapolate_rows(samples, &weights[0, 0], &last[0, 0], weights.shape[0] * weights.shape[1], momentum)


def add_squares(Samples samples, const real[:, ::1] weights, double[::1] sums):
    if not sums.shape[0] == weights.shape[1] == samples.stride:
        raise ValueError("weights and sums must have as many columns as the samples expect")
    with nogil:
        add_row_squares(samples, &weights[0, 0], weights.shape[0], &sums[0])


def add_signed(Samples samples, const real[:, ::1] weights, const double[::1] signs, double[:, ::1] sums):
    if signs.shape[0] < weights.shape[1] or sums.shape[0] < weights.shape[0] or sums.shape[1] != 4:
        raise ValueError("signs must have an entry for each column of weights, sums four for each row")
    with nogil:
        if real is float:
            samples.vector.add_signed_f(&weights[0, 0], weights.shape[0], weights.shape[1], &signs[0], &sums[0, 0])
        else:
            samples.vector.add_signed_d(&weights[0, 0], weights.shape[0], weights.shape[1], &signs[0], &sums[0, 0])
