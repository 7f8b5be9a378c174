"""Block-coordinate Frank-Wolfe and its variants in plain Python: the mirror of `fastmc._bcfw`."""
import numpy as np


STEPS = {"bcfw": 0, "pairwise": 1, "away": 2}


class Average:
    """Average of the iterates of (W, A), the one after step k with weight proportional to k.

    With K the number of steps, V grows by K (K - 1) times the change that step K makes, and
    the average is W - V / (K (K + 1)); the same for A. A step costs what it changes.
    """

    def __init__(self, weights_shape, dual_shape):
        self.steps = 0
        self.weights_sum, self.dual_sum = np.zeros(weights_shape), np.zeros(dual_shape)

    def of(self, weights, dual):
        """The average, given the current W and A; it is feasible."""
        scale = 1.0 / (max(self.steps, 1) * (self.steps + 1.0))
        return weights - scale * self.weights_sum, dual - scale * self.dual_sum

    def add(self, samples, i, change, lam_n):
        factor = float(self.steps) * float(self.steps - 1)
        for j, c in enumerate(change):
            self.dual_sum[i, j] += factor * c
        samples.update([factor * c / lam_n for c in change], self.weights_sum)


class Block:
    """What one visit knows: see the fields in `bcfw_pass` and the functions it calls."""


def named_classes(atoms, b, m):
    """The classes that alpha and the corners at hand are made of."""
    marked = [a != 0.0 for a in b.alpha]
    marked[b.y] = True
    atoms.mark(b.i, marked)
    return [j for j in range(m) if marked[j]]


def look_at_cache(samples, atoms, weights, b):
    """The best corner at hand, scored on the classes in b.classes alone."""
    b.shifted = [0.0] * samples.n_classes
    samples.class_scores(weights, b.classes, b.shifted)
    b.inner = 0.0
    for j in b.classes:
        b.shifted[j] = (b.shifted[j] + samples.class_cost(b.i, j)) + b.gamma * b.alpha[j]
        b.inner += b.shifted[j] * b.alpha[j]
    b.corner = atoms.lowest(b.i, b.shifted, b.y)
    b.gap = b.inner - b.weight * atoms.height(b.corner, b.shifted, b.y)


def call_oracle(samples, loss, atoms, weights, b):
    """The best corner of all, and the block gap."""
    b.shifted = samples.scores(weights)
    samples.add_cost(b.i, b.shifted)
    b.inner = 0.0
    for j in range(samples.n_classes):
        b.shifted[j] += b.gamma * b.alpha[j]
        b.inner += b.shifted[j] * b.alpha[j]
    value, b.delta = loss.oracle(b.shifted, b.y)
    b.gap = b.weight * value + b.inner
    if atoms is not None:
        b.corner = atoms.put(b.i, b.delta, b.y)


def choose_direction(atoms, kind, b):
    """delta, its gain <-delta, c + st> and the longest step."""
    b.gain, b.limit, b.leaves = b.gap, 1.0, False
    if atoms is None:
        b.delta = [b.weight * d - a for d, a in zip(b.delta, b.alpha)]
        return
    sign = -1.0
    if kind != "bcfw":
        b.away = atoms.highest(b.i, b.shifted, b.y)
        share = atoms.get_weight(b.i, b.away)
    if kind == "pairwise":
        b.gain = b.weight * (atoms.height(b.away, b.shifted, b.y) - atoms.height(b.corner, b.shifted, b.y))
        b.limit, sign = share, 0.0
    elif kind == "away":
        away_gain = b.weight * atoms.height(b.away, b.shifted, b.y) - b.inner
        if away_gain > b.gap and share < 1.0:
            b.leaves, b.gain, b.limit, sign = True, away_gain, share / (1.0 - share), 1.0
    b.delta = [sign * a for a in b.alpha]
    if not b.leaves:
        atoms.add(b.corner, b.weight, b.delta, b.y)
    if kind == "pairwise" or b.leaves:
        atoms.add(b.away, -b.weight, b.delta, b.y)


def step_size(b, q):
    """Exact line search, clipped; 0 where nothing is to be gained."""
    norm = 0.0
    for j in b.classes:
        norm += b.delta[j] * b.delta[j]
    if norm == 0.0 or b.gain <= 0.0:
        return 0.0
    # Without curvature (an all-zero row, no smoothing) the objective is linear.
    curvature = (q + b.gamma) * norm
    return b.gain / curvature if b.gain < b.limit * curvature else b.limit


def move_weights(atoms, b, kind, t):
    """The step in terms of the weights; an away corner at its limit is dropped."""
    if kind == "pairwise" or b.leaves:
        if b.leaves:
            atoms.scale(b.i, 1.0 + t)
        left = max(atoms.get_weight(b.i, b.away) - t, 0.0)
        atoms.set_weight(b.i, b.away, 0.0 if t == b.limit else left)
    else:
        atoms.scale(b.i, 1.0 - t)
    if not b.leaves:
        atoms.set_weight(b.i, b.corner, atoms.get_weight(b.i, b.corner) + t)
    atoms.tidy(b.i, True)


def move_dual(atoms, b, kind, t, m):
    """How alpha changes; b.alpha becomes what it is after the step."""
    if kind == "bcfw":
        change = [0.0] * m
        for j in b.classes:
            change[j] = t * b.delta[j]
            b.alpha[j] += change[j]
        return change
    move_weights(atoms, b, kind, t)
    new = atoms.point(b.i, b.weight, b.y, m)
    change = [new[j] - b.alpha[j] for j in range(m)]
    b.alpha = new
    return change


def bcfw_pass(samples, loss, weights, dual, gaps, order, start, stop, lam_n, smoothing,
              kind="bcfw", atoms=None, average=None, cache_f=0.0, cache_floor=0.0):
    """One step with exact line search on each block visited; W = W(A) is kept.

    With st_i = s_i + gamma_i alpha_i, u the corner of the oracle at st_i (times omega_i), a the
    worst corner in use of weight w_a, the direction delta is

        bcfw       u - alpha                                            longest step 1
        pairwise   u - a                                                w_a
        away       u - alpha, or alpha - a where that gains more        1, or w_a / (1 - w_a)

    and the step -<delta, c_i + st_i> / ((q_i + gamma_i) ||delta||^2), clipped (Osokin et al.,
    algorithms 1 to 4, on the dual of Tajima et al., section 2.3). With a cache the best corner at
    hand stands in for u where it promises enough (algorithm 5):

        <c_i + st_i, alpha_i - u_c> >= max(F g_i, nu gap)

    with g_i of the last oracle call; it is scored on the classes of the corners alone.

    Parameters
    ----------
    samples : Samples
    loss : Loss
    weights : ndarray of float64, shape (n_features, n_classes)
        W(A), updated in place.
    dual : ndarray of float64, shape (n_samples, n_classes)
        A, updated in place.
    gaps : ndarray of float64, shape (n_samples,)
        Block gaps as the last oracle call on each sample saw them, updated in place.
    order : Order
    start, stop : int
        Positions of the order to visit.
    lam_n : float
        lambda n = 1/C.
    smoothing : float
        The Moreau parameter gamma.
    kind : str
        "bcfw", "pairwise" or "away".
    atoms : ActiveSet or None
        Corners in use (pairwise, away) and in the cache.
    average : Average or None
        Updated with each step.
    cache_f, cache_floor : float
        F, and nu times the duality gap of the last full gap pass.

    Returns
    -------
    oracle_calls, cache_hits : int
    """
    m = samples.n_classes
    calls = hits = 0
    caching = atoms is not None and atoms.cache_size > 0
    for position in range(start, stop):
        b = Block()
        b.i = order.next(position)
        b.y, b.weight, b.alpha = samples.label[b.i], samples.weight[b.i], dual[b.i].tolist()
        b.gamma = smoothing / b.weight
        samples.load(b.i)
        if caching:
            b.classes = named_classes(atoms, b, m)
            look_at_cache(samples, atoms, weights, b)
        if caching and b.gap > 0.0 and b.gap >= max(cache_f * float(gaps[b.i]), cache_floor):
            hits += 1
        else:
            calls += 1
            b.classes = range(m)
            call_oracle(samples, loss, atoms, weights, b)
            gaps[b.i] = b.gap
            order.saw(b.i, b.gap)
        choose_direction(atoms, kind, b)
        if average is not None:
            average.steps += 1
        t = step_size(b, samples.sqnorm[b.i] / lam_n)
        if t > 0.0:
            change = move_dual(atoms, b, kind, t, m)
            dual[b.i] = b.alpha
            samples.update([c / lam_n for c in change], weights)
            if average is not None:
                average.add(samples, b.i, change, lam_n)
        if atoms is not None and (kind == "bcfw" or t == 0.0):
            atoms.tidy(b.i, False)
    return calls, hits
