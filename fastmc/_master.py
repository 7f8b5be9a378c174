"""The boosting master problem: weights of given learners, by coordinate descent or L-BFGS-B.

See fastmc.reference.fcd for the problem and the coordinate step.
"""
import math

import numpy as np
from scipy.optimize import minimize

from fastmc import _fcd, reference

# Sweeps over the violated coordinates before all are looked at again.
INNER_SWEEPS = 10


class Master:
    """min over w >= 0 of sum w + C/p sum_i omega_i sum_{y != y_i} exp(F_y(x_i) - F_{y_i}(x_i)).

    Parameters
    ----------
    label : ndarray of int64, shape (n_samples,)
    n_classes : int
    C : float
    weight : ndarray of float64, shape (n_samples,)
        omega_i; p = sum(omega) (n_classes - 1).
    engine : str
        "cython" or "reference".
    """

    def __init__(self, label, n_classes, C, weight, engine="cython"):
        self.label, self.n_classes, self.weight = label, n_classes, weight
        self.scale = C / (weight.sum() * (n_classes - 1))
        self.sweep = _fcd.fcd_sweep if engine == "cython" else reference.fcd.fcd_sweep
        self.count = np.zeros(n_classes, dtype=np.intp)
        self.bits = np.zeros((n_classes, 0, -(-len(label) // 8)), dtype=np.uint8)
        self.w = np.zeros((n_classes, 0))
        # Outputs as numbers, for L-BFGS-B alone, and how many each class has of them.
        self.dense = np.zeros((n_classes, 0, len(label)))
        self.dense_count = np.zeros(n_classes, dtype=np.intp)
        self.own = np.arange(n_classes)[:, None] == label
        self.refresh()

    @property
    def n_samples(self):
        return len(self.label)

    def pack(self, c, outputs):
        """Bits of delta = h on the rows of class c and -h on the others, for outputs -1 and +1."""
        return np.packbits((outputs > 0) == self.own[c], bitorder="little")

    def add(self, c, bits):
        """Give class c one more learner, of weight zero; its coordinate."""
        if self.count[c] == self.bits.shape[1]:
            room = max(8, self.bits.shape[1] // 2)
            self.bits = np.pad(self.bits, ((0, 0), (0, room), (0, 0)))
            self.w = np.pad(self.w, ((0, 0), (0, room)))
        j = self.count[c]
        self.bits[c, j] = bits
        self.count[c] += 1
        return c, j

    def outputs(self, c, j):
        """Outputs -1, +1 of a learner, int8 (n_samples,)."""
        bits = np.unpackbits(self.bits[c, j], count=self.n_samples, bitorder="little")
        return np.where(bits == self.own[c], 1, -1).astype(np.int8)

    def refresh(self, F=None):
        """r and e anew from w, in the log domain: nothing overflows and no rounding stays."""
        F = self.scores() if F is None else F
        own = F[self.label, np.arange(self.n_samples)]
        others = np.where(self.own, -math.inf, F)
        top = others.max(axis=0)
        self.e = np.exp(others - top)
        self.r = self.weight * np.exp(top - own)

    def scores(self):
        """F_y(x_i), shape (n_classes, n_samples)."""
        F = np.zeros((self.n_classes, self.n_samples))
        for c in range(self.n_classes):
            for j in np.flatnonzero(self.w[c]):
                F[c] += self.w[c, j] * self.outputs(c, j)
        return F

    def mu(self):
        """mu_(i,y), shape (n_classes, n_samples), zero at the own class."""
        return self.r * self.e

    def gradient(self):
        """u of every class: sum_y mu on its own rows, -mu_(i,c) on the others, (n_samples, K)."""
        mu = self.mu()
        return np.ascontiguousarray(np.where(self.own, mu.sum(axis=0), -mu).T)

    def objective(self):
        return float(self.w.sum() + self.scale * self.mu().sum())

    def lower_bound(self, largest_edge):
        """A bound of the optimum over all columns whose edge C/p sum mu delta is at most this.

        With L = log mu, M = sum mu and H = sum mu L, the dual value of the scaled mu,
        C/p [tau (1 - log tau) M - tau H] with tau = min(exp(-H/M), 1 / largest_edge).
        """
        mu, weight = self.mu(), np.where(self.own, 0.0, self.weight)
        held = mu > 0
        mass = mu[held].sum()
        if mass == 0.0:
            return 0.0
        entropy = float(np.dot(mu[held], np.log(mu[held] / np.broadcast_to(weight, mu.shape)[held])))
        log_tau = -entropy / mass
        if largest_edge > 0:
            log_tau = min(log_tau, -math.log(largest_edge))
        return float(self.scale * math.exp(log_tau) * ((1.0 - log_tau) * mass - entropy))

    def coordinates(self, rng=None):
        """All coordinates, class by class; in random order of both with a generator."""
        order = range(self.n_classes) if rng is None else rng.permutation(self.n_classes)
        learners = [np.arange(self.count[c]) if rng is None else rng.permutation(self.count[c])
                    for c in order]
        classes = np.repeat(np.asarray(order, dtype=np.intp), [len(group) for group in learners])
        return classes, np.concatenate(learners).astype(np.intp)

    def visit(self, coordinates, tol):
        """One sweep; the violations found before each step."""
        violation = np.zeros(len(coordinates[0]))
        self.sweep(self.bits, self.w, self.r, self.e, self.label, *coordinates, self.scale, tol,
                   violation)
        return violation

    def largest_violation(self):
        return float(self.visit(self.coordinates(), math.inf).max(initial=0.0))

    def largest_edge(self):
        """max over the columns of C/p sum mu delta."""
        U = self.gradient()
        return max((self.scale * float(U[:, c] @ self.outputs(c, j))
                    for c, j in zip(*self.coordinates())), default=0.0)

    def solve(self, tol, max_sweeps, rng, new=None):
        """Sweeps until no coordinate violates its condition by more than tol; their number.

        The first sweep goes over the `new` coordinates in turn; then a sweep over all finds the
        violated ones, which are visited in random order until they are settled.
        """
        sweeps = 0
        if new is not None and max_sweeps:
            self.visit(new, 0.0)
            sweeps = 1
        while sweeps < max_sweeps:
            coordinates = self.coordinates(rng)
            violated = self.visit(coordinates, tol) > tol
            sweeps += 1
            if not violated.any():
                break
            working = np.column_stack(coordinates)[violated]
            for _ in range(min(INNER_SWEEPS, max_sweeps - sweeps)):
                sweeps += 1
                if self.visit(self._shuffled(working, rng), tol).max() <= tol:
                    break
        return sweeps

    def _shuffled(self, working, rng):
        """The coordinates in random order within each class, the classes in random order."""
        rank = rng.permutation(self.n_classes)
        working = working[rng.permutation(len(working))]
        working = working[np.argsort(rank[working[:, 0]], kind="stable")]
        return np.ascontiguousarray(working[:, 0]), np.ascontiguousarray(working[:, 1])

    def solve_lbfgsb(self, tol):
        """The same problem by SciPy's L-BFGS-B from the current w; returns its iterations.

        Parameters
        ----------
        tol : float
            ftol, the relative decrease of the objective at which it stops.
        """
        columns = self.coordinates()
        delta = self._dense_outputs()
        ends, rows = np.cumsum(self.count)[:-1], np.arange(self.n_samples)

        def scores(x):
            return np.stack([part @ d for part, d in zip(np.split(x, ends), delta)])

        def value_and_gradient(x):
            F = scores(x)
            mu = np.exp(np.where(self.own, -math.inf, F - F[self.label, rows]))
            mu *= self.weight
            u = np.where(self.own, mu.sum(axis=0), -mu)
            gradient = np.concatenate([d @ row for d, row in zip(delta, u)])
            return x.sum() + self.scale * mu.sum(), 1.0 - self.scale * gradient

        result = minimize(value_and_gradient, self.w[columns], jac=True, method="L-BFGS-B",
                          bounds=[(0.0, None)] * len(columns[0]),
                          options={"ftol": tol, "gtol": 0.0, "maxiter": 15000, "maxfun": 30000})
        self.w[columns] = result.x
        self.refresh(scores(result.x))
        return result.nit

    def _dense_outputs(self):
        """Outputs of each class as float64, (count, n_samples); kept, so that a call adds the new."""
        room = self.bits.shape[1] - self.dense.shape[1]
        if room:
            self.dense = np.pad(self.dense, ((0, 0), (0, room), (0, 0)))
        for c, count in enumerate(self.count):
            for j in range(self.dense_count[c], count):
                self.dense[c, j] = self.outputs(c, j)
        self.dense_count[:] = self.count
        return [part[:count] for part, count in zip(self.dense, self.count)]
