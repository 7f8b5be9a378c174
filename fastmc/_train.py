"""train(): the one driver of all solvers."""
import time
import warnings
from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from fastmc._certificate import Certificate, combine, infeasibility, primal_value
from fastmc._history import History
from fastmc._model import Model
from fastmc._options import (check_budgets, check_C_or_lam, check_engine, check_smoothing,
                             check_solver, lam_of, make_generator)
from fastmc._problem import Problem
from fastmc._progress import Progress
from fastmc._solver_base import Candidate
from fastmc._solvers import make_solver
from fastmc._types import Matrix, RandomState
from fastmc.losses import check_loss, make_spec

class ConvergenceWarning(UserWarning):
    """Training ended on a budget before the duality gap reached the tolerance."""


def train(X: Matrix, y: ArrayLike, loss: str = "maxhinge", *, k: int = 1, own_class: bool = True,
          rho: ArrayLike | None = None, cost: ArrayLike | None = None, C: float | None = None,
          lam: float | None = None, smoothing: float = 0.0, solver: str = "auto",
          sampling: str = "permutation", averaging: bool = False, gap_refresh: int = 10,
          cache_size: int = 0, cache_f: float = 0.25, cache_nu: float = 0.01, tol: float = 1e-3,
          max_passes: int = 1000, max_time: float | None = None, bias: float | None = None,
          class_weight: Literal["balanced"] | Mapping[Any, float] | None = None,
          sample_weight: ArrayLike | None = None, init: Model | None = None, n_threads: int = 1,
          random_state: RandomState = 0,
          callback: "Callable[[TrainingState], object] | None" = None, verbose: int = 0,
          precision: str = "auto", engine: str = "cython") -> Model:
    """Train a linear multi-class classifier, with a certificate of how good it is.

    Minimises lambda/2 ||W||^2 + 1/n sum_i omega_i Phi(W x_i; y_i) over W (n_classes, n_features)
    (Tajima et al., equation 2.1), lambda = 1/(C n).

    Parameters
    ----------
    X : sparse matrix or array, or array-like, shape (n_samples, n_features)
        CSR and C-ordered dense float32 or float64 are used without a copy, but for dense arrays with three
        zeros in four: passes work on their CSR form. Of float64 values passes in single precision may have a
        copy in float32, where W or the copy is small. Never changed.
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
        "auto" and "sdca": exact block maximisation. "pairwise" and "away": block-coordinate
        Frank-Wolfe with pairwise or away steps. "bcfw": block-coordinate Frank-Wolfe. "fw":
        Frank-Wolfe with line search, "stdfw": with steps 2/(t+1), "pg": projected gradient.
        bcfw and the last three converge slowly and serve comparison.
    sampling : str
        Order of the block solvers: "permutation" (fresh each pass), "uniform", "cyclic", or "gap":
        samples with probability proportional to their last known gap (Osokin et al., section
        3.1), at the price of a full gap pass every `gap_refresh` passes.
    averaging : bool
        bcfw, pairwise, away: also certify the weighted average of the iterates, and return it if
        it is better; costs a second W and a second update of it a step.
    gap_refresh : int
        Passes between full gap passes, for gap sampling and the cache. 0 makes one at the start
        only: unsafe, the known gaps grow stale and the run need not converge.
    cache_size : int
        bcfw, pairwise, away: corners kept per sample; a kept corner that promises enough saves
        the call of the oracle (Osokin et al., section 3.3). 0 for no cache.
    cache_f, cache_nu : float
        A kept corner is taken if its gap is at least cache_f times the sample's gap at its last
        oracle call and cache_nu times the mean gap at the last full gap pass.
    tol : float
        Stop when the duality gap is at most tol times the primal objective. 0 runs the
        whole budget, with one certificate at the end (a callback can ask for more).
    max_passes : int
        Budget in passes over the data (n_samples block updates, or one batch iteration; sdca leaves samples
        with nothing to do out of up to 32 passes running).
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
        Of sdca, 0 for all cores. Two or more share the certificates and, on sparse texts, the passes, which then
        take some samples at once: the result differs from that of one thread within the tolerance, and depends
        neither on how many threads there are nor on their timing.
    random_state : int or numpy.random.Generator
        Draws the block order. The same seed gives the same bits.
    callback : callable or None
        Called after each pass with a `TrainingState`; a true result stops training.
    verbose : int
        1 shows progress with the estimated gap on standard error.
    precision : str
        Of W during the passes of sdca: "single", "double", or "auto": single until the relative gap is
        below 1e-4 or rounding hides what passes gain, double beyond, and for data of extreme scale.
        Certificates are float64 always.
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

    Examples
    --------
    >>> import fastmc
    >>> X = [[1.0, 0.0], [0.9, 0.3], [0.0, 1.0], [0.1, 0.8], [-1.0, -1.0], [-0.7, -0.9]]
    >>> y = ["east", "east", "north", "north", "south", "south"]
    >>> model = fastmc.train(X, y, loss="topk", k=2, C=10)
    >>> model.status, model.certificate.relative_gap <= 1e-3
    ('converged', True)
    >>> model.score(X, y)
    1.0
    """
    began = time.perf_counter()
    name = check_loss(loss, k, rho, own_class)
    if name == "structured" and cost is None:
        raise ValueError("loss='structured' needs cost")
    check_C_or_lam(C, lam)
    check_smoothing(smoothing)
    solver, options = check_solver(solver, sampling, averaging, gap_refresh, cache_size, cache_f,
                                   cache_nu, precision, n_threads)
    check_budgets(tol, max_passes, max_time)
    check_engine(n_threads, engine)
    if callback is not None and not callable(callback):
        raise ValueError(f"callback={callback!r} must be a function of the training state")
    rng = make_generator(random_state)
    problem = Problem(X, y, cost, bias, class_weight, sample_weight)
    spec = make_spec(name, problem.n_classes, k, rho, own_class)
    C, lam = lam_of(C, lam, problem.n_samples)
    dual = None if init is None else _initial_dual(init, problem, spec)
    run = Run(make_solver(solver, problem, spec, lam, float(smoothing), engine, dual, **options),
              began)
    if init is not None:
        run.start_from(init)
    run.until_done(rng, float(tol), max_passes, max_time, callback, verbose)
    if run.status in ("max_passes", "time_limit") and tol > 0:
        warnings.warn(_advice(run, tol, C), ConvergenceWarning, stacklevel=2)
    return run.model()


class TrainingState:
    """What a callback sees after a pass.

    Attributes
    ----------
    passes : int
        Passes made.
    seconds : float
        Since training began.
    gap_estimate : float
        Duality gap as the visits saw it, each sample at the W of its own time; free, and no
        certificate.
    certificate : Certificate
        Primal, dual and gap of the best found so far. Computed when asked for (about the time of
        a pass) and then a row of the history.
    weights : ndarray, shape (n_weights, n_classes)
        W after this pass, the row of the bias last, float32 or float64; the solver's own array, not to be
        changed.
    """

    passes: int
    seconds: float
    gap_estimate: float

    def __init__(self, run):
        self._run = run
        self.passes, self.seconds = run.passes, run.seconds()
        self.gap_estimate = run.solver.gap_estimate()

    @property
    def certificate(self) -> Certificate:
        return self._run.check()

    @property
    def weights(self):
        return self._run.solver.weights


class Run:
    """The state of one training run: the best W and A so far, their certificate, the history.

    The halves of a certificate are independent: the best dual value and the best primal value
    seen bound the optimum from both sides, whichever passes they come from.
    """

    def __init__(self, solver, began):
        self.solver, self.began = solver, began
        self.passes, self.checked_at = 0, None
        self.history, self.status = History(), None
        problem = solver.problem
        # W = 0 and A = 0 are always at hand: nothing worse is ever returned.
        self.weights = lambda: np.zeros((problem.n_weights, problem.n_classes))
        self.dual = lambda: sp.csr_array((problem.n_samples, problem.n_classes))
        self.primal, self.dual_value = solver.primal_at_zero(), 0.0
        if self.primal and not 1e-150 <= self.primal <= 1e150:
            raise ValueError(f"the mean loss at W = 0 is {self.primal:.3g}: scale cost, rho or "
                             "sample_weight")
        # How the certified gap compared with the estimate when last looked at.
        self.ratio = solver.GAP_RATIO

    @property
    def certificate(self):
        return combine(self.primal, self.dual_value)

    def seconds(self):
        return time.perf_counter() - self.began

    def start_from(self, init):
        """Certify the W of a model besides the dual that the solver has taken up from it."""
        solver = self.solver
        self.consider([Candidate(
            primal_value(solver.problem, solver.spec, init.weights, solver.lam, solver.smoothing),
            candidate.dual, lambda: init.weights.copy, candidate.keep_dual)
            for candidate in solver.candidates()])

    def consider(self, candidates):
        """Keep the best of each half of the certificates and record a row of the history."""
        for candidate in candidates:
            if candidate.primal < self.primal:
                self.primal, self.weights = candidate.primal, candidate.keep_weights()
            if candidate.dual > self.dual_value:
                self.dual_value, self.dual = candidate.dual, candidate.keep_dual()
        self.history.append(passes=self.passes, oracle_calls=self.solver.oracle_calls,
                            cache_hits=self.solver.cache_hits, primal=self.primal,
                            dual=self.dual_value, gap=self.primal - self.dual_value,
                            seconds=self.seconds())

    def check(self):
        """The certificate after this pass, computed at most once a pass."""
        if self.checked_at != self.passes:
            self.checked_at = self.passes
            self.consider(self.solver.candidates())
            estimate = self.solver.gap_estimate()
            self.ratio = min(1.0, self.certificate.gap / estimate) if estimate > 0 else 1.0
        return self.certificate

    def converged(self, tol):
        return tol > 0 and self.certificate.relative_gap <= tol

    def due(self, tol):
        """Whether this pass is worth a certificate: the estimate says so, or many have passed."""
        if tol == 0:
            return False
        last = self.checked_at or 0
        target = tol * self.solver.primal_estimate(self.primal)
        return self.ratio * self.solver.gap_estimate() <= 1.05 * target or (
            self.passes >= self.solver.PATIENCE * last + self.solver.FIRST_CHECK)

    def until_done(self, rng, tol, max_passes, max_time=None, callback=None, verbose=0):
        """Passes until the certificate or a budget ends them; sets `status`."""
        progress = Progress(verbose, max_passes)
        self.status = None
        while self.status is None:
            if self.converged(tol):
                self.status = "converged"
                if not len(self.history["passes"]):
                    self.consider([])  # W = 0 is good enough: a row to say so
            elif self.passes >= max_passes:
                self.status = "max_passes"
            elif not self.one_pass(rng, max_time):
                self.status = "time_limit"
                self.checked_at = None  # the pass was broken off: W is newer than the last check
            else:
                gap = self.solver.gap_estimate() / (self.primal or 1.0)
                progress.show(f"relative gap ~ {gap:.2e}", self.seconds())
                if callback is not None and callback(TrainingState(self)):
                    self.status = "stopped"
                elif self.due(tol):
                    self.check()
                    if not self.converged(tol):
                        self.solver.wake()
        if self.status != "converged":
            self.check()
            if self.converged(tol):
                self.status = "converged"
        progress.close()

    def one_pass(self, rng, max_time):
        """One pass over the data; False if the time ran out on the way."""
        for _ in self.solver.sweep(rng):
            if max_time is not None and self.seconds() > max_time:
                return False
        self.passes += 1
        return True

    def model(self):
        solver, problem = self.solver, self.solver.problem
        return Model(self.weights(), problem.classes, spec=solver.spec, bias=problem.bias,
                     C=1.0 / solver.lam_n, lam=solver.lam, smoothing=solver.smoothing,
                     n_samples=problem.n_samples, solver=solver.kind, certificate=self.certificate,
                     status=self.status, n_passes=self.passes, history=self.history,
                     dual=self.dual, sample_weight=problem.weight)


def _initial_dual(init, problem, spec):
    """The dual of a model to start from, sparse, checked to be feasible for this problem."""
    if not isinstance(init, Model):
        raise ValueError(f"init={init!r} must be a Model, from train or load_model")
    if init.dual_ is None:
        raise ValueError("init has no dual (a text model keeps none): train it here or load an .npz")
    if init.dual_.shape[0] != problem.n_samples:
        raise ValueError(f"init was trained on {init.dual_.shape[0]} samples, X has {problem.n_samples}")
    if not np.array_equal(init.classes_, problem.classes):
        raise ValueError(f"init has classes {init.classes_.tolist()}, "
                         f"y has {problem.classes.tolist()}")
    if init.spec != spec:
        raise ValueError(f"init was trained with {init.spec}, not with {spec}: pass the same loss, k, "
                         "rho and own_class")
    if init.weights.shape != (problem.n_weights, problem.n_classes):
        raise ValueError(f"init has {init.weights.shape[0]} features (the bias included), "
                         f"X has {problem.n_weights}")
    dual = sp.csr_array(init.dual_)
    # Written so that NaN does not pass; the dual of a sample without weight is zero.
    if not infeasibility(problem, spec, dual) <= 1e-9 or dual[problem.weight == 0].count_nonzero():
        raise ValueError("init's dual does not fit these labels or sample weights")
    return dual


def _advice(run, tol, C):
    knob = "max_passes" if run.status == "max_passes" else "max_time"
    return (f"training stopped after {run.passes} passes ({run.status}) at a relative duality gap of "
            f"{run.certificate.relative_gap:.3g}, above tol={tol:g}; raise {knob}, raise tol, lower "
            f"C={C:g}, or scale the features")
