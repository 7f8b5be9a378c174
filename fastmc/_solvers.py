"""The solvers as the driver sees them: W, the dual A, and passes over the data.

A solver runs the passes of the kernel, or of the mirror, under one driver. `sweep` is one pass
as an iterator of slices, so that Ctrl-C and time limits act between slices; W = W(A) holds
after every slice. `gap` and `risk` are what the last pass saw on its way, an estimate.
"""
import math

import numpy as np

from fastmc import _bcfw, _fw, _sdca, reference
from fastmc._certificate import primal_value, squared_norm

# Multiplications a slice may take: well under a second, far above the cost of a call.
SLICE_WORK = 30_000_000


def modules(engine):
    if engine == "cython":
        return _sdca, _bcfw, _fw
    return reference.sdca, reference.bcfw, reference.fw


class Solver:
    """Common state: problem, loss, W(A), A and the estimates of the last pass."""

    def __init__(self, problem, spec, lam, smoothing, engine, dual):
        self.problem, self.spec, self.lam, self.smoothing = problem, spec, lam, smoothing
        self.lam_n = lam * problem.n_samples
        self.sdca, self.bcfw, self.fw = modules(engine)
        self.samples, self.loss = problem.samples(engine), spec.make(engine)
        shape = (problem.n_weights, problem.n_classes)
        if dual is None:
            self.dual = np.zeros((problem.n_samples, problem.n_classes))
            self.weights = np.zeros(shape)
        else:
            self.dual = dual
            self.weights = problem.weights_of(dual, lam)
        self.active = np.flatnonzero(problem.weight > 0)
        self.oracle_calls = 0
        self.gap = self.risk = math.inf

    def slices(self, count):
        """Slices of range(count) of about SLICE_WORK multiplications each."""
        X, n = self.problem.X, self.problem.n_samples
        per_row = (X.size / n + 50) * self.problem.n_classes
        length = max(1, min(4096, int(SLICE_WORK / per_row)))
        for start in range(0, count, length):
            yield slice(start, min(start + length, count))

    def relative_gap_estimate(self):
        """Relative gap as the last pass saw it, each sample at the W of its own visit."""
        n = self.problem.n_samples
        primal = 0.5 * self.lam * squared_norm(self.weights) + self.risk / n
        return self.gap / n / primal if primal > 0 else math.inf

    def candidates(self):
        """Pairs (W, A) worth a certificate."""
        return [(self.weights, self.dual)]


class BlockSolver(Solver):
    """One sample's block of the dual at a time: exact maximisation or a Frank-Wolfe step."""

    def __init__(self, problem, spec, lam, smoothing, engine, dual, method, sampling, averaging):
        super().__init__(problem, spec, lam, smoothing, engine, dual)
        self.method, self.sampling = method, sampling
        self.steps = 0
        self.sums = None
        if averaging:
            self.sums = np.zeros_like(self.weights), np.zeros_like(self.dual)

    def sweep(self, rng):
        order = self.draw(rng)
        gap = risk = 0.0
        for rows in self.slices(len(order)):
            slice_gap, slice_risk = self.run(order[rows])
            gap, risk = gap + slice_gap, risk + slice_risk
            self.oracle_calls += rows.stop - rows.start
            yield
        self.gap, self.risk = gap, risk

    def draw(self, rng):
        """The samples of one pass; those of weight zero have no block."""
        count = len(self.active)
        if self.sampling == "cyclic":
            return self.active
        if self.sampling == "uniform":
            return self.active[rng.integers(count, size=count)]
        return self.active[rng.permutation(count)]

    def run(self, order):
        args = (self.samples, self.loss, self.weights, self.dual, order, self.lam_n, self.smoothing)
        if self.method == "sdca":
            return self.sdca.sdca_pass(*args)
        sums = self.sums or (None, None)
        result = self.bcfw.bcfw_pass(*args, *sums, self.steps)
        self.steps += len(order)
        return result

    def candidates(self):
        pairs = super().candidates()
        if self.sums is not None and self.steps:
            factor = 1.0 / (float(self.steps) * (self.steps + 1.0))
            pairs.append((self.weights - factor * self.sums[0], self.dual - factor * self.sums[1]))
        return pairs


class BatchSolver(Solver):
    """All samples at once: Frank-Wolfe with line search or fixed steps, projected gradient."""

    def __init__(self, problem, spec, lam, smoothing, engine, dual, method):
        super().__init__(problem, spec, lam, smoothing, engine, dual)
        self.method = method
        self.iteration = 0
        self.scores = self.problem.scores(self.weights)
        self.vertex_scores = np.zeros_like(self.scores)
        self.vertices = np.zeros_like(self.dual)
        self.vertex_weights = np.zeros_like(self.weights)
        # ||W*|| <= sqrt(P(0) / lambda): the ball of the projected gradient method.
        zero = np.zeros_like(self.weights)
        self.radius = math.sqrt(primal_value(problem, spec, zero, lam, smoothing) / lam)

    def sweep(self, rng):
        gap = risk = curvature = 0.0
        self.vertex_weights[:] = 0.0
        for rows in self.slices(self.problem.n_samples):
            slice_gap, slice_risk = self.fw.fw_vertices(
                self.samples, self.loss, self.scores, self.dual, self.vertices, self.vertex_weights,
                rows.start, rows.stop, self.lam_n, self.smoothing, self.method == "pg")
            gap, risk = gap + slice_gap, risk + slice_risk
            yield
        for rows in self.slices(self.problem.n_samples):
            curvature += self.fw.fw_scores(
                self.samples, self.scores, self.dual, self.vertices, self.vertex_weights,
                self.vertex_scores, rows.start, rows.stop, self.smoothing)
            yield
        self.oracle_calls += len(self.active)
        self.gap, self.risk = gap, risk
        self.move(gap, curvature)

    def move(self, gap, curvature):
        """S, W and A all move by one step towards the corners."""
        self.iteration += 1
        if self.method == "fw":
            step = 1.0 if gap >= curvature else max(0.0, gap / curvature)
        elif self.method == "stdfw":
            step = 2.0 / (self.iteration + 1.0)
        else:
            step = 1.0 / self.iteration
        pairs = ((self.weights, self.vertex_weights), (self.scores, self.vertex_scores),
                 (self.dual, self.vertices))
        for current, vertex in pairs:
            current *= 1.0 - step
            current += step * vertex
        if self.method == "pg":
            self.project_on_ball()

    def project_on_ball(self):
        """Scale W, and the rest with it, into the ball (Shalev-Shwartz et al., 2011)."""
        norm = math.sqrt(squared_norm(self.weights))
        if norm > self.radius:
            for array in (self.weights, self.scores, self.dual):
                array *= self.radius / norm


SOLVERS = {
    "sdca": (BlockSolver, "sdca"),
    "bcfw": (BlockSolver, "bcfw"),
    "fw": (BatchSolver, "fw"),
    "stdfw": (BatchSolver, "stdfw"),
    "pg": (BatchSolver, "pg"),
}


def make_solver(name, problem, spec, lam, smoothing, engine, dual, sampling, averaging):
    kind, method = SOLVERS[name]
    options = {"sampling": sampling, "averaging": averaging} if kind is BlockSolver else {}
    return kind(problem, spec, lam, smoothing, engine, dual, method=method, **options)
