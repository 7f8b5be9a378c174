"""Exact block maximisation in plain Python: the mirror of `fastmc._sdca`."""


def sdca_pass(samples, loss, weights, dual, gaps, order, start, stop, lam_n, smoothing):
    """Maximise the dual exactly over each block visited.

    With q_i = ||x_i||^2 / (lambda n) the Hessian of block i is q_i times the identity, so the
    block problem is the projection of

        v = (q_i alpha_i - s_i - c_i) / (q_i + gamma_i),   gamma_i = gamma / omega_i

    onto the feasible alpha of the sample (`Loss.block_max`); W = W(A) is kept. Crammer and
    Singer (2001) solve the block of max hinge; the losses here share one projection.

    Parameters
    ----------
    samples : Samples
    loss : Loss
    weights : ndarray of float64, shape (n_features, n_classes)
        W(A), updated in place.
    dual : ndarray of float64, shape (n_samples, n_classes)
        A, updated in place.
    gaps : ndarray of float64, shape (n_samples,)
        Set to omega_i Phi(st_i) + <c_i + st_i, alpha_i>, st_i = s_i + gamma_i alpha_i, as the visit
        sees it before its step: the block gap, or an upper bound of it with smoothing.
    order : Order
    start, stop : int
        Positions of the order to visit.
    lam_n : float
        lambda n = 1/C.
    smoothing : float
        The Moreau parameter gamma.
    """
    m = samples.n_classes
    for position in range(start, stop):
        i = order.next(position)
        weight, label = samples.weight[i], samples.label[i]
        gamma = smoothing / weight
        alpha = dual[i].tolist()
        samples.load(i)
        scores = samples.scores(weights)
        samples.add_cost(i, scores)
        shifted = [scores[j] + gamma * alpha[j] for j in range(m)]
        gap = weight * loss.oracle(shifted, label)[0]
        for j in range(m):
            gap += shifted[j] * alpha[j]
        gaps[i] = gap
        order.saw(i, gap)
        new = loss.block_max(scores, label, alpha, weight, samples.sqnorm[i] / lam_n, gamma)
        dual[i] = new
        coef = [(new[j] - alpha[j]) / lam_n for j in range(m)]
        if any(c != 0.0 for c in coef):
            samples.update(coef, weights)
