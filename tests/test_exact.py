"""What the exact solver is made of: vector loops, dual lists, closed forms, precision, memory."""
import os
import tracemalloc
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

import fastmc
from fastmc import _certificate, _dual_rows, _sdca, _shares, _threads, _vector, reference
from fastmc._pace import Momentum, Rest
from fastmc._order import ListOrder
from fastmc._problem import Problem
from fastmc._solvers import make_solver
from fastmc.losses import make_spec


# ---------------------------------------------------------------- vector loops

def test_the_widest_loops_are_in_use_and_others_can_be_asked_for():
    names = _vector.supported()
    assert names[0] == "baseline" and _vector.in_use() == names[-1]
    with pytest.raises(ValueError, match="'mmx' is not one of"):
        _vector.use("mmx")


# Sizes around whole and half vectors of each width, and more than eight of them.
@pytest.mark.parametrize("m", [2, 3, 4, 7, 8, 9, 15, 16, 17, 23, 24, 31, 40, 63, 72, 130, 152, 300])
@pytest.mark.parametrize("precision", ["single", "double"])
def test_every_instruction_set_gives_the_bits_of_the_mirror(instruction_set, m, precision):
    rng = np.random.default_rng(m)
    n, d = max(30, m), 9
    X = sp.csr_array(rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.6))
    problem = Problem(X, np.arange(n) % m)
    for loss, options in (("maxhinge", {}), ("topk", {"k": min(5, m - 1)}), ("wusunier", {"rho": [2.0, 1.0][: m - 1]})):
        solvers = [make_solver("sdca", problem, make_spec(loss, m, **options), 1.0 / n, engine=engine,
                               precision=precision) for engine in ("cython", "reference")]
        for _ in range(4):
            for solver in solvers:
                list(solver.sweep(np.random.default_rng(1)))
        kernel, mirror = solvers
        assert kernel.weights.dtype == {"single": np.float32, "double": np.float64}[precision]
        np.testing.assert_array_equal(kernel.padded, mirror.padded)
        np.testing.assert_array_equal(kernel.gaps, mirror.gaps)
        assert kernel.dual_estimate == mirror.dual_estimate
        assert np.count_nonzero(kernel.weights) > 0 and not kernel.padded[:, m:].any()


# ---------------------------------------------------------------- dual lists

def random_lists(rng, n, m, longest):
    counts = rng.integers(0, longest + 1, size=n)
    classes = np.concatenate([rng.permutation(m)[:count] for count in counts])
    return np.concatenate([[0], np.cumsum(counts)]), classes, rng.random(len(classes))


@pytest.mark.parametrize("module", [_dual_rows, reference.dual_rows])
def test_lists_come_back_as_they_went_in(module):
    rng = np.random.default_rng(0)
    rows = module.DualRows(50, 30)
    for longest in (3, 30, 0, 7):
        lists = random_lists(rng, 50, 30, longest)
        rows.set_rows(*lists)
        for ours, theirs in zip(rows.rows_of(), lists, strict=True):
            np.testing.assert_array_equal(ours, theirs)
    rows.scale(0.5)
    np.testing.assert_array_equal(rows.rows_of()[2], 0.5 * lists[2])


def test_lists_grow_without_end():
    # A pass over samples with as many classes as there are: every list holds hundreds.
    n = m = 300
    problem = Problem(np.ones((n, 1)) * 1e-3, np.arange(n), 0.5 * (1 - np.eye(m)))
    solver = make_solver("sdca", problem, make_spec("usunier", m, 299), 1.0 / n)
    list(solver.sweep(np.random.default_rng(0)))
    dual = solver.dual_matrix()
    assert np.diff(dual.indptr).max() == m
    np.testing.assert_allclose(dual.toarray().sum(axis=1), 0.0, atol=1e-12)


# ---------------------------------------------------------------- block steps

LOSSES = [("maxhinge", {}), ("topk", {"k": 2}), ("topk", {"k": 3}), ("topk", {"k": 7}), ("usunier", {"k": 3}),
          ("usunier", {"k": 7}), ("topk", {"k": 3, "own_class": False}), ("wtopk", {"rho": [0.5, 0.3, 0.1]}),
          ("wusunier", {"rho": [3.0, 2.0, 2.0]})]


@pytest.mark.parametrize("engine", ["cython", "reference"])
@pytest.mark.parametrize("name, options", LOSSES)
def test_closed_forms_equal_the_general_routine(name, options, engine):
    rng = np.random.default_rng(1)
    m = 9
    loss, general = (make_spec(name, m, **options).make(engine) for _ in range(2))
    general.uniform = False
    moved = 0
    for scale in (0.01, 0.1, 0.5, 1.0, 3.0, 30.0):
        for weight in (0.3, 1.0, 7.0):
            for _ in range(60 if engine == "cython" else 5):
                # Rounded targets bring ties.
                target = np.round(scale * rng.normal(size=m), rng.integers(1, 9))
                label = int(rng.integers(m))
                expected = general.project(list(target), label, weight)
                np.testing.assert_allclose(loss.project(list(target), label, weight), expected, rtol=0, atol=1e-12 * weight)
                moved += np.count_nonzero(expected) > 2
    assert moved > (200 if engine == "cython" else 15)


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
@pytest.mark.parametrize("name, options", LOSSES)
def test_the_step_on_few_classes_is_the_step_on_all(name, options, smoothing):
    rng = np.random.default_rng(2)
    n, m, d = 60, 40, 6
    problem = Problem(rng.normal(size=(n, d)), np.arange(n) % m, None, None, None, rng.choice([0.3, 1.0, 4.0], size=n))
    spec = make_spec(name, m, **options)
    solver = make_solver("sdca", problem, spec, 1.0 / (3.0 * n), smoothing)
    for _ in range(3):
        list(solver.sweep(rng))
    loss, changed = spec.make(), 0
    for i in rng.permutation(n):
        before = solver.dual_matrix().toarray()[i]
        scores = problem.augmented(np.ascontiguousarray(solver.weights), slice(i, i + 1))[0]
        weight = problem.weight[i]
        expected = loss.block_max(scores, problem.label[i], before, weight, problem.sqnorm[i] / solver.lam_n,
                                  smoothing / weight)
        _sdca.sdca_pass(*solver.workers[0], solver.padded, solver.rows, solver.gaps, solver.gains,
                        ListOrder(np.array([i])), 0, 1, solver.lam_n, smoothing, 0.0)
        after = solver.dual_matrix().toarray()[i]
        np.testing.assert_allclose(after, expected, rtol=0, atol=1e-12 * weight)
        gain = -problem.costs(slice(i, i + 1))[0] @ after - 0.5 * smoothing / weight * after @ after
        assert solver.gains[i] == pytest.approx(gain, rel=1e-12, abs=1e-14)
        changed += not np.array_equal(before, after)
    assert changed > 20


# ---------------------------------------------------------------- passes

@pytest.mark.parametrize("precision", ["single", "double"])
def test_momentum_keeps_W_and_A_together(digits, precision):
    problem = Problem(*digits)
    solver = make_solver("sdca", problem, make_spec("maxhinge", 10), 1.0 / (0.5 * problem.n_samples),
                         precision=precision)
    rng, used = np.random.default_rng(0), []
    for _ in range(40):
        list(solver.sweep(rng))
        used.append(solver.momentum.next())
    assert max(used) > 0.7
    exact = problem.weights_of(solver.dual_matrix(), solver.lam)
    difference = np.abs(solver.weights - exact).max() / np.abs(exact).max()
    assert difference <= {"single": 3e-5, "double": 1e-13}[precision]
    dual = _certificate.dual_value(problem, solver.dual_matrix(), solver.lam)
    assert solver.dual_estimate == pytest.approx(dual, rel={"single": 1e-5, "double": 1e-12}[precision])


def test_momentum_saves_passes(digits):
    passes = {}
    for sampling in ("permutation", "uniform"):
        passes[sampling] = fastmc.train(*digits, C=1.0, tol=1e-3, max_passes=5000, sampling=sampling).n_passes
    assert 3 * passes["permutation"] < passes["uniform"] < 5000


def test_momentum_follows_the_rate_and_ends_when_the_dual_falls():
    momentum = Momentum()
    seen = []
    for k in range(40):
        momentum.saw(float(k), 0.9**k)
        seen.append(momentum.next())
    assert seen[0] == 0.0
    # Nesterov's first, then r / (2 - r) at the rate r.
    assert seen[5] == round(4 / 7, 3) and seen[-1] == round(0.9 / 1.1, 3)
    momentum.saw(0.0, 0.1)
    assert momentum.next() == 0.0


def test_a_fall_within_rounding_is_none_and_two_soon_after_each_other_show_it():
    momentum = Momentum()
    for k in range(30):
        momentum.saw(k - 2.0 if k in (9, 19, 27) else float(k), 0.9**k, 1.5)
        assert momentum.blurred == (k >= 27) and (momentum.next() > 0.0) == (k >= 2)
    momentum.pause()
    assert momentum.next() == 0.0 and not momentum.blurred
    # Whatever the dual is then; and the momentum is what it was.
    momentum.saw(-100.0, 0.9**30, 1.5)
    assert momentum.next() == round(0.9 / 1.1, 3)
    momentum.saw(-101.6, 0.9**31, 1.5)
    assert momentum.next() == 0.0


def test_rests_grow_visit_by_visit_and_end():
    rest, turns = Rest(np.array([0, 1, 3]), 4), []
    idle = np.array([True, False, True, True])
    for n_passes in range(1, 400):
        samples = rest.awake(n_passes - 1)
        turns.append(0 in samples)
        assert 1 in samples and 2 not in samples
        rest.saw(samples, idle[samples], n_passes)
    # 2, 4, 6 and 8 passes, in the end 32.
    visits = np.flatnonzero(turns)
    assert visits[:6].tolist() == [0, 3, 8, 15, 24, 35]
    assert np.diff(visits).tolist() == [min(2 * v, 32) + 1 for v in range(1, len(visits))] and len(visits) > 19
    rest.wake(np.array([True, False, False, False]))
    assert rest.awake(400).tolist() == [0, 1]
    # It was not idle then: all begins anew.
    rest.saw(np.array([0]), np.array([False]), 401)
    rest.saw(np.array([0]), np.array([True]), 402)
    assert rest.awake(403).tolist() == [1] and rest.awake(404).tolist() == [0, 1]
    # Somebody has to be visited.
    rest.saw(np.array([0, 1, 3]), np.ones(3, bool), 404)
    assert rest.awake(405).tolist() == [0, 1, 3]


@pytest.mark.parametrize("loss", [{"loss": "maxhinge"}, {"loss": "topk", "k": 2}, {"loss": "wusunier", "rho": [2, 1]}])
@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_samples_without_a_loss_rest(loss, smoothing):
    # Two in three samples are far from where classes meet.
    rng = np.random.default_rng(3)
    y = np.arange(150) % 5
    X = rng.normal(size=(150, 6)) + np.where(np.arange(150) % 3, 9.0, 0.5)[:, None] * np.eye(5, 6)[y]
    options = {"C": 1.0, "smoothing": smoothing, "tol": 1e-7, "max_passes": 2000, **loss}
    model, mirror = (fastmc.train(X, y, engine=engine, **options) for engine in ("cython", "reference"))
    np.testing.assert_array_equal(model.weights, mirror.weights)
    np.testing.assert_array_equal(model.history["oracle_calls"], mirror.history["oracle_calls"])
    assert model.status == "converged"
    assert model.history["oracle_calls"][-1] < 0.7 * 150 * model.n_passes
    other = fastmc.train(X, y, sampling="uniform", **options)
    assert other.history["oracle_calls"][-1] == 150 * other.n_passes
    assert abs(model.certificate.primal - other.certificate.primal) <= 1e-7 * other.certificate.primal


@pytest.mark.parametrize("precision", ["single", "double"])
def test_samples_with_all_their_beta_at_one_class_rest(precision, assert_certified):
    # Half of the labels are wrong: there another class is far ahead.
    rng = np.random.default_rng(4)
    y = np.arange(200) % 5
    X = rng.normal(size=(200, 6)) + 5.0 * np.eye(5, 6)[y]
    y[::2] = rng.integers(5, size=100)
    options = {"C": 0.1, "tol": 1e-6, "max_passes": 500, "precision": precision}
    model, mirror = (fastmc.train(X, y, engine=engine, **options) for engine in ("cython", "reference"))
    np.testing.assert_array_equal(model.weights, mirror.weights)
    np.testing.assert_array_equal(model.history["oracle_calls"], mirror.history["oracle_calls"])
    dual = model.dual_.toarray()
    assert np.mean((dual == -1.0).any(axis=1)) > 0.3
    # Far fewer visits than the samples with neither loss nor beta could save
    idle = np.mean(~dual.any(axis=1))
    assert model.status == "converged" and model.history["oracle_calls"][-1] < (0.9 - idle) * 200 * model.n_passes
    assert_certified(model, _certificate.certificate(Problem(X, y), model.spec, model.weights, model.dual_, model.lam))


def test_a_certificate_wakes_samples_with_a_gap(draw):
    p = draw(n=60)
    solver = make_solver("sdca", Problem(p.X, p.y), make_spec("maxhinge", 4), 0.01)
    for _ in range(3):
        list(solver.sweep(np.random.default_rng(0)))
    solver.candidates()
    losses, gaps = _certificate.losses_and_gaps(solver.problem, solver.spec, solver.weights, solver.dual_matrix())
    expected = np.flatnonzero(gaps > 1e-9 * losses)
    solver.rest.until[:] = 100
    solver.wake()
    assert 0 < len(expected) < 60 and ((losses > 0.0) & (gaps < 1e-9)).any()
    np.testing.assert_array_equal(solver.rest.awake(solver.n_passes), expected)


@pytest.mark.parametrize("sampling", ["permutation", "uniform"])
def test_a_small_W_is_averaged_over_the_passes(digits, sampling):
    X, y = digits
    problem = Problem(X, y)
    solver = make_solver("sdca", problem, make_spec("maxhinge", 10), 1e-3, sampling=sampling)
    expected, rng = 0.0, np.random.default_rng(0)
    for t in range(1, 20):
        list(solver.sweep(rng))
        # Polynomial decay, 3 / (t + 2), down to a fifth
        newest = {1: 1.0, 2: 0.75, 3: 0.6, 4: 0.5}.get(t, max(3 / (t + 2), 0.2))
        expected = expected + newest * (solver.weights - expected)
        np.testing.assert_allclose(solver.average, expected, rtol=0, atol=1e-6 * np.abs(expected).max())
    kept, = solver.candidates()
    weights = kept.keep_weights()()
    scale = np.vdot(weights, expected) / np.vdot(expected, expected)
    np.testing.assert_allclose(weights, scale * expected, rtol=0, atol=1e-6 * np.abs(expected).max())
    primal = _certificate.primal_value(problem, solver.spec, weights, solver.lam)
    dual = _certificate.dual_value(problem, kept.keep_dual()(), solver.lam)
    assert kept.primal == pytest.approx(primal, rel=1e-12) and kept.dual == pytest.approx(dual, rel=1e-12)
    assert primal < _certificate.primal_value(problem, solver.spec, solver.weights, solver.lam)
    # What was given away stays as it is.
    before = weights.copy()
    list(solver.sweep(rng))
    np.testing.assert_array_equal(weights, before)


@pytest.mark.parametrize("bias", [None, 0.1])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_changes_of_few_and_of_many_classes_are_those_of_the_mirror(draw, bias, dtype, instruction_set):
    # With 60 classes a step changes some one by one; k = 20 is above where whole vectors are changed.
    p = draw(n=90, m=60, dtype=dtype)
    problem = Problem(p.X, p.y, bias=bias)
    for k in (1, 20):
        solvers = [make_solver("sdca", problem, make_spec("topk", 60, k=k), 0.01, engine=engine, precision=precision)
                   for precision in ("single", "double") for engine in ("cython", "reference")]
        for solver in solvers:
            rng = np.random.default_rng(0)
            for _ in range(4):
                list(solver.sweep(rng))
        for kernel, mirror in (solvers[:2], solvers[2:]):
            np.testing.assert_array_equal(kernel.weights, mirror.weights)
            assert kernel.weights.any()


@pytest.mark.parametrize("layout", ["csr", "dense"])
@pytest.mark.parametrize("bias", [None, 0.1])
def test_passes_in_float32_may_have_X_in_float32(draw, layout, bias, instruction_set):
    p = draw(n=70, m=20, layout=layout)
    problem, spec = Problem(p.X, p.y, bias=bias), make_spec("topk", 20, k=2)
    for rows in (None, np.float32, np.float64):
        solver = make_solver("sdca", problem, spec, 0.01, precision="single")
        mirror = make_solver("sdca", problem, spec, 0.01, precision="single", engine="reference")
        if rows is not None:
            samples = problem.samples("cython", solver.padded.shape[1], problem.values_in(rows))
            solver.workers = [(samples, spec.make())]
        for both in (solver, mirror):
            rng = np.random.default_rng(0)
            for _ in range(6):
                list(both.sweep(rng))
        np.testing.assert_array_equal(solver.weights, mirror.weights)
        assert solver.weights.dtype == np.float32 and solver.weights.any()


def test_X_is_copied_to_float32_only_where_that_is_small(draw, digits):
    def copied(X, y, precision="auto"):
        values = make_solver("sdca", Problem(X, y), make_spec("maxhinge", 1 + max(y)), 0.01, precision=precision
                             ).single_values()
        return None if values is None else (values.dtype, np.shares_memory(values, X.data if sp.issparse(X) else X))

    X = sp.random_array((300, 300), density=0.1, random_state=0, format="csr")
    X.sort_indices()
    y = np.arange(300)
    # 9,000 entries of 4 bytes; W has 300 x 32 x 4, 300 x 128 x 4 or 64 x 16 x 4 bytes.
    assert copied(X, y % 30) is None and copied(X, y % 121) == (np.float32, False)
    assert copied(X, y % 121, "double") is None and copied(X.astype(np.float32), y % 121) == (np.float32, True)
    X, y = digits
    assert copied(X, y) == (np.float32, False) and copied(X.astype(np.float32), y) == (np.float32, True)


def test_a_large_W_is_not_averaged(draw):
    p = draw(n=60)
    problem = Problem(p.X, p.y)
    assert problem.X.nnz < 200 * problem.n_weights
    assert make_solver("sdca", problem, make_spec("maxhinge", 4), 0.01).average is None


@pytest.mark.parametrize("name", ["sdca", "bcfw", "pairwise", "away", "fw"])
@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_W_and_A_stay_together_when_lambda_shrinks(draw, name, smoothing):
    p = draw(n=40, m=5)
    problem, spec = Problem(p.X, p.y, p.cost, 0.5, None, p.weight), make_spec("topk", 5, k=2)
    solvers = [make_solver(name, problem, spec, 0.2, smoothing, engine) for engine in ("cython", "reference")]
    for solver in solvers:
        for lam, scale in ((0.1, 0.7), (0.08, 1.0), (0.02, 0.4)):
            for _ in range(4):
                list(solver.sweep(np.random.default_rng(1)))
            before = solver.dual_matrix().toarray()
            solver.terms()
            solver.shrink(lam / solver.lam, scale)
            dual = solver.dual_matrix().toarray()
            np.testing.assert_allclose(dual, scale * before, rtol=0, atol=1e-14)
            expected = problem.weights_of(dual, lam)
            np.testing.assert_allclose(solver.weights, expected, rtol=0, atol=1e-13 * np.abs(expected).max())
            if name == "fw":
                np.testing.assert_allclose(solver.scores, problem.scores(expected), rtol=0, atol=1e-12)
            if name in ("pairwise", "away"):
                for i in np.flatnonzero(p.weight):
                    assert sum(weight for _, weight in solver.atoms.items(i)) == pytest.approx(1.0, rel=1e-12)
            # What can be asked for later is W(A) and A of now.
            weights, kept = solver.snapshot()
            list(solver.sweep(np.random.default_rng(2)))
            np.testing.assert_allclose(weights(), expected, rtol=0, atol=1e-13 * np.abs(expected).max())
            np.testing.assert_array_equal(kept().toarray(), dual)
            assert not np.array_equal(solver.dual_matrix().toarray(), dual)
    kernel, mirror = solvers
    np.testing.assert_array_equal(kernel.weights, mirror.weights)
    np.testing.assert_array_equal(kernel.dual_matrix().toarray(), mirror.dual_matrix().toarray())


# ---------------------------------------------------------------- precision

@pytest.mark.parametrize("precision", ["single", "double", "auto"])
def test_certificates_are_exact_in_every_precision(digits, assert_certified, precision):
    X, y = digits
    model = fastmc.train(X, y, C=0.1, tol=1e-3, precision=precision)
    found = _certificate.certificate(Problem(X, y), model.spec, model.weights, model.dual_, model.lam)
    assert model.status == "converged" and found.relative_gap <= 1e-3
    assert_certified(model, found)
    if precision == "double":
        np.testing.assert_allclose(model.certificate, found, rtol=1e-11, atol=1e-15)
    assert model.weights.dtype == np.float64


def test_auto_goes_on_in_double_below_its_limit(digits):
    dtypes = []
    model = fastmc.train(*digits, C=0.1, tol=1e-7, max_passes=5000,
                         callback=lambda state: dtypes.append((state.gap_estimate, state._run.solver.dtype)))
    assert model.status == "converged" and model.certificate.relative_gap <= 1e-7
    kinds = [dtype for _, dtype in dtypes]
    switch = kinds.index(np.float64)
    assert set(kinds[:switch]) == {np.dtype(np.float32)} and set(kinds[switch:]) == {np.dtype(np.float64)}
    assert dtypes[switch][0] < 1e-4 < dtypes[switch - 1][0] / model.certificate.primal


def test_auto_goes_on_in_double_where_float32_is_too_coarse_to_see_a_gain(digits):
    # Pixels as they are, 0 to 16: passes gain less than float32 can tell while the gap is still far above its limit.
    X, y = digits
    kinds = []
    model = fastmc.train(16 * X, y, C=1.0, tol=1e-4,
                         callback=lambda state: kinds.append((state.gap_estimate, state._run.solver.dtype)))
    assert model.status == "converged" and model.n_passes < 700
    switch = [dtype for _, dtype in kinds].index(np.float64)
    assert kinds[switch][0] > 2e-4 * model.certificate.primal
    single = fastmc.train(16 * X, y, C=1.0, tol=1e-3, precision="single")
    assert single.status == "converged" and single.n_passes < 700


@pytest.mark.parametrize("change", [dict(C=1e-9), dict(C=1e9), dict(factor=1e8), dict(factor=1e-8)])
def test_auto_is_double_for_numbers_of_extreme_size(digits, change):
    X, y = digits
    change = dict(change)
    kinds = set()
    fastmc.train(X * change.pop("factor", 1.0), y, tol=0, max_passes=2,
                 callback=lambda state: kinds.add(state._run.solver.dtype), **change)
    assert kinds == {np.dtype(np.float64)}


def test_looking_on_does_not_change_the_passes(digits, assert_certified):
    quiet, watched = (fastmc.train(*digits, C=1.0, tol=0, max_passes=40, callback=callback)
                      for callback in (None, lambda state: state.certificate is None))
    assert len(watched.history["passes"]) == 40
    assert watched.history["primal"][-1] <= quiet.certificate.primal
    assert watched.certificate.dual == quiet.certificate.dual
    # Its best W may be one of many passes ago.
    problem = Problem(*digits)
    assert_certified(watched, _certificate.certificate(problem, watched.spec, watched.weights, watched.dual_, watched.lam))
    assert watched.certificate.primal == watched.history["primal"].min()


@pytest.mark.parametrize("precision", ["single", "double"])
@pytest.mark.parametrize("error", [0.0, 1e-4, 1e-2, 1.0])
def test_a_certificate_knows_a_W_that_is_not_that_of_A(instruction_set, draw, precision, error):
    p = draw(n=200, m=25, d=300)
    problem, spec = Problem(p.X, p.y, bias=1.0), make_spec("maxhinge", 25)
    solvers = [make_solver("sdca", problem, spec, 0.01, engine=engine, precision=precision)
               for engine in ("cython", "reference")]
    for solver in solvers:
        for _ in range(3):
            list(solver.sweep(np.random.default_rng(1)))
        weights, rng = solver.padded, np.random.default_rng(2)
        scale = error * np.sqrt(np.mean(weights[:, :25] ** 2))
        weights[:, :25] += scale * rng.normal(size=(301, 25))
        solver.norm = None
    found, mirror = (solver.candidates()[0] for solver in solvers)
    assert found[:2] == mirror[:2]
    dual = solvers[0].dual_matrix()
    exact = _certificate.dual_value(problem, dual, 0.01)
    drift = np.sum((solvers[0].weights - problem.weights_of(dual, 0.01)) ** 2)
    assert solvers[0].drift() == pytest.approx(drift, rel=0.5, abs=1e-25)
    # Twice the estimate counts, of which once belongs there.
    assert exact - 0.01 * drift - 1e-13 <= found.dual <= exact + 1e-13
    assert found.primal >= _certificate.primal_value(problem, spec, found.keep_weights()(), 0.01) - 1e-13


# ---------------------------------------------------------------- threads

@pytest.fixture
def always_threads(monkeypatch):
    """Threads share the certificates of small problems as well."""
    for name, value in {"MIN_WORK": 0, "MIN_ROW": 0, "PART_WORK": 1}.items():
        monkeypatch.setattr(_shares, name, value)


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_threads_do_not_change_a_bit(always_threads, digits, loss_options, smoothing):
    X, y = digits
    cost = 1.0 - np.eye(10) if loss_options["loss"] == "structured" else None
    models = [fastmc.train(X[:301], y[:301], C=0.1, tol=1e-3, smoothing=smoothing, cost=cost, n_threads=n, **loss_options)
              for n in (1, 2, 3, 0)]
    for model in models[1:]:
        np.testing.assert_array_equal(model.weights, models[0].weights)
        assert model.certificate == models[0].certificate


@pytest.fixture
def small_batches(monkeypatch, always_threads):
    """Threads share the passes of small problems as well, in batches of up to 7 samples."""
    for name, value in {"BATCH": 7, "MIN_BATCH": 2, "MIN_STEPS": 1, "SPREAD": 4, "ALIKE": 1e9}.items():
        monkeypatch.setattr(_shares, name, value)


@pytest.fixture(scope="module")
def rare_words():
    """Texts of 40 words each out of 2000, most of them rare; 20 classes."""
    rng = np.random.default_rng(5)
    words = np.minimum(rng.zipf(1.3, size=(600, 40)), 2000) - 1
    y = rng.integers(20, size=600)
    words[:, :3] = 100 + 20 * y[:, None] + rng.integers(20, size=(600, 3))
    X = sp.csr_array((np.ones(words.size), (np.repeat(np.arange(600), 40), words.ravel())), shape=(600, 2000))
    X.data = np.log1p(X.data)
    return sp.csr_array(X.multiply(1.0 / np.sqrt(X.multiply(X).sum(axis=1))[:, None])), y


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
@pytest.mark.parametrize("precision", ["single", "double"])
def test_passes_of_threads_are_those_of_the_mirror(small_batches, draw, loss_options, precision, smoothing, monkeypatch):
    for seed, (n_threads, n_parts) in enumerate(((2, 2), (3, 4), (5, 8))):
        monkeypatch.setattr(_shares, "MAX_PARTS", n_parts)
        p = draw(n=40, m=11, d=9, seed=seed)
        spec = make_spec(n_classes=11, **loss_options)
        solvers = []
        for engine in ("cython", "reference"):
            problem = Problem(sp.csr_array(p.X), p.y, p.cost, None if seed else 0.5, None, p.weight)
            solvers.append(make_solver("sdca", problem, spec, 0.05, smoothing, engine, precision=precision,
                                       n_threads=n_threads))
        for _ in range(5):
            for solver in solvers:
                list(solver.sweep(np.random.default_rng(1)))
                solver.terms()
        kernel, mirror = solvers
        assert kernel.batch == mirror.batch > 0 and len(kernel.workers) == n_threads
        assert kernel.workers[0][0].n_parts == mirror.workers[0][0].n_parts == n_parts
        np.testing.assert_array_equal(kernel.weights, mirror.weights)
        np.testing.assert_array_equal(kernel.gaps, mirror.gaps)
        np.testing.assert_array_equal(kernel.checked, mirror.checked)
        assert kernel.candidates()[0][:2] == mirror.candidates()[0][:2]
        np.testing.assert_array_equal(kernel.dual_matrix().toarray(), mirror.dual_matrix().toarray())
        assert kernel.dual_estimate == mirror.dual_estimate and np.any(kernel.weights)


def test_the_number_of_threads_does_not_change_a_bit(instruction_set, small_batches, assert_certified, rare_words):
    X, y = rare_words
    models = [fastmc.train(X, y, C=C, tol=1e-4, n_threads=n, precision=precision)
              for C, precision in ((1.0, "single"), (10.0, "auto")) for n in (2, 3, 4, 50, 2)]
    for group in (models[:5], models[5:]):
        for model in group:
            assert model.status == "converged"
            np.testing.assert_array_equal(model.weights, group[0].weights)
            np.testing.assert_array_equal(model.dual_.toarray(), group[0].dual_.toarray())
            assert model.certificate == group[0].certificate
    found = _certificate.certificate(Problem(X, y), models[-1].spec, models[-1].weights, models[-1].dual_, models[-1].lam)
    assert_certified(models[-1], found)


@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_rows_are_cut_at_columns(rare_words, index):
    X = rare_words[0].copy()
    X.indices = X.indices.astype(index)
    problem, columns = Problem(X, rare_words[1], bias=0.5), [3, 3, 700]
    places = [problem.samples(engine).cut(columns) for engine in ("cython", "reference")]
    assert problem.X.indices.dtype == index and places[0].dtype == np.int64
    np.testing.assert_array_equal(*places)
    for (start, *cuts, stop), row in zip(places[0], range(600)):
        assert (start, stop) == tuple(X.indptr[row: row + 2])
        assert [cut - start for cut in cuts] == [(X.indices[start:stop] < column).sum() for column in columns]


def test_batches_cost_few_passes(small_batches, rare_words, monkeypatch):
    # Zipf's law makes these texts far more alike than real ones.
    monkeypatch.setattr(_shares, "ALIKE", 2.0)
    serial, batches = (fastmc.train(*rare_words, C=1.0, tol=1e-4, n_threads=n) for n in (1, 2))
    assert batches.n_passes <= 1.25 * serial.n_passes
    assert batches.certificate.primal == pytest.approx(serial.certificate.primal, rel=1e-4)


@pytest.mark.parametrize("n_rows, shortest", [(20, (3, 3)), (1, (0, 1))])
def test_batches_of_samples_that_are_alike_get_shorter(small_batches, rare_words, n_rows, shortest):
    # Seven steps in the same direction at once go too far: the dual would fall for ever. Of one row with any labels
    # three are too many as well.
    X, y = rare_words
    labels = y[:20] if n_rows == 20 else np.random.default_rng(0).integers(3, size=20)
    X, y = sp.vstack([X[:n_rows]] * (800 // n_rows), format="csr"), np.tile(labels, 40)
    seen = []

    def look(state):
        seen.append((state._run.solver.batch, len(state._run.solver.workers)))

    model = fastmc.train(X, y, C=100.0, tol=1e-6, n_threads=3, callback=look)
    assert seen[0] == (7, 3) and seen[-1] == shortest
    assert model.status == "converged" and model.certificate.relative_gap <= 1e-6


@pytest.mark.skipif(os.name != "posix", reason="teams stay as they are where the clock of the process is coarse")
def test_a_team_gets_smaller_for_a_while_where_it_has_fewer_cores(small_batches, rare_words):
    problem = Problem(*rare_words)
    solvers = [make_solver("sdca", problem, make_spec("maxhinge", 20), 0.01, n_threads=n) for n in (3, 3)]
    asked, passes = [], solvers[0].kernels["batches"].batch_pass
    solvers[0].kernels["batches"] = SimpleNamespace(
        batch_pass=lambda workers, *rest: (asked.append(len(workers)), passes(workers, *rest)))
    had = solvers[0].crew.had
    # Three cores at first, then two, then one, and three in the end
    free = [2.8, *[1.9] * 10, *[0.9] * 26, *[2.9] * 23]
    solvers[0].crew.had = lambda _: had(min(asked[-1] - 0.05, free[len(asked) - 1]))
    for solver in solvers:
        rng = np.random.default_rng(0)
        for _ in range(60):
            list(solver.sweep(rng))
    # After one pass all are asked for again, then after 2, 4, 8 and 16; it begins anew when all were there.
    assert asked == [3, *[3, 2], *[3, 2, 2], *[3, 2, 2, 2, 2], *[3, *[1] * 8], *[3, *[1] * 16], *[3] * 23]
    np.testing.assert_array_equal(solvers[0].weights, solvers[1].weights)


@pytest.mark.parametrize("options", [{"sampling": "uniform"}, {"sampling": "gap"}, {"sampling": "cyclic"}, {}])
def test_no_sample_is_twice_in_a_batch(small_batches, rare_words, options):
    problem = Problem(*rare_words)
    solver = make_solver("sdca", problem, make_spec("maxhinge", 20), 0.01, n_threads=2, **options)
    assert (solver.batch > 0) == (options.get("sampling", "permutation") in ("permutation", "cyclic"))


def test_small_dense_and_uniform_problems_stay_serial(always_threads, rare_words, digits):
    def batch(X, y, n_threads=2):
        problem = Problem(X, y)
        return make_solver("sdca", problem, make_spec("maxhinge", problem.n_classes), 0.01, n_threads=n_threads).batch

    X, y = sp.random_array((3200, 300), density=0.02, random_state=0, format="csr"), np.arange(3200)
    assert [batch(X, y % 100), batch(X, y % 100, 1), batch(X, y % 3), batch(X.toarray() + 1, y % 100)] == [32, 0, 32, 0]
    assert [batch(X[:n], y[:n] % 100) for n in (1600, 800, 799)] == [16, 8, 0]
    assert batch(*rare_words) == batch(*digits) == 0
    # Rows with one number in common with all others: cosines of a / (1 + a).
    common = sp.hstack([sp.eye_array(3200), np.ones((3200, 1))], format="csr")
    for square, expected in ((0.001, 32), (0.11, 20), (0.15, 15), (0.3, 8), (0.4, 0)):
        common.data[1::2] = np.sqrt(square)
        assert batch(common, np.arange(3200) % 100) == expected


def test_short_rows_stay_serial():
    y = np.arange(3200)
    columns = np.random.default_rng(0).permuted(np.tile(np.arange(900), (3200, 1)), axis=1)
    for words, n_classes, expected in ((9, 100, 32), (8, 100, 0), (8, 112, 0), (8, 113, 32)):
        X = sp.csr_array((np.ones(3200 * words), (np.repeat(y, words), columns[:, :words].ravel())), shape=(3200, 900))
        assert _shares.batch_size(Problem(X, y % n_classes)) == expected


class Broken(RuntimeError):
    pass


@pytest.mark.parametrize("started", [0, 1])
def test_an_error_among_the_threads_leaves_nobody_waiting(small_batches, rare_words, monkeypatch, started):
    problem = Problem(*rare_words)
    solver = make_solver("sdca", problem, make_spec("maxhinge", 20), 0.01, n_threads=3)
    submit = solver.pool.submit

    def few(call, *args):
        # As Ctrl-C would, or a thread that cannot be started.
        few.count += 1
        if few.count > started:
            raise Broken
        return submit(call, *args)

    few.count = 0
    monkeypatch.setattr(solver.pool, "submit", few)
    with pytest.raises(Broken):
        solver.visit(solver.draw(np.random.default_rng(0), solver.active), 0, problem.n_samples, 0.0)
    monkeypatch.undo()
    # All threads are free again.
    assert sorted(solver.pool.map(abs, range(3))) == [0, 1, 2]


def test_small_problems_have_one_thread(digits):
    for copies, expected in ((17, 1), (18, 3)):
        # 1797 rows of 64 numbers, 10 classes
        X, y = np.tile(digits[0], (copies, 1)), np.tile(digits[1], copies)
        assert make_solver("sdca", Problem(X, y), make_spec("maxhinge", 10), 0.01, n_threads=3).n_threads == expected


def test_small_texts_have_one_thread():
    rng = np.random.default_rng(0)
    for n, expected in ((9999, (1, 0)), (10000, (2, 64))):
        X = sp.csr_array((np.ones(20 * n), rng.permuted(np.tile(np.arange(900), (n, 1)), axis=1)[:, :20].ravel(),
                          np.arange(0, 20 * n + 1, 20)), shape=(n, 900))
        solver = make_solver("sdca", Problem(X, np.arange(n) % 100), make_spec("maxhinge", 100), 0.01, n_threads=2)
        assert (solver.n_threads, solver.batch) == expected


def test_zero_threads_are_the_cores_allowed(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    cores = _threads.count_threads(0)
    assert 1 <= cores <= os.cpu_count() and _threads.count_threads(7) == 7
    for allowed, expected in (("1", 1), ("0", 1), ("1000", cores), ("", cores), ("2,1", cores)):
        monkeypatch.setenv("OMP_NUM_THREADS", allowed)
        assert _threads.count_threads(0) == expected


@pytest.mark.parametrize("count", [1, 2, 3, 8])
def test_columns_are_shared_out_by_what_they_take(always_threads, rare_words, count):
    X, y = rare_words
    for bias in (None, 1.0):
        problem = Problem(X, y, bias=bias)
        ranges = _shares.column_ranges(problem, count)
        assert len(ranges) == count and ranges[0].start == 0 and ranges[-1].stop == problem.n_weights
        assert all(left.stop == right.start for left, right in zip(ranges, ranges[1:]))
        entries = np.diff(X.tocsc().indptr)
        # Up to n/64 entries each finds its row of W out of the cache.
        cost = entries + 3 * np.minimum(entries, 600 // 64)
        assert max(cost[columns].sum() for columns in ranges) <= cost.sum() / count + cost.max()
        solvers = [make_solver("sdca", problem, make_spec("maxhinge", 20), 0.01, n_threads=n) for n in (1, count)]
        for solver in solvers:
            list(solver.sweep(np.random.default_rng(0)))
            solver.terms()
        np.testing.assert_array_equal(solvers[0].checked, solvers[1].checked)
        exact = problem.weights_of(solvers[0].dual_matrix(), 0.01)
        np.testing.assert_allclose(solvers[0].checked, exact, rtol=0, atol=1e-13 * np.abs(exact).max())


# ---------------------------------------------------------------- memory

@pytest.mark.parametrize("m", [20, 150, 1000])
def test_memory_of_training_is_that_of_two_W(m):
    n, d = 4 * m, 3000
    X = sp.random_array((n, d), density=0.01, random_state=0, format="csr")
    y = np.arange(n) % m
    fastmc.train(X[:100], y[:100], tol=0, max_passes=1)
    tracemalloc.start()
    try:
        model = fastmc.train(X, y, tol=0, max_passes=3)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # float32 W and the last W in whole vectors, the float64 W that is returned; some arrays of n
    # and of the lists. A dense dual alone would be 8 n m.
    weights = 8 * d * m
    padded = 8 * d * (-(-m // 8) * 8)
    lists = 16 * model.dual_.nnz
    assert peak <= weights + padded + 8 * lists + 400 * n + 3 * 12 * X.nnz + 2**20
    assert model.weights.nbytes == weights
