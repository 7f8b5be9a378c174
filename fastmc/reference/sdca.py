"""Exact block maximisation in plain Python: the mirror of `fastmc._sdca`."""


def sdca_pass(samples, loss, weights, dual, order, lam_n, smoothing):
    """Maximise the dual exactly over the block of each sample in `order`, in turn.

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
    order : ndarray of intp
        Sample numbers to visit; their weights must be positive.
    lam_n : float
        lambda n = 1/C.
    smoothing : float
        The Moreau parameter gamma.

    Returns
    -------
    gap, risk : float
        Sums over the visits, before each step, of omega_i Phi(st_i) + <c_i + st_i, alpha_i>
        (an upper bound of the block gap) and omega_i Phi(st_i), st_i = s_i + gamma_i alpha_i.
    """
    m = samples.n_classes
    gap = risk = 0.0
    for i in order.tolist():
        weight, label = samples.weight[i], samples.label[i]
        q = samples.sqnorm[i] / lam_n
        gamma = smoothing / weight
        alpha = dual[i].tolist()
        samples.load(i)
        scores = samples.scores(weights)
        samples.add_cost(i, scores)
        shifted = [scores[j] + gamma * alpha[j] for j in range(m)]
        value = weight * loss.oracle(shifted, label)[0]
        risk += value
        for j in range(m):
            value += shifted[j] * alpha[j]
        gap += value
        new = loss.block_max(scores, label, alpha, weight, q, gamma)
        dual[i] = new
        coef = [(new[j] - alpha[j]) / lam_n for j in range(m)]
        if any(c != 0.0 for c in coef):
            samples.update(coef, weights)
    return gap, risk
