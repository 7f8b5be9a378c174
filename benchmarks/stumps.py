"""The search for the best stumps of all classes against one product over the data, X.T @ U.

    FASTMC_DATA=folder python benchmarks/stumps.py [--repeats 9] [--data NAME ...]

Data as the files have them, unscaled. Both alternate within the run, on one thread; the least
time counts. Dense sets are measured as arrays too, against NumPy's U.T @ X.
"""
import argparse
import os
import pathlib
import sys

from _shared import DENSE, header, seconds

import numpy as np
import scipy.sparse as sp

import fastmc
from fastmc.stumps import Stumps

DATA = ["mnist10k", "news20_bydate_counts"]


def load(name):
    """X as CSR and the number of classes."""
    if "FASTMC_DATA" not in os.environ:
        sys.exit("the environment variable FASTMC_DATA must name the folder of data sets")
    folder = pathlib.Path(os.environ["FASTMC_DATA"])
    X, y = fastmc.load_svmlight(folder / f"{name}.train.svm.bz2")
    return sp.csr_matrix(X), len(np.unique(y))


def compare(name, layout, X, n_classes, repeats):
    U = np.random.default_rng(0).normal(size=(X.shape[0], n_classes))
    made = []
    preparation = seconds(lambda: made.append(Stumps(X)))
    # The transposed product is the faster one for BLAS.
    product = (lambda: X.T @ U) if sp.issparse(X) else (lambda: U.T @ X)
    searches, products = [], []
    for _ in range(repeats):
        searches.append(seconds(lambda: made[0].best(U)))
        products.append(seconds(product))
    print(f"{name:24}{layout:8}{n_classes:5}{1e3 * preparation:12.0f}{1e3 * min(searches):11.2f}"
          f"{1e3 * min(products):12.2f}{min(searches) / min(products):7.2f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("--data", nargs="+", default=DATA, help="names of data sets")
    parser.add_argument("--repeats", type=int, default=9)
    options = parser.parse_args()
    if options.repeats < 1:
        parser.error("--repeats must be at least 1")
    print(*header(), sep="\n")
    print(f"\none search for all classes, least of {options.repeats}")
    print(f"{'data':24}{'layout':8}{'K':>5}{'prepare ms':>12}{'search ms':>11}{'product ms':>12}{'ratio':>7}")
    for name in options.data:
        X, n_classes = load(name)
        compare(name, "csr", X, n_classes, options.repeats)
        if X.nnz > DENSE * X.shape[0] * X.shape[1]:
            compare(name, "dense", X.toarray(), n_classes, options.repeats)


if __name__ == "__main__":
    main()
