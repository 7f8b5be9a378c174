"""The block solvers: Frank-Wolfe variants, active sets, corner cache, gap sampling, averaging.

What a solver claims is recomputed from definitions; kernels and mirror are compared bit for bit.
"""
import math
import tracemalloc
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

import fastmc
from fastmc import _dual_rows, _order, _sdca, reference
from fastmc._certificate import block_gaps, certificate, infeasibility
from fastmc._options import check_solver
from fastmc._problem import Problem
from fastmc._solvers import make_solver
from fastmc.losses import make_spec

ENGINES = ("cython", "reference")
SAMPLINGS = ("permutation", "uniform", "cyclic", "gap")
EXACT = ("sdca", "pairwise", "away")
FRANK_WOLFE = ("bcfw", "pairwise", "away")


def recomputed(p, model, loss_options, cost=None, weight=None):
    """The certificate of a model and its dual, and that dual's infeasibility."""
    options = {name: value for name, value in loss_options.items() if name != "loss"}
    spec = make_spec(loss_options["loss"], len(model.classes_), **options)
    problem = Problem(p.X, p.y, cost, None, None, weight)
    dual = model.dual_.toarray()
    return (certificate(problem, spec, model.weights, dual, model.lam, model.smoothing),
            infeasibility(problem, spec, dual))


def check(p, model, loss_options, tol, **data):
    """The model is certified to tol, and says no more than is true."""
    found, violation = recomputed(p, model, loss_options, **data)
    assert model.status == "converged" and found.relative_gap <= tol
    if model.solver == "sdca":
        # Its dual value may be less than that of A by the rounding of W, squared.
        assert model.certificate.primal == pytest.approx(found.primal, rel=1e-12)
        assert found.dual - 1e-10 * found.primal <= model.certificate.dual <= found.dual + 1e-12 * found.primal
    else:
        np.testing.assert_allclose(model.certificate, found, rtol=1e-9, atol=1e-12)
    assert violation <= 1e-12


def cost_of(p, loss_options, at):
    """A cost that takes turns: none (where the loss allows), by class, by sample."""
    cost = [None, p.cost, p.costs][at % 3]
    return p.cost if cost is None and loss_options["loss"] == "structured" else cost


def assert_overlap(models):
    """Every dual value is below every primal value: all bracket one optimum."""
    best = max(model.certificate.dual for model in models)
    assert best <= min(model.certificate.primal for model in models) + 1e-12


# ---------------------------------------------------------------- convergence

@pytest.mark.parametrize("smoothing", [0.0, 0.3])
@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_exact_solvers_converge(some_digits, loss_options, sampling, smoothing):
    # Cache and weights take turns so that every pair of option values occurs.
    p, s, g = some_digits, SAMPLINGS.index(sampling), int(smoothing > 0)
    weight = p.weight if (s // 2 + g) % 2 else None
    cost = cost_of(p, loss_options, s + g)
    models = []
    for solver in EXACT:
        for C in (0.1,) if s else (0.1, 1.0):
            cache = 0 if solver == "sdca" else 5 * ((s + g) % 2)
            model = fastmc.train(p.X, p.y, solver=solver, sampling=sampling, smoothing=smoothing,
                                 cache_size=cache, cost=cost, sample_weight=weight, C=C, tol=1e-4,
                                 max_passes=5000, **loss_options)
            check(p, model, loss_options, 1e-4, cost=cost, weight=weight)
            assert (model.history["cache_hits"][-1] > 0) == (cache > 0)
            if C == 0.1:
                models.append(model)
    assert_overlap(models)


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_slow_solvers_bracket(some_digits, loss_options, smoothing):
    p, at = some_digits, int(smoothing > 0)
    cost, weight = cost_of(p, loss_options, at), [None, p.weight][at]
    models = [fastmc.train(p.X, p.y, C=0.1, tol=1e-5, max_passes=10000, cost=cost,
                           sample_weight=weight, smoothing=smoothing, **loss_options)]
    for solver in ("fw", "stdfw", "pg", "bcfw", "bcfw average", "bcfw cache"):
        extra = {"averaging": True} if "average" in solver else {}
        extra = {"cache_size": 5} if "cache" in solver else extra
        model = fastmc.train(p.X, p.y, solver=solver.split()[0], C=0.1, tol=5e-2, max_passes=5000,
                             cost=cost, sample_weight=weight, smoothing=smoothing, **extra,
                             **loss_options)
        check(p, model, loss_options, 5e-2, cost=cost, weight=weight)
        models.append(model)
    assert_overlap(models)


@pytest.mark.parametrize("solver", FRANK_WOLFE)
@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_warm_start_from_another_solver(some_digits, loss_options, solver, smoothing):
    # The start is an inner point of the domain, no corner: it becomes the one atom of its sample.
    p, tol = some_digits, 5e-2 if solver == "bcfw" else 1e-3
    cost = cost_of(p, loss_options, 0)
    cold = fastmc.train(p.X, p.y, C=0.1, tol=1e-4, cost=cost, sample_weight=p.weight,
                        smoothing=smoothing, **loss_options)
    for other in ("sdca", "fw"):
        init = fastmc.train(p.X, p.y, solver=other, C=0.05, tol=0, max_passes=3, cost=cost,
                            sample_weight=p.weight, **loss_options)
        model = fastmc.train(p.X, p.y, solver=solver, C=0.1, tol=tol, init=init, cost=cost,
                             sample_weight=p.weight, cache_size=3, smoothing=smoothing,
                             max_passes=5000, **loss_options)
        check(p, model, loss_options, tol, cost=cost, weight=p.weight)
        assert_overlap([model, cold])


DEGENERATE = ("all rows empty", "equal columns", "one feature", "two classes", "free errors",
              "all costs zero", "one sample of weight")


def degenerate(name):
    rng = np.random.default_rng(11)
    X, y = rng.normal(size=(24, 4)), np.arange(24) % 4
    X[:3] = 0.0
    cost = weight = None
    if name == "all rows empty":
        X[:] = 0.0
    elif name == "equal columns":
        X[:] = 1.0
    elif name == "one feature":
        X = X[:, :1]
    elif name == "two classes":
        y %= 2
    elif name == "free errors":
        cost = (rng.random((4, 4)) < 0.5) * (1.0 - np.eye(4))
    elif name == "all costs zero":
        cost = np.zeros((4, 4))
    else:
        weight = np.zeros(24)
        weight[5] = 2.0
    return X, y, cost, weight


@pytest.mark.parametrize("name", DEGENERATE)
@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_degenerate_data(name, smoothing):
    X, y, cost, weight = degenerate(name)
    p = SimpleNamespace(X=X, y=y)
    top = y.max()   # as many ranks as there are other classes
    losses = [{"loss": "maxhinge"}, {"loss": "topk", "k": top}, {"loss": "usunier", "k": top},
              {"loss": "topk", "k": top, "own_class": False}]
    for options in losses:
        models = []
        for solver in EXACT:
            for sampling in ("permutation", "gap"):
                for cache in (0,) if solver == "sdca" else (0, 2):
                    model = fastmc.train(X, y, solver=solver, sampling=sampling, cache_size=cache,
                                         cost=cost, sample_weight=weight, smoothing=smoothing,
                                         tol=1e-4, max_passes=3000, **options)
                    check(p, model, options, 1e-4, cost=cost, weight=weight)
                    models.append(model)
        assert_overlap(models)


@pytest.mark.parametrize("C", [1e-6, 1e-9, 1e-12])
@pytest.mark.parametrize("solver", EXACT)
def test_tiny_C_with_equal_costs(loss_options, solver, C):
    # The targets of the exact step are of size 1/C; what classes of equal cost share is not.
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 5)), np.arange(60) % 10
    cost = rng.choice([0.0, 1 / 3, 1 / 3, 1 / 3, 1.0], size=(60, 10))
    cost[np.arange(60), y], cost[np.arange(60), (y + 1) % 10] = 0.0, 1.0
    model = fastmc.train(X, y, solver=solver, cost=cost, C=C, tol=1e-7, **loss_options)
    check(SimpleNamespace(X=X, y=y), model, loss_options, 1e-7, cost=cost)
    assert model.certificate.gap >= -1e-14


# ---------------------------------------------------------------- kernel and mirror

def twins(problem, spec, lam, smoothing, dual=None, **options):
    return [make_solver(problem=problem, spec=spec, lam=lam, smoothing=smoothing, engine=engine,
                        dual=None if dual is None else dual.copy(), **options) for engine in ENGINES]


def sweep_both(pair, passes, seed=0):
    """Passes of both engines, compared after each: W, A, gaps, counts, atoms, averages."""
    kernel, mirror = pair
    rngs = [np.random.default_rng(seed) for _ in pair]
    for _ in range(passes):
        for solver, rng in zip(pair, rngs):
            for _ in solver.sweep(rng):
                pass
        for name in ("weights", "dual", "gaps"):
            np.testing.assert_array_equal(getattr(kernel, name), getattr(mirror, name), name)
        assert np.isfinite(kernel.weights).all()
        assert (kernel.oracle_calls, kernel.cache_hits) == (mirror.oracle_calls, mirror.cache_hits)
        if kernel.atoms is not None:
            for i in range(kernel.problem.n_samples):
                assert kernel.atoms.items(i) == mirror.atoms.items(i)
        for ours, theirs in zip(kernel.pairs(), mirror.pairs(), strict=True):
            np.testing.assert_array_equal(ours[0], theirs[0])
            np.testing.assert_array_equal(ours[1], theirs[1])
    assert np.abs(kernel.weights).max() > 0


@pytest.mark.parametrize("kind", FRANK_WOLFE)
@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_kernel_equals_mirror(draw, loss_options, kind, smoothing):
    at, hits = 0, 0
    options = {name: value for name, value in loss_options.items() if name != "loss"}
    for layout in ("csr", "dense"):
        for dtype in (np.float32, np.float64):
            for cache, sampling in ((0, "gap"), (4, "permutation"), (1, "uniform"), (50, "gap")):
                at += 1
                p = draw(n=12 + at % 5, m=4 + at % 3, d=5, seed=at, layout=layout, dtype=dtype)
                problem = Problem(p.X, p.y, cost_of(p, loss_options, at), 0.5 if at % 2 else None,
                                  None, p.weight if at % 4 else None)
                spec = make_spec(loss_options["loss"], problem.n_classes, **options)
                lam = 1.0 / ([0.1, 1.0, 10.0][at % 3] * problem.n_samples)
                dual = None
                if at % 2 == 0:
                    start = make_solver("sdca", problem, spec, lam)
                    list(start.sweep(np.random.default_rng(at)))
                    dual = start.dual_matrix().toarray()
                pair = twins(problem, spec, lam, smoothing, dual, name=kind, sampling=sampling,
                             cache_size=cache, averaging=at % 3 == 0, gap_refresh=2)
                sweep_both(pair, 4, at)
                for solver in pair:
                    solver.shrink(0.7, 0.8)
                sweep_both(pair, 2, at)
                hits += pair[0].cache_hits
    assert hits > 100


@pytest.mark.parametrize("kind", FRANK_WOLFE)
def test_kernel_equals_mirror_on_many_classes(draw, kind):
    p = draw(n=80, m=40, d=12)
    problem = Problem(p.X, p.y, 0.01 * (1 - np.eye(40)), None, None, p.weight)
    for name, k in (("maxhinge", 1), ("topk", 3), ("usunier", 39)):
        spec = make_spec(name, 40, k)
        for cache in (0, 5):
            sweep_both(twins(problem, spec, 1 / 80, 0.0, name=kind, sampling="gap",
                             cache_size=cache), 3)


@pytest.mark.parametrize("kind", ["pairwise", "away"])
def test_warm_start_with_a_dual_that_underflows(draw, kind):
    # The dual of a sample over its weight is nothing: its corner is the zero corner.
    p = draw(n=12, m=4, d=3)
    problem = Problem(p.X, p.y, sample_weight=np.full(12, 4.0))
    dual = np.zeros((12, 4))
    dual[np.arange(12), (p.y + 1) % 4], dual[np.arange(12), p.y] = -5e-324, 5e-324
    pair = twins(problem, make_spec("maxhinge", 4), 1 / 12, 0.0, dual, name=kind)
    assert [pair[0].atoms.items(i) for i in range(12)] == [[({}, 1.0)]] * 12
    sweep_both(pair, 3)


# ---------------------------------------------------------------- stale gaps

@pytest.mark.parametrize("solver", EXACT)
def test_stale_gaps_are_no_certificate(some_digits, solver):
    p, seen = some_digits, []
    options = dict(solver=solver, sampling="gap", C=0.3, tol=1e-3, max_passes=400)

    def watch(state):
        seen.append((state.gap_estimate, state.certificate.gap))

    with pytest.warns(fastmc.ConvergenceWarning):
        stale = fastmc.train(p.X, p.y, gap_refresh=0, callback=watch, **options)
    estimate, gap = np.array(seen).T
    # The best certificate so far is below the gap of the moment: a strict comparison.
    assert (estimate < gap).any() and (estimate < 1e-3 * stale.certificate.primal).any()
    assert stale.status == "max_passes" and stale.certificate.relative_gap > 1e-3
    model = fastmc.train(p.X, p.y, gap_refresh=10, **options)
    check(p, model, {"loss": "maxhinge"}, 1e-3)


# ---------------------------------------------------------------- GapOrder

class Probe:
    """Draws of a GapOrder one at a time.

    Rows of X are empty and the dual is kept at zero, so that the gap which a visit sees is the
    cost, and the visited sample the one whose gap is written.
    """

    def __init__(self, engine, gaps, weight=None):
        n = self.n = len(gaps)
        self.engine, self.cost = engine, np.zeros((n, 3))
        self.label = np.arange(n) % 2
        self.costs = lambda g: self.cost.__setitem__((np.arange(n), 1 - self.label), g)
        self.costs(gaps)
        y = self.label.copy()
        y[-1], self.cost[-1] = 2, 0.0
        self.problem = Problem(np.zeros((n, 1)), y, self.cost, None, None, weight)
        self.active = np.flatnonzero(self.problem.weight > 0)
        module = _order if engine == "cython" else reference.order
        self.order = module.GapOrder(self.active, n)
        self.order.refresh(np.asarray(gaps, dtype=float))
        self.weights, self.gaps, self.gains = np.zeros((1, 3)), np.zeros(n), np.zeros(n)
        self.samples, self.loss = self.problem.samples("cython"), make_spec("maxhinge", 3).make()

    def draw(self, uniforms, new=None):
        """The sample at each position; `new` holds the gaps that the visits find."""
        self.order.draw(uniforms)
        gaps, found = self.gaps, []
        for position in range(len(uniforms)):
            if new is not None:
                self.costs(new[position])
                self.cost[-1] = 0.0
            if self.engine == "reference":
                i = self.order.next(position)
                self.order.saw(i, float(self.cost[i].max()))
            else:
                gaps[:] = np.nan
                # No dual yet, so that the gap is the loss.
                _sdca.sdca_pass(self.samples, self.loss, self.weights, _dual_rows.DualRows(self.n, 3), gaps,
                                self.gains, self.order, position, position + 1, 1.0, 0.0, 0.0)
                i = int(np.flatnonzero(np.isfinite(gaps))[0])
            found.append(i)
        return np.array(found)


@pytest.mark.parametrize("engine", ENGINES)
def test_frequencies_follow_the_gaps(engine):
    rng = np.random.default_rng(0)
    gaps = rng.exponential(size=37)
    gaps[[0, 5, 17, 18, 19, 36]] = 0.0
    draws = 20000
    counts = np.bincount(Probe(engine, gaps).draw(rng.random(draws)), minlength=37)
    expected = draws * gaps / gaps.sum()
    assert (counts[gaps == 0] == 0).all()
    used = gaps > 0
    chi2 = np.sum((counts[used] - expected[used]) ** 2 / expected[used])
    # Mean 30, standard deviation below 8.
    assert chi2 < 30 + 4 * 8


@pytest.mark.parametrize("engine", ENGINES)
def test_gaps_of_many_scales(engine):
    # One sample owns nearly all; the last number below one must not reach an empty leaf.
    gaps = np.array([0.0, 1e-300, 0.0, 1.0, 1e-17, 0.0, 0.0, 0.0, 0.0])
    last = np.nextafter(1.0, 0.0)
    found = Probe(engine, gaps).draw(np.array([0.0, 1e-310, 0.5, 0.999, last]))
    assert found[0] == 1 and (gaps[found] > 0).all() and (found[2:4] == 3).all()


@pytest.mark.parametrize("engine", ENGINES)
def test_no_gap_means_uniform(engine):
    weight = np.ones(20)
    weight[[2, 3, 11]] = 0.0
    rng = np.random.default_rng(1)
    probe = Probe(engine, np.zeros(20), weight)
    counts = np.bincount(probe.draw(rng.random(8500)), minlength=20)
    assert (counts[weight == 0] == 0).all()
    # 500 each, standard deviation 22.
    assert np.abs(counts[weight > 0] - 500).max() < 4 * 22
    assert probe.draw(np.array([0.0, np.nextafter(1.0, 0.0)])).tolist() == [0, 19]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("n", [3, 8, 9, 33])
def test_updates_against_a_cumulative_sum(engine, n):
    rng = np.random.default_rng(n)
    gaps = rng.random(n) * (rng.random(n) < 0.7)
    gaps[-1], gaps[0] = 0.0, 1.0
    uniforms, steps = rng.random(3000), 3000
    new = rng.exponential(size=(steps, n)) * (rng.random((steps, n)) < 0.8)
    new *= 10.0 ** rng.integers(-6, 7, size=(steps, 1))
    probe = Probe(engine, gaps)
    found = probe.draw(uniforms, new)
    expected = gaps.copy()
    compared = even = 0
    for position, i in enumerate(found):
        total = math.fsum(expected)
        if total == 0:
            # A gap of zero stays until all are zero; then each sample is as likely as any other.
            assert i == int(uniforms[position] * n)
            even += 1
        else:
            edges = np.cumsum(expected)
            target = uniforms[position] * total
            # Rounding may decide at an edge.
            if np.abs(edges - target).min() > 1e-12 * total:
                assert i == np.searchsorted(edges, target, side="right")
                compared += 1
        expected[i] = new[position, i] if i != n - 1 else 0.0
    assert even > 300 and compared + even > 0.99 * steps
    if engine == "reference":
        assert probe.order.tree[1] == pytest.approx(math.fsum(expected), rel=1e-14)


@pytest.mark.parametrize("n", [3, 8, 21])
def test_draws_equal_in_kernel_and_mirror(n):
    rng = np.random.default_rng(n)
    gaps, uniforms, new = rng.random(n), rng.random(2000), rng.exponential(size=(2000, n))
    gaps[-1] = 0.0
    kernel, mirror = (Probe(engine, gaps).draw(uniforms, new) for engine in ENGINES)
    np.testing.assert_array_equal(kernel, mirror)


# ---------------------------------------------------------------- active sets

def assert_active_sets(solver, cache):
    problem = solver.problem
    for i in range(problem.n_samples):
        corners, weights = zip(*solver.atoms.items(i))
        weights = np.array(weights)
        assert (weights >= 0).all() and abs(weights.sum() - 1.0) <= 1e-12
        # No corner twice; beyond the cache only corners in use.
        assert len({tuple(sorted(corner.items())) for corner in corners}) == len(corners)
        assert len(corners) - 1 <= max(cache, np.count_nonzero(weights[1:]))
        alpha, own = np.zeros(problem.n_classes), problem.label[i]
        for corner, weight in zip(corners, weights):
            for c, value in corner.items():
                alpha[c] -= weight * value
                alpha[own] += weight * value
        if solver.kind != "bcfw":
            assert np.abs(problem.weight[i] * alpha - solver.dual[i]).max() <= 1e-12
    assert infeasibility(problem, solver.spec, solver.dual) <= 1e-12
    weights = problem.weights_of(solver.dual, solver.lam)
    assert np.abs(weights - solver.weights).max() <= 1e-9 * np.abs(weights).max()


@pytest.mark.parametrize("C", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("kind", FRANK_WOLFE)
def test_active_sets_after_a_million_steps(kind, C):
    # Costs that change keep the steps going: corners come, drop out and come back.
    n, m, visits = 12, 5, 1000
    rng = np.random.default_rng([FRANK_WOLFE.index(kind), int(C > 1)])
    X, y = rng.normal(size=(n, 3)), np.arange(n) % m
    X[0] = 0.0
    weight = np.array([0.0, 0.3, 1.0, 2.0] * 3)
    problems = []
    for _ in range(8):
        cost = rng.integers(0, 4, size=(n, m)) * 0.3
        cost[np.arange(n), y] = 0.0
        problems.append(Problem(X, y, cost, None, None, weight))
    samples = [problem.samples() for problem in problems]
    for name, options, smoothing, cache in (
            ("maxhinge", {}, 0.0, 1), ("topk", {"k": 3}, 0.0, 0), ("usunier", {"k": 4}, 0.3, 3),
            ("wusunier", {"rho": [3.0, 2.0, 2.0]}, 0.0, 0),
            ("topk", {"k": 3, "own_class": False}, 1e-6, 2)):
        cache = max(cache, int(kind == "bcfw"))
        solver = make_solver(kind, problems[0], make_spec(name, m, **options), 1.0 / (C * n),
                             smoothing, sampling="uniform", cache_size=cache)
        active, used = solver.active, []
        for turn in range(200):
            solver.samples = samples[rng.integers(8)]
            order = _order.ListOrder(active[rng.integers(len(active), size=visits)])
            solver.visit(order, 0, visits)
            if turn % 20 == 19:
                assert_active_sets(solver, cache)
                used.append(solver.dual.copy())
        assert solver.oracle_calls + solver.cache_hits == 200 * visits
        # The steps went on until the end.
        assert not np.array_equal(used[-1], used[-2])


def test_slots_are_used_again(draw):
    # Each pass adds and drops corners; the pool is as large as it was after the first passes.
    p = draw(n=200, m=6, d=4, empty=0)
    solver = make_solver("pairwise", Problem(p.X, p.y), make_spec("topk", 6, 3), 1 / 200,
                         cache_size=2)
    rng = np.random.default_rng(0)

    def passes(count):
        for _ in range(count):
            for _ in solver.sweep(rng):
                pass
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        before = passes(20)
        # 40,000 visits; a slot takes over 80 bytes.
        assert passes(200) - before < 20000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", FRANK_WOLFE)
def test_a_visit_without_a_step_leaves_no_corner_behind(engine, kind):
    # First class 1 costs most; then class 0 as much, and the oracle names it at no gain.
    X, y = np.zeros((4, 1)), np.array([2, 0, 1, 2])
    first, then = (Problem(X, y, cost) for cost in (
        [[0, 1, 1], [1, 0, 1], [0.5, 1, 0]], [[0, 1, 1], [1, 0, 1], [1.0, 1, 0]]))
    solver = make_solver(kind, first, make_spec("maxhinge", 3), 0.25, engine=engine,
                         cache_size=int(kind == "bcfw"))
    order = solver.kernels["order"].ListOrder(np.array([0]))
    solver.visit(order, 0, 1)
    assert solver.dual[0].tolist() == [0.0, -1.0, 1.0]
    solver.samples = then.samples(engine)
    solver.visit(order, 0, 1)
    assert solver.dual[0].tolist() == [0.0, -1.0, 1.0]
    # The cache of bcfw has room for one, the last.
    expected = [({}, 1.0), ({0: 1.0}, 0.0)] if kind == "bcfw" else [({}, 0.0), ({1: 1.0}, 1.0)]
    assert solver.atoms.items(0) == expected


# ---------------------------------------------------------------- cache

@pytest.mark.parametrize("kind", FRANK_WOLFE)
@pytest.mark.parametrize("cache", [1, 3, 100])
def test_cache_counts(some_digits, loss_options, kind, cache):
    p = some_digits
    options = {name: value for name, value in loss_options.items() if name != "loss"}
    problem = Problem(p.X, p.y, p.cost, None, None, p.weight)
    spec = make_spec(loss_options["loss"], 10, **options)
    solver = make_solver(kind, problem, spec, 1 / 300, cache_size=cache, gap_refresh=3)
    active = np.count_nonzero(p.weight)
    rng, refreshes = np.random.default_rng(0), 0
    for done in range(8):
        refreshes += done % 3 == 0
        for _ in solver.sweep(rng):
            pass
        # Full gap passes count as oracle calls.
        assert solver.oracle_calls + solver.cache_hits == active * (done + 1 + refreshes)
        assert_active_sets(solver, cache)
    assert solver.cache_hits > active


@pytest.mark.parametrize("kind", FRANK_WOLFE)
def test_cache_that_never_promises_enough(some_digits, kind):
    p = some_digits
    options = dict(loss="topk", k=3, solver=kind, C=0.1, tol=0, max_passes=30)
    plain = fastmc.train(p.X, p.y, **options)
    for greedy in ({"cache_nu": 1e300}, {"cache_nu": 1e300, "cache_f": 1e300}):
        model = fastmc.train(p.X, p.y, cache_size=5, **greedy, **options)
        assert model.history["cache_hits"][-1] == 0
        np.testing.assert_allclose(model.certificate, plain.certificate, rtol=1e-9)


@pytest.mark.parametrize("kind", FRANK_WOLFE)
def test_cache_that_is_always_good_enough(some_digits, kind):
    # The oracle is called only where no corner at hand gains anything; the gaps it saw are old.
    p = some_digits
    for refresh in (0, 10):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", fastmc.ConvergenceWarning)
            model = fastmc.train(p.X, p.y, solver=kind, C=0.1, cache_size=20, cache_f=0.0,
                                 cache_nu=0.0, gap_refresh=refresh, tol=5e-2, max_passes=300)
        found, violation = recomputed(p, model, {"loss": "maxhinge"})
        np.testing.assert_allclose(model.certificate, found, rtol=1e-9)
        assert violation <= 1e-12
        assert (model.status == "converged") == (found.relative_gap <= 5e-2)
        # It left the zero corners it starts with.
        assert found.relative_gap < 0.5
        assert model.history["cache_hits"][-1] > model.history["oracle_calls"][-1] / 2


def test_huge_cache_size(draw):
    p = draw()
    models = [fastmc.train(p.X, p.y, solver="pairwise", cache_size=size, tol=0, max_passes=3)
              for size in (1000, 2**80)]
    np.testing.assert_array_equal(models[0].weights, models[1].weights)


@pytest.mark.parametrize("layout", ["csr", "dense"])
def test_class_scores_equal_scores(draw, layout):
    # The mirror's; the kernel's equal them wherever a cache hit gives the same bits as the mirror.
    p = draw(m=7, layout=layout)
    problem = Problem(p.X, p.y, bias=0.3)
    samples = problem.samples("reference")
    weights = np.random.default_rng(0).normal(size=(problem.n_weights, 7))
    for i in range(problem.n_samples):
        samples.load(i)
        some = [0.0] * 7
        samples.class_scores(weights, [1, 4, 6], some)
        scores = samples.scores(weights)
        assert [some[c] for c in (1, 4, 6)] == [scores[c] for c in (1, 4, 6)]


# ---------------------------------------------------------------- averaging

@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", FRANK_WOLFE)
@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_average_of_the_iterates(draw, loss_options, engine, kind, smoothing):
    p = draw(n=16, m=5, d=4, seed=2)
    options = {name: value for name, value in loss_options.items() if name != "loss"}
    problem = Problem(p.X, p.y, p.cost, None, None, p.weight)
    spec = make_spec(loss_options["loss"], 5, **options)
    lam = 1 / (2.0 * 16)
    solver = make_solver(kind, problem, spec, lam, smoothing, engine, averaging=True,
                         cache_size=2)
    rng = np.random.default_rng(3)
    weights, dual, total = np.zeros_like(solver.weights), np.zeros_like(solver.dual), 0.0
    steps = 60
    order = solver.kernels["order"].ListOrder(solver.active[rng.integers(len(solver.active), size=steps)])
    for step in range(1, steps + 1):
        solver.visit(order, step - 1, step)
        weights += step * solver.weights
        dual += step * solver.dual
        total += step
    (_, last), (mean_weights, mean_dual) = solver.pairs()
    assert np.abs(mean_weights - weights / total).max() <= 1e-12 * max(1.0, np.abs(weights).max() / total)
    assert np.abs(mean_dual - dual / total).max() <= 1e-12
    assert not np.array_equal(mean_dual, last)
    assert infeasibility(problem, spec, mean_dual) <= 1e-12
    found = certificate(problem, spec, mean_weights, mean_dual, lam, smoothing)
    # W belongs to A here, so the mean block gap is the gap.
    gaps = block_gaps(problem, spec, mean_weights, mean_dual, smoothing)
    assert found.gap >= 0 and found.gap == pytest.approx(gaps.mean(), rel=1e-9)


def test_average_is_returned_where_it_is_better(some_digits):
    p = some_digits
    options = dict(solver="bcfw", sampling="uniform", C=1.0, tol=0, max_passes=20)
    plain = fastmc.train(p.X, p.y, **options)
    model = fastmc.train(p.X, p.y, averaging=True, **options)
    assert model.certificate.primal < plain.certificate.primal
    found, violation = recomputed(p, model, {"loss": "maxhinge"})
    np.testing.assert_allclose(model.certificate, found, rtol=1e-12)
    assert violation <= 1e-12


# ---------------------------------------------------------------- options

ERRORS = [
    ({"solver": "newton"}, "solver='newton' is unknown; valid: auto, sdca, bcfw, pairwise, away, "
                           "fw, stdfw, pg"),
    ({"solver": None}, "solver=None is unknown"),
    ({"sampling": "random"}, "sampling='random' is unknown; valid: permutation, uniform, cyclic, gap"),
    ({"solver": "fw", "sampling": "gap"}, "sampling='gap' is for block solvers, not solver='fw'"),
    ({"solver": "pg", "sampling": "cyclic"}, "sampling='cyclic' is for block solvers, not solver='pg'"),
    ({"gap_refresh": -1}, "gap_refresh=-1 must be a whole number of at least 0"),
    ({"gap_refresh": 2.5}, "gap_refresh=2.5 must be a whole number of at least 0"),
    ({"gap_refresh": True}, "gap_refresh=True must be a whole number of at least 0"),
    ({"solver": "bcfw", "cache_size": -3}, "cache_size=-3 must be a whole number of at least 0"),
    ({"solver": "bcfw", "cache_size": "5"}, "cache_size='5' must be a whole number of at least 0"),
    ({"cache_size": 5}, "cache_size=5 is for bcfw, pairwise, away, not solver='sdca'"),
    ({"solver": "fw", "cache_size": 5}, "cache_size=5 is for bcfw, pairwise, away, not solver='fw'"),
    ({"solver": "sdca", "averaging": True}, "averaging=True is for bcfw, pairwise, away, not solver='sdca'"),
    ({"solver": "stdfw", "averaging": True}, "averaging=True is for bcfw, pairwise, away, not solver='stdfw'"),
    ({"cache_f": -0.1}, "cache_f=-0.1 must be a finite number at least 0"),
    ({"cache_f": math.nan}, "cache_f=nan must be a finite number at least 0"),
    ({"cache_nu": math.inf}, "cache_nu=inf must be a finite number at least 0"),
    ({"cache_nu": "much"}, "cache_nu='much' must be a finite number at least 0"),
]


@pytest.mark.parametrize("options, message", ERRORS, ids=lambda value: str(value)[:40])
def test_option_errors(options, message):
    with pytest.raises(ValueError) as info:
        check_solver(**{"solver": "auto", **options})
    assert str(info.value).startswith(message)
    # train() says the same before it looks at the data.
    with pytest.raises(ValueError) as info:
        fastmc.train(None, None, **options)
    assert str(info.value).startswith(message)


def test_options_of_a_solver():
    assert check_solver("auto")[0] == "sdca"
    assert check_solver("fw") == ("fw", {})
    name, options = check_solver("away", "gap", True, np.int64(3), np.int32(7), 0, 1)
    assert name == "away"
    assert options == {"sampling": "gap", "averaging": True, "gap_refresh": 3, "cache_size": 7,
                       "cache_f": 0, "cache_nu": 1}
