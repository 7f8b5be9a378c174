"""What all solvers have in common.

A solver runs the passes of the kernel, or of the mirror, under one driver. `sweep` is one pass
as an iterator of slices, so that Ctrl-C and time limits act between slices. `gaps` holds the block
gap that the last visit of each sample saw; their mean estimates the duality gap.
"""
from collections import namedtuple

import numpy as np

from fastmc import _active_set, _batches, _bcfw, _dual_rows, _fw, _objective, _order, _predict, _sdca, reference
from fastmc._certificate import loss_values, row_blocks

# Multiplications a slice may take: well under a second, far above the cost of a call or of a meeting.
SLICE_WORK = 200_000_000

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
        return {"active_set": _active_set, "batches": _batches, "bcfw": _bcfw, "dual_rows": _dual_rows, "fw": _fw,
                "objective": _objective, "order": _order, "predict": _predict, "sdca": _sdca}
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
        length = max(1, min(1 << 16, int(SLICE_WORK / per_row)))
        for start in range(0, count, length):
            yield start, min(start + length, count)

    def draw(self, rng, active):
        """The order of one pass over the active samples; those of weight zero have no block."""
        count = len(active)
        if self.sampling == "gap":
            self.gap_order.draw(rng.random(count))
            return self.gap_order
        if self.sampling == "cyclic":
            samples = active
        elif self.sampling == "uniform":
            samples = active[rng.integers(count, size=count)]
        else:
            samples = rng.permutation(active)
        return self.kernels["order"].ListOrder(samples)

    def wake(self):
        """The last certificate was not good enough: let no sample rest that it saw a gap of."""

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

    @np.errstate(over="ignore")
    def primal_at_zero(self):
        """P(0): the scores are zero, the costs remain. Infinite if they overflow."""
        problem = self.problem
        if problem.cost is None:
            # All wrong classes cost 1: the loss is the same for all.
            first = slice(0, 1)
            return float(problem.weight.mean() * loss_values(self.spec, problem.costs(first), problem.label[first],
                                                             self.smoothing)[0])
        risk = sum(float((problem.weight[rows] * loss_values(self.spec, problem.costs(rows), problem.label[rows],
                                                             self.smoothing)).sum())
                   for rows in row_blocks(problem))
        return risk / problem.n_samples

    def gap_estimate(self):
        """The duality gap as the visits saw it, each at the W of its own time. No certificate."""
        return float(self.gaps.mean())

    def primal_estimate(self, best):
        """What the gap is compared with; `best` is the best primal certified so far."""
        return best
