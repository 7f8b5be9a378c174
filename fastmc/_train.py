"""train(): the one driver of all solvers."""
import math
import numbers
import sys
import time
import warnings

import numpy as np
import scipy.sparse as sp

from fastmc import _certificate
from fastmc._history import History
from fastmc._model import Model
from fastmc._problem import Problem
from fastmc._solvers import SOLVERS, BlockSolver, make_solver
from fastmc.losses import check_loss, make_spec

SAMPLINGS = ("permutation", "uniform", "cyclic")
# Where C can be without overflow in q = C ||x||^2 and its squares.
C_RANGE = (1e-50, 1e50)


class ConvergenceWarning(UserWarning):
    """Training ended on a budget before the duality gap reached the tolerance."""


def train(X, y, loss="maxhinge", *, k=1, own_class=True, rho=None, cost=None, C=None, lam=None,
          smoothing=0.0, solver="auto", sampling="permutation", averaging=False, cache_size=0,
          tol=1e-3, max_passes=1000, max_time=None, bias=None, class_weight=None,
          sample_weight=None, init=None, n_threads=1, random_state=0, callback=None, verbose=0,
          precision="auto", engine="cython"):
    """Train a linear multi-class classifier, with a certificate of how good it is.

    Minimises lambda/2 ||W||^2 + 1/n sum_i omega_i Phi(W x_i; y_i) over W (n_classes, n_features)
    (Tajima et al., equation 2.1), lambda = 1/(C n).

    Parameters
    ----------
    X : sparse matrix or array, or array-like, shape (n_samples, n_features)
        CSR and C-ordered dense float32 or float64 are used without a copy. Never changed.
    y : array-like, shape (n_samples,)
        Labels of any sortable kind.
    loss : str
        "maxhinge" (alias "crammer_singer"), "structured", "topk", "usunier", "wtopk", "wusunier".
    k : int
        For topk and usunier: number of ranks, 1 <= k <= n_classes - 1.
    own_class : bool
        Top-k type: whether the own class counts among the k, as in the paper.
    rho : array-like or None
        For wtopk and wusunier: rank weights, non-negative and non-increasing, at most
        n_classes - 1 of them positive; not normalised.
    cost : array-like or None
        (n_classes, n_classes), row = own class in sorted order, or (n_samples, n_classes);
        non-negative, zero at the own class. None: 1 for every wrong class. Needed by
        "structured", allowed by all.
    C, lam : float or None
        Give at most one; C = 1 if neither. lam = 1/(C n_samples).
    smoothing : float
        Moreau parameter gamma >= 0 (Tajima et al., equation 2.21); 0 for the loss itself.
    solver : str
        "auto" and "sdca": exact block maximisation. "bcfw": block-coordinate Frank-Wolfe. "fw":
        Frank-Wolfe with line search, "stdfw": with steps 2/(t+1), "pg": projected gradient;
        these and bcfw converge slowly and serve comparison.
    sampling : str
        Order of the block solvers: "permutation" (fresh each pass), "uniform", "cyclic".
    averaging : bool
        bcfw: also certify the weighted average of the iterates, and return it if it is better.
    tol : float
        Stop when the duality gap is at most tol times the primal objective. 0 runs the
        whole budget, with one certificate at the end (a callback can ask for more).
    max_passes : int
        Budget in passes over the data (n_samples block updates, or one batch iteration).
    max_time : float or None
        Budget in seconds.
    bias : float or None
        Value of a constant feature, regularised like any other (LIBLINEAR's -B).
    class_weight : None, "balanced" or dict
        Factors on the weights of the samples of each class; "balanced" is
        sum(omega) / (n_classes * sum of omega in the class).
    sample_weight : array-like or None, shape (n_samples,)
        omega_i >= 0. At fixed C weight w equals w copies, and weight 0 equals removal.
    init : Model or None
        Start from a trained model of the same samples, classes and loss. Its stored W is
        certified first, then its dual is taken up; C, tol, smoothing and cost may differ.
    n_threads : int
        1; more threads are not available yet.
    random_state : int or numpy.random.Generator
        Draws the block order. The same seed gives the same bits.
    callback : callable or None
        Called after each pass with a `TrainingState`; a true result stops training.
    verbose : int
        1 shows progress with the estimated gap on standard error.
    precision : str
        "auto" or "double": W is float64.
    engine : str
        "cython", or "reference" for the pure-Python mirror (same bits, slow).

    Returns
    -------
    Model

    Raises
    ------
    ValueError
        Naming the argument and its value.
    MemoryError
        If W would not fit in memory, before it is allocated.

    Warns
    -----
    ConvergenceWarning
        If a budget ended training before the gap reached tol.
    """
    began = time.perf_counter()
    name = check_loss(loss, k, rho, own_class)
    _check_options(C, lam, smoothing, solver, sampling, averaging, tol, max_passes, max_time,
                   n_threads, precision, engine, cache_size)
    if name == "structured" and cost is None:
        raise ValueError("loss='structured' needs cost")
    smoothing, tol = float(smoothing), float(tol)
    rng = _generator(random_state)
    problem = Problem(X, y, cost, bias, class_weight, sample_weight)
    spec = make_spec(name, problem.n_classes, k, rho, own_class)
    if lam is None:
        C = 1.0 if C is None else float(C)
        lam = 1.0 / (C * problem.n_samples)
    else:
        lam = float(lam)
        C = 1.0 / (lam * problem.n_samples)
        _check_range("lam", lam, 1.0 / (C_RANGE[1] * problem.n_samples), 1.0 / (C_RANGE[0] * problem.n_samples))
    dual = None if init is None else _initial_dual(init, problem, spec)
    solver = "sdca" if solver == "auto" else solver
    engine_solver = make_solver(solver, problem, spec, lam, smoothing, engine, dual, sampling, averaging)
    run = _Run(problem, spec, engine_solver, lam, smoothing, tol, began)
    if init is not None:
        run.consider([(init.weights, dual)])
    run.passes_until_done(rng, max_passes, max_time, callback, verbose)
    status = run.status
    if status in ("max_passes", "time_limit") and tol > 0:
        warnings.warn(_advice(status, run, tol, C), ConvergenceWarning, stacklevel=2)
    return Model(run.weights, problem.classes, spec=spec, bias=problem.bias, C=C, lam=lam,
                 smoothing=smoothing, n_samples=problem.n_samples, solver=solver,
                 certificate=run.certificate, status=status, n_passes=run.passes,
                 history=run.history, dual=sp.csr_array(run.dual), sample_weight=problem.weight)


class TrainingState:
    """What a callback sees after a pass.

    Attributes
    ----------
    passes : int
        Passes made.
    seconds : float
        Since training began.
    gap_estimate : float
        Relative duality gap as the pass saw it on its way; free, and no certificate.
    certificate : Certificate
        Primal, dual and gap of the best found so far. Computed when asked for (about the time of
        a pass) and then a row of the history.
    """

    def __init__(self, run):
        self._run = run
        self.passes, self.seconds = run.passes, run.seconds()
        self.gap_estimate = run.solver.relative_gap_estimate()

    @property
    def certificate(self):
        return self._run.check()


class _Run:
    """The state of one training run: the best W and A so far, their certificate, the history.

    The halves of a certificate are independent: the best dual value and the best primal value
    seen bound the optimum from both sides, whichever passes they come from.
    """

    def __init__(self, problem, spec, solver, lam, smoothing, tol, began):
        self.problem, self.spec, self.solver = problem, spec, solver
        self.lam, self.smoothing, self.tol, self.began = lam, smoothing, tol, began
        self.passes, self.checked_at = 0, None
        self.primal, self.dual_value = math.inf, -math.inf
        self.weights = self.dual = None
        self.history, self.status = History(), None

    @property
    def certificate(self):
        return _certificate.combine(self.primal, self.dual_value)

    def seconds(self):
        return time.perf_counter() - self.began

    def consider(self, pairs):
        """Certify pairs (W, A); keep the best of each and record a row of the history."""
        args = self.lam, self.smoothing
        for weights, dual in pairs:
            primal = _certificate.primal_value(self.problem, self.spec, weights, *args)
            if primal < self.primal:
                self.primal, self.weights = primal, weights.copy()
            value = _certificate.dual_value(self.problem, dual, *args)
            if value > self.dual_value:
                self.dual_value, self.dual = value, dual.copy()
        self.history.append(passes=self.passes, oracle_calls=self.solver.oracle_calls, cache_hits=0,
                            primal=self.primal, dual=self.dual_value,
                            gap=self.primal - self.dual_value, seconds=self.seconds())

    def check(self):
        """The certificate after this pass, computed at most once a pass."""
        if self.checked_at != self.passes:
            self.checked_at = self.passes
            self.consider(self.solver.candidates())
        return self.certificate

    def converged(self):
        return self.tol > 0 and self.certificate.relative_gap <= self.tol

    def due(self):
        """Whether this pass is worth a certificate: its own estimate says so, or many have passed."""
        if self.tol == 0:
            return False
        last = self.checked_at or 0
        return (self.solver.relative_gap_estimate() <= 1.3 * self.tol
                or self.passes >= 1.5 * last + 1)

    def passes_until_done(self, rng, max_passes, max_time, callback, verbose):
        progress = _Progress(verbose, max_passes)
        while self.status is None:
            if self.weights is not None and self.converged():
                self.status = "converged"
            elif self.passes >= max_passes:
                self.status = "max_passes"
            elif not self.one_pass(rng, max_time):
                self.status = "time_limit"
            else:
                progress.update(self)
                if callback is not None and callback(TrainingState(self)):
                    self.status = "stopped"
                elif self.due():
                    self.check()
        if self.status != "converged":
            if self.status == "time_limit":
                self.checked_at = None  # the last pass was broken off: W is newer than the check
            self.check()
            if self.converged():
                self.status = "converged"
        progress.close()

    def one_pass(self, rng, max_time):
        """One pass over the data; False if the time ran out on the way."""
        for _ in self.solver.sweep(rng):
            if max_time is not None and self.seconds() > max_time:
                return False
        self.passes += 1
        return True


class _Progress:
    """A tqdm bar where tqdm is installed, a plain line every second pass otherwise."""

    def __init__(self, verbose, max_passes):
        self.bar = None
        self.on, self.shown = bool(verbose), 0.0
        if self.on:
            try:
                from tqdm import tqdm
            except ImportError:
                return
            self.bar = tqdm(total=max_passes, unit="pass", file=sys.stderr)

    def update(self, run):
        if not self.on:
            return
        gap = f"{run.solver.relative_gap_estimate():.2e}"
        if self.bar is not None:
            self.bar.set_postfix_str(f"relative gap ~ {gap}", refresh=False)
            self.bar.update()
        elif run.seconds() - self.shown >= 1.0:
            self.shown = run.seconds()
            print(f"pass {run.passes}: relative gap ~ {gap}, {self.shown:.1f} s", file=sys.stderr)

    def close(self):
        if self.bar is not None:
            self.bar.close()


def _check_options(C, lam, smoothing, solver, sampling, averaging, tol, max_passes, max_time,
                   n_threads, precision, engine, cache_size):
    if C is not None and lam is not None:
        raise ValueError(f"give C={C!r} or lam={lam!r}, not both: lam = 1/(C n_samples)")
    if C is not None:
        _check_range("C", C, *C_RANGE)
    if lam is not None:
        _check_range("lam", lam, 0.0, math.inf)
    _check_range("smoothing", smoothing, 0.0, C_RANGE[1], "at least")
    _check_range("tol", tol, 0.0, math.inf, "at least")
    if not isinstance(max_passes, numbers.Integral) or isinstance(max_passes, bool) or max_passes < 1:
        raise ValueError(f"max_passes={max_passes!r} must be a whole number of at least 1")
    if max_time is not None:
        _check_range("max_time", max_time, 0.0, math.inf)
    if solver in ("pairwise", "away"):
        raise ValueError(f"solver={solver!r} is not available yet")
    _check_choice("solver", solver, ["auto", *SOLVERS])
    if sampling == "gap":
        raise ValueError("sampling='gap' is not available yet")
    _check_choice("sampling", sampling, SAMPLINGS)
    if sampling != "permutation" and solver != "auto" and SOLVERS[solver][0] is not BlockSolver:
        raise ValueError(f"sampling={sampling!r} is for block solvers, not solver={solver!r}")
    if averaging and solver != "bcfw":
        raise ValueError(f"averaging=True is for solver='bcfw', not {solver!r}")
    if cache_size != 0:
        raise ValueError(f"cache_size={cache_size!r}: the cache is not available yet")
    if n_threads != 1:
        raise ValueError(f"n_threads={n_threads!r}: threads are not available yet")
    if precision == "single":
        raise ValueError("precision='single' is not available yet")
    _check_choice("precision", precision, ["auto", "double"])
    _check_choice("engine", engine, ["cython", "reference"])


def _check_choice(argument, value, valid):
    if value not in valid:
        raise ValueError(f"{argument}={value!r} is unknown; valid: {', '.join(valid)}")


def _check_range(argument, value, low, high, bound="above"):
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


def _generator(random_state):
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, numbers.Integral) and random_state >= 0:
        return np.random.default_rng(int(random_state))
    raise ValueError(f"random_state={random_state!r} must be a non-negative int or a numpy Generator")


def _initial_dual(init, problem, spec):
    """The dense dual of a model to start from, checked to be feasible for this problem."""
    if getattr(init, "dual_", None) is None:
        raise ValueError("init has no dual (a text model keeps none): train it here or load an .npz")
    if init.dual_.shape[0] != problem.n_samples:
        raise ValueError(f"init was trained on {init.dual_.shape[0]} samples, X has {problem.n_samples}")
    if not np.array_equal(init.classes_, problem.classes):
        raise ValueError(f"init has classes {list(init.classes_)}, y has {list(problem.classes)}")
    if init.spec != spec:
        raise ValueError(f"init was trained with {init.spec}, not {spec}")
    if init.weights.shape != (problem.n_weights, problem.n_classes):
        raise ValueError(f"init has {init.weights.shape[0]} features (the bias included), "
                         f"X has {problem.n_weights}")
    dual = init.dual_.toarray()
    if _certificate.infeasibility(problem, spec, dual) > 1e-9:
        raise ValueError("init's dual does not fit these labels or sample weights")
    return dual


def _advice(status, run, tol, C):
    knob = "max_passes" if status == "max_passes" else "max_time"
    return (f"training stopped after {run.passes} passes ({status}) at a relative duality gap of "
            f"{run.certificate.relative_gap:.3g}, above tol={tol:g}; raise {knob}, raise tol, lower "
            f"C={C:g}, or scale the features")
