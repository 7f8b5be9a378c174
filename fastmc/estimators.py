"""scikit-learn's estimators over `fastmc.train`, `fastmc.path` and `fastmc.boosting`."""
import contextlib
import numbers
import warnings

import numpy as np

try:
    from sklearn.base import BaseEstimator, ClassifierMixin
except ImportError:
    raise ImportError("fastmc.estimators needs scikit-learn: pip install 'fastmc[sklearn]'") from None
from joblib import effective_n_jobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted

from fastmc import boosting
from fastmc._folds import fold_options
from fastmc._model import Model, check_labels
from fastmc._options import C_RANGE, check_count, check_range
from fastmc._path import path
from fastmc._problem import check_numbers, check_weights, encode_labels
from fastmc._train import ConvergenceWarning as BudgetWarning
from fastmc._train import train

try:
    from sklearn.utils.validation import validate_data
except ImportError:  # scikit-learn below 1.6, where it is a method
    def validate_data(estimator, *data, **options):
        return estimator._validate_data(*data, **options)

__all__ = ["MultiBoostClassifier", "MulticlassSVC", "MulticlassSVCCV"]

# What train() takes without a copy.
MATRIX = {"accept_sparse": "csr", "dtype": (np.float64, np.float32)}


class RankingClassifier(ClassifierMixin, BaseEstimator):
    """Predictions of an estimator whose `fit` leaves a fastmc model in `model_`."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def decision_function(self, X):
        """Scores of the classes.

        Parameters
        ----------
        X : sparse matrix or array, or array-like, shape (n_samples, n_features)

        Returns
        -------
        numpy.ndarray, shape (n_samples, n_classes), or (n_samples,) for two classes
            With two classes the score of the second less that of the first, as scikit-learn has it.
        """
        scores = self._model().decision_function(self._checked(X), **self._threads())
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X):
        """The label of the largest score; of equal scores the class that sorts first.

        Parameters
        ----------
        X : sparse matrix or array, or array-like, shape (n_samples, n_features)

        Returns
        -------
        numpy.ndarray, shape (n_samples,)
        """
        return self._model().predict(self._checked(X), **self._threads())

    def predict_topk(self, X, k):
        """The labels of the k largest scores, best first.

        Parameters
        ----------
        X : sparse matrix or array, or array-like, shape (n_samples, n_features)
        k : int
            1 <= k <= n_classes.

        Returns
        -------
        numpy.ndarray, shape (n_samples, k)

        Raises
        ------
        ValueError
            For a k out of range.
        """
        return self._model().predict_topk(self._checked(X), k, **self._threads())

    def topk_score(self, X, y, k, sample_weight=None):
        """The fraction of samples whose label is among the k best.

        Parameters
        ----------
        X : sparse matrix or array, or array-like, shape (n_samples, n_features)
        y : array-like, shape (n_samples,)
            Labels; those that training has not seen count as errors.
        k : int
            1 <= k <= n_classes.
        sample_weight : array-like or None, shape (n_samples,)

        Returns
        -------
        float

        Raises
        ------
        ValueError
            For a k out of range, or if X, y and sample_weight do not fit each other.
        """
        hits = self.predict_topk(X, k) == check_labels(X, y)[:, None]
        return float(np.average(hits.any(axis=1), weights=check_weights(sample_weight, len(hits))))

    def _model(self):
        check_is_fitted(self)
        return self.model_

    def _threads(self):
        """Options of a prediction."""
        return {"n_threads": effective_n_jobs(self.n_jobs)} if isinstance(self.model_, Model) else {}

    def _checked(self, X):
        return validate_data(self, X, reset=False, **MATRIX)

    def _checked_training(self, X, y):
        X, y = validate_data(self, X, y, **MATRIX)
        # First, for its clearer errors about labels that cannot be sorted.
        encode_labels(y, len(y))
        check_classification_targets(y)
        return X, y


class MulticlassSVC(RankingClassifier):
    """Linear multi-class support vector classifier with a duality-gap certificate.

    `fastmc.train` as scikit-learn's estimator; `help(fastmc.train)` has the details and the source of
    the losses. With loss="maxhinge" it minimises what LinearSVC(multi_class="crammer_singer") does.

    Parameters
    ----------
    C : float
        Weight of the losses against the regularizer: lambda = 1/(C n_samples).
    loss : str
        "maxhinge" (alias "crammer_singer"), "structured", "topk", "usunier", "wtopk", "wusunier".
    k : int
        For topk and usunier: number of ranks, 1 <= k <= n_classes - 1.
    rho : array-like or None
        For wtopk and wusunier: rank weights.
    cost : array-like or None, shape (n_classes, n_classes)
        Row = own class, column = predicted class, both in the order of `classes_`, which is sorted.
        None: 1 for every wrong class. Needed by "structured", allowed by all.
    own_class : bool
        Top-k type: whether the own class counts among the k.
    smoothing : float
        Moreau parameter, 0 for the loss itself.
    solver : str
        As in `fastmc.train`.
    tol : float
        Stop when the duality gap is at most tol times the primal objective.
    max_iter : int
        Budget in passes over the data.
    fit_intercept : bool
        Append a constant feature of value intercept_scaling, regularised like any other.
    intercept_scaling : float
        Value of that feature, as in LinearSVC.
    class_weight : None, "balanced" or dict
    warm_start : bool
        Go on from the model of the last fit, which must have had the same samples, classes and loss;
        C, tol, smoothing and cost may differ.
    n_jobs : int or None
        Threads of training and prediction, as `n_threads` of `fastmc.train`.
    random_state : int, numpy.random.Generator, numpy.random.RandomState or None
    verbose : int

    Attributes
    ----------
    coef_ : numpy.ndarray, shape (n_classes, n_features)
        Row c scores class classes_[c], also with two classes.
    intercept_ : numpy.ndarray, shape (n_classes,)
    classes_ : numpy.ndarray, shape (n_classes,)
        Sorted labels.
    n_iter_ : int
        Passes made.
    n_features_in_ : int
    feature_names_in_ : numpy.ndarray, shape (n_features,)
        Where X has names of features.
    duality_gap_ : float
        `objective_` is at most that far above the optimum.
    objective_ : float
        Primal objective, in the scaling of `fastmc.train`.
    model_ : fastmc.Model
        With the certificate, the history and `save`.
    """

    def __init__(self, C=1.0, loss="maxhinge", *, k=1, rho=None, cost=None, own_class=True,
                 smoothing=0.0, solver="auto", tol=1e-3, max_iter=1000, fit_intercept=True,
                 intercept_scaling=1.0, class_weight=None, warm_start=False, n_jobs=None,
                 random_state=0, verbose=0):
        self.C, self.loss, self.k, self.rho, self.cost = C, loss, k, rho, cost
        self.own_class, self.smoothing, self.solver = own_class, smoothing, solver
        self.tol, self.max_iter = tol, max_iter
        self.fit_intercept, self.intercept_scaling = fit_intercept, intercept_scaling
        self.class_weight, self.warm_start, self.n_jobs = class_weight, warm_start, n_jobs
        self.random_state, self.verbose = random_state, verbose

    # Not attributes of their own: a pickle would hold the weights twice.
    @property
    def coef_(self):
        return self.model_.coef_

    @property
    def intercept_(self):
        return self.model_.intercept_

    def fit(self, X, y, sample_weight=None):
        """Train.

        Parameters
        ----------
        X : sparse matrix or array, or array-like, shape (n_samples, n_features)
        y : array-like, shape (n_samples,)
            Labels of any sortable kind.
        sample_weight : array-like or None, shape (n_samples,)
            Non-negative. Weight w equals w copies, weight 0 equals removal but that the class stays.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            Naming the argument and its value.

        Warns
        -----
        sklearn.exceptions.ConvergenceWarning
            If max_iter ended training before the gap reached tol.
        """
        init = getattr(self, "model_", None) if self.warm_start else None
        X, y = self._checked_training(X, y)
        return self._train(X, y, sample_weight, self.C, init)

    def _train(self, X, y, sample_weight, C, init=None):
        try:
            with without_budget_warnings():
                model = train(X, y, C=C, tol=self.tol, sample_weight=sample_weight, init=init,
                              n_threads=effective_n_jobs(self.n_jobs),
                              **self._options(y))
        except ValueError as error:
            if init is None or not str(error).startswith("init"):
                raise
            raise ValueError(f"warm_start=True: the last fit is no start for this one: {error}") from None
        if model.status == "max_passes" and self.tol > 0:
            warnings.warn(f"training stopped after max_iter={self.max_iter} passes at a relative duality "
                          f"gap of {model.certificate.relative_gap:.3g}, above tol={self.tol:g}; raise "
                          f"max_iter, raise tol, lower C={model.C:g}, or scale the features",
                          ConvergenceWarning, stacklevel=3)
        return self._take(model)

    def _options(self, y):
        """The arguments that train() and path() share."""
        check_count("max_iter", self.max_iter, 1)
        check_range("intercept_scaling", self.intercept_scaling, 0.0)
        cost, n_classes = self.cost, len(np.unique(y))
        if cost is not None:
            cost = check_numbers(cost, "cost")
            if cost.shape != (n_classes, n_classes):
                raise ValueError(f"cost has shape {cost.shape}, expected ({n_classes}, {n_classes})")
        same = ("loss", "k", "rho", "own_class", "smoothing", "solver", "class_weight", "verbose")
        return {**{name: getattr(self, name) for name in same}, "cost": cost, "max_passes": self.max_iter,
                "bias": self.intercept_scaling if self.fit_intercept else None,
                "random_state": seed_of(self.random_state)}

    def _take(self, model):
        self.model_, self.classes_, self.n_iter_ = model, model.classes_, model.n_passes
        self.n_features_in_ = model.n_features_in_
        self.objective_, self.duality_gap_ = model.certificate.primal, model.certificate.gap
        return self


class MulticlassSVCCV(MulticlassSVC):
    """MulticlassSVC with C chosen by cross-validation along the regularization path.

    In each fold one certified path (`fastmc.path`) gives the models of all C, instead of a training
    for each. The C of the best mean score, the smallest of equal ones, then trains on all data.

    Parameters
    ----------
    Cs : int or array-like
        The values of C to choose from; an int is that many between 1e-3 and 1e2 in geometric steps.
    loss, k, rho, cost, own_class, smoothing
        As in `MulticlassSVC`.
    eps : float
        Bound of the relative duality gap along the paths; the final training goes to tol. Where C is so
        small that W = 0 is within eps, the scores say little.
    cv : int, splitter, iterable of (train, test) or None
        The folds; an int is a number of stratified ones, None is 5.
    scoring : str, callable or None
        scikit-learn's scorer, by default the accuracy. It gets the weights of the samples, if any.
    solver : str
        As in `fastmc.path`.
    tol, max_iter, fit_intercept, intercept_scaling, class_weight, random_state, verbose
        As in `MulticlassSVC`; max_iter also bounds the passes for each step of a path.
    n_jobs : int or None
        Folds done at the same time, and threads of prediction.

    Attributes
    ----------
    C_ : float
        The chosen C.
    Cs_ : numpy.ndarray, shape (n_Cs,)
        The values of C, ascending.
    scores_ : numpy.ndarray, shape (n_folds, n_Cs)
        NaN where max_iter ended a path before it reached that C, which is then not chosen.
    best_score_ : float
        Mean score of `C_` over the folds.
    coef_, intercept_, classes_, n_iter_, n_features_in_, feature_names_in_, duality_gap_, objective_, model_
        Of the final training, as in `MulticlassSVC`.
    """

    def __init__(self, Cs=16, loss="maxhinge", *, k=1, rho=None, cost=None, own_class=True,
                 smoothing=0.0, eps=0.1, cv=None, scoring=None, solver="auto", tol=1e-3, max_iter=1000,
                 fit_intercept=True, intercept_scaling=1.0, class_weight=None, n_jobs=None,
                 random_state=0, verbose=0):
        self.Cs, self.loss, self.k, self.rho, self.cost = Cs, loss, k, rho, cost
        self.own_class, self.smoothing, self.solver = own_class, smoothing, solver
        self.eps, self.cv, self.scoring = eps, cv, scoring
        self.tol, self.max_iter = tol, max_iter
        self.fit_intercept, self.intercept_scaling = fit_intercept, intercept_scaling
        self.class_weight, self.n_jobs = class_weight, n_jobs
        self.random_state, self.verbose = random_state, verbose

    def fit(self, X, y, sample_weight=None):
        """Choose C and train.

        Parameters
        ----------
        X : sparse matrix or array, or array-like, shape (n_samples, n_features)
        y : array-like, shape (n_samples,)
            Labels of any sortable kind.
        sample_weight : array-like or None, shape (n_samples,)
            Non-negative; for training and for the scores.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            Naming the argument and its value.

        Warns
        -----
        sklearn.exceptions.ConvergenceWarning
            If max_iter ended a path before the largest C, or the final training before tol.
        """
        X, y = self._checked_training(X, y)
        weight = None if sample_weight is None else check_weights(sample_weight, len(y))
        Cs, options = values_of_C(self.Cs), self._options(y)
        scorer = check_scoring(self, scoring=self.scoring)
        folds = list(check_cv(self.cv, y, classifier=True).split(X, y))
        if not folds:
            raise ValueError(f"cv={self.cv!r} has no folds")
        scores = np.array(Parallel(n_jobs=self.n_jobs)(
            delayed(fold_scores)(X, y, weight, *fold, Cs, self.eps, scorer, options) for fold in folds))
        best = self._best(Cs, scores.mean(axis=0))
        self.Cs_, self.scores_ = Cs, scores
        self.C_, self.best_score_ = float(Cs[best]), float(scores[:, best].mean())
        return self._train(X, y, weight, self.C_)

    def _best(self, Cs, means):
        missing = np.isnan(means)
        if missing.all():
            raise ValueError(f"max_iter={self.max_iter} ended the path of a fold before the smallest C: "
                             "raise max_iter or eps, or scale the features")
        if missing.any():
            warnings.warn(f"max_iter={self.max_iter} ended the path of a fold before C={Cs[missing][0]:g}, "
                          "from which on no C was scored; raise max_iter or eps, or scale the features",
                          ConvergenceWarning, stacklevel=3)
        return int(np.nanargmax(means))


class MultiBoostClassifier(RankingClassifier):
    """`fastmc.boosting.MultiBoostClassifier` as scikit-learn's estimator.

    Parameters
    ----------
    n_rounds, C, weak_learner, class_wise, stage_wise, max_sweeps, tol, master, early_stopping, verbose
        As there.
    n_jobs : int or None
        Threads of the stump search.
    random_state : int, numpy.random.Generator, numpy.random.RandomState or None

    Attributes
    ----------
    classes_ : numpy.ndarray, shape (n_classes,)
        Sorted labels.
    n_features_in_ : int
    feature_names_in_ : numpy.ndarray, shape (n_features,)
        Where X has names of features.
    n_rounds_ : int
        Rounds run; with early stopping those that the model keeps.
    objective_, lower_bound_, global_lower_bound_ : float
        Objective of the model; bounds below the optimum over its learners and over all stumps.
    converged_ : bool
        Whether no weak learner was left that could make the objective better by more than tol allows.
    model_ : fastmc.boosting.MultiBoostClassifier
        With the learners, their weights, staged predictions, counts of features and `save`.
    """

    def __init__(self, n_rounds=200, C=1e4, *, weak_learner="stump", class_wise=True, stage_wise=False,
                 max_sweeps=5, tol=0.01, master="fcd", early_stopping=None, n_jobs=None, random_state=0,
                 verbose=0):
        self.n_rounds, self.C, self.weak_learner = n_rounds, C, weak_learner
        self.class_wise, self.stage_wise = class_wise, stage_wise
        self.max_sweeps, self.tol, self.master = max_sweeps, tol, master
        self.early_stopping, self.n_jobs = early_stopping, n_jobs
        self.random_state, self.verbose = random_state, verbose

    def fit(self, X, y, sample_weight=None, validation=None):
        """Train.

        Parameters
        ----------
        X : sparse matrix or array, or array-like, shape (n_samples, n_features)
        y : array-like, shape (n_samples,)
            Labels of any sortable kind.
        sample_weight : array-like or None, shape (n_samples,)
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
        X, y = self._checked_training(X, y)
        options = {**self.get_params(deep=False), "random_state": seed_of(self.random_state),
                   "n_threads": effective_n_jobs(self.n_jobs)}
        del options["n_jobs"]
        self.model_ = boosting.MultiBoostClassifier(**options).fit(X, y, sample_weight, validation)
        for name in ("classes_", "n_rounds_", "objective_", "lower_bound_", "global_lower_bound_",
                     "converged_"):
            setattr(self, name, getattr(self.model_, name))
        return self


def seed_of(random_state):
    """What train() takes: an int or Generator as it is, or an int that scikit-learn's kinds draw."""
    if isinstance(random_state, (numbers.Integral, np.random.Generator)):
        return random_state
    return int(check_random_state(random_state).randint(2**31))


def values_of_C(Cs):
    """The values of C to choose from, ascending."""
    if isinstance(Cs, numbers.Integral):
        check_count("Cs", Cs, 2)
        return np.geomspace(1e-3, 1e2, Cs)
    Cs = check_numbers(Cs, "Cs")
    if Cs.ndim != 1 or not len(Cs):
        raise ValueError(f"Cs of shape {Cs.shape} must be a whole number or a list of numbers")
    Cs = np.unique(Cs)
    for C in Cs[[0, -1]]:
        check_range("Cs", float(C), *C_RANGE)
    return Cs


def fold_scores(X, y, weight, train_rows, test_rows, Cs, eps, scorer, options):
    """The scores of one fold for all C, shape (n_Cs,); NaN where its path does not reach."""
    X_train, y_train, X_test, y_test = X[train_rows], y[train_rows], X[test_rows], y[test_rows]
    options = fold_options(train_rows, y, options | {"sample_weight": weight})
    weights = {} if weight is None else {"sample_weight": weight[test_rows]}
    lams = 1.0 / (Cs * len(y_train))
    with without_budget_warnings():
        solutions = path(X_train, y_train, eps, float(lams[-1]), **options)
    return [scorer(MulticlassSVC()._take(solutions.model_at(lam)), X_test, y_test, **weights)
            if lam >= solutions.lam_min else np.nan for lam in lams]


@contextlib.contextmanager
def without_budget_warnings():
    """The estimators tell in their own words that a budget ran out."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BudgetWarning)
        yield
