"""Prediction against SciPy's product X @ W, which computes the scores alone.

    FASTMC_DATA=folder python benchmarks/predict.py [--repeats 15] [--threads 1 2] [--data NAME ...]

Test rows, as the files have them; W of random numbers. All alternate within the run; the least time
counts. `predict` and `top 5` are whole calls, checks of X included. Dense sets are measured as arrays
too, where the product is BLAS's, on one thread.
"""
import argparse
import os
import pathlib
import sys

from _shared import DENSE, header, seconds

import numpy as np
import scipy.sparse as sp

import fastmc

DATA = ["news20_bydate_tfidf", "sector_scale", "clinc150_tfidf", "mnist10k"]


def load(name):
    """The test rows as CSR and the number of classes."""
    if "FASTMC_DATA" not in os.environ:
        sys.exit("the environment variable FASTMC_DATA must name the folder of data sets")
    X, y = fastmc.load_svmlight(pathlib.Path(os.environ["FASTMC_DATA"]) / f"{name}.test.svm.bz2")
    return sp.csr_matrix(X), len(np.unique(y))


def compare(name, layout, X, n_classes, threads, repeats):
    weights = np.random.default_rng(0).normal(size=(X.shape[1], n_classes))
    model, k = fastmc.Model(weights, np.arange(n_classes)), min(5, n_classes)
    calls = {("X @ W", 1): lambda: X @ weights}
    for n in threads:
        calls |= {("decision_function", n): lambda n=n: model.decision_function(X, n_threads=n),
                  ("predict", n): lambda n=n: model.predict(X, n_threads=n),
                  (f"top {k}", n): lambda n=n: model.predict_topk(X, k, n_threads=n)}
    times = {key: [] for key in calls}
    for turn in range(repeats):
        for key in sorted(calls, reverse=turn % 2):
            times[key].append(seconds(calls[key]))
    product = min(times["X @ W", 1])
    for (what, n), all_times in times.items():
        print(f"{name:22}{layout:7}{n_classes:4}  {what:18}{n:8}{1e3 * min(all_times):9.2f}"
              f"{min(all_times) / product:7.2f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("--data", nargs="+", default=DATA, help="names of data sets")
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2], help="numbers of threads")
    parser.add_argument("--repeats", type=int, default=15)
    options = parser.parse_args()
    if options.repeats < 1 or min(options.threads) < 1:
        parser.error("--repeats and --threads must be at least 1")
    print(*header(), sep="\n")
    print(f"\nleast of {options.repeats}")
    print(f"{'data':22}{'layout':7}{'m':>4}  {'what':18}{'threads':>8}{'ms':>9}{'ratio':>7}")
    for name in options.data:
        X, n_classes = load(name)
        compare(name, "csr", X, n_classes, options.threads, options.repeats)
        if X.nnz > DENSE * X.shape[0] * X.shape[1]:
            compare(name, "dense", X.toarray(), n_classes, options.threads, options.repeats)


if __name__ == "__main__":
    main()
