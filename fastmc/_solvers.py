"""The solvers as the driver sees them: W, the dual A, and passes over the data.

A solver runs the passes of the kernel, or of the mirror, under one driver. `sweep` is one pass
as an iterator of slices, so that Ctrl-C and time limits act between slices; W = W(A) holds
after every slice. `gaps` holds the block gap that the last visit of each sample saw; their mean
estimates the duality gap.
"""
import math
from collections import namedtuple

import numpy as np
import scipy.sparse as sp

from fastmc import (_active_set, _bcfw, _dual_rows, _fw, _objective, _order, _sdca, reference)
from fastmc._certificate import (dual_value, loss_values, losses_and_gaps, primal_value,
                                 row_blocks, squared_norm)
from fastmc._threads import over_blocks

# Multiplications a slice may take: well under a second, far above the cost of a call.
SLICE_WORK = 30_000_000
# Down to this relative gap float32 is exact enough for W.
SINGLE_GAP = 1e-4

Candidate = namedtuple("Candidate", "primal dual keep_weights keep_dual")
Candidate.__doc__ = """The two halves of a certificate, which need not belong together.

primal, dual : float
keep_weights, keep_dual : function
    Called when the value is the best so far: stores what it takes and returns a function that gives
    W, dense, or A, sparse, later on.
"""


def modules(engine):
    """Modules of the kernel or of the mirror, by the names they share."""
    if engine == "cython":
        return {"active_set": _active_set, "bcfw": _bcfw, "dual_rows": _dual_rows, "fw": _fw,
                "objective": _objective, "order": _order, "sdca": _sdca}
    return {name: getattr(reference, name) for name in reference.__all__}


class Solver:
    """Common state: problem, loss and the last seen block gaps.

    Each solver has its own form of W(A) and A; `dual_matrix` gives A as a CSR array.
    """

    # Of a first certified gap to its estimate, and the passes to a certificate whatever the
    # estimate says: FIRST_CHECK, then PATIENCE times as many.
    GAP_RATIO, PATIENCE, FIRST_CHECK = 1.0, 1.5, 1

    def __init__(self, problem, spec, lam, smoothing, engine):
        self.problem, self.spec, self.lam, self.smoothing = problem, spec, lam, smoothing
        self.kernels = modules(engine)
        self.loss = spec.make(engine)
        self.active = np.flatnonzero(problem.weight > 0)
        self.gaps = np.zeros(problem.n_samples)
        self.oracle_calls = self.cache_hits = 0

    @property
    def lam_n(self):
        return self.lam * self.problem.n_samples

    def slices(self, count):
        """Slices of range(count) of about SLICE_WORK multiplications each."""
        X, n = self.problem.X, self.problem.n_samples
        per_row = (X.size / n + 50) * self.problem.n_classes
        length = max(1, min(4096, int(SLICE_WORK / per_row)))
        for start in range(0, count, length):
            yield start, min(start + length, count)

    def draw(self, rng):
        """The order of one pass; samples of weight zero have no block."""
        count = len(self.active)
        if self.sampling == "gap":
            self.gap_order.draw(rng.random(count))
            return self.gap_order
        if self.sampling == "cyclic":
            samples = self.active
        elif self.sampling == "uniform":
            samples = self.active[rng.integers(count, size=count)]
        else:
            samples = self.active[rng.permutation(count)]
        return self.kernels["order"].ListOrder(samples)

    def refresh(self):
        """All block gaps anew, at W(A) freed of the rounding of many steps."""
        self.refresh_weights()
        yield
        self.gaps[:] = self.terms()[2]
        self.full_gap = self.gap_estimate()
        if self.sampling == "gap":
            self.gap_order.refresh(self.gaps)
        self.oracle_calls += len(self.active)
        self.passes_since_refresh = 0
        yield

    def primal_at_zero(self):
        """P(0): the scores are zero, the costs remain."""
        problem = self.problem
        risk = sum(float(problem.weight[rows] @ loss_values(self.spec, problem.costs(rows),
                                                            problem.label[rows], self.smoothing))
                   for rows in row_blocks(problem))
        return risk / problem.n_samples

    def gap_estimate(self):
        """The duality gap as the visits saw it, each at the W of its own time. No certificate."""
        return float(self.gaps.mean())

    def primal_estimate(self, best):
        """What the gap is compared with; `best` is the best primal certified so far."""
        return best


class DenseSolver(Solver):
    """W(A) and A as dense arrays."""

    def __init__(self, problem, spec, lam, smoothing, engine, dual):
        super().__init__(problem, spec, lam, smoothing, engine)
        self.samples = problem.samples(engine)
        if dual is None:
            self.dual = np.zeros((problem.n_samples, problem.n_classes))
            self.weights = np.zeros((problem.n_weights, problem.n_classes))
        else:
            self.dual = dual.toarray() if sp.issparse(dual) else dual
            self.weights = problem.weights_of(self.dual, lam)

    def dual_matrix(self):
        return sp.csr_array(self.dual)

    def shrink(self, rho):
        """lambda times rho <= 1 with the dual scaled alike, so that W stays as it is."""
        self.lam *= rho
        self.dual *= rho
        self.gaps *= rho

    def refresh_weights(self):
        self.weights[:] = self.problem.weights_of(self.dual, self.lam)

    def pairs(self):
        """Pairs (W, A) worth a certificate."""
        return [(self.weights, self.dual)]

    def candidates(self):
        return [Candidate(primal_value(self.problem, self.spec, weights, self.lam, self.smoothing),
                          dual_value(self.problem, dual, self.lam, self.smoothing),
                          lambda kept=weights: copied(kept), lambda kept=dual: copied(sp.csr_array(kept)))
                for weights, dual in self.pairs()]

    def terms(self):
        """||W||^2, and for each sample its loss, its gap and ||alpha_i||^2 / omega_i."""
        losses, gaps = losses_and_gaps(self.problem, self.spec, self.weights, self.dual, self.smoothing)
        weight = np.where(self.problem.weight > 0, self.problem.weight, np.inf)
        squares = np.einsum("ij,ij->i", self.dual, self.dual) / weight
        return squared_norm(self.weights), losses, gaps, squares


def copied(array):
    array = array.copy()
    return lambda: array


class ExactSolver(Solver):
    """Exact block maximisation in random order with momentum; A as short lists.

    W has rows of whole vectors, in float32 or float64. A certificate takes W(A) in float64 and changes
    nothing: who looks on does not disturb.
    """

    # The estimate comes with one of the primal and is too large, by 1.6 to 6 on texts.
    GAP_RATIO, PATIENCE, FIRST_CHECK = 0.5, 3.0, 20
    # Passes after which W is freed of rounding.
    REFRESH = 32

    def __init__(self, problem, spec, lam, smoothing, engine, dual, kind, sampling="permutation",
                 gap_refresh=10, precision="double", n_threads=1):
        super().__init__(problem, spec, lam, smoothing, engine)
        self.kind, self.sampling, self.gap_refresh = kind, sampling, gap_refresh
        self.engine, self.n_threads = engine, n_threads
        self.gains = np.zeros(problem.n_samples)
        self.rows = self.kernels["dual_rows"].DualRows(problem.n_samples, problem.n_classes)
        self.dual_estimate, self.momentum, self.n_passes = 0.0, Momentum(), 0
        self.passes_since_refresh, self.full_gap = 0, None
        if sampling == "gap":
            self.gap_order = self.kernels["order"].GapOrder(self.active, problem.n_samples)
        # W(A) of the last certificate, and how many there were.
        self.checked, self.n_checked, self.checked_samples = None, 0, problem.samples(engine)
        self.precision = precision
        single = precision == "single" or (precision == "auto" and tame(problem, lam, smoothing))
        self.set_precision(np.float32 if single else np.float64)
        if dual is not None:
            self.set_dual(sp.csr_array(dual))

    def set_precision(self, dtype):
        """W = W(A) in this precision from here on."""
        vector = 32 // np.dtype(dtype).itemsize
        stride = -(-self.problem.n_classes // vector) * vector
        self.samples = self.problem.samples(self.engine, stride)
        self.padded = self.last = None
        self.padded = np.zeros((self.problem.n_weights, stride), dtype)
        if self.n_passes:
            self.refresh_weights()
        self.last = self.padded.copy()
        self.momentum.restart()

    @property
    def weights(self):
        """W without the columns that fill its vectors up; a view."""
        return self.padded[:, : self.problem.n_classes]

    def set_dual(self, dual):
        """Take over A; its entries at the own classes follow from the others."""
        self.rows.set_rows(*betas(dual, self.problem.label))
        self.refresh_weights()

    def dual_matrix(self):
        return alphas(*self.rows.rows_of(), self.problem)

    def refresh_weights(self):
        """W = W(A) freed of the rounding of many steps."""
        self.check_weights()
        self.weights[:] = self.checked

    def check_weights(self):
        """W(A) in float64 into self.checked."""
        if self.checked is None:
            self.checked = np.zeros((self.problem.n_weights, self.problem.n_classes))
        self.checked[:] = 0.0
        self.kernels["objective"].add_rows(self.checked_samples, self.rows, self.checked, self.lam_n)
        self.n_checked += 1

    def sweep(self, rng):
        if self.sampling == "gap" and (self.full_gap is None or
                                       0 < self.gap_refresh <= self.passes_since_refresh):
            yield from self.refresh()
        elif self.n_passes % self.REFRESH == self.REFRESH - 1:
            self.undo_drift()
        order, b = self.draw(rng), 0.0
        if self.sampling == "permutation":
            b = self.momentum.next()
            self.kernels["sdca"].extrapolate(self.samples, self.padded, self.last, b)
        for start, stop in self.slices(len(self.active)):
            self.kernels["sdca"].sdca_pass(self.samples, self.loss, self.padded, self.rows, self.gaps,
                                           self.gains, order, start, stop, self.lam_n, self.smoothing, b)
            self.oracle_calls += stop - start
            yield
        self.passes_since_refresh += 1
        self.n_passes += 1
        norm = self.kernels["sdca"].squared_norm(self.samples, self.padded)
        self.dual_estimate = float(self.gains.mean()) - 0.5 * self.lam * norm
        self.momentum.saw(self.dual_estimate, self.gap_estimate())
        if self.gap_estimate() < SINGLE_GAP * self.primal_estimate(math.inf):
            self.leave_single()

    def undo_drift(self):
        """W = W(A), and the last W moved alike; float32 ends where rounding is not far below the gap."""
        self.last -= self.padded
        self.refresh_weights()
        self.last += self.padded
        exact = float(self.gains.mean()) - 0.5 * self.lam * squared_norm(self.checked)
        if abs(exact - self.dual_estimate) > 0.02 * self.gap_estimate():
            self.leave_single()

    def leave_single(self):
        if self.precision == "auto" and self.padded.dtype == np.float32:
            self.set_precision(np.float64)

    def shrink(self, rho):
        """lambda times rho <= 1 with the dual scaled alike, so that W stays as it is."""
        self.lam *= rho
        self.rows.scale(rho)
        self.gaps *= rho
        self.gains *= rho
        self.momentum.restart()
        self.full_gap = None

    def primal_estimate(self, best):
        return min(best, self.dual_estimate + self.gap_estimate())

    def objective(self):
        """Losses, gains, gaps and margins of all samples at W = self.checked."""
        n, arrays = self.problem.n_samples, np.zeros((4, self.problem.n_samples))

        def work(rows):
            # Samples and losses hold scratch: each block has its own.
            self.kernels["objective"].objective(self.problem.samples(self.engine), self.spec.make(self.engine),
                                                self.rows, self.checked, self.smoothing, rows.start, rows.stop,
                                                *arrays)

        over_blocks(work, n, n if self.n_threads == 1 else -(-n // 16), self.n_threads)
        return arrays

    def terms(self):
        """||W||^2, and for each sample its loss, its gap and ||alpha_i||^2 / omega_i, at W = W(A)."""
        self.check_weights()
        losses, _, gaps, _ = self.objective()
        squares = np.zeros(self.problem.n_samples)
        if self.smoothing > 0.0:
            dual = self.dual_matrix()
            weight = np.where(self.problem.weight > 0, self.problem.weight, np.inf)
            squares = np.asarray(dual.multiply(dual).sum(axis=1)).reshape(-1) / weight
        return squared_norm(self.checked), losses, gaps, squares

    def candidates(self):
        self.check_weights()
        losses, gains, _, margins = self.objective()
        norm = squared_norm(self.checked)
        scale, risk = self.best_scale(norm, margins, losses)
        primal = 0.5 * self.lam * scale * scale * norm + risk
        dual = float(gains.mean()) - 0.5 * self.lam * norm
        return [Candidate(primal, dual, lambda: self.keep(scale), lambda: self.keep(None))]

    def best_scale(self, norm, margins, losses):
        """(t, risk of t W) that make P(t W) small: a W of few passes is often too short or too long.

        For one rank and costs of 1 alone, where the loss is omega max(0, 1 + t mu); t = 1 otherwise.
        """
        if self.spec.n_ranks > 1 or self.smoothing > 0.0 or self.problem.cost is not None:
            return 1.0, float(losses.mean())
        weight, mu = self.problem.weight * self.spec.rho[0], margins - 1.0
        low, high = 0.5, 2.0
        for _ in range(30):
            t = 0.5 * (low + high)
            slope = self.lam * norm * t + float(np.mean(np.where(t * mu > -1.0, weight * mu, 0.0)))
            low, high = (low, t) if slope > 0.0 else (t, high)
        risk = float(np.mean(weight * np.maximum(1.0 + t * mu, 0.0)))
        if 0.5 * self.lam * (t * t - 1.0) * norm + risk < losses.mean():
            return t, risk
        return 1.0, float(losses.mean())

    def keep(self, scale):
        """A now, as the function that gives W = scale W(A), or A itself for None.

        Giving W ends the solver: it takes over its arrays.
        """
        parts, lam = self.rows.rows_of(), self.lam
        if scale is None:
            return lambda: alphas(*parts, self.problem)

        number = self.n_checked

        def restore():
            if self.n_checked != number or self.checked is None:
                # There were later certificates: W(A) of these lists again.
                self.rows.set_rows(*parts)
                self.lam = lam
                self.check_weights()
            weights, self.checked = self.checked, None
            weights *= scale
            return weights
        return restore


def tame(problem, lam, smoothing):
    """Whether float32 has room for the numbers of a run, by far."""
    q = problem.sqnorm.max() * problem.weight.max() / (lam * problem.n_samples)
    sizes = [q, problem.weight.max(), math.sqrt(problem.sqnorm.max())]
    if problem.cost is not None:
        sizes.append(problem.cost.max())
    if smoothing > 0.0:
        sizes.append(smoothing)
    return all(1e-6 < size < 1e6 for size in sizes)


class Momentum:
    """How far a pass extrapolates from the last two; none again when the dual falls.

    Nesterov's growing momentum, at most b = r / (2 - r) where the gap falls by a factor r a pass: at
    condition number 1/q the best is b = (1 - sqrt q) / (1 + sqrt q), with which r is about 1 - sqrt q.
    """

    WINDOW = 4
    CAP = 0.98

    def __init__(self):
        self.restart()

    def restart(self):
        self.count, self.dual, self.gaps = 0, -math.inf, []

    def saw(self, dual, gap):
        """Dual value and estimated gap after a pass."""
        self.count = 0 if dual < self.dual else self.count + (len(self.gaps) > 0)
        self.dual = dual
        self.gaps = [*self.gaps[-self.WINDOW:], gap]

    def next(self):
        if self.count < 2:
            return 0.0
        b = (self.count - 1.0) / (self.count + 2.0)
        if self.gaps[0] > self.gaps[-1] > 0.0:
            rate = (self.gaps[-1] / self.gaps[0]) ** (1.0 / (len(self.gaps) - 1))
            b = min(b, rate / (2.0 - rate))
        # In steps, so that the rounding of sums does not show.
        return round(min(b, self.CAP), 3)


def betas(dual, label):
    """CSR arrays of beta = -alpha at the wrong classes, from A."""
    coo = dual.tocoo()
    keep = (coo.coords[1] != label[coo.coords[0]]) & (coo.data < 0)
    matrix = sp.csr_array((-coo.data[keep], (coo.coords[0][keep], coo.coords[1][keep])), shape=dual.shape)
    return matrix.indptr, matrix.indices, matrix.data


def alphas(indptr, classes, beta, problem):
    """A as a CSR array, from the lists of beta."""
    n, shape = problem.n_samples, (problem.n_samples, problem.n_classes)
    wrong = sp.csr_array((-beta, classes, indptr), shape=shape)
    # Summed in the order of classes: who starts from A gets the same A.
    wrong.sort_indices()
    rows = np.repeat(np.arange(n), np.diff(indptr))
    own = sp.csr_array((np.bincount(rows, -wrong.data, n), problem.label, np.arange(n + 1)), shape=shape)
    dual = wrong + own
    dual.eliminate_zeros()
    return dual


class BlockSolver(DenseSolver):
    """One sample's block of the dual at a time: a Frank-Wolfe step."""

    def __init__(self, problem, spec, lam, smoothing, engine, dual, kind, sampling="permutation",
                 averaging=False, gap_refresh=10, cache_size=0, cache_f=0.25, cache_nu=0.01):
        super().__init__(problem, spec, lam, smoothing, engine, dual)
        self.kind, self.sampling, self.gap_refresh = kind, sampling, gap_refresh
        self.cache_f, self.cache_nu = cache_f, cache_nu
        self.full_gap = None
        self.passes_since_refresh = 0
        if sampling == "gap":
            self.gap_order = self.kernels["order"].GapOrder(self.active, problem.n_samples)
        self.average = self.atoms = None
        if averaging:
            self.average = self.kernels["bcfw"].Average(self.weights.shape, self.dual.shape)
        if kind in ("pairwise", "away") or cache_size:
            self.atoms = self.make_atoms(cache_size, kind != "bcfw" and dual is not None)

    def make_atoms(self, cache_size, warm):
        slot = self.spec.n_ranks
        if warm:
            # Each sample starts from the point it has, as its one atom.
            slot = max(slot, int(np.count_nonzero(self.dual, axis=1).max()))
        atoms = self.kernels["active_set"].ActiveSet(self.problem.n_samples, slot, cache_size)
        if warm:
            atoms.start_from(self.dual, self.problem.label, self.problem.weight)
        return atoms

    def sweep(self, rng):
        if self.refresh_due():
            yield from self.refresh()
        order = self.draw(rng)
        for start, stop in self.slices(len(self.active)):
            self.visit(order, start, stop)
            yield
        self.passes_since_refresh += 1

    def visit(self, order, start, stop):
        args = (self.samples, self.loss, self.weights, self.dual, self.gaps, order, start, stop,
                self.lam_n, self.smoothing)
        floor = 0.0 if self.full_gap is None else self.cache_nu * self.full_gap
        calls, hits = self.kernels["bcfw"].bcfw_pass(
            *args, self.kind, self.atoms, self.average, self.cache_f, floor)
        self.oracle_calls += calls
        self.cache_hits += hits

    def refresh_due(self):
        """Gap sampling and the cache rest on a full gap pass, now and then."""
        if self.sampling != "gap" and (self.atoms is None or self.atoms.cache_size == 0):
            return False
        if self.full_gap is None:
            return True
        return 0 < self.gap_refresh <= self.passes_since_refresh

    def shrink(self, rho):
        super().shrink(rho)
        if self.atoms is not None:
            self.atoms.shrink_weights(rho)
        self.full_gap = None

    def pairs(self):
        pairs = super().pairs()
        if self.average is not None and self.average.steps:
            pairs.append(self.average.of(self.weights, self.dual))
        return pairs


class BatchSolver(DenseSolver):
    """All samples at once: Frank-Wolfe with line search or fixed steps, projected gradient."""

    def __init__(self, problem, spec, lam, smoothing, engine, dual, kind):
        super().__init__(problem, spec, lam, smoothing, engine, dual)
        self.kind = kind
        self.iteration = 0
        self.scores = self.problem.scores(self.weights)
        self.vertex_scores = np.zeros_like(self.scores)
        self.vertices = np.zeros_like(self.dual)
        self.vertex_weights = np.zeros_like(self.weights)
        # ||W*|| <= sqrt(P(0) / lambda): the ball of the projected gradient method.
        self.radius = math.sqrt(self.primal_at_zero() / lam)

    def sweep(self, rng):
        gap = curvature = 0.0
        self.vertex_weights[:] = 0.0
        for start, stop in self.slices(self.problem.n_samples):
            gap += self.kernels["fw"].fw_vertices(
                self.samples, self.loss, self.scores, self.dual, self.gaps, self.vertices,
                self.vertex_weights, start, stop, self.lam_n, self.smoothing, self.kind == "pg")
            yield
        for start, stop in self.slices(self.problem.n_samples):
            curvature += self.kernels["fw"].fw_scores(
                self.samples, self.scores, self.dual, self.vertices, self.vertex_weights,
                self.vertex_scores, start, stop, self.smoothing)
            yield
        self.oracle_calls += len(self.active)
        self.move(gap, curvature)

    def shrink(self, rho):
        super().shrink(rho)
        self.radius /= math.sqrt(rho)

    def move(self, gap, curvature):
        """S, W and A all move by one step towards the corners."""
        self.iteration += 1
        if self.kind == "fw":
            step = 1.0 if gap >= curvature else max(0.0, gap / curvature)
        elif self.kind == "stdfw":
            step = 2.0 / (self.iteration + 1.0)
        else:
            step = 1.0 / self.iteration
        pairs = ((self.weights, self.vertex_weights), (self.scores, self.vertex_scores),
                 (self.dual, self.vertices))
        for current, vertex in pairs:
            current *= 1.0 - step
            current += step * vertex
        if self.kind == "pg":
            self.project_on_ball()

    def project_on_ball(self):
        """Scale W, and the rest with it, into the ball (Shalev-Shwartz et al., 2011)."""
        norm = math.sqrt(squared_norm(self.weights))
        if norm > self.radius:
            for array in (self.weights, self.scores, self.dual):
                array *= self.radius / norm


SOLVERS = {
    "sdca": ExactSolver,
    "bcfw": BlockSolver,
    "pairwise": BlockSolver,
    "away": BlockSolver,
    "fw": BatchSolver,
    "stdfw": BatchSolver,
    "pg": BatchSolver,
}


def make_solver(name, problem, spec, lam, smoothing=0.0, engine="cython", dual=None, **options):
    """A solver by name; `options` are those of the block solvers and must be left out for others."""
    return SOLVERS[name](problem, spec, lam, smoothing, engine, dual, name, **options)
