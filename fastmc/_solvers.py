"""The solvers as the driver sees them: W, the dual A, and passes over the data.

A solver runs the passes of the kernel, or of the mirror, under one driver. `sweep` is one pass
as an iterator of slices, so that Ctrl-C and time limits act between slices; W = W(A) holds
after every slice. `gaps` holds the block gap that the last visit of each sample saw; their mean
estimates the duality gap.
"""
import math

import numpy as np

from fastmc import _active_set, _bcfw, _fw, _order, _sdca, reference
from fastmc._certificate import block_gaps, loss_values, row_blocks, squared_norm

# Multiplications a slice may take: well under a second, far above the cost of a call.
SLICE_WORK = 30_000_000


def modules(engine):
    """Modules of the kernel or of the mirror, by the names they share."""
    if engine == "cython":
        return {"active_set": _active_set, "bcfw": _bcfw, "fw": _fw, "order": _order, "sdca": _sdca}
    return {name: getattr(reference, name) for name in reference.__all__}


class Solver:
    """Common state: problem, loss, W(A), A and the last seen block gaps."""

    def __init__(self, problem, spec, lam, smoothing, engine, dual):
        self.problem, self.spec, self.lam, self.smoothing = problem, spec, lam, smoothing
        self.kernels = modules(engine)
        self.samples, self.loss = problem.samples(engine), spec.make(engine)
        if dual is None:
            self.dual = np.zeros((problem.n_samples, problem.n_classes))
            self.weights = np.zeros((problem.n_weights, problem.n_classes))
        else:
            self.dual = dual
            self.weights = problem.weights_of(dual, lam)
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

    def shrink(self, rho):
        """lambda times rho <= 1 with the dual scaled alike, so that W stays as it is."""
        self.lam *= rho
        self.dual *= rho
        self.gaps *= rho

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

    def candidates(self):
        """Pairs (W, A) worth a certificate."""
        return [(self.weights, self.dual)]


class BlockSolver(Solver):
    """One sample's block of the dual at a time: exact maximisation or a Frank-Wolfe step."""

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

    def visit(self, order, start, stop):
        args = (self.samples, self.loss, self.weights, self.dual, self.gaps, order, start, stop,
                self.lam_n, self.smoothing)
        if self.kind == "sdca":
            self.kernels["sdca"].sdca_pass(*args)
            self.oracle_calls += stop - start
            return
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

    def refresh(self):
        """All block gaps anew, at W(A) freed of the rounding of many steps."""
        self.weights[:] = self.problem.weights_of(self.dual, self.lam)
        yield
        self.gaps[:] = block_gaps(self.problem, self.spec, self.weights, self.dual, self.smoothing)
        self.full_gap = self.gap_estimate()
        if self.sampling == "gap":
            self.gap_order.refresh(self.gaps)
        self.oracle_calls += len(self.active)
        self.passes_since_refresh = 0
        yield

    def shrink(self, rho):
        super().shrink(rho)
        if self.atoms is not None:
            self.atoms.shrink_weights(rho)
        self.full_gap = None

    def candidates(self):
        pairs = super().candidates()
        if self.average is not None and self.average.steps:
            pairs.append(self.average.of(self.weights, self.dual))
        return pairs


class BatchSolver(Solver):
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
    "sdca": BlockSolver,
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
