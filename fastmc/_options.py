"""Checks of the arguments that need no data. Each error names the argument and its value."""
import math
import numbers
import sys

import numpy as np

from fastmc._exact_solver import ExactSolver
from fastmc._solvers import SOLVERS, BatchSolver

SAMPLINGS = ("permutation", "uniform", "cyclic", "gap")
PRECISIONS = ("auto", "single", "double")
FRANK_WOLFE = ("bcfw", "pairwise", "away")
# Where C can be without overflow in q = C ||x||^2 and its squares.
C_RANGE = (1e-50, 1e50)


def check_choice(argument, value, valid):
    if value not in valid:
        raise ValueError(f"{argument}={value!r} is unknown; valid: {', '.join(valid)}")


def check_count(argument, value, least):
    if not isinstance(value, numbers.Integral) or isinstance(value, bool) or value < least:
        raise ValueError(f"{argument}={value!r} must be a whole number of at least {least}")


def check_range(argument, value, low, high=math.inf, bound="above"):
    number = math.nan
    if isinstance(value, numbers.Real) and not isinstance(value, bool):
        try:
            number = float(value)
        except OverflowError:  # an int above all floats
            number = math.inf
    inside = math.isfinite(number) and number <= high and (
        number >= low if bound == "at least" else number > low)
    if not inside:
        limit = f"{bound} {low:g}" + (f" and at most {high:g}" if math.isfinite(high) else "")
        raise ValueError(f"{argument}={value!r} must be a finite number {limit}")


def check_smoothing(smoothing):
    check_range("smoothing", smoothing, 0.0, C_RANGE[1], "at least")
    if 0.0 < smoothing < C_RANGE[0]:
        raise ValueError(f"smoothing={smoothing!r} must be 0 or at least {C_RANGE[0]:g}")


def check_C_or_lam(C, lam):
    if C is not None and lam is not None:
        raise ValueError(f"give C={C!r} or lam={lam!r}, not both: lam = 1/(C n_samples)")
    if C is not None:
        check_range("C", C, *C_RANGE)
    if lam is not None:
        check_range("lam", lam, 0.0)


def lam_of(C, lam, n_samples):
    """(C, lam), with lam = 1/(C n_samples) and C = 1 if neither is given."""
    if lam is None:
        C = 1.0 if C is None else float(C)
        return C, 1.0 / (C * n_samples)
    check_range("lam", lam, 1.0 / (C_RANGE[1] * n_samples), 1.0 / (C_RANGE[0] * n_samples))
    return 1.0 / (float(lam) * n_samples), float(lam)


def check_solver(solver, sampling="permutation", averaging=False, gap_refresh=10, cache_size=0,
                 cache_f=0.25, cache_nu=0.01, precision="auto", n_threads=1):
    """The solver's name and the options that its constructor takes."""
    check_choice("solver", solver, ["auto", *SOLVERS])
    check_choice("sampling", sampling, SAMPLINGS)
    check_count("gap_refresh", gap_refresh, 0)
    check_count("cache_size", cache_size, 0)
    check_range("cache_f", cache_f, 0.0, bound="at least")
    check_range("cache_nu", cache_nu, 0.0, bound="at least")
    check_choice("precision", precision, PRECISIONS)
    solver = "sdca" if solver == "auto" else solver
    if sampling != "permutation" and SOLVERS[solver] is BatchSolver:
        raise ValueError(f"sampling={sampling!r} is for block solvers, not solver={solver!r}")
    for argument, value in (("averaging", averaging), ("cache_size", cache_size)):
        if value and solver not in FRANK_WOLFE:
            raise ValueError(f"{argument}={value!r} is for {', '.join(FRANK_WOLFE)}, "
                             f"not solver={solver!r}")
    if precision == "single" and solver != "sdca":
        raise ValueError(f"precision='single' is for sdca, not solver={solver!r}")
    if SOLVERS[solver] is BatchSolver:
        return solver, {}
    if SOLVERS[solver] is ExactSolver:
        return solver, {"sampling": sampling, "gap_refresh": gap_refresh, "precision": precision,
                        "n_threads": n_threads}
    return solver, {"sampling": sampling, "averaging": bool(averaging), "gap_refresh": gap_refresh,
                    "cache_size": min(cache_size, sys.maxsize), "cache_f": cache_f, "cache_nu": cache_nu}


def check_budgets(tol, max_passes, max_time):
    check_range("tol", tol, 0.0, bound="at least")
    check_count("max_passes", max_passes, 1)
    if max_time is not None:
        check_range("max_time", max_time, 0.0)


def check_engine(n_threads, engine):
    check_count("n_threads", n_threads, 0)
    check_choice("engine", engine, ["cython", "reference"])


def make_generator(random_state):
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, numbers.Integral) and random_state >= 0:
        return np.random.default_rng(int(random_state))
    raise ValueError(f"random_state={random_state!r} must be a non-negative int or a numpy Generator")
