"""MultiBoost: coordinate descent against L-BFGS-B, and test errors against other boosting.

    FASTMC_DATA=folder python benchmarks/multiboost.py solver  [--data NAME ...] [--rounds 200]
    FASTMC_DATA=folder python benchmarks/multiboost.py kernel
    FASTMC_DATA=folder python benchmarks/multiboost.py errors  [--data NAME ...] [--rounds 200]

`solver` gives both solvers the columns of one run and lets each go on from its own weights of the
round before; every few rounds a tight solve tells how far each is from the optimum. `kernel` tells
what a coordinate costs. `errors` trains all methods on the same splits with the same stumps.
Seconds are of the processor, on one thread: what else the machine does is not in them.
"""
import argparse
import copy
import csv
import os
import pathlib
import sys
import time

from _shared import RESULTS, header

import numpy as np

import fastmc
from fastmc._column_generation import Boosting
from fastmc._master import Master
from fastmc._problem import encode_labels
from fastmc.boosting import MultiBoostClassifier

# Given as train and test, and kept so; the others are drawn anew for each seed, 75 % to train on.
GIVEN_SPLIT = ("mnist10k", "isolet")
# Relative gap of what a benchmark calls the optimum.
TIGHT = 2e-4


def cpu_seconds(call):
    """Seconds of the processor that a call takes, and what it returns."""
    began = time.process_time()
    result = call()
    return time.process_time() - began, result


def read(name):
    """X, y of both files of a set as dense arrays, and how many rows are for training."""
    if "FASTMC_DATA" not in os.environ:
        sys.exit("the environment variable FASTMC_DATA must name the folder of data sets")
    folder = pathlib.Path(os.environ["FASTMC_DATA"])
    X, y = fastmc.load_svmlight(folder / f"{name}.train.svm.bz2")
    X_test, y_test = fastmc.load_svmlight(folder / f"{name}.test.svm.bz2")
    width = max(X.shape[1], X_test.shape[1])
    both = np.zeros((len(y) + len(y_test), width))
    both[: len(y), : X.shape[1]] = X.toarray()
    both[len(y):, : X_test.shape[1]] = X_test.toarray()
    # mnist10k has bytes; stumps do not mind, but so has the paper.
    return both / (255.0 if name == "mnist10k" else 1.0), np.concatenate([y, y_test]), len(y)


# solver

def print_solver(options):
    print("\ncolumns of a class-wise run, C = "
          f"{options.C:g}; fcd: tol {options.tol:g}, at most {options.max_sweeps} sweeps a round; "
          f"lbfgsb: ftol {options.ftol:g}")
    print("seconds: sums over the rounds. above: largest excess over the optimum at the rounds that "
          "were checked")
    print(f"{'data':14}{'n':>6}{'K':>4}{'rounds':>7}{'columns':>8}{'fcd s':>8}{'lbfgsb s':>10}{'factor':>8}"
          f"{'fcd above':>11}{'lbfgsb above':>14}")
    for name in options.data:
        X, y, n_train = read(name)
        row = compare_solvers(X[:n_train], y[:n_train], options)
        print(f"{name:14}{n_train:6}{len(np.unique(y)):4}{row['rounds']:7}{row['columns']:8}{row['fcd']:8.2f}"
              f"{row['lbfgsb']:10.2f}{row['lbfgsb'] / row['fcd']:8.1f}{row['fcd_above']:11.2e}"
              f"{row['lbfgsb_above']:14.2e}", flush=True)


def compare_solvers(X, y, options):
    classes, label = encode_labels(y, len(y))
    model = MultiBoostClassifier(n_rounds=options.rounds, C=options.C, tol=options.tol,
                                 max_sweeps=options.max_sweeps)
    rng, ones = np.random.default_rng(0), np.ones(len(y))
    run = Boosting(model, X, label, len(classes), ones, rng, None)
    peer = Master(label, len(classes), options.C, ones)
    row = {"fcd": 0.0, "lbfgsb": 0.0, "fcd_above": 0.0, "lbfgsb_above": 0.0}
    solve = run.solve

    def timed(*arguments):
        row["fcd"] += cpu_seconds(lambda: solve(*arguments))[0]

    run.solve = timed
    for number in range(1, options.rounds + 1):
        found = {c: f for c, f in run.search().items() if f[1] > 1.0 + options.tol}
        if not found:
            break
        run.one_round(found)
        add_columns(run.master, peer)
        row["lbfgsb"] += cpu_seconds(lambda: peer.solve_lbfgsb(options.ftol))[0]
        if number % options.check == 0 or number == options.rounds:
            least = optimum(run.master)
            for key, master in (("fcd_above", run.master), ("lbfgsb_above", peer)):
                row[key] = max(row[key], master.objective() / least - 1.0)
    return row | {"rounds": len(run.stages), "columns": int(run.master.count.sum())}


def add_columns(master, peer):
    for c in range(master.n_classes):
        for j in range(peer.count[c], master.count[c]):
            peer.add(c, master.bits[c, j])


def optimum(master):
    """The optimum over the columns of a master, from below and certified to TIGHT."""
    tight = copy.copy(master)
    tight.w = master.w.copy()
    tight.refresh()
    rng = np.random.default_rng(0)
    lower = 0.0
    for tol in (1e-2, 1e-3, *[1e-4] * 20):
        tight.solve(tol, 500, rng)
        lower = max(lower, tight.lower_bound(tight.largest_edge()))
        if lower >= (1.0 - TIGHT) * tight.objective():
            return lower
    raise RuntimeError("no tight solve")


# kernel

def print_kernel(options):
    print("\nns a row and coordinate, least of 5: sums alone (nothing moves), and with every "
          "coordinate moved")
    print(f"{'n':>7}{'K':>5}{'learners':>10}{'sums':>8}{'moved':>8}")
    for n in options.rows:
        for K in options.classes:
            sums, moved = sweep_nanoseconds(n, K, learners=40)
            print(f"{n:7}{K:5}{40:10}{sums:8.3f}{moved:8.3f}", flush=True)
    print("\nthe two sums of one coordinate, ns a row: bit-packed by the kernel; int8 by NumPy")
    print(f"{'n':>7}{'bits':>8}{'int8':>8}")
    for n in options.rows:
        print("{:7}{:8.3f}{:8.3f}".format(n, *layout_nanoseconds(n)), flush=True)


def drawn_master(n, K, learners):
    rng = np.random.default_rng(0)
    label = np.arange(n) % K
    master = Master(label, K, 1e4, np.ones(n))
    for c in range(K):
        for _ in range(learners):
            outputs = np.where((label == c) ^ (rng.random(n) < 0.3), 1, -1)
            master.add(c, master.pack(c, outputs))
    return master


def sweep_nanoseconds(n, K, learners):
    master = drawn_master(n, K, learners)
    coordinates, each = master.coordinates(), 1e9 / (n * K * learners)
    return [each * min(cpu_seconds(lambda: master.visit(coordinates, tol))[0] for _ in range(5))
            for tol in (np.inf, 0.0)]


def layout_nanoseconds(n, repeats=200):
    master = drawn_master(n, 2, 1)
    u, outputs = np.random.default_rng(0).random(n), master.outputs(0, 0)
    again = (np.zeros(repeats, dtype=np.intp),) * 2

    ones = (outputs > 0).astype(np.int8)

    def masked():
        for _ in range(repeats):
            u @ ones.astype(np.float64), u @ (1 - ones).astype(np.float64)

    return [1e9 / (n * repeats) * min(cpu_seconds(call)[0] for _ in range(5))
            for call in (lambda: master.visit(again, np.inf), masked)]


# errors

def methods(options, n_samples):
    """{name: a function of (X, y) that gives a fitted model}; the rivals where scikit-learn is."""
    common = {"n_rounds": options.rounds, "C": options.C}
    made = {"class-wise": MultiBoostClassifier(**common),
            "stage-wise": MultiBoostClassifier(**common | {"C": 1e8}, stage_wise=True),
            "shared": MultiBoostClassifier(**common, class_wise=False)}
    if n_samples <= options.small:
        made["lbfgsb"] = MultiBoostClassifier(**common, master="lbfgsb", tol=1e-5)
    fits = {name: model.fit for name, model in made.items()}
    if not options.own:
        fits |= rivals(options.rounds)
        if n_samples > options.small:
            # A problem for each pair of classes.
            del fits["AdaBoost.MO"]
    return fits if options.methods is None else {name: fits[name] for name in options.methods if name in fits}


def rivals(rounds):
    from sklearn.ensemble import AdaBoostClassifier
    from sklearn.multiclass import OneVsRestClassifier, OutputCodeClassifier
    from sklearn.tree import DecisionTreeClassifier

    def boost():
        return AdaBoostClassifier(DecisionTreeClassifier(max_depth=1), n_estimators=rounds, random_state=0)

    return {"AdaBoost": lambda X, y: boost().fit(X, y),
            "AdaBoost.MH": lambda X, y: OneVsRestClassifier(boost()).fit(X, y),
            "AdaBoost.ECC": lambda X, y: OutputCodeClassifier(boost(), code_size=1.5, random_state=0).fit(X, y),
            "AdaBoost.MO": lambda X, y: MO(boost).fit(X, y)}


class MO:
    """AdaBoost.MO: a code of all classes against each pair of halves, decided by the margins.

    Every class and every pair of classes is a binary problem; the class with the least
    exponential loss of its word wins.
    """

    def __init__(self, make):
        self.make = make

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        K = len(self.classes_)
        pairs = [np.isin(np.arange(K), part) for part in
                 [[c] for c in range(K)] + [[a, b] for a in range(K) for b in range(a)]]
        self.code = np.array([2 * part - 1 for part in np.array(pairs, dtype=int) if 0 < part.sum() < K])
        label = np.searchsorted(self.classes_, y)
        self.parts = [self.make().fit(X, word[label]) for word in self.code]
        return self

    def predict(self, X):
        margins = np.column_stack([part.decision_function(X) for part in self.parts])
        losses = np.exp(-margins[:, None, :] * self.code.T[None]).sum(axis=2)
        return self.classes_[np.argmin(losses, axis=1)]


def splits(name, seeds):
    """(seed, X, y, X_test, y_test) of every seed; the given split once."""
    X, y, n_train = read(name)
    for seed in range(1 if name in GIVEN_SPLIT else seeds):
        order = np.arange(len(y))
        if name not in GIVEN_SPLIT:
            order, n_train = np.random.default_rng(seed).permutation(len(y)), 3 * len(y) // 4
        train, test = order[:n_train], order[n_train:]
        yield seed, X[train], y[train], X[test], y[test]


def print_errors(options):
    options.out.mkdir(parents=True, exist_ok=True)
    table, curves = [], []
    for name in options.data:
        for seed, X, y, X_test, y_test in splits(name, options.seeds):
            for method, fit in methods(options, len(y)).items():
                seconds, model = cpu_seconds(lambda: fit(X, y))
                error = float(np.mean(model.predict(X_test) != y_test))
                table.append({"dataset": name, "method": method, "seed": seed, "error": error,
                              "seconds": seconds, "solver_seconds": getattr(model, "solver_time_", np.nan)})
                if isinstance(model, MultiBoostClassifier):
                    curves += [{"dataset": name, "method": method, "seed": seed, "rounds": r, "error": 1 - s}
                               for r, s in enumerate(model.staged_score(X_test, y_test), start=1)]
                write(options.out / "multiboost_errors.csv", table)
                write(options.out / "multiboost_curves.csv", curves)
        print_set(name, [row for row in table if row["dataset"] == name],
                  [row for row in curves if row["dataset"] == name])


def print_set(name, table, curves):
    seeds = len({row["seed"] for row in table})
    print(f"\n{name}, {seeds} split{'s' * (seeds > 1)}\n{'method':14}{'error %':>9}{'sd':>7}{'train s':>9}"
          f"{'solver s':>10}")
    for method in dict.fromkeys(row["method"] for row in table):
        errors, seconds, solver = ([row[key] for row in table if row["method"] == method]
                                   for key in ("error", "seconds", "solver_seconds"))
        print(f"{method:14}{100 * np.mean(errors):9.2f}{100 * np.std(errors, ddof=seeds > 1):7.2f}"
              f"{np.mean(seconds):9.2f}{np.mean(solver):10.2f}")
    means = {method: mean_curve(curves, method) for method in ("class-wise", "shared")}
    if min(map(len, means.values())):
        last, ours = means["shared"][-1], means["class-wise"]
        reached = np.flatnonzero(ours <= last)
        when = f"{reached[0] + 1} rounds" if len(reached) else "never"
        print(f"class-wise reaches the last error of shared ({100 * last:.2f} %, {len(means['shared'])} "
              f"rounds): {when}", flush=True)


def mean_curve(curves, method):
    """Mean error after each round; a run that ended keeps its last error."""
    runs = {}
    for row in curves:
        if row["method"] == method:
            runs.setdefault(row["seed"], []).append(row["error"])
    most = max(map(len, runs.values()), default=0)
    return np.mean([run + run[-1:] * (most - len(run)) for run in runs.values()], axis=0) if runs else []


def write(path, rows):
    with open(path, "w", newline="") as file:
        file.writelines(f"# {line}\n" for line in header())
        if rows:
            writer = csv.DictWriter(file, rows[0])
            writer.writeheader()
            writer.writerows(rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    commands = parser.add_subparsers(dest="command", required=True)
    solver = commands.add_parser("solver", help="coordinate descent against L-BFGS-B")
    solver.set_defaults(run=print_solver)
    solver.add_argument("--data", nargs="+", default=["vowel", "usps", "letter_scale"])
    solver.add_argument("--check", type=int, default=20, help="rounds between tight solves")
    solver.add_argument("--tol", type=float, default=0.02)
    solver.add_argument("--max-sweeps", type=int, default=25)
    solver.add_argument("--ftol", type=float, default=2e-6)
    kernel = commands.add_parser("kernel", help="what a coordinate costs")
    kernel.set_defaults(run=print_kernel)
    kernel.add_argument("--rows", nargs="+", type=int, default=[2000, 8000])
    kernel.add_argument("--classes", nargs="+", type=int, default=[10, 26, 100])
    errors = commands.add_parser("errors", help="test errors of all methods")
    errors.set_defaults(run=print_errors)
    errors.add_argument("--data", nargs="+", default=["vowel", "usps", "pendigits", "letter_scale", "isolet",
                                                      "mnist10k", "satimage"])
    errors.add_argument("--seeds", type=int, default=5)
    errors.add_argument("--small", type=int, default=2000, help="rows up to which L-BFGS-B and AdaBoost.MO run, too")
    errors.add_argument("--own", action="store_true", help="without scikit-learn's")
    errors.add_argument("--methods", nargs="+", help="these only")
    errors.add_argument("--out", type=pathlib.Path, default=RESULTS)
    for command in (solver, errors):
        command.add_argument("--rounds", type=int, default=200)
        command.add_argument("--C", type=float, default=1e4)
    options = parser.parse_args()
    print(*header(), sep="\n")
    options.run(options)


if __name__ == "__main__":
    main()
