"""MultiBoost: the master problem against its definition and L-BFGS-B, and runs of the classifier."""
import math

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize, minimize_scalar

import fastmc
from fastmc import _fcd, reference
from fastmc._master import Master
from fastmc.boosting import MultiBoostClassifier, solve_weights
from fastmc.stumps import outputs as stump_outputs


def draw_outputs(K, T, n, seed=0, flip=0.35):
    """(H, y): noisy outputs, right with probability 1 - flip."""
    rng = np.random.default_rng([seed, K, T, n])
    y = rng.permutation(np.arange(n) % K)
    own = np.where(y == np.arange(K)[:, None], 1, -1)[:, None, :]
    return np.where(rng.random((K, T, n)) < flip, -own, own).astype(np.int8), y


def objective(H, y, C, w, weight=None):
    """The objective from its definition (Lin et al., equation 2)."""
    K, _, n = H.shape
    weight = np.ones(n) if weight is None else weight
    F = np.einsum("kt,kti->ki", w, H.astype(float))
    loss = sum(weight[i] * math.exp(F[c, i] - F[y[i], i])
               for i in range(n) for c in range(K) if c != y[i])
    return w.sum() + C / (weight.sum() * (K - 1)) * loss


def lbfgsb(H, y, C, start=None):
    """The optimum by SciPy, independently of Master."""
    K, T, n = H.shape
    Hf, scale = H.astype(float), C / (n * (K - 1))
    own = np.arange(K)[:, None] == y

    def value(x):
        F = np.einsum("kt,kti->ki", x.reshape(K, T), Hf)
        mu = np.where(own, 0.0, np.exp(F - F[y, np.arange(n)]))
        u = np.where(own, mu.sum(axis=0), -mu)
        return x.sum() + scale * mu.sum(), 1.0 - scale * np.einsum("kti,ki->kt", Hf, u).ravel()

    x = np.zeros(K * T) if start is None else start.ravel()
    # Restarts: a run can end on its line search before its tolerance.
    for _ in range(5):
        result = minimize(value, x, jac=True, method="L-BFGS-B", bounds=[(0, None)] * (K * T),
                          options={"ftol": 1e-15, "gtol": 0.0, "maxiter": 20000, "maxfun": 40000,
                                   "maxcor": 30})
        x = result.x
    return result.fun


def vowel(data_dir, rows=None):
    X, y = fastmc.load_svmlight(data_dir / "vowel.train.svm.bz2")
    return X.toarray()[:rows], y[:rows]


def columns_of(model, X):
    """H of the learners of a model; a class with fewer gets some of its own again."""
    most = max(map(len, model.learners_))
    H = []
    for learners in model.learners_:
        filled = (learners * most)[:most]
        H.append(stump_outputs(X, *map(np.array, zip(*filled))).T)
    return np.array(H)


# The master problem

@pytest.mark.parametrize("K, T, n", [(2, 5, 90), (3, 6, 121), (5, 6, 120), (10, 4, 200)])
@pytest.mark.parametrize("C", [3.0, 100.0, 1e4])
def test_the_weights_are_the_optimum(K, T, n, C):
    H, y = draw_outputs(K, T, n)
    w, info = solve_weights(H, y, C, tol=1e-8)
    assert w.shape == (K, T) and (w >= 0).all()
    assert info["violation"] <= 1e-8 and 1 <= info["sweeps"] < 20000
    value = objective(H, y, C, w)
    assert info["objective"] == pytest.approx(value, rel=1e-12)
    assert value == pytest.approx(lbfgsb(H, y, C), rel=1e-9)
    assert value * (1 - 1e-5) <= info["lower_bound"] <= value * (1 + 1e-13)


def check_columns(H, y, C, tol):
    label = np.unique(y, return_inverse=True)[1]
    w, info = solve_weights(H, y, C, tol=tol, max_sweeps=20000)
    assert info["violation"] <= tol
    peer = lbfgsb(H, label, C, start=w)
    assert info["objective"] == pytest.approx(peer, rel=1e-9)
    assert info["objective"] * (1 - 1e-5) <= info["lower_bound"] <= peer * (1 + 1e-12)
    return w


@pytest.mark.parametrize("C", [100.0, 1e4])
def test_the_weights_of_a_run_on_vowel(data_dir, C):
    X, y = vowel(data_dir)
    model = MultiBoostClassifier(n_rounds=100, C=C).fit(X, y)
    check_columns(columns_of(model, X), y, C, 1e-6)


def test_the_weights_of_a_run_on_usps(data_dir):
    X, y = fastmc.load_svmlight(data_dir / "usps.train.svm.bz2")
    X = X.toarray()
    model = MultiBoostClassifier(n_rounds=100, C=1e4).fit(X, y)
    check_columns(columns_of(model, X), y, 1e4, 1e-6)


@pytest.mark.parametrize("K, T, n, C", [(2, 3, 8, 1.5), (3, 5, 29, 50.0), (4, 3, 33, 1e4),
                                        (6, 2, 47, 1e12), (3, 4, 17, 1e-2)])
def test_kernel_equals_mirror(K, T, n, C):
    H, y = draw_outputs(K, T, n, seed=1)
    results = [solve_weights(H, y, C, tol=1e-7, max_sweeps=25, random_state=3, engine=engine)
               for engine in ("cython", "reference")]
    np.testing.assert_array_equal(results[0][0], results[1][0])
    assert results[0][1] == results[1][1]
    assert C < 1 or results[0][0].any()


def test_one_sweep_of_kernel_equals_mirror():
    # r and e, too; many rows, so that lanes fill up and bytes are cut at the end.
    H, y = draw_outputs(4, 6, 203)
    masters = []
    for engine in ("cython", "reference"):
        master = master_of(H, y, 1e4, engine)
        violation = master.visit(master.coordinates(np.random.default_rng(0)), 1e-3)
        masters.append((master.w, master.r, master.e, violation))
    for a, b in zip(*masters, strict=True):
        np.testing.assert_array_equal(a, b)


def master_of(H, y, C, engine="cython", weight=None):
    master = Master(y.astype(np.int64), len(H), C, np.ones(len(y)) if weight is None else weight,
                    engine)
    for c, part in enumerate(H):
        for outputs in part:
            master.add(c, master.pack(c, outputs))
    return master


@pytest.mark.parametrize("engine", ["cython", "reference"])
@pytest.mark.parametrize("C", [2.0, 1e3, 1e7])
def test_a_step_is_the_best_of_its_coordinate(engine, C):
    H, y = draw_outputs(3, 4, 50, seed=2)
    master = master_of(H, y, C, engine)
    start = np.random.default_rng(0).random((3, 4)) * (np.arange(12).reshape(3, 4) % 3 > 0)
    for c in range(3):
        for j in range(4):
            master.w[:, :4] = start
            master.refresh()

            def along(t):
                w = start.copy()
                w[c, j] = t
                return objective(H, y, C, w)

            master.visit((np.array([c]), np.array([j])), 0.0)
            best = minimize_scalar(along, bounds=(0, 20), method="bounded", options={"xatol": 1e-12})
            at = master.w[c, j]
            assert along(at) <= best.fun * (1 + 1e-14)
            assert at == pytest.approx(best.x, abs=1e-6)
            # r and e follow.
            assert master.objective() == pytest.approx(along(at), rel=1e-12)


def test_violations_are_those_of_the_derivatives():
    H, y = draw_outputs(3, 4, 40, seed=4)
    C, step = 30.0, 1e-6
    master = master_of(H, y, C)
    w = np.random.default_rng(1).random((3, 4)) * (np.arange(12).reshape(3, 4) % 2)
    master.w[:, :4] = w
    master.refresh()
    violation = master.visit(master.coordinates(), math.inf)
    np.testing.assert_array_equal(master.w[:, :4], w)  # an infinite tolerance moves none
    for t, (c, j) in enumerate(zip(*master.coordinates())):
        more, less = w.copy(), w.copy()
        more[c, j] += step
        less[c, j] -= step
        slope = (objective(H, y, C, more) - objective(H, y, C, less)) / (2 * step)
        expected = abs(slope) if w[c, j] > 0 else max(0.0, -slope)
        assert violation[t] == pytest.approx(expected, abs=1e-6)
    assert master.largest_violation() == violation.max()


@pytest.mark.parametrize("sweeps", [1, 2, 3, 7])
@pytest.mark.parametrize("C", [0.5, 20.0, 1e4])
def test_the_lower_bound_is_one(C, sweeps):
    H, y = draw_outputs(4, 6, 80, seed=sweeps)
    best = solve_weights(H, y, C, tol=1e-9)[1]["objective"]
    _, info = solve_weights(H, y, C, max_sweeps=sweeps)
    assert info["lower_bound"] <= best * (1 + 1e-12) <= info["objective"] * (1 + 2e-12)
    # Of any weights, not of good ones alone.
    init = np.random.default_rng(sweeps).random((4, 6)) * 3
    master = master_of(H, y, C)
    master.w[:, :6] = init
    master.refresh()
    assert master.lower_bound(master.largest_edge()) <= best * (1 + 1e-12)


def test_no_row_on_one_side():
    # All right: V- = 0, the closed form is log(V+ / (2 a)) and a = p / (2 C).
    y = np.array([0, 0, 1, 1])
    right = np.array([[[1, 1, -1, -1]], [[-1, -1, 1, 1]]], dtype=np.int8)
    w, info = solve_weights(right[:, :1], y, 1e4, tol=1e-12)
    # mu = exp(-2 (w_0 + w_1)...) of each row: sum w + C exp(-s) is least at s = log C.
    assert w.sum() == pytest.approx(math.log(1e4), rel=1e-12)
    assert info["objective"] == pytest.approx(math.log(1e4) + 1.0, rel=1e-12)
    # All wrong: V+ = 0, the weights stay zero, from any start.
    for init in (None, np.full((2, 1), 0.7)):
        w, info = solve_weights(-right, y, 1e4, tol=1e-12, init=init)
        assert not w.any() and info["objective"] == pytest.approx(1e4)
        assert info["lower_bound"] == pytest.approx(1e4) and info["violation"] == 0.0


@pytest.mark.parametrize("C", [1e-2, 1.0, 1e3, 1e6, 1e9, 1e12])
@pytest.mark.parametrize("flip", [0.0, 0.02, 0.4])
def test_no_overflow(C, flip):
    H, y = draw_outputs(3, 10, 60, flip=flip)
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        w, info = solve_weights(H, y, C, tol=1e-13, max_sweeps=3000)
    assert np.isfinite(w).all() and math.isfinite(info["objective"])
    assert info["objective"] == pytest.approx(objective(H, y, C, w), rel=1e-9)
    assert info["lower_bound"] <= info["objective"] * (1 + 1e-12)
    assert info["lower_bound"] >= info["objective"] * (1 - 1e-5)
    if C <= 1.0:
        assert not w.any()


def test_rounding_does_not_build_up():
    # r and e after thousands of sweeps against those from w.
    H, y = draw_outputs(3, 8, 50, seed=5)
    master = master_of(H, y, 1e6)
    for _ in range(3000):
        master.visit(master.coordinates(), 0.0)
    mu = master.mu()
    master.refresh()
    np.testing.assert_allclose(mu, master.mu(), rtol=1e-9)


@pytest.mark.parametrize("size", [1e-250, 1e-120, 1e120, 1e250])
def test_rows_out_of_range_are_renormalised(size):
    H, y = draw_outputs(3, 5, 41, seed=6)
    results = []
    for engine in ("cython", "reference"):
        for factor in (1.0, size):
            master = master_of(H, y, 1e3, engine)
            master.e *= factor
            master.r /= factor
            master.visit(master.coordinates(), 0.0)
            assert np.isfinite(master.mu()).all()
            results.append((master.w.copy(), master.mu()))
            if factor != 1.0:
                sums = master.e.sum(axis=0)
                assert (sums > 1e-3).all() and (sums < 1e3).all()
    for w, mu in results[1:]:
        np.testing.assert_allclose(w, results[0][0], rtol=1e-12)
        np.testing.assert_allclose(mu, results[0][1], rtol=1e-12)
    np.testing.assert_array_equal(results[1][0], results[3][0])


def test_no_learners():
    w, info = solve_weights(np.zeros((3, 0, 9), dtype=np.int8), GOOD[1], 10.0)
    assert w.shape == (3, 0) and info["objective"] == pytest.approx(10.0) == info["lower_bound"]
    assert info["violation"] == 0.0


def test_a_start_is_taken():
    H, y = draw_outputs(3, 5, 60)
    w, info = solve_weights(H, y, 100.0, tol=1e-9)
    again, second = solve_weights(H, y, 100.0, tol=1e-6, init=w)
    np.testing.assert_array_equal(again, w)
    assert second["sweeps"] == 1 and second["objective"] == pytest.approx(info["objective"], rel=1e-14)
    far = solve_weights(H, y, 100.0, tol=1e-9, init=np.full((3, 5), 30.0))[1]
    assert far["objective"] == pytest.approx(info["objective"], rel=1e-12)


def test_seed_and_generator():
    H, y = draw_outputs(3, 12, 60)
    runs = [solve_weights(H, y, 1e4, max_sweeps=6, random_state=seed)[0]
            for seed in (5, 5, np.random.default_rng(5), 6)]
    np.testing.assert_array_equal(runs[0], runs[1])
    np.testing.assert_array_equal(runs[0], runs[2])
    assert (runs[0] != runs[3]).any()


GOOD = draw_outputs(3, 2, 9)


@pytest.mark.parametrize("change, message", [
    ({"H": GOOD[0][0]}, "H of shape"), ({"H": GOOD[0] * 2}, "entries -1 and"),
    ({"H": GOOD[0][:, :, :0], "y": []}, "H of shape"), ({"H": GOOD[0] * 0}, "entries -1 and"), ({"H": GOOD[0][:2]}, "H is for 2 classes, y has 3"),
    ({"y": GOOD[1][:5]}, "y has shape"), ({"y": np.zeros(9)}, "one class only"),
    ({"C": 0.0}, "C=0.0"), ({"C": math.inf}, "C=inf"), ({"C": 1e16}, "C=1e[+]16"), ({"C": "1"}, "C='1'"),
    ({"tol": 0.0}, "tol=0.0"), ({"tol": -1.0}, "tol=-1.0"), ({"max_sweeps": 0}, "max_sweeps=0"),
    ({"max_sweeps": 1.5}, "max_sweeps=1.5"), ({"random_state": -1}, "random_state=-1"),
    ({"engine": "c"}, "engine='c'"), ({"init": np.zeros((2, 3))}, "init of shape"),
    ({"init": np.full((3, 2), -1.0)}, "init of shape"), ({"init": np.full((3, 2), np.nan)}, "init of"),
    ({"init": np.full((3, 2), 1e4), "H": -GOOD[0]}, "overflows at init")])
def test_errors_of_solve_weights(change, message):
    with pytest.raises(ValueError, match=message):
        solve_weights(**({"H": GOOD[0], "y": GOOD[1], "C": 10.0} | change))


# The classifier

def clusters(n=150, K=4, d=5, seed=0, noise=0.9):
    rng = np.random.default_rng([seed, n, K, d])
    y = rng.permutation(np.arange(n) % K)
    return rng.normal(size=(K, d))[y] * 1.5 + noise * rng.normal(size=(n, d)), y


def bits(model):
    return model.learners_, [w.tolist() for w in model.weights_]


def check_sound(model, X):
    """What any fitted model must obey."""
    assert len(model.learners_) == len(model.weights_) == len(model.classes_)
    for learners, w in zip(model.learners_, model.weights_):
        assert len(learners) == len(w) <= model.n_rounds_ and len(set(learners)) == len(learners)
        assert np.isfinite(w).all() and (w >= 0).all()
    assert len(list(model.staged_predict(X))) == model.n_rounds_
    assert math.isfinite(model.objective_)
    assert model.global_lower_bound_ <= model.lower_bound_ * (1 + 1e-12)
    assert model.lower_bound_ <= model.objective_ * (1 + 1e-12)
    assert model.decision_function(X).shape == (len(X), len(model.classes_))


@pytest.mark.parametrize("options", [{}, {"stage_wise": True}, {"class_wise": False},
                                     {"master": "lbfgsb"}, {"C": 1e12}])
def test_separable_data_stops_clean(options):
    X = np.array([[0.0], [0.1], [1.0], [1.1], [2.0], [2.1]])
    y = np.array([0, 0, 1, 1, 2, 2])
    model = MultiBoostClassifier(n_rounds=500, **options).fit(X, y)
    check_sound(model, X)
    assert model.score(X, y) == 1.0
    if not options.get("stage_wise"):
        assert model.converged_ and model.n_rounds_ < 20
        # No stump is missing: the optimum over all, to the tolerance.
        assert model.global_lower_bound_ >= model.objective_ * 0.97


def test_constant_features():
    y = np.array([0, 1, 1, 2])
    model = MultiBoostClassifier(n_rounds=500, C=100.0).fit(np.ones((4, 3)), y)
    check_sound(model, np.ones((4, 3)))
    assert model.n_rounds_ == 0 and model.converged_ and model.learners_ == [[], [], []]
    assert model.objective_ == pytest.approx(100.0) == pytest.approx(model.lower_bound_)
    assert (model.predict(np.ones((2, 3))) == 0).all() and not model.feature_counts().any()


def test_a_class_of_one_row():
    X, y = clusters(n=60, K=3)
    y[y == 2] = 1
    y[7] = 2
    model = MultiBoostClassifier(n_rounds=500).fit(X, y)
    check_sound(model, X)
    assert model.predict(X)[7] == 2
    model = MultiBoostClassifier(n_rounds=50, early_stopping=3).fit(X, y)  # the row is not held out
    check_sound(model, X)


def test_one_feature_of_two_values():
    # Two stumps are all there are; each class takes at most both.
    X, y = np.array([[0.0], [0.0], [1.0], [1.0]]), np.array(["a", "b", "b", "b"])
    model = MultiBoostClassifier(n_rounds=500).fit(X, y)
    check_sound(model, X)
    assert model.converged_ and max(map(len, model.learners_)) <= 2
    assert model.predict(X).tolist()[2:] == ["b", "b"]


def test_small_C_gives_the_empty_model():
    X, y = clusters()
    y = np.arange(148) % 4
    model = MultiBoostClassifier(C=1.0).fit(X[:148], y)
    assert model.n_rounds_ == 0 and model.converged_ and model.objective_ == pytest.approx(1.0)


def all_stumps(X):
    """Outputs of every stump that differs on the rows."""
    H = []
    for feature in range(X.shape[1]):
        values = np.unique(X[:, feature])
        for low, high in zip(values, values[1:]):
            h = np.where(X[:, feature] > (low + high) / 2, 1, -1)
            H += [h, -h]
    return np.array(H, dtype=np.int8)


@pytest.mark.parametrize("C", [20.0, 1e3])
def test_the_optimum_over_all_stumps(C):
    X, y = clusters(n=30, K=3, d=2, seed=1)
    X = np.round(X, 1)
    H = all_stumps(X)
    _, info = solve_weights(np.array([H] * 3), y, C, tol=1e-4)
    best = info["lower_bound"], info["objective"]
    assert best[1] - best[0] < 1e-3 * best[1]
    for rounds in (1, 3, 10):
        model = MultiBoostClassifier(n_rounds=rounds, C=C).fit(X, y)
        assert model.global_lower_bound_ <= best[1] and model.objective_ >= best[0]
    model = MultiBoostClassifier(n_rounds=500, C=C, tol=1e-4, max_sweeps=100).fit(X, y)
    check_sound(model, X)
    assert model.converged_
    assert best[0] * (1 - 1e-12) <= model.objective_ <= best[1] * (1 + 1e-3)
    assert model.objective_ * (1 - 1e-3) <= model.global_lower_bound_ <= best[1]


@pytest.mark.parametrize("options", [{}, {"stage_wise": True}, {"class_wise": False},
                                     {"master": "lbfgsb", "tol": 1e-6}])
def test_the_objective_is_that_of_the_definition(options):
    X, y = clusters()
    weight = np.arange(150) % 4 + 0.5
    model = MultiBoostClassifier(n_rounds=12, C=300.0, **options).fit(X, y, sample_weight=weight)
    check_sound(model, X)
    F = model.decision_function(X)
    loss = np.exp(F - F[np.arange(150), y][:, None]).sum(axis=1) - 1.0
    value = sum(w.sum() for w in model.weights_) + 300.0 / (weight.sum() * 3) * (weight @ loss)
    assert model.objective_ == pytest.approx(value, rel=1e-12)


def test_masters_agree():
    X, y = clusters()
    runs = [MultiBoostClassifier(n_rounds=8, C=200.0, tol=tol, max_sweeps=5000, master=master).fit(X, y)
            for master, tol in (("fcd", 1e-8), ("lbfgsb", 1e-15))]
    assert runs[0].learners_ == runs[1].learners_
    assert runs[0].objective_ == pytest.approx(runs[1].objective_, rel=1e-9)
    assert runs[0].lower_bound_ == pytest.approx(runs[0].objective_, rel=1e-6)


def test_stage_wise_leaves_the_old_weights():
    X, y = clusters()
    model = MultiBoostClassifier(n_rounds=6, C=1e3, stage_wise=True).fit(X, y)
    for before, after in zip(model._stages, model._stages[1:]):
        for c, w in enumerate(before):
            added = len(after[c]) - len(w)
            # At most the re-found learner moved.
            assert (after[c][: len(w)] != w).sum() <= 1 - added
    corrected = MultiBoostClassifier(n_rounds=6, C=1e3).fit(X, y)
    assert corrected.objective_ < model.objective_


def test_shared_learners():
    X, y = clusters()
    model = MultiBoostClassifier(n_rounds=15, class_wise=False).fit(X, y)
    check_sound(model, X)
    assert all(learners == model.learners_[0] for learners in model.learners_)


def test_weights_are_copies():
    X, y = clusters(n=60)
    weight = np.arange(60) % 4
    one = MultiBoostClassifier(n_rounds=10).fit(X, y, sample_weight=weight)
    rows = np.repeat(np.arange(60), weight)
    many = MultiBoostClassifier(n_rounds=10).fit(X[rows], y[rows])
    assert one.learners_ == many.learners_
    np.testing.assert_allclose(np.concatenate(one.weights_), np.concatenate(many.weights_), rtol=1e-8,
                               atol=1e-12)
    assert one.objective_ == pytest.approx(many.objective_, rel=1e-12)
    scaled = MultiBoostClassifier(n_rounds=10).fit(X, y, sample_weight=weight * 8.0)
    assert bits(scaled) == bits(one)


@pytest.mark.parametrize("size", [1e-300, 1e-20, 1e300])
def test_the_size_of_the_weights_does_not_matter(size):
    X, y = clusters(n=60)
    weight = np.where(y == 2, 0.0, 1.0 + np.arange(60) % 3)  # nothing of one class
    with np.errstate(all="raise", under="ignore"):
        runs = [MultiBoostClassifier(n_rounds=10).fit(X, y, sample_weight=weight * s) for s in (1, size)]
    assert runs[0].learners_ == runs[1].learners_
    np.testing.assert_allclose(np.concatenate(runs[0].weights_), np.concatenate(runs[1].weights_),
                               rtol=1e-8, atol=1e-12)
    check_sound(runs[0], X)
    assert not (runs[0].predict(X) == 2).any()


@pytest.mark.parametrize("labels", [
    np.array([3, -1, 7, 0]), np.array([0.5, 1.5, -2.0, 9.0]), np.array(["a", "d", "bb", "c"]),
    np.array(["x", "y", "z", "w"], dtype=object), np.array([1, 2, 3, 4], dtype=np.uint8)])
def test_labels_of_all_kinds(labels):
    X, y = clusters()
    order = np.argsort(np.argsort(labels))
    plain = MultiBoostClassifier(n_rounds=5).fit(X, order[y])
    model = MultiBoostClassifier(n_rounds=5).fit(X, labels[y])
    assert bits(model) == bits(plain)
    assert (model.classes_ == np.sort(labels)).all() and model.classes_.dtype == labels.dtype
    np.testing.assert_array_equal(model.predict(X), np.sort(labels)[plain.predict(X)])
    assert model.score(X, labels[y]) == plain.score(X, order[y]) > 0.7
    assert model.score(X, list(labels[y])) == model.score(X, labels[y])


def test_two_classes():
    X, y = clusters(K=2)
    model = MultiBoostClassifier(n_rounds=10).fit(X, y == 1)
    check_sound(model, X)
    assert model.classes_.tolist() == [False, True] and model.score(X, y == 1) > 0.9


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_matrix, sp.coo_array])
def test_sparse_equals_dense(kind):
    X, y = clusters()
    X[np.abs(X) < 0.6] = 0.0
    kept = X.copy()
    dense = MultiBoostClassifier(n_rounds=10).fit(X, y)
    sparse = MultiBoostClassifier(n_rounds=10).fit(kind(X), y)
    assert bits(dense) == bits(sparse) and dense.objective_ == sparse.objective_
    np.testing.assert_array_equal(dense.decision_function(X), sparse.decision_function(kind(X)))
    np.testing.assert_array_equal(X, kept)
    for a, b in zip(dense.staged_score(X, y), sparse.staged_score(kind(X), y), strict=True):
        assert a == b


def test_same_seed_threads_and_engine_give_the_same_bits():
    X, y = clusters(n=60, K=3)
    runs = [bits(MultiBoostClassifier(n_rounds=8, **options).fit(X, y))
            for options in ({}, {}, {"n_threads": 2}, {"n_threads": 0}, {"engine": "reference"},
                            {"random_state": np.random.default_rng(0)})]
    assert all(run == runs[0] for run in runs)
    assert bits(MultiBoostClassifier(n_rounds=8, random_state=1).fit(X, y)) != runs[0]


def test_staged_predictions_end_at_the_model():
    X, y = clusters()
    model = MultiBoostClassifier(n_rounds=15).fit(X, y)
    stages, scores = list(model.staged_predict(X)), list(model.staged_score(X, y))
    assert len(stages) == len(scores) == model.n_rounds_ == 15
    np.testing.assert_array_equal(stages[-1], model.predict(X))
    assert scores[-1] == model.score(X, y) > scores[0]
    # Round r is the model of r rounds.
    short = MultiBoostClassifier(n_rounds=4).fit(X, y)
    np.testing.assert_array_equal(stages[3], short.predict(X))


def test_ranked_predictions():
    X, y = clusters()
    model = MultiBoostClassifier(n_rounds=5).fit(X, y)
    ranked = model.predict_topk(X, 4)
    np.testing.assert_array_equal(ranked[:, 0], model.predict(X))
    scores = np.take_along_axis(model.decision_function(X), ranked, axis=1)
    assert (np.diff(scores, axis=1) <= 0).all()
    assert model.topk_error(X, y, 1) == pytest.approx(1 - model.score(X, y)) and model.topk_error(X, y, 4) == 0.0


def test_feature_counts():
    X, y = clusters(d=3)
    X = np.column_stack([X, np.ones(len(X))])
    model = MultiBoostClassifier(n_rounds=10).fit(X, y)
    expected = np.zeros(4, dtype=int)
    for learners, weights in zip(model.learners_, model.weights_):
        for (feature, _, _), w in zip(learners, weights):
            expected[feature] += w > 0
    np.testing.assert_array_equal(model.feature_counts(), expected)
    assert expected[3] == 0 and expected.sum() > 10


def test_other_weak_learners():
    tree = pytest.importorskip("sklearn.tree", reason="a tree of scikit-learn").DecisionTreeClassifier(
        max_depth=2, random_state=0)
    # A parity: no single feature tells the classes, so stumps cannot.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = (X[:, 0] > 0) ^ (X[:, 1] > 0)
    model = MultiBoostClassifier(n_rounds=20, weak_learner=tree, C=1e3).fit(X, y)
    check_sound(model, X)
    assert model.score(X, y) > 0.95 > MultiBoostClassifier(n_rounds=20, C=1e3).fit(X, y).score(X, y)
    assert not hasattr(tree, "tree_")  # the caller's is not trained
    assert model.global_lower_bound_ == -math.inf and math.isfinite(model.lower_bound_)
    sparse = MultiBoostClassifier(n_rounds=20, weak_learner=tree, C=1e3).fit(sp.csr_matrix(X), y)
    assert sparse.score(sp.csr_matrix(X), y) > 0.95
    shared = MultiBoostClassifier(n_rounds=5, weak_learner=tree, class_wise=False).fit(X, y)
    assert shared.learners_[0] == shared.learners_[1]
    with pytest.raises(ValueError, match="feature counts are for stumps"):
        model.feature_counts()
    # The whole tree fits the separable parts: no learner is there twice under another name.
    for c, learners in enumerate(model.learners_):
        outputs = np.array([learner.predict(X) for learner in learners])
        assert len(np.unique(outputs, axis=0)) == len(outputs)


def test_early_stopping():
    X, y = clusters(n=300, noise=2.0)
    full = MultiBoostClassifier(n_rounds=60).fit(X[:200], y[:200])
    errors = [1 - score for score in full.staged_score(X[200:], y[200:])]
    patience, stop = 4, None
    for done in range(patience + 1, len(errors) + 1):
        if min(errors[done - patience:done]) >= min(errors[: done - patience]):
            stop = done
            break
    assert stop is not None  # there is something to stop
    kept = int(np.argmin(errors[:stop])) + 1
    model = MultiBoostClassifier(n_rounds=60, early_stopping=patience)
    model.fit(X[:200], y[:200], validation=(X[200:], y[200:]))
    check_sound(model, X)
    assert model.n_rounds_ == kept < 60
    reference_ = MultiBoostClassifier(n_rounds=kept).fit(X[:200], y[:200])
    assert bits(model) == bits(reference_)
    assert model.objective_ == pytest.approx(reference_.objective_, rel=1e-13)
    assert model.lower_bound_ == pytest.approx(reference_.lower_bound_, rel=1e-12)
    # Labels that training has not seen are errors, no more.
    strange = np.where(y[200:] == 0, 77, y[200:])
    MultiBoostClassifier(n_rounds=5, early_stopping=2).fit(X[:200], y[:200], validation=(X[200:], strange))
    # Drawn from the training data: the same for the same seed.
    drawn = [MultiBoostClassifier(n_rounds=60, early_stopping=3, random_state=seed).fit(X, y)
             for seed in (1, 1, 2)]
    assert bits(drawn[0]) == bits(drawn[1]) != bits(drawn[2])
    assert drawn[0].n_rounds_ < 60


def test_parameters():
    model = MultiBoostClassifier(C=3.0, n_rounds=7)
    params = model.get_params()
    assert params["C"] == 3.0 and params["n_rounds"] == 7 and params["weak_learner"] == "stump"
    assert list(params) == ["n_rounds", "C", "weak_learner", "class_wise", "stage_wise", "max_sweeps",
                            "tol", "master", "early_stopping", "n_threads", "random_state", "verbose",
                            "engine"]
    assert model.set_params(C=5.0, tol=0.1) is model and (model.C, model.tol) == (5.0, 0.1)
    assert MultiBoostClassifier(**model.get_params()).get_params() == model.get_params()
    with pytest.raises(ValueError, match="unknown parameter 'c'; valid: n_rounds, C"):
        model.set_params(c=1)


@pytest.mark.parametrize("options, message", [
    ({"n_rounds": 0}, "n_rounds=0"), ({"n_rounds": 2.0}, "n_rounds=2.0"), ({"C": -1}, "C=-1"),
    ({"C": math.nan}, "C=nan"), ({"tol": 0}, "tol=0"), ({"max_sweeps": 0}, "max_sweeps=0"),
    ({"master": "x"}, "master='x'"), ({"engine": "x"}, "engine='x'"), ({"n_threads": -1}, "n_threads=-1"),
    ({"early_stopping": 0}, "early_stopping=0"), ({"weak_learner": "tree"}, "weak_learner='tree'"),
    ({"weak_learner": 3}, "weak_learner=3"), ({"random_state": "x"}, "random_state='x'"),
    ({"stage_wise": True, "master": "lbfgsb"}, "stage_wise is for master")])
def test_errors_of_parameters(options, message):
    X, y = clusters(n=20)
    model = MultiBoostClassifier(**options)
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)
    with pytest.raises(ValueError, match="not fitted"):
        model.predict(X)


def test_errors_of_data():
    X, y = clusters(n=20)
    fit = MultiBoostClassifier(n_rounds=2).fit
    for arguments, message in [
            ((X[0], y), "two-dimensional"), ((X[:, :0], y), "X is empty"), ((X, y[:5]), "y has shape"),
            ((X, np.zeros(20)), "one class only"), ((X * np.nan, y), "must be finite"),
            ((X, y, np.ones(3)), "sample_weight has shape"), ((X, y, -np.ones(20)), "is negative"),
            ((X, y, np.zeros(20)), "all samples have weight zero"),
            ((X, y, None, (X, y)), "validation is for early_stopping")]:
        with pytest.raises(ValueError, match=message):
            fit(*arguments)
    stopping = MultiBoostClassifier(n_rounds=2, early_stopping=1).fit
    for validation, message in [((X[:, :2], y), "validation X has 2 features, X has 5"),
                                ((X, y[:3]), "y has shape"), ((X[:0], y[:0]), "no rows")]:
        with pytest.raises(ValueError, match=message):
            stopping(X, y, validation=validation)
    with pytest.raises(ValueError, match="no class has two rows"):
        stopping(X[:2], [0, 1])
    model = fit(X, y)
    for call in (model.predict, model.decision_function, model.staged_predict):
        with pytest.raises(ValueError, match="X has 4 features, the model has 5"):
            call(X[:, :4])
    with pytest.raises(ValueError, match="y has shape"):
        model.score(X, y[:4])
    with pytest.raises(ValueError, match="y has shape"):
        model.staged_score(X, y[:4])
    fresh = MultiBoostClassifier()
    for call in (lambda: fresh.predict(X), lambda: fresh.staged_predict(X), fresh.feature_counts,
                 lambda: fresh.save("x.npz")):
        with pytest.raises(ValueError, match="not fitted"):
            call()


def test_a_failed_fit_leaves_the_model():
    X, y = clusters()
    model = MultiBoostClassifier(n_rounds=3).fit(X, y)
    before = model.predict(X)
    with pytest.raises(ValueError):
        model.fit(X[:, :2], np.zeros(150))
    np.testing.assert_array_equal(model.predict(X), before)


def test_verbose_tells_of_rounds(capsys):
    X, y = clusters()
    MultiBoostClassifier(n_rounds=3, verbose=1).fit(X, y)
    captured = capsys.readouterr()
    assert captured.out == ""
    MultiBoostClassifier(n_rounds=3).fit(X, y)
    assert capsys.readouterr() == ("", "")
