"""MultiBoost: totally-corrective multi-class boosting with a weak learner per class and round.

Column generation (Lin et al., algorithm 1): the weights of all learners so far solve the master
problem; then each class gets the weak learner with the largest edge, and so on until no weak
learner has an edge above one, which proves the model optimal over all of them.
"""
import os
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fastmc import _boosting_npz, _model_npz
from fastmc._column_generation import Boosting, outputs_of
from fastmc._master import Master
from fastmc._model import ModelError, Ranker, check_labels, is_native, make_model, positions
from fastmc._options import check_choice, check_count, check_range, make_generator
from fastmc._problem import check_matrix, check_weights, check_width, encode_labels
from fastmc._types import Array, FilePath, Matrix, RandomState

__all__ = ["MultiBoostClassifier", "load", "solve_weights"]


def solve_weights(H: ArrayLike, y: ArrayLike, C: float, tol: float = 1e-6, max_sweeps: int = 20000,
                  init: ArrayLike | None = None, random_state: RandomState = 0,
                  engine: str = "cython") -> tuple[Array, dict[str, Any]]:
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

    Examples
    --------
    One learner a class, right on all four samples:

    >>> import numpy as np
    >>> from fastmc.boosting import solve_weights
    >>> H = np.array([[[1, 1, -1, -1]], [[-1, -1, 1, 1]]], dtype=np.int8)
    >>> w, info = solve_weights(H, [0, 0, 1, 1], C=10)
    >>> w.sum(axis=1).round(4).tolist() == [2.3026, 0.0]     # log C, and what it makes idle
    True
    >>> info["objective"] - info["lower_bound"] < 1e-6
    True
    """
    _check_master(C, tol, max_sweeps)
    check_choice("engine", engine, ["cython", "reference"])
    H = np.asarray(H)
    if H.ndim != 3 or H.shape[2] == 0 or not np.isin(H, (-1, 1)).all():
        raise ValueError(f"H of shape {H.shape} must be (n_classes, n_learners, n_samples) with "
                         "entries -1 and +1")
    classes, label = encode_labels(y, H.shape[2])
    if len(classes) != H.shape[0]:
        raise ValueError(f"H is for {H.shape[0]} classes, y has {len(classes)}")
    master = Master(label, len(classes), C, np.ones(H.shape[2]), engine)
    for c in range(H.shape[0]):
        for outputs in H[c]:
            master.add(c, master.pack(c, outputs))
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
    with np.errstate(over="ignore", invalid="ignore"):
        master.refresh()
        if not np.isfinite(master.objective()):
            raise ValueError("the objective overflows at init")


def _check_master(C, tol, max_sweeps):
    check_range("C", C, 0.0, 1e15)
    check_range("tol", tol, 0.0)
    check_count("max_sweeps", max_sweeps, 1)


class MultiBoostClassifier(Ranker):
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
        Rounds run; with early stopping those that the model keeps.
    n_features_in_ : int
    learners_ : list of lists
        For each class its learners in order: (feature, threshold, polarity) for stumps. None is
        there twice, so a class can have fewer than `n_rounds_`.
    weights_ : list of ndarray
        Their weights, many of them zero.
    solver_time_ : float
        Seconds spent on the master problem.
    objective_, lower_bound_ : float
        Objective of the model, and a bound below the optimum over the columns of the model.
    global_lower_bound_ : float
        The same over all stumps; -inf for other weak learners, whose best edge is unknown.
    converged_ : bool
        Whether at the end no weak learner had an edge above 1 + tol and no weight violated its
        condition by more than tol.

    Examples
    --------
    >>> from fastmc.boosting import MultiBoostClassifier
    >>> X = [[1.0, 0.0], [0.9, 0.3], [0.0, 1.0], [0.1, 0.8], [-1.0, -1.0], [-0.7, -0.9]]
    >>> y = ["east", "east", "north", "north", "south", "south"]
    >>> model = MultiBoostClassifier(n_rounds=5, C=100).fit(X, y)
    >>> model.score(X, y), model.converged_
    (1.0, True)
    >>> model.learners_[0]                       # of "east": feature, threshold, polarity
    [(0, 0.5, 1)]
    """

    n_rounds_: int
    n_features_in_: int
    learners_: list[list[Any]]
    weights_: list[Array]
    solver_time_: float
    objective_: float
    lower_bound_: float
    global_lower_bound_: float
    converged_: bool

    def __init__(self, n_rounds: int = 200, C: float = 1e4, weak_learner: Any = "stump",
                 class_wise: bool = True, stage_wise: bool = False, max_sweeps: int = 5,
                 tol: float = 0.01, master: str = "fcd", early_stopping: int | None = None,
                 n_threads: int = 1, random_state: RandomState = 0, verbose: int = 0,
                 engine: str = "cython") -> None:
        self.n_rounds, self.C, self.weak_learner = n_rounds, C, weak_learner
        self.class_wise, self.stage_wise = class_wise, stage_wise
        self.max_sweeps, self.tol, self.master = max_sweeps, tol, master
        self.early_stopping, self.n_threads = early_stopping, n_threads
        self.random_state, self.verbose, self.engine = random_state, verbose, engine

    def fit(self, X: Matrix, y: ArrayLike, sample_weight: ArrayLike | None = None,
            validation: tuple[Matrix, ArrayLike] | None = None) -> "MultiBoostClassifier":
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
        self.check_params()
        rng = make_generator(self.random_state)
        X = check_matrix(X)
        n_features = X.shape[1]
        if 0 in X.shape:
            raise ValueError(f"X is empty: shape {X.shape}")
        classes, label = encode_labels(y, X.shape[0])
        weight = check_weights(sample_weight, X.shape[0])
        used = weight > 0
        if not used.any():
            raise ValueError("all samples have weight zero")
        if not used.all():
            X, label, weight = X[used], label[used], weight[used]
        if validation is not None:
            validation = self._check_validation(validation, n_features, classes)
        elif self.early_stopping is not None:
            X, label, weight, validation = _split(X, label, weight, rng)
        run = Boosting(self, X, label, len(classes), weight, rng, validation)
        run.until_done()
        if run.errors and validation is not None:
            run.keep_best()
        self._take(run, classes)
        return self

    def _take(self, run, classes):
        """The results of a run as attributes."""
        self.classes_, self.n_features_in_ = classes, run.X.shape[1]
        self.learners_, self._stages = run.learners, run.stages
        self.n_rounds_ = len(run.stages)
        self.weights_ = run.stages[-1] if run.stages else [np.zeros(0) for _ in classes]
        self.converged_, self.solver_time_ = run.converged, run.solver_time
        self.objective_, self.lower_bound_, self.global_lower_bound_ = run.bounds()

    def check_params(self):
        """ValueError, naming the parameter, if one has a value that it cannot have."""
        check_count("n_rounds", self.n_rounds, 1)
        _check_master(self.C, self.tol, self.max_sweeps)
        check_choice("master", self.master, ["fcd", "lbfgsb"])
        check_choice("engine", self.engine, ["cython", "reference"])
        check_count("n_threads", self.n_threads, 0)
        if self.early_stopping is not None:
            check_count("early_stopping", self.early_stopping, 1)
        if self.stage_wise and self.master != "fcd":
            raise ValueError(f'stage_wise is for master="fcd", not {self.master!r}')
        learner = self.weak_learner
        if learner != "stump" and not (hasattr(learner, "fit") and hasattr(learner, "predict")):
            raise ValueError(f'weak_learner={learner!r} must be "stump" or have fit and predict')

    def _check_validation(self, validation, n_features, classes):
        """(X, label) of validation data; a label that training has not seen becomes -1."""
        if self.early_stopping is None:
            raise ValueError("validation is for early_stopping, which is None")
        X, y = validation
        X = check_matrix(X, "validation X")
        if X.shape[1] != n_features:
            raise ValueError(f"validation X has {X.shape[1]} features, X has {n_features}")
        return X, positions(check_labels(X, y), classes)

    def _score(self, X, rows, out):
        for c, (learners, w) in enumerate(zip(self.learners_, self.weights_)):
            out[:, c] = outputs_of(X[rows], learners) @ w

    def staged_predict(self, X: Matrix) -> Iterator[Array]:
        """Labels after each round, an iterator of arrays."""
        X = self._checked(X)
        if self._stages is None:
            raise ValueError("a model file keeps the last round only")
        return self._staged(X)

    def _staged(self, X):
        outputs = [outputs_of(X, learners) for learners in self.learners_]
        for weights in self._stages:
            F = np.column_stack([o[:, : len(w)] @ w for o, w in zip(outputs, weights)])
            yield self.classes_[np.argmax(F, axis=1)]

    def staged_score(self, X: Matrix, y: ArrayLike) -> Iterator[float]:
        """Share of right labels after each round, an iterator."""
        y = check_labels(X, y)
        return (float(np.mean(labels == y)) for labels in self.staged_predict(X))

    def feature_counts(self) -> Array:
        """How many stumps of positive weight use each feature, shape (n_features,)."""
        self._check_fitted()
        if not self._all_stumps():
            raise ValueError("feature counts are for stumps")
        used = [learner[0] for learners, w in zip(self.learners_, self.weights_)
                for learner, weight in zip(learners, w) if weight > 0]
        return np.bincount(np.array(used, dtype=np.intp), minlength=self.n_features_in_)

    def save(self, path: FilePath) -> None:
        """Write the model to a file of NumPy's .npz format, which appears whole or not at all.

        Parameters
        ----------
        path : str or os.PathLike
            A name that ends in .npz.

        Raises
        ------
        ValueError
            If a weak learner is no stump, the labels are no numbers, booleans or strings, or the
            name does not end in .npz.
        OSError
            If the file cannot be written.
        """
        self._check_fitted()
        if not is_native(path):
            raise ValueError(f"path={os.fsdecode(path)!r}: the name of a boosting model must end in .npz")
        if not self._all_stumps():
            raise ValueError("a model file keeps stumps only, not other weak learners")
        _boosting_npz.save(self, path)

    def _all_stumps(self):
        return all(isinstance(learner, tuple) for part in self.learners_ for learner in part)

    def _check_fitted(self):
        if not hasattr(self, "classes_"):
            raise ValueError("this MultiBoostClassifier is not fitted yet")

    def _checked(self, X):
        self._check_fitted()
        return check_width(X, self.n_features_in_)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name."""
        return {name: getattr(self, name) for name in self._names()}

    def set_params(self, **params: Any) -> "MultiBoostClassifier":
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


def _split(X, label, weight, rng):
    """A tenth of each class goes to the validation data; classes of one row stay."""
    order = rng.permutation(len(label))
    held = np.zeros(len(label), dtype=bool)
    for c in range(label.max() + 1):
        rows = order[label[order] == c]
        held[rows[: min(len(rows) - 1, -(-len(rows) // 10))]] = True
    if not held.any():
        raise ValueError("no class has two rows: give validation data")
    return X[~held], label[~held], weight[~held], (X[held], label[held])


def load(path: FilePath) -> MultiBoostClassifier:
    """Read a model that `MultiBoostClassifier.save` has written.

    Parameters
    ----------
    path : str or os.PathLike

    Returns
    -------
    fastmc.boosting.MultiBoostClassifier
        Equal to the saved one but for the weights of earlier rounds, which a file does not hold.

    Raises
    ------
    ModelError
        A ValueError that names the file and what is wrong. Nothing is ever unpickled.
    OSError
        If the file cannot be read.
    """
    kind, parts = _model_npz.load(path)
    if kind != _boosting_npz.KIND:
        raise ModelError(f"{os.fsdecode(path)}: a linear model, not one of MultiBoost")
    return make_model(from_parts, parts, path)


def from_parts(parameters, attributes):
    """The model of the parts of a file."""
    unknown = set(parameters) - set(MultiBoostClassifier._names())
    if unknown:
        raise ValueError(f"unknown parameter {min(unknown)!r}")
    model = MultiBoostClassifier(**parameters)
    model.check_params()
    vars(model).update(attributes, _stages=None)
    return model
