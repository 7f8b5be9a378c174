"""scikit-learn's estimators: its own checks, and the same numbers as fastmc's functions."""
import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

import fastmc
from fastmc import boosting

pytest.importorskip("sklearn")

from sklearn import config_context
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import make_scorer, top_k_accuracy_score
from sklearn.model_selection import GridSearchCV, LeaveOneGroupOut, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from fastmc.estimators import MultiBoostClassifier, MulticlassSVC, MulticlassSVCCV

FORMATS = ["csr", "csc", "coo", "bsr", "lil", "dok", "dia"]


# One check compares weights with repeated rows to 1e-7, which takes a solution that exact. On the
# unscaled data of others that is out of reach. With C = 0.1 alone samples have a loss at the optimum, where their best
# classes tie and rounding tells which is predicted.
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks([MulticlassSVC(tol=1e-13), MulticlassSVCCV(Cs=[0.1, 1.0], tol=1e-13),
                          MultiBoostClassifier()])
def test_checks_of_scikit_learn(estimator, check):
    check(estimator)


def assert_is_of(estimator, model):
    """The estimator holds the numbers of the model, bit for bit."""
    for name in ("coef_", "intercept_", "classes_", "n_features_in_"):
        np.testing.assert_array_equal(getattr(estimator, name), getattr(model, name))
    assert estimator.coef_.shape == (len(model.classes_), model.n_features_in_)
    assert estimator.n_iter_ == model.n_passes
    assert estimator.objective_ == model.certificate.primal
    assert estimator.duality_gap_ == model.certificate.gap


# MulticlassSVC

@pytest.mark.parametrize("smoothing", [0.0, 0.5])
def test_each_loss_gives_the_bits_of_train(some_digits, loss_options, smoothing):
    p = some_digits
    cost = p.cost if smoothing or loss_options["loss"] == "structured" else None
    options = dict(loss_options, C=0.5, cost=cost, smoothing=smoothing, tol=0.01)
    estimator = MulticlassSVC(**options).fit(p.X, p.y, sample_weight=p.weight)
    model = fastmc.train(p.X, p.y, bias=1.0, sample_weight=p.weight, **options)
    assert_is_of(estimator, model)
    np.testing.assert_array_equal(estimator.decision_function(p.X), model.decision_function(p.X))
    np.testing.assert_array_equal(estimator.predict(p.X), model.predict(p.X))


@pytest.mark.parametrize("ours, theirs", [
    ({"fit_intercept": False}, {}),
    ({"intercept_scaling": 3.0}, {"bias": 3.0}),
    ({"fit_intercept": False, "max_iter": 3, "tol": 0}, {"max_passes": 3, "tol": 0}),
    ({"class_weight": "balanced"}, {"bias": 1.0, "class_weight": "balanced"}),
    ({"class_weight": {3: 2.0}, "solver": "pairwise"},
     {"bias": 1.0, "class_weight": {3: 2.0}, "solver": "pairwise"}),
    ({"random_state": np.int64(7)}, {"bias": 1.0, "random_state": 7}),
])
def test_parameters_are_those_of_train(some_digits, ours, theirs):
    p = some_digits
    assert_is_of(MulticlassSVC(**ours).fit(p.X, p.y), fastmc.train(p.X, p.y, **theirs))


def test_the_optimum_is_that_of_linear_svc(some_digits):
    p = some_digits
    linear = LinearSVC(multi_class="crammer_singer", C=0.1, tol=1e-9, max_iter=100000).fit(p.X, p.y)
    ours = MulticlassSVC(C=0.1, tol=1e-8).fit(p.X, p.y)
    np.testing.assert_allclose(ours.coef_, linear.coef_, atol=1e-4)
    np.testing.assert_allclose(ours.intercept_, linear.intercept_, atol=1e-4)


@pytest.mark.parametrize("kind", FORMATS)
def test_sparse_formats_agree(draw, kind):
    p = draw(n=30)
    model = MulticlassSVC().fit(p.X, p.y)
    X = p.X.asformat(kind)
    np.testing.assert_array_equal(MulticlassSVC().fit(X, p.y).coef_, model.coef_)
    np.testing.assert_array_equal(model.predict(X), model.predict(p.X))


def test_two_classes_have_one_score_a_row(some_digits):
    p = some_digits
    rows = p.y < 2
    X, y = p.X[rows], np.array(["no", "yes"])[p.y[rows]]
    estimator = MulticlassSVC(C=0.1).fit(X, y)
    scores = fastmc.train(X, y, C=0.1, bias=1.0).decision_function(X)
    assert estimator.coef_.shape == (2, 64) and estimator.intercept_.shape == (2,)
    np.testing.assert_array_equal(estimator.decision_function(X), scores[:, 1] - scores[:, 0])
    np.testing.assert_array_equal(estimator.predict(X) == "yes", estimator.decision_function(X) > 0)


def test_topk(some_digits):
    p = some_digits
    y = np.array([f"digit {label}" for label in p.y])
    estimator = MulticlassSVC(C=0.01, loss="topk", k=3).fit(p.X, y)
    ranked = estimator.predict_topk(p.X, 3)
    np.testing.assert_array_equal(ranked, estimator.model_.predict_topk(p.X, 3))
    hits = [label in row for label, row in zip(y, ranked)]
    assert 0.8 < np.mean(hits) < 1.0
    assert estimator.topk_score(p.X, y, 3) == np.mean(hits)
    assert estimator.topk_score(p.X, y, 3, p.weight) == pytest.approx(p.weight @ hits / p.weight.sum())
    assert estimator.topk_score(p.X, y, 10) == 1.0
    assert estimator.topk_score(p.X[:2], ["digit 10", y[1]], 10) == 0.5
    with pytest.raises(ValueError, match="k=11 must be a whole number from 1 to n_classes = 10"):
        estimator.topk_score(p.X, y, 11)
    with pytest.raises(ValueError, match="y has shape"):
        estimator.topk_score(p.X, y[:-1], 3)


def test_random_states(some_digits):
    p = some_digits

    def coef(random_state):
        return MulticlassSVC(random_state=random_state, tol=0.1).fit(p.X, p.y).coef_

    np.testing.assert_array_equal(coef(np.random.RandomState(3)), coef(np.random.RandomState(3)))
    assert (coef(np.random.RandomState(3)) != coef(np.random.RandomState(4))).any()
    np.testing.assert_array_equal(coef(np.random.default_rng(5)), coef(5))
    np.random.seed(6)
    np.testing.assert_array_equal(coef(None), coef(np.random.RandomState(6)))


@pytest.mark.parametrize("options, message", [
    ({"loss": "topk", "k": 10}, r"k=10 must be at most n_classes - 1 = 9"),
    ({"loss": "wtopk"}, "needs rho"),
    ({"loss": "structured"}, "needs cost"),
    ({"cost": np.ones((3, 3))}, r"cost has shape \(3, 3\), expected \(10, 10\)"),
    ({"cost": np.zeros((300, 10))}, r"cost has shape \(300, 10\), expected \(10, 10\)"),
    ({"cost": np.ones((10, 10))}, r"cost\[0, 0\]=1.0 must be zero"),
    ({"max_iter": 0}, "max_iter=0 must be a whole number of at least 1"),
    ({"intercept_scaling": 0}, "intercept_scaling=0 must be a finite number above 0"),
    ({"C": -1.0}, r"C=-1\.0 must be"),
    ({"tol": -1.0}, r"tol=-1\.0 must be"),
    ({"solver": "newton"}, "solver='newton' is unknown"),
    ({"class_weight": "even"}, "class_weight='even' must be"),
    ({"random_state": -1}, "random_state=-1 must be"),
])
def test_wrong_parameters(some_digits, options, message):
    with pytest.raises(ValueError, match=message):
        MulticlassSVC(**options).fit(some_digits.X, some_digits.y)


@pytest.mark.parametrize("value, message", [(np.nan, "NaN"), (np.inf, "infinity"), (1e200, "overflows")])
def test_values_that_cannot_be_used(some_digits, value, message):
    X = some_digits.X.copy()
    X[3, 5] = value
    for data in (X, sp.csr_array(X)):
        with pytest.raises(ValueError, match=message):
            MulticlassSVC().fit(data, some_digits.y)


def test_weights_that_cannot_be_used(some_digits):
    p = some_digits
    for weight, message in ((-p.weight, "negative"), (0 * p.weight, "all samples have weight zero"),
                            (p.weight[1:], "sample_weight has shape")):
        with pytest.raises(ValueError, match=message):
            MulticlassSVC().fit(p.X, p.y, sample_weight=weight)


def test_a_budget_warns_in_scikit_learns_way(some_digits):
    p = some_digits
    with pytest.warns(ConvergenceWarning, match=r"max_iter=2 passes .* above tol=1e-09") as record:
        MulticlassSVC(max_iter=2, tol=1e-9).fit(p.X, p.y)
    assert len(record) == 1 and record[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        MulticlassSVC(max_iter=2, tol=0).fit(p.X, p.y)


def test_warm_start(some_digits):
    p = some_digits
    estimator = MulticlassSVC(C=0.1, warm_start=True, tol=1e-4).fit(p.X, p.y)
    first = estimator.model_
    estimator.set_params(C=0.2).fit(p.X, p.y)
    assert_is_of(estimator, fastmc.train(p.X, p.y, C=0.2, tol=1e-4, bias=1.0, init=first))
    assert estimator.fit(p.X, p.y).n_iter_ == 0
    assert clone(estimator).fit(p.X, p.y).n_iter_ == fastmc.train(p.X, p.y, C=0.2, tol=1e-4, bias=1.0).n_passes


@pytest.mark.parametrize("rows, change, options, message", [
    (300, 0, {"loss": "topk", "k": 2}, "init was trained with loss='maxhinge'"),
    (299, 0, {}, "init was trained on 300 samples"),
    (300, 1, {}, "init has classes"),
    (300, 0, {"fit_intercept": False}, "init has 65 features"),
])
def test_warm_start_from_what_does_not_fit(some_digits, rows, change, options, message):
    p = some_digits
    estimator = MulticlassSVC(warm_start=True).fit(p.X, p.y)
    with pytest.raises(ValueError, match=f"warm_start=True: .*{message}"):
        estimator.set_params(**options).fit(p.X[:rows], p.y[:rows] + change)
    estimator.set_params(warm_start=False).fit(p.X[:rows], p.y[:rows] + change)
    assert estimator.classes_[0] == change


# All estimators in scikit-learn's company

@pytest.fixture(params=[MulticlassSVC(C=0.1), MulticlassSVCCV(Cs=[0.01, 0.1]),
                        MultiBoostClassifier(n_rounds=5)], ids=lambda e: type(e).__name__)
def estimator(request):
    return clone(request.param)


def test_not_fitted(estimator):
    for method in ("predict", "decision_function"):
        with pytest.raises(NotFittedError):
            getattr(estimator, method)([[0.0]])
    with pytest.raises(NotFittedError):
        estimator.predict_topk([[0.0]], 1)
    assert not hasattr(estimator, "coef_")


def test_pickle_and_clone(estimator, some_digits):
    p = some_digits
    scores = estimator.fit(p.X, p.y).decision_function(p.X)
    again = pickle.loads(pickle.dumps(estimator))
    np.testing.assert_array_equal(again.decision_function(p.X), scores)
    np.testing.assert_array_equal(clone(estimator).fit(p.X, p.y).decision_function(p.X), scores)


def test_one_feature(estimator):
    X, y = np.repeat([[-1.0], [1.0]], 10, axis=0), np.repeat(["a", "b"], 10)
    assert estimator.fit(X, y).predict([[-2.0], [2.0]]).tolist() == ["a", "b"]


def test_one_class_is_refused(estimator, some_digits):
    with pytest.raises(ValueError, match="one class only"):
        estimator.fit(some_digits.X, np.full(300, "a"))


def test_continuous_labels_are_refused(estimator, some_digits):
    with pytest.raises(ValueError, match="Unknown label type"):
        estimator.fit(some_digits.X, some_digits.y + 0.5)


@pytest.mark.parametrize("labels", [["a", 1, "b"], ["a", None, "b"]])
def test_labels_that_cannot_be_sorted_are_refused(estimator, some_digits, labels):
    with pytest.raises(ValueError, match="y mixes labels that cannot be sorted together"):
        estimator.fit(some_digits.X, np.array(labels * 100, dtype=object))


def test_cross_val_score(estimator, some_digits):
    p = some_digits
    scores = cross_val_score(estimator, p.X, p.y, cv=3)
    for (train, test), score in zip(StratifiedKFold(3).split(p.X, p.y), scores):
        assert clone(estimator).fit(p.X[train], p.y[train]).score(p.X[test], p.y[test]) == score


def test_grid_search_in_a_pipeline_with_two_jobs(estimator, some_digits):
    p = some_digits
    name = type(estimator).__name__.lower()
    grid = {f"{name}__tol": [0.5, 0.01]}
    pipeline = make_pipeline(StandardScaler(), estimator)
    search = GridSearchCV(pipeline, grid, cv=2, n_jobs=2).fit(p.X, p.y)
    alone = [cross_val_score(clone(pipeline).set_params(**{f"{name}__tol": tol}), p.X, p.y, cv=2).mean()
             for tol in (0.5, 0.01)]
    assert search.cv_results_["mean_test_score"].tolist() == alone and search.best_score_ > 0.6


def test_calibrated_probabilities(estimator, some_digits):
    p = some_digits
    calibrated = CalibratedClassifierCV(estimator, cv=3).fit(p.X, p.y)
    probabilities = calibrated.predict_proba(p.X)
    assert probabilities.shape == (300, 10)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    assert np.mean(probabilities.argmax(axis=1) == p.y) > 0.8


def test_metadata_routing(estimator, some_digits):
    p = some_digits
    with config_context(enable_metadata_routing=True):
        pipeline = make_pipeline(StandardScaler().set_fit_request(sample_weight=False),
                                 estimator.set_fit_request(sample_weight=True))
        routed = pipeline.fit(p.X, p.y, sample_weight=p.weight).decision_function(p.X)
    scaled = StandardScaler().fit_transform(p.X)
    alone = clone(estimator).fit(scaled, p.y, sample_weight=p.weight).decision_function(scaled)
    np.testing.assert_array_equal(routed, alone)
    assert (clone(estimator).fit(scaled, p.y).decision_function(scaled) != alone).any()


def test_pandas_frames_and_their_column_names(estimator, some_digits):
    pandas = pytest.importorskip("pandas")
    p = some_digits
    X = pandas.DataFrame(p.X, columns=[f"pixel {i}" for i in range(64)])
    y = pandas.Series([f"digit {label}" for label in p.y])
    weight = pandas.Series(p.weight)
    alone = clone(estimator).fit(p.X, y.to_numpy(), sample_weight=p.weight)
    estimator.fit(X, y, sample_weight=weight)
    np.testing.assert_array_equal(estimator.decision_function(X), alone.decision_function(p.X))
    assert estimator.feature_names_in_.tolist() == list(X.columns)
    assert estimator.predict(X).tolist() == alone.predict(p.X).tolist()
    assert estimator.topk_score(X, y, 2, weight) == alone.topk_score(p.X, y.to_numpy(), 2, p.weight)
    with pytest.raises(ValueError, match="feature names"):
        estimator.predict(X[X.columns[::-1]])
    pipeline = make_pipeline(StandardScaler(), clone(estimator)).set_output(transform="pandas").fit(X, y)
    assert pipeline[-1].feature_names_in_.tolist() == list(X.columns)


# MulticlassSVCCV

def test_scores_are_those_of_the_paths(some_digits):
    p = some_digits
    Cs = np.array([1.0, 0.001, 0.01, 0.1])
    options = {"loss": "topk", "k": 2, "smoothing": 0.1}
    estimator = MulticlassSVCCV(Cs=Cs, cv=3, eps=0.05, **options).fit(p.X, p.y, p.weight)
    np.testing.assert_array_equal(estimator.Cs_, np.sort(Cs))
    for row, (train, test) in enumerate(StratifiedKFold(3).split(p.X, p.y)):
        lams = 1 / (estimator.Cs_ * len(train))
        path = fastmc.path(p.X[train], p.y[train], 0.05, lams[-1], bias=1.0, sample_weight=p.weight[train],
                           **options)
        for column, lam in enumerate(lams):
            hits = path.model_at(lam).predict(p.X[test]) == p.y[test]
            assert estimator.scores_[row, column] == pytest.approx(np.average(hits, weights=p.weight[test]))
    means = estimator.scores_.mean(axis=0)
    assert estimator.best_score_ == means.max()
    assert estimator.C_ == estimator.Cs_[means.argmax()]
    assert_is_of(estimator, fastmc.train(p.X, p.y, C=estimator.C_, bias=1.0, sample_weight=p.weight, **options))


def test_the_path_chooses_as_a_grid_does(some_digits):
    p = some_digits
    Cs = [0.01, 0.1, 1.0]
    grid = GridSearchCV(MulticlassSVC(tol=1e-4), {"C": Cs}, cv=4).fit(p.X, p.y)
    estimator = MulticlassSVCCV(Cs=Cs, cv=4, eps=0.01).fit(p.X, p.y)
    np.testing.assert_allclose(estimator.scores_.mean(axis=0), grid.cv_results_["mean_test_score"], atol=0.01)
    assert estimator.C_ == grid.best_params_["C"] == 1.0
    np.testing.assert_allclose(estimator.coef_, grid.best_estimator_.coef_, atol=0.02)


def test_default_values_of_C_and_the_smallest_of_equal_ones():
    X, y = np.repeat([[-1.0], [1.0]], 10, axis=0), np.repeat([0, 1], 10)
    estimator = MulticlassSVCCV().fit(X, y)
    np.testing.assert_allclose(estimator.Cs_, 10.0 ** np.linspace(-3, 2, 16))
    assert estimator.scores_.shape == (5, 16) and (estimator.scores_ == 1.0).all()
    assert estimator.C_ == estimator.Cs_[0]


def test_folds_scorers_and_jobs(some_digits):
    p = some_digits
    groups = np.arange(300) % 3
    splits = list(LeaveOneGroupOut().split(p.X, groups=groups))
    scorer = make_scorer(top_k_accuracy_score, response_method="decision_function", k=3, labels=range(10))
    one = MulticlassSVCCV(Cs=[0.001, 0.1], cv=splits, scoring=scorer).fit(sp.csr_array(p.X), p.y)
    two = clone(one).set_params(n_jobs=2).fit(sp.csr_array(p.X), p.y)
    np.testing.assert_array_equal(one.scores_, two.scores_)
    for row, (train, test) in enumerate(splits):
        path = fastmc.path(sp.csr_array(p.X[train]), p.y[train], lam_min=1 / (0.1 * len(train)), bias=1.0)
        model = path.model_at(1 / (0.1 * len(train)))
        assert one.scores_[row, 1] == pytest.approx(1 - model.topk_error(sp.csr_array(p.X[test]), p.y[test], 3))


def test_a_class_that_a_fold_lacks(some_digits):
    p = some_digits
    rows = np.concatenate([np.flatnonzero(p.y != 4), np.flatnonzero(p.y == 4)[:1]])
    X, y, weights = p.X[rows], p.y[rows], {4: 3.0, 5: 2.0}
    estimator = MulticlassSVCCV(Cs=[0.1], cv=2, loss="structured", cost=p.cost.tolist(), class_weight=weights)
    with pytest.warns(UserWarning, match="least populated class"):
        estimator.fit(X, y)
    train, test = next(part for part in StratifiedKFold(2).split(X, y) if 4 in y[part[1]])
    lam, kept = 1 / (0.1 * len(train)), np.arange(10) != 4
    path = fastmc.path(X[train], y[train], lam_min=lam, loss="structured", cost=p.cost[kept][:, kept],
                       bias=1.0, class_weight={5: 2.0})
    assert path.model_at(lam).score(X[test], y[test]) in estimator.scores_
    assert_is_of(estimator, fastmc.train(X, y, loss="structured", cost=p.cost, C=0.1, bias=1.0,
                                         class_weight=weights))


def test_a_path_that_ends_early(some_digits):
    p = some_digits
    with pytest.warns(ConvergenceWarning, match="max_iter=1 ended the path of a fold before C=") as record:
        estimator = MulticlassSVCCV(Cs=[1e-6, 1e3], max_iter=1, tol=0).fit(p.X, p.y)
    assert len(record) == 1 and record[0].filename == __file__
    assert np.isnan(estimator.scores_[:, 1]).all() and estimator.C_ == 1e-6
    assert estimator.best_score_ == estimator.scores_[:, 0].mean()
    with pytest.raises(ValueError, match="max_iter=1 ended the path of a fold before the smallest C"):
        MulticlassSVCCV(Cs=[1e3], max_iter=1).fit(p.X, p.y)


@pytest.mark.parametrize("options, message", [
    ({"cv": []}, r"cv=\[\] has no folds"), ({"eps": 0}, "eps=0 must be"),
    ({"loss": "topk", "k": 10}, "k=10 must be"), ({"solver": "pg"}, "solver='pg' cannot follow"),
    ({"cost": [[0, 1], [1, 0]]}, r"cost has shape \(2, 2\)"),
])
def test_wrong_parameters_of_the_path(some_digits, options, message):
    with pytest.raises(ValueError, match=message):
        MulticlassSVCCV(Cs=[0.01], **options).fit(some_digits.X, some_digits.y)


@pytest.mark.parametrize("Cs, message", [
    (1, "Cs=1 must be a whole number of at least 2"), ([], "Cs of shape"), ([[1.0]], "Cs of shape"),
    ([1.0, -1.0], r"Cs=-1\.0 must be"), ([0.0, 1.0], r"Cs=0\.0 must be"), (["much"], "must hold numbers"),
    ([1.0, np.inf], "must be finite"),
])
def test_wrong_values_of_C(some_digits, Cs, message):
    with pytest.raises(ValueError, match=message):
        MulticlassSVCCV(Cs=Cs).fit(some_digits.X, some_digits.y)


# MultiBoostClassifier

@pytest.mark.parametrize("options", [{}, {"class_wise": False, "tol": 0.1}, {"early_stopping": 2, "n_jobs": 2},
                                     {"weak_learner": DecisionTreeClassifier(max_depth=2, random_state=0)}])
def test_boosting_gives_the_numbers_of_fastmc(some_digits, options):
    p = some_digits
    options = {"n_rounds": 4, "C": 1e3, "random_state": 1, **options}
    estimator = MultiBoostClassifier(**options).fit(p.X, p.y, p.weight)
    options["n_threads"] = options.pop("n_jobs", 1)
    alone = boosting.MultiBoostClassifier(**options).fit(p.X, p.y, p.weight)
    for name in ("objective_", "lower_bound_", "global_lower_bound_", "n_rounds_", "converged_"):
        assert getattr(estimator, name) == getattr(alone, name)
    np.testing.assert_array_equal(estimator.decision_function(p.X), alone.decision_function(p.X))
    np.testing.assert_array_equal(estimator.predict_topk(p.X, 4), alone.predict_topk(p.X, 4))
    assert estimator.score(p.X, p.y) == alone.score(p.X, p.y)


def test_boosting_with_validation_data_and_two_classes(some_digits):
    p = some_digits
    rows = p.y < 2
    X, y = p.X[rows], p.y[rows]
    estimator = MultiBoostClassifier(n_rounds=5, early_stopping=1).fit(X, y, validation=(X, y))
    scores = estimator.model_.decision_function(X)
    np.testing.assert_array_equal(estimator.decision_function(X), scores[:, 1] - scores[:, 0])
    assert estimator.classes_.tolist() == [0, 1] and estimator.score(X, y) > 0.95
    with pytest.raises(ValueError, match="n_rounds=0"):
        estimator.set_params(n_rounds=0).fit(X, y)


def test_without_scikit_learn_the_extra_is_named():
    code = "import sys; sys.modules['sklearn'] = None; import fastmc; import fastmc.estimators"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == ("ImportError: fastmc.estimators needs scikit-learn: "
                                            "pip install 'fastmc[sklearn]'")


def test_predictions_use_the_threads_of_n_jobs(draw, monkeypatch):
    p, seen = draw(n=30, m=4, d=5), []
    model = MulticlassSVC(n_jobs=2).fit(p.X, p.y)
    for name in ("predict", "decision_function", "predict_topk"):
        method = getattr(fastmc.Model, name)
        monkeypatch.setattr(fastmc.Model, name, lambda *args, method=method, **options: (
            seen.append(options), method(*args, **options))[1])
    assert len(model.predict(p.X)) == len(model.decision_function(p.X)) == len(model.predict_topk(p.X, 2)) == 30
    assert seen == [{"n_threads": 2}] * 3
