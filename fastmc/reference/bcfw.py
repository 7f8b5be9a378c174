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


def named_classes(atoms, i, alpha, label, m):
    """The classes that alpha and the corners at hand are made of."""
    marked = [a != 0.0 for a in alpha]
    marked[label] = True
    atoms.mark(i, marked)
    return [j for j in range(m) if marked[j]]


def move_weights(atoms, i, corner, away, leaves, pairwise, t, limit):
    """The step of size t in terms of the weights; an away corner at its limit is dropped."""
    if pairwise:
        atoms.set_weight(i, away, 0.0 if t == limit else atoms.get_weight(i, away) - t)
        atoms.set_weight(i, corner, atoms.get_weight(i, corner) + t)
    elif leaves:
        atoms.scale(i, 1.0 + t)
        atoms.set_weight(i, away, 0.0 if t == limit else max(atoms.get_weight(i, away) - t, 0.0))
    else:
        atoms.scale(i, 1.0 - t)
        atoms.set_weight(i, corner, atoms.get_weight(i, corner) + t)
    atoms.tidy(i, True)


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
        i = order.next(position)
        y, weight = samples.label[i], samples.weight[i]
        gamma = smoothing / weight
        alpha = dual[i].tolist()
        samples.load(i)
        hit = leaves = False
        corner = away = vertex = None
        if caching:
            classes = named_classes(atoms, i, alpha, y, m)
            shifted = [0.0] * m
            samples.class_scores(weights, classes, shifted)
            inner = 0.0
            for j in classes:
                shifted[j] = (shifted[j] + samples.class_cost(i, j)) + gamma * alpha[j]
                inner += shifted[j] * alpha[j]
            corner = atoms.lowest(i, shifted, y)
            gap = inner - weight * atoms.height(corner, shifted, y)
            hit = gap >= max(cache_f * float(gaps[i]), cache_floor)
        if hit:
            hits += 1
        else:
            calls += 1
            classes = list(range(m))
            shifted = samples.scores(weights)
            samples.add_cost(i, shifted)
            for j in range(m):
                shifted[j] += gamma * alpha[j]
            value, vertex = loss.oracle(shifted, y)
            gap = weight * value
            inner = 0.0
            for j in range(m):
                inner += shifted[j] * alpha[j]
            gap += inner
            gaps[i] = gap
            order.saw(i, gap)
            if atoms is not None:
                corner = atoms.put(i, vertex, y)
        gain, limit = gap, 1.0
        if kind != "bcfw":
            away = atoms.highest(i, shifted, y)
        delta = [0.0] * m
        if kind == "pairwise":
            gain = weight * (atoms.height(away, shifted, y) - atoms.height(corner, shifted, y))
            limit = atoms.get_weight(i, away)
            atoms.add(corner, weight, delta, y)
            atoms.add(away, -weight, delta, y)
        else:
            if kind == "away":
                away_gain = weight * atoms.height(away, shifted, y) - inner
                share = atoms.get_weight(i, away)
                if away_gain > gap and share < 1.0:
                    leaves, gain, limit = True, away_gain, share / (1.0 - share)
            if leaves:
                delta = list(alpha)
                atoms.add(away, -weight, delta, y)
            elif atoms is None:
                delta = [weight * vertex[j] - alpha[j] for j in range(m)]
            else:
                delta = [-a for a in alpha]
                atoms.add(corner, weight, delta, y)
        if average is not None:
            average.steps += 1
        norm = 0.0
        for j in classes:
            norm += delta[j] * delta[j]
        if norm == 0.0 or gain <= 0.0:
            continue
        curvature = (samples.sqnorm[i] / lam_n + gamma) * norm
        t = gain / curvature if gain < limit * curvature else limit
        if kind == "bcfw":
            if caching:
                atoms.tidy(i, False)
            change = [0.0] * m
            for j in classes:
                change[j] = t * delta[j]
                alpha[j] += change[j]
        else:
            move_weights(atoms, i, corner, away, leaves, kind == "pairwise", t, limit)
            new = atoms.point(i, weight, y, m)
            change = [new[j] - alpha[j] for j in range(m)]
            alpha = new
        dual[i] = alpha
        samples.update([c / lam_n for c in change], weights)
        if average is not None:
            average.add(samples, i, change, lam_n)
    return calls, hits
