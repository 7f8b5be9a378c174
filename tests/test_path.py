"""The regularization path: every lambda certified, in closed form between breakpoints."""
import csv
import pickle
import tracemalloc
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

import fastmc
from fastmc._certificate import block_gaps, certificate, dual_value, infeasibility, primal_value
from fastmc._path import point_of
from fastmc._problem import Problem
from fastmc._solvers import make_solver
from fastmc.losses import make_spec

SOLVERS = {
    "sdca": {"solver": "sdca"},
    "sdca gap": {"solver": "sdca", "sampling": "gap"},
    "pairwise": {"solver": "pairwise", "sampling": "gap", "cache_size": 5},
    "away": {"solver": "away", "sampling": "uniform"},
}
SLOW = {"bcfw": {"solver": "bcfw", "cache_size": 3}, "fw": {"solver": "fw"}}


def spec_of(loss, n_classes, **options):
    names = ("k", "rho", "own_class")
    return make_spec(loss, n_classes, **{n: options[n] for n in names if n in options})


def check_path(path, X, y, eps, lam_min, n_lams=50, data=None, smoothing=0.0, loss="maxhinge", **options):
    """Certificates recomputed from the definitions, at drawn lambdas and at the breakpoints."""
    problem = Problem(X, y, **(data or {}))
    spec = spec_of(loss, problem.n_classes, **options)
    assert path.status == "converged" and path.lam_min == lam_min and path.eps == eps
    assert (np.diff(path.lams) < 0).all()
    rng = np.random.default_rng(0)
    top = 2 * path.lams[0]
    lams = np.exp(rng.uniform(np.log(lam_min), np.log(top), size=n_lams))
    size = Problem(abs(X), y, **(data or {}))
    for lam in [lam_min, *path.lams[:4], *lams]:
        model = path.model_at(lam)
        dual = model.dual_.toarray()
        found = certificate(problem, spec, model.weights, dual, lam, smoothing)
        assert found.relative_gap <= eps + 1e-9
        np.testing.assert_allclose(model.certificate, found, rtol=1e-9, atol=1e-9)
        assert model.certificate == path.certificate_at(lam)
        assert infeasibility(problem, spec, dual) <= 1e-12
        check_dual_of_weights(problem, spec, path, model, dual, smoothing, size)
        assert (model.lam, model.smoothing, model.status) == (lam, smoothing, "converged")
        assert model.C == pytest.approx(1 / (lam * len(y)), rel=1e-14)
    for at, lam in enumerate(path.lams):
        recorded = path.primal[at], path.dual[at], path.gap[at], path.relative_gap[at]
        assert recorded == path.certificate_at(lam)
    # Above the first breakpoint: the closed form, W = G / lambda.
    one, two = path.model_at(2 * top), path.model_at(4 * top)
    np.testing.assert_array_equal(one.dual_.toarray(), two.dual_.toarray())
    np.testing.assert_allclose(one.weights, 2 * two.weights, rtol=1e-14, atol=0)


def check_dual_of_weights(problem, spec, path, model, dual, smoothing, size):
    """W is W(A), up to rounding of its terms, for A of the breakpoint; the dual is t A with the best t."""
    above = path.lams[path.lams >= model.lam]
    lam = above[-1] if len(above) else model.lam
    origin = path.model_at(lam).dual_.toarray()
    assert infeasibility(problem, spec, origin) <= 1e-12
    terms = size.weights_of(np.abs(origin), lam)
    assert (np.abs(model.weights - problem.weights_of(origin, lam)) <= 1e-13 * terms).all()
    t = np.vdot(dual, origin) / np.vdot(origin, origin) if origin.any() else 1.0
    assert t <= 1 + 1e-14 and (lam > model.lam or t == 1)
    np.testing.assert_allclose(dual, t * origin, rtol=1e-12, atol=0)
    for other in (0.0, 0.9 * t, 0.999 * t, min(1.0, 1.001 * t), min(1.0, 1.1 * t)):
        if lam > model.lam:
            value = dual_value(problem, other * origin, model.lam, smoothing)
            assert value <= model.certificate.dual + 1e-12 * model.certificate.primal


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
@pytest.mark.parametrize("solver", SOLVERS)
def test_every_lambda_is_certified(some_digits, loss_options, solver, smoothing):
    # Weights, bias and costs take turns.
    p, at = some_digits, list(SOLVERS).index(solver) + int(smoothing > 0)
    cost = [None, p.cost, p.costs][at % 3]
    if loss_options["loss"] == "structured" and cost is None:
        cost = p.costs
    data = {"cost": cost, "bias": 0.5 if at % 2 else None,
            "sample_weight": p.weight if at % 4 else None}
    eps, lam_min = [0.1, 0.05][at % 2], 1.0 / 300
    path = fastmc.path(p.X, p.y, eps, lam_min, smoothing=smoothing, **data, **SOLVERS[solver],
                       **loss_options)
    check_path(path, p.X, p.y, eps, lam_min, data=data, smoothing=smoothing, **loss_options)


@pytest.mark.parametrize("solver", SLOW)
@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_slow_solvers_at_a_loose_bound(some_digits, loss_options, solver, smoothing):
    p, lam_min = some_digits, 1.0 / 30
    data = {"cost": p.cost, "sample_weight": p.weight}
    path = fastmc.path(p.X, p.y, 0.3, lam_min, smoothing=smoothing, **data, **SLOW[solver],
                       **loss_options)
    check_path(path, p.X, p.y, 0.3, lam_min, 20, data, smoothing, **loss_options)


def test_other_options_reach_the_problem(some_digits):
    p = some_digits
    data = {"class_weight": {3: 2.0, 5: 0.0}, "sample_weight": p.weight, "bias": 1.0}
    path = fastmc.path(sp.csr_array(p.X.astype(np.float32)), p.y, 0.1, 0.01, loss="usunier", k=2, **data)
    check_path(path, sp.csr_array(p.X.astype(np.float32)), p.y, 0.1, 0.01, data=data, loss="usunier", k=2)


def test_default_end_is_C_100(some_digits):
    X, y = some_digits.X[:60], some_digits.y[:60]
    path = fastmc.path(X, y)
    assert path.eps == 0.1 and path.lam_min == 1.0 / (100 * 60)
    check_path(path, X, y, 0.1, 1.0 / 6000)
    assert path.model_at(path.lam_min).C == pytest.approx(100, rel=1e-14)
    assert len(path) == len(path.lams) and path.C[0] == 1.0 / (path.lams[0] * 60)


def test_clinc150(data_dir):
    X, y = fastmc.load_svmlight(data_dir / "clinc150_tfidf.train.svm.bz2")
    rows = np.random.default_rng(0).permutation(len(y))[:1500]
    X, y = X[rows], y[rows]
    for options in ({}, {"solver": "pairwise", "sampling": "gap", "cache_size": 10, "loss": "topk", "k": 5}):
        path = fastmc.path(X, y, 0.1, 0.1 / 1500, **options)
        options = {name: value for name, value in options.items() if name in ("loss", "k")}
        check_path(path, X, y, 0.1, 0.1 / 1500, 10, **options)


# ---------------------------------------------------------------- closed forms

def some_point(draw, loss_options, smoothing, lam):
    """A solver after one pass, its problem, and its dual, dense."""
    p = draw(n=30, m=5, d=4, seed=1)
    problem = Problem(p.X, p.y, p.cost, None, None, p.weight)
    solver = make_solver("sdca", problem, spec_of(n_classes=5, **loss_options), lam, smoothing)
    list(solver.sweep(np.random.default_rng(0)))
    return solver, problem, solver.dual_matrix().toarray()


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
@pytest.mark.parametrize("lam", [0.02, 0.5])
def test_gap_of_a_scaled_dual(draw, loss_options, smoothing, lam):
    # P' = rho R + L and D' = t b - t^2 (R / rho + Q), with W kept and the best t.
    solver, problem, dual = some_point(draw, loss_options, smoothing, lam)
    spec, weights, weight = solver.spec, problem.weights_of(dual, lam), problem.weight
    before = certificate(problem, spec, weights, dual, lam, smoothing)
    point = point_of(solver)
    regularizer, scales = 0.5 * lam * np.sum(weights**2), []
    curvature = sum(0.5 * smoothing / w * np.sum(alpha**2) / 30 for alpha, w in zip(dual, weight) if w > 0)
    linear = -np.sum(problem.costs(slice(None)) * dual) / 30
    assert before.gap > 1e-4 and (curvature > 1e-4) == (smoothing > 0)
    assert (point.regularizer, point.risk, point.linear, point.curvature) == pytest.approx(
        (regularizer, before.primal - regularizer, linear, curvature), rel=1e-12)
    for rho in (1.0, 0.95, 0.4, 0.01, 1e-9):
        t = point.scale_at(rho * lam)
        best = min(1.0, linear / (2 * (regularizer / rho + curvature)))
        assert t == (1.0 if rho == 1.0 else pytest.approx(best, rel=1e-12))
        after = certificate(problem, spec, weights, t * dual, rho * lam, smoothing)
        np.testing.assert_allclose(point.certificate_at(rho * lam), after, rtol=1e-12, atol=1e-13)
        for other in (*np.linspace(0, 1, 11), rho, 0.999 * t, min(1.0, 1.001 * t)):
            assert rho == 1.0 or dual_value(problem, other * dual, rho * lam, smoothing) <= after.dual + 1e-13
        scales.append(t)
    # Both cases are there: t = 1 and t < 1.
    assert scales[-1] < 1e-5 and (lam < 0.1 or scales[1] == 1.0)


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
@pytest.mark.parametrize("lam", [0.02, 0.5])
def test_how_far_a_point_lasts(draw, loss_options, smoothing, lam):
    solver, problem, dual = some_point(draw, loss_options, smoothing, lam)
    weights, point = problem.weights_of(dual, lam), point_of(solver)
    begin = point.certificate_at(lam).relative_gap
    for eps in (begin + 1e-3, 0.5 * (1 + begin), 0.999):
        end = point.lasts_until(eps)
        assert 0 < end < lam and point.certificate_at(end).relative_gap <= eps
        for factor in (1 - 1e-9, 0.9, 0.1):
            assert point.certificate_at(factor * end).relative_gap > eps
        gaps = [certificate(problem, solver.spec, weights, point.scale_at(at) * dual, at, smoothing)[3]
                for at in np.geomspace(end, lam, 20)]
        assert max(gaps) == pytest.approx(eps, rel=1e-9) and np.argmax(gaps) == 0


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_lambda_max(some_digits, loss_options, smoothing):
    # Certified from there up, and no longer 3 % below: it is not just any large number.
    p = some_digits
    cost = p.costs if loss_options["loss"] == "structured" else None
    problem, spec = Problem(p.X, p.y, cost), spec_of(n_classes=10, **loss_options)
    path = fastmc.path(p.X, p.y, 0.1, 0.5, cost=cost, smoothing=smoothing, **loss_options)
    top = path.lams[0]
    assert top > 0.6
    dual = path.model_at(2 * top).dual_.toarray()

    def gap(lam):
        return certificate(problem, spec, problem.weights_of(dual, lam), dual, lam, smoothing).relative_gap

    for factor in (1.0, 1.001, 1.5, 10.0, 1e3, 1e6):
        assert gap(factor * top) <= 0.1 + 1e-12
    assert gap(0.97 * top) > 0.1
    # A^0 solves the problem at W = 0.
    assert gap(1e12) <= 1e-9


@pytest.mark.parametrize("scale", [1e-12, 1e-100, 1e12, 1e100])
def test_lambda_max_at_any_scale(draw, scale):
    # lambda ~ scale of the costs to the -1, of the features to the 2.
    p = draw(n=40, m=4, d=5, empty=0)
    X = p.X.toarray()
    plain = fastmc.path(X, p.y, 0.1, 0.2, cost=p.cost)
    for other, factor in ((fastmc.path(X * scale, p.y, 0.1, 0.2 * scale**2, cost=p.cost), scale**2),
                          (fastmc.path(X, p.y, 0.1, 0.2 / scale, cost=scale * p.cost), 1 / scale)):
        assert other.status == "converged"
        # The bisections start apart and stop within 1 %.
        assert 0.98 < other.lams[0] / factor / plain.lams[0] < 1.02
        assert (other.relative_gap <= 0.1).all()


@pytest.mark.parametrize("solver", ["sdca", "pairwise"])
def test_a_path_survives_a_pickle(draw, solver):
    p = draw(n=40)
    path = fastmc.path(p.X, p.y, 0.1, 0.01, solver=solver)
    again = pickle.loads(pickle.dumps(path))
    for lam in (0.01, path.lams[0], 2 * path.lams[0]):
        ours, theirs = path.model_at(lam), again.model_at(lam)
        np.testing.assert_array_equal(ours.weights, theirs.weights)
        np.testing.assert_array_equal(ours.dual_.toarray(), theirs.dual_.toarray())
        assert ours.certificate == theirs.certificate


def test_memory_of_a_path():
    # Less than any array of n x m takes: the lists of the breakpoints are short, and W is small.
    n, m, d = 20000, 200, 300
    y = np.arange(n) % m
    X = sp.random_array((n, d), density=0.01, random_state=0, format="csr")
    X += sp.csr_array((np.full(n, 0.5), y, np.arange(n + 1)), shape=(n, d))
    tracemalloc.start()
    try:
        path = fastmc.path(X, y, 0.3, 0.01 / n)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(path) > 2 and peak < 4 * n * m


def test_weights_are_constant_between_breakpoints(some_digits):
    p = some_digits
    path = fastmc.path(p.X, p.y, 0.1, 0.01, loss="topk", k=3, solver="pairwise")
    upper, lower = path.lams[:-1], path.lams[1:]
    for at in (0, len(lower) // 2, len(lower) - 1):
        inside = [upper[at], 0.5 * (upper[at] + lower[at]), lower[at] * (1 + 1e-9)]
        models = [path.model_at(lam) for lam in inside]
        for model in models[1:]:
            np.testing.assert_array_equal(model.weights, models[0].weights)
        assert not np.array_equal(path.model_at(lower[at]).weights, models[0].weights)
        gaps = [model.certificate.relative_gap for model in models]
        # The gap grows down to the next breakpoint, where it is used up.
        assert gaps[0] < gaps[1] < gaps[2] and gaps[2] == pytest.approx(0.1, rel=1e-6)
        assert gaps[0] <= 0.06 + 1e-12


# ---------------------------------------------------------------- models, table, validation

@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_a_model_of_the_path_starts_training(some_digits, tmp_path, smoothing):
    p = some_digits
    options = dict(loss="usunier", k=2, smoothing=smoothing, sample_weight=p.weight)
    path = fastmc.path(p.X, p.y, 0.1, 0.01, **options)
    for lam in (0.01, 0.3, 2 * path.lams[0]):
        start = path.model_at(lam)
        # It is certified to eps already: no pass is needed.
        model = fastmc.train(p.X, p.y, init=start, lam=lam, tol=0.1 + 1e-9, **options)
        assert model.n_passes == 0 and model.status == "converged"
        if model.weights.any():
            np.testing.assert_array_equal(model.weights, start.weights)
            np.testing.assert_allclose(model.certificate, start.certificate, rtol=1e-9, atol=1e-9)
        else:
            # Above lambda_max W = 0 can have the lower primal; the dual certifies it as well.
            assert lam > path.lams[0] and model.certificate.primal < start.certificate.primal
            assert model.certificate.dual == pytest.approx(start.certificate.dual, rel=1e-9)
        start.save(tmp_path / "model.npz")
        again = fastmc.train(p.X, p.y, init=fastmc.load_model(tmp_path / "model.npz"), lam=lam,
                             tol=1e-3, solver="pairwise", max_passes=5000, **options)
        assert again.status == "converged"
        assert again.certificate.primal <= start.certificate.primal
        assert again.certificate.primal >= start.certificate.dual - 1e-12


def test_columns_and_csv(some_digits, tmp_path):
    p = some_digits
    X, y = p.X[:200], p.y[:200]
    held_out = p.X[200:], p.y[200:]
    path = fastmc.path(X, y, 0.1, 0.01, loss="topk", k=3, validation=held_out)
    columns = path.columns()
    assert list(columns) == ["lam", "C", "primal", "dual", "gap", "relative_gap", "passes",
                             "seconds", "top1_error", "top3_error"]
    assert path.k == 3 and {len(column) for column in columns.values()} == {len(path)}
    np.testing.assert_array_equal(columns["top3_error"], path.topk_error)
    # The errors are those of the models, also where nobody solved.
    for at in range(len(path)):
        model = path.model_at(path.lams[at])
        assert path.top1_error[at] == model.topk_error(*held_out, 1)
        assert path.topk_error[at] == model.topk_error(*held_out, 3)
    assert path.top1_error[-1] < path.top1_error[0]
    assert (np.diff(path.n_passes) >= 0).all() and (np.diff(path.seconds) >= 0).all()
    path.to_csv(tmp_path / "path.csv")
    with open(tmp_path / "path.csv", newline="") as file:
        header, *rows = csv.reader(file)
    assert header == list(columns)
    np.testing.assert_array_equal(np.array(rows, dtype=float), np.column_stack(list(columns.values())))


def test_ranks_of_the_recorded_error(some_digits):
    X, y = some_digits.X[:100], some_digits.y[:100]
    assert list(fastmc.path(X, y, 0.2, 0.1, validation=(X, y)).columns())[-1] == "top5_error"
    few = y % 3
    assert list(fastmc.path(X, few, 0.2, 0.1, validation=(X, few)).columns())[-1] == "top2_error"
    path = fastmc.path(X, y, 0.2, 0.1)
    assert path.top1_error is None and path.topk_error is None
    assert list(path.columns())[-1] == "seconds"


@pytest.mark.parametrize("solver", [*SOLVERS, *SLOW])
def test_same_seed_same_bits(draw, solver):
    p = draw(n=40, m=4, d=5)
    options = {**SOLVERS, **SLOW}[solver]
    paths = [fastmc.path(p.X, p.y, 0.1, 0.05, loss="topk", k=2, random_state=seed, **extra, **options)
             for seed, extra in ((3, {}), (np.random.default_rng(3), {}), (3, {"engine": "reference"}))]
    for other in paths[1:]:
        np.testing.assert_array_equal(paths[0].lams, other.lams)
        for lam in (0.05, paths[0].lams[1]):
            ours, theirs = paths[0].model_at(lam), other.model_at(lam)
            np.testing.assert_array_equal(ours.weights, theirs.weights)
            np.testing.assert_array_equal(ours.dual_.toarray(), theirs.dual_.toarray())


# ---------------------------------------------------------------- budgets

@pytest.mark.parametrize("budget, status, eps", [
    ({"max_passes": 1}, "max_passes", 1e-6), ({"max_passes": 2}, "max_passes", 0.02),
    ({"max_time": 1e-9}, "time_limit", 0.1)])
def test_budgets_end_the_path_early(some_digits, budget, status, eps):
    p = some_digits
    problem, spec = Problem(p.X, p.y), make_spec("maxhinge", 10)
    with pytest.warns(fastmc.ConvergenceWarning, match=rf"ended early \({status}\) at lam="):
        path = fastmc.path(p.X, p.y, eps, 1e-5, solver="fw", **budget)
    assert path.status == status and 1e-5 < path.lam_min <= path.lams[-1]
    assert len(path) >= 1
    # What it serves is certified all the same.
    for lam in (path.lam_min, path.lams[-1], path.lams[0], 2 * path.lams[0]):
        model = path.model_at(lam)
        found = certificate(problem, spec, model.weights, model.dual_.toarray(), lam)
        assert found.relative_gap <= eps + 1e-12
    with pytest.raises(ValueError, match="is below lam_min="):
        path.model_at(path.lam_min * (1 - 1e-9))


def test_a_budget_that_ends_the_first_solve_leaves_a_table(some_digits, tmp_path):
    p = some_digits
    with pytest.warns(fastmc.ConvergenceWarning):
        path = fastmc.path(p.X, p.y, 0.1, max_time=1e-9, validation=(p.X, p.y))
    assert len(path) == 1 and path.n_passes.tolist() == [0]
    assert path.top1_error[0] == path.model_at(path.lams[0]).topk_error(p.X, p.y, 1)
    path.to_csv(tmp_path / "path.csv")
    assert len((tmp_path / "path.csv").read_text().splitlines()) == 2


def test_enough_budget_does_not_warn(some_digits):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        path = fastmc.path(some_digits.X, some_digits.y, 0.1, 0.1, max_time=1000.0)
    assert path.status == "converged"


# ---------------------------------------------------------------- errors

@pytest.mark.parametrize("options, message", [
    ({"eps": 0.0}, "eps=0.0 must be"), ({"eps": 1.0}, "eps=1.0 must be"), ({"eps": -0.1}, "eps=-0.1"),
    ({"eps": np.nan}, "eps=nan"), ({"eps": "small"}, "eps='small'"), ({"eps": 1e-17}, "eps=1e-17 must be"),
    ({"lam_min": 0.0}, "lam_min=0.0 must be"), ({"lam_min": -1}, "lam_min=-1"),
    ({"lam_min": np.inf}, "lam_min=inf"), ({"lam_min": "1"}, "lam_min='1'"),
    ({"solver": "stdfw"}, "solver='stdfw' cannot follow a path"),
    ({"solver": "pg"}, "solver='pg' cannot follow a path"),
    ({"solver": "newton"}, "solver='newton' is unknown"),
    ({"sampling": "gap", "solver": "fw"}, "sampling='gap' is for block solvers"),
    ({"cache_size": 2}, "cache_size=2 is for bcfw"),
    ({"max_passes": 0}, "max_passes=0 must be"), ({"max_time": 0.0}, "max_time=0.0 must be"),
    ({"engine": "fast"}, "engine='fast' is unknown"), ({"random_state": -1}, "random_state=-1"),
    ({"smoothing": -1.0}, "smoothing=-1.0 must be"), ({"loss": "hinge"}, "loss='hinge' is unknown"),
    ({"loss": "structured"}, "loss='structured' needs cost"),
    ({"k": 2}, "loss='maxhinge' takes no k"),
], ids=lambda value: str(value)[:40])
def test_argument_errors(options, message):
    with pytest.raises(ValueError) as info:
        fastmc.path(None, None, **options)
    assert str(info.value).startswith(message)


@pytest.mark.parametrize("lam", [0, -1.0, np.nan, np.inf, "1", None, True, [1.0]])
def test_errors_of_a_bad_lambda(draw, lam):
    p = draw()
    path = fastmc.path(p.X, p.y, 0.2, 0.1)
    for ask in (path.model_at, path.certificate_at):
        with pytest.raises(ValueError) as info:
            ask(lam)
        assert str(info.value) == f"lam={lam!r} must be a finite number above 0"


def test_errors_below_the_end(draw):
    p = draw(n=40)
    for lam_min in (0.1, 50.0):
        # 50 is above lambda_max: the path is the closed form alone, and ends there all the same.
        path = fastmc.path(p.X, p.y, 0.2, lam_min)
        assert (path.lams[0] == lam_min) == (lam_min == 50.0)
        for lam in (0.999 * lam_min, 0.5 * lam_min, 1e-10):
            with pytest.raises(ValueError, match=f"lam={lam:g} is below lam_min={lam_min:g}"):
                path.model_at(lam)
        assert path.model_at(lam_min).certificate.relative_gap <= 0.2 + 1e-12


# ---------------------------------------------------------------- degenerate data

def corner_case(name):
    rng = np.random.default_rng(4)
    X, y, data = rng.normal(size=(30, 4)), np.arange(30) % 4, {}
    X[:3] = 0.0
    if name == "all rows empty":
        X[:] = 0.0
    elif name == "one feature":
        X = X[:, :1]
    elif name == "two classes":
        y %= 2
    elif name == "all costs zero":
        data["cost"] = np.zeros((4, 4))
    elif name == "free errors":
        data["cost"] = (rng.random((4, 4)) < 0.5) * (1.0 - np.eye(4))
    elif name == "separable":
        X = np.eye(4)[y]
    elif name == "equal columns":
        X[:] = 1.0
    else:
        data["sample_weight"] = np.where(np.arange(30) == 7, 2.0, 0.0)
    return X, y, data


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
@pytest.mark.parametrize("name", ["all rows empty", "one feature", "two classes", "all costs zero",
                                  "free errors", "separable", "equal columns", "one sample of weight"])
def test_corner_cases(name, smoothing):
    X, y, data = corner_case(name)
    top = int(y.max())
    for solver in ("sdca", "pairwise", "away"):
        for loss in ({"loss": "maxhinge"}, {"loss": "topk", "k": top}, {"loss": "usunier", "k": top}):
            path = fastmc.path(X, y, 0.1, 0.01, solver=solver, smoothing=smoothing, **data, **loss)
            check_path(path, X, y, 0.1, 0.01, 10, data, smoothing, **loss)
    if name in ("all rows empty", "all costs zero"):
        assert path.lams.tolist() == [0.01] and not path.model_at(0.01).weights.any()


def test_without_loss_there_is_nothing_below(draw):
    # Separable data at a tiny lambda: W stops growing once its loss is gone.
    X, y = np.eye(4)[np.arange(20) % 4], np.arange(20) % 4
    path = fastmc.path(X, y, 0.1, 1e-12)
    problem, spec = Problem(X, y), make_spec("maxhinge", 4)
    model = path.model_at(1e-12)
    assert np.abs(model.weights).max() < 10
    found = certificate(problem, spec, model.weights, model.dual_.toarray(), 1e-12)
    assert found.relative_gap <= 0.1 + 1e-9
    assert primal_value(problem, spec, model.weights, 1e-12) < 1e-10
    assert block_gaps(problem, spec, model.weights, model.dual_.toarray()).min() >= -1e-12
