"""The inner loops: seconds of a pass against a SciPy product, of an iteration, of a block step.

    FASTMC_DATA=folder python benchmarks/kernels.py [--repeats 9] [--data NAME ...]

Whatever is compared alternates within the run; the least time counts.
"""
import argparse

from _shared import (LOSSES, add_clock_option, header, iteration_seconds, load, new_solver,
                     seconds, set_clock, spec_of, whole_pass_seconds)

import numpy as np

from fastmc.losses import make_spec

DATA = ["news20_bydate_tfidf", "sector_scale", "clinc150_tfidf"]


def passes_against_product(problem, loss, repeats, warm=3):
    """Least seconds of an sdca pass over all samples with float32 and with float64 W and of X @ W (float64), C = 1."""
    rng = np.random.default_rng(0)
    solvers = [new_solver(problem, "sdca", spec_of(problem, loss), 1.0 / problem.n_samples, precision=precision)
               for precision in ("single", "double")]
    for _ in range(warm):
        for solver in solvers:
            whole_pass_seconds(solver, rng)
    weights, times = solvers[1].weights.copy(), ([], [], [])
    for _ in range(repeats):
        for found, solver in zip(times, solvers):
            found.append(whole_pass_seconds(solver, rng))
        times[2].append(seconds(lambda: problem.X @ weights))
    return [min(found) for found in times]


def print_passes(problems, repeats):
    print(f"\n(a) one sdca pass against one product X @ W, C = 1, least of {repeats}")
    print(f"{'data':24}{'m':>5} {'loss':10}{'X @ W ms':>9}{'float32 ms':>11}{'ratio':>7}{'to maxhinge':>13}"
          f"{'float64 ms':>12}{'ratio':>7}")
    for name, problem in problems.items():
        first = None
        for loss in LOSSES:
            single, double, product = passes_against_product(problem, loss, repeats)
            first = first or single
            print(f"{name:24}{problem.n_classes:5} {loss:10}{1e3 * product:9.2f}{1e3 * single:11.2f}"
                  f"{single / product:7.2f}{single / first:13.2f}{1e3 * double:12.2f}{double / product:7.2f}",
                  flush=True)


def print_iterations(problems, repeats):
    print(f"\n(b) one iteration of LSFW and of StdFW from the same points, C = 1, {repeats} iterations each")
    print(f"{'data':24}{'loss':10}{'LSFW ms':>9}{'StdFW ms':>10}{'ratio':>7}"
          f"{'median LSFW':>13}{'StdFW':>8}{'ratio':>7}")
    for name, problem in problems.items():
        for loss in ("maxhinge", "wusunier"):
            times = iteration_seconds(problem, loss, repeats, same_points=True)
            print(f"{name:24}{loss:10}", end="")
            for measure, widths in ((min, (9, 10)), (np.median, (13, 8))):
                ours, standard = (1e3 * measure(times[solver]) for solver in ("fw", "stdfw"))
                print(f"{ours:{widths[0]}.2f}{standard:{widths[1]}.2f}{ours / standard:7.2f}", end="")
            print(flush=True)


def step_nanoseconds(loss, m, repeats, numbers=2_000_000):
    """Least ns of a block step of A = 0 with q = 1, from normal scores with the own class ahead."""
    rng = np.random.default_rng(0)
    rows = numbers // m
    label = rng.integers(m, size=rows)
    scores = rng.normal(size=(rows, m))
    scores[np.arange(rows), label] += 1.0
    targets = -scores - 1.0
    targets[np.arange(rows), label] += 1.0
    step = make_spec(n_classes=m, **LOSSES[loss]).make()
    return 1e9 * min(seconds(lambda: step.project_rows(targets, label)) for _ in range(repeats)) / rows


def print_steps(repeats):
    sizes = (20, 150, 1000)
    print(f"\n(c) one block step alone (project_rows on made-up scores), ns, least of {repeats}")
    print(f"{'loss':10}" + "".join(f"{'m = ' + str(m):>10}" for m in sizes))
    for loss in LOSSES:
        times = [step_nanoseconds(loss, m, repeats) for m in sizes]
        print(f"{loss:10}" + "".join(f"{time:10.0f}" for time in times), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("--data", nargs="+", default=DATA, help="names of data sets")
    parser.add_argument("--repeats", type=int, default=9)
    add_clock_option(parser)
    options = parser.parse_args()
    set_clock(options.clock)
    if options.repeats < 1:
        parser.error("--repeats must be at least 1")
    problems = {name: load(name).problem for name in options.data}
    print(*header(), sep="\n")
    print_passes(problems, options.repeats)
    print_iterations(problems, 5 * options.repeats)
    print_steps(options.repeats)


if __name__ == "__main__":
    main()
