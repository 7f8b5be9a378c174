"""How the passes of exact block maximisation go on: how far they extrapolate, and which samples they leave out."""
import math

import numpy as np


class Momentum:
    """How far a pass extrapolates from the last two; none again when the dual falls.

    Nesterov's growing momentum, at most b = r / (2 - r) where the gap falls by a factor r a pass: at
    condition number 1/q the best is b = (1 - sqrt q) / (1 + sqrt q), with which r is about 1 - sqrt q.

    A fall that rounding explains is none. `blurred` tells that a pass gains no more than rounding takes: two such
    falls within BLUR passes.
    """

    WINDOW = 4
    CAP = 0.995
    BLUR = 8

    def __init__(self):
        self.restart()
        # That of A = 0
        self.dual = 0.0

    def restart(self):
        self.count, self.gaps = 0, []
        self.pause()

    def pause(self):
        """One pass without, whatever the dual does: W has been made anew."""
        self.paused, self.fell, self.blurred = True, False, False
        self.dual, self.since_fall = -math.inf, math.inf

    def saw(self, dual, gap, rounding=0.0):
        """Dual value and estimated gap after a pass; `rounding` is that of the dual value."""
        self.count += len(self.gaps) > 0
        self.since_fall += 1
        self.fell = dual < self.dual - rounding
        if self.fell:
            self.count = 0
        elif dual < self.dual:
            self.blurred, self.since_fall = self.since_fall <= self.BLUR, 0
        self.paused, self.dual = False, dual
        self.gaps = [*self.gaps[-self.WINDOW:], gap]

    def next(self):
        if self.count < 2 or self.paused:
            return 0.0
        b = (self.count - 1.0) / (self.count + 2.0)
        if self.gaps[0] > self.gaps[-1] > 0.0:
            rate = (self.gaps[-1] / self.gaps[0]) ** (1.0 / (len(self.gaps) - 1))
            b = min(b, rate / (2.0 - rate))
        # In steps, so that the rounding of sums does not show.
        return round(min(b, self.CAP), 3)


class Rest:
    """Samples that passes leave out for a while, because visit after visit nothing is to do there.

    Those are samples without a gap whose lists, now and before, are the same: momentum does not move them either.
    One found so v times running rests for 2 v passes, at most 32: its turn comes anyway, and `wake` ends it.
    """

    GROWTH, LONGEST = 2, 32

    def __init__(self, active, n_samples):
        self.active, self.idle = active, np.zeros(n_samples, dtype=np.int64)
        # The pass after which a sample's turn comes; never for those that are not active.
        self.until = np.full(n_samples, np.iinfo(np.int64).max)
        self.until[active] = 0

    def awake(self, n_passes):
        """Those of the active samples whose turn it is; all of them if it is nobody's."""
        samples = np.flatnonzero(self.until <= n_passes)
        return samples if len(samples) else self.active

    def saw(self, visited, idle, n_passes):
        """The samples of the n-th pass, and of each of them whether it is idle now."""
        count = np.where(idle, self.idle[visited] + 1, 0)
        self.idle[visited] = count
        self.until[visited] = n_passes + np.minimum(self.GROWTH * count, self.LONGEST)

    def wake(self, samples):
        """The turn of some active samples, by a mask, comes with the next pass."""
        self.until[samples] = 0
