"""The solvers that keep W and A as dense arrays, and the table of all solvers.

W = W(A) holds after every slice of their passes.
"""
import math
from functools import partial

import numpy as np
import scipy.sparse as sp

from fastmc._certificate import dual_value, losses_and_gaps, primal_value, squared_norm
from fastmc._exact_solver import ExactSolver
from fastmc._solver_base import Candidate, Solver


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

    def shrink(self, rho, scale):
        """lambda times rho and A times `scale`, both <= 1; W is W(A) again."""
        self.lam *= rho
        self.dual *= scale
        self.weights *= scale / rho

    def snapshot(self):
        """Two functions that make W(A) and A of now, dense and sparse, whenever they are called."""
        dual = self.dual_matrix()
        return partial(self.problem.weights_of, dual, self.lam), partial(sp.csr_array, dual)

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
        order = self.draw(rng, self.active)
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

    def shrink(self, rho, scale):
        super().shrink(rho, scale)
        if self.atoms is not None:
            self.atoms.shrink_weights(scale)
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

    def shrink(self, rho, scale):
        super().shrink(rho, scale)
        self.scores *= scale / rho
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
