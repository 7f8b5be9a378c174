"""Prediction: the kernels are their mirror, and rows, layouts, blocks and threads change nothing."""
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

from fastmc import Model, _predict, reference
from fastmc._threads import over_blocks
from fastmc._problem import Problem
from fastmc.boosting import MultiBoostClassifier

LAYOUTS = [("csr", np.float64, np.int32), ("csr", np.float32, np.int64), ("dense", np.float64, None),
           ("dense", np.float32, None)]
# All ends of a row of scores: whole vectors of each width, half ones, one to three numbers.
CLASSES = [2, 3, 4, 5, 7, 8, 10, 13, 16, 17, 23, 32, 39]


@pytest.fixture
def data():
    """A function that makes a model and a matrix with rows of zeros; scores have many digits."""
    def make(n=30, m=7, d=9, bias=0.5, seed=0):
        rng = np.random.default_rng([seed, n, m])
        X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.5)
        return Model(rng.normal(size=(d + (bias != 0), m)), np.arange(m), bias=bias), X
    return make


def ties(n, m, seed=0):
    """Scores with many equal ones."""
    return np.random.default_rng([seed, n, m]).integers(-2, 3, size=(n, m)).astype(float)


def plain_ranks(scores, k):
    return np.argsort(-scores, axis=1, kind="stable")[:, :k]


@pytest.mark.parametrize("layout, dtype, index", LAYOUTS)
@pytest.mark.parametrize("bias", [None, 0.7])
def test_scores_are_those_of_the_mirror(draw, instruction_set, layout, dtype, index, bias):
    for m in CLASSES:
        # Dense rows are taken by fours: one to three are left over.
        p = draw(n=41 + m % 4, m=m, d=6, layout=layout, dtype=dtype, index=index or np.int32)
        problem = Problem(p.X, p.y, bias=bias)
        weights = np.random.default_rng(m).normal(size=(problem.n_weights, m))
        out, expected = np.full((2, len(p.y), m), np.nan)
        _predict.scores(problem.samples(), weights, 0, out)
        reference.predict.scores(problem.samples("reference"), weights, 0, expected)
        np.testing.assert_array_equal(out, expected)
        np.testing.assert_allclose(out, p.X @ weights[:6] + (bias or 0) * weights[6:].sum(axis=0),
                                   rtol=1e-12, atol=1e-13)
        # float32 weights are added up in float64: as if they had been that before. Some rows and columns alone.
        single, part = weights.astype(np.float32), np.full((9, m + 3), 7.0)
        _predict.scores(problem.samples(), single, 5, part[:, 2: m + 2])
        _predict.scores(problem.samples(), single.astype(np.float64), 0, out)
        reference.predict.scores(problem.samples("reference"), single, 5, expected[:9])
        np.testing.assert_array_equal(part[:, 2: m + 2], out[5: 14])
        np.testing.assert_array_equal(expected[:9], out[5: 14])
        assert np.all(part[:, [0, 1, m + 2]] == 7.0)


@pytest.mark.parametrize("m", [1, *CLASSES, 100])
def test_ranks_are_those_of_the_mirror_and_of_a_stable_sort(instruction_set, m):
    for scores in (ties(20, m), np.random.default_rng(m).normal(size=(20, m))):
        for k in {1, min(2, m), min(5, m), (m + 1) // 2, m}:
            out, expected = np.full((2, 20, k), -1, dtype=np.int64)
            _predict.rank(scores, out)
            reference.predict.rank(scores, expected)
            np.testing.assert_array_equal(out, expected)
            np.testing.assert_array_equal(out, plain_ranks(scores, k))


@pytest.mark.parametrize("m", [3, 16, 40])
def test_ranks_of_scores_that_overflow(instruction_set, m):
    rng = np.random.default_rng(m)
    scores = rng.choice([np.nan, -np.inf, np.inf, 0.0, 1.0, -1.0], size=(200, m))
    scores[:2], scores[2:4, 0] = np.array([[np.nan], [-np.inf]]), np.nan
    lowest = np.where(np.isnan(scores), -np.inf, scores)
    for k in (1, 2, m):
        out, expected = np.full((2, 200, k), -1, dtype=np.int64)
        _predict.rank(scores, out)
        reference.predict.rank(scores, expected)
        np.testing.assert_array_equal(out, expected)
        np.testing.assert_array_equal(out, plain_ranks(lowest, k))


@pytest.mark.parametrize("bias", [0.0, 0.5])
@pytest.mark.parametrize("n", [1, 3, 511, 512, 513, 1027])
def test_a_score_depends_on_its_row_alone(data, n, bias):
    model, X = data(n, bias=bias)
    scores = model.decision_function(X)
    np.testing.assert_allclose(scores, X @ model.coef_.T + model.intercept_, rtol=1e-12, atol=1e-13)
    rows = [at for at in (0, 1, 2, 509, 510, 511, 512, 513, n - 1) if at < n]
    for at in rows:
        np.testing.assert_array_equal(model.decision_function(X[[at]]), scores[[at]])
    single, wide = X.astype(np.float32), sp.csr_array(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    fixed = X.copy()
    fixed.flags.writeable = False
    for other in (sp.csr_array(X), sp.csc_matrix(X), wide, fixed, np.asfortranarray(X)):
        np.testing.assert_array_equal(model.decision_function(other), scores)
        np.testing.assert_array_equal(model.predict(other), scores.argmax(axis=1))
    for other in (single, sp.csr_array(single)):
        np.testing.assert_array_equal(model.decision_function(other),
                                      model.decision_function(single.astype(np.float64)))


@pytest.mark.parametrize("n_threads", [1, 2, 3, 0])
@pytest.mark.parametrize("convert", [np.asarray, sp.csr_array])
def test_labels_are_those_of_the_scores(data, n_threads, convert):
    model, X = data(1300, 20)
    y = np.random.default_rng(0).integers(0, 21, len(X))  # 20 is no class of the model
    X = convert(X)
    scores = model.decision_function(X)
    ranks = plain_ranks(scores, 5)
    np.testing.assert_array_equal(model.decision_function(X, n_threads=n_threads), scores)
    np.testing.assert_array_equal(model.predict(X, n_threads=n_threads), ranks[:, 0])
    np.testing.assert_array_equal(model.predict_topk(X, 5, n_threads=n_threads), ranks)
    assert model.score(X, y, n_threads=n_threads) == np.mean(ranks[:, 0] == y)
    missed = ~(ranks == y[:, None]).any(axis=1)
    assert model.topk_error(X, y, 5, n_threads=n_threads) == np.mean(missed)


def test_equal_scores_go_to_the_class_that_sorts_first():
    model = Model(ties(4, 40), np.arange(40) * 3)
    X = np.eye(4)
    scores = model.decision_function(X)
    np.testing.assert_array_equal(model.predict(X), 3 * scores.argmax(axis=1))
    np.testing.assert_array_equal(model.predict_topk(X, 40), 3 * plain_ranks(scores, 40))


def test_no_rows(data):
    model, X = data()
    for empty in (X[:0], sp.csr_array(X[:0])):
        for n_threads in (1, 2):
            assert model.decision_function(empty, n_threads=n_threads).shape == (0, 7)
            assert model.predict(empty, n_threads=n_threads).shape == (0,)
            assert model.predict_topk(empty, 3, n_threads=n_threads).shape == (0, 3)


def test_rows_without_entries(data):
    model, _ = data(bias=0.5)
    np.testing.assert_array_equal(model.decision_function(sp.csr_array((6, 9))),
                                  np.tile(model.intercept_, (6, 1)))


@pytest.mark.parametrize("n_threads", [1, 2])
def test_the_scores_of_all_rows_are_never_there_at_once(data, n_threads):
    model, X = data(20000, 100, 3)
    y = np.zeros(len(X), dtype=np.int64)
    for call in (lambda: model.predict(X, n_threads=n_threads),
                 lambda: model.predict_topk(X, 2, n_threads=n_threads),
                 lambda: model.score(X, y, n_threads=n_threads),
                 lambda: model.topk_error(X, y, 2, n_threads=n_threads)):
        tracemalloc.start()
        call()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 8 * 20000 * 100 / 4


def test_bad_arguments(data):
    model, X = data()
    for n_threads in (-1, 1.5, True, None, "2"):
        for call in (model.decision_function, model.predict):
            with pytest.raises(ValueError, match=f"n_threads={n_threads!r} must be a whole number"):
                call(X, n_threads=n_threads)
    with pytest.raises(ValueError, match="X has 8 features, the model has 9"):
        model.predict(X[:, :8])
    with pytest.raises(ValueError, match=r"k=8 must be a whole number from 1 to n_classes = 7"):
        model.predict_topk(X, 8)


def test_errors_of_threads_come_out():
    def work(rows):
        if rows.start == 6:
            raise RuntimeError(f"rows {rows.start} to {rows.stop}")

    for n_threads in (1, 2):
        with pytest.raises(RuntimeError, match="rows 6 to 8"):
            over_blocks(work, 8, 3, n_threads)


def test_every_row_is_in_one_block():
    for n_rows in (0, 1, 5, 6, 7):
        for n_threads in (1, 2, 9):
            seen = np.zeros(n_rows, dtype=int)

            def work(rows):
                assert 0 < rows.stop - rows.start <= 3
                seen[rows] += 1

            over_blocks(work, n_rows, 3, n_threads)
            assert (seen == 1).all()


@pytest.mark.parametrize("convert", [np.asarray, sp.csr_array])
def test_boosting_predicts_by_blocks_and_threads(monkeypatch, convert):
    rng = np.random.default_rng(0)
    y = np.arange(90) % 3
    X = rng.normal(size=(90, 4)) + 2 * np.eye(4)[y]
    model = MultiBoostClassifier(n_rounds=4, C=100).fit(X, y)
    X = convert(X)
    scores = model.decision_function(X)
    ranks = plain_ranks(scores, 2)
    assert len(np.unique(scores, axis=0)) > 10
    monkeypatch.setattr(MultiBoostClassifier, "_block", 16)
    for n_threads in (1, 2, 0):
        np.testing.assert_array_equal(model.decision_function(X, n_threads=n_threads), scores)
        np.testing.assert_array_equal(model.predict(X, n_threads=n_threads), ranks[:, 0])
        np.testing.assert_array_equal(model.predict_topk(X, 2, n_threads=n_threads), ranks)
        assert model.score(X, y, n_threads=n_threads) == np.mean(ranks[:, 0] == y)
