"""What the exact solver is made of: vector loops, dual lists, closed forms, precision, memory."""
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

import fastmc
from fastmc import _certificate, _dual_rows, _sdca, _vector, reference
from fastmc._exact_solver import Momentum
from fastmc._order import ListOrder
from fastmc._problem import Problem
from fastmc._solvers import make_solver
from fastmc.losses import make_spec


@pytest.fixture(params=_vector.supported())
def instruction_set(request):
    """Runs the test with the loops of one instruction set."""
    before = _vector.in_use()
    _vector.use(request.param)
    yield request.param
    _vector.use(before)


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
        _sdca.sdca_pass(solver.samples, solver.loss, solver.padded, solver.rows, solver.gaps, solver.gains,
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
def test_certificates_are_exact_in_every_precision(digits, precision):
    X, y = digits
    model = fastmc.train(X, y, C=0.1, tol=1e-3, precision=precision)
    found = _certificate.certificate(Problem(X, y), model.spec, model.weights, model.dual_, model.lam)
    assert model.status == "converged" and found.relative_gap <= 1e-3
    np.testing.assert_allclose(model.certificate, found, rtol=1e-11, atol=1e-15)
    assert model.weights.dtype == np.float64


def test_auto_goes_on_in_double_below_its_limit(digits):
    dtypes = []
    model = fastmc.train(*digits, C=0.1, tol=1e-7, max_passes=5000,
                         callback=lambda state: dtypes.append((state.gap_estimate, state._run.solver.padded.dtype)))
    assert model.status == "converged" and model.certificate.relative_gap <= 1e-7
    kinds = [dtype for _, dtype in dtypes]
    switch = kinds.index(np.float64)
    assert set(kinds[:switch]) == {np.dtype(np.float32)} and set(kinds[switch:]) == {np.dtype(np.float64)}
    assert dtypes[switch][0] < 1e-4 < dtypes[switch - 1][0] / model.certificate.primal


@pytest.mark.parametrize("change", [dict(C=1e-9), dict(C=1e9), dict(factor=1e8), dict(factor=1e-8)])
def test_auto_is_double_for_numbers_of_extreme_size(digits, change):
    X, y = digits
    change = dict(change)
    kinds = set()
    fastmc.train(X * change.pop("factor", 1.0), y, tol=0, max_passes=2,
                 callback=lambda state: kinds.add(state._run.solver.padded.dtype), **change)
    assert kinds == {np.dtype(np.float64)}


def test_looking_on_does_not_change_the_passes(digits):
    quiet, watched = (fastmc.train(*digits, C=1.0, tol=0, max_passes=40, callback=callback)
                      for callback in (None, lambda state: state.certificate is None))
    assert len(watched.history["passes"]) == 40
    assert watched.history["primal"][-1] <= quiet.certificate.primal
    assert watched.certificate.dual == quiet.certificate.dual


# ---------------------------------------------------------------- threads

@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_threads_do_not_change_a_bit(digits, loss_options, smoothing):
    X, y = digits
    cost = 1.0 - np.eye(10) if loss_options["loss"] == "structured" else None
    models = [fastmc.train(X[:301], y[:301], C=0.1, tol=1e-3, smoothing=smoothing, cost=cost, n_threads=n, **loss_options)
              for n in (1, 2, 3, 0)]
    for model in models[1:]:
        np.testing.assert_array_equal(model.weights, models[0].weights)
        assert model.certificate == models[0].certificate


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
    # float32 W and the last W in whole vectors, float64 W of the certificate; some arrays of n
    # and of the lists. A dense dual alone would be 8 n m.
    weights = 8 * d * m
    padded = 8 * d * (-(-m // 8) * 8)
    lists = 16 * model.dual_.nnz
    assert peak <= weights + padded + 8 * lists + 400 * n + 3 * 12 * X.nnz + 2**20
    assert model.weights.nbytes == weights
