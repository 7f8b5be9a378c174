"""The scores of rows, and the classes that they rank best: the mirror of `fastmc._predict`."""
import math

import numpy as np


def scores(samples, weights, start, out):
    """s_i = W^T x_i for as many rows as `out` has, from row `start` on, the bias included, written into `out`.

    A score depends on its own row alone and is summed in float64 in the order of the row's non-zeros: it does
    not matter which other rows there are, and zeros that are stored change nothing. The kernel takes several
    dense rows at once, so that each weight is fetched once for all of them; the sums are the same.

    Parameters
    ----------
    samples : Samples
        Labels, sample weights and costs are of no matter.
    weights : ndarray of float32 or float64, shape (n_features, stride)
    start : int
    out : ndarray of float64, shape (rows, stride)
    """
    weights = weights.astype(np.float64)
    for i, row in enumerate(out, start):
        samples.load(i)
        row[:] = samples.scores(weights)


def rank(scores, out):
    """The k classes of the largest scores of every row, best first, written into `out`.

    Of equal scores the lowest class comes first. NaN, from scores that overflow, ranks as -inf. The
    order is total, so that it does not matter how it is found: the kernel keeps the classes that reach a
    lower bound of the k-th largest score and takes k times the best one off a heap of them.

    Parameters
    ----------
    scores : ndarray of float64, shape (n_samples, n_classes)
    out : ndarray of int64, shape (n_samples, k)
        1 <= k <= n_classes.
    """
    for row, best in zip(scores.tolist(), out):
        keys = [(-s, j) if s == s else (math.inf, j) for j, s in enumerate(row)]
        best[:] = [j for _, j in sorted(keys)[:len(best)]]
