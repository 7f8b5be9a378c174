"""Cross-validation: stratified folds, predictions by models of the other folds, accuracies by C."""
import contextlib
from collections import namedtuple

import numpy as np

from fastmc._model import Model, check_k, own_ranks, positions
from fastmc._path import path
from fastmc._problem import check_matrix, squared_row_norms
from fastmc._progress import Progress
from fastmc._train import train

# Relative gap of the paths: on texts, smaller ones hardly change the accuracies and cost more.
EPS = 0.3
# The largest C of a search times the mean of ||x||^2. Beyond it models of texts get worse again.
LARGEST = 16.0

PathScores = namedtuple("PathScores", "Cs accuracy topk_accuracy")
PathScores.__doc__ = """Accuracies of models of many C on held-out data.

Cs : ndarray, shape (n_Cs,)
    Ascending.
accuracy, topk_accuracy : ndarray, shape (n_splits, n_Cs)
    Fractions of the held-out samples; NaN where a budget ended a path before that C.
"""


def stratified_folds(y, n_folds, rng):
    """The fold of each sample: the shuffled rows of one class after the other, dealt out in turn.

    Folds differ by at most one in size, and in the count of any class.
    """
    rows = np.concatenate([rng.permutation(np.flatnonzero(y == label)) for label in np.unique(y)])
    fold = np.empty(len(y), dtype=np.int64)
    fold[rows] = np.arange(len(y)) % n_folds
    return fold


def splits_of(fold):
    """(training rows, held-out rows) of each fold."""
    return [(np.flatnonzero(fold != number), np.flatnonzero(fold == number))
            for number in np.unique(fold)]


def cross_predict(X, y, fold, k, options):
    """The k best labels of each sample by a model of the other folds, shape (n_samples, k).

    `options` are those of `fastmc.train`. Where the other folds lack a class, its samples are
    predicted wrong; where they have one class only, that is the prediction (k must be 1 then).
    """
    ranked = np.empty((len(y), k), dtype=y.dtype)
    for rows, test in shown(splits_of(fold), options.get("verbose", 0)):
        classes = np.unique(y[rows])
        if len(classes) == 1:
            ranked[test] = classes[0]
        else:
            model = train(X[rows], y[rows], **fold_options(rows, y, options))
            ranked[test] = model.predict_topk(X[test], k)
    return ranked


def path_scores(X, y, splits, Cs=None, *, C_max=None, top=1, eps=EPS, **options):
    """Accuracies for every C by one regularization path on each training part.

    Parameters
    ----------
    X : CSR matrix or array, shape (n_samples, n_features)
    y : ndarray, shape (n_samples,)
    splits : iterable of (training rows, held-out rows)
        Arrays of row numbers.
    Cs : array-like or None
        Values of C. None: C_max and its halves, down to where all paths begin; no model of a
        smaller C predicts otherwise.
    C_max : float or None
        The largest C if Cs is None; None takes `largest_C(X)`.
    top : int
        The k of the top-k accuracy.
    eps : float
        Relative gap that each of the models is certified to.
    **options
        As for `fastmc.path`; costs and weights are those of all samples and classes.

    Returns
    -------
    PathScores
        Held-out labels that a training part lacks count as wrong; where it has one class only,
        that is predicted (`top` must be 1 then).

    Raises
    ------
    ValueError
        As `fastmc.path`.
    """
    if Cs is None:
        largest, ascending = largest_C(X, options.get("bias")) if C_max is None else C_max, None
    else:
        ascending = np.unique(np.asarray(Cs, dtype=np.float64))
        largest = ascending[-1]
    curves = [_curve(X, y, rows, test, ascending, largest, top, eps, options)
              for rows, test in shown(splits, options.get("verbose", 0))]
    longest = max(curve.shape[1] for curve in curves)
    # A path that begins later than others has the same predictions below.
    curves = [np.pad(curve, ((0, 0), (longest - curve.shape[1], 0)), "edge") for curve in curves]
    if ascending is None:
        ascending = halves(largest, longest)
    return PathScores(ascending, *np.stack(curves, axis=1))


def best_C(scores):
    """(C, mean accuracy): the smallest C of the highest mean accuracy over all splits.

    NaN and NaN if budgets ended the paths before any C.
    """
    mean = scores.accuracy.mean(axis=0)
    if np.isnan(mean).all():
        return np.nan, np.nan
    at = np.nanargmax(mean)
    return float(scores.Cs[at]), float(mean[at])


def largest_C(X, bias=None):
    """The largest C that a search tries: a power of two that fits the scale of the data."""
    mean = squared_row_norms(check_matrix(X)).mean() + (bias or 0.0) ** 2
    return 2.0 ** np.round(np.log2(LARGEST / mean)) if 0 < mean < np.inf else LARGEST


def halves(largest, count):
    """`count` numbers up to the largest, each the double of the last."""
    return largest * 2.0 ** np.arange(1 - count, 1)


def shown(splits, verbose):
    """The splits, with progress."""
    splits = list(splits)
    with contextlib.closing(Progress(verbose, len(splits), "fold")) as progress:
        for split in splits:
            yield split
            progress.show("")


def _curve(X, y, rows, test, Cs, largest, top, eps, options):
    """Top-1 and top-k accuracy of one split for each C, shape (2, n_Cs)."""
    classes = np.unique(y[rows])
    if len(classes) == 1:
        return np.full((2, 1 if Cs is None else len(Cs)), np.mean(y[test] == classes[0]))
    check_k(top, len(classes))
    n_samples = len(rows)
    found = path(X[rows], y[rows], eps, 1.0 / (largest * n_samples), **fold_options(rows, y, options))
    if Cs is None:
        # The first is at or below the C where the path begins.
        Cs = halves(largest, 1 + max(0, int(np.ceil(np.log2(largest / found.C[0])))))
    curve, own, last = np.full((2, len(Cs)), np.nan), positions(y[test], classes), None
    for at, lam in enumerate(1.0 / (Cs * n_samples)):
        if lam >= found.lam_min:
            point = found.point_at(lam)
            if point is not last:
                # W alone predicts; models of the path would have their duals made.
                model, last = Model(point.weights(), classes, bias=options.get("bias") or 0.0), point
                before = own_ranks(model.decision_function(X[test]), own)
            curve[:, at] = np.mean(before < 1), np.mean(before < top)
    return curve


def fold_options(rows, y, options):
    """The options with the costs and weights of a part of the samples and its classes."""
    options, all_classes, classes = dict(options), np.unique(y), np.unique(y[rows])
    if isinstance(options.get("class_weight"), dict):
        # Labels of no sample at all stay, for the warning that train() gives.
        options["class_weight"] = {
            label: weight for label, weight in options["class_weight"].items()
            if label in classes or label not in all_classes}
    if options.get("cost") is not None:
        cost, present = np.asarray(options["cost"]), np.isin(all_classes, classes)
        kept = present if len(cost) == len(all_classes) else rows
        options["cost"] = cost[kept][:, present]
    if options.get("sample_weight") is not None:
        options["sample_weight"] = np.asarray(options["sample_weight"])[rows]
    return options
