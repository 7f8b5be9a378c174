"""The losses against brute force, quadratic programs, their optimality conditions and each other.

Nothing here is taken from the package's formulas: the values come from sorted margins, the
domains from lists of their corners. With augmented scores a = s + c and alpha = (sum beta) e_y
- beta, <beta, h> = -<alpha, a>, so for a loss with domain A (weight omega)

    Phi(a) = max over alpha in A of -<alpha, a>,   a subgradient is -alpha,
    p projects v onto omega A  iff  p in omega A and omega Phi(-(v - p)) <= <v - p, p>,

the right-hand condition because the left side is the support function of omega A at v - p.
"""
from functools import lru_cache
import importlib
import inspect
from itertools import permutations, product
import pkgutil
from types import SimpleNamespace

from hypothesis import given, settings, strategies as st
import numpy as np
import pytest
from scipy.optimize import linprog

from fastmc import _certificate, reference
from fastmc.losses import check_loss, make_spec

# Every loss; the short ones for enumeration, the long ones have more than 32 ranks.
SHORT = [
    ("maxhinge", {}),
    ("structured", {}),
    ("topk", {"k": 2}),
    ("topk", {"k": 3}),
    ("topk", {"k": 2, "own_class": False}),
    ("topk", {"k": 3, "own_class": False}),
    ("usunier", {"k": 2}),
    ("usunier", {"k": 3}),
    ("wtopk", {"rho": (1.0,)}),
    ("wtopk", {"rho": (5.0, 3.0, 1.0)}),
    ("wtopk", {"rho": (2.0, 2.0, 0.5, 0.5)}),
    ("wtopk", {"rho": (0.6, 0.4, 0.0, 0.0)}),
    ("wtopk", {"rho": (5.0, 3.0, 1.0), "own_class": False}),
    ("wtopk", {"rho": (2.0, 2.0, 0.5, 0.5), "own_class": False}),
    ("wusunier", {"rho": (1.0,)}),
    ("wusunier", {"rho": (5.0, 3.0, 1.0)}),
    ("wusunier", {"rho": (2.0, 2.0, 0.5, 0.5)}),
    ("wusunier", {"rho": (0.6, 0.4, 0.0, 0.0)}),
]
STEPS = tuple(np.repeat([4.0, 2.5, 2.0, 1.0, 0.25], [1, 9, 10, 10, 6]).tolist())
LONG = [
    ("topk", {"k": 36}),
    ("topk", {"k": 36, "own_class": False}),
    ("usunier", {"k": 36}),
    ("wtopk", {"rho": STEPS}),
    ("wtopk", {"rho": STEPS, "own_class": False}),
    ("wusunier", {"rho": STEPS}),
]
WEIGHTS = (1.0, 0.3, 7.0)


def ranks_of(params):
    return params.get("k", sum(r > 0 for r in params.get("rho", (1.0,))))


def rank_weights(params, m):
    rho = np.zeros(m)
    given_rho = params.get("rho", [1.0 / params.get("k", 1)] * params.get("k", 1))
    rho[: ranks_of(params)] = given_rho[: ranks_of(params)]
    return rho


def each(losses, sizes):
    """Parametrise over the losses and the numbers of classes that they fit."""
    pairs = [(loss, m) for loss in losses for m in sizes if ranks_of(loss[1]) < m]
    names = [f"{name}-{params}-{m}" for (name, params), m in pairs]
    return pytest.mark.parametrize(("loss", "m"), pairs, ids=names)


def made(loss, m, engine="cython"):
    return make_spec(loss[0], m, **loss[1]).make(engine)


def is_topk(loss):
    return loss[0] in ("topk", "wtopk")


def definition(loss, augmented, label):
    """Phi of each row by sorting its margins."""
    m = augmented.shape[1]
    rho = rank_weights(loss[1], m)
    h = augmented - augmented[np.arange(len(label)), label][:, None]
    if is_topk(loss) and not loss[1].get("own_class", True):
        h = h[np.arange(m) != label[:, None]].reshape(len(label), m - 1)
        rho = rho[:-1]
    h = -np.sort(-h, axis=1)
    if is_topk(loss):
        return np.maximum(0.0, (rho * h).sum(axis=1))
    return (rho * np.maximum(0.0, h)).sum(axis=1)


def corners(loss, m, label):
    """The corners of the domain of alpha (and some more of its points), one a row."""
    return _corners(loss[0], tuple(sorted(loss[1].items())), m, label)


@lru_cache(maxsize=None)
def _corners(name, params, m, label):
    params = dict(params)
    rho = rank_weights(params, m)
    others = [j for j in range(m) if j != label]
    if name not in ("topk", "wtopk"):
        # Ranks 1..r to any r wrong classes, in any order.
        assignments = [p for r in range(m) for p in permutations(others, r)]
    elif params.get("own_class", True):
        assignments = list(permutations(range(m)))
    else:
        assignments = list(permutations(others))
    beta = np.zeros((len(assignments) + 1, m))
    for row, classes in zip(beta, assignments):
        row[list(classes)] = rho[: len(classes)]
    beta[:, label] = 0.0
    alpha = -np.unique(beta, axis=0)
    alpha[:, label] = -alpha.sum(axis=1)
    return alpha


def cost_row(loss, m, label):
    cost = np.ones(m)
    if loss[0] == "structured":
        cost = np.abs(np.arange(m) - label) * 0.7
    cost[label] = 0.0
    return cost


def draws(loss, m, n, scale, seed=0):
    """Augmented scores of n samples and labels: plain, rounded (many ties) and all equal ones."""
    rng = np.random.default_rng([seed, m, n])
    label = rng.integers(m, size=n)
    scores = rng.normal(size=(n, m)) * scale
    tied, equal = np.arange(n) % 3 == 1, np.arange(n) % 12 == 2
    scores[tied] = np.round(scores[tied] / scale) * scale
    scores[equal] = scores[equal][:, :1]
    scores += np.array([cost_row(loss, m, y) for y in label])
    return scores, label


def nearest(points, target):
    """Projection of target onto the convex hull of points: Wolfe's minimum norm point."""
    points = points - target
    chosen, weights = [int(np.argmin((points**2).sum(axis=1)))], np.ones(1)
    rounding = 1e-15 * (points**2).sum(axis=1).max()
    norm = np.inf
    while True:
        x = weights @ points[chosen]
        best = int(np.argmin(points @ x))
        # The norm falls until the end, whatever rounding does to the last corners.
        if best in chosen or points[best] @ x >= x @ x - rounding or x @ x >= norm:
            return target + x
        norm = x @ x
        chosen, weights = chosen + [best], np.append(weights, 0.0)
        while True:
            # The nearest point of the flat through the chosen corners, if it is among them ..
            first, rest = points[chosen[0]], points[chosen[1:]] - points[chosen[0]]
            step = np.linalg.lstsq(rest.T, -first, rcond=None)[0]
            flat = np.append(1.0 - step.sum(), step)
            if (flat > 1e-13).all():
                weights = flat
                break
            # .. else as far towards it as possible, and without the corner that blocks the way.
            ratio = np.where(flat > 1e-13, np.inf, weights / np.maximum(weights - flat, 1e-300))
            weights = weights + min(1.0, ratio.min()) * (flat - weights)
            weights[np.argmin(ratio)] = 0.0
            chosen = [c for c, w in zip(chosen, weights) if w > 0.0]
            weights = weights[weights > 0.0]


def hull_distance(points, target):
    """Largest coordinate distance of target from the convex hull of points, by a linear program."""
    n, m = points.shape
    objective = np.append(np.zeros(n), 1.0)
    slack = np.ones((m, 1))
    upper = np.vstack([np.hstack([points.T, -slack]), np.hstack([-points.T, -slack])])
    answer = linprog(objective, upper, np.append(target, -target),
                     np.append(np.ones(n), 0.0)[None], [1.0])
    assert answer.status == 0
    return answer.fun


def infeasibility(loss, dual, label, weight):
    n, m = dual.shape
    problem = SimpleNamespace(n_samples=n, n_classes=m, label=label,
                              weight=np.broadcast_to(np.float64(weight), n))
    return _certificate.infeasibility(problem, make_spec(loss[0], m, **loss[1]), dual)


def check_projection(loss, targets, label, dual, weight):
    """The optimality conditions, to rounding."""
    move = targets - dual
    # A common part of a target is orthogonal to the domain and drops out of both sides.
    move -= move.mean(axis=1, keepdims=True)
    support = weight * definition(loss, -move, label)
    size = weight * rank_weights(loss[1], dual.shape[1]).sum()
    excess = (support - (move * dual).sum(axis=1)) / (size * (np.abs(targets).max(axis=1) + size))
    assert excess.max() <= 1e-11


# Value and corner


@each(SHORT, (2, 3, 4, 5))
def test_oracle_is_the_best_corner(loss, m):
    kernel = made(loss, m)
    drawn = [draws(loss, m, 48, scale) for scale in (1e-3, 1.0, 1e8)]
    augmented, label = (np.concatenate(parts) for parts in zip(*drawn))
    by_margins = definition(loss, augmented, label)
    for a, y, expected in zip(augmented, label, by_margins):
        value, vertex = kernel.oracle(a, y)
        points = corners(loss, m, y)
        h = a - a[y]
        tolerance = 1e-14 * (1.0 + np.abs(h).max()) * rank_weights(loss[1], m).sum()
        assert value == pytest.approx(expected, rel=1e-13, abs=tolerance)
        assert value == pytest.approx((-points @ h).max(), rel=1e-13, abs=tolerance)
        assert value == pytest.approx(-np.dot(vertex, h), rel=1e-13, abs=tolerance)
        assert np.abs(points - vertex).max(axis=1).min() <= 1e-15
        assert sum(vertex) == pytest.approx(0.0, abs=1e-14)


@each(SHORT + LONG, (40, 150))
def test_oracle_of_many_classes(loss, m):
    kernel = made(loss, m)
    augmented, label = draws(loss, m, 60, 3.0)
    answers = [kernel.oracle(a, y) for a, y in zip(augmented, label)]
    value = np.array([v for v, _ in answers])
    vertex = np.array([u for _, u in answers])
    np.testing.assert_allclose(value, definition(loss, augmented, label), rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(-(vertex * augmented).sum(axis=1), value, rtol=1e-12, atol=1e-12)
    assert infeasibility(loss, vertex, label, 1.0) <= 1e-13


@pytest.mark.parametrize(("name", "params", "scores", "label", "value", "vertex"), [
    ("maxhinge", {}, [1, 0, 1, 1], 1, 1.0, [-1, 1, 0, 0]),
    ("maxhinge", {}, [0, 1, 1, 1], 0, 1.0, [1, -1, 0, 0]),
    ("maxhinge", {}, [0, 0, 0, 0], 2, 0.0, [0, 0, 0, 0]),
    ("usunier", {"k": 2}, [1, 0, 1, 1], 1, 1.0, [-0.5, 1, -0.5, 0]),
    ("usunier", {"k": 2}, [0, 0, 0, 1], 1, 0.5, [0, 0.5, 0, -0.5]),
    # Class 0 comes before the own class 1 among the three of margin zero ..
    ("topk", {"k": 2}, [0, 0, 0, 1], 1, 0.5, [-0.5, 1, 0, -0.5]),
    # .. the own class 0 before the others, so that it holds the second rank.
    ("topk", {"k": 2}, [0, 0, 0, 1], 0, 0.5, [0.5, 0, 0, -0.5]),
    ("topk", {"k": 2, "own_class": False}, [0, 0, 0, 1], 0, 0.5, [1, -0.5, 0, -0.5]),
    ("wusunier", {"rho": (3, 2, 1)}, [2, 2, 0, 1], 2, 11.0, [-3, -2, 6, -1]),
    ("wtopk", {"rho": (3, 2, 1)}, [2, 2, 0, -1], 2, 10.0, [-3, -2, 5, 0]),
    ("wtopk", {"rho": (3, 2, 1), "own_class": False}, [2, 2, 0, -1], 2, 9.0, [-3, -2, 6, -1]),
])
@pytest.mark.parametrize("engine", ["cython", "reference"])
def test_ties_go_to_the_lower_class(name, params, scores, label, value, vertex, engine):
    loss = made((name, params), 4, engine)
    assert loss.oracle([float(s) for s in scores], label) == (value, vertex)


@pytest.mark.parametrize("own_class", [True, False])
def test_ties_among_many_ranks(own_class):
    # More than 32 ranks: all classes are sorted. Equal scores 1, the own class 5 below them.
    scores = np.ones(80)
    scores[5] = 0.0
    value, vertex = made(("topk", {"k": 40, "own_class": own_class}), 80).oracle(scores, 5)
    assert value == pytest.approx(1.0, abs=1e-14)
    assert np.flatnonzero(np.array(vertex) < 0).tolist() == [j for j in range(41) if j != 5]


# Projection


@each(SHORT, (2, 3, 4, 5))
def test_projection_against_quadratic_program(loss, m):
    kernel = made(loss, m)
    for weight, scale in product(WEIGHTS, (0.1, 1.0, 10.0)):
        augmented, label = draws(loss, m, 24, scale)
        for v, y in zip(-augmented, label):
            expected = nearest(weight * corners(loss, m, y), v)
            np.testing.assert_allclose(kernel.project(v, y, weight), expected, rtol=0, atol=1e-7)


@each(SHORT, (2, 3, 4, 5))
@pytest.mark.parametrize(("q", "gamma"), [(0.5, 0.0), (0.02, 0.0), (3.0, 0.5), (0.0, 1.0)])
def test_block_max_against_quadratic_program(loss, m, q, gamma):
    kernel = made(loss, m)
    augmented, label = draws(loss, m, 12, 1.0)
    rng = np.random.default_rng(m)
    for weight, (a, y) in product(WEIGHTS, zip(augmented, label)):
        points = weight * corners(loss, m, y)
        dual = rng.dirichlet(np.ones(len(points))) @ points
        new = np.array(kernel.block_max(a, y, dual, weight, q, gamma))
        np.testing.assert_allclose(new, nearest(points, (q * dual - a) / (q + gamma)), rtol=0, atol=1e-7)

        # What the step is for: the block's dual -<a, d> - q/2 ||d||^2 - gamma/2 ||alpha||^2.
        def objective(alpha):
            step = alpha - dual
            return -a @ step - 0.5 * q * step @ step - 0.5 * gamma * alpha @ alpha

        best = max(map(objective, [*points, dual, *(0.9 * dual + 0.1 * points)]))
        assert objective(new) >= best - 1e-12 * (1.0 + abs(best))


@each(SHORT, (2, 3, 4, 5))
def test_block_max_of_a_linear_block(loss, m):
    # q + gamma = 0: the best corner, wherever the dual is.
    kernel = made(loss, m)
    augmented, label = draws(loss, m, 24, 2.0)
    for weight, (a, y) in product(WEIGHTS, zip(augmented, label)):
        points = weight * corners(loss, m, y)
        new = np.array(kernel.block_max(a, y, points.mean(axis=0), weight, 0.0, 0.0))
        assert -new @ a == pytest.approx((-points @ a).max(), abs=1e-12 * (1.0 + np.abs(a).max()) * weight)
        assert np.abs(points - new).max(axis=1).min() <= 1e-14


@each(SHORT + LONG, (5, 40, 150))
@pytest.mark.parametrize("scale", [1e-3, 0.1, 3.0, 1e3, 1e8])
def test_projection_is_optimal(loss, m, scale):
    kernel = made(loss, m)
    augmented, label = draws(loss, m, 120, scale)
    for weight in WEIGHTS:
        targets = -augmented
        dual = np.array([kernel.project(v, y, weight) for v, y in zip(targets, label)])
        check_projection(loss, targets, label, dual, weight)
        assert infeasibility(loss, dual, label, weight) <= 1e-12


@each(SHORT + LONG, (5, 40, 150))
@pytest.mark.parametrize(("q", "gamma"), [(1.0, 0.0), (1e-3, 0.0), (1e-8, 0.0), (0.2, 0.5), (0.0, 0.1)])
def test_block_max_is_optimal(loss, m, q, gamma):
    kernel = made(loss, m)
    augmented, label = draws(loss, m, 60, 1.0)
    for weight in WEIGHTS:
        before = weight * np.array([kernel.project(-a, y) for a, y in zip(augmented[::-1], label)])
        dual = np.array([kernel.block_max(a, y, d, weight, q, gamma / weight)
                         for a, y, d in zip(augmented, label, before)])
        targets = (q * before - augmented) / (q + gamma / weight)
        check_projection(loss, targets, label, dual, weight)
        assert infeasibility(loss, dual, label, weight) <= 1e-12


@pytest.mark.parametrize("size", [1e13, 1e14, 1e15])
def test_sum_of_equal_ranks_where_z_is_coarse(size):
    """beta is feasible also where neighbouring numbers of the size of z differ by about the cap."""
    loss, rng = reference.losses.UsunierLoss(40, [1 / 19] * 19 + [0.0] * 21), np.random.default_rng(0)
    for _ in range(500):
        z = np.sort(np.spacing(size) * rng.integers(-6, 7, 24) - size)[::-1]
        z[: rng.integers(1, 18)] = 0.0
        loss.z, loss.order = z.tolist(), list(range(24))
        loss.solve_box(1 / 19, 2 * size)
        assert min(loss.beta) >= 0.0 and max(loss.beta) <= 1 / 19 and sum(loss.beta) <= 1.0 + 1e-12


@each(SHORT, (3, 5))
def test_infeasibility_against_linear_program(loss, m):
    weight = 0.3
    rng = np.random.default_rng(m)
    kernel = made(loss, m)
    pushed_out = 0
    for y in range(m):
        points = weight * corners(loss, m, y)
        inside = [rng.dirichlet(np.full(len(points), 0.2)) @ points, points[rng.integers(len(points))]]
        for _ in range(3):
            # Targets whose entries sum to zero, so that the push stays in the plane of the domain.
            target = 2.0 * rng.normal(size=m)
            target -= target.mean()
            point = np.array(kernel.project(target, y, weight))
            inside.append(point)
            distance = np.linalg.norm(target - point)
            if distance > 1e-2:
                outside = point + 1e-3 * (target - point) / distance
                pushed_out += 1
                assert hull_distance(points, outside) > 1e-5
                assert infeasibility(loss, outside[None], np.array([y]), weight) > 1e-5
        for point in inside:
            assert hull_distance(points, point) <= 1e-9
            assert infeasibility(loss, point[None], np.array([y]), weight) <= 1e-12
    assert pushed_out >= m


def test_infeasibility_sees_each_constraint():
    label = np.array([0])
    for loss, alpha, expected in [
        (("maxhinge", {}), [0.9, -1.0, 0.1], 0.1),
        (("maxhinge", {}), [1.0, -0.9, 0.0], 0.1),
        (("maxhinge", {}), [1.1, -0.6, -0.5], 0.1),
        (("usunier", {"k": 2}), [0.7, -0.6, -0.1], 0.1),
        # Scale 0.8 is needed, so that the others must hold 0.4 at least.
        (("topk", {"k": 2}), [0.4, -0.4, 0.0], 0.0),
        (("topk", {"k": 2, "own_class": False}), [0.4, -0.4, 0.0], 0.4),
    ]:
        assert infeasibility(loss, np.array([alpha]), label, 1.0) == pytest.approx(expected, abs=1e-15)


# Smoothing


@each(SHORT, (3, 5, 40))
@pytest.mark.parametrize("gamma", [0.01, 0.5, 20.0])
def test_moreau_envelope(loss, m, gamma):
    spec = make_spec(loss[0], m, **loss[1])
    augmented, label = draws(loss, m, 48, 1.0)
    envelope = _certificate.loss_values(spec, augmented, label, gamma)
    plain = definition(loss, augmented, label)
    unsmoothed = _certificate.loss_values(spec, augmented, label, 0.0)
    np.testing.assert_allclose(unsmoothed, plain, rtol=1e-13, atol=1e-13)

    dual = np.array([made(loss, m).project(-a / gamma, y) for a, y in zip(augmented, label)])
    by_dual = -(dual * augmented).sum(axis=1) - 0.5 * gamma * (dual**2).sum(axis=1)
    np.testing.assert_allclose(envelope, by_dual, rtol=1e-11, atol=1e-11)

    # The longest alpha is a corner with every rank at a wrong class.
    rho = rank_weights(loss[1], m)
    longest = rho.sum() ** 2 + (rho**2).sum()
    assert (envelope <= plain + 1e-12).all()
    assert (envelope >= plain - 0.5 * gamma * longest - 1e-12).all()
    assert (envelope >= -1e-12).all()

    # The gradient is -alpha* (the maximiser's derivative drops out); it changes at rate 1/gamma.
    step = 1e-5 * gamma
    for j in range(m):
        ahead, back = augmented.copy(), augmented.copy()
        ahead[:, j] += step
        back[:, j] -= step
        slope = (_certificate.loss_values(spec, ahead, label, gamma)
                 - _certificate.loss_values(spec, back, label, gamma)) / (2 * step)
        rounding = 1e-14 * (1.0 + rho.sum()) * (1.0 + np.abs(augmented).max()) / step
        np.testing.assert_allclose(slope, -dual[:, j], rtol=0, atol=2e-5 + rounding)


@each(SHORT, (3, 5))
def test_moreau_envelope_is_the_infimal_convolution(loss, m):
    # min over z of Phi(z) + ||z - a||^2 / (2 gamma) is at z = a + gamma alpha*.
    gamma = 0.5
    augmented, label = draws(loss, m, 24, 1.0)
    dual = np.array([made(loss, m).project(-a / gamma, y) for a, y in zip(augmented, label)])
    at = definition(loss, augmented + gamma * dual, label) + 0.5 * gamma * (dual**2).sum(axis=1)
    spec = make_spec(loss[0], m, **loss[1])
    envelope = _certificate.loss_values(spec, augmented, label, gamma)
    np.testing.assert_allclose(at, envelope, rtol=1e-12, atol=1e-12)


# Properties

PROPERTY = settings(derandomize=True, database=None, deadline=None, max_examples=30)
every_loss = pytest.mark.parametrize("loss", SHORT, ids=lambda loss: f"{loss[0]}-{loss[1]}")


@st.composite
def samples(draw, least_classes=2, rows=1):
    """Rows of scores of one number of classes, with ties, at scales 1e-3 to 1e3, and a label."""
    m = draw(st.integers(least_classes, 8))
    entry = st.one_of(st.integers(-2, 2).map(float), st.floats(-1.0, 1.0, width=32))
    scale = 10.0 ** draw(st.integers(-3, 3))
    values = [draw(st.lists(entry, min_size=m, max_size=m)) for _ in range(rows)]
    return scale * np.array(values), draw(st.integers(0, m - 1))


def near(a, b, values, rho_sum=1.0):
    scale = (1.0 + np.abs(values).max()) * max(1.0, rho_sum)
    np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-11 * scale)


@pytest.mark.parametrize(("one", "two", "least"), [
    (("topk", {"k": 1}), ("maxhinge", {}), 2),
    (("topk", {"k": 1, "own_class": False}), ("maxhinge", {}), 2),
    (("usunier", {"k": 1}), ("maxhinge", {}), 2),
    (("wtopk", {"rho": (1.0, 0.0)}), ("maxhinge", {}), 2),
    (("wtopk", {"rho": (1.0, 0.0), "own_class": False}), ("maxhinge", {}), 2),
    (("wusunier", {"rho": (1.0, 0.0)}), ("maxhinge", {}), 2),
    (("structured", {}), ("maxhinge", {}), 2),
    (("topk", {"k": 2}), ("usunier", {"k": 2}), 3),
    (("wtopk", {"rho": (0.5, 0.5)}), ("topk", {"k": 2}), 3),
    (("wtopk", {"rho": (0.7, 0.7)}), ("wusunier", {"rho": (0.7, 0.7)}), 3),
])
def test_equal_losses(one, two, least):
    @PROPERTY
    @given(samples(least))
    def equal(sample):
        (a,), y = sample
        m = len(a)
        value, vertex = made(one, m).oracle(a, y)
        expected, _ = made(two, m).oracle(a, y)
        near(value, expected, a)
        near(-np.dot(vertex, a), expected, a)
        near(made(one, m).project(-a, y, 1.7), made(two, m).project(-a, y, 1.7), a)

    equal()


@every_loss
def test_subgradient_inequality(loss):
    @PROPERTY
    @given(samples(ranks_of(loss[1]) + 1, rows=2))
    def convex(sample):
        (a, b), y = sample
        kernel = made(loss, len(a))
        value, vertex = kernel.oracle(a, y)
        other, _ = kernel.oracle(b, y)
        assert value >= 0.0 and other >= 0.0
        rounding = 1e-12 * (1.0 + np.abs([a, b]).max())
        assert other >= value - np.dot(vertex, b - a) - rounding
        # The projection moves no two points apart.
        p, r = np.array(kernel.project(a, y)), np.array(kernel.project(b, y))
        assert np.linalg.norm(p - r) <= np.linalg.norm(a - b) + rounding
        assert infeasibility(loss, np.array([p, r]), np.array([y, y]), 1.0) <= 1e-12

    convex()


@every_loss
def test_common_shift_changes_nothing(loss):
    @PROPERTY
    @given(samples(ranks_of(loss[1]) + 1), st.floats(-1e3, 1e3))
    def shift(sample, by):
        (a,), y = sample
        kernel = made(loss, len(a))
        rho_sum = rank_weights(loss[1], len(a)).sum()
        scale = np.append(a, by)
        near(kernel.oracle(a + by, y)[0], kernel.oracle(a, y)[0], scale, rho_sum)
        near(kernel.project(a + by, y, 0.6), kernel.project(a, y, 0.6), scale, rho_sum)

    shift()


@every_loss
def test_class_numbers_mean_nothing(loss):
    @PROPERTY
    @given(samples(ranks_of(loss[1]) + 1), st.randoms(use_true_random=False))
    def permute(sample, random):
        (a,), y = sample
        m = len(a)
        order = list(range(m))
        random.shuffle(order)
        kernel = made(loss, m)
        rho_sum = rank_weights(loss[1], m).sum()
        value, vertex = kernel.oracle(a, y)
        moved, moved_vertex = kernel.oracle(a[order], order.index(y))
        near(moved, value, a, rho_sum)
        if len(set(a)) == m:
            assert moved_vertex == [vertex[j] for j in order]
        near(kernel.project(a[order], order.index(y)), np.array(kernel.project(a, y))[order], a, rho_sum)

    permute()


@every_loss
def test_values_scale_with_scores(loss):
    # Powers of two, so that nothing is rounded.
    @PROPERTY
    @given(samples(ranks_of(loss[1]) + 1), st.sampled_from([0.125, 4.0, 1024.0]))
    def scaled(sample, by):
        (a,), y = sample
        kernel = made(loss, len(a))
        value, vertex = kernel.oracle(a, y)
        assert kernel.oracle(by * a, y) == (by * value, vertex)
        near(kernel.project(by * a, y, by), by * np.array(kernel.project(a, y)), by * a, by * 9.0)

    scaled()


@pytest.mark.parametrize("rho", [(0.5, 0.5), (1 / 3,) * 3, (5.0, 3.0, 1.0), (1.0,)])
def test_order_of_the_families(rho):
    @PROPERTY
    @given(samples(len(rho) + 1))
    def ordered(sample):
        (a,), y = sample
        m = len(a)
        usunier = made(("wusunier", {"rho": rho}), m).oracle(a, y)[0]
        topk = made(("wtopk", {"rho": rho}), m).oracle(a, y)[0]
        without_own = made(("wtopk", {"rho": rho, "own_class": False}), m).oracle(a, y)[0]
        maxhinge = made(("maxhinge", {}), m).oracle(a, y)[0]
        rounding = 1e-12 * (1.0 + np.abs(a).max())
        assert without_own <= topk + rounding
        assert topk <= usunier + rounding
        assert rho[0] * maxhinge <= usunier + rounding
        assert usunier <= sum(rho) * maxhinge + rounding

    ordered()


# Kernel and mirror


@each(SHORT + LONG, (2, 3, 5, 20, 40, 150))
def test_kernel_equals_mirror(loss, m):
    kernel, mirror = made(loss, m), made(loss, m, "reference")
    for at, scale in enumerate((1e-12, 1e-3, 1.0, 30.0, 1e8, 1e150)):
        augmented, label = draws(loss, m, 3, scale, seed=at)
        targets = -augmented
        rows = kernel.project_rows(targets, label)
        assert (rows == mirror.project_rows(targets, label)).all()
        for a, y, row in zip(augmented.tolist(), label.tolist(), rows):
            assert kernel.oracle(a, y) == mirror.oracle(a, y)
            assert kernel.project([-s for s in a], y) == row.tolist()
            for weight in WEIGHTS:
                target = [-s for s in a]
                dual = mirror.project(target, y, weight)
                assert kernel.project(target, y, weight) == dual
                for q, gamma in ((0.5, 0.0), (1e-9, 0.0), (2.0, 0.25), (0.0, 3.0), (0.0, 0.0)):
                    assert (kernel.block_max(a, y, dual, weight, q, gamma)
                            == mirror.block_max(a, y, dual, weight, q, gamma))


def mirrored_modules():
    names = [module.name for module in pkgutil.iter_modules(reference.__path__)]
    return [(importlib.import_module(f"fastmc._{name}"),
             importlib.import_module(f"fastmc.reference.{name}")) for name in names]


def public(owner):
    return {name: value for name, value in vars(owner).items() if not name.startswith("_")}


def mirrored_callables():
    """(name, kernel's, mirror's) of the functions and the classes' methods that both have."""
    pairs = []
    for kernel, mirror in mirrored_modules():
        for name, ours in public(kernel).items():
            # What a module imports is not its own.
            if getattr(ours, "__module__", None) != kernel.__name__ or not hasattr(mirror, name):
                continue
            theirs = getattr(mirror, name)
            if not inspect.isclass(ours):
                pairs.append((f"{kernel.__name__}.{name}", ours, theirs))
                continue
            for method in dir(ours):
                pair = getattr(ours, method), getattr(theirs, method, None)
                if not method.startswith("_") and all(map(callable, pair)):
                    pairs.append((f"{kernel.__name__}.{name}.{method}", *pair))
    return pairs


def test_every_mirrored_callable_is_found():
    found = {name for name, _, _ in mirrored_callables()}
    methods = ("oracle", "project", "project_rows", "block_max")
    assert found >= {f"fastmc._losses.{name}.{method}" for name in ("UsunierLoss", "TopKLoss")
                     for method in methods}
    assert "fastmc._sdca.sdca_pass" in found
    for kernel, mirror in mirrored_modules():
        assert public(kernel).keys() & public(mirror).keys(), kernel.__name__


@pytest.mark.parametrize(("ours", "theirs"), [p[1:] for p in mirrored_callables()],
                         ids=[p[0] for p in mirrored_callables()])
def test_signatures_are_equal(ours, theirs):
    assert inspect.signature(ours) == inspect.signature(theirs)


# Parameters


ALL_NAMES = "maxhinge, structured, topk, usunier, wtopk, wusunier, crammer_singer"


@pytest.mark.parametrize(("arguments", "message"), [
    ({"loss": "foo"}, f"loss='foo' is unknown; valid losses: {ALL_NAMES}"),
    ({"loss": None}, f"loss=None is unknown; valid losses: {ALL_NAMES}"),
    ({"loss": "topk", "k": 0}, "k=0 must be a whole number of at least 1"),
    ({"loss": "topk", "k": -3}, "k=-3 must be a whole number of at least 1"),
    ({"loss": "topk", "k": True}, "k=True must be a whole number of at least 1"),
    ({"loss": "usunier", "k": 2.0}, "k=2.0 must be a whole number of at least 1"),
    ({"loss": "usunier", "k": "2"}, "k='2' must be a whole number of at least 1"),
    ({"loss": "maxhinge", "k": 2}, "loss='maxhinge' takes no k (got k=2); topk and usunier do"),
    ({"loss": "crammer_singer", "k": 2}, "loss='crammer_singer' takes no k (got k=2); topk and usunier do"),
    ({"loss": "wtopk", "k": 2, "rho": [1.0]}, "loss='wtopk' takes no k (got k=2); topk and usunier do"),
    ({"loss": "wtopk"}, "loss='wtopk' needs rho; wtopk and wusunier are the weighted losses"),
    ({"loss": "wusunier"}, "loss='wusunier' needs rho; wtopk and wusunier are the weighted losses"),
    ({"loss": "topk", "rho": [1.0]}, "loss='topk' takes no rho; wtopk and wusunier are the weighted losses"),
    ({"loss": "usunier", "own_class": False}, "own_class=False is for topk and wtopk, not loss='usunier'"),
    ({"loss": "wusunier", "rho": [1.0], "own_class": False},
     "own_class=False is for topk and wtopk, not loss='wusunier'"),
    ({"loss": "maxhinge", "own_class": False}, "own_class=False is for topk and wtopk, not loss='maxhinge'"),
    ({"loss": "wtopk", "rho": [1.0, 2.0]}, "rho=[1.0, 2.0] must be finite, non-negative and non-increasing"),
    ({"loss": "wtopk", "rho": [1.0, -0.5]},
     "rho=[1.0, -0.5] must be finite, non-negative and non-increasing"),
    ({"loss": "wusunier", "rho": [1.0, float("nan")]},
     "rho=[1.0, nan] must be finite, non-negative and non-increasing"),
    ({"loss": "wusunier", "rho": [float("inf"), 1.0]},
     "rho=[inf, 1.0] must be finite, non-negative and non-increasing"),
    ({"loss": "wusunier", "rho": [[1.0]]}, "rho has shape (1, 1), expected one dimension"),
    ({"loss": "wusunier", "rho": 1.0}, "rho has shape (), expected one dimension"),
    ({"loss": "wusunier", "rho": ["a"]}, "rho=['a'] must be a sequence of numbers"),
    ({"loss": "wtopk", "rho": [0.0, 0.0]}, "rho=[0.0, 0.0] must start with a positive weight"),
    ({"loss": "wtopk", "rho": []}, "rho=[] must start with a positive weight"),
])
def test_bad_parameters(arguments, message):
    with pytest.raises(ValueError) as caught:
        check_loss(**arguments)
    assert str(caught.value) == message
    with pytest.raises(ValueError) as caught:
        make_spec(n_classes=5, **arguments)
    assert str(caught.value) == message


@pytest.mark.parametrize(("arguments", "message"), [
    ({"loss": "topk", "k": 4}, "k=4 must be at most n_classes - 1 = 3"),
    ({"loss": "usunier", "k": 5}, "k=5 must be at most n_classes - 1 = 3"),
    ({"loss": "topk", "k": 4, "own_class": False}, "k=4 must be at most n_classes - 1 = 3"),
    ({"loss": "wtopk", "rho": [4, 3, 2, 1]}, "rho has 4 positive weights; 4 classes allow at most 3"),
    ({"loss": "wusunier", "rho": [1] * 7}, "rho has 7 positive weights; 4 classes allow at most 3"),
])
def test_parameters_that_do_not_fit_the_classes(arguments, message):
    check_loss(**arguments)
    with pytest.raises(ValueError) as caught:
        make_spec(n_classes=4, **arguments)
    assert str(caught.value) == message


@each(SHORT + LONG, (5, 40))
def test_spec(loss, m):
    spec = make_spec(loss[0], m, **loss[1])
    assert spec.name == loss[0] == check_loss(loss[0], **loss[1])
    assert spec.rho == tuple(rank_weights(loss[1], m).tolist())
    assert spec.n_ranks == ranks_of(loss[1])
    assert spec.own_class is loss[1].get("own_class", True)
    for engine in ("cython", "reference"):
        made_loss = spec.make(engine)
        assert type(made_loss).__name__ == ("TopKLoss" if is_topk(loss) else "UsunierLoss")
        assert (made_loss.n_classes, made_loss.n_ranks) == (m, ranks_of(loss[1]))


def test_spec_of_unusual_arguments():
    assert make_spec("crammer_singer", 3) == make_spec("maxhinge", 3)
    assert make_spec("topk", 3, k=np.int64(2)).rho == (0.5, 0.5, 0.0)
    # Zeros at the end may be longer than the classes allow: they weigh nothing.
    assert make_spec("wtopk", 3, rho=np.array([2, 1, 0, 0, 0])).rho == (2.0, 1.0, 0.0)
    assert make_spec("wtopk", 3, rho=(2, 1), own_class=0).own_class is False
    spec = make_spec("wusunier", 3, rho=[2, 1])
    assert hash(spec) == hash(make_spec("wusunier", 3, rho=(2.0, 1.0)))


@pytest.mark.parametrize("loss", [("maxhinge", {}), ("topk", {"k": 2})])
def test_kernel_refuses_wrong_lengths(loss):
    kernel = made(loss, 4)
    with pytest.raises(ValueError, match=r"expected 4 values, got shape \(3,\)"):
        kernel.oracle([1.0, 2.0, 3.0], 0)
    with pytest.raises(ValueError, match=r"expected 4 values, got shape \(5,\)"):
        kernel.project(np.zeros(5), 0)
    with pytest.raises(ValueError, match=r"expected 4 values, got shape \(1, 4\)"):
        kernel.block_max(np.zeros(4), 0, np.zeros((1, 4)), 1.0, 1.0, 0.0)
