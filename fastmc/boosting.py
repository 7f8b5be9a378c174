"""MultiBoost: totally-corrective multi-class boosting with a weak learner per class and round.

Column generation (Lin et al., algorithm 1): the weights of all learners so far solve the master
problem; then each class gets the weak learner with the largest edge, and so on until no weak
learner has an edge above one, which proves the model optimal over all of them.
"""
import copy
import time

import numpy as np

from fastmc._master import Master
from fastmc._options import check_choice, check_count, check_range, make_generator
from fastmc._problem import check_matrix, check_weights, encode_labels
from fastmc.stumps import Stumps, outputs as stump_outputs

# How far the master's tolerance is tightened when the best learners are all old ones.
TIGHTEN, TIGHTEST = 0.1, 1e-9


def solve_weights(H, y, C, tol=1e-6, max_sweeps=20000, init=None, random_state=0, engine="cython"):
    """Solve the master problem of boosting for given weak learners.

    min over w >= 0 of sum w + C/p sum_i sum_{y != y_i} exp(F_y(x_i) - F_{y_i}(x_i)) with
    F_y = sum_j w_(y,j) h_(y,j) and p = n (K - 1) (Lin et al., equation 2), by coordinate descent.

    Parameters
    ----------
    H : ndarray of int8, shape (n_classes, n_learners, n_samples)
        Outputs -1 and +1.
    y : array-like, shape (n_samples,)
        Labels; class c of H is the c-th in sorted order.
    C : float
    tol : float
        Largest violation of an optimality condition to stop at.
    max_sweeps : int
    init : ndarray of float64, shape (n_classes, n_learners), or None
        Weights to start from.
    random_state : int or numpy.random.Generator
    engine : str
        "cython" or "reference".

    Returns
    -------
    w : ndarray of float64, shape (n_classes, n_learners)
    info : dict
        objective; lower_bound of the optimum; violation, the largest one left; sweeps.

    Raises
    ------
    ValueError
        Naming the argument and what is wrong with it.
    """
    _check_master(C, tol, max_sweeps)
    check_choice("engine", engine, ["cython", "reference"])
    H = np.asarray(H)
    if H.ndim != 3 or not np.isin(H, (-1, 1)).all():
        raise ValueError(f"H of shape {H.shape} must be (n_classes, n_learners, n_samples) with "
                         "entries -1 and +1")
    classes, label = encode_labels(y, H.shape[2])
    if len(classes) != H.shape[0]:
        raise ValueError(f"H is for {H.shape[0]} classes, y has {len(classes)}")
    master = Master(label, len(classes), C, np.ones(H.shape[2]), engine)
    for c in range(H.shape[0]):
        for outputs in H[c]:
            master.add(c, outputs)
    if init is not None:
        _start_from(master, init, H.shape[:2])
    sweeps = master.solve(tol, max_sweeps, make_generator(random_state))
    master.refresh()
    info = {"objective": master.objective(), "lower_bound": master.lower_bound(master.largest_edge()),
            "violation": master.largest_violation(), "sweeps": sweeps}
    return master.w[:, : H.shape[1]].copy(), info


def _start_from(master, init, shape):
    init = np.asarray(init, dtype=np.float64)
    if init.shape != shape or not np.isfinite(init).all() or (init < 0).any():
        raise ValueError(f"init of shape {init.shape} must be finite, non-negative and of shape {shape}")
    master.w[:, : shape[1]] = init
    master.refresh()


def _check_master(C, tol, max_sweeps):
    check_range("C", C, 0.0, 1e15)
    check_range("tol", tol, 0.0)
    check_count("max_sweeps", max_sweeps, 1)


class MultiBoostClassifier:
    """Multi-class boosting with class-wise weak learners (Lin et al.).

    Parameters
    ----------
    n_rounds : int
        Rounds of column generation; each adds at most a learner per class.
    C : float
        Weight of the loss against sum w. With C <= 1 and balanced classes the model is empty.
    weak_learner : "stump" or object
        "stump": the exact best decision stump. Or any classifier with fit(X, y, sample_weight) and
        predict, copied for each use and trained on labels -1 and +1.
    class_wise : bool
        False: one learner a round shared by all classes, with a weight for each (MultiBoost of
        Shen and Hao).
    stage_wise : bool
        True: only the new weights are set, in one sweep; the old ones stay.
    max_sweeps : int
        Sweeps of coordinate descent a round.
    tol : float
        Largest violation of an optimality condition that a round leaves, if max_sweeps allows.
    master : str
        "fcd": coordinate descent; "lbfgsb": SciPy's L-BFGS-B, to compare.
    early_stopping : int or None
        Stop when the validation error has not fallen for that many rounds, and keep the round with
        the least.
    n_threads : int
        Threads of the stump search; 0 for all cores.
    random_state : int or numpy.random.Generator
    verbose : int
        1 shows progress on standard error.
    engine : str
        "cython", or "reference" for the pure-Python mirror of the kernels.

    Attributes
    ----------
    classes_ : ndarray
        Sorted labels.
    n_rounds_ : int
        Rounds run.
    n_features_in_ : int
    learners_ : list of lists
        For each class its learners in order: (feature, threshold, polarity) for stumps.
    weights_ : list of ndarray
        Their weights.
    solver_time_ : float
        Seconds spent on the master problem.
    objective_, lower_bound_ : float
        Objective of the model, and a bound below the optimum over the columns of the model.
    global_lower_bound_ : float
        The same over all stumps; -inf for other weak learners, whose best edge is unknown.
    converged_ : bool
        Whether no weak learner had an edge above 1 + tol at the end.
    """

    def __init__(self, n_rounds=200, C=1e4, weak_learner="stump", class_wise=True, stage_wise=False,
                 max_sweeps=5, tol=0.01, master="fcd", early_stopping=None, n_threads=1,
                 random_state=0, verbose=0, engine="cython"):
        self.n_rounds, self.C, self.weak_learner = n_rounds, C, weak_learner
        self.class_wise, self.stage_wise = class_wise, stage_wise
        self.max_sweeps, self.tol, self.master = max_sweeps, tol, master
        self.early_stopping, self.n_threads = early_stopping, n_threads
        self.random_state, self.verbose, self.engine = random_state, verbose, engine

    def fit(self, X, y, sample_weight=None, validation=None):
        """Train.

        Parameters
        ----------
        X : sparse or dense, shape (n_samples, n_features)
        y : array-like, shape (n_samples,)
        sample_weight : array-like or None
        validation : (X, y) or None
            For early stopping; a tenth of the training data, drawn by class, if None.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            Naming the argument and what is wrong with it.
        """
        self._check()
        rng = make_generator(self.random_state)
        X = check_matrix(X)
        self.classes_, label = encode_labels(y, X.shape[0])
        weight = check_weights(sample_weight, X.shape[0])
        if self.early_stopping is not None and validation is None:
            X, label, weight, validation = self._split(X, label, weight, rng)
        used = weight > 0
        if not used.all():
            X, label, weight = X[used], label[used], weight[used]
        self.n_features_in_ = X.shape[1]
        run = _Boosting(self, X, label, weight, rng, validation)
        run.until_done()
        run.finish()
        return self

    def _check(self):
        check_count("n_rounds", self.n_rounds, 1)
        _check_master(self.C, self.tol, self.max_sweeps)
        check_choice("master", self.master, ["fcd", "lbfgsb"])
        check_choice("engine", self.engine, ["cython", "reference"])
        check_count("n_threads", self.n_threads, 0)
        if self.early_stopping is not None:
            check_count("early_stopping", self.early_stopping, 1)
        learner = self.weak_learner
        if learner != "stump" and not (hasattr(learner, "fit") and hasattr(learner, "predict")):
            raise ValueError(f'weak_learner={learner!r} must be "stump" or have fit and predict')

    def _split(self, X, label, weight, rng):
        """A tenth of each class goes to the validation data; classes of one row stay."""
        order = rng.permutation(len(label))
        held = np.zeros(len(label), dtype=bool)
        for c in range(len(self.classes_)):
            rows = order[label[order] == c]
            held[rows[: min(len(rows) - 1, -(-len(rows) // 10))]] = True
        return X[~held], label[~held], weight[~held], (X[held], self.classes_[label[held]])

    def decision_function(self, X):
        """F_y(x), shape (n_samples, n_classes)."""
        return self._scores(X, self.weights_)

    def predict(self, X):
        """Labels, shape (n_samples,)."""
        return self.classes_[np.argmax(self.decision_function(X), axis=1)]

    def score(self, X, y):
        """Share of right labels."""
        return float(np.mean(self.predict(X) == np.asarray(y)))

    def staged_predict(self, X):
        """Labels after each round, an iterator of arrays."""
        outputs = self._outputs(self._checked(X))
        for weights in self._stages:
            F = np.column_stack([o[:, : len(w)] @ w for o, w in zip(outputs, weights)])
            yield self.classes_[np.argmax(F, axis=1)]

    def staged_score(self, X, y):
        """Share of right labels after each round, an iterator."""
        for labels in self.staged_predict(X):
            yield float(np.mean(labels == np.asarray(y)))

    def feature_counts(self):
        """How many stumps of positive weight use each feature, shape (n_features,)."""
        if self.weak_learner != "stump":
            raise ValueError("feature counts are for stumps")
        used = [learner[0] for learners, w in zip(self.learners_, self.weights_)
                for learner, weight in zip(learners, w) if weight > 0]
        return np.bincount(np.array(used, dtype=np.intp), minlength=self.n_features_in_)

    def _checked(self, X):
        if not hasattr(self, "classes_"):
            raise ValueError("this MultiBoostClassifier is not fitted yet")
        X = check_matrix(X)
        if X.shape[1] != self.n_features_in_:
            raise ValueError(f"X has {X.shape[1]} features, the model was trained on "
                             f"{self.n_features_in_}")
        return X

    def _scores(self, X, weights):
        return np.column_stack([o @ w for o, w in zip(self._outputs(self._checked(X)), weights)])

    def _outputs(self, X):
        """Outputs of the learners of each class, a list of (n_samples, n_learners)."""
        return [_outputs_of(X, learners) for learners in self.learners_]

    def get_params(self, deep=True):
        """The parameters by name."""
        return {name: getattr(self, name) for name in self._names()}

    def set_params(self, **params):
        """Set parameters by name; returns self."""
        for name, value in params.items():
            if name not in self._names():
                raise ValueError(f"unknown parameter {name!r}; valid: {', '.join(self._names())}")
            setattr(self, name, value)
        return self

    @classmethod
    def _names(cls):
        code = MultiBoostClassifier.__init__.__code__
        return code.co_varnames[1 : code.co_argcount]


def _outputs_of(X, learners):
    if not learners:
        return np.zeros((X.shape[0], 0))
    if isinstance(learners[0], tuple):
        return stump_outputs(X, *map(np.array, zip(*learners))).astype(np.float64)
    return np.column_stack([_signs(learner.predict(X)) for learner in learners]).astype(np.float64)


def _signs(labels):
    return np.where(np.asarray(labels) > 0, 1, -1).astype(np.int8)


class _Boosting:
    """One run of column generation."""

    def __init__(self, options, X, label, weight, rng, validation):
        self.options, self.X, self.label, self.rng = options, X, label, rng
        self.validation = validation
        self.n_classes = len(options.classes_)
        self.master = Master(label, self.n_classes, options.C, weight, options.engine)
        self.stumps = Stumps(X, options.engine) if options.weak_learner == "stump" else None
        self.learners = [[] for _ in range(self.n_classes)]
        # Where a class has each of its stumps.
        self.held = [{} for _ in range(self.n_classes)]
        self.stages, self.errors = [], []
        self.tol, self.solver_time, self.converged = options.tol, 0.0, False
        self.best_edge = np.inf

    def until_done(self):
        from fastmc._train import Progress
        progress, began = Progress(self.options.verbose, self.options.n_rounds), time.perf_counter()
        while len(self.stages) < self.options.n_rounds and not self.stalled():
            found = self.search()
            self.best_edge = max((edge for _, edge, _ in found.values()), default=0.0)
            if self.best_edge <= 1.0 + self.options.tol:
                self.converged = True
                break
            useful = {c: f for c, f in found.items() if f[1] > 1.0 + self.options.tol}
            all_old = all(f[0] in self.held[c] for c, f in useful.items())
            if all_old and not self.options.stage_wise:
                if not self.tighten():
                    break
                continue
            self.one_round(useful)
            progress.show(f"edge {self.best_edge:.3g}", time.perf_counter() - began)
        progress.close()

    def search(self):
        """{class: (learner, edge, outputs)} with the best learner of each class, edges times C/p."""
        U = self.master.gradient()
        found = {}
        if self.stumps is not None:
            for c, stump in enumerate(zip(*self.stumps.best(U, self.options.n_threads))):
                feature, threshold, polarity, edge = (v.item() for v in stump)
                if feature >= 0:
                    learner = (feature, threshold, polarity)
                    found[c] = learner, self.master.scale * edge, None
        else:
            for c in range(self.n_classes):
                learner = copy.deepcopy(self.options.weak_learner)
                target = np.where(self.label == c, 1, -1)
                learner.fit(self.X, target, sample_weight=np.abs(U[:, c]))
                outputs = _signs(learner.predict(self.X))
                found[c] = learner, self.master.scale * float(U[:, c] @ outputs), outputs
        if not self.options.class_wise and found:
            best = found[max(found, key=lambda c: found[c][1])]
            return {c: best for c in range(self.n_classes)}
        return found

    def one_round(self, found):
        """Add what is new, set its weights and correct the others; old learners are not added again."""
        coordinates = []
        for c, (learner, _, outputs) in found.items():
            if learner not in self.held[c]:
                if outputs is None:
                    outputs = stump_outputs(self.X, *([v] for v in learner))[:, 0]
                self.held[c][learner] = self.master.add(c, outputs)
                self.learners[c].append(learner)
            coordinates.append(self.held[c][learner])
        self.solve(np.array(coordinates, dtype=np.intp))
        self.stages.append([w[:count].copy() for w, count in zip(self.master.w, self.master.count)])
        if self.validation is not None:
            self.errors.append(self.validation_error())

    def solve(self, new):
        began = time.perf_counter()
        if self.options.master == "lbfgsb":
            self.master.solve_lbfgsb(self.tol)
        else:
            coordinates = np.ascontiguousarray(new[:, 0]), np.ascontiguousarray(new[:, 1])
            sweeps = 1 if self.options.stage_wise else self.options.max_sweeps
            self.master.solve(self.tol, sweeps, self.rng, coordinates)
        self.solver_time += time.perf_counter() - began

    def tighten(self):
        """The best learners are all old: their weights are not exact enough. False to give up."""
        if self.tol <= TIGHTEST:
            return False
        self.tol *= TIGHTEN
        began = time.perf_counter()
        if self.options.master == "lbfgsb":
            self.master.solve_lbfgsb(self.tol)
        else:
            self.master.solve(self.tol, 100 * self.options.max_sweeps, self.rng)
        self.solver_time += time.perf_counter() - began
        self.stages[-1] = [w[:n].copy() for w, n in zip(self.master.w, self.master.count)]
        return True

    def validation_error(self):
        X, y = self.validation
        weights = self.stages[-1]
        F = np.column_stack([_outputs_of(X, part) @ w for part, w in zip(self.learners, weights)])
        return float(np.mean(self.options.classes_[np.argmax(F, axis=1)] != np.asarray(y)))

    def stalled(self):
        patience = self.options.early_stopping
        if patience is None or len(self.errors) <= patience:
            return False
        return min(self.errors[-patience:]) >= min(self.errors[:-patience])

    def finish(self):
        """Write the fitted attributes."""
        fitted = self.options
        if fitted.early_stopping is not None and self.errors:
            keep = int(np.argmin(self.errors)) + 1
            self.stages = self.stages[:keep]
        weights = self.stages[-1] if self.stages else [np.zeros(0)] * self.n_classes
        fitted.learners_ = [part[: len(w)] for part, w in zip(self.learners, weights)]
        fitted.weights_, fitted._stages = weights, self.stages
        fitted.n_rounds_, fitted.solver_time_ = len(self.stages), self.solver_time
        fitted.converged_ = self.converged
        self.restore(weights)
        fitted.objective_ = self.master.objective()
        fitted.lower_bound_ = self.master.lower_bound(self.master.largest_edge())
        fitted.global_lower_bound_ = -np.inf
        if self.stumps is not None:
            edges = [f[1] for f in self.search().values()]
            fitted.global_lower_bound_ = self.master.lower_bound(max(edges, default=0.0))

    def restore(self, weights):
        """Give the master the weights of the model that is kept."""
        self.master.count[:] = [len(w) for w in weights]
        self.master.w[:] = 0.0
        for c, w in enumerate(weights):
            self.master.w[c, : len(w)] = w
        self.master.refresh()
