"""One run of MultiBoost: rounds of weak learners and of the master problem, until none is better."""
import copy
import os
import time

import numpy as np

from fastmc._master import Master
from fastmc._progress import Progress
from fastmc.stumps import Stumps, outputs as stump_outputs

# Steps of the master's tolerance, and how far it goes, when the best learners are all old ones.
TIGHTEN, TIGHTEST = 0.1, 1e-5
# Long solves at most when no learner is missing and the weights are not optimal yet.
SETTLINGS = 20


def outputs_of(X, learners):
    """Outputs of weak learners, int8 (n_samples, n_learners); stumps are tuples."""
    if not learners:
        return np.zeros((X.shape[0], 0), dtype=np.int8)
    if isinstance(learners[0], tuple):
        return stump_outputs(X, *map(np.array, zip(*learners)))
    return np.column_stack([_signs(learner, X) for learner in learners])


def _signs(learner, X):
    """Outputs of a weak learner, -1 and +1, int8 (n_samples,)."""
    labels = np.asarray(learner.predict(X))
    if labels.shape != (X.shape[0],) or not np.isin(labels, (-1, 1)).all():
        raise ValueError(f"weak_learner={learner!r}: predict must give -1 or +1 for each of the "
                         f"{X.shape[0]} rows, got {labels.dtype} of shape {labels.shape}")
    return labels.astype(np.int8)


class Boosting:
    """The state of a run.

    Parameters
    ----------
    options : MultiBoostClassifier
        Its parameters, checked.
    X : ndarray or CSR matrix, checked
    label : ndarray of int64, shape (n_samples,)
    n_classes : int
    weight : ndarray of float64, shape (n_samples,)
    rng : numpy.random.Generator
    validation : (X, label) or None
        A label of -1 belongs to no class.

    Attributes
    ----------
    learners : list of lists
        Of every class, in the order of the master's weights.
    stages : list of lists of ndarray
        The weights of every class after each round; arrays as long as the class had learners.
    errors : list of float
        The validation error after each round.
    converged : bool
        No weak learner had an edge above 1 + tol.
    solver_time : float
    """

    def __init__(self, options, X, label, n_classes, weight, rng, validation):
        self.options, self.X, self.label, self.n_classes = options, X, label, n_classes
        self.rng, self.validation = rng, validation
        self.master = Master(label, n_classes, options.C, weight, options.engine)
        self.stumps = Stumps(X, options.engine) if options.weak_learner == "stump" else None
        self.n_threads = options.n_threads or os.cpu_count() or 1
        self.learners = [[] for _ in range(n_classes)]
        # Where a class has the learner with these outputs: none is added twice.
        self.held = [{} for _ in range(n_classes)]
        self.stages, self.errors = [], []
        if validation is not None:
            self.validation_outputs = [np.zeros((len(validation[1]), 0), dtype=np.int8)] * n_classes
        self.tol, self.solver_time, self.converged = options.tol, 0.0, False
        self.settling = 0

    def until_done(self):
        progress = Progress(self.options.verbose, self.options.n_rounds, "round")
        began = time.perf_counter()
        while len(self.stages) < self.options.n_rounds and not self.stalled():
            found = self.search()
            best = max((edge for _, edge, _ in found.values()), default=0.0)
            # Those present sit at edges of about 1 +- tol themselves.
            useful = {c: f for c, f in found.items() if f[1] > 1.0 + self.options.tol}
            if not useful:
                if self.settled():
                    break
                continue
            if self.options.stage_wise or not self.all_old(useful):
                self.one_round(useful)
                progress.show(f"edge {best:.3g}", time.perf_counter() - began)
            elif not self.tighten():
                break
        progress.close()

    def settled(self):
        """No learner is missing: whether the weights are optimal too, or cannot be made so."""
        self.converged = self.master.largest_violation() <= self.options.tol
        if self.converged or self.options.stage_wise or self.settling == SETTLINGS:
            return True
        self.settling += 1
        self.solve(100 * self.options.max_sweeps)
        self.record()
        return False

    def search(self):
        """{class: (learner, edge, bits)} with the best learner of each class, edges times C/p."""
        U = self.master.gradient()
        best = self.best_stumps(U) if self.stumps is not None else self.trained(U)
        found = [(learner, self.master.scale * float(U[:, c] @ outputs), outputs)
                 for c, (learner, outputs) in best.items()]
        if not self.options.class_wise and found:
            found = [max(found, key=lambda f: f[1])] * self.n_classes
            best = range(self.n_classes)
        return {c: (learner, edge, self.master.pack(c, outputs))
                for c, (learner, edge, outputs) in zip(best, found)}

    def best_stumps(self, U):
        """{class: (stump, outputs)}, empty if all features are constant."""
        feature, threshold, polarity, _ = self.stumps.best(U, self.n_threads)
        if feature[0] < 0:
            return {}
        outputs = self.stumps.outputs(feature, threshold, polarity)
        stumps = zip(feature.tolist(), threshold.tolist(), polarity.tolist())
        return {c: (stump, outputs[:, c]) for c, stump in enumerate(stumps)}

    def trained(self, U):
        """{class: (learner, outputs)} of other weak learners."""
        best = {}
        for c in range(self.n_classes):
            learner, weight = copy.deepcopy(self.options.weak_learner), np.abs(U[:, c])
            learner.fit(self.X, np.where(self.label == c, 1, -1), sample_weight=weight / weight.mean())
            best[c] = learner, _signs(learner, self.X)
        return best

    def all_old(self, found):
        return all(bits.tobytes() in self.held[c] for c, (_, _, bits) in found.items())

    def one_round(self, found):
        """Add what is new, set its weights and correct the others."""
        self.tol, self.settling = self.options.tol, 0
        coordinates = [self.coordinate(c, learner, bits) for c, (learner, _, bits) in found.items()]
        sweeps = 1 if self.options.stage_wise else self.options.max_sweeps
        self.solve(sweeps, tuple(np.array(part, dtype=np.intp) for part in zip(*coordinates)))
        self.stages.append(None)
        self.errors.append(None)
        self.record()

    def coordinate(self, c, learner, bits):
        """Where class c has the learner; added if new."""
        key = bits.tobytes()
        if key not in self.held[c]:
            self.held[c][key] = self.master.add(c, bits)
            self.learners[c].append(learner)
            if self.validation is not None:
                outputs = outputs_of(self.validation[0], [learner])
                self.validation_outputs[c] = np.hstack([self.validation_outputs[c], outputs])
        return self.held[c][key]

    def solve(self, sweeps, new=None):
        began = time.perf_counter()
        if self.options.master == "lbfgsb":
            self.master.solve_lbfgsb(self.tol)
        else:
            self.master.solve(self.tol, sweeps, self.rng, new)
        self.solver_time += time.perf_counter() - began

    def tighten(self):
        """The best learners are all old: their weights are not exact enough. False to give up."""
        if self.tol <= TIGHTEST * self.options.tol:
            return False
        self.tol *= TIGHTEN
        self.solve(100 * self.options.max_sweeps)
        self.record()
        return True

    def record(self):
        """The weights of the last round, and their validation error."""
        self.stages[-1] = [w[:count].copy() for w, count in zip(self.master.w, self.master.count)]
        if self.validation is not None:
            scores = [o @ w for o, w in zip(self.validation_outputs, self.stages[-1])]
            self.errors[-1] = float(np.mean(np.argmax(scores, axis=0) != self.validation[1]))

    def stalled(self):
        patience = self.options.early_stopping
        if patience is None or len(self.errors) <= patience:
            return False
        return min(self.errors[-patience:]) >= min(self.errors[:-patience])

    def keep_best(self):
        """Go back to the round of the least validation error."""
        kept = self.stages[: int(np.argmin(self.errors)) + 1]
        self.converged = self.converged and len(kept) == len(self.stages)
        self.stages = kept
        self.learners = [part[: len(w)] for part, w in zip(self.learners, self.stages[-1])]
        self.master.count[:] = [len(w) for w in self.stages[-1]]
        self.master.w[:] = 0.0
        for c, w in enumerate(self.stages[-1]):
            self.master.w[c, : len(w)] = w

    def bounds(self):
        """(objective, lower bound over the columns, lower bound over all stumps or -inf)."""
        master = self.master
        master.refresh()
        everywhere = -np.inf
        if self.stumps is not None:
            everywhere = master.lower_bound(max((edge for _, edge, _ in self.search().values()),
                                                default=0.0))
        return master.objective(), master.lower_bound(master.largest_edge()), everywhere
