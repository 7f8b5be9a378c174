"""What the benchmarks share: one BLAS thread, the header, data sets, solvers driven by hand, output."""
import os

# Before NumPy is imported: BLAS reads these once.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import csv
import datetime
import functools
import importlib.metadata
import pathlib
import platform
import sys
import time
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

import fastmc
from fastmc._problem import Problem
from fastmc._solvers import make_solver
from fastmc.losses import make_spec

RESULTS = pathlib.Path(__file__).resolve().parent / "results"
# Rank weights of the experiments of Tajima et al., section 6.
PAPER_RHO = [max(0, 6 - j) / 15 for j in range(1, 6)]
# Loss as written in tables: arguments of make_spec and train.
LOSSES = {
    "maxhinge": {"loss": "maxhinge"},
    "topk": {"loss": "topk", "k": 5},
    "usunier": {"loss": "usunier", "k": 5},
    "wtopk": {"loss": "wtopk", "rho": PAPER_RHO},
    "wusunier": {"loss": "wusunier", "rho": PAPER_RHO},
}
# One style a line, so that pictures are readable without colour.
STYLES = ["k-o", "k--s", "k-.^", "k:v", "k-D", "k--x", "k-.+", "k:*", "k-x", "k--P"]
PAPER_NAMES = {"fw": "LSFW", "stdfw": "StdFW", "pg": "PG"}
# CPU time leaves out what other programs take from a busy machine; with one thread on an idle
# machine both are the same.
CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}
_clock = CLOCKS["wall"]
# Share of non-zero cells from which on a set is held as a dense array.
DENSE = 0.15


def add_clock_option(parser):
    parser.add_argument("--clock", choices=CLOCKS, default="wall", help="what seconds are counted")


def set_clock(name):
    global _clock
    _clock = CLOCKS[name]


def now():
    return _clock()


def header():
    """Lines that say what was run, where, when and with which versions."""
    command = " ".join([pathlib.Path(sys.argv[0]).name, *sys.argv[1:]])
    packages = ["numpy", "scipy", "scikit-learn", "liblinear-official", "matplotlib"]
    versions = ", ".join(f"{name} {version(name)}" for name in packages)
    load = f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown"
    return [f"command: {command}",
            f"machine: {processor()}, {os.cpu_count()} cores, {platform.system()}, load {load}",
            f"date: {datetime.datetime.now():%Y-%m-%d %H:%M}",
            f"versions: fastmc {fastmc.__version__}, Python {platform.python_version()}, {versions}"]


def version(package):
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "absent"


def processor():
    try:
        with open("/proc/cpuinfo") as lines:
            return next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or "unknown processor"


@dataclass
class Data:
    name: str
    X: object
    y: np.ndarray
    X_test: object
    y_test: np.ndarray

    @functools.cached_property
    def problem(self):
        return Problem(self.X, self.y)


def load(name):
    """A data set of the folder FASTMC_DATA, scaled: counts by row, dense sets by feature, mnist's pixels alike."""
    if "FASTMC_DATA" not in os.environ:
        sys.exit("the environment variable FASTMC_DATA must name the folder of data sets")
    folder = pathlib.Path(os.environ["FASTMC_DATA"])
    X, y = fastmc.load_svmlight(folder / f"{name}.train.svm.bz2")
    X_test, y_test = fastmc.load_svmlight(folder / f"{name}.test.svm.bz2")
    width = max(X.shape[1], X_test.shape[1])
    for part in (X, X_test):
        part.resize(part.shape[0], width)
    if name.endswith("_counts"):
        X, X_test = unit_rows(X), unit_rows(X_test)
    if X.nnz > DENSE * X.shape[0] * X.shape[1]:
        X, X_test = X.toarray(), X_test.toarray()
        largest = np.abs(X).max(axis=0)
        largest[largest == 0] = 1.0
        if name.startswith("mnist"):
            # By feature, a pixel that is hardly ever lit would count like any other.
            largest[:] = 255.0
        X, X_test = X / largest, X_test / largest
    return Data(name, X, y, X_test, y_test)


def unit_rows(X):
    norms = np.sqrt(X.multiply(X).sum(axis=1))
    return sp.csr_matrix(X.multiply(1.0 / np.maximum(np.asarray(norms).reshape(-1, 1), 1e-300)))


def new_solver(problem, name, spec, lam, smoothing=0.0, **options):
    """A solver at A = 0 whose passes the caller makes: nothing but passes is in its time."""
    return make_solver(name, problem, spec, lam, smoothing, **options)


def spec_of(problem, loss):
    return make_spec(n_classes=problem.n_classes, **LOSSES[loss])


def pass_seconds(solver, rng):
    """Make one pass (one iteration of the batch solvers); its seconds."""
    return seconds(lambda: [None for _ in solver.sweep(rng)])


def whole_pass_seconds(solver, rng):
    """The same of an sdca pass in which no sample rests."""
    solver.rest.wake(slice(None))
    return pass_seconds(solver, rng)


def seconds(call):
    start = now()
    call()
    return now() - start


def iteration_seconds(problem, loss, repeats, warm=10, same_points=False):
    """{solver: seconds of each iteration} of LSFW, StdFW and PG, turn by turn, lam = 1/n.

    Each goes its own way, or with `same_points` all make each iteration from where LSFW is: then they
    find the same corners, and what differs is the cost of their steps.
    """
    spec, rng = spec_of(problem, loss), np.random.default_rng(0)
    solvers = {name: new_solver(problem, name, spec, 1.0 / problem.n_samples) for name in PAPER_NAMES}
    times = {name: [] for name in solvers}
    for turn in range(warm + repeats):
        if same_points:
            for solver in solvers.values():
                for array in ("weights", "scores", "dual"):
                    getattr(solver, array)[:] = getattr(solvers["fw"], array)
        for name in sorted(solvers, reverse=turn % 2):
            times[name].append(pass_seconds(solvers[name], rng))
    # The first iterations, from W = 0, touch more memory for the first time than later ones.
    return {name: times[name][warm:] for name in times}


def write_csv(folder, name, columns, rows):
    with open(folder / name, "w", newline="") as file:
        file.writelines(f"# {line}\n" for line in header())
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows(rows)


def new_figure(n_rows, n_columns):
    from matplotlib.figure import Figure
    figure = Figure(figsize=(5 * n_columns, 3.2 * n_rows), layout="constrained")
    return figure, figure.subplots(n_rows, n_columns, squeeze=False)


def draw(axes, rows, unit, measure):
    """One line for each solver on log scales; values that are absent or zero are left out."""
    for style, solver in zip(STYLES, dict.fromkeys(row["solver"] for row in rows)):
        points = sorted((row[unit], row[measure]) for row in rows
                        if row["solver"] == solver and row[measure] > 0)
        if points:
            axes.loglog(*zip(*points), style, label=solver, markersize=4, linewidth=1, fillstyle="none")
    axes.tick_params(axis="x", which="minor", labelsize="x-small", labelrotation=60)
    axes.set_xlabel(unit.replace("_", " "))
    axes.set_ylabel(measure.replace("_", " "))
    axes.legend(fontsize="x-small")


def save(figure, folder, name):
    figure.savefig(folder / name, dpi=120)
