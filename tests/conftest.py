"""Fixtures that several test modules share."""
import csv
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

import fastmc
from fastmc import _vector

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"

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


def pytest_configure():
    """Let Ctrl-C reach the programs that tests start, also where a shell started these in the background."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_report_header():
    """Which build is under test, and that it is the one that PYTHONPATH names."""
    place = Path(fastmc.__file__).resolve().parent
    wanted = os.environ.get("PYTHONPATH", "").split(os.pathsep)[0]
    if wanted and Path(wanted).resolve() != place.parent:
        raise pytest.UsageError(f"PYTHONPATH={wanted} asks for another fastmc than that in {place}")
    return f"fastmc: {place}"


@pytest.fixture(params=_vector.supported())
def instruction_set(request):
    """Runs the test with the loops of one instruction set."""
    before = _vector.in_use()
    _vector.use(request.param)
    yield request.param
    _vector.use(before)


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
def assert_certified():
    """A function that compares the certificate of a model with the one found from its W and A.

    Its dual may be less by the rounding of W, squared: 2e-11 of the primal at the most seen where the passes
    were in float32.
    """
    def compare(model, found):
        assert model.certificate.primal == pytest.approx(found.primal, rel=1e-12)
        dual, slack = model.certificate.dual, found.primal
        assert found.dual - 1e-10 * slack <= dual <= found.dual + 1e-12 * slack
        assert model.certificate.gap == model.certificate.primal - model.certificate.dual
        assert model.certificate.relative_gap == model.certificate.gap / model.certificate.primal
    return compare


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


@pytest.fixture(scope="session")
def made_data(tmp_path_factory):
    """A folder with a sparse and a dense data set, made up: 7 noisy clusters."""
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(7, 12))
    for name, kept in (("made_sparse", 0.1), ("made_dense", 1.0)):
        for split, n in (("train", 140), ("test", 70)):
            y = np.arange(n) % 7
            X = centres[y] + rng.normal(size=(n, 12))
            X[rng.random(X.shape) > kept] = 0.0
            fastmc.dump_svmlight(X, y, folder / f"{name}.{split}.svm.bz2")
    return folder


@pytest.fixture
def run_benchmark(made_data):
    """A function that runs a benchmark on the made-up data and returns what it prints."""
    def run_script(script, *options):
        # The script must find the fastmc that is tested here, wherever it stands.
        package = str(Path(fastmc.__file__).parents[1])
        environment = dict(os.environ, FASTMC_DATA=str(made_data), PYTHONPATH=package)
        command = [sys.executable, str(BENCHMARKS / script), *options]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        for line in ("command: " + script, "machine: ", "date: ", "versions: fastmc "):
            assert line in done.stdout
        return done.stdout
    return run_script


@pytest.fixture
def read_results():
    """A function that reads the rows of a result file, numbers as floats; its header must be there."""
    def read(path):
        lines = path.read_text().splitlines()
        assert [line.split(":")[0] for line in lines[:4]] == ["# command", "# machine", "# date", "# versions"]
        rows = list(csv.DictReader(lines[4:]))
        words = ("dataset", "solver", "setting", "part")
        return [{key: value if key in words else float(value) for key, value in row.items()} for row in rows]
    return read


@pytest.fixture(scope="session")
def some_digits(digits):
    """300 digits with sample weights, zeros among them, and costs of both shapes."""
    X, y = digits
    rng = np.random.default_rng(5)
    rows = rng.permutation(len(y))[:300]
    cost = np.abs(np.arange(10.0)[:, None] - np.arange(10)) / 3
    costs = rng.integers(0, 4, size=(300, 10)) / 2.0
    costs[np.arange(300), y[rows]] = 0.0
    weight = rng.choice([0.0, 0.5, 1.0, 2.0], size=300)
    return SimpleNamespace(X=X[rows], y=y[rows], weight=weight, cost=cost, costs=costs)
