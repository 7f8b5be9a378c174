"""A trained classifier: scores, labels, and the file formats it is kept in."""
import numbers
import os
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fastmc import _model_npz, _model_text, _predict, _samples
from fastmc._certificate import Certificate
from fastmc._history import History
from fastmc._model_text import ModelError
from fastmc._options import check_count
from fastmc._problem import check_width, kernel_rows, label_array
from fastmc._threads import over_blocks
from fastmc._types import Array, FilePath, Matrix
from fastmc.losses import LossSpec

__all__ = ["Model", "ModelError", "load_model"]


class Ranker:
    """Labels from the scores of classes, a block of rows after the other.

    Subclasses have `classes_`, `_checked(X)`, and `_score(X, rows, out)`, which writes the scores of
    a slice of the rows of what `_checked` gives.
    """

    classes_: Array
    _checked: Callable[[Matrix], Any]
    _score: Callable[[Any, slice, Array], None]
    _block = 8192  # rows at a time

    def decision_function(self, X: Matrix, n_threads: int = 1) -> Array:
        """Scores of every class.

        Parameters
        ----------
        X : sparse matrix or array, or array-like, shape (n_samples, n_features)
        n_threads : int
            0 for all cores. The result does not depend on it.

        Returns
        -------
        numpy.ndarray, shape (n_samples, n_classes), float64
            Two columns for two classes as well.

        Raises
        ------
        ValueError
            If X is no finite matrix of numbers, or has another number of columns than the
            training data; for n_threads below 0.
        """
        checked = self._checked(X)
        scores = np.empty((checked.shape[0], len(self.classes_)))
        check_count("n_threads", n_threads, 0)
        over_blocks(lambda rows: self._score(checked, rows, scores[rows]), len(scores), self._block, n_threads)
        return scores

    def _best(self, X, k, n_threads):
        """Positions of the k best classes, best first, shape (n_samples, k)."""
        X = self._checked(X)
        best = np.empty((X.shape[0], check_k(k, len(self.classes_))), dtype=np.int64)

        def work(rows):
            scores = np.empty((rows.stop - rows.start, len(self.classes_)))
            self._score(X, rows, scores)
            best[rows] = top_ranks(scores, best.shape[1])

        check_count("n_threads", n_threads, 0)
        over_blocks(work, len(best), self._block, n_threads)
        return best

    def predict(self, X: Matrix, n_threads: int = 1) -> Array:
        """The label of the largest score; of equal scores the class that sorts first.

        Parameters
        ----------
        X : sparse matrix or array, or array-like, shape (n_samples, n_features)
        n_threads : int
            As in `decision_function`.

        Returns
        -------
        numpy.ndarray, shape (n_samples,)
            Labels out of `classes_`.

        Raises
        ------
        ValueError
            As `decision_function`.
        """
        best = self._best(X, 1, n_threads)
        return self.classes_[best[:, 0]]

    def predict_topk(self, X: Matrix, k: int, n_threads: int = 1) -> Array:
        """The labels of the k largest scores, best first.

        Parameters
        ----------
        X : sparse matrix or array, or array-like, shape (n_samples, n_features)
        k : int
            1 <= k <= n_classes.
        n_threads : int
            As in `decision_function`.

        Returns
        -------
        numpy.ndarray, shape (n_samples, k)
            Labels out of `classes_`. Of equal scores, the class that sorts first comes first.

        Raises
        ------
        ValueError
            For a k out of range, and as `decision_function`.

        Examples
        --------
        >>> import numpy as np
        >>> import fastmc
        >>> model = fastmc.train(np.eye(3), ["a", "b", "c"])
        >>> model.predict_topk([[1.0, 0.0, 0.5]], k=2).tolist()
        [['a', 'c']]
        """
        best = self._best(X, k, n_threads)
        return self.classes_[best]

    def score(self, X: Matrix, y: ArrayLike, n_threads: int = 1) -> float:
        """Accuracy: the fraction of samples whose label is predicted.

        Parameters
        ----------
        X : sparse matrix or array, or array-like, shape (n_samples, n_features)
        y : array-like, shape (n_samples,)
            Labels; those that training has not seen count as errors.
        n_threads : int
            As in `decision_function`.

        Returns
        -------
        float

        Raises
        ------
        ValueError
            If X and y do not fit each other or are empty, and as `decision_function`.
        """
        return float(np.mean(self.predict(X, n_threads) == check_labels(X, y)))

    def topk_error(self, X: Matrix, y: ArrayLike, k: int, n_threads: int = 1) -> float:
        """The fraction of samples whose label is not among the k best.

        Parameters
        ----------
        X : sparse matrix or array, or array-like, shape (n_samples, n_features)
        y : array-like, shape (n_samples,)
            Labels; those that training has not seen count as errors.
        k : int
            1 <= k <= n_classes.
        n_threads : int
            As in `decision_function`.

        Returns
        -------
        float

        Raises
        ------
        ValueError
            For a k out of range, if X and y do not fit each other or are empty, and as
            `decision_function`.
        """
        hits = self.predict_topk(X, k, n_threads) == check_labels(X, y)[:, None]
        return float(np.mean(~hits.any(axis=1)))

    def plot(self, X, y, path=None):
        """Top-k error against k, and which classes are taken for which (needs matplotlib).

        Parameters
        ----------
        X : sparse matrix or array, or array-like, shape (n_samples, n_features)
        y : array-like, shape (n_samples,)
            Labels; those that training has not seen count as errors.
        path : str or None
            Write a picture there, in the format of its extension; None returns the figure alone.

        Returns
        -------
        matplotlib.figure.Figure

        Raises
        ------
        ValueError
            If X and y do not fit each other or are empty, and as `decision_function`.
        """
        from fastmc._plot import plot_predictions
        own = positions(check_labels(X, y), self.classes_)
        scores = self.decision_function(X)
        return plot_predictions(own, np.argmax(scores, axis=1), own_ranks(scores, own),
                                self.classes_, path)


class Model(Ranker):
    """A linear multi-class classifier; `fastmc.train` and `fastmc.load_model` make them.

    Parameters
    ----------
    weights : array-like, shape (n_features + (bias != 0), n_classes)
        W; its last row belongs to the constant feature if there is one.
    classes : array-like, shape (n_classes,)
        The labels, sorted.
    spec : LossSpec or None
        The loss; None if unknown, as for models read from text.
    bias : float
        Value of the constant feature, 0 for none.
    C, lam, smoothing, n_samples, solver
        What it was trained with, None where unknown.
    certificate, status, n_passes, history
        How the training went, None where unknown.
    dual : sparse array or None, shape (n_samples, n_classes)
        The dual that training can go on from; or a function that gives it, called when it is asked for.
    sample_weight : array or None, shape (n_samples,)
        The weights of the samples, class weights included, that `dual` belongs to.

    Attributes
    ----------
    coef_ : numpy.ndarray, shape (n_classes, n_features)
        A view of the weights; row c scores class classes_[c].
    intercept_ : numpy.ndarray, shape (n_classes,)
        What the constant feature adds to the scores; zeros without it.
    classes_ : numpy.ndarray, shape (n_classes,)
        The labels, sorted.
    n_features_in_ : int
        Number of features, the constant one left out.
    loss : str or None
        Name of the loss.
    certificate : Certificate or None
        Primal, dual and gap of the weights.
    status : str or None
        "converged", "max_passes", "time_limit" or "stopped".
    n_passes : int or None
        Passes over the data.
    history : History or None
        One row per certificate of the training.
    dual_ : sparse array or None, shape (n_samples, n_classes)
    weights, spec, bias, C, lam, smoothing, n_samples, solver, sample_weight
        As given.

    Raises
    ------
    ValueError
        If `weights` is not a matrix with a column for every class and finite.
    """

    # "| Any" where only models read from text have None: nobody has to check for it.
    certificate: Certificate | Any
    history: History | Any
    _block = 512  # their scores stay in the cache

    def __init__(self, weights: ArrayLike, classes: ArrayLike, *, spec: LossSpec | None = None,
                 bias: float = 0.0, C: float | None = None, lam: float | None = None,
                 smoothing: float | None = 0.0, n_samples: int | None = None,
                 solver: str | None = None, certificate: Certificate | None = None,
                 status: str | None = None, n_passes: int | None = None,
                 history: History | None = None, dual: Any = None,
                 sample_weight: Array | None = None) -> None:
        self.weights = np.ascontiguousarray(weights, dtype=np.float64)
        self.classes_ = np.asarray(classes)
        self.bias = float(bias)
        _check_weights(self.weights, self.classes_, self.bias)
        self.spec, self.C, self.lam, self.smoothing = spec, C, lam, smoothing
        self.n_samples, self.solver = n_samples, solver
        self.certificate, self.status, self.n_passes = certificate, status, n_passes
        self.history, self._dual, self.sample_weight = history, dual, sample_weight

    def __getstate__(self):
        return self.__dict__ | {"_dual": self.dual_}

    def __repr__(self):
        return (f"Model(loss={self.loss!r}, {len(self.classes_)} classes, "
                f"{self.n_features_in_} features, bias={self.bias:g}, status={self.status!r})")

    @property
    def n_features_in_(self) -> int:
        return len(self.weights) - (self.bias != 0.0)

    @property
    def coef_(self) -> Array:
        return self.weights[: self.n_features_in_].T

    @property
    def intercept_(self) -> Array:
        if self.bias == 0.0:
            return np.zeros(len(self.classes_))
        return self.bias * self.weights[-1]

    @property
    def dual_(self) -> Any:
        if callable(self._dual):
            self._dual = self._dual()
        return self._dual

    @property
    def loss(self) -> str | None:
        return None if self.spec is None else self.spec.name

    def _checked(self, X):
        return check_width(X, self.n_features_in_)

    def _score(self, X, rows, out):
        # The kernel's rows come with labels, weights and norms, which scores do not need.
        label, zeros = np.zeros(len(out), dtype=np.int64), np.zeros(len(out))
        samples = _samples.Samples(*kernel_rows(X, rows.start, rows.stop), len(self.classes_), label,
                                   zeros, zeros, X.shape[1], bias=self.bias)
        _predict.scores(samples, self.weights, 0, out)

    def save(self, path: FilePath) -> None:
        """Write the model to a file, which appears whole or not at all.

        A name that ends in .npz gets everything: weights, labels of any kind, loss, parameters,
        certificate, history and dual. Any other name gets LIBLINEAR's text format: weights,
        labels and bias. LIBLINEAR's own predict reads that and agrees. With two classes it looks
        at the first column alone, so it agrees where the two columns are opposite, as those of
        trained models are, and gives a score of exactly zero to the second class, not the first.

        Parameters
        ----------
        path : str or os.PathLike

        Raises
        ------
        ValueError
            If the labels cannot be kept: text takes whole numbers of 32 bits; .npz takes
            numbers, booleans and strings.
        OSError
            If the file cannot be written.
        """
        (_model_npz if is_native(path) else _model_text).save(self, path)


def load_model(path: FilePath) -> Model | Any:
    """Read a model that `Model.save` has written, or a LIBLINEAR model of MCSVM_CS type.

    Parameters
    ----------
    path : str or os.PathLike
        A name that ends in .npz is taken as the native format, any other as text.

    Returns
    -------
    Model or fastmc.boosting.MultiBoostClassifier
        Equal to the saved one, the weights bit for bit. Text holds no loss, certificate or dual.

    Raises
    ------
    ModelError
        A ValueError that names the file and what is wrong where. Nothing is ever unpickled.
    OSError
        If the file cannot be read.
    """
    if not is_native(path):
        return make_model(Model, _model_text.load(path), path)
    kind, parts = _model_npz.load(path)
    if kind == _model_npz.KIND:
        return make_model(Model, parts, path)
    from fastmc.boosting import from_parts  # which needs this module
    return make_model(from_parts, parts, path)


def make_model(make, parts, path):
    """Call `make`; what it refuses is a fault of the file."""
    try:
        return make(**parts)
    except ValueError as error:
        raise ModelError(f"{os.fsdecode(path)}: {error}") from None


def is_native(path):
    """Whether the name asks for the native format."""
    return os.fsdecode(path).endswith(".npz")


def top_ranks(scores, k):
    """Columns of the k largest scores of each row, best first; of equal scores the first column."""
    best = np.empty((len(scores), k), dtype=np.int64)
    _predict.rank(scores, best)
    return best


def positions(y, classes):
    """Where each label stands among the classes, -1 for labels that are none of them."""
    found = np.full(len(y), -1)
    for at, label in enumerate(classes):
        found[y == label] = at
    return found


def own_ranks(scores, own):
    """How many classes come before the own one; n_classes where `own`, its position, is -1.

    A label is among the k best exactly if fewer than k classes come before it.
    """
    value = np.take_along_axis(scores, np.maximum(own, 0)[:, None], axis=1)
    first = np.arange(scores.shape[1]) < own[:, None]
    ranks = ((scores > value) | ((scores == value) & first)).sum(axis=1)
    ranks[own < 0] = scores.shape[1]
    return ranks


def check_k(k, n_classes):
    """`k` as an int between 1 and n_classes."""
    if not isinstance(k, numbers.Integral) or isinstance(k, bool) or not 1 <= k <= n_classes:
        raise ValueError(f"k={k!r} must be a whole number from 1 to n_classes = {n_classes}")
    return int(k)


def _check_weights(weights, classes, bias):
    if classes.ndim != 1 or weights.ndim != 2 or weights.shape[1] != len(classes):
        raise ValueError(f"weights of shape {weights.shape} do not fit classes of shape "
                         f"{classes.shape}: one column per class is needed")
    if len(classes) == 0 or len(weights) < 1 + (bias != 0.0):
        raise ValueError(f"weights of shape {weights.shape} with bias={bias:g} leave no feature")
    if not (classes[:-1] < classes[1:]).all():
        raise ValueError("classes must be sorted and distinct")
    with np.errstate(over="ignore", invalid="ignore"):
        # The sum is cheaper to ask; it overflows at worst.
        finite = np.isfinite(weights.sum()) or np.isfinite(weights).all()
    if not finite or not np.isfinite(bias):
        raise ValueError("weights and bias must be finite")


def check_labels(X, y):
    """`y` as an array with a label for each row of X, of which there are some."""
    n_samples = X.shape[0] if hasattr(X, "shape") else len(X)
    y = label_array(y, n_samples)
    if n_samples == 0:
        raise ValueError("there are no rows to score")
    return y
