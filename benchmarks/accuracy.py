"""Top-k test errors of the losses on texts, against scikit-learn's linear classifiers.

    FASTMC_DATA=folder python benchmarks/accuracy.py [--data NAME ...] [--methods NAME ...]
    FASTMC_DATA=folder python benchmarks/accuracy.py --resplits 5 --data trec50_tfidf hwu64_tfidf

The first takes train and test as given; the second draws 75 % of the rows of both to train on, anew
for each split. C is chosen for each method on the training rows, over one grid: the smallest of the
least top-1 error in stratified cross-validation. All methods have a bias: fastmc and LinearSVC a
constant feature of 1, LogisticRegression an intercept that is not regularised. Tables are Markdown,
and CSV in benchmarks/results. Seconds are of the processor, on one thread.
"""
import argparse
import functools
import pathlib
import warnings

from _shared import LOSSES, RESULTS, Data, header, load, seconds, set_clock, write_csv

import numpy as np
import scipy.sparse as sp
import sklearn.exceptions
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

import fastmc
from fastmc._folds import PathScores, best_C, splits_of, stratified_folds
from fastmc._model import own_ranks, positions

DATA = ["trec50_tfidf", "hwu64_tfidf", "banking77_tfidf", "clinc150_tfidf", "news20_bydate_tfidf"]
RANKS = (1, 3, 5)
GRID = [0.125, 0.5, 2.0, 8.0, 32.0, 128.0]
COLUMNS = ("dataset", "split", "method", "C", "cv_error", *(f"top{k}" for k in RANKS), "seconds",
           "search_seconds", "limited")
# What says that a training ended on its limit of iterations.
LIMIT = (fastmc.ConvergenceWarning, sklearn.exceptions.ConvergenceWarning)


def ours(C, **loss):
    return functools.partial(fastmc.train, C=C, bias=1, tol=1e-2, **loss)


def linear_svc(C, **options):
    return LinearSVC(C=C, random_state=0, **options).fit


def crammer_singer(C):
    # scikit-learn only warns at max_iter here and goes on: a warning would not mean a limit.
    return linear_svc(C, multi_class="crammer_singer", tol=1e-2, max_iter=100_000)


def logistic_regression(C):
    # With the default tolerance, 1e-4, it stops earlier; with 1000 iterations errors hardly change.
    return LogisticRegression(C=C, tol=1e-5, max_iter=100).fit


# Method as written in tables: a function of C that gives a function of X and y that gives a model.
METHODS = {"maxhinge": functools.partial(ours, **LOSSES["maxhinge"])}
METHODS |= {f"{loss} k={k}": functools.partial(ours, loss=loss, k=k)
            for loss in ("topk", "usunier") for k in (3, 5)}
METHODS |= {loss: functools.partial(ours, **LOSSES[loss]) for loss in ("wtopk", "wusunier")}
METHODS |= {"LinearSVC": linear_svc,
            "LinearSVC crammer_singer": crammer_singer,
            "LogisticRegression": logistic_regression}


def splits(name, resplits):
    """(name of the split, its Data): the given one, or `resplits` drawn ones in its place."""
    data = load(name)
    if not resplits:
        yield "given", data
        return
    both = sp.vstack if sp.issparse(data.X) else np.vstack
    X, y = both([data.X, data.X_test]), np.concatenate([data.y, data.y_test])
    X = X.tocsr() if sp.issparse(X) else X
    for seed in range(resplits):
        train, test = np.split(np.random.default_rng(seed).permutation(len(y)), [3 * len(y) // 4])
        yield str(seed), Data(name, X[train], y[train], X[test], y[test])


def fit(method, C, X, y):
    """The model, the seconds of its training and whether that ended on its limit of iterations."""
    made = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        took = seconds(lambda: made.append(METHODS[method](C)(X, y)))
    return made[0], took, any(issubclass(warning.category, LIMIT) for warning in caught)


def ranks(model, X, y):
    """How many classes a model puts before the own one of each row."""
    return own_ranks(model.decision_function(X), positions(y, model.classes_))


def measure(method, data, Cs, n_folds):
    """The row of a method on a split, and the ranks of the test rows."""
    fold = stratified_folds(data.y, n_folds, np.random.default_rng(0))
    accuracy, took, limited = np.empty((n_folds, len(Cs))), 0.0, 0
    for number, (rows, held_out) in enumerate(splits_of(fold)):
        for at, C in enumerate(Cs):
            model, more, stopped = fit(method, C, data.X[rows], data.y[rows])
            accuracy[number, at] = np.mean(ranks(model, data.X[held_out], data.y[held_out]) < 1)
            took, limited = took + more, limited + stopped
    C, cv_accuracy = best_C(PathScores(np.array(Cs), accuracy, None))
    model, last, stopped = fit(method, C, data.X, data.y)
    before = ranks(model, data.X_test, data.y_test)
    return {"method": method, "C": C, "cv_error": 1.0 - cv_accuracy,
            **{f"top{k}": np.mean(before >= k) for k in RANKS},
            "seconds": last, "search_seconds": took, "limited": limited + stopped}, before


def differences(before, base, k):
    """Mean and standard error of what a method's top-k error is above that of another.

    Over the test rows of one split, else over the splits; both see the same rows.
    """
    each = [(own >= k) - 1.0 * (other >= k) for own, other in zip(before, base)]
    each = each[0] if len(each) == 1 else np.array([np.mean(one) for one in each])
    return np.mean(each), np.std(each, ddof=1) / np.sqrt(len(each))


def print_set(name, data, rows, before):
    """One line a method: errors in per cent, what they are above those of the first, seconds."""
    print(f"\n{name}: {len(data.y)} rows to train on, {len(data.y_test)} to test, "
          f"{data.X.shape[1]} features, {len(np.unique(data.y))} classes\n")
    titles = ["method", "C", "CV", *(f"top-{k}" for k in RANKS), *(f"top-{k} more" for k in RANKS),
              "s", "search s", "limited"]
    print_line(titles)
    print_line(["---"] * len(titles))
    for method in before:
        mine = [row for row in rows if row["dataset"] == name and row["method"] == method]
        Cs = sorted({row["C"] for row in mine})
        line = [method, ", ".join(f"{C:g}" for C in Cs), percent([row["cv_error"] for row in mine])]
        line += [percent([row[f"top{k}"] for row in mine]) for k in RANKS]
        for k in RANKS:
            mean, error = differences(before[method], next(iter(before.values())), k)
            line.append(f"{100 * mean:+.2f} ± {100 * error:.2f}")
        line += [f"{np.mean([row[key] for row in mine]):.2f}" for key in ("seconds", "search_seconds")]
        print_line([*line, str(sum(row["limited"] for row in mine))])


def print_line(cells):
    print("|", " | ".join(cells), "|", flush=True)


def percent(values):
    """The mean, and the standard deviation if there are several."""
    spread = f" ({100 * np.std(values, ddof=1):.2f})" if len(values) > 1 else ""
    return f"{100 * np.mean(values):.2f}{spread}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("--data", nargs="+", default=DATA, help="names of data sets")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS), help="these only")
    parser.add_argument("--resplits", type=int, default=0, help="splits drawn in place of the given one")
    parser.add_argument("--Cs", nargs="+", type=float, default=GRID, help="the grid")
    parser.add_argument("--folds", type=int, default=3, help="of the cross-validation")
    parser.add_argument("--out", type=pathlib.Path, default=RESULTS)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    table = "accuracy_resplits.csv" if options.resplits else "accuracy.csv"
    set_clock("cpu")
    print(*header(), sep="\n")
    rows = []
    for name in options.data:
        before = {method: [] for method in options.methods}
        for split, data in splits(name, options.resplits):
            for method in options.methods:
                row, own = measure(method, data, options.Cs, options.folds)
                rows.append({"dataset": name, "split": split, **row})
                before[method].append(own)
                write_csv(options.out, table, COLUMNS, rows)
        print_set(name, data, rows, before)


if __name__ == "__main__":
    main()
