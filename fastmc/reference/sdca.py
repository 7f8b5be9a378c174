"""Exact block maximisation in plain Python: the mirror of `fastmc._sdca`."""
import math
from types import SimpleNamespace

import numpy as np

# Classes that the kernel looks at together when searching, and of how many it looks at the best of a few first.
CHUNK, MANY = 16, 96


def sdca_pass(samples, loss, weights, rows, gaps, gains, order, start, stop, lam_n, smoothing, momentum):
    """Maximise the dual exactly over each block visited.

    With q_i = ||x_i||^2 / (lambda n) the Hessian of block i is q_i times the identity, so the
    block problem is the projection of

        v = (q_i alpha_i - s_i - c_i) / (q_i + gamma_i),   gamma_i = gamma / omega_i

    onto the feasible alpha of the sample. Crammer and Singer (2001) solve the block of max hinge;
    the losses here share one projection. It needs few classes: those of the sample's list, the best
    of the others, and whichever the solution for these leaves above its threshold.

    With momentum b the pass starts from A + b (A - A before), which need not be feasible: the step
    is exact whatever the block was, so that every block visited is feasible again, and W, which the
    caller has extrapolated alike, is W(A) once all are.

    Parameters
    ----------
    samples : Samples
    loss : Loss
    weights : ndarray of float32 or float64, shape (n_features, stride)
        W(A), or W(A) + b (W(A) - W(A before)); updated in place.
    rows : DualRows
        The lists of A and of A before, updated in place.
    gaps : ndarray of float64, shape (n_samples,)
        Set to omega_i Phi(st_i) + <c_i + st_i, alpha_i>, st_i = s_i + gamma_i alpha_i, as the visit
        sees it before its step: the block gap, or an upper bound of it with smoothing.
    gains : ndarray of float64, shape (n_samples,)
        Set to what the block adds to the dual besides W: -<c_i, alpha_i> - gamma_i/2 ||alpha_i||^2.
    order : Order
    start, stop : int
        Positions of the order to visit.
    lam_n : float
        lambda n = 1/C.
    smoothing : float
        The Moreau parameter gamma.
    momentum : float
        b; 0 for none.
    """
    step = Step(samples, loss, rows, gaps, gains, lam_n, smoothing, momentum)
    for position in range(start, stop):
        i = order.next(position)
        samples.load(i)
        coef = step.take(i, samples.scores(weights), weights.dtype.type)
        order.saw(i, gaps[i])
        if any(coef):
            samples.update(coef, weights)


class Step:
    """The exact step for one block after the other; arguments as in `sdca_pass`."""

    def __init__(self, samples, loss, rows, gaps, gains, lam_n, smoothing, momentum):
        self.samples, self.loss, self.rows, self.gaps, self.gains = samples, loss, rows, gaps, gains
        self.lam_n, self.smoothing, self.momentum = lam_n, smoothing, momentum

    def take(self, i, scores, real):
        """Maximise block i at its scores; returns what W gains for each class and unit of x.

        `real` is the type of the numbers of W.
        """
        samples, loss, rows = self.samples, self.loss, self.rows
        b = SimpleNamespace(y=samples.label[i], weight=samples.weight[i],
                            gamma=self.smoothing / samples.weight[i], q=samples.sqnorm[i] / self.lam_n)
        coef = [real(0.0)] * len(scores)
        scores = scores[: samples.n_classes]
        samples.add_cost(i, scores)
        rows.open(i, self.momentum)
        support = take_out(rows, b, scores)
        rank_rest(loss, len(rows.classes), b, scores, real)
        self.gaps[i], phi = block_gap(loss, rows, b, support)
        loss.order, loss.beta = [], []
        if rows.classes or phi > 0.0:
            if b.q + b.gamma == 0.0:
                corner(samples, loss, b, i)
            else:
                maximise(loss, rows, b, scores, support, real)
        change, self.gains[i] = write(samples, loss, rows, b, i)
        for j, value in change.items():
            coef[j] = real(value / self.lam_n)
        return coef


def take_out(rows, b, scores):
    """Scores plus costs of the open row's classes; -inf in their places and in the own class's."""
    b.own, b.least = float(scores[b.y]), math.inf
    scores[b.y] = -math.inf
    support = [float(scores[j]) for j in rows.classes]
    for j, score, beta, ahead in zip(rows.classes, support, rows.beta, rows.ahead):
        scores[j] = -math.inf
        b.least = min(b.least, score - b.gamma * beta, score + b.q * ahead)
    return support


def rank_rest(loss, n_listed, b, scores, real):
    """Take the best of the other classes out into loss.rest_z and loss.rest_order, best first.

    As many as there are ranks, or fewer if the classes of the list fill the ranks without them.
    """
    if loss.n_ranks == 1:
        # Which class it is shows when the candidates are collected.
        loss.rest_z, loss.rest_order = [float(max(scores))], [-1]
        return
    floor = -math.inf if n_listed < loss.n_ranks else rounded_down(b.least, b.least, real)
    classes = [j for j, s in enumerate(scores) if s > -math.inf and s >= floor]
    loss.rest_order = sorted(classes, key=lambda j: -scores[j])[: loss.n_ranks]
    loss.rest_z = [float(scores[j]) for j in loss.rest_order]
    for j in loss.rest_order:
        scores[j] = -math.inf


def block_gap(loss, rows, b, support):
    """omega Phi(st) + <c + st, alpha> at st = s + gamma alpha, and Phi(st)."""
    total = inner = 0.0
    for beta in rows.beta:
        total += beta
    own = b.own + b.gamma * total
    loss.z, loss.order = list(loss.rest_z), list(loss.rest_order)
    for j, beta, score in zip(rows.classes, rows.beta, support):
        value = score - b.gamma * beta
        inner += beta * (value - own)
        loss.insert(value, j)
        del loss.z[loss.n_ranks:], loss.order[loss.n_ranks:]
    phi = loss.sorted_value(own)
    return b.weight * phi - inner, phi


def maximise(loss, rows, b, scores, support, real):
    """The new beta into loss.order and loss.beta.

    Solved for the classes of the list and the best others; then any that exceed the solution's
    threshold join, until none does.
    """
    total, ahead = b.q + b.gamma, 0.0
    top = loss.rest_z[0] if loss.rest_z else -math.inf
    for k, value in enumerate(rows.ahead):
        ahead += value
        support[k] += b.q * value
        top = max(top, support[k])
    own = (top - (b.own - b.q * ahead)) / total
    loss.z, loss.order = [], []
    if not own > 0.0:
        return
    if loss.n_ranks == 1:
        maximise_one(loss, rows, b, scores, support, top, own, real)
        return
    for j, value in zip([*rows.classes, *loss.rest_order], [*support, *loss.rest_z]):
        loss.insert((value - top) / total, j)
    loss.scale = 1.0
    floor = max(loss.least(b.weight, own), loss.solve(b.weight, own))
    known = -1
    while len(loss.z) != known and floor < math.inf:
        known = len(loss.z)
        for z, j in candidates(scores, top, total, floor, real):
            loss.insert(z, j)
            scores[j] = -math.inf
        if len(loss.z) > known:
            floor = loss.solve(b.weight, own)


def maximise_one(loss, rows, b, scores, support, top, own, real):
    """`maximise` for one rank, where beta = max(z - u, 0) needs no order."""
    total, cap = b.q + b.gamma, b.weight * loss.rho[0]
    listed = [((value - top) / total, j) for j, value in zip(rows.classes, support)]
    kept, u = sieve(listed, cap, own, max(-0.5 * own, -cap))
    if loss.rest_z[0] >= rounded_down(top + u * total, top, real):
        floor = u
        if len(scores) >= MANY:
            # A few of the best raise the floor, so that few are found.
            lanes = [(float(max(scores[lane::CHUNK])) - top) / total for lane in range(CHUNK)]
            floor = sieve([(z, -1) for z in lanes], cap, own, u)[1]
        kept, u = sieve(kept + candidates(scores, top, total, floor, real), cap, own, u)
    loss.order, loss.beta = [j for _, j in kept], [z - u for z, _ in kept]


def rounded_down(limit, top, real):
    """A score that is not above the limit, in the precision of the scores."""
    return real(limit - (1e-6 if real is np.float32 else 1e-15) * (abs(limit) + abs(top)))


def candidates(scores, top, total, floor, real):
    """(z, class) of the other classes with z above the floor."""
    least = rounded_down(top + floor * total, top, real)
    found = [((float(score) - top) / total, j) for j, score in enumerate(scores) if score >= least]
    return [(z, j) for z, j in found if z > floor]


def sieve(found, cap, own, u):
    """(those above the solution u of one rank, u), from a lower bound of it.

    u is the larger of the roots of u + own = sum of max(z - u, 0) and of that sum = cap. What any set of classes
    gives is a lower bound (Michelot, 1986), so that it can grow class by class (Condat, 2016).
    """
    kept, total = [], 0.0
    for z, j in found:
        if z > u:
            kept.append((z, j))
            total += z
            u = max((total - own) / (len(kept) + 1), (total - cap) / len(kept))
    before = None
    while len(kept) != before:
        before, total = len(kept), 0.0
        kept = [(z, j) for z, j in kept if z > u]
        for z, _ in kept:
            total += z
        if kept:
            u = max((total - own) / (len(kept) + 1), (total - cap) / len(kept))
    return kept, u


def corner(samples, loss, b, i):
    """The maximiser for a row of zeros without smoothing: a corner for the costs alone."""
    scores = [0.0] * samples.n_classes
    samples.add_cost(i, scores)
    vertex = loss.oracle(scores, b.y)[1]
    loss.order = [j for j, v in enumerate(vertex) if v < 0.0]
    loss.beta = [b.weight * -vertex[j] for j in loss.order]


def write(samples, loss, rows, b, i):
    """Replace the list by the positive beta; returns the change of alpha and the dual's gain."""
    gain = own = ahead = squares = 0.0
    change = {}
    for j, value in zip(rows.classes, rows.ahead):
        ahead += value
        change[j] = value
    kept = [(j, beta) for j, beta in zip(loss.order, loss.beta) if beta > 0.0]
    for j, beta in kept:
        change[j] = change.get(j, 0.0) - beta
        own += beta
        squares += beta * beta
        gain += beta * samples.class_cost(i, j)
    rows.replace(i, [j for j, _ in kept], [beta for _, beta in kept])
    change[b.y] = own - ahead
    return change, gain - 0.5 * b.gamma * (squares + own * own)


def extrapolate(samples, weights, last, momentum):
    """W, W before = W + b (W - W before), W, in place."""
    now = weights.copy()
    weights += weights.dtype.type(momentum) * (weights - last)
    last[:] = now


def add_squares(samples, weights, sums):
    """Add to `sums` the squared norm of each column of W, in float64."""
    for row in weights.astype(np.float64):
        sums[: len(row)] += row * row


def add_signed(samples, weights, signs, sums):
    """Add to row t of `sums` the products of `signs` with row t of W, each to the column j % 4, in float64."""
    for j in range(weights.shape[1]):
        sums[:, j % 4] += signs[j] * weights[:, j].astype(np.float64)
