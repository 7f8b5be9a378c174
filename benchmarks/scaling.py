"""Seconds and memory of training as the data grow: samples, classes, non-zeros a row.

    python benchmarks/scaling.py [--repeats 5] [--samples N ...] [--classes M ...] [--nonzeros S ...]

Made-up texts: each class has 40 words of its own among the 20,000, and a row takes half of its words
from them. Every point runs in a process of its own, whose peak memory is counted from after the data
were there (Linux). C = 1; a pass is timed after three, the least of the repeats counts.
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys

from _shared import header, new_solver, pass_seconds, spec_of

import numpy as np
import scipy.sparse as sp

import fastmc
from fastmc._problem import Problem

N_FEATURES = 20_000
BASE = {"samples": 20_000, "classes": 100, "nonzeros": 40}


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


def measure(samples, classes, nonzeros, loss, repeats):
    X, y = texts(samples, classes, nonzeros)
    fastmc.train(X[: 10 * classes], y[: 10 * classes], tol=0, max_passes=1)
    before = resident("VmRSS")
    # The peak starts again from here.
    pathlib.Path("/proc/self/clear_refs").write_text("5")
    model = fastmc.train(X, y, tol=1e-2)
    memory = resident("VmHWM") - before
    problem = Problem(X, y)
    solver = new_solver(problem, "sdca", spec_of(problem, loss), 1.0 / samples, precision="auto")
    rng = np.random.default_rng(0)
    times = [pass_seconds(solver, rng) for _ in range(3 + repeats)]
    return {"nnz": int(X.nnz), "pass_ms": 1e3 * min(times[3:]), "passes": model.n_passes,
            "seconds": float(model.history["seconds"][-1]), "memory": memory,
            "weights": 8 * N_FEATURES * classes / 2**20, "lists": model.dual_.nnz / samples}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("--samples", nargs="*", type=int, default=[5_000, 20_000, 80_000])
    parser.add_argument("--classes", nargs="*", type=int, default=[20, 100, 1000])
    parser.add_argument("--nonzeros", nargs="*", type=int, default=[10, 40, 160])
    parser.add_argument("--loss", default="maxhinge")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--point", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.point:
        print(json.dumps(measure(**json.loads(options.point), loss=options.loss, repeats=options.repeats)))
        return
    print(*header(), sep="\n")
    print(f"\n{'samples':>8}{'classes':>8}{'nonzeros':>9}{'pass ms':>9}{'ns':>7}{'passes':>7}{'seconds':>9}"
          f"{'MB':>8}{'MB of W':>9}{'list':>6}")
    print("ns: of a pass, by non-zero and class. passes, seconds: train to tol = 0.01. MB: its peak beyond the data.")
    for key in BASE:
        for value in getattr(options, key):
            point = BASE | {key: value}
            point["samples"] = max(point["samples"], 10 * point["classes"])
            done = subprocess.run([sys.executable, __file__, "--loss", options.loss, "--repeats", str(options.repeats),
                                   "--point", json.dumps(point)], capture_output=True, text=True, check=True)
            row = json.loads(done.stdout)
            each = 1e6 * row["pass_ms"] / (row["nnz"] * point["classes"])
            print(f"{point['samples']:8}{point['classes']:8}{point['nonzeros']:9}{row['pass_ms']:9.1f}{each:7.3f}"
                  f"{row['passes']:7}{row['seconds']:9.2f}{row['memory']:8.0f}{row['weights']:9.0f}{row['lists']:6.1f}",
                  flush=True)


if __name__ == "__main__":
    main()
