"""Cross-validation: stratified folds, and labels predicted by models of the other folds."""
import numpy as np

from fastmc._train import train


def stratified_folds(y, n_folds, rng):
    """The fold of each sample: the shuffled rows of one class after the other, dealt out in turn.

    Folds differ by at most one in size, and in the count of any class.
    """
    rows = np.concatenate([rng.permutation(np.flatnonzero(y == label)) for label in np.unique(y)])
    fold = np.empty(len(y), dtype=np.int64)
    fold[rows] = np.arange(len(y)) % n_folds
    return fold


def cross_predict(X, y, fold, k, options):
    """The k best labels of each sample by a model of the other folds, shape (n_samples, k).

    `options` are those of `fastmc.train`. Where the other folds lack a class, its samples are
    predicted wrong; where they have one class only, that is the prediction (k must be 1 then).
    """
    ranked = np.empty((len(y), k), dtype=y.dtype)
    for number in np.unique(fold):
        rows, test = np.flatnonzero(fold != number), np.flatnonzero(fold == number)
        classes = np.unique(y[rows])
        if len(classes) == 1:
            ranked[test] = classes[0]
        else:
            model = train(X[rows], y[rows], **fold_options(options, np.unique(y), classes))
            ranked[test] = model.predict_topk(X[test], k)
    return ranked


def fold_options(options, all_classes, classes):
    """The options with costs and weights of the classes that a fold's model has."""
    options = dict(options)
    if isinstance(options["class_weight"], dict):
        # Labels of no sample at all stay, for the warning that train() gives.
        options["class_weight"] = {
            label: weight for label, weight in options["class_weight"].items()
            if label in classes or label not in all_classes}
    if options["cost"] is not None:
        present = np.isin(all_classes, classes)
        options["cost"] = options["cost"][np.ix_(present, present)]
    return options
