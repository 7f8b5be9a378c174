"""Primal, dual and gap from their definitions, in float64 NumPy and SciPy.

This module shares no code with the kernels: it is the certificate of the dense solvers, and what
the tests compare that of the default solver with. With weights W (n_features, n_classes), scores
s_i = W^T x_i, costs c_i and a feasible dual A (n_samples, n_classes), dense or sparse, with rows
alpha_i,

    P(W) = lambda/2 ||W||^2 + 1/n sum_i omega_i Phi_m(s_i; y_i)
    D(A) = -lambda/2 ||W(A)||^2 - 1/n sum_i [<c_i, alpha_i> + gamma_i/2 ||alpha_i||^2]
    W(A) = 1/(lambda n) X^T A,   gamma_i = gamma / omega_i

and P(W) - P* <= P(W) - D(A) for any W and any feasible A (Tajima et al., section 2.1).
"""
from collections import namedtuple

import numpy as np
import scipy.sparse as sp

Certificate = namedtuple("Certificate", "primal dual gap relative_gap")
Certificate.__doc__ = """Primal and dual objective and how far the primal can be from the optimum.

primal, dual : float
gap : float
    primal - dual, an upper bound of primal - optimum.
relative_gap : float
    gap / primal.
"""

# Scores handled at a time, so that all n x m never exist at once.
BLOCK = 2**19


def combine(primal, dual):
    """Certificate of the best primal and the best dual value, which need not belong together."""
    primal, dual = float(primal), float(dual)
    gap = primal - dual
    return Certificate(primal, dual, gap, gap / primal if primal > 0 else gap)


def certificate(problem, spec, weights, dual, lam, smoothing=0.0):
    """Certificate of `weights` by means of the feasible `dual`."""
    return combine(primal_value(problem, spec, weights, lam, smoothing),
                   dual_value(problem, dual, lam, smoothing))


def primal_value(problem, spec, weights, lam, smoothing=0.0):
    """P(W)."""
    risk = 0.0
    for rows in row_blocks(problem):
        augmented = problem.augmented(weights, rows)
        phi = loss_values(spec, augmented, problem.label[rows], smoothing)
        risk += float(np.dot(problem.weight[rows], phi))
    return 0.5 * lam * squared_norm(weights) + risk / problem.n_samples


def dual_value(problem, dual, lam, smoothing=0.0):
    """D(A)."""
    linear = 0.0
    for rows in row_blocks(problem):
        alpha = dense_rows(dual, rows)
        linear += float(np.vdot(problem.costs(rows), alpha))
        if smoothing > 0.0:
            weight = problem.weight[rows]
            squares = np.einsum("ij,ij->i", alpha, alpha)
            used = weight > 0.0
            linear += 0.5 * smoothing * float(np.sum(squares[used] / weight[used]))
    norm = squared_norm(problem.weights_of(dual, lam))
    return -0.5 * lam * norm - linear / problem.n_samples


def block_gaps(problem, spec, weights, dual, smoothing=0.0):
    """The gap of each sample, g_i >= 0; their mean is the duality gap where W = W(A).

    g_i = omega_i Phi_m(s_i) + <s_i + c_i, alpha_i> + gamma_i/2 ||alpha_i||^2.
    """
    return losses_and_gaps(problem, spec, weights, dual, smoothing)[1]


def losses_and_gaps(problem, spec, weights, dual, smoothing=0.0):
    """omega_i Phi_m(s_i) and g_i of each sample, from one product X W."""
    losses, gaps = np.empty((2, problem.n_samples))
    for rows in row_blocks(problem):
        augmented = problem.augmented(weights, rows)
        weight, alpha = problem.weight[rows], dense_rows(dual, rows)
        losses[rows] = weight * loss_values(spec, augmented, problem.label[rows], smoothing)
        gaps[rows] = losses[rows] + np.einsum("ij,ij->i", augmented, alpha)
        if smoothing > 0.0:
            squares = np.einsum("ij,ij->i", alpha, alpha)
            gaps[rows] += 0.5 * smoothing * squares / np.where(weight > 0, weight, np.inf)
    return losses, gaps


def loss_values(spec, augmented, label, smoothing=0.0):
    """Phi (smoothing 0) or its Moreau envelope Phi_m for rows of scores plus costs.

    The envelope is min over z of Phi(z) + ||s - z||^2 / (2 gamma), taken at z = s + gamma alpha*
    with alpha* the projection of -(s + c) / gamma. Any z gives an upper bound, so the value is
    safe whatever the projection returns.
    """
    if smoothing == 0.0:
        return plain_loss(spec, augmented, label)
    dual = spec.make().project_rows(augmented / -smoothing, label)
    squares = np.einsum("ij,ij->i", dual, dual)
    return plain_loss(spec, augmented + smoothing * dual, label) + 0.5 * smoothing * squares


def plain_loss(spec, augmented, label):
    """Phi from its definition: margins sorted per row, then the sum over the ranks."""
    margins = augmented - np.take_along_axis(augmented, label[:, None], axis=1)
    ranks = spec.n_ranks
    if spec.family == "TopKLoss" and not spec.own_class:
        np.put_along_axis(margins, label[:, None], -np.inf, axis=1)
    if ranks == 1:
        top = margins.max(axis=1, keepdims=True)
    else:
        top = -np.sort(-np.partition(margins, -ranks, axis=1)[:, -ranks:], axis=1)
    rho = np.array(spec.rho[:ranks])
    if spec.family == "TopKLoss":
        return np.maximum(top @ rho, 0.0)
    if spec.family == "UsunierLoss":
        return np.maximum(top, 0.0) @ rho
    raise NotImplementedError(spec.family)


def infeasibility(problem, spec, dual):
    """The largest violation of the dual constraints over all samples, relative to omega_i.

    With beta = -alpha on the wrong classes sorted, B_r the sum of its r largest and R_r the sum
    of the r largest rank weights, the Usunier type asks B_r <= omega R_r. The top-k type asks
    for a scale t <= 1 with B_r <= t omega R_r, and sums of the smallest entries no less than
    the ranks leave them.
    """
    worst = 0.0
    m = problem.n_classes
    for rows in row_blocks(problem):
        alpha, label = dense_rows(dual, rows), problem.label[rows]
        weight = problem.weight[rows][:, None]
        unit = np.where(weight > 0, weight, 1.0)
        others = np.arange(m) != label[:, None]
        beta = -alpha[others].reshape(len(label), m - 1)
        own = np.take_along_axis(alpha, label[:, None], axis=1)
        worst = max(worst, np.max(-beta / unit), np.max(np.abs(own[:, 0] - beta.sum(1)) / unit[:, 0]))
        sums = np.cumsum(-np.sort(-beta, axis=1), axis=1)
        worst = max(worst, _rank_violation(spec, sums, weight, unit))
    return float(worst)


def _rank_violation(spec, sums, weight, unit):
    total = np.cumsum(spec.rho)[:-1]
    if spec.family == "UsunierLoss":
        return np.max((sums - weight * total) / unit)
    if spec.family != "TopKLoss":
        raise NotImplementedError(spec.family)
    # The smallest scale that each upper bound asks for, and the largest that the sum allows.
    everything = sums[:, -1:]
    if spec.own_class:
        # Sums of the r smallest entries, and of the r smallest of all m ranks.
        tails = (everything - np.hstack([np.zeros_like(everything), sums[:, :-1]]))[:, ::-1]
        bound = np.cumsum(spec.rho[::-1])[:-1]
    else:
        tails, bound = everything, total[-1:]
    needed = np.max(sums / total, axis=1, keepdims=True)
    violation = np.max((needed - weight) / unit)
    return max(violation, np.max((needed * bound - tails) / unit))


def dense_rows(dual, rows):
    """Some rows of a dense or sparse dual as a dense array."""
    return dual[rows].toarray() if sp.issparse(dual) else dual[rows]


def squared_norm(weights):
    # Not np.vdot: BLAS would start threads, which wait on the cores that passes need.
    flat = weights.reshape(-1)
    return float(np.einsum("i,i->", flat, flat))


def row_blocks(problem):
    count = max(1, BLOCK // problem.n_classes)
    for start in range(0, problem.n_samples, count):
        yield slice(start, min(start + count, problem.n_samples))
