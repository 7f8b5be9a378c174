"""The default solver: exact block maximisation with momentum, A as short lists."""
import math
import weakref
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial

import numpy as np
import scipy.sparse as sp

from fastmc._certificate import squared_norm
from fastmc._dual_lists import alphas, betas, weights_of_lists
from fastmc._pace import Momentum, Rest
from fastmc._shares import Crew, batch_size, column_ranges, crew_size, part_count, shorter, thread_count
from fastmc._solver_base import Candidate, Solver, modules
from fastmc._threads import over_blocks, over_slices

# Down to this relative gap float32 is exact enough for W.
SINGLE_GAP = 1e-4
# Slices of a large W, of MIN_SWEEP bytes or more, that are made anew one by one; and those that threads sweep over.
SLICES, SWEEPS, MIN_SWEEP = 8, 4, 1 << 22
# Multiplications of a product X W per number in W from which W is also averaged over the passes, which then takes next
# to no time; the weight of pass t is (DECAY + 1) / (t + DECAY) at first, and never less than NEWEST.
MIN_REUSE, DECAY, NEWEST = 200, 2, 0.2


class ExactSolver(Solver):
    """Exact block maximisation in random order with momentum; A as short lists.

    W has rows of whole vectors, in float32 or float64. A certificate is computed in float64 and changes
    nothing: who looks on does not disturb.
    """

    # The estimate comes with one of the primal and is too large, by 1.6 to 6 on texts.
    GAP_RATIO, PATIENCE, FIRST_CHECK = 0.5, 3.0, 20
    # Passes after which W is freed of rounding.
    REFRESH = 64

    def __init__(self, problem, spec, lam, smoothing, engine, dual, kind, sampling="permutation",
                 gap_refresh=10, precision="double", n_threads=1):
        super().__init__(problem, spec, lam, smoothing, engine)
        self.kind, self.sampling, self.gap_refresh = kind, sampling, gap_refresh
        self.column_ranges = cache(partial(column_ranges, problem))
        self.engine = engine
        self.n_threads = thread_count(problem, n_threads)
        shared = self.n_threads > 1 and sampling in ("permutation", "cyclic")
        self.batch = batch_size(problem) if shared else 0
        self.pool = ThreadPoolExecutor(self.n_threads - 1) if self.n_threads > 1 else None
        self.gains = np.zeros(problem.n_samples)
        self.rows = self.kernels["dual_rows"].DualRows(problem.n_samples, problem.n_classes)
        self.dual_estimate, self.momentum, self.n_passes = 0.0, Momentum(), 0
        self.passes_since_refresh, self.full_gap = 0, None
        self.rest, self.with_gap = Rest(self.active, problem.n_samples), []
        if sampling == "gap":
            self.gap_order = self.kernels["order"].GapOrder(self.active, problem.n_samples)
        self.average = None
        if problem.X.size * problem.n_classes >= MIN_REUSE * problem.n_weights * problem.n_classes:
            self.average = np.zeros((problem.n_weights, problem.n_classes))
        # W(A) in float64 of the last `terms`, and the certified W that may be asked for.
        self.checked, self.certified, self.passing = None, weakref.WeakSet(), False
        self.precision, self.padded, self.norm = precision, None, None
        single = precision == "single" or (precision == "auto" and tame(problem, lam, smoothing))
        self.set_precision(np.float32 if single else np.float64)
        if dual is not None:
            self.set_dual(sp.csr_array(dual))

    def set_precision(self, dtype):
        """W = W(A) in this precision from here on, shared out among the threads of a pass."""
        vector, started = 32 // np.dtype(dtype).itemsize, self.padded is not None
        shape = (self.problem.n_weights, -(-self.problem.n_classes // vector) * vector)
        # What was before is not needed any more, and shall not be there besides the new.
        self.padded = self.last = self.workers = None
        self.dtype, self.padded, self.last = np.dtype(dtype), aligned_zeros(shape, dtype), aligned_zeros(shape, dtype)
        values = self.single_values()
        # What each thread has to itself
        self.workers = [(self.problem.samples(self.engine, shape[1], values), self.spec.make(self.engine))
                        for _ in range(crew_size(self.n_threads, self.batch))]
        self.crew = Crew(len(self.workers))
        if self.batch:
            self.cut_features()
        if started:
            self.refresh_weights()
            self.momentum.pause()

    def single_values(self):
        """The values of X in float32, half the bytes, for passes in float32; None where they shall convert as they go.

        That is where neither this copy nor W is small: it would be a good part of the memory of a training.
        """
        if self.dtype == np.float32 and (self.average is not None
                                         or 4 * self.problem.X.size <= self.padded.nbytes // 4):
            return self.problem.values_in(np.float32)
        return None

    def cut_features(self):
        """Parts of the features for the threads of a pass."""
        ranges = self.column_ranges(part_count(self.problem))
        self.bounds = np.array([0, *(columns.stop for columns in ranges)], dtype=np.intp)
        places = self.workers[0][0].cut([columns.start for columns in ranges[1:]])
        for samples, _ in self.workers[1:]:
            samples.share_cuts(places)

    @property
    def weights(self):
        """W without the columns that fill its vectors up, a view."""
        return self.padded[:, : self.problem.n_classes]

    def set_dual(self, dual):
        """Take over A; its entries at the own classes follow from the others."""
        self.rows.set_rows(*betas(dual, self.problem.label))
        self.refresh_weights()

    def dual_matrix(self):
        return alphas(*self.rows.rows_of(), self.problem.label, self.problem.n_classes)

    def refresh_weights(self):
        """W = W(A) freed of the rounding of many steps; returns its squared norm.

        Slice by slice: W(A) in float64 need not be there as a whole.
        """
        slices = self.column_ranges(min(SLICES, 1 + self.padded.nbytes // MIN_SWEEP))
        norms = np.zeros(len(slices))

        def work(at):
            columns = slices[at]
            exact = self.add_rows(np.zeros((columns.stop - columns.start, self.problem.n_classes)), columns)
            norms[at] = squared_norm(exact)
            self.weights[columns] = exact

        over_slices(work, range(len(slices)), self.n_threads, self.pool)
        self.norm = None
        return float(norms.sum())

    def add_rows(self, out, columns):
        """Add those rows of W(A) that belong to a slice of the columns of X to `out`, which is returned."""
        if len(out):
            self.kernels["objective"].add_rows(self.problem.samples(self.engine), self.rows, out, self.lam_n,
                                               columns.start)
        return out

    def sweep(self, rng):
        for kept in list(self.certified):
            kept.copy()
        self.certified.clear()
        self.passing, self.norm = True, None
        if self.refresh_due():
            yield from self.refresh()
        elif self.n_passes % self.REFRESH == self.REFRESH - 1:
            self.undo_drift()
        active, b, last = self.active, 0.0, None
        if self.sampling == "permutation":
            active = self.rest.awake(self.n_passes)
            b = self.momentum.next()
            if self.momentum.count:
                # The pass before the first that extrapolates leaves the last W.
                last = self.last
        order = self.draw(rng, active)
        for start, stop in self.slices(len(active)):
            self.visit(order, start, stop, b, last if start == 0 else None, stop == len(active))
            self.oracle_calls += stop - start
            yield
        self.passing = False
        self.passes_since_refresh += 1
        self.n_passes += 1
        self.take_stock(active)
        if self.average is not None:
            newest = max((DECAY + 1.0) / (self.n_passes + DECAY), NEWEST)
            self.average += newest * (self.weights - self.average)
        if self.momentum.blurred or self.gap_estimate() < SINGLE_GAP * self.primal_estimate(math.inf):
            self.leave_single()
        if self.batch and b == 0.0 and self.momentum.fell:
            self.shorten_batches()

    def take_stock(self, active):
        """What a pass over these samples did: who may rest, and the dual value."""
        if self.sampling == "permutation":
            idle = self.gaps[active] == 0.0
            idle[idle] = self.rows.still(active[idle])
            self.rest.saw(active, idle, self.n_passes)
        half_norm = 0.5 * self.lam * self.squared_norm()
        self.dual_estimate = float(self.gains.mean()) - half_norm
        # Of W, where errors of many numbers cancel, and of the sums in float64
        rounding = (np.finfo(self.dtype).eps + 4.0 * np.finfo(np.float64).eps) * half_norm
        self.momentum.saw(self.dual_estimate, self.gap_estimate(), rounding)

    def visit(self, order, start, stop, b, last=None, ends=False):
        """A slice of a pass; `last` with the first one of a pass that extrapolates, `ends` with its last one."""
        shared = (self.rows, self.gaps, self.gains, order, start, stop, self.lam_n, self.smoothing, b)
        if not self.batch:
            if last is not None:
                self.over_weights(lambda rows: self.kernels["sdca"].extrapolate(
                    self.workers[0][0], self.padded[rows], last[rows], b))
            self.kernels["sdca"].sdca_pass(*self.workers[0], self.padded, *shared)
            return
        squares = np.zeros((len(self.bounds) - 1, self.padded.shape[1])) if ends else None
        with self.crew.watched() as size:
            self.kernels["batches"].batch_pass(self.workers[:size], self.padded, *shared, self.batch, self.pool,
                                               self.bounds, last, squares)
        if ends:
            self.norm = float(squares.sum())

    def wake(self):
        self.rest.wake(self.with_gap)

    def squared_norm(self):
        """||W||^2 of the W as it is stored, asked for only once while it stays as it is."""
        if self.norm is not None:
            return self.norm
        sums = {}

        def work(rows):
            sums[rows.start] = np.zeros(self.padded.shape[1])
            self.kernels["sdca"].add_squares(self.workers[0][0], self.padded[rows], sums[rows.start])

        self.over_weights(work)
        self.norm = float(sum(sums[start] for start in sorted(sums)).sum())
        return self.norm

    def over_weights(self, work):
        """Call `work` with slices of the rows of W, the same however many threads there are."""
        n_slices = SWEEPS if self.padded.nbytes >= MIN_SWEEP else 1
        over_blocks(work, len(self.padded), -(-len(self.padded) // n_slices), self.n_threads, self.pool)

    def shorten_batches(self):
        """The samples of a batch are too much alike; in the end one after the other."""
        self.batch = shorter(self.batch)
        if not self.batch:
            self.set_precision(self.dtype)

    def refresh_due(self):
        """Gap sampling rests on a full gap pass, now and then."""
        return self.sampling == "gap" and (
            self.full_gap is None or 0 < self.gap_refresh <= self.passes_since_refresh)

    def undo_drift(self):
        """W = W(A), and the last W moved alike; float32 ends where rounding is not far below the gap."""
        self.last -= self.padded
        exact = float(self.gains.mean()) - 0.5 * self.lam * self.refresh_weights()
        self.last += self.padded
        if abs(exact - self.dual_estimate) > 0.02 * self.gap_estimate():
            self.leave_single()

    def leave_single(self):
        if self.precision == "auto" and self.dtype == np.float32:
            self.set_precision(np.float64)

    def shrink(self, rho, scale):
        """lambda times rho and A times `scale`, both <= 1, after `terms`; W is W(A) again."""
        self.lam *= rho
        if scale < 1.0:
            self.rows.scale(scale)
        # From what `terms` left there, which is free of rounding: the count to the next refresh begins anew.
        np.multiply(self.checked, scale / rho, out=self.weights, casting="same_kind")
        self.n_passes, self.full_gap, self.norm = 0, None, None
        self.momentum.restart()
        self.rest = Rest(self.active, self.problem.n_samples)
        if not tame(self.problem, self.lam, self.smoothing):
            self.leave_single()

    def primal_estimate(self, best):
        return min(best, self.dual_estimate + self.gap_estimate())

    def objective(self, weights):
        return objective(self.problem, self.spec, self.rows, weights, self.smoothing, self.engine, self.n_threads,
                         self.pool)

    def exact_weights(self):
        """W(A) in float64."""
        exact = np.zeros((self.problem.n_weights, self.problem.n_classes))
        over_slices(lambda columns: self.add_rows(exact[columns], columns),
                    self.column_ranges(self.n_threads), self.n_threads, self.pool)
        return exact

    def terms(self):
        """||W||^2, and for each sample its loss, its gap and ||alpha_i||^2 / omega_i, at W = W(A)."""
        self.checked = self.exact_weights()
        losses, gains, inner, _ = self.objective(self.checked)
        squares = np.zeros(self.problem.n_samples)
        if self.smoothing > 0.0:
            dual = self.dual_matrix()
            weight = np.where(self.problem.weight > 0, self.problem.weight, np.inf)
            squares = np.asarray(dual.multiply(dual).sum(axis=1)).reshape(-1) / weight
        return squared_norm(self.checked), losses, losses + inner - gains, squares

    def snapshot(self):
        """Two functions that make W(A) and A of now, dense and sparse, whenever they are called."""
        parts = self.rows.rows_of()
        return (partial(weights_of_lists, *parts, self.problem, self.lam_n, self.engine),
                partial(alphas, *parts, self.problem.label, self.problem.n_classes))

    def candidates(self):
        """P at the W of the passes, or at their average, and D of A."""
        if self.passing:
            # A pass that was broken off leaves blocks of W that went ahead.
            self.refresh_weights()
        weights = self.padded if self.average is None else self.average
        losses, gains, inner, margins = self.objective(weights)
        # What rounding leaves of a gap does not count.
        parts, self.with_gap = self.rows.rows_of(), losses + inner - gains > 1e-9 * losses
        if self.average is None:
            norm = self.squared_norm()
            dual = self.dual_by_scores(gains, inner, norm)
        else:
            norm = squared_norm(self.average)
            dual = float(gains.mean()) - 0.5 * self.lam * squared_norm(self.exact_weights())
        scale, risk = self.best_scale(norm, margins, losses)
        primal = 0.5 * self.lam * scale * scale * norm + risk
        return [Candidate(primal, dual, lambda: self.keep_weights(scale),
                          lambda: partial(alphas, *parts, self.problem.label, self.problem.n_classes))]

    def dual_by_scores(self, gains, inner, norm):
        """D by the scores of the W of the passes, without W(A).

        ||W(A)||^2 = 2 <W(A), W> - ||W||^2 + ||W - W(A)||^2 and lambda <W(A), W> = mean <alpha_i, W x_i>. Of the
        last term, the rounding of W, squared, the estimate counts twice: D shall not be too large.
        """
        return float(gains.mean()) - float(inner.mean()) + 0.5 * self.lam * (norm - 2.0 * self.drift())

    def drift(self):
        """||W - W(A)||^2, estimated: it is the mean of ||(W - W(A)) r||^2 over vectors r of signs (Hutchinson).

        Of rounding, which is in all features, one r tells it to some per cent; and an error in W shows.
        """
        problem = self.problem
        signs, error = np.zeros(self.padded.shape[1]), np.zeros(problem.n_weights)
        signs[: problem.n_classes] = np.random.default_rng(self.n_passes).choice([-1.0, 1.0], problem.n_classes)

        def work(columns):
            sums = np.zeros((columns.stop - columns.start, 4))
            if len(sums):
                self.kernels["sdca"].add_signed(self.workers[0][0], self.padded[columns], signs, sums)
                error[columns] = np.einsum("ij->i", sums)
                self.kernels["objective"].take_signed(problem.samples(self.engine), self.rows, signs, error[columns],
                                                      self.lam_n, columns.start)

        over_slices(work, self.column_ranges(self.n_threads), self.n_threads, self.pool)
        return squared_norm(error)

    def best_scale(self, norm, margins, losses):
        """(t, risk of t W) that make P(t W) small: a W of few passes is often too short or too long.

        For one rank and costs of 1 alone, where the loss is omega max(0, 1 + t mu); t = 1 otherwise.
        """
        if self.spec.n_ranks > 1 or self.smoothing > 0.0 or self.problem.cost is not None:
            return 1.0, float(losses.mean())
        weight, mu = self.problem.weight * self.spec.rho[0], margins - 1.0
        low, high, slopes = 0.5, 2.0, weight * mu
        # Samples that have a loss at one t and none at another; what is above has one at all of these t.
        some = np.flatnonzero((mu > -1.0 / low) & (mu <= -1.0 / high))
        always, mu_some, slopes_some = float(slopes[mu > -1.0 / high].sum()), mu[some], slopes[some]
        # To 2e-5 in t, which is 1e-9 or so in P.
        for _ in range(16):
            t = 0.5 * (low + high)
            losing = always + float(np.where(mu_some > -1.0 / t, slopes_some, 0.0).sum())
            low, high = (low, t) if self.lam * norm * t + losing / len(mu) > 0.0 else (t, high)
        risk = float(np.mean(weight * np.maximum(1.0 + t * mu, 0.0)))
        if 0.5 * self.lam * (t * t - 1.0) * norm + risk < losses.mean():
            return t, risk
        return 1.0, float(losses.mean())

    def keep_weights(self, scale):
        if self.average is not None:
            weights = scale * self.average
            return lambda: weights
        kept = CertifiedWeights(self, scale)
        self.certified.add(kept)
        return kept


class CertifiedWeights:
    """The W of a certificate, times a factor: a function that gives it in float64. Copied only if passes go on."""

    def __init__(self, solver, scale):
        self.solver, self.scale = solver, scale
        self.weights = solver.weights

    def copy(self):
        self.weights = self.weights.copy()

    def __call__(self):
        # Giving W ends the solver.
        self.solver.last = self.solver.workers = None
        weights = np.empty(self.weights.shape)
        self.solver.over_weights(lambda rows: np.multiply(self.weights[rows], self.scale, out=weights[rows],
                                                          dtype=np.float64))
        return weights


def objective(problem, spec, rows, weights, smoothing, engine="cython", n_threads=1, pool=None):
    """Losses, gains, <s_i, alpha_i> and margins of all samples for the lists of A, shape (4, n_samples)."""
    n, arrays = problem.n_samples, np.zeros((4, problem.n_samples))

    def work(block):
        # Samples and losses hold scratch: each thread has its own.
        samples, loss = problem.samples(engine, weights.shape[1]), spec.make(engine)
        modules(engine)["objective"].objective(samples, loss, rows, weights, smoothing, block.start, block.stop,
                                               *arrays)

    over_blocks(work, n, n if n_threads == 1 else -(-n // (4 * n_threads)), n_threads, pool)
    return arrays


def tame(problem, lam, smoothing):
    """Whether float32 has room for the numbers of a run, by far."""
    q = problem.sqnorm.max() * problem.weight.max() / (lam * problem.n_samples)
    sizes = [q, problem.weight.max(), math.sqrt(problem.sqnorm.max())]
    if problem.cost is not None:
        sizes.append(problem.cost.max())
    if smoothing > 0.0:
        sizes.append(smoothing)
    return all(1e-6 < size < 1e6 for size in sizes)


def aligned_zeros(shape, dtype):
    """Zeros whose first lies at the start of a cache line: vectors would straddle two otherwise."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    memory = np.zeros(size + 64, np.uint8)
    start = -memory.ctypes.data % 64
    return memory[start: start + size].view(dtype).reshape(shape)
