"""train(): optima, certificates, stop rules, warm starts, options."""
import os
import subprocess
import sys
import threading
import time
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

import fastmc
from fastmc import _certificate, _solver_base
from fastmc._problem import Problem
from fastmc._solvers import make_solver
from fastmc.losses import make_spec

MONOTONE = ["sdca", "bcfw", "pairwise", "away", "fw"]
ALL_SOLVERS = {
    "sdca": {}, "sdca uniform": {"sampling": "uniform"}, "sdca cyclic": {"sampling": "cyclic"},
    "sdca gap": {"sampling": "gap"},
    "bcfw": {}, "bcfw averaging": {"averaging": True}, "bcfw cache": {"cache_size": 4},
    "pairwise": {}, "pairwise gap": {"sampling": "gap", "cache_size": 10}, "away": {},
    "fw": {}, "stdfw": {}, "pg": {},
}
# Rounding of objectives around 1.
EPS = 1e-12

# Optimal primal objectives on digits / 16, C = 0.1, no bias, for smoothing 0 and 0.5; from two
# independent implementations.
DISTANCE = np.abs(np.subtract.outer(np.arange(10), np.arange(10)))
OPTIMA = {
    "maxhinge": (dict(loss="maxhinge"), 0.19628905, 0.10753763),
    "usunier 2": (dict(loss="usunier", k=2), 0.16562160, 0.10503064),
    "topk 2": (dict(loss="topk", k=2), 0.16562160, 0.10503064),
    "usunier 3": (dict(loss="usunier", k=3), 0.14389794, 0.09958905),
    "topk 3": (dict(loss="topk", k=3), 0.13366317, 0.08944825),
    "topk 2, own out": (dict(loss="topk", k=2, own_class=False), 0.15125287, 0.09188043),
    "topk 3, own out": (dict(loss="topk", k=3, own_class=False), 0.11957218, 0.07604443),
    "wusunier": (dict(loss="wusunier", rho=np.arange(5, 0, -1) / 15), 0.13886242, 0.09865345),
    "structured": (dict(loss="structured", cost=DISTANCE), 1.91435692, 1.69924318),
}


@pytest.fixture(params=ALL_SOLVERS)
def solver_options(request):
    return {"solver": request.param.split()[0], **ALL_SOLVERS[request.param]}


@pytest.fixture
def quiet():
    """Budgets end most trainings here: no warnings of that."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fastmc.ConvergenceWarning)
        yield


def solve(p, **options):
    """A model close to the optimum."""
    return fastmc.train(p.X, p.y, **{"tol": 1e-9, "max_passes": 100_000, **options})


def recomputed(model, p, cost=None, bias=None, weight=None):
    """The certificate of a model by the definitions, from W and A alone."""
    problem = Problem(p.X, p.y, cost, bias, None, weight)
    dual = model.dual_.toarray()
    assert _certificate.infeasibility(problem, model.spec, dual) <= 1e-12
    return _certificate.certificate(problem, model.spec, model.weights, dual, model.lam, model.smoothing)


def assert_same_optimum(a, b):
    """The intervals [dual, primal] of two models share a point, and both are short."""
    for model in (a, b):
        assert model.status == "converged"
    slack = EPS * a.certificate.primal
    assert a.certificate.dual <= b.certificate.primal + slack
    assert b.certificate.dual <= a.certificate.primal + slack


def assert_same_bits(a, b):
    np.testing.assert_array_equal(a.weights, b.weights)
    np.testing.assert_array_equal(a.dual_.toarray(), b.dual_.toarray())


# Optima

@pytest.mark.parametrize("smoothing", [0.0, 0.5])
@pytest.mark.parametrize("name", OPTIMA)
def test_optima_on_digits(digits, name, smoothing):
    options, *optima = OPTIMA[name]
    optimum = optima[smoothing > 0]
    model = fastmc.train(*digits, C=0.1, smoothing=smoothing, tol=1e-7, max_passes=20_000, **options)
    primal, dual, gap, relative_gap = model.certificate
    assert model.status == "converged" and relative_gap <= 1e-7
    assert gap == primal - dual and relative_gap == gap / primal
    assert primal == pytest.approx(optimum, rel=1e-6)
    assert dual == pytest.approx(optimum, rel=1e-6)


@pytest.mark.parametrize("smoothing", [0.0, 0.5])
@pytest.mark.parametrize("name", OPTIMA)
@pytest.mark.parametrize("solver", ["bcfw", "averaging", "fw", "stdfw", "pg"])
def test_slow_solvers_bracket_the_optimum_on_digits(digits, name, smoothing, solver, quiet):
    options, *optima = OPTIMA[name]
    optimum = optima[smoothing > 0]
    block = solver in ("bcfw", "averaging")
    model = fastmc.train(*digits, C=0.1, smoothing=smoothing, tol=1e-7, max_passes=20 if block else 250,
                         **options, solver="bcfw" if block else solver, averaging=solver == "averaging")
    # The optimum is known to eight decimals.
    assert model.certificate.dual <= optimum + 1e-8
    assert model.certificate.primal >= optimum - 1e-8
    assert model.history["gap"][-1] < model.history["gap"][0]
    if block:
        assert model.certificate.relative_gap < 0.25


@pytest.mark.parametrize("C, options", [(0.1, {}), (1.0, {}), (10.0, {}), (1.0, dict(loss="topk", k=3))])
def test_the_default_tolerance_is_kept_at_every_C(digits, assert_certified, C, options):
    X, y = digits
    model = fastmc.train(X, y, C=C, max_passes=20_000, **options)
    found = _certificate.certificate(Problem(X, y), model.spec, model.weights, model.dual_.toarray(), model.lam)
    assert model.status == "converged"
    assert_certified(model, found)
    assert 0 < found.dual <= found.primal and found.relative_gap <= 1e-3 * (1 + 1e-9)


@pytest.mark.parametrize("C", [0.1, 1.0, 10.0])
def test_the_default_tolerance_is_kept_on_newsgroups(data_dir, assert_certified, C):
    X, y = fastmc.load_svmlight(data_dir / "news20_bydate_tfidf.train.svm.bz2")
    model = fastmc.train(X, y, "topk", k=5, C=C)
    assert model.status == "converged"
    found = _certificate.certificate(Problem(X, y), model.spec, model.weights, model.dual_.toarray(), model.lam)
    assert found.relative_gap <= 1e-3 * (1 + 1e-9) and found.dual <= found.primal
    assert_certified(model, found)


@pytest.mark.parametrize("smoothing", [0.0, 0.5])
def test_names_for_the_same_loss(draw, smoothing):
    p = draw(m=6)
    for same in ([("maxhinge", {}), ("crammer_singer", {}), ("topk", {"k": 1}), ("usunier", {"k": 1}),
                  ("wtopk", {"rho": [1.0]}), ("topk", {"k": 1, "own_class": False}),
                  ("structured", {"cost": 1 - np.eye(6)})],
                 [("topk", {"k": 2}), ("usunier", {"k": 2}), ("wusunier", {"rho": [0.5, 0.5]})],
                 [("topk", {"k": 3}), ("wtopk", {"rho": [1 / 3, 1 / 3, 1 / 3]})],
                 [("usunier", {"k": 5}), ("wusunier", {"rho": [0.2] * 5})]):
        models = [solve(p, loss=loss, smoothing=smoothing, **options) for loss, options in same]
        for model in models[1:]:
            assert_same_optimum(models[0], model)


def test_lam_is_the_inverse_of_C_n(draw):
    p = draw()
    a, b = solve(p, C=4.0), solve(p, lam=1 / (4.0 * 20))
    assert (a.C, a.lam) == (b.C, b.lam) == (4.0, 1 / 80)
    assert_same_bits(a, b)


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_solvers_agree(draw, loss_options, smoothing, quiet):
    p = draw(n=24, m=5)
    models = [fastmc.train(p.X, p.y, cost=p.costs, sample_weight=p.weight, smoothing=smoothing,
                           tol=1e-4, max_passes=2000, **loss_options,
                           solver=name.split()[0], **ALL_SOLVERS[name]) for name in ALL_SOLVERS]
    intervals = np.array([model.certificate[:2] for model in models])
    primal, dual = intervals.min(axis=0)[0], intervals.max(axis=0)[1]
    assert dual <= primal * (1 + EPS)
    # Exact steps get there; the others come near.
    near = {"sdca": 1e-4, "pairwise": 1e-4, "away": 1e-4, "bcfw": 0.01, "fw": 0.01, "stdfw": 0.05, "pg": 0.05}
    for model in models:
        assert model.certificate.relative_gap <= near[model.solver], model.solver


# Certificates

@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_certificate_from_the_definitions(draw, loss_options, solver_options, smoothing, quiet):
    p = draw(n=25, m=5, seed=1)
    for cost, bias, weight in ((p.cost, None, None), (p.costs, 0.7, p.weight)):
        for C in (0.1, 30.0):
            model = fastmc.train(p.X, p.y, C=C, cost=cost, bias=bias, sample_weight=weight,
                                 smoothing=smoothing, tol=1e-6, max_passes=10, **loss_options,
                                 **solver_options)
            primal, dual, gap, relative_gap = recomputed(model, p, cost, bias, weight)
            assert dual <= primal * (1 + EPS)
            np.testing.assert_allclose(model.certificate, (primal, dual, gap, relative_gap),
                                       rtol=1e-12, atol=EPS * primal)


@pytest.mark.parametrize("C", [1e-8, 1e8])
@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_extreme_C(draw, loss_options, solver_options, C, smoothing, quiet):
    p = draw(n=12, m=4, d=5)
    model = fastmc.train(p.X, p.y, C=C, cost=p.cost, sample_weight=p.weight, smoothing=smoothing,
                         tol=1e-6, max_passes=60, **loss_options, **solver_options)
    certificate = recomputed(model, p, p.cost, None, p.weight)
    assert certificate.dual <= certificate.primal * (1 + EPS)
    np.testing.assert_allclose(model.certificate[:2], certificate[:2], rtol=1e-12)
    if solver_options["solver"] in MONOTONE:
        assert certificate.dual >= 0
    if C < 1 and not smoothing and solver_options["solver"] != "pg":
        # W is next to zero: what is left is the loss there.
        assert model.certificate.relative_gap <= 1e-6


@pytest.mark.parametrize("C", [1.0, 1e8, 1e16, 1e30])
@pytest.mark.parametrize("smoothing", [0.0, 0.3])
@pytest.mark.parametrize("solver", MONOTONE)
def test_the_dual_never_falls(draw, loss_options, solver, smoothing, C):
    p = draw(n=24, m=5, seed=2)
    problem = Problem(p.X, p.y, p.costs, None, None, p.weight)
    spec = make_spec(loss_options["loss"], 5, *(loss_options.get(a, b) for a, b in
                                                [("k", 1), ("rho", None), ("own_class", True)]))
    lam, rng = 1 / (C * 24), np.random.default_rng(0)
    # Momentum lets the dual fall now and then; other orders have none.
    options = {"sampling": "uniform"} if solver == "sdca" else {}
    run = make_solver(solver, problem, spec, lam, smoothing, "cython", **options)
    last = 0.0
    for _ in range(15):
        for _ in run.sweep(rng):
            pass
        value = _certificate.dual_value(problem, run.dual_matrix(), lam, smoothing)
        assert value >= last - EPS * abs(last)
        last = value
    assert last > 0
    # What the passes did to W step by step is what the dual says.
    W = problem.weights_of(run.dual_matrix(), lam)
    np.testing.assert_allclose(run.weights, W, rtol=0, atol=1e-10 * np.abs(W).max())


@pytest.mark.parametrize("solver", MONOTONE)
def test_a_pass_broken_off_leaves_W_and_dual_together(draw, solver):
    p = draw(n=9000, m=3, d=4)
    problem, lam = Problem(p.X, p.y), 1 / 9000
    run = make_solver(solver, problem, make_spec("maxhinge", 3), lam, 0.0, "cython")
    rng = np.random.default_rng(0)
    for _ in run.sweep(rng):
        pass
    sweep = run.sweep(rng)
    next(sweep)
    sweep.close()
    assert run.dual_matrix().count_nonzero()
    np.testing.assert_allclose(run.weights, problem.weights_of(run.dual_matrix(), lam), rtol=1e-9, atol=1e-12)


def test_batch_equals_block_steps_on_one_sample(draw):
    p = draw(n=5, m=4, d=3, empty=0)
    # The other samples name the classes and count for nothing.
    # Distinct costs keep rounding from deciding between equal scores.
    cost = np.abs(np.subtract.outer([0, 1, 4, 11], [0, 1, 4, 11])) / 7
    options = dict(sample_weight=[0, 0, 2.0, 0, 0], tol=0, C=0.3, cost=cost)
    for smoothing in (0.0, 0.4):
        for passes in range(1, 6):
            a, b = (fastmc.train(p.X, p.y, "usunier", k=2, solver=solver, smoothing=smoothing,
                                 max_passes=passes, **options) for solver in ("fw", "bcfw"))
            assert a.weights.any()
            np.testing.assert_allclose(a.weights, b.weights, rtol=1e-10, atol=1e-14)
            np.testing.assert_allclose(a.dual_.toarray(), b.dual_.toarray(), rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("layout", ["csr", "dense"])
def test_bias_is_a_constant_column(draw, layout, solver_options):
    # Few digits, so that the squares add up to the same ||x||^2 in any order.
    p = draw(layout=layout)
    p.X = (p.X * 8).round() / 8 if layout == "dense" else sp.csr_array((p.X.toarray() * 8).round() / 8)
    column = np.full((20, 1), 0.5)
    wide = sp.hstack([p.X, column], format="csr") if layout == "csr" else np.hstack([p.X, column])
    options = dict(tol=0, max_passes=5, **solver_options)
    a = fastmc.train(p.X, p.y, bias=0.5, **options)
    b = fastmc.train(wide, p.y, **options)
    if solver_options["solver"] in ("sdca", "bcfw"):
        assert_same_bits(a, b)
    np.testing.assert_allclose(a.weights, b.weights, rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(a.certificate, b.certificate, rtol=1e-12)


def test_bias_is_regularised():
    # Rows that say nothing, three of class 0 and one of class 1. With a bias B the scores differ
    # by t = B (w_0 - w_1), ||W||^2 = t^2 / (2 B^2), and t = 1 is best: the loss is 2/4 there.
    X, y = np.zeros((4, 1)), [0, 0, 0, 1]
    for bias, optimum in ((None, 1.0), (1.0, 0.5 + 1 / 16), (10.0, 0.5 + 1 / 1600)):
        primal = fastmc.train(X, y, bias=bias, C=1.0, tol=1e-9).certificate.primal
        assert primal == pytest.approx(optimum, rel=2e-9)


# Stop rules

def test_converged(draw):
    p = draw()
    for tol in (0.5, 1e-1, 1e-3, 1e-9):
        model = fastmc.train(p.X, p.y, tol=tol, max_passes=100_000)
        assert model.status == "converged" and model.certificate.relative_gap <= tol
    # Fewer passes for a looser tolerance.
    assert fastmc.train(p.X, p.y, tol=0.5).n_passes < model.n_passes


def test_max_passes(digits):
    X, y = digits
    with pytest.warns(fastmc.ConvergenceWarning) as caught:
        model = fastmc.train(16 * X + 5, y, max_passes=2, tol=1e-4)
    assert (model.status, model.n_passes) == ("max_passes", 2)
    assert len(caught) == 1 and caught[0].filename == __file__
    message = str(caught[0].message)
    assert f"a relative duality gap of {model.certificate.relative_gap:.3g}, above tol=0.0001" in message
    assert "training stopped after 2 passes (max_passes)" in message
    assert "raise max_passes, raise tol, lower C=1, or scale the features" in message


def test_time_limit(draw, solver_options):
    p = draw()
    with pytest.warns(fastmc.ConvergenceWarning, match=r"\(time_limit\).* raise max_time"):
        model = fastmc.train(p.X, p.y, max_time=1e-9, **solver_options)
    assert model.status == "time_limit" and model.n_passes == 0
    assert model.certificate == pytest.approx(recomputed(model, p), rel=1e-12)


def test_time_limit_is_kept(draw):
    p = draw(n=400, m=10, d=30)
    began = time.perf_counter()
    with pytest.warns(fastmc.ConvergenceWarning):
        model = fastmc.train(p.X, p.y, C=1e4, tol=1e-12, max_passes=10**9, max_time=0.3)
    assert model.status == "time_limit" and model.n_passes > 0
    assert 0.3 <= model.history["seconds"][-1] <= time.perf_counter() - began < 2.0


def test_a_pass_broken_off_is_certified_as_well(draw):
    p = draw()

    def callback(state):
        if state.certificate and state.passes == 2:
            time.sleep(1.1)

    with pytest.warns(fastmc.ConvergenceWarning):
        model = fastmc.train(p.X, p.y, tol=1e-12, max_time=1.0, callback=callback)
    assert (model.status, model.n_passes) == ("time_limit", 2)
    assert model.history["passes"].tolist() == [1, 2, 2]
    # The few samples were all visited before the clock was looked at.
    assert model.history["dual"][2] > model.history["dual"][1]


@pytest.mark.parametrize("ask", [False, True])
def test_callback_stops(draw, ask):
    p = draw()
    seen = []

    def callback(state):
        seen.append((state.passes, state.seconds, state.gap_estimate))
        if ask:
            assert state.certificate.gap == state.certificate.primal - state.certificate.dual
        return state.passes == 4

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = fastmc.train(p.X, p.y, tol=1e-12, callback=callback)
    assert (model.status, model.n_passes) == ("stopped", 4)
    passes, seconds, gaps = zip(*seen)
    assert passes == (1, 2, 3, 4) and sorted(seconds) == list(seconds)
    assert all(0 < gap < np.inf for gap in gaps)
    assert model.history["passes"][-1] == 4
    if ask:
        assert model.history["passes"].tolist() == [1, 2, 3, 4]


def test_stopped_at_the_tolerance_is_converged(draw):
    p = draw()
    model = fastmc.train(p.X, p.y, tol=0.9, callback=lambda state: True)
    assert (model.status, model.n_passes) == ("converged", 1)


def test_tol_zero_runs_the_budget(draw, solver_options):
    p = draw()
    options = dict(tol=0, max_passes=7, **solver_options)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = fastmc.train(p.X, p.y, **options)
    assert (model.status, model.n_passes) == ("max_passes", 7)
    assert model.history["passes"].tolist() == [7]
    every = fastmc.train(p.X, p.y, callback=lambda state: state.certificate is None, **options)
    assert every.history["passes"].tolist() == [1, 2, 3, 4, 5, 6, 7]
    # Best so far, from both sides: never worse than the last pass alone.
    assert every.certificate.primal <= model.certificate.primal
    assert every.certificate.dual >= model.certificate.dual


def test_history(draw, solver_options, quiet):
    p = draw(n=30)
    # The callback asks for certificates besides those that training takes for itself.
    model = fastmc.train(p.X, p.y, sample_weight=p.weight, tol=1e-5, max_passes=50, **solver_options,
                         callback=lambda state: state.passes % 5 == 2 and state.certificate is None)
    history = model.history
    assert list(history) == ["passes", "oracle_calls", "cache_hits", "primal", "dual", "gap", "seconds"]
    assert len({len(column) for column in history.values()}) == 1 and len(history["gap"]) > 3
    certificate = model.certificate
    last = [history[name][-1] for name in ("primal", "dual", "gap", "passes")]
    assert last == [certificate.primal, certificate.dual, certificate.gap, model.n_passes]
    np.testing.assert_array_equal(history["gap"], history["primal"] - history["dual"])
    for name in ("oracle_calls", "cache_hits", "seconds", "dual"):
        assert (np.diff(history[name]) >= 0).all(), name
    assert (np.diff(history["primal"]) <= 0).all() and (np.diff(history["passes"]) > 0).all()
    # Samples of weight zero have no oracle. Gap sampling and the cache look at all gaps at first
    # and before every tenth pass; a cache hit saves a call.
    active = np.count_nonzero(p.weight)
    cache = solver_options.get("cache_size", 0)
    full = -(-history["passes"] // 10) if cache or solver_options.get("sampling") == "gap" else 0
    visits = history["oracle_calls"] + history["cache_hits"]
    if solver_options == {"solver": "sdca"}:
        # Samples at rest are left out.
        assert (np.diff(visits) <= active * np.diff(history["passes"])).all()
        assert 0.55 * active * model.n_passes < visits[-1] < 0.7 * active * model.n_passes
    else:
        np.testing.assert_array_equal(visits, active * (history["passes"] + full))
    assert (history["cache_hits"][-1] > 0) == (cache > 0)


def test_the_better_half_of_each_certificate_is_kept(draw):
    # stdfw and pg go up and down; the model is the best of what was certified.
    p = draw(n=30)
    for solver in ("stdfw", "pg"):
        seen = []
        model = fastmc.train(p.X, p.y, C=10.0, solver=solver, tol=0, max_passes=60,
                             callback=lambda state: seen.append(state.certificate))
        assert model.certificate.primal == min(c.primal for c in seen)
        assert model.certificate.dual == max(c.dual for c in seen)
        assert model.certificate == pytest.approx(recomputed(model, p), rel=1e-12)


def test_averaging_helps_bcfw(draw):
    p = draw(n=200, m=6, d=20)
    # Labels that can be learnt, so that the optimum is well below the loss of W = 0.
    p.y = (p.X @ np.random.default_rng(0).normal(size=(20, 6))).argmax(axis=1)
    options = dict(solver="bcfw", C=1.0, tol=0, max_passes=30)
    plain, averaged = (fastmc.train(p.X, p.y, averaging=a, **options) for a in (False, True))
    assert averaged.certificate.gap < plain.certificate.gap
    assert averaged.certificate.primal < plain.certificate.primal < 1.0
    assert averaged.certificate == pytest.approx(recomputed(averaged, p), rel=1e-12)


def test_progress_goes_to_standard_error(draw, capsys):
    p = draw()
    quietly = fastmc.train(p.X, p.y)
    assert capsys.readouterr() == ("", "")
    assert_same_bits(quietly, fastmc.train(p.X, p.y, verbose=1))
    assert capsys.readouterr().out == ""


# Seeds

@pytest.mark.parametrize("sampling", ["permutation", "uniform"])
def test_seeds(draw, sampling):
    p = draw()
    train = lambda seed, **more: solve(p, random_state=seed, sampling=sampling, **more)
    assert_same_bits(train(3), train(3))
    assert_same_bits(train(3), train(np.random.default_rng(3)))
    assert_same_bits(train(3), train(np.int64(3)))
    assert not np.array_equal(train(3).weights, train(4).weights)
    assert_same_optimum(train(3), train(4))


def test_cyclic_order_draws_nothing(draw):
    p = draw()
    assert_same_bits(solve(p, sampling="cyclic", random_state=3), solve(p, sampling="cyclic", random_state=4))


def test_a_generator_goes_on(draw):
    p = draw()
    rng = np.random.default_rng(3)
    first, second = (fastmc.train(p.X, p.y, tol=0, max_passes=3, random_state=rng) for _ in range(2))
    assert not np.array_equal(first.weights, second.weights)


# Warm starts

@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_refit_at_the_solution_makes_no_pass(draw, loss_options, solver_options, smoothing):
    p = draw()
    options = dict(cost=p.cost, bias=1.0, smoothing=smoothing, sample_weight=p.weight, **loss_options)
    model = solve(p, tol=1e-6, **options)
    again = fastmc.train(p.X, p.y, init=model, tol=1.1e-6, **options, **solver_options)
    assert (again.status, again.n_passes) == ("converged", 0)
    assert again.history["passes"].tolist() == [0]
    assert_same_bits(again, model)
    assert again.certificate.primal == pytest.approx(model.certificate.primal, rel=1e-14)
    # The model's is that of a float32 W: its rounding, squared.
    assert again.certificate.dual == pytest.approx(model.certificate.dual, rel=1e-12)


@pytest.mark.parametrize("change", [
    {"C": 5.0}, {"C": 0.2}, {"lam": 1e-2}, {"tol": 1e-10}, {"smoothing": 0.5}, {"bias": 2.0},
    {"cost": "cost"}, {"cost": "costs"}, {"solver": "bcfw", "tol": 1e-2}, {"sample_weight": 2.0}])
def test_warm_start_after_a_change(draw, loss_options, change):
    p = draw()
    options = dict(cost=1 - np.eye(4), bias=1.0, tol=1e-7, **loss_options)
    model = solve(p, **options)
    before = model.weights.copy(), model.dual_.toarray()
    change = dict(change)
    if "cost" in change:
        change["cost"] = getattr(p, change["cost"])
    if "sample_weight" in change:
        change["sample_weight"] = np.full(20, change["sample_weight"])
    options.update(change)
    warm, cold = solve(p, init=model, **options), solve(p, **options)
    assert_same_optimum(warm, cold)
    weight = change.get("sample_weight")
    assert warm.certificate == pytest.approx(recomputed(warm, p, options["cost"], options["bias"], weight),
                                             rel=1e-9, abs=1e-12)
    # The dual was kept: it is in the first certificate, before any pass.
    problem = Problem(p.X, p.y, options["cost"], options["bias"], None, weight)
    kept = _certificate.dual_value(problem, before[1], warm.lam, warm.smoothing)
    assert warm.history["passes"][0] == 0
    assert warm.history["dual"][0] == pytest.approx(max(kept, 0.0), rel=1e-13)
    np.testing.assert_array_equal(model.weights, before[0])
    np.testing.assert_array_equal(model.dual_.toarray(), before[1])


@pytest.mark.parametrize("rubbish", [1e3, -1e200, np.nan])
@pytest.mark.parametrize("solver", MONOTONE)
def test_a_wrong_stored_W_is_recovered_from_the_dual(draw, rubbish, solver):
    p = draw()
    right = solve(p, tol=1e-6)
    wrong = solve(p, tol=1e-6)
    wrong.weights[:] = rubbish
    with np.errstate(over="ignore", invalid="ignore"):
        model = fastmc.train(p.X, p.y, init=wrong, tol=1.1e-6, max_passes=3, solver=solver)
    assert_same_optimum(model, right)
    assert model.n_passes <= 3
    assert np.isfinite(model.weights).all()


def test_a_better_stored_W_is_kept(draw):
    p = draw()
    poor = fastmc.train(p.X, p.y, tol=0, max_passes=1)
    best = solve(p)
    poor.weights[:] = best.weights
    model = fastmc.train(p.X, p.y, init=poor, tol=0, max_passes=1)
    np.testing.assert_array_equal(model.weights, best.weights)
    # Summed up in another order
    assert model.certificate.primal == pytest.approx(best.certificate.primal, rel=1e-15)


def test_warm_start_errors(draw):
    p = draw()
    model = solve(p, loss="topk", k=2)
    weighted = solve(p, loss="topk", k=2, sample_weight=p.weight)
    rho = solve(p, loss="wtopk", rho=[2.0, 1.0])
    textual = solve(p)
    textual._dual = None
    wide = sp.hstack([p.X, np.ones((20, 1))], format="csr")
    shifted = (p.y + 1) % 4
    for init, X, y, options, message in [
        (model, p.X[:19], p.y[:19], {}, "init was trained on 20 samples, X has 19"),
        (model, p.X, p.y + 1, {}, r"init has classes \[.*0.*, y has \[.*4.*"),
        (model, p.X, p.y.astype(str), {}, "init has classes"),
        (model, p.X, np.minimum(p.y, 2), {"k": 2}, "init has classes"),
        (model, p.X, p.y, {"loss": "usunier"}, "init was trained with .*topk.*, not .*usunier"),
        (model, p.X, p.y, {"loss": "maxhinge", "k": 1}, "init was trained with"),
        (model, p.X, p.y, {"k": 3}, "init was trained with"),
        (model, p.X, p.y, {"own_class": False}, "init was trained with"),
        (rho, p.X, p.y, {"loss": "wtopk", "k": 1, "rho": [2.0, 0.5]}, "init was trained with"),
        (model, wide, p.y, {}, r"init has 6 features \(the bias included\), X has 7"),
        (model, p.X, p.y, {"bias": 1.0}, r"init has 6 features \(the bias included\), X has 7"),
        (model, p.X, shifted, {}, "init's dual does not fit these labels or sample weights"),
        (weighted, p.X, p.y, {"sample_weight": p.weight[::-1]}, "init's dual does not fit"),
        (model, p.X, p.y, {"sample_weight": np.full(20, 0.01)}, "init's dual does not fit"),
        (textual, p.X, p.y, {"loss": "maxhinge", "k": 1}, r"init has no dual \(a text model keeps none\)"),
    ]:
        with pytest.raises(ValueError, match=message):
            fastmc.train(X, y, init=init, **{"loss": "topk", "k": 2, **options})


# Options

@pytest.mark.parametrize("options, message", [
    ({"loss": "foo"}, "loss='foo' is unknown; valid losses: maxhinge, structured, topk, usunier, "
                      "wtopk, wusunier, crammer_singer"),
    ({"loss": "topk", "k": 0}, "k=0 must be a whole number of at least 1"),
    ({"loss": "topk", "k": 1.5}, "k=1.5 must be a whole number of at least 1"),
    ({"loss": "topk", "k": True}, "k=True must be a whole number of at least 1"),
    ({"k": 2}, r"loss='maxhinge' takes no k \(got k=2\); topk and usunier do"),
    ({"loss": "wtopk"}, "loss='wtopk' needs rho; wtopk and wusunier are the weighted losses"),
    ({"loss": "topk", "rho": [1.0]}, "loss='topk' takes no rho"),
    ({"loss": "wtopk", "rho": [1.0, 2.0]}, r"rho=\[1.0, 2.0\] must be finite, non-negative and non-increasing"),
    ({"loss": "wtopk", "rho": [1.0, -1.0]}, "rho=.* must be finite, non-negative and non-increasing"),
    ({"loss": "wusunier", "rho": [np.inf]}, "rho=.* must be finite, non-negative and non-increasing"),
    ({"loss": "wusunier", "rho": [[1.0]]}, r"rho has shape \(1, 1\), expected one dimension"),
    ({"loss": "wusunier", "rho": [0.0, 0.0]}, "rho=.* must start with a positive weight"),
    ({"loss": "wusunier", "rho": []}, "rho=.* must start with a positive weight"),
    ({"loss": "wusunier", "rho": "5;4"}, "rho='5;4' must be a sequence of numbers"),
    ({"loss": "usunier", "own_class": False}, "own_class=False is for topk and wtopk, not loss='usunier'"),
    ({"C": 1.0, "lam": 0.1}, "give C=1.0 or lam=0.1, not both"),
    *(({"C": C}, f"C={C!r} must be a finite number above 1e-50 and at most 1e\\+50".replace("C=1e+308", "C=1e\\+308"))
      for C in (0, -1, np.nan, np.inf, 1e308, "1", True)),
    ({"C": 10**400}, "C=1000.*0 must be a finite number above 1e-50"),
    ({"C": [1.0]}, r"C=\[1.0\] must be a finite number"),
    ({"C": 1j}, "C=1j must be a finite number"),
    *(({"lam": lam}, f"lam={lam!r} must be a finite number above 0") for lam in (0, -1.0, np.nan, np.inf, "1")),
    ({"smoothing": -0.1}, "smoothing=-0.1 must be a finite number at least 0"),
    ({"smoothing": np.nan}, "smoothing=nan must be a finite number at least 0"),
    ({"smoothing": 1e60}, "smoothing=1e.60 must be a finite number at least 0 and at most 1e.50"),
    ({"tol": -1e-3}, "tol=-0.001 must be a finite number at least 0"),
    ({"tol": np.inf}, "tol=inf must be a finite number at least 0"),
    ({"tol": None}, "tol=None must be a finite number at least 0"),
    *(({"max_passes": n}, f"max_passes={n!r} must be a whole number of at least 1") for n in (0, -1, 1.0, True, None)),
    *(({"max_time": t}, f"max_time={t!r} must be a finite number above 0") for t in (0, -1.0, np.nan, "1")),
    ({"solver": "newton"}, "solver='newton' is unknown; valid: auto, sdca, bcfw, pairwise, away, fw, stdfw, pg"),
    ({"solver": None}, "solver=None is unknown"),
    ({"sampling": "random"}, "sampling='random' is unknown; valid: permutation, uniform, cyclic, gap"),
    ({"sampling": "uniform", "solver": "fw"}, "sampling='uniform' is for block solvers, not solver='fw'"),
    ({"sampling": "cyclic", "solver": "pg"}, "sampling='cyclic' is for block solvers, not solver='pg'"),
    ({"averaging": True}, "averaging=True is for bcfw, pairwise, away, not solver='sdca'"),
    ({"averaging": True, "solver": "fw"}, "averaging=True is for bcfw, pairwise, away, not solver='fw'"),
    ({"cache_size": 5}, "cache_size=5 is for bcfw, pairwise, away, not solver='sdca'"),
    ({"cache_size": 5, "solver": "pg"}, "cache_size=5 is for bcfw, pairwise, away, not solver='pg'"),
    *(({"cache_size": n, "solver": "bcfw"}, f"cache_size={n!r} must be a whole number of at least 0")
      for n in (-1, 2.5, True, None)),
    *(({"gap_refresh": n}, f"gap_refresh={n!r} must be a whole number of at least 0") for n in (-1, 1.0)),
    ({"cache_f": -0.5}, "cache_f=-0.5 must be a finite number at least 0"),
    ({"cache_nu": np.nan}, "cache_nu=nan must be a finite number at least 0"),
    *(({"n_threads": n}, f"n_threads={n!r} must be a whole number of at least 0") for n in (-1, 1.5, None)),
    ({"precision": "single", "solver": "bcfw"}, "precision='single' is for sdca, not solver='bcfw'"),
    ({"precision": "half"}, "precision='half' is unknown; valid: auto, single, double"),
    ({"engine": "numba"}, "engine='numba' is unknown; valid: cython, reference"),
    ({"random_state": -1}, "random_state=-1 must be a non-negative int or a numpy Generator"),
    ({"random_state": 1.0}, "random_state=1.0 must be"),
    ({"random_state": None}, "random_state=None must be"),
    ({"random_state": "seed"}, "random_state='seed' must be"),
    ({"loss": "structured"}, "loss='structured' needs cost"),
])
def test_bad_options_are_refused_before_the_data_is_read(options, message):
    with pytest.raises(ValueError, match=message):
        fastmc.train(None, None, **options)


@pytest.mark.parametrize("options, message", [
    ({"loss": "topk", "k": 4}, "k=4 must be at most n_classes - 1 = 3"),
    ({"loss": "usunier", "k": 10**12}, "k=1000000000000 must be at most n_classes - 1 = 3"),
    ({"loss": "wtopk", "rho": [4.0, 3, 2, 1]}, "rho has 4 positive weights; 4 classes allow at most 3"),
    ({"lam": 1e-60}, "lam=1e-60 must be a finite number above 5e-52 and at most 5e.48"),
    ({"lam": 1e60}, "lam=1e.60 must be a finite number above 5e-52 and at most 5e.48"),
])
def test_options_that_do_not_fit_the_data(draw, options, message):
    p = draw()
    with pytest.raises(ValueError, match=message):
        fastmc.train(p.X, p.y, **options)


def test_rank_weights_are_padded(draw):
    p = draw()
    models = [solve(p, loss="wtopk", rho=rho) for rho in
              ([2, 1], (2.0, 1.0, 0.0), np.array([2, 1, 0, 0, 0, 0], dtype=np.float32))]
    for model in models:
        assert model.spec.rho == (2.0, 1.0, 0.0, 0.0)
        assert_same_bits(model, models[0])


def test_options_are_by_name_alone(draw):
    p = draw()
    with pytest.raises(TypeError):
        fastmc.train(p.X, p.y, "topk", 2)
    with pytest.raises(TypeError, match="max_iter"):
        fastmc.train(p.X, p.y, max_iter=5)


@pytest.mark.parametrize("C", [2, np.float32(2), np.int64(2)])
def test_numbers_of_any_kind(draw, C):
    p = draw()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = fastmc.train(p.X, p.y, C=C, smoothing=np.float32(0.3), tol=np.float32(1e-3),
                             max_passes=np.int32(500), bias=np.float32(0.1))
    same = fastmc.train(p.X, p.y, C=2.0, smoothing=float(np.float32(0.3)), tol=float(np.float32(1e-3)),
                        max_passes=500, bias=float(np.float32(0.1)))
    assert_same_bits(model, same)
    assert model.certificate == same.certificate
    assert all(type(value) is float for value in model.certificate)


# Interrupts and threads

INTERRUPT = """
import os, signal, sys, threading, time
import numpy as np, scipy.sparse as sp, fastmc

rng = np.random.default_rng(0)
n, d, m, per_row = 30_000, 10_000, 50, 60
X = sp.csr_array((rng.random(n * per_row), np.sort(rng.integers(0, d, (n, per_row))).ravel(),
                  per_row * np.arange(n + 1)), shape=(n, d))
X.sum_duplicates()
sent = []

def interrupt():
    time.sleep(float(sys.argv[2]))
    sent.append(time.perf_counter())
    os.kill(os.getpid(), signal.SIGINT)

threading.Thread(target=interrupt, daemon=True).start()
try:
    fastmc.train(X, rng.integers(0, m, n), C=1000, tol=1e-12, solver=sys.argv[1])
except KeyboardInterrupt:
    print(time.perf_counter() - sent[0])
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT to send")
@pytest.mark.parametrize("solver", ["sdca", "fw"])
def test_interrupt_reaches_the_caller(solver):
    root = os.path.dirname(os.path.dirname(fastmc.__file__))
    path = os.pathsep.join([root, os.environ.get("PYTHONPATH", "")])
    out = subprocess.run([sys.executable, "-c", INTERRUPT, solver, "1.0"], capture_output=True,
                         text=True, timeout=60, env={**os.environ, "PYTHONPATH": path})
    assert out.returncode == 0, out.stderr
    assert float(out.stdout) < 1.0


@pytest.mark.parametrize("solver", MONOTONE)
def test_other_threads_run_during_a_pass(solver, monkeypatch):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(2000, 200)), rng.integers(0, 300, 2000)
    # The whole pass in one call of the kernel: between slices any thread would have its turn.
    monkeypatch.setattr(_solver_base, "SLICE_WORK", 10**15)
    run = make_solver(solver, Problem(X, y), make_spec("maxhinge", 300), 1 / 2000, 0.0, "cython")
    ticks, done = [], threading.Event()

    def tick():
        while not done.wait(0.001):
            ticks.append(time.perf_counter())

    thread = threading.Thread(target=tick)
    thread.start()
    calls = []
    for _ in range(20):
        sweep = run.sweep(rng)
        if solver == "fw":
            next(sweep)  # finding the corners at W = 0 is too short a call
        began = time.perf_counter()
        next(sweep)
        calls.append((began, time.perf_counter() - began))
    done.set()
    thread.join()
    # Held back until a call returns, the thread would have ticked at its edges alone, in every one.
    assert any(0.25 < (t - began) / length < 0.75 for began, length in calls for t in ticks)
