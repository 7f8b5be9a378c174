"""Decision stumps: the best of every class against brute force, layouts, types, threads, mirror."""
import inspect

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from fastmc import _stumps, reference, stumps
from fastmc.stumps import Stumps

TINY = np.nextafter(0.0, 1.0)
LARGE = np.finfo(np.float64).max


def edge_of(u, h):
    """Row after row, as edges are defined; sum() of newer Pythons compensates."""
    total = 0.0
    for weight, output in zip(u.tolist(), h.tolist()):
        total += weight * output
    return total


def best_by_force(X, U):
    """All stumps in the order of preference, edges by plain sums; the first of the best."""
    found = []
    for u in U.T:
        best = (-1, 0.0, 1, 0.0)
        for f in range(X.shape[1]):
            values = np.unique(X[:, f])
            for low, high in zip(values, values[1:]):
                for polarity in (1, -1):
                    edge = edge_of(u, np.where(X[:, f] >= high, polarity, -polarity))
                    if best[0] < 0 or edge > best[3]:
                        best = (f, (float(low), float(high)), polarity, edge)
        found.append(best)
    return found


def assert_best(X, U, dense=None, **options):
    """`best` of X equals brute force on the dense form of X; returns it."""
    dense = np.asarray(X, dtype=np.float64) if dense is None else dense
    found = Stumps(X).best(U, **options)
    for c, (feature, split, polarity, edge) in enumerate(best_by_force(dense, np.asarray(U))):
        assert (found[0][c], found[2][c]) == (feature, polarity)
        assert found[3][c] == edge
        if feature >= 0:
            assert split[0] <= found[1][c] < split[1]
    return found


def assert_same(a, b):
    for x, y in zip(a, b):
        np.testing.assert_array_equal(x, y)
        assert x.dtype == y.dtype


def whole_numbers(rng, n, K):
    """Weights whose sums have no rounding, so that ties are exact."""
    return rng.integers(-4, 5, size=(n, K)).astype(float)


def few_values(rng, n, d, zeros=0.5):
    X = rng.integers(-3, 4, size=(n, d)) / 2.0
    X[rng.random((n, d)) < zeros] = 0.0
    return X


# ---------------------------------------------------------------- against brute force

@pytest.mark.parametrize("seed", range(12))
def test_brute_force_with_ties(seed):
    rng = np.random.default_rng(seed)
    n, d, K = rng.integers(1, 14), rng.integers(1, 7), rng.integers(1, 6)
    X = few_values(rng, n, d, zeros=[0.0, 0.5, 0.9][seed % 3])
    U = whole_numbers(rng, n, K)
    assert_same(assert_best(X, U), assert_best(sp.csr_array(X), U, X))


@pytest.mark.parametrize("K", range(1, 31))
def test_any_number_of_classes(K):
    rng = np.random.default_rng(K)
    X = few_values(rng, 25, 4)
    assert_best(X, whole_numbers(rng, 25, K))


@pytest.mark.parametrize("seed", range(6))
def test_brute_force_of_real_weights(seed):
    rng = np.random.default_rng([seed, 1])
    X, U = rng.normal(size=(30, 5)), rng.normal(size=(30, 4))
    X[:, 1] = np.round(X[:, 1])
    found = assert_best(X, U)
    assert (found[3] > 0).all()


def test_edges_of_one_feature_by_hand():
    X = [[1.0], [2.0], [2.0], [4.0]]
    U = np.array([[1, 1, 1, 1], [-1, 2, -3, 5], [3, 1, 1, -1]], dtype=float).T
    feature, threshold, polarity, edge = Stumps(X).best(U)
    # Above 1.5: 3 - 1 = 2, 4 + 1 = 5, 1 - 3 = -2. Above 3: 1 - 3 = -2, 5 + 2 = 7, -1 - 5 = -6.
    assert feature.tolist() == [0, 0, 0]
    assert threshold.tolist() == [1.5, 3.0, 3.0]
    assert polarity.tolist() == [1, 1, -1]
    assert edge.tolist() == [2.0, 7.0, 6.0]


def test_ties_go_to_the_lowest_feature():
    rng = np.random.default_rng(0)
    column = few_values(rng, 12, 1)
    # Copies, a mirror image and a stretched copy make the same splits.
    X = np.hstack([np.ones((12, 1)), column, -column, column, 3 * column + 1])
    U = whole_numbers(rng, 12, 5)
    for n_threads in (1, 2, 3, 5, 50):
        feature = Stumps(X).best(U, n_threads)[0]
        np.testing.assert_array_equal(feature, 1)


def test_ties_go_to_the_lowest_threshold_then_plus():
    X = np.array([[-1.0], [0.0], [0.0], [0.0], [2.0], [5.0]])
    # Weights of zero: all edges are zero.
    feature, threshold, polarity, edge = Stumps(X).best(np.zeros((6, 2)))
    assert (feature.tolist(), threshold.tolist(), polarity.tolist()) == ([0, 0], [-0.5, -0.5], [1, 1])
    assert edge.tolist() == [0.0, 0.0]
    # Only rows at zero count: above -1 with +1, or below 2 with -1.
    U = np.array([[0, 0], [1, -1], [1, -1], [1, -1], [0, 0], [0, 0]], dtype=float)
    feature, threshold, polarity, edge = Stumps(X).best(U)
    assert (threshold.tolist(), polarity.tolist(), edge.tolist()) == ([-0.5, -0.5], [1, -1], [3.0, 3.0])
    # Both splits above the usual value: the one walked last is the lower one.
    U = np.array([[0.0], [1.0], [0.0], [0.0], [0.0], [-1.0]])
    assert [part.tolist() for part in assert_best(X, U)] == [[0], [1.0], [-1], [2.0]]


# ---------------------------------------------------------------- features of all kinds

def test_constant_features_offer_no_stump():
    X = np.tile([0.0, 3.0, -1.0], (4, 1))
    for given in (X, sp.csr_array(X)):
        for n_threads in (1, 2):
            found = Stumps(given).best(np.ones((4, 2)), n_threads)
            assert [part.tolist() for part in found] == [[-1, -1], [0, 0], [1, 1], [0, 0]]
    X[2, 1] = 2.0
    assert Stumps(X).best(np.ones((4, 2)))[0].tolist() == [1, 1]


@pytest.mark.parametrize("empty", [np.zeros((3, 2)), sp.csr_array((3, 2)), sp.csr_array((1, 5)),
                                   np.array([[7.0, 0.0]])])
def test_no_split(empty):
    stump = Stumps(empty)
    assert stump.best(np.ones((empty.shape[0], 1)))[0].tolist() == [-1]
    assert stump.best_shared(np.ones((empty.shape[0], 3)))[0].tolist() == [-1]


@pytest.mark.parametrize("usual", [0.0, -2.0, 5.0])
def test_the_most_frequent_value_may_be_any(usual):
    rng = np.random.default_rng(3)
    X = few_values(rng, 20, 6, zeros=0.2)
    X[rng.random(X.shape) < 0.6] = usual
    U = whole_numbers(rng, 20, 4)
    assert_same(assert_best(X, U), assert_best(sp.csr_array(X), U, X))
    stump = Stumps(sp.csr_array(X))
    for f in range(6):
        counts = np.unique(X[:, f], return_counts=True)[1]
        listed = stump._row_start[stump._bin_start[f + 1]] - stump._row_start[stump._bin_start[f]]
        assert listed == 20 - counts.max()


@pytest.mark.parametrize("low, high", [
    (1.0, np.nextafter(1.0, 2.0)), (np.nextafter(1.0, 2.0), np.nextafter(np.nextafter(1.0, 2.0), 2.0)),
    (np.nextafter(1.0, 0.0), 1.0), (-np.nextafter(1.0, 2.0), -1.0),
    (0.0, TINY), (-TINY, 0.0), (TINY, 2 * TINY), (-2 * TINY, -TINY), (-3 * TINY, -2 * TINY), (-TINY, TINY),
    (np.nextafter(LARGE, 0.0), LARGE), (-LARGE, -np.nextafter(LARGE, 0.0)), (-LARGE, LARGE),
    (0.0, LARGE), (1e-300, 1e300),
])
def test_neighbouring_tiny_and_huge_values_are_split(low, high):
    X = np.array([[low], [high], [low], [high]])
    U = np.array([[-1.0], [1.0], [-1.0], [1.0]])
    for given in (X, sp.csr_array(X)):
        stump = Stumps(given)
        feature, threshold, polarity, edge = stump.best(U)
        assert (feature[0], polarity[0], edge[0]) == (0, 1, 4.0)
        assert low <= threshold[0] < high
        for h in (stump.outputs(feature, threshold, polarity),
                  stumps.outputs(given, feature, threshold, polarity)):
            assert h.tolist() == [[-1], [1], [-1], [1]]


def test_threshold_is_halfway():
    X = np.array([[-1e308, 1.0, 0.25], [1e308, 2.0, 0.5]])
    values = [Stumps(X[:, [f]]).best(np.ones((2, 1)) * [[-1], [1]])[1][0] for f in range(3)]
    assert values == [0.0, 1.5, 0.375]


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.int8, np.uint16, bool])
def test_types_of_X(dtype):
    rng = np.random.default_rng(5)
    X = rng.integers(0, 2 if dtype is bool else 7, size=(15, 5)).astype(dtype)
    U = whole_numbers(rng, 15, 3)
    assert_same(assert_best(X, U), assert_best(sp.csr_array(X), U, X.astype(float)))
    if dtype == np.float32:
        # Neighbours in float32 are told apart, and their midpoint is one of float64.
        low = np.float32(1.1)
        X = np.array([[low], [np.nextafter(low, np.float32(2))]])
        feature, threshold, polarity, edge = Stumps(X).best([[-1.0], [1.0]])
        assert X[0, 0] < threshold[0] < X[1, 0]
        assert stumps.outputs(X, feature, threshold, polarity).tolist() == [[-1], [1]]


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_index_types_explicit_zeros_duplicates_and_formats(index, dtype):
    rng = np.random.default_rng(6)
    X = few_values(rng, 18, 7).astype(dtype)
    U = rng.normal(size=(18, 4))
    expected = Stumps(X).best(U)
    # Every cell is an entry, zeros as well (one of them minus zero), columns in no order.
    order = np.concatenate([7 * i + rng.permutation(7) for i in range(18)])
    full = sp.csr_array((X.ravel()[order], (order % 7).astype(index),
                         np.arange(0, 18 * 7 + 1, 7).astype(index)), shape=(18, 7))
    full.data[np.flatnonzero(full.data == 0)[0]] = -0.0
    # Two entries for each cell that add up to it.
    row, column = np.divmod(np.tile(np.arange(18 * 7), 2), 7)
    twice = sp.coo_array((np.concatenate([X.ravel() - 1, np.ones(18 * 7)]), (row, column)))
    data = full.data.copy()
    for given in (full, twice, sp.csr_matrix(X), sp.csc_array(X), sp.coo_array(X), X.tolist()):
        assert_same(Stumps(given).best(U), expected)
    np.testing.assert_array_equal(full.data, data)


@pytest.mark.parametrize("block", [1, 7, 64])
def test_blocks_of_columns_change_nothing(monkeypatch, block):
    rng = np.random.default_rng(7)
    X, U = few_values(rng, 16, 20), rng.normal(size=(16, 3))
    found = Stumps(X).best(U)
    h = stumps.outputs(X, *found[:3])
    monkeypatch.setattr(stumps, "BLOCK", block)
    for given in (X, sp.csr_array(X)):
        assert_same(Stumps(given).best(U), found)
        np.testing.assert_array_equal(stumps.outputs(given, *found[:3]), h)


# ---------------------------------------------------------------- layouts, threads, mirror

@pytest.mark.parametrize("seed", range(4))
def test_sparse_equals_dense_and_threads_change_nothing(seed):
    rng = np.random.default_rng([seed, 2])
    n, d, K = 60, 40, 1 + 5 * seed
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < rng.random(d))
    U = rng.normal(size=(n, K))
    U[rng.random((n, K)) < 0.3] = 0.0
    expected = Stumps(X).best(U)
    for given in (X, sp.csr_array(X)):
        for n_threads in (1, 2, 7, d + 1):
            assert_same(Stumps(given).best(U, n_threads), expected)


@pytest.mark.parametrize("seed", range(6))
def test_kernel_equals_mirror(seed):
    rng = np.random.default_rng([seed, 3])
    n, d = [(40, 9), (1, 3), (25, 1)][seed % 3]
    X = few_values(rng, n, d, zeros=0.3) if seed % 2 else rng.normal(size=(n, d))
    U = rng.normal(size=(n, 1 + 3 * seed))
    kernel, mirror = Stumps(X), Stumps(sp.csr_array(X), engine="reference")
    found = kernel.best(U)
    assert_same(found, mirror.best(U, n_threads=2))
    if n > 1:
        assert_same([kernel.outputs(*found[:3])], [mirror.outputs(*found[:3])])
        # What lies between: the sweep's own numbers, of a part of the features as well.
        for start in range(d):
            top, feature = np.full((2, U.shape[1]), -1.0), np.full((2, U.shape[1]), -1)
            for at, side in enumerate((kernel, mirror)):
                side._bins.sweep(U, 0.5 * U.sum(axis=0), top[at], feature[at], start, d)
            np.testing.assert_array_equal(top[0], top[1])
            np.testing.assert_array_equal(feature[0], feature[1])
            assert (top[0] > 0).all()


def test_signatures_of_the_mirror():
    for name in ("sweep", "split", "outputs"):
        kernel, mirror = getattr(_stumps.Bins, name), getattr(reference.stumps.Bins, name)
        assert list(inspect.signature(kernel).parameters) == list(inspect.signature(mirror).parameters)
    assert (list(inspect.signature(_stumps.edges).parameters)
            == list(inspect.signature(reference.stumps.edges).parameters))


# ---------------------------------------------------------------- outputs

def assert_outputs(given, X, feature, threshold, polarity):
    expected = np.where(X[:, feature] > threshold, polarity, -np.asarray(polarity))
    h = stumps.outputs(given, feature, threshold, polarity)
    assert h.dtype == np.int8 and h.flags.c_contiguous
    np.testing.assert_array_equal(h, expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_outputs_on_new_data(dtype):
    rng = np.random.default_rng(8)
    X = few_values(rng, 30, 6).astype(dtype)
    feature = rng.integers(6, size=25)
    # Thresholds at values, at zero, between and far away.
    threshold = rng.integers(-8, 9, size=25) / 4.0
    threshold[:2] = -np.inf, np.inf
    polarity = rng.choice([-1, 1], size=25)
    for given in (X, sp.csr_array(X), sp.csc_matrix(X), np.asfortranarray(X)):
        assert_outputs(given, X, feature, threshold, polarity)
    assert_outputs(X[:0], X[:0], feature, threshold, polarity)
    assert_outputs(sp.csr_array(X[:0]), X[:0], feature, threshold, polarity)
    for given in (X, sp.csr_array(X)):
        np.testing.assert_array_equal(Stumps(given).outputs(feature, threshold, polarity),
                                      stumps.outputs(X, feature, threshold, polarity))
        assert stumps.outputs(given, [], [], []).shape == (30, 0)
        assert Stumps(given).outputs([], [], []).shape == (30, 0)


numbers = st.sampled_from([0.0, 1.0, -1.0, 2.0, 0.1, -0.1, TINY, 1e-300, -1e300, LARGE]) | st.floats(
    allow_nan=False, allow_infinity=False)


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_edge_is_that_of_the_outputs(data):
    n, d, K = (data.draw(st.integers(1, high)) for high in (8, 4, 3))
    X = np.array(data.draw(st.lists(numbers, min_size=n * d, max_size=n * d))).reshape(n, d)
    weights = st.floats(-1e6, 1e6) | st.just(0.0)
    U = np.array(data.draw(st.lists(weights, min_size=n * K, max_size=n * K))).reshape(n, K)
    stump = Stumps(sp.csr_array(X))
    feature, threshold, polarity, edge = stump.best(U)
    assert_same((feature, threshold, polarity, edge), Stumps(X).best(U, n_threads=2))
    scale = np.abs(U).sum(axis=0)
    for c, (_, _, _, best) in enumerate(best_by_force(X, U)):
        assert abs(edge[c] - best) <= 1e-14 * scale[c]
    if feature[0] < 0:
        assert all(len(np.unique(column)) == 1 for column in X.T)
        return
    h = stump.outputs(feature, threshold, polarity)
    np.testing.assert_array_equal(h, stumps.outputs(X, feature, threshold, polarity))
    for c in range(K):
        assert edge[c] == edge_of(U[:, c], h[:, c])
        assert abs(edge[c] - U[:, c] @ h[:, c]) <= 1e-14 * scale[c]


def test_shared_stump_is_the_best_of_all_classes():
    rng = np.random.default_rng(9)
    X, U = few_values(rng, 30, 5), rng.normal(size=(30, 6))
    best, shared = Stumps(X).best(U), Stumps(X).best_shared(U, n_threads=2)
    column = int(np.argmax(best[3]))
    assert [part.shape for part in shared] == [(1,)] * 4
    assert [part[0] for part in shared] == [part[column] for part in best]
    # Equal columns: the first.
    assert_same(Stumps(X).best_shared(np.tile(U[:, [2]], 3)), Stumps(X).best(U[:, [2]]))


def test_types_of_U():
    rng = np.random.default_rng(10)
    X, U = few_values(rng, 20, 5), whole_numbers(rng, 20, 4)
    expected = Stumps(X).best(U)
    for given in (np.asfortranarray(U), U.astype(np.float32), U.astype(int), U.tolist(),
                  np.repeat(U, 2, axis=1)[:, ::2]):
        assert_same(Stumps(X).best(given), expected)


# ---------------------------------------------------------------- what is refused

def test_refused_X():
    for value in (np.nan, np.inf):
        for given in ([[1.0, value]], sp.csr_array([[1.0, value]])):
            with pytest.raises(ValueError, match="X.*finite"):
                Stumps(given)
            with pytest.raises(ValueError, match="X.*finite"):
                stumps.outputs(given, [0], [0.0], [1])
    with pytest.raises(ValueError, match="two-dimensional"):
        Stumps([1.0, 2.0])
    for shape in ((0, 3), (3, 0)):
        with pytest.raises(ValueError, match="X is empty"):
            Stumps(np.zeros(shape))


@pytest.mark.parametrize("U, message", [
    (np.ones(3), r"shape \(3,\), expected \(3, K\)"), (np.ones((2, 2)), r"shape \(2, 2\)"),
    (np.ones((3, 0)), r"shape \(3, 0\)"), (np.array([[1, 1], [1, np.nan], [1, 1]]), "column 1"),
    (np.array([[np.inf, 1], [1, 1], [-np.inf, 1]]), "column 0"), (np.full((3, 1), 1e308), "overflow"),
])
def test_refused_U(U, message):
    with pytest.raises(ValueError, match=f"^U.*{message}"):
        Stumps(np.eye(3)).best(U)


def test_refused_threads():
    with pytest.raises(ValueError, match="n_threads=0"):
        Stumps(np.eye(3)).best(np.ones((3, 1)), n_threads=0)


@pytest.mark.parametrize("stump, message", [
    (([0, 1], [0.0], [1]), "one length"), (([[0]], [[0.0]], [[1]]), "one length"),
    (([-1], [0.0], [1]), "feature=-1"), (([3], [0.0], [1]), "feature=3"),
    (([0.5], [0.0], [1]), "feature=0.5"),
    (([0], [np.nan], [1]), "NaN"), (([0], [0.0], [0]), "polarity"), (([0], [0.0], [2]), "polarity"),
])
def test_refused_stumps(stump, message):
    for call in (Stumps(np.eye(3)).outputs, lambda *s: stumps.outputs(sp.eye_array(3), *s)):
        with pytest.raises(ValueError, match=message):
            call(*stump)
