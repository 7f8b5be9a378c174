"""The two sweeps of a batch Frank-Wolfe iteration in plain Python: the mirror of `fastmc._fw`.

An iteration keeps the scores S = X W(A) of the current dual A. It finds the corners U and
W(U) in one sweep, X W(U) in another; then S, W and A all move by the same step,
e.g. W <- W + step (W(U) - W), with no further look at X. With Delta = U - A,

    step = -sum_i <Delta_i, c_i + st_i> / (lambda n ||W(Delta)||^2 + sum_i gamma_i ||Delta_i||^2)

(Tajima et al., equations 2.20 and 2.26; st_i = s_i + gamma_i alpha_i, plus where the paper's
2.24 prints minus), and lambda n ||W(Delta)||^2 = sum_i <Delta_i, (X W(Delta))_i> needs no
sum over W.
"""


def fw_vertices(samples, loss, scores, dual, gaps, vertices, weights, start, stop, lam_n, smoothing,
                subgradient):
    """Corners u_i of rows start..stop-1, and W(U) += 1/(lambda n) sum_i x_i u_i^T.

    Parameters
    ----------
    samples : Samples
    loss : Loss
    scores, dual : ndarray, shape (n_samples, n_classes)
        S and A.
    gaps : ndarray, shape (n_samples,)
        Set to omega_i Phi(st_i) + <c_i + st_i, alpha_i>.
    vertices : ndarray, shape (n_samples, n_classes)
        U; the rows are overwritten.
    weights : ndarray, shape (n_features, n_classes)
        W(U), added to.
    start, stop : int
    lam_n, smoothing : float
    subgradient : bool
        u_i is the negative gradient of the (smoothed) loss at s_i, as the projected gradient
        method needs it, not the oracle's corner at st_i. Both are the same without smoothing.

    Returns
    -------
    float
        Sum of the gaps, which is -sum_i <Delta_i, c_i + st_i> for the oracle's corners.
    """
    m = samples.n_classes
    total = 0.0
    for i in range(start, stop):
        weight, label = samples.weight[i], samples.label[i]
        if weight == 0.0:
            continue
        gamma = smoothing / weight
        alpha = dual[i].tolist()
        shifted = scores[i].tolist()
        samples.add_cost(i, shifted)
        vertex = None
        if subgradient and gamma > 0.0:
            vertex = loss.project([-s / gamma for s in shifted], label, weight)
        for j in range(m):
            shifted[j] += gamma * alpha[j]
        value, corner = loss.oracle(shifted, label)
        gap = weight * value
        for j in range(m):
            gap += shifted[j] * alpha[j]
        gaps[i] = gap
        total += gap
        if vertex is None:
            vertex = [weight * c for c in corner]
        vertices[i] = vertex
        samples.load(i)
        samples.update([v / lam_n for v in vertex], weights)
    return total


def fw_scores(samples, scores, dual, vertices, weights, vertex_scores, start, stop, smoothing):
    """X W(U) for rows start..stop-1.

    Parameters
    ----------
    samples, scores, dual, vertices, weights, start, stop, smoothing
        As in `fw_vertices`.
    vertex_scores : ndarray, shape (n_samples, n_classes)
        X W(U); the rows are overwritten.

    Returns
    -------
    curvature : float
        Sum of <Delta_i, (X W(Delta))_i> + gamma_i ||Delta_i||^2.
    """
    curvature = 0.0
    for i in range(start, stop):
        samples.load(i)
        row = samples.scores(weights)
        vertex_scores[i] = row
        if samples.weight[i] == 0.0:
            continue
        gamma = smoothing / samples.weight[i]
        for j, (s, a, u) in enumerate(zip(scores[i].tolist(), dual[i].tolist(), vertices[i].tolist())):
            delta = u - a
            curvature += delta * ((row[j] - s) + gamma * delta)
    return curvature
