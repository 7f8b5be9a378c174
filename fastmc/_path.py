"""Regularization path with a certified gap at every lambda (Osokin et al., section 4)."""
import csv
import time
import warnings
from collections.abc import Mapping
from functools import partial
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from fastmc._certificate import Certificate, combine, squared_norm
from fastmc._exact_solver import objective
from fastmc._files import replacing
from fastmc._model import Model
from fastmc._options import (check_budgets, check_engine, check_range, check_smoothing, check_solver,
                             make_generator)
from fastmc._problem import Problem, check_matrix
from fastmc._progress import Progress
from fastmc._solver_base import modules
from fastmc._solvers import make_solver
from fastmc._train import ConvergenceWarning
from fastmc._types import Array, FilePath, Matrix, RandomState
from fastmc.losses import check_loss, make_spec

# Each breakpoint is solved to this part of eps; the rest is what W lasts for. Close to 1 means
# many cheap breakpoints, small means few dear ones.
KAPPA = 0.6
# The largest cost of a sample when a projection is to give the mean corner: it has to be large.
SHARP = 1e9
# Solvers with fixed steps, which forget where they start.
NO_FOLLOWERS = ("stdfw", "pg")
# Rounding hides smaller relative gaps.
EPS_MIN = 1e-12


class RegularizationPath:
    """Solutions for all lambda >= lam_min; W is constant between two breakpoints.

    Attributes
    ----------
    lams : ndarray, shape (n_breakpoints,)
        Descending; the first is lambda_max, at least lam_min. The solution of a breakpoint serves down to the next.
    C : ndarray
        1 / (lams n_samples).
    primal, dual, gap, relative_gap : ndarray
        Certificates at the breakpoints.
    n_passes, seconds : ndarray
        Cumulative, when each breakpoint was done.
    top1_error, topk_error : ndarray or None
        On the validation data, if given; `k` is the k of the latter.
    lam_min, eps : float
        The smallest lambda served and the relative gap certified from there up.
    status : str
        "converged", or the budget that ended the path early: "max_passes", "time_limit".
    """

    lams: Array
    C: Array
    primal: Array
    dual: Array
    gap: Array
    relative_gap: Array
    n_passes: Array
    seconds: Array
    top1_error: Array | Any  # None without validation data
    topk_error: Array | Any
    k: int
    lam_min: float
    eps: float
    status: str

    def __init__(self, problem, spec, smoothing, eps, start, points, lam_min, status, k):
        self._problem, self._spec, self._smoothing = problem, spec, smoothing
        self._start, self._points = start, points
        self.eps, self.lam_min, self.status, self.k = eps, lam_min, status, k
        self.lams = np.array([p.lam for p in points])
        self.C = 1.0 / (self.lams * problem.n_samples)
        certificates = [p.certificate_at(p.lam) for p in points]
        self.primal, self.dual, self.gap, self.relative_gap = (
            np.array(column) for column in zip(*certificates))
        self.n_passes = np.array([p.n_passes for p in points])
        self.seconds = np.array([p.seconds for p in points])
        self.top1_error = self.topk_error = None
        if points[0].errors is not None:
            self.top1_error, self.topk_error = np.array([p.errors for p in points]).T

    def __len__(self) -> int:
        return len(self._points)

    def __repr__(self):
        return (f"RegularizationPath({len(self)} breakpoints, lam from {self.lams[0]:.3g} to "
                f"{self.lam_min:.3g}, each certified to {self.eps:g}; {self.status})")

    def point_at(self, lam):
        """The breakpoint that serves lambda; above the first the closed form."""
        check_range("lam", lam, 0.0)
        if lam < self.lam_min:
            raise ValueError(f"lam={lam:g} is below lam_min={self.lam_min:g}, where the path ends")
        above = np.flatnonzero(self.lams >= lam)
        return self._points[above[-1]] if len(above) else self._start.at(lam)

    def certificate_at(self, lam: float) -> Certificate:
        """Certificate at any lambda >= lam_min, in closed form between breakpoints."""
        return self.point_at(lam).certificate_at(lam)

    def model_at(self, lam: float) -> Model:
        """The Model for any lambda >= lam_min.

        Its weights are those of the breakpoint that serves lambda; its dual is that of the breakpoint
        times the number in [0, 1] that certifies them best.

        Raises
        ------
        ValueError
            If lam is below lam_min or not a positive number.
        """
        problem, point = self._problem, self.point_at(lam)
        return Model(point.weights(), problem.classes, spec=self._spec, bias=problem.bias,
                     C=1.0 / (lam * problem.n_samples), lam=float(lam), smoothing=self._smoothing,
                     n_samples=problem.n_samples, solver="path", status="converged",
                     certificate=point.certificate_at(lam), dual=point.dual() * point.scale_at(lam),
                     sample_weight=problem.weight)

    def served(self, between: int = 0) -> Array:
        """Lambdas where the certified gap is largest, descending; `between` more in each stretch.

        W is constant along a stretch; where the gap is at most e P, D - (1 - e) P is positive, which is
        concave in lambda: the relative gap is largest at one of the ends.
        Above lambda_max it only falls.
        """
        lams = [np.array([max(np.nextafter(self.lams[0], np.inf), self.lam_min)])]
        for start, end in zip(self.lams, [*self.lams[1:], self.lam_min]):
            if end < start:
                stretch = np.geomspace(start, end, between + 2)
                # The lower end belongs to the next stretch, the number above it to this one.
                stretch[0], stretch[-1] = start, np.nextafter(end, start)
                lams.append(stretch)
        return np.concatenate(lams)

    def columns(self) -> dict[str, Array]:
        """Mapping from column name to array: one entry per breakpoint."""
        columns = {"lam": self.lams, "C": self.C, "primal": self.primal, "dual": self.dual,
                   "gap": self.gap, "relative_gap": self.relative_gap, "passes": self.n_passes,
                   "seconds": self.seconds}
        if self.top1_error is not None:
            columns["top1_error"] = self.top1_error
            columns[f"top{self.k}_error"] = self.topk_error
        return columns

    def to_csv(self, path: FilePath) -> None:
        """Write the breakpoints with a header line; the file appears whole or not at all."""
        columns = self.columns()
        with replacing(path, "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(columns)
            writer.writerows(map(repr, row) for row in zip(*(c.tolist() for c in columns.values())))

    def plot(self, path: str | None = None) -> Any:
        """Objective, certified gap and errors against lambda (needs matplotlib).

        Parameters
        ----------
        path : str or None
            Write a picture there, in the format of its extension; None returns the figure alone.

        Returns
        -------
        matplotlib.figure.Figure
        """
        from fastmc._plot import plot_path
        return plot_path(self, path)


class _Start:
    """The closed form above lambda_max: A^0 does not depend on lambda, W = G / lambda.

    Samples of equal costs have the same rows in A^0 up to their weights: A^0 = share @ units.
    """

    def __init__(self, problem, spec, smoothing, engine="cython"):
        self.problem, self.spec, self.smoothing, self.engine = problem, spec, smoothing, engine
        n, m = problem.n_samples, problem.n_classes
        costs = 1.0 - np.eye(m) if problem.cost is None else problem.cost
        by_class = len(costs) == m
        self.units = mean_corners(spec, costs, np.arange(m) if by_class else problem.label, smoothing)
        kind = problem.label if by_class else np.arange(n)
        self.share = sp.csr_array((problem.weight, kind, np.arange(n + 1)), shape=(n, len(costs)))
        # In this order nothing of size n x m is made where costs belong to classes.
        self.direction = (problem.weights_of(self.share, 1.0) @ self.units if by_class
                          else problem.weights_of(self.share @ self.units, 1.0))
        self.norm = squared_norm(self.direction)
        weight = self.share.sum(axis=0) / n
        self.linear = -float(weight @ np.einsum("ij,ij->i", costs, self.units))
        self.curvature = 0.5 * smoothing * float(weight @ np.einsum("ij,ij->i", self.units, self.units))

    def at(self, lam):
        """A^0 as a breakpoint."""
        return _Point(lam, 0.5 * self.norm / lam, self.risk(lam), self.linear, self.curvature,
                      partial(np.divide, self.direction, lam), self.dual)

    def dual(self):
        return self.share @ sp.csr_array(self.units)

    def risk(self, lam):
        """1/n sum_i omega_i Phi_m at W = G / lambda."""
        # The losses come first; the rest belongs to a dual, which is empty here.
        no_dual = modules(self.engine)["dual_rows"].DualRows(self.problem.n_samples, self.problem.n_classes)
        weights = self.direction / lam
        return float(objective(self.problem, self.spec, no_dual, weights, self.smoothing, self.engine)[0].mean())

    def lambda_max(self, eps):
        """The smallest lambda, within 1 %, from which A^0 is certified to the relative gap eps."""
        high = low = self.norm + 1e-300
        above = below = self.excess(high, eps)
        while not above <= 0.0:
            low, below = high, above
            high *= 4.0
            if high > 1e200:
                raise ValueError(f"eps={eps:g} cannot be certified at any lambda: raise eps, or change "
                                 f"smoothing={self.smoothing:g}, cost, sample_weight or the scale of X")
            above = self.excess(high, eps)
        while low > 1e-300 and below <= 0.0:
            high, above = low, below
            low /= 4.0
            below = self.excess(low, eps)
        while below > 0.0:
            # Convex in 1 / lambda: certified where the chord is zero, but for rounding, and the end is near
            # if 1 % below is not.
            chord = high / (1.0 + above / (above - below) * (high / low - 1.0)) * (1.0 + 1e-9)
            middle = chord / 1.01
            if middle <= low:
                return chord
            excess = self.excess(middle, eps)
            if not excess <= 0.0:
                return chord
            high, above = middle, excess
        return high

    def excess(self, lam, eps):
        """gap - eps primal."""
        primal, _, gap, _ = self.at(lam).certificate_at(lam)
        return gap - eps * primal


def mean_corners(spec, costs, label, smoothing):
    """The mean of the best corners at W = 0 for rows of costs, of weight 1."""
    if smoothing > 0:
        costs = costs / smoothing
    else:
        # Without curvature only the ratios of the costs matter.
        largest = costs.max(axis=1, keepdims=True)
        costs = SHARP * (costs / np.where(largest > 0, largest, 1.0))
    return spec.make().project_rows(-costs, label)


class _Point:
    """A breakpoint: A at its lambda, and what the certificates below it are made of.

    At lambda' = rho lambda, rho < 1, W stays and A becomes t A with the best t in [0, 1]. With the risk L,
    R = lambda/2 ||W||^2, b = -mean <c_i, alpha_i>, Q = mean gamma_i/2 ||alpha_i||^2 and
    K = R / rho + Q,

        P' = rho R + L,        D' = t b - t^2 K,        t = min(1, b / (2 K)).

    `weights` and `dual` are functions that make W and A, dense and sparse.
    """

    def __init__(self, lam, regularizer, risk, linear, curvature, weights, dual):
        self.lam, self.regularizer, self.risk = lam, regularizer, risk
        self.linear, self.curvature = linear, curvature
        self.weights, self.dual = weights, dual
        self.n_passes = self.seconds = self.errors = None

    def slope_at(self, lam):
        """K."""
        return self.regularizer * self.lam / lam + self.curvature

    def scale_at(self, lam):
        """t; at its own lambda the point is as it was found."""
        if lam >= self.lam:
            return 1.0
        steep = 2.0 * self.slope_at(lam)
        return 1.0 if self.linear >= steep else self.linear / steep

    def certificate_at(self, lam):
        t = self.scale_at(lam)
        primal = lam / self.lam * self.regularizer + self.risk
        return combine(primal, t * (self.linear - t * self.slope_at(lam)))

    def lasts_until(self, eps):
        """The lambda down to which this W is certified to eps, by bisection; 0 if it always is."""
        low, high = 0.0, self.lam
        while high - low > 1e-14 * high and high > 1e-300:
            middle = 0.5 * (low + high)
            if self.certificate_at(middle).relative_gap <= eps:
                high = middle
            else:
                low = middle
        return high if high > 1e-300 else 0.0


def point_of(solver):
    """The solver's A as a breakpoint; its b follows from its gap P - D = 2 R + L + Q - b."""
    norm, losses, gaps, squares = solver.terms()
    regularizer, risk = 0.5 * solver.lam * norm, float(losses.mean())
    curvature = 0.5 * solver.smoothing * float(squares.mean())
    linear = max(0.0, 2.0 * regularizer + risk + curvature - float(gaps.mean()))
    return _Point(solver.lam, regularizer, risk, linear, curvature, *solver.snapshot())


def path(X: Matrix, y: ArrayLike, eps: float = 0.1, lam_min: float | None = None,
         loss: str = "maxhinge", *, k: int = 1, own_class: bool = True,
         rho: ArrayLike | None = None, cost: ArrayLike | None = None, smoothing: float = 0.0,
         solver: str = "auto", sampling: str = "permutation", gap_refresh: int = 10,
         cache_size: int = 0, cache_f: float = 0.25, cache_nu: float = 0.01, max_passes: int = 1000,
         max_time: float | None = None, bias: float | None = None,
         class_weight: Literal["balanced"] | Mapping[Any, float] | None = None,
         sample_weight: ArrayLike | None = None,
         validation: tuple[Matrix, ArrayLike] | None = None, random_state: RandomState = 0,
         verbose: int = 0, engine: str = "cython") -> RegularizationPath:
    """Solutions for every lambda from lambda_max down to lam_min, each certified to eps.

    Starts where a closed form is good enough, then keeps W as long as its certificate lasts, with
    the dual scaled at its best, and solves again (after Osokin et al., algorithm 6).

    Parameters
    ----------
    X, y, loss, k, own_class, rho, cost, smoothing, bias, class_weight, sample_weight
        As in `train`.
    eps : float
        1e-12 <= eps <= 0.999: bound of the relative gap (primal - dual) / primal at every lambda.
    lam_min : float or None
        Where the path ends; None means 1 / (100 n_samples), that is C = 100.
    solver, sampling, gap_refresh, cache_size, cache_f, cache_nu
        As in `train`; not "stdfw" or "pg", whose fixed steps forget where they start.
    max_passes : int
        Budget for each breakpoint.
    max_time : float or None
        Budget in seconds for the path. A budget that runs out ends the path early.
    validation : (X, y) or None
        Data whose top-1 and top-k errors are recorded along the path (k of the loss, else 5).
    random_state, verbose, engine
        As in `train`.

    Returns
    -------
    RegularizationPath
        Keeps the dual of each breakpoint, sparse, and a reference to X.

    Raises
    ------
    ValueError
        Naming the argument and its value.

    Warns
    -----
    ConvergenceWarning
        If a budget ended the path above lam_min.

    Examples
    --------
    >>> import fastmc
    >>> X = [[1.0, 0.0], [0.9, 0.3], [0.0, 1.0], [0.1, 0.8], [-1.0, -1.0], [-0.7, -0.9]]
    >>> y = ["east", "east", "north", "north", "south", "south"]
    >>> path = fastmc.path(X, y, eps=0.1, lam_min=0.01)
    >>> bool(path.relative_gap.max() <= 0.1)
    True
    >>> model = path.model_at(0.02)
    >>> model.score(X, y)
    1.0
    """
    began = time.perf_counter()
    name = check_loss(loss, k, rho, own_class)
    if name == "structured" and cost is None:
        raise ValueError("loss='structured' needs cost")
    check_smoothing(smoothing)
    check_path(eps, lam_min, solver)
    check_validation(validation, X)
    solver, options = check_solver(solver, sampling, False, gap_refresh, cache_size, cache_f,
                                   cache_nu)
    check_budgets(0.0, max_passes, max_time)
    check_engine(1, engine)
    rng = make_generator(random_state)
    problem = Problem(X, y, cost, bias, class_weight, sample_weight)
    spec = make_spec(name, problem.n_classes, k, rho, own_class)
    lam_min = 1.0 / (100.0 * problem.n_samples) if lam_min is None else float(lam_min)
    start = _Start(problem, spec, float(smoothing), engine)
    # The closed form may serve alone.
    lambda_max = max(start.lambda_max(eps), lam_min)
    follower = _Follower(
        make_solver(solver, problem, spec, lambda_max, float(smoothing), engine, **options),
        eps, rng, began, max_passes, max_time, validation, k if k > 1 else 5, verbose)
    points, status = follower.follow(start.at(lambda_max), lam_min)
    if status != "converged":
        lam_min = min(points[-1].lam, points[-1].lasts_until(eps))
        warnings.warn(f"the path ended early ({status}) at lam={lam_min:g}; raise max_passes or "
                      "max_time", ConvergenceWarning, stacklevel=2)
    return RegularizationPath(problem, spec, float(smoothing), eps, start, points, lam_min, status,
                              follower.k)


def check_path(eps, lam_min, solver):
    """Check what only a path has, and that its solver can follow one."""
    check_range("eps", eps, EPS_MIN, 0.999, "at least")
    if lam_min is not None:
        check_range("lam_min", lam_min, 0.0)
    if solver in NO_FOLLOWERS:
        raise ValueError(f"solver={solver!r} cannot follow a path: its steps forget the start")


def check_validation(validation, X):
    """Check, before the work, that validation data are a pair of the right sizes."""
    if validation is None:
        return
    if not isinstance(validation, (tuple, list)) or len(validation) != 2:
        raise ValueError(f"validation must be a pair (X, y), got {type(validation).__name__}")
    X_val, y_val = check_matrix(validation[0], "validation X"), np.asarray(validation[1])
    if y_val.shape != X_val.shape[:1] or not len(y_val):
        raise ValueError(f"validation: X has {X_val.shape[0]} rows, y has shape {y_val.shape}")
    if X_val.shape[1] != np.shape(X)[1]:
        raise ValueError(f"validation: X has {X_val.shape[1]} features, the training data {np.shape(X)[1]}")


class _Follower:
    """Goes down the path with one solver."""

    def __init__(self, solver, eps, rng, began, max_passes, max_time, validation, k, verbose):
        self.solver, self.eps, self.rng, self.began = solver, eps, rng, began
        self.max_passes, self.max_time, self.validation = max_passes, max_time, validation
        self.k = min(k, solver.problem.n_classes - 1)
        self.passes, self.ratio = 0, 1.0
        self.progress = Progress(verbose, None)

    def follow(self, first, lam_min):
        """Breakpoints down to lam_min, and the status; `first` is the closed form where it ends."""
        points, status = [], "converged"
        # The closed form serves alone where it is enough, or if a budget ends the first solve.
        point = first = self.finish(first)
        if first.lam > lam_min:
            # A^0 has nearly all classes for every sample: from A = 0 the lists stay short.
            point = self.solve(combine(first.certificate_at(first.lam).primal, 0.0))
        while point is not None:
            points.append(self.finish(point))
            lam = point.lasts_until(self.eps)
            if lam <= lam_min:
                break
            self.solver.shrink(lam / point.lam, point.scale_at(lam))
            point = self.solve(point.certificate_at(lam))
        self.progress.close()
        if point is None:
            late = self.max_time is not None and time.perf_counter() - self.began > self.max_time
            status = "time_limit" if late else "max_passes"
        return points or [first], status

    def solve(self, known):
        """The point at the solver's lambda once its gap is small enough; None on a budget.

        `known` is the certificate here of the point that the solver comes from; the estimate of a
        pass tells when the next one is worth a look, by how it compared before.
        """
        primal, _, gap, _ = known
        for left in range(self.max_passes, -1, -1):
            target = KAPPA * self.eps * primal
            if gap <= target:
                return point_of(self.solver) if left == self.max_passes else point
            if left == 0 or not self.one_pass():
                return None
            estimate = self.solver.gap_estimate()
            if self.ratio * estimate <= 1.05 * target or left == 1:
                point = point_of(self.solver)
                primal, _, gap, _ = point.certificate_at(self.solver.lam)
                self.ratio = min(1.0, gap / estimate) if estimate > 0 else 1.0
        return None

    def one_pass(self):
        for _ in self.solver.sweep(self.rng):
            if self.max_time is not None and time.perf_counter() - self.began > self.max_time:
                return False
        self.passes += 1
        self.progress.show(f"lam {self.solver.lam:.3g}", time.perf_counter() - self.began)
        return True

    def finish(self, point):
        point.n_passes, point.seconds = self.passes, time.perf_counter() - self.began
        if self.validation is not None:
            problem = self.solver.problem
            model = Model(point.weights(), problem.classes, bias=problem.bias)
            point.errors = [model.topk_error(*self.validation, k) for k in (1, self.k)]
        return point
