"""W(A), and the objective sample by sample, in plain Python: the mirror of `fastmc._objective`."""
import numpy as np


def add_rows(samples, rows, weights, lam_n, first):
    """Some rows of W, from `first` on: W += 1/(lambda n) sum_i x_i alpha_i^T for the lists of A, in place.

    Parameters
    ----------
    samples : Samples
    rows : DualRows
    weights : ndarray of float64, shape (number of rows, stride)
        Those rows alone: they need not all be in memory, and threads can share them out.
    lam_n : float
        lambda n.
    first : int
    """
    for i in range(samples.n_samples):
        if not rows.now[i]:
            continue
        coef, own = [0.0] * weights.shape[1], 0.0
        for j, beta in rows.now[i]:
            coef[j] = -beta / lam_n
            own += beta
        coef[samples.label[i]] = own / lam_n
        samples.load_columns(i, first, first + len(weights))
        samples.update(coef, weights)


def take_signed(samples, rows, signs, out, lam_n, first):
    """Subtract the product of W(A) with `signs`, one number a class, for the features from `first` on.

    Parameters
    ----------
    samples : Samples
    rows : DualRows
        The lists of A.
    signs : ndarray, shape (n_classes,) or more
    out : ndarray
        One number for each of some features, changed in place.
    lam_n : float
        lambda n = 1/C.
    first : int
        The feature that out[0] belongs to.
    """
    for i in range(samples.n_samples):
        value = 0.0
        for j, beta in rows.now[i]:
            value += beta * (float(signs[samples.label[i]]) - float(signs[j]))
        if value != 0.0:
            value /= lam_n
            samples.load_columns(i, first, first + len(out))
            for x, feature in zip(samples.x, samples.feature):
                out[feature] -= value * x


def objective(samples, loss, rows, weights, smoothing, start, stop, losses, gains, inner, margins):
    """What each sample adds to primal and dual, written into arrays of shape (n_samples,).

    Parameters
    ----------
    samples : Samples
    loss : Loss
    rows : DualRows
        The lists of A.
    weights : ndarray of float32 or float64, shape (n_features, stride)
    smoothing : float
        The Moreau parameter gamma.
    start, stop : int
        The samples to do.
    losses : ndarray
        omega_i Phi_m(s_i), the envelope of Phi for smoothing > 0: Phi(z) + gamma/2 ||alpha*||^2 at
        z = s + gamma alpha*, alpha* the projection of -(s + c) / gamma. Any z gives an upper bound.
    gains : ndarray
        -<c_i, alpha_i> - gamma_i/2 ||alpha_i||^2.
    inner : ndarray
        <s_i, alpha_i>. With it the block gap is losses + inner - gains.
    margins : ndarray
        The largest s_j + c_j of a wrong class less s_y.
    """
    wide = weights.astype(np.float64)
    for i in range(start, stop):
        samples.load(i)
        scores = samples.scores(wide)[: samples.n_classes]
        y, weight = samples.label[i], samples.weight[i]
        own = squares = 0.0
        losses[i] = gains[i] = inner[i] = 0.0
        for j, beta in rows.now[i]:
            own += beta
            squares += beta * beta
            gains[i] += beta * samples.class_cost(i, j)
            inner[i] += beta * (scores[y] - scores[j])
        if weight > 0.0:
            gains[i] -= 0.5 * (smoothing / weight) * (squares + own * own)
        samples.add_cost(i, scores)
        margins[i] = max(s for j, s in enumerate(scores) if j != y) - scores[y]
        if smoothing == 0.0 and loss.n_ranks == 1:
            losses[i] = weight * (loss.rho[0] * max(margins[i], 0.0))
        elif smoothing == 0.0:
            losses[i] = weight * loss.oracle(scores, y)[0]
        else:
            alpha = loss.project([-s / smoothing for s in scores], y)
            squares = 0.0
            for a in alpha:
                squares += a * a
            nearest = [s + smoothing * a for s, a in zip(scores, alpha)]
            losses[i] = weight * (loss.oracle(nearest, y)[0] + 0.5 * smoothing * squares)
