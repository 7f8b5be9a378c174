"""What train() does with its data: layouts, types, labels, weights and costs."""
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

import fastmc
from fastmc import _problem, _samples, _train
from fastmc._problem import Problem


class Frame:
    """A table that NumPy can read and nothing else."""

    def __init__(self, values):
        self.values = values

    def __array__(self, dtype=None, copy=None):
        return np.array(self.values, dtype=dtype)


class Missing:
    """A missing value that refuses to be compared."""

    def __ne__(self, other):
        raise TypeError("missing")


def train(p, X=None, y=None, **options):
    return fastmc.train(p.X if X is None else X, p.y if y is None else y,
                        **{"loss": "topk", "k": 2, "tol": 1e-8, "max_passes": 100_000, **options})


def assert_same_model(a, b):
    np.testing.assert_array_equal(a.weights, b.weights)
    np.testing.assert_array_equal(a.dual_.toarray(), b.dual_.toarray())
    assert a.certificate == b.certificate and a.n_passes == b.n_passes


def assert_same_optimum(a, b, rtol=0.0):
    """Both are certified, so their objectives differ by no more than the larger gap."""
    assert a.status == b.status == "converged"
    assert (abs(a.certificate.primal - b.certificate.primal)
            <= max(a.certificate.gap, b.certificate.gap) + rtol * a.certificate.primal)


# Layouts and types of X

@pytest.mark.parametrize("layout", ["csr", "dense"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_X_is_used_without_a_copy(draw, layout, dtype, index):
    p = draw(layout=layout, dtype=dtype, index=index)
    held = Problem(p.X, p.y).X
    if layout == "dense":
        assert np.shares_memory(held, p.X) and held.dtype == dtype
        return
    for name in ("data", "indices"):
        ours, given = getattr(held, name), getattr(p.X, name)
        assert np.shares_memory(ours, given) and ours.dtype == given.dtype


@pytest.mark.parametrize("indptr", [np.int32, np.int64])
@pytest.mark.parametrize("indices", [np.int32, np.int64])
def test_index_widths_give_equal_models(draw, indptr, indices):
    p = draw()
    X = p.X.copy()
    X.indptr, X.indices = X.indptr.astype(indptr), X.indices.astype(indices)
    assert np.shares_memory(Problem(X, p.y).X.indices, X.indices)
    assert_same_model(train(p), train(p, X))


@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.csc_array, sp.csc_matrix, sp.coo_array,
                                  sp.lil_array, sp.dok_array, sp.dia_array])
def test_sparse_containers_equal_csr(draw, kind):
    p = draw()
    assert_same_model(train(p), train(p, kind(p.X)))


def test_stored_zeros_change_nothing(draw):
    p = draw()
    blocks = sp.bsr_array(p.X, blocksize=(2, 3))
    assert blocks.nnz > p.X.nnz
    # Not in bits: the terms of ||x||^2 are added in another order.
    assert_same_optimum(train(p), train(p, blocks), rtol=1e-12)
    X = p.X.copy()
    X.data[::3] = 0.0
    pruned = X.copy()
    pruned.eliminate_zeros()
    assert_same_optimum(train(p, X), train(p, pruned), rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dense_arrays_of_zeros_mostly_become_csr(draw, dtype):
    p = draw(n=40, d=20)
    X = p.X.toarray().astype(dtype)
    X[:, 8:] = 0.0  # half of the rest is zero, too
    before = X.copy()
    assert 0.1 < np.count_nonzero(X) / X.size < 0.25
    problem = Problem(X, p.y)
    assert problem.X.format == "csr" and problem.X.dtype == dtype and problem.X.nnz == np.count_nonzero(X)
    expected = sp.csr_array(X)
    for name in ("data", "indices", "indptr"):
        ours, scipys = getattr(problem.X, name), getattr(expected, name)
        np.testing.assert_array_equal(ours, scipys)
        assert ours.dtype == scipys.dtype
    np.testing.assert_array_equal(problem.X.toarray(), X)
    assert_same_model(train(p, X), train(p, sp.csr_array(X)))
    np.testing.assert_array_equal(X, before)
    X[:, 8:] = 1.0
    assert Problem(X, p.y).X is X


@pytest.mark.parametrize("order", [slice(None), slice(None, None, -1)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_dense_array_stays_one_from_a_quarter_of_entries_on(dtype, order):
    y = [0, 1, 2, 0]
    X = np.zeros((4, 8), dtype)
    X[0] = np.arange(1, 9)
    X = np.ascontiguousarray(X[order])
    assert Problem(X, y).X is X
    for column in range(8):
        fewer = X.copy()
        fewer[:, column] = -0.0
        packed = Problem(fewer, y).X
        assert packed.format == "csr" and packed.nnz == 7
        np.testing.assert_array_equal(packed.toarray(), fewer)


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("filled", [1, 20])
def test_what_is_not_finite_is_found_in_dense_arrays(value, filled):
    X = np.zeros((5, 20))
    X[:, :filled] = 1.0
    X[3, 7] = value
    with pytest.raises(ValueError, match=rf"X\[3, 7\] is {value}: values must be finite"):
        Problem(X, [0, 1, 0, 1, 0])


@pytest.mark.parametrize("convert", [
    np.asarray, np.asfortranarray, Frame, np.ndarray.tolist,
    lambda X: X.astype(">f8"), lambda X: np.repeat(X, 2, axis=1)[:, ::2], lambda X: X[::-1][::-1]])
def test_dense_inputs_equal_csr(draw, convert):
    p = draw()
    dense, other = p.X.toarray(), convert(p.X.toarray())
    assert_same_model(train(p, dense), train(p, other))
    # The sums of a dense row have more terms; the objective is the same.
    assert_same_optimum(train(p), train(p, other))


@pytest.mark.parametrize("layout", ["csr", "dense"])
@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.uint16, bool])
def test_integers_and_bools_are_cast(draw, layout, dtype):
    p = draw(layout=layout)
    X = abs(p.X * 3).astype(dtype)
    assert Problem(X, p.y).X.dtype == np.float64
    assert_same_model(train(p, X), train(p, X.astype(np.float64)))


@pytest.mark.parametrize("dtype", [np.float16, np.longdouble])
def test_other_floats_are_cast(draw, dtype):
    p = draw(layout="dense")
    X = p.X.astype(dtype)
    assert_same_model(train(p, X), train(p, X.astype(np.float64)))


@pytest.mark.parametrize("layout", ["csr", "dense"])
def test_float32_equals_its_values_in_float64(draw, layout):
    p = draw(layout=layout, dtype=np.float32)
    assert_same_optimum(train(p), train(p, p.X.astype(np.float64)))
    exact = draw(layout=layout)
    rounded, full = train(exact, exact.X.astype(np.float32)), train(exact)
    assert rounded.certificate.primal == pytest.approx(full.certificate.primal, rel=1e-4)
    assert rounded.weights.dtype == np.float64


def read_only(array, path):
    array = array.copy()
    array.flags.writeable = False
    return array


def mapped(array, path):
    file = path / f"{id(array)}.npy"
    np.save(file, array)
    return np.load(file, mmap_mode="r")


@pytest.mark.parametrize("freeze", [read_only, mapped])
@pytest.mark.parametrize("layout", ["csr", "dense"])
@pytest.mark.parametrize("shuffled", [False, True])
def test_read_only_and_mapped_arrays(draw, freeze, layout, shuffled, tmp_path):
    p = draw(layout=layout)
    X, y, weight, cost, costs = p.X, p.y, p.weight + 1, p.cost, p.costs
    if layout == "csr":
        X = reversed_rows(X) if shuffled else X.copy()
        X.data, X.indices, X.indptr = (freeze(a, tmp_path) for a in (X.data, X.indices, X.indptr))
    else:
        X = freeze(X, tmp_path)
    for c in (cost, costs):
        frozen = train(p, X, freeze(y, tmp_path), sample_weight=freeze(weight, tmp_path),
                       cost=freeze(c, tmp_path))
        assert_same_model(frozen, train(p, sample_weight=weight, cost=c))


def reversed_rows(X):
    """The same matrix with the entries of each row from right to left."""
    order = np.concatenate([np.arange(a, b)[::-1] for a, b in zip(X.indptr[:-1], X.indptr[1:])])
    return sp.csr_array((X.data[order], X.indices[order], X.indptr.copy()), shape=X.shape)


def split_entries(X):
    """The same matrix with each entry as two halves."""
    rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    X = sp.csr_array((np.repeat(X.data / 2, 2), np.repeat(X.indices, 2), 2 * X.indptr), shape=X.shape)
    assert X.nnz == 2 * len(rows)
    return X


def trailing_room(X):
    """The same matrix with unused room behind its entries, holding rubbish."""
    X = X.copy()
    X.data = np.append(X.data, np.nan)
    X.indices = np.append(X.indices, np.int32(99))
    return X


def wrong_flags(X):
    """Unsorted rows that claim to be sorted."""
    X = reversed_rows(X)
    X.has_sorted_indices = X.has_canonical_format = True
    return X


def spread_entries(X):
    """The same matrix over every second element of larger arrays."""
    data, indices = np.repeat(X.data, 2)[::2], np.repeat(X.indices, 2)[::2]
    return sp.csr_array((data, indices, X.indptr), shape=X.shape)


@pytest.mark.parametrize("change", [reversed_rows, split_entries, trailing_room, wrong_flags,
                                    spread_entries])
def test_irregular_csr_is_used_and_left_as_it_was(draw, change):
    p = draw()
    X = change(p.X)
    arrays = X.data, X.indices, X.indptr
    before = [array.copy() for array in arrays]
    y, weight, cost = p.y.copy(), p.weight.copy(), p.costs.copy()
    model = train(p, X, y, sample_weight=weight, cost=cost)
    assert_same_model(model, train(p, sample_weight=p.weight, cost=p.costs))
    for held, array, copy in zip((X.data, X.indices, X.indptr), arrays, before):
        assert held is array
        np.testing.assert_array_equal(array, copy)
    for ours, given in ((y, p.y), (weight, p.weight), (cost, p.costs)):
        np.testing.assert_array_equal(ours, given)


@pytest.mark.parametrize("dtype", ["int16", "uint32", "uint64", ">i4", ">i8"])
@pytest.mark.parametrize("array", ["indices", "indptr"])
def test_unusual_index_types(draw, array, dtype):
    p = draw()
    X = p.X.copy()
    setattr(X, array, getattr(X, array).astype(dtype))
    assert_same_model(train(p), train(p, X))


def test_indices_that_are_no_integers(draw):
    p = draw()
    for array in ("indices", "indptr"):
        X = p.X.copy()
        setattr(X, array, getattr(X, array).astype(float))
        with pytest.raises(ValueError, match=f"X.{array} has dtype float64; integers are needed"):
            train(p, X)


def broken(**arrays):
    X = sp.csr_array(np.array([[1.0, 2, 0], [0, 3, 4], [5, 0, 6]]))
    for name, array in arrays.items():
        # Lists take the type that SciPy chose.
        dtype = getattr(array, "dtype", getattr(X, name).dtype)
        setattr(X, name, np.array(array, dtype=dtype))
    return X


@pytest.mark.parametrize("X, message", [
    (broken(indices=[0, 1, -1, 2, 0, 2]), "X has column index -1 outside 0..2"),
    (broken(indices=[0, 1, 1, 3, 0, 2]), "X has column index 3 outside 0..2"),
    (broken(indices=[0, 1, 1, 2**31 - 1, 0, 2]), "X has column index 2147483647 outside 0..2"),
    (broken(indptr=[0, 4, 2, 6]), "X.indptr must start at 0, never decrease and have 4 entries"),
    (broken(indptr=[1, 2, 4, 6]), "X.indptr must start at 0"),
    (broken(indptr=[0, 2, 4]), "X.indptr must .* have 4 entries"),
    (broken(indptr=[0, 2, 4, 6, 6]), "X.indptr must .* have 4 entries"),
    (broken(indptr=[0, 2, 4, 7]), "X.indptr ends at 7 but there are 6 indices and 6 values"),
    (broken(indptr=[0, 2, 4, -2]), "X.indptr must .* never decrease"),
    (broken(indptr=np.array([0, 4, 2, 6], dtype=np.uint32)), "X.indptr must .* never decrease"),
    (broken(indices=np.array([0, 1, 1, 2**32 - 1, 0, 2], dtype=np.uint32)),
     "X has column index 4294967295 outside 0..2"),
    (broken(indices=[0, 1, 1, 2, 0]), "X.indptr ends at 6 but there are 5 indices and 6 values"),
    (broken(data=[1, 2, 3, 4, 5]), "X.indptr ends at 6 but there are 6 indices and 5 values"),
    (broken(data=[1, 2, 3, np.nan, 5, 6]), r"X\[1, 2\] is nan: values must be finite"),
    (broken(data=[1, 2, 3, -np.inf, 5, 6]), r"X\[1, 2\] is -inf: values must be finite"),
    (np.array([[1.0, 2], [3, np.nan], [5, 6]]), r"X\[1, 1\] is nan: values must be finite"),
    (np.array([[1.0, 2], [3, 4], [np.inf, 6]], dtype=np.float32), r"X\[2, 0\] is inf"),
    (np.array([[1.0, 2], [3, 4], [1e200, 6]]), "X: the squared norm of row 2 overflows"),
    (sp.csr_array((0, 3)), r"X is empty: shape \(0, 3\)"),
    (sp.csr_array((3, 0)), r"X is empty: shape \(3, 0\)"),
    (np.zeros((0, 3)), r"X is empty: shape \(0, 3\)"),
    (np.zeros((3, 0)), r"X is empty: shape \(3, 0\)"),
    (np.ones(3), r"X must be two-dimensional, got shape \(3,\)"),
    (np.ones((3, 2, 2)), r"X must be two-dimensional, got shape \(3, 2, 2\)"),
    (sp.coo_array(np.ones(3)), r"X must be two-dimensional, got shape \(3,\)"),
    (None, r"X must be two-dimensional, got shape \(\)"),
    ([[1, 2], [3], [4, 5]], "X is not an array, nor lists of the same length"),
    (np.full((3, 2), np.finfo(np.longdouble).max), r"X\[0, 0\] is inf: values must be finite"),
    (np.ones((3, 2), dtype=complex), "X has dtype complex128; real numbers are needed"),
    (sp.csr_array(np.eye(3) * 1j), "X has dtype complex128; real numbers are needed"),
    (np.ones((3, 2), dtype=object), "X has dtype object; real numbers are needed"),
    (np.array([["1", "2"]] * 3), "X has dtype <U1; real numbers are needed"),
    (np.ones((3, 2), dtype="M8[s]"), r"X has dtype datetime64\[s\]; real numbers are needed"),
])
def test_bad_X(X, message):
    y = np.arange(getattr(X, "shape", (3,))[0])
    with pytest.raises(ValueError, match=message):
        fastmc.train(X, y)


def test_columns_beyond_32_bits_are_refused():
    # Before that, Problem would ask for 64 GiB.
    row = np.ones(1), np.array([2**31 - 2]), np.array([0, 1]), 2, np.zeros(1, np.int64), np.ones(1), np.ones(1)
    with pytest.raises(ValueError, match="X has 2147483647 columns; at most 2147483646 are supported"):
        _samples.Samples(*row, 2**31 - 1)
    assert _samples.Samples(*row, 2**31 - 2, bias=1.0).n_features == 2**31 - 1


@pytest.mark.parametrize("bad", [-1, 4, 2**31 - 1])
@pytest.mark.parametrize("kind", [sp.csc_array, sp.bsr_array, sp.coo_array])
def test_bad_entries_of_other_containers(kind, bad):
    # Converting those would write outside of SciPy's arrays.
    X = kind(np.eye(4))
    if kind is sp.coo_array:
        X.coords[0][1] = bad
    else:
        X.indices[1] = bad
    with pytest.raises(ValueError, match="ind"):
        fastmc.train(X, [0, 1, 0, 1])


# Labels

@pytest.mark.parametrize("classes", [
    ["a", "bb", "c"], [b"x", b"y", b"z"], [-5, 0, 10**12], [-(2**63), 0, 2**63 - 1],
    [0.5, 1.2, 1.8], [-np.float32(1), 0, 1], np.array([2**64 - 1, 0, 7], dtype=np.uint64),
    np.array(["b", "a", "c"], dtype=object), np.array(["2020-01-02", "2020-01-01", "1999-12-31"], dtype="M8[D]"),
    np.array([3, 1, 2], dtype=">i8"), np.array([10**30, 0, -(10**30)], dtype=object), [True, False],
])
def test_labels_of_any_sortable_kind(draw, classes):
    p = draw(m=len(classes))
    classes = np.asarray(classes)
    sorted_classes = np.sort(classes)
    y = sorted_classes[p.y]
    model = train(p, y=y, k=1)
    np.testing.assert_array_equal(model.classes_, sorted_classes)
    assert model.classes_.dtype.kind == classes.dtype.kind
    # Row j of the weights is the j-th class in sorted order.
    assert_same_model(model, train(p, k=1))


def test_classes_are_sorted_and_columns_follow():
    X, y = np.array([[0.0, 1], [1, 0], [-1, -1], [1, 0]]), [5, 2, 9, 2]
    model = fastmc.train(X, y, C=100.0, tol=1e-6)
    assert model.classes_.tolist() == [2, 5, 9]
    scores = X @ model.weights
    assert model.classes_[scores.argmax(axis=1)].tolist() == y


@pytest.mark.parametrize("y, message", [
    ([0, 1], r"y has shape \(2,\), expected \(4,\) as X has 4 rows"),
    ([[0], [1], [0], [1]], r"y has shape \(4, 1\), expected \(4,\)"),
    (None, r"y has shape \(\), expected \(4,\)"),
    ([0, [1], 0, 1], "y is not an array, nor lists of the same length"),
    (sp.csr_array([[0], [1], [0], [1]]), r"y is a sparse matrix of shape \(4, 1\), expected an array of shape \(4,\)"),
    ([7, 7, 7, 7], r"y has one class only \(7\); at least two are needed"),
    ([0, 1, np.nan, 1], r"y\[2\] is nan: labels must be finite"),
    ([0, 1, -np.inf, 1], r"y\[2\] is -inf: labels must be finite"),
    (np.array([0.0, 1.0, np.nan, 1.0], dtype=object), r"y\[2\] is nan"),
    (np.array([1, 0, 1, "NaT"], dtype="M8[s]"), r"y\[3\] is NaT"),
    (np.array([1, "a", 1, "a"], dtype=object), "y mixes labels that cannot be sorted together"),
    (np.array([Missing(), "a", "b", "a"], dtype=object), "y mixes labels that cannot be sorted together"),
    (np.array([None, "a", "b", "a"], dtype=object), "y mixes labels that cannot be sorted together"),
])
def test_bad_labels(y, message):
    with pytest.raises(ValueError, match=message):
        fastmc.train(np.eye(4), y)


# Rows without entries

@pytest.mark.parametrize("layout", ["csr", "dense"])
@pytest.mark.parametrize("smoothing, loss_at_zero", [(0.0, 1.0), (0.5, 0.5)])
def test_rows_without_entries(layout, smoothing, loss_at_zero):
    X = np.array([[1.0, 0], [0, 1], [0, 0]])
    empty = np.zeros((3, 2))
    if layout == "csr":
        X, empty = sp.csr_array(X), sp.csr_array(empty)
    y = [0, 1, 1]
    for solver in ("sdca", "bcfw", "fw"):
        model = fastmc.train(X, y, C=10.0, smoothing=smoothing, tol=1e-3, solver=solver,
                             max_passes=100_000)
        assert model.status == "converged" and np.isfinite(model.weights).all()
        # One row in three can never be scored right. The other two are, with a margin of one:
        # the loss falls to zero where w_0 - w_1 = 1 on either, so ||W||^2 = 1.
        if smoothing == 0:
            exact = 0.5 / 30 + loss_at_zero / 3
            assert -1e-12 <= model.certificate.primal - exact <= 1e-3 * model.certificate.primal
        nothing = fastmc.train(empty, y, smoothing=smoothing, tol=1e-6, solver=solver, max_passes=100)
        assert nothing.status == "converged" and not nothing.weights.any()
        assert nothing.certificate.primal == pytest.approx(loss_at_zero, rel=1e-12)


# Weights

@pytest.mark.parametrize("balanced", [None, "balanced"])
def test_weights_are_repetitions(draw, balanced):
    p = draw(n=30)
    times = p.weight.astype(int)
    rows = np.repeat(np.arange(30), times)
    # C n is the weight of the losses: the same for both numbers of rows.
    weighted = train(p, sample_weight=p.weight, class_weight=balanced, C=1.0)
    repeated = train(p, p.X[rows], p.y[rows], class_weight=balanced, C=1.0)
    gap = lambda model, n: (model.certificate.primal * n, model.certificate.gap * n)
    (a, gap_a), (b, gap_b) = gap(weighted, 30), gap(repeated, len(rows))
    assert abs(a - b) <= gap_a + gap_b + 1e-12 * a


@pytest.mark.parametrize("solver", ["sdca", "bcfw"])
@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_weight_zero_is_removal(draw, solver, smoothing):
    p = draw(n=32)
    keep = p.weight > 0
    options = dict(C=2.0, smoothing=smoothing, tol=0, max_passes=20, solver=solver)
    with_zeros = train(p, sample_weight=p.weight, **options)
    without = train(p, p.X[keep], p.y[keep], sample_weight=p.weight[keep], **options)
    # The same orders are drawn over the samples that count; 1/C = lambda n is the same in bits.
    assert with_zeros.lam * 32 == without.lam * keep.sum() == 0.5
    np.testing.assert_array_equal(with_zeros.weights, without.weights)
    np.testing.assert_array_equal(with_zeros.dual_.toarray()[keep], without.dual_.toarray())
    np.testing.assert_array_equal(with_zeros.dual_.toarray()[~keep], 0.0)
    a, b = with_zeros.certificate, without.certificate
    assert a.primal * 32 == pytest.approx(b.primal * keep.sum(), rel=1e-14)
    assert a.dual * 32 == pytest.approx(b.dual * keep.sum(), rel=1e-14)


@pytest.mark.parametrize("solver", ["fw", "stdfw", "pg"])
def test_weight_zero_is_removal_for_batch_solvers(draw, solver):
    p = draw(n=32)
    keep = p.weight > 0
    # Rows that cannot be scored at all: their scores would poison anything they touched.
    X = p.X.toarray()
    X[~keep] *= 1e6
    options = dict(C=2.0, tol=0, max_passes=20, solver=solver)
    with_zeros = train(p, X, sample_weight=p.weight, **options)
    without = train(p, X[keep], p.y[keep], sample_weight=p.weight[keep], **options)
    np.testing.assert_allclose(with_zeros.weights, without.weights, rtol=1e-12, atol=1e-14)
    assert not with_zeros.dual_.toarray()[~keep].any()


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_weight_zero_is_removal_when_balanced(draw, smoothing):
    p = draw(n=32)
    keep = p.weight > 0
    options = dict(class_weight="balanced", smoothing=smoothing, C=1.0)
    a = train(p, sample_weight=p.weight, **options).certificate
    b = train(p, p.X[keep], p.y[keep], sample_weight=p.weight[keep], **options).certificate
    assert abs(a.primal * 32 - b.primal * keep.sum()) <= 32 * a.gap + keep.sum() * b.gap + 1e-12


def test_a_class_of_weight_zero_stays_a_class(draw):
    p = draw()
    model = train(p, class_weight={2: 0})
    assert model.classes_.tolist() == [0, 1, 2, 3]
    assert_same_model(model, train(p, sample_weight=(p.y != 2).astype(float)))


@pytest.mark.parametrize("kind", [np.asarray, list, Frame])
def test_sample_weights_may_be_any_numbers(draw, kind):
    p = draw()
    assert_same_model(train(p, sample_weight=kind(p.weight)),
                      train(p, sample_weight=p.weight.astype(np.int64)))


def test_class_weights(draw):
    p = draw(n=22)
    factors = {0: 2, 2: 0.5, 3: np.float32(3)}
    weight = np.array([2.0, 1.0, 0.5, 3.0])[p.y]
    assert_same_model(train(p, class_weight=factors), train(p, sample_weight=weight))
    assert_same_model(train(p, class_weight=factors, sample_weight=p.weight),
                      train(p, sample_weight=weight * p.weight))
    total = np.bincount(p.y, weights=p.weight)
    balanced = (total.sum() / (4 * total))[p.y] * p.weight
    np.testing.assert_allclose(Problem(p.X, p.y, class_weight="balanced", sample_weight=p.weight).weight,
                               balanced, rtol=1e-15)


def test_class_weights_of_string_and_bool_labels(draw):
    p = draw()
    names = np.array(["a", "b", "c", "d"])
    weight = np.array([1.0, 3.0, 1.0, 1.0])[p.y]
    assert_same_model(train(p, y=names[p.y], class_weight={"b": 3.0}), train(p, sample_weight=weight))
    two = p.y % 2 == 1
    assert_same_model(train(p, y=two, k=1, class_weight={True: 3.0}),
                      train(p, y=two, k=1, sample_weight=np.where(two, 3.0, 1.0)))


def test_weight_of_an_unknown_class_warns_at_the_call(draw):
    p = draw()
    with pytest.warns(UserWarning, match="class_weight: there is no class 7 in the data") as caught:
        model = train(p, class_weight={7: 2.0})
    assert_same_model(model, train(p))
    assert len(caught) == 1
    with pytest.warns(UserWarning) as caught:
        fastmc.train(p.X, p.y, class_weight={"0": 2.0})
    assert caught[0].filename == __file__


@pytest.mark.parametrize("options, message", [
    ({"sample_weight": [1.0, 2.0]}, r"sample_weight has shape \(2,\), expected \(4,\)"),
    ({"sample_weight": 2.0}, r"sample_weight has shape \(\), expected \(4,\)"),
    ({"sample_weight": np.ones((4, 1))}, r"sample_weight has shape \(4, 1\), expected \(4,\)"),
    ({"sample_weight": [1, 1, -0.5, 1]}, r"sample_weight\[2\]=-0.5 is negative"),
    ({"sample_weight": [1, np.nan, 1, 1]}, r"sample_weight\[1\] is nan: values must be finite"),
    ({"sample_weight": [1, np.inf, 1, 1]}, r"sample_weight\[1\] is inf: values must be finite"),
    ({"sample_weight": [1, 1, 1, None]}, r"sample_weight\[3\] is None: values must be finite"),
    ({"sample_weight": ["a"] * 4}, "sample_weight=.* must hold numbers"),
    ({"sample_weight": np.zeros(4)}, "all samples have weight zero"),
    ({"class_weight": {0: 0, 1: 0}}, "all samples have weight zero"),
    ({"class_weight": {0: -1}}, r"class_weight\[0\]=-1.0 must be a number >= 0"),
    ({"class_weight": {0: np.nan}}, r"class_weight\[0\] is nan: values must be finite"),
    ({"class_weight": {0: [1, 2]}}, r"class_weight\[0\]=\[1. 2.\] must be a number >= 0"),
    ({"class_weight": {0: "x"}}, r"class_weight\[0\]='x' must hold numbers"),
    ({"class_weight": "balance"}, "class_weight='balance' must be \"balanced\", a dict or None"),
    ({"class_weight": [1, 2]}, r"class_weight=\[1, 2\] must be \"balanced\", a dict or None"),
    ({"sample_weight": np.full(4, 1e308), "class_weight": {0: 1e10}}, "weight"),
    ({"bias": 0}, "bias=0 must be a positive number, or None for no bias"),
    ({"bias": -1.0}, "bias=-1.0 must be a positive number"),
    ({"bias": [1.0]}, r"bias=\[1.0\] must be a positive number"),
    ({"bias": np.nan}, "bias is nan: values must be finite"),
    ({"bias": np.inf}, "bias is inf: values must be finite"),
    ({"bias": "x"}, "bias='x' must hold numbers"),
    ({"bias": 1e200}, "the squared norm of row 0 overflows"),
    ({"sample_weight": [1e308] * 4}, "the mean loss at W = 0 is inf: scale cost, rho or sample_weight"),
    ({"class_weight": {0: 1e308, 1: 1e308}}, "the mean loss at W = 0 is inf"),
    ({"cost": 1e308 * (1 - np.eye(2))}, "the mean loss at W = 0 is inf"),
])
def test_bad_weights_and_bias(options, message):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match=message):
            fastmc.train(np.eye(4), [0, 1, 0, 1], **options)


@pytest.mark.parametrize("kind", [np.array, sp.csr_array])
def test_rows_that_overflow(kind):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match="X: the squared norm of row 1 overflows"):
            fastmc.train(kind([[1.0, 2.0], [1e200, 0.0]]), [0, 1])


# Costs

def test_cost_per_sample_with_equal_rows_is_the_matrix(draw, loss_options):
    p = draw()
    options = {"k": 1, **loss_options}
    assert_same_model(train(p, cost=p.cost, **options), train(p, cost=p.cost[p.y], **options))


def test_cost_one_is_the_default(draw):
    p = draw()
    cost = 1 - np.eye(4)
    for given in (cost, cost.astype(int), cost.tolist(), np.asfortranarray(cost)):
        assert_same_model(train(p, cost=given), train(p))


def test_cost_rows_are_own_classes():
    # The cost of answering 1 for 0 is 5, of 0 for 1 it is 2. Without features that tell, both
    # samples keep their costs: the loss at W = 0 is their mean.
    X, cost = np.zeros((2, 1)), np.array([[0.0, 5.0], [2.0, 0.0]])
    for y, weight in (([0, 1], [1, 1]), (["no", "yes"], [1, 3])):
        model = fastmc.train(X, y, "structured", cost=cost, sample_weight=weight)
        assert model.certificate.primal == pytest.approx(np.dot([5, 2], weight) / 2, rel=1e-14)


def test_no_cost_at_all(draw):
    p = draw()
    model = train(p, cost=np.zeros((4, 4)))
    assert model.status == "converged" and model.certificate == (0.0, 0.0, 0.0, 0.0)
    assert not model.weights.any()


@pytest.mark.parametrize("cost, message", [
    (np.zeros((3, 2)), r"cost has shape \(3, 2\), expected \(2, 2\) or \(4, 2\)"),
    (np.zeros(2), r"cost has shape \(2,\), expected \(2, 2\) or \(4, 2\)"),
    ([[0, -1], [1, 0]], r"cost\[0, 1\]=-1.0 is negative"),
    ([[0, 1], [1, 2]], r"cost\[1, 1\]=2.0 must be zero: it is the own class"),
    ([[0, 1], [1, 0], [0, 1], [0, 1]], r"cost\[3, 1\]=1.0 must be zero"),
    ([[0, np.nan], [1, 0]], r"cost\[0, 1\] is nan: values must be finite"),
    ([[0, np.inf], [1, 0]], r"cost\[0, 1\] is inf: values must be finite"),
    ([[0, 1], [None, 0]], r"cost\[1, 0\] is None: values must be finite"),
    ("distance", "cost='distance' must hold numbers"),
    (sp.eye_array(2), "(?s)cost=.* must hold numbers"),
])
def test_bad_costs(cost, message):
    for loss in ("maxhinge", "structured"):
        with pytest.raises(ValueError, match=message):
            fastmc.train(np.eye(4), [0, 1, 0, 1], loss, cost=cost)


def test_structured_needs_costs():
    with pytest.raises(ValueError, match="loss='structured' needs cost"):
        fastmc.train(np.eye(2), [0, 1], "structured")


# Memory

def test_too_wide_for_any_machine():
    X = sp.csr_array((10, 10**12))
    with pytest.raises(MemoryError, match=r"2 classes x \(1000000000000 features \+ 10 samples\) need 29802.3 GiB"):
        fastmc.train(X, np.arange(10) % 2)


def test_memory_is_checked_before_it_is_taken(draw, monkeypatch):
    p = draw()
    need = 16 * 4 * (6 + 20)
    monkeypatch.setattr(_problem, "physical_memory", lambda: need)
    train(p)
    monkeypatch.setattr(_problem, "physical_memory", lambda: need - 1)
    monkeypatch.setattr(_train, "make_solver", lambda *args: pytest.fail("went on"))
    with pytest.raises(MemoryError, match=r"4 classes x \(6 features \+ 20 samples\) need 0.0 GiB"):
        train(p)
