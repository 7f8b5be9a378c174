"""The compiled kernels and their plain-Python mirror give the same bits."""
import numpy as np
import pytest

import fastmc

SOLVERS = {
    "sdca": {}, "sdca uniform": {"sampling": "uniform"},
    "bcfw": {}, "bcfw averaging": {"averaging": True}, "bcfw cyclic": {"sampling": "cyclic"},
    "pairwise": {}, "away": {}, "sdca gap": {"sampling": "gap"}, "bcfw gap": {"sampling": "gap"},
    "bcfw cache": {"cache_size": 2, "cache_f": 0.1},
    "pairwise all": {"sampling": "gap", "cache_size": 3, "averaging": True, "gap_refresh": 2},
    "away all": {"sampling": "gap", "cache_size": 30, "averaging": True, "gap_refresh": 2},
    "fw": {}, "stdfw": {}, "pg": {},
}
LAYOUTS = [("csr", np.int32), ("csr", np.int64), ("dense", None)]


@pytest.fixture(params=SOLVERS)
def solver_options(request):
    return {"solver": request.param.split()[0], **SOLVERS[request.param]}


def assert_same_bits(X, y, **options):
    """Train with both engines, compare W, A and block gaps after each pass; return the model."""
    models, traces = [], []
    for engine in ("cython", "reference"):
        trace = []

        def look(state):
            solver = state._run.solver
            trace.append([solver.weights.copy(), solver.dual_matrix().toarray(), solver.gaps.copy()])
            return state.certificate is None

        models.append(fastmc.train(X, y, tol=0, engine=engine, callback=look, **options))
        traces.append(trace)
    kernel, mirror = models
    assert kernel.n_passes == mirror.n_passes == len(traces[0]) == options["max_passes"]
    for ours, theirs in zip(*traces, strict=True):
        for a, b in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(kernel.weights, mirror.weights)
    np.testing.assert_array_equal(kernel.dual_.toarray(), mirror.dual_.toarray())
    for column in ("passes", "oracle_calls", "cache_hits", "primal", "dual", "gap"):
        np.testing.assert_array_equal(kernel.history[column], mirror.history[column])
    # Training moved: the comparison is not one of zeros.
    weights = traces[0][-1][0]
    assert np.abs(weights).max() > 0 and np.isfinite(weights).all()
    return kernel


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_kernel_equals_mirror(draw, loss_options, solver_options, smoothing):
    seed = 0
    for dtype in (np.float32, np.float64):
        for layout, index in LAYOUTS:
            # Sizes, weights, bias and costs take turns over the layouts.
            seed += 1
            p = draw(n=12 + 2 * seed, m=4 + seed % 3, d=5 + seed, seed=seed, layout=layout,
                     dtype=dtype, index=index)
            cost = [p.cost, p.costs, None][seed % 3]
            if loss_options["loss"] == "structured" and cost is None:
                cost = p.costs
            assert_same_bits(p.X, p.y, cost=cost, bias=0.5 if seed % 2 else None,
                             sample_weight=p.weight if seed % 4 else None, smoothing=smoothing,
                             C=[0.1, 1.0, 10.0][seed % 3], max_passes=3 + seed % 3,
                             random_state=seed, **loss_options, **solver_options)


@pytest.mark.parametrize("name", ["maxhinge", "topk", "usunier"])
@pytest.mark.parametrize("solver", ["sdca", "bcfw", "pairwise", "away", "fw"])
@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_many_classes(draw, name, solver, smoothing):
    # 40 classes: sorting by merges, and updates that touch the few changed classes alone.
    p = draw(n=80, m=40, d=12, layout="csr")
    # Small costs keep many classes near the threshold, so that more than 32 are sorted.
    cost = 0.01 * (1 - np.eye(40))
    for k in (1,) if name == "maxhinge" else (3, 35):
        for own in (True, False) if name == "topk" else (True,):
            model = assert_same_bits(p.X, p.y, loss=name, k=k, own_class=own, solver=solver,
                                     smoothing=smoothing, C=1.0, max_passes=2,
                                     cost=cost if k == 35 else None)
            changed = (model.dual_.toarray() != 0).sum(axis=1)
            assert changed.max() > 10 if k == 35 else (changed > 0).any()


@pytest.mark.parametrize("m, k", [(2, 1), (3, 2)])
def test_few_classes(draw, solver_options, m, k):
    p = draw(n=14, m=m, d=4, seed=m)
    for name in ("topk", "usunier"):
        assert_same_bits(p.X, p.y, loss=name, k=k, C=2.0, max_passes=3, **solver_options)


def test_equal_scores(draw):
    # Equal columns tie all scores; both engines break ties the same way.
    p = draw(n=16, m=5, d=4)
    X = np.ones((16, 3))
    for name, k in [("maxhinge", 1), ("topk", 3), ("usunier", 3)]:
        for solver in ("sdca", "bcfw", "pairwise", "away", "fw"):
            assert_same_bits(X, p.y, loss=name, k=k, solver=solver, max_passes=3)


def test_warm_start(draw, solver_options):
    p = draw(n=18, m=4, d=5, seed=3)
    init = fastmc.train(p.X, p.y, tol=0, max_passes=2)
    assert_same_bits(p.X, p.y, init=init, C=3.0, max_passes=2, **solver_options)
