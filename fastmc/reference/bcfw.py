"""Block-coordinate Frank-Wolfe in plain Python: the mirror of `fastmc._bcfw`."""


def bcfw_pass(samples, loss, weights, dual, order, lam_n, smoothing,
              weights_sum=None, dual_sum=None, steps=0):
    """One Frank-Wolfe step with exact line search for each sample in `order`, in turn.

    With the corner u_i of the oracle at st_i = s_i + gamma_i alpha_i and delta = u_i - alpha_i,

        step = -<delta, c_i + st_i> / ((q_i + gamma_i) ||delta||^2)   clipped to [0, 1]

    (Osokin et al., algorithm 1, on the dual of Tajima et al., section 2.3); W = W(A) is kept.

    Parameters
    ----------
    samples, loss, weights, dual, order, lam_n, smoothing
        As in `sdca_pass`.
    weights_sum, dual_sum : ndarray or None
        V of the weighted average, shaped as weights and dual, updated in place. With K the
        number of steps made, V grows by K (K - 1) times each change, and
        W - V / (K (K + 1)) is the average of the iterates with weights proportional to their
        number.
    steps : int
        Steps made before this call.

    Returns
    -------
    gap, risk : float
        As in `sdca_pass`; the former is the sum of the block gaps seen.
    """
    m = samples.n_classes
    gap = risk = 0.0
    for i in order.tolist():
        steps += 1
        weight, label = samples.weight[i], samples.label[i]
        gamma = smoothing / weight
        alpha = dual[i].tolist()
        samples.load(i)
        shifted = samples.scores(weights)
        samples.add_cost(i, shifted)
        for j in range(m):
            shifted[j] += gamma * alpha[j]
        value, vertex = loss.oracle(shifted, label)
        value *= weight
        risk += value
        block_gap = value
        norm = 0.0
        delta = [0.0] * m
        for j in range(m):
            block_gap += shifted[j] * alpha[j]
            delta[j] = weight * vertex[j] - alpha[j]
            norm += delta[j] * delta[j]
        gap += block_gap
        if norm == 0.0 or block_gap <= 0.0:
            continue
        curvature = (samples.sqnorm[i] / lam_n + gamma) * norm
        step = block_gap / curvature if block_gap < curvature else 1.0
        dual[i] = [alpha[j] + step * delta[j] for j in range(m)]
        coef = [step * delta[j] / lam_n for j in range(m)]
        samples.update(coef, weights)
        if weights_sum is not None:
            factor = float(steps) * float(steps - 1)
            for j in range(m):
                dual_sum[i, j] += factor * (step * delta[j])
            samples.update([factor * c for c in coef], weights_sum)
    return gap, risk
