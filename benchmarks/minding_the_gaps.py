"""The experiments of Osokin et al., "Minding the Gaps", on multi-class data; max hinge.

    FASTMC_DATA=folder python benchmarks/minding_the_gaps.py sampling  uniform and gap sampling (figure 1)
    FASTMC_DATA=folder python benchmarks/minding_the_gaps.py methods   steps x sampling x cache
    FASTMC_DATA=folder python benchmarks/minding_the_gaps.py cache     cache parameters (figure 2)
    FASTMC_DATA=folder python benchmarks/minding_the_gaps.py path      regularization path and grids

A pass is n block steps (sdca leaves samples at rest out), an effective pass n oracle calls (as in the
paper). Full gap passes count as n oracle calls each; "core" effective passes leave them out. Gaps are
those of the current W and A, computed here from their definitions and never timed. Seconds are CPU seconds of one thread, which
other work on the machine disturbs less than the clock. Results go to benchmarks/results.
"""
import argparse
import cProfile
import itertools
import pathlib
import pstats

from _shared import (RESULTS, draw, header, load, new_figure, new_solver, now, pass_seconds, save,
                     seconds, set_clock, spec_of, write_csv)

import numpy as np

import fastmc
from fastmc import _certificate, _path
from fastmc._problem import Problem

DATA = ["news20_bydate_tfidf", "sector_scale", "clinc150_tfidf"]
LEVELS = (1e-1, 1e-2, 1e-3)
COSTS = ("passes", "effective_passes", "core_effective_passes", "seconds")
TRACE_COLUMNS = ("dataset", "C", "solver", "seed", "oracle_calls", "cache_hits", *COSTS, "primal", "dual",
                 "gap", "relative_gap", "gap_estimate", "gap_over_estimate")
PATH_COLUMNS = ("dataset", "solver", "repeat", "solves", "passes", "seconds", "worst_relative_gap")
POINT_COLUMNS = ("dataset", "solver", "lam", "passes", "relative_gap")
SPLIT_COLUMNS = ("dataset", "part", "calls", "seconds", "share")
REFRESHES = (1, 5, 10, 100, 0)
CACHE_SIZE = 50
CACHE_F = (0.01, 0.1, 0.25, 0.5, 1.0)
CACHE_NU = (0.0001, 0.01, 0.1, 1.0)
KAPPAS = (0.6, 0.7, 0.8, 0.9)
# What a path spends its time on, with the code that does it. None of them contains another.
PARTS = {"passes": _path._Follower.one_pass, "breakpoint gaps": _path.point_of,
         "start": _path._Start.__init__, "lambda_max": _path._Start.lambda_max,
         "checking X": Problem.__init__}


def methods_by_name():
    """{name: (solver, options)}: steps x sampling x cache, and sdca to compare with."""
    methods = {}
    for cache, solver, sampling in itertools.product((0, CACHE_SIZE), ("bcfw", "pairwise", "away"),
                                                     ("uniform", "gap")):
        name = f"{solver}-{sampling}" + ("-cache" if cache else "")
        methods[name] = solver, {"sampling": sampling, "cache_size": cache}
    for sampling in ("permutation", "gap"):
        methods[f"sdca-{sampling}"] = "sdca", {"sampling": sampling}
    return methods


METHODS = methods_by_name()


# ------------------------------------------------------------------ one run, pass by pass

def trace(data, name, method, options):
    """Rows of a run from A = 0: after each pass at first, later each time the passes grew by 5 %."""
    problem, lam = data.problem, 1.0 / (options.C * data.problem.n_samples)
    spec, rng = spec_of(problem, "maxhinge"), np.random.default_rng(options.seed)
    solver = new_solver(problem, method[0], spec, lam, **method[1])
    rows, spent, refreshes, marked = [], 0.0, 0, 0
    for passes in range(1, options.passes + 1):
        refreshes += solver.refresh_due()
        spent += pass_seconds(solver, rng)
        if passes < max(marked + 1, 1.05 * marked) and passes < options.passes:
            continue
        marked = passes
        found = _certificate.certificate(problem, spec, solver.weights, solver.dual_matrix(), lam)
        calls, n_active = solver.oracle_calls, len(solver.active)
        rows.append({"dataset": data.name, "C": options.C, "solver": name, "seed": options.seed,
                     "oracle_calls": calls, "cache_hits": solver.cache_hits, "passes": passes,
                     "effective_passes": calls / n_active,
                     "core_effective_passes": calls / n_active - refreshes, "seconds": spent,
                     **found._asdict(), "gap_estimate": solver.gap_estimate(),
                     "gap_over_estimate": found.gap / solver.gap_estimate()})
        if found.relative_gap <= options.tol:
            break
    print(f"{data.name}, {name}: {passes} passes, relative gap {found.relative_gap:.2g}", flush=True)
    return rows


def first(rows, level):
    """The first row with a relative gap of at most `level`, or None."""
    return next((row for row in rows if row["relative_gap"] <= level), None)


def group(rows):
    """{(data set, solver): its rows}, in the order of the rows."""
    groups = {}
    for row in rows:
        groups.setdefault((row["dataset"], row["solver"]), []).append(row)
    return groups


def publish(folder, name, lines):
    """Print a table and keep it under the header."""
    print("", *lines, sep="\n", flush=True)
    (folder / name).write_text("\n".join([*header(), "", *lines]) + "\n")


# ------------------------------------------------------------------ sampling

def sampling(options):
    """Uniform sampling against gap sampling with full gap passes more or less often."""
    choices = {"uniform": ("bcfw", {"sampling": "uniform"})}
    for refresh in REFRESHES:
        name = f"gap {refresh}" if refresh else "gap never"
        choices[name] = "bcfw", {"sampling": "gap", "gap_refresh": refresh}
    rows = []
    for name in options.data:
        data = load(name)
        for choice, method in choices.items():
            rows += trace(data, choice, method, options)
    write_csv(options.out, "sampling.csv", TRACE_COLUMNS, rows)
    publish(options.out, "sampling.txt", sampling_table(rows, options.passes))
    figure, panels = new_figure(len(options.data), 2)
    for line, name in zip(panels, options.data):
        mine = [row for row in rows if row["dataset"] == name]
        draw(line[0], mine, "effective_passes", "relative_gap")
        draw(line[1], mine, "effective_passes", "gap_over_estimate")
        line[0].set_title(name, fontsize="medium")
    save(figure, options.out, "sampling.png")


def sampling_table(rows, passes):
    """Relative gap near some numbers of effective passes, and the ratio of gap and estimate."""
    marks = [mark for mark in (5, 10, 20, 50, 100) if mark <= passes]
    lines = [f"bcfw: relative gap at the last certificate within so many effective passes; "
             f"gap / estimate after {passes} passes",
             f"{'data':22}{'sampling':12}" + "".join(f"{mark:>10}" for mark in marks) + f"{'ratio':>10}"]
    for (dataset, solver), mine in group(rows).items():
        cells = []
        for mark in marks:
            before = [row["relative_gap"] for row in mine if row["effective_passes"] <= mark]
            cells.append(f"{before[-1]:10.2g}" if before else f"{'-':>10}")
        lines.append(f"{dataset:22}{solver:12}" + "".join(cells) + f"{mine[-1]['gap_over_estimate']:10.3g}")
    return lines


# ------------------------------------------------------------------ methods

def methods(options):
    rows = []
    for name in options.data:
        data = load(name)
        for method in options.methods:
            rows += trace(data, method, METHODS[method], options)
    write_csv(options.out, "methods.csv", TRACE_COLUMNS, rows)
    publish(options.out, "methods.txt", [*methods_table(rows), "", *factors(rows)])
    plot_methods(options, rows)


def methods_table(rows):
    lines = ["passes | effective passes (without full gap passes) | CPU seconds to a relative gap of; "
             "the last relative gap",
             f"{'data':22}{'method':24}" + "".join(f"{level:>32g}" for level in LEVELS) + f"{'last':>10}"]
    for (dataset, solver), mine in group(rows).items():
        cells = "".join(f"{to_level(first(mine, level)):>32}" for level in LEVELS)
        lines.append(f"{dataset:22}{solver:24}{cells}{mine[-1]['relative_gap']:10.2g}")
    return lines


def to_level(row):
    if row is None:
        return "-"
    passes, effective, core, seconds = (row[cost] for cost in COSTS)
    return f"{passes} | {effective:.1f} ({core:.1f}) | {seconds:.2f}"


def factors(rows):
    """Effective passes of one method over another's at equal gap, for the pairs that were run."""
    groups = group(rows)
    pairs = [("bcfw-uniform", "pairwise-gap")]
    pairs += [(name, f"{name}-cache") for name in METHODS if f"{name}-cache" in METHODS]
    lines = [f"factors of effective passes (without full gap passes) at equal relative gap; > and <: one "
             "of the two did not get there, -: none",
             f"{'data':22}{'methods':44}" + "".join(f"{level:>16g}" for level in LEVELS)]
    for dataset in dict.fromkeys(row["dataset"] for row in rows):
        for pair in pairs:
            runs = [groups.get((dataset, name)) for name in pair]
            if all(runs):
                cells = [f"{ratio(*runs, level, 'effective_passes')} "
                         f"({ratio(*runs, level, 'core_effective_passes')})" for level in LEVELS]
                lines.append(f"{dataset:22}{' / '.join(pair):44}" + "".join(f"{c:>16}" for c in cells))
    return lines


def ratio(slow, fast, level, cost):
    """Cost of one run over that of another up to a gap; a bound where one of them did not get there."""
    one, other = first(slow, level), first(fast, level)
    if one is None and other is None:
        return "-"
    sign = ">" if one is None else "<" if other is None else ""
    return f"{sign}{(one or slow[-1])[cost] / (other or fast[-1])[cost]:.2f}"


def plot_methods(options, rows):
    """A row of pictures for each data set without the cache and one with it."""
    figure, panels = new_figure(2 * len(options.data), 3)
    for at, (name, cached) in enumerate(itertools.product(options.data, (False, True))):
        mine = [row for row in rows
                if row["dataset"] == name and row["solver"].endswith("-cache") == cached]
        for axes, unit in zip(panels[at], ("passes", "effective_passes", "seconds")):
            if mine:
                draw(axes, mine, unit, "relative_gap")
            axes.set_title(name, fontsize="medium")
    save(figure, options.out, "methods.png")


# ------------------------------------------------------------------ cache

def cache(options):
    """Pairwise steps with gap sampling under all pairs of the cache's parameters."""
    rows = []
    for name in options.data:
        data = load(name)
        rows += trace(data, "no cache", ("pairwise", {"sampling": "gap"}), options)
        for nu, f in itertools.product(CACHE_NU, CACHE_F):
            parameters = {"cache_size": CACHE_SIZE, "cache_f": f, "cache_nu": nu}
            rows += trace(data, setting(f, nu), ("pairwise", {"sampling": "gap", **parameters}), options)
    write_csv(options.out, "cache.csv", TRACE_COLUMNS, rows)
    publish(options.out, "cache.txt", cache_table(rows))
    plot_cache(options, rows)


def setting(f, nu):
    return f"F={f:g} nu={nu:g}"


def cache_table(rows):
    lines = ["pairwise, gap sampling: effective passes (passes) to a relative gap"]
    groups = group(rows)
    for dataset, level in itertools.product(dict.fromkeys(row["dataset"] for row in rows), LEVELS[1:]):
        lines += ["", f"{dataset}, relative gap {level:g}; no cache: "
                  + effort(groups[dataset, "no cache"], level),
                  f"{'F, nu':8}" + "".join(f"{nu:>14g}" for nu in CACHE_NU)]
        for f in CACHE_F:
            cells = [effort(groups[dataset, setting(f, nu)], level) for nu in CACHE_NU]
            lines.append(f"{f:<8g}" + "".join(f"{cell:>14}" for cell in cells))
    return lines


def effort(rows, level):
    row = first(rows, level)
    return "-" if row is None else f"{row['effective_passes']:.1f} ({row['passes']})"


def plot_cache(options, rows):
    """Gap against effective passes: F varies on the left, nu on the right, around the defaults."""
    figure, panels = new_figure(len(options.data), 2)
    ranges = [[setting(f, 0.01) for f in CACHE_F], [setting(0.25, nu) for nu in CACHE_NU]]
    for name, line in zip(options.data, panels):
        for axes, names in zip(line, ranges):
            shown = ["no cache", *names]
            draw(axes, [row for row in rows if row["dataset"] == name and row["solver"] in shown],
                 "effective_passes", "relative_gap")
            axes.set_title(name, fontsize="medium")
    save(figure, options.out, "cache.png")


# ------------------------------------------------------------------ path

def path(options):
    """Paths with several kappa and grids, in turn, each with the certificates it needs to stop."""
    rows, points, split = [], [], []
    for name in options.data:
        data = load(name)
        problem = data.problem
        lam_min = 1.0 / (options.C_max * problem.n_samples)
        lam_max = _path._Start(problem, spec_of(problem, "maxhinge"), 0.0).lambda_max(options.eps)
        grid = np.geomspace(lam_max, lam_min, options.points)
        split += time_split(data, lam_min, options)
        for repeat in range(options.repeats):
            print(f"{name}: round {repeat + 1} of {options.repeats}", flush=True)
            for method, solve in path_methods(data, grid, options).items():
                found = []
                spent = seconds(lambda: found.extend(solve()))
                rows.append({"dataset": name, "solver": method, "repeat": repeat, "seconds": spent,
                             "solves": len(found), "passes": found[-1][1],
                             "worst_relative_gap": max(gap for _, _, gap in found)})
                if repeat == 0:
                    points += [{"dataset": name, "solver": method, "lam": lam, "passes": passes,
                                "relative_gap": gap} for lam, passes, gap in found]
    write_csv(options.out, "path.csv", PATH_COLUMNS, rows)
    write_csv(options.out, "path_points.csv", POINT_COLUMNS, points)
    write_csv(options.out, "path_split.csv", SPLIT_COLUMNS, split)
    publish(options.out, "path.txt", path_table(rows, options) + [""] + split_table(split))
    plot_path(options, points)


def path_methods(data, grid, options):
    """{name: function that returns (lambda, passes so far, relative gap) of each solution}."""
    methods = {"cold grid": lambda: solve_grid(data, grid, options.eps, warm=False),
               "warm grid": lambda: solve_grid(data, grid, options.eps, warm=True)}
    for kappa in options.kappas:
        methods[f"path {kappa:g}"] = lambda kappa=kappa: follow(data, grid[-1], options.eps, kappa)
    return methods


def follow(data, lam_min, eps, kappa):
    """The path with another constant kappa."""
    kept, _path.KAPPA = _path.KAPPA, kappa
    found = fastmc.path(data.X, data.y, eps=eps, lam_min=lam_min)
    _path.KAPPA = kept
    return list(zip(found.lams.tolist(), found.n_passes.tolist(), found.relative_gap.tolist()))


def solve_grid(data, grid, eps, warm):
    model, passes, found = None, 0, []
    for lam in grid:
        model = fastmc.train(data.X, data.y, lam=lam, tol=eps, init=model if warm else None)
        passes += model.n_passes
        found.append((lam, passes, model.certificate.relative_gap))
    return found


def time_split(data, lam_min, options):
    """Rows: CPU seconds of the parts of one path."""
    profile = cProfile.Profile(now)
    total = seconds(lambda: profile.runcall(follow, data, lam_min, options.eps, _path.KAPPA))
    stats = pstats.Stats(profile).stats
    rows = []
    for part, function in PARTS.items():
        code = function.__code__
        _, calls, _, spent, _ = stats[code.co_filename, code.co_firstlineno, code.co_name]
        rows.append({"dataset": data.name, "part": part, "calls": calls, "seconds": spent})
    rest = total - sum(row["seconds"] for row in rows)
    rows.append({"dataset": data.name, "part": "rest", "calls": 1, "seconds": rest})
    return [{**row, "share": row["seconds"] / total} for row in rows]


def path_table(rows, options):
    """Least seconds over the repeats, and factors over the warm grid."""
    lines = [f"eps = tol = {options.eps:g} down to C = {options.C_max:g}; CPU seconds, least of "
             f"{options.repeats}",
             f"{'data':22}{'method':12}{'solves':>8}{'passes':>8}{'seconds':>9}{'worst gap':>11}"
             f"{'passes / warm':>15}{'seconds / warm':>16}"]
    groups = group(rows)
    for (dataset, method), mine in groups.items():
        warm = groups[dataset, "warm grid"]
        row, spent = mine[0], least(mine)
        lines.append(f"{dataset:22}{method:12}{row['solves']:8}{row['passes']:8}{spent:9.2f}"
                     f"{row['worst_relative_gap']:11.3g}{row['passes'] / warm[0]['passes']:15.2f}"
                     f"{spent / least(warm):16.2f}")
    return lines


def least(rows):
    return min(row["seconds"] for row in rows)


def split_table(split):
    lines = [f"where a path (kappa {_path.KAPPA:g}) spends its CPU seconds",
             f"{'data':22}{'part':18}{'calls':>7}{'seconds':>9}{'share':>8}"]
    return lines + [f"{row['dataset']:22}{row['part']:18}{row['calls']:7}{row['seconds']:9.2f}"
                    f"{row['share']:8.0%}" for row in split]


def plot_path(options, points):
    """Passes so far and certified gaps at the solutions, from the largest lambda down."""
    figure, panels = new_figure(len(options.data), 2)
    for name, line in zip(options.data, panels):
        for axes, measure in zip(line, ("passes", "relative_gap")):
            draw(axes, [row for row in points if row["dataset"] == name], "lam", measure)
            axes.invert_xaxis()
            axes.set_title(name, fontsize="medium")
    save(figure, options.out, "path.png")


# ------------------------------------------------------------------ command line

def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    commands = parser.add_subparsers(required=True, metavar="sampling|methods|cache|path")

    def command(function):
        sub = commands.add_parser(function.__name__, allow_abbrev=False)
        sub.set_defaults(function=function)
        sub.add_argument("--data", nargs="+", default=DATA, help="names of data sets")
        sub.add_argument("--out", type=pathlib.Path, default=RESULTS, help="folder of the results")
        return sub

    def trace_options(sub, passes, tol):
        sub.add_argument("--C", type=float, default=1.0)
        sub.add_argument("--seed", type=int, default=0)
        sub.add_argument("--passes", type=int, default=passes, help="most passes of a run")
        sub.add_argument("--tol", type=float, default=tol, help="relative gap at which a run ends")

    trace_options(command(sampling), 120, 0.0)
    sub = command(methods)
    trace_options(sub, 300, LEVELS[-1])
    sub.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    trace_options(command(cache), 150, LEVELS[-1])
    sub = command(path)
    sub.add_argument("--eps", type=float, default=0.1)
    sub.add_argument("--C-max", type=float, default=10.0, help="where path and grids end")
    sub.add_argument("--points", type=int, default=10, help="points of the grids")
    sub.add_argument("--kappas", nargs="+", type=float, default=list(KAPPAS))
    sub.add_argument("--repeats", type=int, default=3)
    return parser.parse_args()


def main():
    options = parse()
    set_clock("cpu")
    options.out.mkdir(parents=True, exist_ok=True)
    print(*header(), sep="\n", flush=True)
    options.function(options)


if __name__ == "__main__":
    main()
