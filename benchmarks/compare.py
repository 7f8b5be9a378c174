"""fastmc against other solvers, and the experiments of Tajima et al., section 6.

    FASTMC_DATA=folder python benchmarks/compare.py run      accuracy against seconds and passes
    FASTMC_DATA=folder python benchmarks/compare.py levels   seconds to an accuracy against LIBLINEAR's
    FASTMC_DATA=folder python benchmarks/compare.py defaults LinearSVC and fastmc at their defaults
    FASTMC_DATA=folder python benchmarks/compare.py figures  LSFW, StdFW, PG: convergence
    FASTMC_DATA=folder python benchmarks/compare.py table1   LSFW, StdFW, PG: top-k test error
    FASTMC_DATA=folder python benchmarks/compare.py table2   LSFW, StdFW, PG: seconds an iteration

Tables (CSV under a commented header) and pictures go to benchmarks/results. Objectives and gaps
are computed here, from the weights and duals that a solver hands over, and never timed.
"""
import argparse
import importlib.util
import itertools
import math
import pathlib
import re
import warnings
from collections import namedtuple
from dataclasses import dataclass

from _shared import (LOSSES, PAPER_NAMES, RESULTS, add_clock_option, draw, header, iteration_seconds,
                     load, new_figure, new_solver, now, pass_seconds, save, set_clock, spec_of, write_csv)

import numpy as np
import scipy.sparse as sp

import fastmc
from fastmc import _certificate
from fastmc._problem import Problem

RUN_COLUMNS = ("dataset", "C", "solver", "setting", "passes", "seconds", "primal", "dual", "gap",
               "relative_gap", "suboptimality_bound", "test_error", "top5_error")
FIGURE_COLUMNS = ("dataset", "smoothing", "solver", "iteration", "seconds", "primal", "dual", "gap",
                  "objective_error")
TABLE1_COLUMNS = ("dataset", "trial", "solver", "C", "k", "test_error")
TABLE1_RANKS = (1, 3, 5, 10)


# ------------------------------------------------------------------ solvers, one adapter each

@dataclass
class Result:
    """What a solver found: W (n_features, n_classes), and a feasible dual if it has one.

    Passes are NaN where the solver keeps them to itself.
    """
    weights: np.ndarray
    dual: object
    passes: float
    seconds: float


def by_passes(solver):
    def fit(data, C, passes):
        marks = []
        start = now()
        model = fastmc.train(data.X, data.y, C=C, solver=solver, tol=0, max_passes=passes,
                             callback=lambda state: marks.append(now()))
        # The last mark: the certificate after the last pass is no part of the solver.
        return Result(model.weights, model.dual_, model.n_passes, marks[-1] - start)
    return fit


def by_tolerance(data, C, tol, **options):
    """sdca as users run it: it stops by its own certificates, which are in its time."""
    start = now()
    model = fastmc.train(data.X, data.y, C=C, tol=tol, **options)
    seconds = now() - start
    return Result(model.weights, model.dual_, model.n_passes, seconds)


def liblinear_mcsvm(data, C, eps):
    """LIBLINEAR -s 4; its conversion of the data is left out of its time."""
    from liblinear import liblinear as library
    problem = library.problem(data.problem.label.astype(float), sp.csr_matrix(data.X))
    parameter = library.parameter(f"-s 4 -c {C!r} -e {eps!r}")
    printed = []
    printer = library.PRINT_STRING_FUN(printed.append)
    library.liblinear.set_print_string_function(printer)
    start = now()
    model = library.toPyModel(library.liblinear.train(problem, parameter))
    seconds = now() - start
    library.liblinear.set_print_string_function(library.ctypes_print_null)
    weights = np.empty((data.X.shape[1], data.problem.n_classes))
    weights[:, model.get_labels()] = np.ctypeslib.as_array(model.w, weights.shape)
    iterations = re.search(rb"#iter = (\d+)", b"".join(printed))
    return Result(weights, None, int(iterations[1]), seconds)


def timed_fit(model, data):
    """Seconds of fit, its conversion of the data included; labels are 0 .. n_classes - 1."""
    start = now()
    model.fit(data.X, data.problem.label)
    return now() - start


def sklearn_mcsvm(data, C, tol):
    from sklearn.svm import LinearSVC
    model = LinearSVC(multi_class="crammer_singer", C=C, tol=tol, fit_intercept=False, random_state=0)
    seconds = timed_fit(model, data)
    return Result(model.coef_.T, None, int(model.n_iter_), seconds)


def sklearn_ovr(data, C, tol):
    from sklearn.svm import LinearSVC
    model = LinearSVC(C=C, tol=tol, fit_intercept=False, random_state=0)
    seconds = timed_fit(model, data)
    return Result(model.coef_.T, None, int(model.n_iter_), seconds)


def sklearn_sgd(data, C, tol):
    from sklearn.linear_model import SGDClassifier
    model = SGDClassifier(alpha=1.0 / (C * data.problem.n_samples), tol=tol, fit_intercept=False, random_state=0)
    seconds = timed_fit(model, data)
    return Result(model.coef_.T, None, int(model.n_iter_), seconds)


def cyanure_softmax(data, C, tol):
    from cyanure.estimators import Classifier
    model = Classifier(loss="multiclass-logistic", lambda_1=1.0 / (C * data.problem.n_samples), tol=tol,
                       fit_intercept=False, verbose=False, n_threads=1)
    seconds = timed_fit(model, data)
    return Result(model.coef_, None, math.nan, seconds)


def snapml_ovr(data, C, tol):
    from snapml import SupportVectorMachine
    model = SupportVectorMachine(regularizer=1.0 / C, tol=tol, random_state=0)
    seconds = timed_fit(model, data)
    return Result(model.coef_.T, None, math.nan, seconds)


def lightning_ovr(data, C, tol):
    from lightning.classification import SDCAClassifier
    model = SDCAClassifier(alpha=1.0 / (C * data.problem.n_samples), tol=tol, random_state=0)
    seconds = timed_fit(model, data)
    return Result(model.coef_.T, None, math.nan, seconds)


def dual_fw(data, C, passes):
    """The same method as fastmc's fw, in NumPy: its dual is C times ours."""
    from dual_fw_svm import MulticlassFrankWolfeSVM
    model = MulticlassFrankWolfeSVM(C=C, max_iter=passes, tol=0.0)
    seconds = timed_fit(model, data)
    return Result(model.W_, sp.csr_array(model.alpha_ / C), int(model.n_iter_), seconds)


# kind: of its settings. fit(data, C, setting) -> Result. package: what must be importable. objective: what it
# minimises if that is not fastmc's problem; then its objective and gap would say nothing, and are left out.
Adapter = namedtuple("Adapter", "kind fit package objective", defaults=("fastmc", ""))
SUM_OVER_CLASSES = "for each class against the rest, "
# A new peer is one line here.
ADAPTERS = {
    "sdca": Adapter("passes", by_passes("sdca")),
    "bcfw": Adapter("passes", by_passes("bcfw")),
    "pairwise": Adapter("passes", by_passes("pairwise")),
    "away": Adapter("passes", by_passes("away")),
    "fw": Adapter("passes", by_passes("fw")),
    "stdfw": Adapter("passes", by_passes("stdfw")),
    "pg": Adapter("passes", by_passes("pg")),
    "sdca-certified": Adapter("tol", by_tolerance),
    "liblinear": Adapter("tol", liblinear_mcsvm, "liblinear"),
    "sklearn": Adapter("tol", sklearn_mcsvm, "sklearn"),
    "dual-fw-svm": Adapter("passes", dual_fw, "dual_fw_svm"),
    "sklearn-ovr": Adapter("tol", sklearn_ovr, "sklearn",
                           SUM_OVER_CLASSES + "1/2 ||w||^2 + C sum of squared hinge"),
    "sklearn-sgd": Adapter("tol", sklearn_sgd, "sklearn",
                           SUM_OVER_CLASSES + "alpha/2 ||w||^2 + mean hinge, alpha = 1/(C n)"),
    "snapml": Adapter("tol", snapml_ovr, "snapml",
                      SUM_OVER_CLASSES + "1/(2 C) ||w||^2 + sum of hinge"),
    "lightning": Adapter("tol", lightning_ovr, "lightning",
                         SUM_OVER_CLASSES + "alpha/2 ||w||^2 + mean hinge, alpha = 1/(C n)"),
    "cyanure": Adapter("tol", cyanure_softmax, "cyanure",
                       "lambda_1/2 ||W||^2 + mean multinomial logistic loss, lambda_1 = 1/(C n)"),
}


# ------------------------------------------------------------------ run: peers side by side

def run(options):
    options.solvers = installed(options.solvers)
    rows = []
    for name in options.data:
        data = load(name)
        for C in options.C:
            rows += compare(data, C, options)
    write_csv(options.out, "run.csv", RUN_COLUMNS, rows)
    plot_run(options.out, rows)
    print_rows(rows)
    print_times(rows)


def installed(solvers):
    """Those whose package is there. Says which are not, and what the others minimise."""
    kept = []
    for solver in solvers:
        adapter = ADAPTERS[solver]
        if importlib.util.find_spec(adapter.package) is None:
            print(f"{solver}: {adapter.package} is not installed: left out")
            continue
        kept.append(solver)
        if adapter.objective:
            print(f"{solver} minimises, {adapter.objective}")
    return kept


def compare(data, C, options):
    """Rows of all solvers and settings; solvers alternate, the fastest repeat counts."""
    grids = {"passes": options.passes, "tol": options.tol}
    best = {}
    for _ in range(options.repeats):
        for step in range(max(map(len, grids.values()))):
            for solver in options.solvers:
                kind, fit = ADAPTERS[solver][:2]
                if step < len(grids[kind]):
                    setting = grids[kind][step]
                    result = quiet(fit, data, C, setting)
                    key = solver, f"{kind}={setting:g}"
                    if key not in best or result.seconds < best[key].seconds:
                        best[key] = result
    rows = [judge(data, C, *key, result) for key, result in best.items()]
    bound = max([row["dual"] for row in rows if not math.isnan(row["dual"])]
                + [reference(data, options, C=C).dual])
    for row in rows:
        row["suboptimality_bound"] = (row["primal"] - bound) / row["primal"]
    return rows


def quiet(call, *args, **options):
    """Budgets are meant to end runs here: what solvers say about that is no news."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return call(*args, **options)


def reference(data, options, **parameters):
    """Certificate of a long sdca run: what the optimum is bounded by."""
    return quiet(fastmc.train, data.X, data.y, tol=options.reference_tol, max_passes=10**6,
                 max_time=options.reference_time, **parameters).certificate


def judge(data, C, solver, setting, result):
    scores = data.X_test @ result.weights
    errors = [topk_error(data.problem.classes, scores, data.y_test, k) for k in (1, 5)]
    primal, dual = (math.nan, math.nan) if ADAPTERS[solver].objective else objectives(data, C, result)
    return {"dataset": data.name, "C": C, "solver": solver, "setting": setting,
            "passes": result.passes, "seconds": result.seconds, "primal": primal, "dual": dual,
            "gap": primal - dual, "relative_gap": (primal - dual) / primal,
            "test_error": errors[0], "top5_error": errors[1]}


def objectives(data, C, result):
    """Primal and dual value of fastmc's problem, NaN for a dual that is not there."""
    problem, lam = data.problem, 1.0 / (C * data.problem.n_samples)
    primal = _certificate.primal_value(problem, spec_of(problem, "maxhinge"), result.weights, lam)
    return primal, math.nan if result.dual is None else _certificate.dual_value(problem, result.dual, lam)


def topk_error(classes, scores, y, k):
    best = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    return 1.0 - float(np.mean((classes[best] == y[:, None]).any(axis=1)))


def print_rows(rows):
    """Seconds and test errors of every setting; objective and bound of the solvers of fastmc's problem."""
    print(f"\n{'data':24}{'C':>6} {'solver':16}{'setting':>14}{'seconds':>10}{'objective':>14}{'bound':>10}"
          f"{'top-1':>9}{'top-5':>9}")
    for row in rows:
        cells = f"{row['primal']:14.6g}{row['suboptimality_bound']:10.1e}"
        if ADAPTERS[row["solver"]].objective:
            cells = 24 * " "
        print(f"{row['dataset']:24}{row['C']:6g} {row['solver']:16}{row['setting']:>14}{row['seconds']:10.3f}{cells}"
              f"{100 * row['test_error']:8.2f}%{100 * row['top5_error']:8.2f}%")


def print_times(rows, levels=(1e-1, 1e-2, 1e-3, 1e-4)):
    """Least seconds (and passes then) to each suboptimality bound, for every solver."""
    print("\nseconds (passes) until suboptimality bound <=")
    print(f"{'data':24}{'C':>6} {'solver':16}" + "".join(f"{level:>16g}" for level in levels))
    for key in dict.fromkeys((row["dataset"], row["C"], row["solver"]) for row in rows):
        if ADAPTERS[key[2]].objective:
            continue
        mine = [row for row in rows if (row["dataset"], row["C"], row["solver"]) == key]
        cells = []
        for level in levels:
            reached = [row for row in mine if row["suboptimality_bound"] <= level]
            first = min(reached, key=lambda row: row["seconds"], default=None)
            cells.append("-" if first is None else f"{first['seconds']:.3f} ({first['passes']})")
        print(f"{key[0]:24}{key[1]:6g} {key[2]:16}" + "".join(f"{cell:>16}" for cell in cells))


def plot_run(folder, rows):
    """For every data set and C: suboptimality above certified gap, against seconds and passes."""
    sets = list(dict.fromkeys((row["dataset"], row["C"]) for row in rows))
    figure, panels = new_figure(2 * len(sets), 2)
    for at, key in enumerate(sets):
        mine = [row for row in rows if (row["dataset"], row["C"]) == key]
        for line, measure in enumerate(("suboptimality_bound", "relative_gap")):
            for axes, unit in zip(panels[2 * at + line], ("seconds", "passes")):
                draw(axes, mine, unit, measure)
                axes.set_title(f"{key[0]}, C = {key[1]:g}", fontsize="medium")
    save(figure, folder, "run.png")


# ------------------------------------------------------------------ levels: certified against the best LIBLINEAR

def levels(options):
    """fastmc's seconds to certified gaps against LIBLINEAR's least to the same suboptimality.

    LIBLINEAR gets the cheapest setting of its grid that is good enough, which a user could not
    know; its suboptimality is measured from our best dual value and not timed.
    """
    rows = []
    columns = ["liblinear", *(f"{who}-{n}" for n in options.threads for who in ("fastmc", "ratio"))]
    print(f"\n{'data':24}{'C':>6}{'bound':>9}" + "".join(
        f"{f'{who} {level:g}':>16}" for level in options.levels for who in columns), flush=True)
    for name in options.data:
        data = load(name)
        if options.csr:
            data.X = sp.csr_matrix(data.X)
        for C in options.C:
            row, line = levels_of(data, C, options), f"{name:24}{C:6g}"
            line += f"{row['bound']:9.1e}"
            for level in options.levels:
                line += f"{row[f'liblinear {level:g}']:16.3f}"
                for n in options.threads:
                    line += f"{row[f'fastmc-{n} {level:g}']:16.3f}{ratio(row, level, n):16.2f}"
            print(line, flush=True)
            rows.append(row)
            write_csv(options.out, "levels.csv", list(rows[0]), rows)
    plot_levels(options.out, rows, options.levels, options.threads[0])
    for level, n in itertools.product(options.levels, options.threads):
        ratios = np.array([ratio(row, level, n) for row in rows])
        ratios = ratios[np.isfinite(ratios)]
        if len(ratios):
            print(f"{level:g}, threads {n}: geometric mean {np.exp(np.log(ratios).mean()):.2f}, least "
                  f"{ratios.min():.2f}, of {len(ratios)} rows")


def ratio(row, level, n_threads):
    return row[f"liblinear {level:g}"] / row[f"fastmc-{n_threads} {level:g}"]


def plot_levels(folder, rows, steps, n_threads):
    """Bars of how many times as long LIBLINEAR took, for each data set, C and level."""
    from matplotlib.figure import Figure
    figure = Figure(figsize=(11, 3.2), layout="constrained")
    axes, width = figure.subplots(), 0.8 / len(steps)
    for at, (level, hatch, shade) in enumerate(zip(steps, ("", "///", "..."), ("0.3", "0.75", "0.95"))):
        ratios = [ratio(row, level, n_threads) for row in rows]
        places = np.arange(len(rows)) + at * width
        # Where LIBLINEAR's grid does not get there, no bar.
        axes.bar(places, [times if math.isfinite(times) else 0.0 for times in ratios], width, color=shade,
                 hatch=hatch, edgecolor="k", linewidth=0.5, label=f"to {level:g}")
    axes.axhline(1.0, color="k", linewidth=0.8)
    axes.set_xticks(np.arange(len(rows)) + 0.4 - width / 2,
                    [f"{row['dataset'].split('_')[0]}\nC = {row['C']:g}" for row in rows], fontsize="small")
    axes.set_ylabel("LIBLINEAR's seconds / fastmc's")
    figure.legend(title="within the optimum", fontsize="small", loc="outside right upper")
    save(figure, folder, "levels.png")
    save(figure, folder, "levels.svg")


def levels_of(data, C, options):
    """Least seconds of both sides to every level; infinity where LIBLINEAR's grid does not reach it."""
    best, tols = reference(data, options, C=C), list(options.tol)
    row = {"dataset": data.name, "C": C, "bound": best.relative_gap}
    ours = dict.fromkeys(itertools.product(options.levels, options.threads), math.inf)
    theirs, primal = {}, {}
    for _ in range(options.repeats):
        for step in range(max(len(ours), len(tols))):
            if step < len(ours):
                level, n = list(ours)[step]
                result = quiet(by_tolerance, data, C, level, n_threads=n)
                ours[level, n] = min(ours[level, n], result.seconds)
            if step < len(tols):
                eps = tols[step]
                result = quiet(liblinear_mcsvm, data, C, eps)
                theirs[eps] = min(theirs.get(eps, math.inf), result.seconds)
                primal[eps] = _certificate.primal_value(data.problem, spec_of(data.problem, "maxhinge"),
                                                        result.weights, 1.0 / (C * data.problem.n_samples))
                if result.seconds > options.budget:
                    # A run cannot be broken off; those that would take longer are not begun.
                    tols = tols[: step + 1]
                    print(f"LIBLINEAR took {result.seconds:.1f} s at -e {eps:g}: none stricter", flush=True)
    for level in options.levels:
        reached = [seconds for eps, seconds in theirs.items() if primal[eps] - best.dual <= level * primal[eps]]
        row[f"liblinear {level:g}"] = min(reached, default=math.inf)
        for n in options.threads:
            row[f"fastmc-{n} {level:g}"] = ours[level, n]
    return row


def defaults(options):
    """scikit-learn's LinearSVC(multi_class="crammer_singer") as it comes against train(tol=1e-3)."""
    print(f"\n{'data':24}{'LinearSVC s':>12}{'fastmc s':>10}{'factor':>8}{'LinearSVC error':>17}{'fastmc error':>14}")
    for name in options.data:
        data, best = load(name), {}
        for _ in range(options.repeats):
            for who, fit in (("LinearSVC", sklearn_mcsvm), ("fastmc", by_tolerance)):
                result = quiet(fit, data, 1.0, {"LinearSVC": 1e-4, "fastmc": 1e-3}[who])
                if who not in best or result.seconds < best[who].seconds:
                    best[who] = result
        seconds = [best[who].seconds for who in ("LinearSVC", "fastmc")]
        errors = [100 * topk_error(data.problem.classes, data.X_test @ best[who].weights, data.y_test, 1)
                  for who in ("LinearSVC", "fastmc")]
        print(f"{name:24}{seconds[0]:12.3f}{seconds[1]:10.3f}{seconds[0] / seconds[1]:8.1f}"
              f"{errors[0]:16.2f}%{errors[1]:13.2f}%", flush=True)


# ------------------------------------------------------------------ the paper's experiments

def figures(options):
    rows = []
    for name in options.data:
        data = load(name)
        for smoothing in options.smoothing:
            rows += converge(data, smoothing, options)
    write_csv(options.out, "figures.csv", FIGURE_COLUMNS, rows)
    for number, smoothing in enumerate(options.smoothing, start=1):
        plot_convergence(options.out, f"figure{number}.png",
                         [row for row in rows if row["smoothing"] == smoothing])
    print_convergence(rows)


def converge(data, smoothing, options):
    """Objective error and gap of the current iterate of LSFW, StdFW, PG, turn by turn, lam = 1/n.

    The error is measured from the best dual value, so it is never too small; the reference's
    gap, printed, is the most by which it is too large.
    """
    problem = data.problem
    spec, lam, rng = spec_of(problem, "wusunier"), 1.0 / problem.n_samples, np.random.default_rng(0)
    optimum = reference(data, options, smoothing=smoothing, **LOSSES["wusunier"])
    print(f"{data.name}, smoothing {smoothing:g}: reference primal {optimum.primal:.8g}, "
          f"gap {optimum.gap:.2g}", flush=True)
    solvers = {name: new_solver(problem, name, spec, lam, smoothing) for name in PAPER_NAMES}
    spent, rows = dict.fromkeys(solvers, 0.0), []
    marks = set(np.unique(np.geomspace(1, options.iterations, 40).astype(int)).tolist())
    for iteration in range(1, options.iterations + 1):
        for name, solver in solvers.items():
            spent[name] += pass_seconds(solver, rng)
            if iteration in marks:
                found = _certificate.certificate(problem, spec, solver.weights, solver.dual_matrix(), lam, smoothing)
                rows.append({"dataset": data.name, "smoothing": smoothing, "solver": PAPER_NAMES[name],
                             "iteration": iteration, "seconds": spent[name], "primal": found.primal,
                             "dual": found.dual, "gap": found.gap})
    best = max([optimum.dual] + [row["dual"] for row in rows])
    for row in rows:
        row["objective_error"] = row["primal"] - best
    return rows


def print_convergence(rows):
    """Error and gap at about 10, 100, 1000 iterations and at the last one."""
    print(f"\n{'data':24}{'smoothing':>10} {'solver':8}{'iteration':>10}{'error':>11}{'gap':>11}"
          f"{'seconds':>9}")
    marks = sorted({row["iteration"] for row in rows})
    shown = {max(mark for mark in marks if mark <= limit) for limit in (10, 100, 1000, math.inf)}
    for row in rows:
        if row["iteration"] in shown:
            print(f"{row['dataset']:24}{row['smoothing']:10g} {row['solver']:8}{row['iteration']:10}"
                  f"{row['objective_error']:11.3g}{row['gap']:11.3g}{row['seconds']:9.2f}")


def plot_convergence(folder, name, rows):
    sets = list(dict.fromkeys(row["dataset"] for row in rows))
    figure, panels = new_figure(2, len(sets))
    for column, dataset in zip(panels.T, sets):
        mine = [row for row in rows if row["dataset"] == dataset]
        for axes, measure in zip(column, ("objective_error", "gap")):
            draw(axes, mine, "iteration", measure)
            axes.set_title(f"{dataset}, smoothing {mine[0]['smoothing']:g}", fontsize="medium")
    save(figure, folder, name)


def table1(options):
    rows = []
    for name in options.data:
        data = load(name)
        for trial in range(options.trials):
            rows += generalise(data, trial, options)
            # After every trial: a run of hours that is broken off keeps what it has.
            write_csv(options.out, "table1.csv", TABLE1_COLUMNS, rows)
    print_errors(rows)


def generalise(data, trial, options):
    """Test errors on one random half of the training file, trained on the other half."""
    order = np.random.default_rng(trial).permutation(len(data.y))
    train, test = np.array_split(order, 2)
    rows = []
    for solver, name in PAPER_NAMES.items():
        C = best_C(data, train, solver, options)
        scores, classes = fit_and_score(data, train, test, solver, C, options.iterations)
        for k in TABLE1_RANKS:
            rows.append({"dataset": data.name, "trial": trial, "solver": name, "C": C, "k": k,
                         "test_error": topk_error(classes, scores, data.y[test], k)})
    return rows


def best_C(data, rows, solver, options):
    """The C of least top-1 error on a fifth of the rows held out; the smallest of equals."""
    held, kept = np.split(rows, [len(rows) // 5])
    def error(C):
        scores, classes = fit_and_score(data, kept, held, solver, C, options.iterations)
        return topk_error(classes, scores, data.y[held], 1)
    return min(sorted(options.C), key=error)


def fit_and_score(data, train, test, name, C, iterations):
    problem = Problem(data.X[train], data.y[train])
    lam, rng = 1.0 / (C * problem.n_samples), np.random.default_rng(0)
    solver = new_solver(problem, name, spec_of(problem, "wusunier"), lam)
    for _ in range(iterations):
        pass_seconds(solver, rng)
    return data.X[test] @ solver.weights, problem.classes


def print_errors(rows):
    print(f"\ntest error, mean (standard deviation)\n{'data':24}{'solver':8}"
          + "".join(f"{f'top-{k}':>16}" for k in TABLE1_RANKS) + "   chosen C")
    for dataset, solver in dict.fromkeys((row["dataset"], row["solver"]) for row in rows):
        mine = [row for row in rows if (row["dataset"], row["solver"]) == (dataset, solver)]
        cells = []
        for k in TABLE1_RANKS:
            errors = [row["test_error"] for row in mine if row["k"] == k]
            # Over n - 1: an estimate from few trials; one trial has none.
            spread = np.std(errors, ddof=1) if len(errors) > 1 else math.nan
            cells.append(f"{np.mean(errors):.4f} ({spread:.4f})")
        chosen = sorted({row["C"] for row in mine})
        print(f"{dataset:24}{solver:8}" + "".join(f"{cell:>16}" for cell in cells)
              + "   " + " ".join(f"{C:g}" for C in chosen))


def table2(options):
    print(f"\nms an iteration, least (median) of {options.repeats}, wusunier, C = 1")
    names = list(PAPER_NAMES.values())
    print(f"{'data':24}" + "".join(f"{name:>18}" for name in names) + "   LSFW / StdFW")
    for dataset in options.data:
        times = iteration_seconds(load(dataset).problem, "wusunier", options.repeats)
        cells = [f"{1e3 * min(t):.2f} ({1e3 * np.median(t):.2f})" for t in times.values()]
        ratios = [measure(times["fw"]) / measure(times["stdfw"]) for measure in (min, np.median)]
        print(f"{dataset:24}" + "".join(f"{cell:>18}" for cell in cells)
              + f"   {ratios[0]:.2f} ({ratios[1]:.2f})", flush=True)


# ------------------------------------------------------------------ command line

def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    commands = parser.add_subparsers(required=True, metavar="run|levels|defaults|figures|table1|table2")

    def command(function, *defaults):
        sub = commands.add_parser(function.__name__, allow_abbrev=False)
        sub.set_defaults(function=function)
        sub.add_argument("--data", nargs="+", default=list(defaults), help="names of data sets")
        sub.add_argument("--out", type=pathlib.Path, default=RESULTS, help="folder of the results")
        add_clock_option(sub)
        return sub

    def reference_options(sub, seconds):
        sub.add_argument("--reference-tol", type=float, default=1e-6)
        sub.add_argument("--reference-time", type=float, default=seconds, help="seconds")

    sub = command(run, "news20_bydate_tfidf", "usps")
    sub.add_argument("--C", nargs="+", type=float, default=[1.0])
    sub.add_argument("--solvers", nargs="+", choices=ADAPTERS, default=list(ADAPTERS))
    sub.add_argument("--passes", nargs="+", type=int, default=[2**i for i in range(9)])
    sub.add_argument("--tol", nargs="+", type=float, default=[3, 1, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001],
                     help="tolerances of the solvers that have one, each in its own sense")
    sub.add_argument("--repeats", type=int, default=3)
    reference_options(sub, 60.0)
    sub = command(levels, "news20_bydate_tfidf", "sector_scale", "banking77_tfidf", "clinc150_tfidf")
    sub.add_argument("--C", nargs="+", type=float, default=[0.1, 1.0, 10.0])
    sub.add_argument("--levels", nargs="+", type=float, default=[1e-2, 1e-3, 1e-4])
    sub.add_argument("--tol", nargs="+", type=float, default=[3, 1, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001],
                     help="LIBLINEAR's -e, the loosest first")
    sub.add_argument("--csr", action="store_true", help="dense sets as sparse matrices")
    sub.add_argument("--budget", type=float, default=math.inf,
                     help="seconds; after a run of LIBLINEAR that took longer come none of a stricter -e")
    sub.add_argument("--repeats", type=int, default=3)
    sub.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    reference_options(sub, 60.0)
    sub = command(defaults, "news20_bydate_tfidf", "sector_scale", "banking77_tfidf", "clinc150_tfidf")
    sub.add_argument("--repeats", type=int, default=1)
    sub = command(figures, "news20_bydate_tfidf", "usps")
    sub.add_argument("--iterations", type=int, default=1000)
    sub.add_argument("--smoothing", nargs="+", type=float, default=[0.0, 0.01])
    reference_options(sub, 120.0)
    sub = command(table1, "news20_bydate_tfidf", "letter_scale")
    sub.add_argument("--iterations", type=int, default=1000)
    sub.add_argument("--trials", type=int, default=5)
    sub.add_argument("--C", nargs="+", type=float, default=[0.1, 1.0, 10.0])
    sub = command(table2, "news20_bydate_tfidf", "usps", "letter_scale", "sector_scale")
    sub.add_argument("--repeats", type=int, default=30)
    return parser.parse_args()


def main():
    options = parse()
    set_clock(options.clock)
    options.out.mkdir(parents=True, exist_ok=True)
    print(*header(), sep="\n", flush=True)
    options.function(options)


if __name__ == "__main__":
    main()
