"""Fixtures that several test modules share."""
import os
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

# Every loss, both ways the own class can count; k and rho fit 4 classes or more.
LOSSES = {
    "maxhinge": {},
    "structured": {},
    "topk": {"k": 2},
    "topk, own out": {"k": 3, "own_class": False},
    "usunier": {"k": 3},
    "wtopk": {"rho": [0.5, 0.3, 0.1]},
    "wtopk, own out": {"rho": [0.6, 0.3], "own_class": False},
    "wusunier": {"rho": [3.0, 2.0, 2.0]},
}


@pytest.fixture(params=LOSSES)
def loss_options(request):
    """Arguments of train() that choose a loss; "structured" needs a cost besides."""
    return {"loss": request.param.split(",")[0], **LOSSES[request.param]}


@pytest.fixture
def draw():
    """A function that draws a small problem: X, y, weight (zeros too), cost, cost per sample."""
    def problem(n=20, m=4, d=6, seed=0, layout="csr", dtype=np.float64, index=np.int32, empty=2):
        rng = np.random.default_rng([seed, n, m, d])
        X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.5)
        X[rng.permutation(n)[:empty]] = 0.0
        X = X.astype(dtype)
        if layout == "csr":
            X = sp.csr_array(X)
            X.indptr, X.indices = X.indptr.astype(index), X.indices.astype(index)
        # Every class is there, in no order.
        y = rng.permutation(np.arange(n) % m)
        costs = rng.integers(0, 4, size=(n, m)) / 2.0
        costs[np.arange(n), y] = 0.0
        cost = rng.integers(1, 4, size=(m, m)) / 2.0
        np.fill_diagonal(cost, 0.0)
        return SimpleNamespace(X=X, y=y, weight=rng.permutation(np.arange(n) % 4).astype(float),
                               cost=cost, costs=costs)
    return problem


@pytest.fixture(scope="session")
def digits():
    """scikit-learn's digits divided by 16: X (1797, 64), y."""
    datasets = pytest.importorskip("sklearn.datasets")
    X, y = datasets.load_digits(return_X_y=True)
    return X / 16, y


@pytest.fixture(scope="session")
def data_dir():
    """The folder of the larger data sets."""
    if not os.environ.get("FASTMC_DATA"):
        pytest.skip("FASTMC_DATA is not set")
    return Path(os.environ["FASTMC_DATA"])
