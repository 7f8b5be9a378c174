"""How the work of a pass is shared out among threads: how many, which samples at once, which features."""
import os
import time
from contextlib import contextmanager

import numpy as np
import scipy.sparse as sp

from fastmc._certificate import squared_norm
from fastmc._threads import count_threads

# Multiplications of a product X W below which one thread serves alone: to start more and wait for them takes as long.
MIN_WORK = 20_000_000
# Samples that two or more threads take at once: at most BATCH, 1/SPREAD of all, and ALIKE over their mean
# cosine: steps of samples that are alike add up. With fewer than MIN_BATCH, or MIN_STEPS for each of more than two
# threads, or fewer than MIN_ROW multiplications for the scores of one, threads would wait more than work.
BATCH, MIN_BATCH, MIN_STEPS, SPREAD, ALIKE, MIN_ROW = 64, 8, 4, 100, 2.0, 900
# Rows of X that tell how much alike they are, and entries that tell in which columns they are.
SOME, MANY = 2048, 1 << 17
# Parts of the features that threads share out: two, and more where the scores of a sample take so many
# multiplications in each.
MAX_PARTS, PART_WORK = 8, 8000
# Slices of a pass for which a team stays small, at most.
CROWDED = 16


def thread_count(problem, n_threads):
    """Threads of a training, of those asked for."""
    return count_threads(n_threads) if problem.X.size * problem.n_classes >= MIN_WORK else 1


def batch_size(problem):
    """Samples that threads take at once; 0 where one thread alone is as fast."""
    n = problem.n_samples
    if not sp.issparse(problem.X) or problem.X.nnz * problem.n_classes < MIN_ROW * n:
        return 0
    # Every so many-th row, about SOME: a mean over pairs need not see all.
    some = slice(None, None, -(-n // SOME))
    squares = problem.sqnorm[some]
    sums = np.asarray(problem.X[some].sum(axis=0, dtype=np.float64)).reshape(-1)
    inner = (squared_norm(sums) + (len(squares) * problem.bias) ** 2 - squares.sum()) / max(len(squares) - 1, 1)
    alike = ALIKE * squares.sum()
    batch = min(BATCH, n // SPREAD, int(alike / inner) if alike < BATCH * inner else BATCH)
    return batch if batch >= MIN_BATCH else 0


def part_count(problem):
    """Parts of the features, as many whatever the number of threads: a score is a sum over parts."""
    count = 2
    while 2 * count <= MAX_PARTS and problem.X.size * problem.n_classes >= 2 * count * PART_WORK * problem.n_samples:
        count *= 2
    return count


def column_ranges(problem, count):
    """Slices of the columns of a sparse X that take about as long each; one for a dense X."""
    if count == 1 or not sp.issparse(problem.X):
        return [slice(0, problem.n_weights)]
    step = -(-problem.X.nnz // MANY) or 1
    entries = step * np.bincount(problem.X.indices[::step], minlength=problem.n_weights)
    # A row of W that is rarely needed has left the cache by then.
    cost = np.cumsum(entries + 3 * np.minimum(entries, problem.n_samples // 64))
    cuts = np.searchsorted(cost, cost[-1] * np.arange(1, count) / count).tolist()
    return [slice(*pair) for pair in zip([0, *cuts], [*cuts, problem.n_weights])]


def shorter(batch):
    """The next batch size where the samples of a batch are too much alike; 0: one sample after the other."""
    return batch // 2 if batch // 2 >= MIN_BATCH else 0


def crew_size(n_threads, batch):
    """Threads that share a batch."""
    return min(n_threads, max(2, batch // MIN_STEPS)) if batch else 1


class Crew:
    """How many threads of a team are at work: fewer for a while where it had fewer cores.

    Who has no core is waited for at every batch. Threads are at work or watch for each other, so that the time of
    the process tells how many cores they had. Who does what changes no bit.
    """

    def __init__(self, size):
        self.size = self.now = size
        # Slices for which the crew stays small: one at first, and twice as many each time that cores are missing again.
        self.left, self.patience = 0, 1

    @contextmanager
    def watched(self):
        """A slice of a pass, made by so many threads."""
        wall, busy = time.perf_counter(), time.process_time()
        yield self.now
        if os.name == "posix":
            # Elsewhere the clock of the process ticks too rarely for a slice.
            self.had((time.process_time() - busy) / (time.perf_counter() - wall))

    def had(self, cores):
        """The last slice had so many cores."""
        if cores < self.now - 0.3:
            self.now, self.left = max(1, int(cores + 0.3)), self.patience
            self.patience = min(2 * self.patience, CROWDED)
        elif self.left > 1:
            self.left -= 1
        else:
            if not self.left:
                self.patience = 1
            self.now, self.left = self.size, 0
