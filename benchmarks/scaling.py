"""Seconds and memory of training as the data grow: samples, classes, non-zeros a row; threads; rivals.

    python benchmarks/scaling.py [--repeats 5] [--samples N ...] [--classes M ...] [--nonzeros S ...]
                                 [--threads T ...]
    python benchmarks/scaling.py --rivals M

Made-up texts: each class has 40 words of its own among the 20,000, and a row takes half of its words
from them. There are 20,000 rows, or 10 a class. Every point runs in a process of its own, whose peak memory
is counted from after the data were there (Linux with glibc). C = 1; a pass is timed after three; the least of
the repeats counts, and the numbers of threads alternate.
"""
import argparse
import ctypes
import json
import pathlib
import re
import subprocess
import sys

from _shared import header, new_solver, now, pass_seconds, seconds, spec_of, whole_pass_seconds

import numpy as np
import scipy.sparse as sp

import fastmc
from fastmc._problem import Problem

N_FEATURES = 20_000
BASE = {"samples": 20_000, "classes": 100, "nonzeros": 40}
RIVALS = {
    "sdca": {},
    "pairwise": {"solver": "pairwise"},
    "pairwise-cache": {"solver": "pairwise", "cache_size": 50},
}


def texts(samples, classes, nonzeros):
    """X (CSR, float64, rows of length 1) and y."""
    rng = np.random.default_rng(0)
    y = np.arange(samples) % classes
    own = rng.integers(N_FEATURES, size=(classes, 40))
    words = rng.integers(N_FEATURES, size=(samples, nonzeros))
    half = nonzeros // 2
    words[:, :half] = own[y[:, None], rng.integers(40, size=(samples, half))]
    X = sp.csr_matrix((rng.random(samples * nonzeros) + 0.5, words.ravel(), np.arange(samples + 1) * nonzeros),
                      shape=(samples, N_FEATURES))
    X.sum_duplicates()
    X.data /= np.repeat(np.sqrt(X.multiply(X).sum(axis=1)).A1, np.diff(X.indptr))
    return X, y


def resident(key):
    """Megabytes of this process by the kernel's count."""
    return int(re.search(rf"{key}:\s+(\d+) kB", pathlib.Path("/proc/self/status").read_text())[1]) / 1024


def measure(samples, classes, nonzeros, loss, repeats, threads):
    X, y = texts(samples, classes, nonzeros)
    fastmc.train(X[: 10 * classes], y[: 10 * classes], tol=0, max_passes=1)
    # What the data took on their way would be there to be used again, unseen; the peak starts again from here.
    ctypes.CDLL(None).malloc_trim(0)
    before = resident("VmRSS")
    pathlib.Path("/proc/self/clear_refs").write_text("5")
    model = fastmc.train(X, y, tol=1e-2)
    memory = resident("VmHWM") - before
    result = {"nnz": int(X.nnz), "passes": model.n_passes, "memory": memory,
              "weights": 16 * N_FEATURES * classes / 2**20, "lists": model.dual_.nnz / samples}
    del model
    return result | {"pass_ms": pass_times(Problem(X, y), loss, repeats, threads),
                     "seconds": train_times(X, y, repeats, threads)}


def pass_times(problem, loss, repeats, threads):
    """Least milliseconds of a pass for each number of threads, turn by turn."""
    rng = np.random.default_rng(0)
    solvers = [new_solver(problem, "sdca", spec_of(problem, loss), 1.0 / problem.n_samples, precision="auto",
                          n_threads=n) for n in threads]
    times = [[whole_pass_seconds(solver, rng) for solver in solvers] for _ in range(3 + repeats)]
    return [1e3 * min(each) for each in zip(*times[3:])]


def train_times(X, y, repeats, threads):
    """Least seconds of a training to tol = 0.01 for each number of threads, turn by turn."""
    times = [[seconds(lambda: fastmc.train(X, y, tol=1e-2, n_threads=n)) for n in threads] for _ in range(repeats)]
    return [min(each) for each in zip(*times)]


def rivals(classes, repeats):
    """sdca against Frank-Wolfe with kept corners, to the same gap; how often lists take up new classes."""
    X, y = texts(max(BASE["samples"], 10 * classes), classes, BASE["nonzeros"])
    print(f"\n{len(y)} samples, {classes} classes, to a relative gap of 0.01 by certificate\n"
          f"{'solver':16}{'seconds':>9}{'passes':>8}{'oracle calls a sample':>23}{'kept corners a sample':>23}")
    times, models = {name: [] for name in RIVALS}, {}
    for _ in range(repeats):
        for name, options in RIVALS.items():
            start = now()
            models[name] = fastmc.train(X, y, tol=1e-2, **options)
            times[name].append(now() - start)
    for name, model in models.items():
        calls, hits = (model.history[key][-1] / len(y) for key in ("oracle_calls", "cache_hits"))
        print(f"{name:16}{min(times[name]):9.2f}{model.n_passes:8}{calls:23.1f}{hits:23.1f}")
    problem = Problem(X, y)
    print("pass: share of samples whose list took up a class that it did not hold before\n"
          + "\n".join(f"{at:4}: {100 * share:.0f} %" for at, share in enumerate(new_classes(problem, 10), start=1)))


def new_classes(problem, passes):
    """After each pass, the share of samples with a class in their dual that was not there before the pass."""
    rng, shares = np.random.default_rng(0), []
    solver = new_solver(problem, "sdca", spec_of(problem, "maxhinge"), 1.0 / problem.n_samples, precision="auto")
    before = solver.dual_matrix() != 0
    for _ in range(passes):
        pass_seconds(solver, rng)
        after = solver.dual_matrix() != 0
        shares.append(float(np.mean((after > before).sum(axis=1) > 0)))
        before = after
    return shares


def run_point(point, options):
    """`measure` in a process of its own."""
    arguments = point | {"loss": options.loss, "repeats": options.repeats, "threads": options.threads}
    done = subprocess.run([sys.executable, __file__, "--point", json.dumps(arguments)], capture_output=True, text=True,
                          check=True)
    return json.loads(done.stdout)


def points(options):
    """The base with one size changed at a time; rows enough for 10 a class."""
    for key in BASE:
        for value in getattr(options, key):
            point = BASE | {key: value}
            yield point | {"samples": max(point["samples"], 10 * point["classes"])}


def table(options):
    threads = options.threads
    print(f"\n{'samples':>8}{'classes':>8}{'nonzeros':>9}" + "".join(f"{f'pass ms, {n}':>12}" for n in threads)
          + f"{'ns':>7}{'passes':>7}" + "".join(f"{f'seconds, {n}':>12}" for n in threads)
          + f"{'MB':>8}{'MB of W':>9}{'list':>6}")
    print("pass ms and seconds by threads. ns: of a pass, by non-zero and class, first number of threads. passes, "
          "seconds: train to tol = 0.01.\nMB: its peak beyond the data with one thread. MB of W: W and the last W "
          "in float32, the returned W in float64.\nlist: classes in the dual of a sample, its own included.")
    for point in points(options):
        row = run_point(point, options)
        each = 1e6 * row["pass_ms"][0] / (row["nnz"] * point["classes"])
        print(f"{point['samples']:8}{point['classes']:8}{point['nonzeros']:9}"
              + "".join(f"{ms:12.1f}" for ms in row["pass_ms"]) + f"{each:7.3f}{row['passes']:7}"
              + "".join(f"{spent:12.2f}" for spent in row["seconds"])
              + f"{row['memory']:8.0f}{row['weights']:9.0f}{row['lists']:6.1f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("--samples", nargs="*", type=int, default=[5_000, 20_000, 80_000])
    parser.add_argument("--classes", nargs="*", type=int, default=[20, 100, 1000, 5000])
    parser.add_argument("--nonzeros", nargs="*", type=int, default=[10, 40, 160])
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--loss", default="maxhinge")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--rivals", type=int, metavar="M", help="instead: solvers with kept corners, M classes")
    parser.add_argument("--point", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.point:
        print(json.dumps(measure(**json.loads(options.point))))
        return
    print(*header(), sep="\n")
    if options.rivals:
        rivals(options.rivals, options.repeats)
    else:
        table(options)


if __name__ == "__main__":
    main()
