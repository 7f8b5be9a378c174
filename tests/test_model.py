"""Model: scores, labels, ranks, and the two file formats."""
import json
import zipfile

import numpy as np
import pytest
import scipy.sparse as sp

import fastmc
from fastmc._history import History
from fastmc._model import Model, ModelError, load_model
from fastmc.losses import make_spec

AWKWARD = np.array([[1 / 3, 1e-308, -0.0], [5e-324, -1.7976931348623157e308, 0.1],
                    [2**53 + 1.0, -1e-17, np.pi]])


def bits(values):
    return np.ascontiguousarray(values).view(np.uint64).tolist()


def small_model(classes=(2, 5, 9), **options):
    return Model([[1.0, 0.0, -1.0], [0.0, 2.0, -2.0]], np.array(classes), **options)


def problem(n_classes, seed=0, n_samples=60, n_features=12):
    rng = np.random.default_rng(seed)
    X = sp.random_array((n_samples, n_features), density=0.4, random_state=rng, format="csr")
    W = rng.normal(size=(n_features, n_classes))
    y = np.argmax(X @ W + rng.normal(scale=0.3, size=(n_samples, n_classes)), axis=1)
    y[:n_classes] = np.arange(n_classes)
    return X, y


# Scores and labels

def test_attributes():
    model = small_model()
    assert model.coef_.tolist() == [[1, 0], [0, 2], [-1, -2]]
    assert np.shares_memory(model.coef_, model.weights)
    assert model.intercept_.tolist() == [0, 0, 0]
    assert model.n_features_in_ == 2 and model.loss is None
    biased = small_model(bias=0.5)
    assert biased.n_features_in_ == 1
    assert biased.coef_.tolist() == [[1], [0], [-1]]
    assert biased.intercept_.tolist() == [0, 1, -1]


def test_scores_of_sparse_and_dense():
    X = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    expected = [[1, 0, -1], [0, 2, -2], [0, 0, 0]]
    for matrix in (X, X.astype(np.float32), X.astype(int), X.tolist(), sp.csr_array(X),
                   sp.csc_matrix(X), sp.coo_array(X.astype(np.float32))):
        scores = small_model().decision_function(matrix)
        assert scores.dtype == np.float64
        assert scores.tolist() == expected
        assert small_model().predict(matrix).tolist() == [2, 5, 2]


def test_bias_adds_its_row():
    model = small_model(bias=2.0)
    assert model.decision_function([[3.0]]).tolist() == [[3, 4, -7]]


def test_two_classes_have_two_columns():
    model = Model([[1.0, -1.0]], ["no", "yes"])
    assert model.decision_function([[2.0], [-3.0]]).tolist() == [[2, -2], [-3, 3]]
    assert model.predict([[2.0], [-3.0], [0.0]]).tolist() == ["no", "yes", "no"]


def test_argmax_is_the_predicted_label():
    X, y = problem(4)
    model = fastmc.train(X, np.array([5, 2, 9, 7])[y])
    assert model.classes_.tolist() == [2, 5, 7, 9]
    best = np.argmax(model.decision_function(X), axis=1)
    assert (model.predict(X) == model.classes_[best]).all()


@pytest.mark.parametrize("method", ["decision_function", "predict"])
@pytest.mark.parametrize("columns", [1, 3, 0])
def test_wrong_number_of_columns(method, columns):
    with pytest.raises(ValueError, match=f"X has {columns} features, the model has 2"):
        getattr(small_model(), method)(np.zeros((4, columns)))


def test_no_rows():
    empty = np.zeros((0, 2))
    assert small_model().decision_function(empty).shape == (0, 3)
    assert small_model().decision_function(sp.csr_array(empty)).shape == (0, 3)
    assert small_model().predict(empty).shape == (0,)
    assert small_model().predict_topk(empty, 2).shape == (0, 2)
    for score in (small_model().score, lambda X, y: small_model().topk_error(X, y, 1)):
        with pytest.raises(ValueError, match="no rows"):
            score(empty, [])


def test_bad_values_in_X():
    with pytest.raises(ValueError, match=r"X\[0, 1\] is nan"):
        small_model().predict([[0.0, np.nan]])
    with pytest.raises(ValueError, match="two-dimensional"):
        small_model().predict([0.0, 1.0])


def test_topk_order_and_ties():
    X = [[1.0, 0.0], [0.0, 1.0], [0.0, 0.0], [-1.0, 0.0], [2.0, 1.0]]
    ranked = small_model().predict_topk(X, 3)
    # All equal: class order. Two equal at the top: the lower class first.
    assert ranked.tolist() == [[2, 5, 9], [5, 2, 9], [2, 5, 9], [9, 5, 2], [2, 5, 9]]
    assert small_model().predict_topk(X, 1)[:, 0].tolist() == small_model().predict(X).tolist()


@pytest.mark.parametrize("k", [0, -1, 4, 1.0, True, None])
def test_topk_refuses_k(k):
    with pytest.raises(ValueError, match=f"k={k!r} must be .* from 1 to n_classes = 3"):
        small_model().predict_topk([[1.0, 0.0]], k)
    with pytest.raises(ValueError, match="k="):
        small_model().topk_error([[1.0, 0.0]], [2], k)


def test_topk_error_with_absent_and_unseen_classes():
    X = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0], [-1.0, 0.0]])
    y = [5, 5, 77, 9]
    model = small_model()
    assert [model.topk_error(X, y, k) for k in (1, 2, 3)] == [0.5, 0.25, 0.25]
    assert model.score(X, y) == 0.5
    assert model.topk_error(X, ["a", "b", "c", "d"], 3) == 1.0
    named = small_model(["a", "b", "c"])
    assert named.topk_error(X, ["b", "b", "unseen", "c"], 1) == 0.5


def test_labels_must_fit_rows():
    with pytest.raises(ValueError, match=r"y has shape \(2,\), expected \(1,\)"):
        small_model().score([[1.0, 0.0]], [2, 5])
    with pytest.raises(ValueError, match=r"y has shape \(1, 1\)"):
        small_model().topk_error(sp.csr_array([[1.0, 0.0]]), [[2]], 1)
    with pytest.raises(ValueError, match=r"y is a sparse matrix of shape \(1, 1\), expected an array of shape \(1,\)"):
        small_model().score([[1.0, 0.0]], sp.csr_array([[2]]))
    with pytest.raises(ValueError, match="y is not an array, nor lists of the same length"):
        small_model().score([[1.0, 0.0], [0.0, 1.0]], [2, [5]])


@pytest.mark.parametrize("weights, classes, bias, message", [
    (np.zeros((2, 3)), [1, 2], 0, "one column per class"),
    (np.zeros(3), [1, 2, 3], 0, "one column per class"),
    (np.zeros((1, 2)), [1, 2], 1, "leave no feature"),
    (np.zeros((1, 0)), [], 0, "leave no feature"),
    (np.zeros((2, 2)), [2, 1], 0, "sorted"),
    (np.zeros((2, 2)), [1, 1], 0, "distinct"),
    ([[np.nan, 0.0]], [1, 2], 0, "finite"),
    (np.zeros((2, 2)), [1, 2], np.inf, "finite"),
])
def test_parts_that_do_not_fit(weights, classes, bias, message):
    with pytest.raises(ValueError, match=message):
        Model(weights, classes, bias=bias)


# Both formats

@pytest.mark.parametrize("name", ["m.model", "m.npz"])
@pytest.mark.parametrize("bias", [0.0, 1 / 3])
def test_weights_come_back_bit_for_bit(tmp_path, name, bias):
    model = Model(AWKWARD, [-5, 0, 7], bias=bias)
    model.save(tmp_path / name)
    again = load_model(tmp_path / name)
    assert bits(again.weights) == bits(AWKWARD)
    assert again.weights.flags.c_contiguous
    assert again.classes_.tolist() == [-5, 0, 7] and again.classes_.dtype == np.int64
    assert again.bias == bias
    X = np.random.default_rng(0).normal(size=(5, model.n_features_in_))
    with np.errstate(over="ignore"):
        assert bits(again.decision_function(X)) == bits(model.decision_function(X))


@pytest.mark.parametrize("name", ["m.model", "m.npz"])
def test_model_of_single_precision_data(tmp_path, name):
    X, y = problem(3)
    model = fastmc.train(X.astype(np.float32), y)
    model.save(tmp_path / name)
    again = load_model(tmp_path / name)
    assert bits(again.weights) == bits(model.weights)
    assert bits(again.decision_function(X)) == bits(model.decision_function(X))


@pytest.mark.parametrize("name", ["m.model", "m.npz"])
def test_failed_save_leaves_the_old_file(tmp_path, name, monkeypatch):
    path = tmp_path / name
    path.write_text("old")

    def full(*args, **options):
        raise OSError("disk full")

    monkeypatch.setattr(np, "savez", full)
    model = small_model()
    if name == "m.model":
        model.weights = np.array([[1.0, 2.0, 3.0], ["x", "y", "z"]], dtype=object)
    with pytest.raises((OSError, TypeError)):
        model.save(path)
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == [name]


def test_save_writes_through_links(tmp_path):
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    small_model().save(str(tmp_path / "link"))
    assert (tmp_path / "link").is_symlink()
    assert load_model(tmp_path / "real").classes_.tolist() == [2, 5, 9]


@pytest.mark.parametrize("name", ["m.model", "m.npz"])
def test_missing_file_and_folder(tmp_path, name):
    with pytest.raises(FileNotFoundError):
        load_model(tmp_path / name)
    with pytest.raises(FileNotFoundError):
        small_model().save(tmp_path / "none" / name)
    (tmp_path / name).mkdir()
    with pytest.raises(IsADirectoryError):
        load_model(tmp_path / name)
    with pytest.raises(OSError, match="not a regular file"):
        small_model().save(tmp_path / name)


# Text

TEXT = """solver_type MCSVM_CS
nr_class 3
label 2 5 9
nr_feature 2
bias -1
w
1 0 -1
0 2 -2
"""
BIASED = TEXT.replace("bias -1", "bias 0.5").replace("nr_feature 2", "nr_feature 1")


def load_text(tmp_path, text):
    path = tmp_path / "m.model"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return load_model(str(path))


def test_text_of_a_model(tmp_path):
    small_model().save(tmp_path / "m.model")
    assert (tmp_path / "m.model").read_bytes().decode() == TEXT
    small_model(bias=0.5).save(tmp_path / "m.model")
    assert (tmp_path / "m.model").read_bytes().decode() == BIASED


def test_text_variants(tmp_path):
    for text in (TEXT, TEXT.replace("\n", "\r\n"), TEXT.replace("\n", " \n"), TEXT + "\n \n",
                 TEXT.replace("0 2 -2", "+0.0\t2e0  -.2E+1"), TEXT.replace("bias -1", "bias -7"),
                 TEXT.replace("nr_feature 2\nbias -1", "bias -1\nnr_feature 2")):
        model = load_text(tmp_path, text)
        assert model.weights.tolist() == [[1, 0, -1], [0, 2, -2]]
        assert model.classes_.tolist() == [2, 5, 9]
        assert model.bias == 0.0 and model.spec is None and model.certificate is None
    assert load_text(tmp_path, BIASED).intercept_.tolist() == [0, 1, -1]


def test_text_labels_in_any_order(tmp_path):
    model = load_text(tmp_path, TEXT.replace("2 5 9", "9 -2 5"))
    assert model.classes_.tolist() == [-2, 5, 9]
    assert model.weights.tolist() == [[0, -1, 1], [2, -2, 0]]


def test_bias_of_zero_has_a_row_that_never_counts(tmp_path):
    model = load_text(tmp_path, BIASED.replace("bias 0.5", "bias 0"))
    assert model.weights.tolist() == [[1, 0, -1]]
    assert model.n_features_in_ == 1 and model.bias == 0.0


@pytest.mark.parametrize("old, new, line, message", [
    ("MCSVM_CS", "FOO", 1, "solver_type 'FOO' cannot be read, only MCSVM_CS"),
    ("MCSVM_CS", "L2R_LR", 1, "solver_type 'L2R_LR' cannot be read"),
    ("MCSVM_CS", "", 1, "solver_type needs one value, not 0"),
    ("label 2 5 9", "label 2 5", 3, "2 labels for nr_class 3"),
    ("label 2 5 9", "label 2 5 9 10", 3, "4 labels for nr_class 3"),
    ("label 2 5 9", "label 2 5 2", 3, "a label stands twice"),
    ("label 2 5 9", "label 2 cat 9", 3, "'cat' is not a whole number"),
    ("label 2 5 9", "label 2 5 3000000000", 3, "'3000000000' is not a whole number from -21"),
    ("label 2 5 9", "label 2 1_0 9", 3, "'1_0' is not a whole number"),
    ("label 2 5 9", "label 2 5.5 9", 3, "'5.5' is not a whole number"),
    ("nr_class 3", "nr_class 0", 2, "'0' is not a whole number from 1"),
    ("nr_class 3", "nr_class three", 2, "'three' is not"),
    ("nr_class 3", "nr_klass 3", 2, "'nr_klass' is no part of a model's header"),
    ("nr_class 3", "", 2, "'' is no part of a model's header"),
    ("nr_class 3", "nr_class 3\nnr_class 3", 3, "'nr_class' stands twice"),
    ("nr_class 3\n", "", 5, "the header has no nr_class"),
    ("bias -1\n", "", 5, "the header has no bias"),
    ("bias -1", "bias nan", 5, "'nan' is not a finite number"),
    ("bias -1", "bias 1", 9, "the file ends where row 3 of 3 should be"),
    ("nr_feature 2", "nr_feature -2", 4, "'-2' is not a whole number from 1"),
    ("nr_feature 2", "nr_feature 2000000000", 9, "the file ends where row 3 of 2000000000"),
    ("nr_feature 2", "nr_feature 1", 8, "more lines than the 1 rows"),
    ("w\n", "", 6, "'1' is no part of a model's header"),
    ("0 2 -2\n", "", 8, "the file ends where row 2 of 2 should be"),
    ("0 2 -2\n", "0 2\n", 8, "2 weights in a row, expected 3"),
    ("0 2 -2\n", "0 2 -2 1\n", 8, "4 weights in a row, expected 3"),
    ("0 2 -2\n", "0 2", 8, "the file is cut"),
    ("0 2 -2\n", "0 2 -2", 8, "the file is cut"),
    ("0 2 -2\n", "0 2 -2\n\n1 1 1\n", 10, "more lines than the 2 rows"),
    ("0 2 -2", "0 x -2", 8, "'x' is not a finite number"),
    ("0 2 -2", "0 1_0 -2", 8, "'1_0' is not a finite number"),
    ("1 0 -1", "1 nan -1", 7, "weight 2 is nan"),
    ("1 0 -1", "1 0 1e999", 7, "weight 3 is inf"),
    ("1 0 -1", "1 é -1", 7, r"'\\xc3\\xa9' is not a finite number"),
    ("1 0 -1", "1 " + "9x" * 60 + " -1", 7, "9x'... is not a finite number"),
    (TEXT, "", 1, "the file ends where the line 'w' should be"),
    (TEXT, "solver_type MCSVM_CS\n", 2, "the file ends where the line 'w' should be"),
    (TEXT, "1 1:2\n2 1:-1\n", 1, "'1' is no part of a model's header"),
])
def test_bad_text(tmp_path, old, new, line, message):
    assert old in TEXT
    with pytest.raises(ModelError) as caught:
        load_text(tmp_path, TEXT.replace(old, new, 1))
    text = str(caught.value)
    assert text.startswith(f"{tmp_path / 'm.model'}, line {line}: ")
    assert message.replace("\\\\", "\\") in text
    assert "\n" not in text and text.isascii()


def test_every_cut_is_noticed(tmp_path):
    """No beginning of a model file is a model."""
    whole = TEXT.encode()
    for length in range(len(whole)):
        with pytest.raises(ModelError, match="line"):
            load_text(tmp_path, whole[:length])


def test_bytes_that_are_no_text(tmp_path):
    for data in (b"\x00" * 50, b"\xff\xfe" + TEXT.encode(), b"PK\x03\x04\n\n", b"\n" * 9):
        with pytest.raises(ModelError, match="line 1: "):
            load_text(tmp_path, data)


@pytest.mark.parametrize("classes, label", [
    ([1, 3_000_000_000], "3000000000"), ([-2**31 - 1, 1], "-2147483649"), ([1.0, 1.5], "1.5"),
    ([False, True], "False"), (["a", "b"], "'a'"), (np.array(["a", "b"], dtype=object), "'a'"),
    (np.array([1, 2**63], dtype=np.uint64), "9223372036854775808"),
])
def test_labels_that_text_cannot_keep(tmp_path, classes, label):
    model = Model([[1.0, -1.0]], classes)
    message = rf"label {label} is not a whole number of 32 bits.*m\.npz"
    with pytest.raises(ValueError, match=message):
        model.save(tmp_path / "m.model")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("classes", [
    [-2**31, 2**31 - 1], [1.0, 2.0], np.array([1, 2], dtype=np.uint8), [-0.0, 4.0],
    np.array([1, 2], dtype=object)])
def test_labels_that_text_keeps(tmp_path, classes):
    Model([[1.0, -1.0]], classes).save(tmp_path / "m.model")
    again = load_model(tmp_path / "m.model").classes_
    assert again.dtype == np.int64 and again.tolist() == [int(label) for label in classes]


@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("bias", [None, 0.7])
def test_liblinear_reads_it_and_agrees(tmp_path, n_classes, bias):
    liblinear = pytest.importorskip("liblinear.liblinearutil")
    X, y = problem(n_classes, seed=n_classes)
    labels = np.array([-3, 1, 2, 40, 41])[y]
    model = fastmc.train(X, labels, bias=bias)
    path = tmp_path / "m.model"
    model.save(path)
    theirs = liblinear.load_model(str(path))
    assert theirs.get_labels() == model.classes_.tolist()
    rows = X[np.diff(X.indptr) > 0]
    predicted, _, scores = liblinear.predict([], sp.csr_matrix(rows), theirs, "-q")
    assert predicted == model.predict(rows).tolist()
    ours = model.decision_function(rows)
    np.testing.assert_allclose(np.array(scores), ours[:, :len(scores[0])], rtol=1e-12, atol=1e-14)
    if n_classes == 2:
        # LIBLINEAR looks at the sign of the first score: the columns are exact opposites.
        assert (model.weights[:, 0] == -model.weights[:, 1]).all()


@pytest.mark.parametrize("options", ["-s 4", "-s 4 -B 1", "-s 4 -B 0"])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_reads_liblinears_models(tmp_path, n_classes, options):
    liblinear = pytest.importorskip("liblinear.liblinearutil")
    X, y = problem(n_classes, seed=7)
    y = (10 - y).tolist()
    theirs = liblinear.train(y, sp.csr_matrix(X), options + " -q")
    path = str(tmp_path / "m.model")
    liblinear.save_model(path, theirs)
    model = load_model(path)
    assert model.classes_.tolist() == sorted(set(y))
    assert model.bias == (1.0 if "-B 1" in options else 0.0)
    predicted, _, _ = liblinear.predict([], sp.csr_matrix(X), theirs, "-q")
    rows = np.diff(X.indptr) > 0
    assert (np.array(predicted)[rows] == model.predict(X)[rows]).all()


# Native format

@pytest.fixture(scope="module")
def trained():
    X, y = problem(4)
    weight = np.linspace(0.5, 2.0, len(y))
    model = fastmc.train(X, y, "topk", k=2, own_class=False, C=3.0, smoothing=0.1, bias=1.5,
                         sample_weight=weight)
    return X, y, weight, model


def test_native_keeps_everything(tmp_path, trained):
    X, y, weight, model = trained
    path = tmp_path / "m.npz"
    model.save(path)
    again = load_model(path)
    assert bits(again.weights) == bits(model.weights)
    for name in ("spec", "loss", "bias", "C", "lam", "smoothing", "n_samples", "solver",
                 "certificate", "status", "n_passes"):
        assert getattr(again, name) == getattr(model, name), name
        assert getattr(again, name) is not None, name
    assert type(again.certificate) is fastmc.Certificate
    assert again.spec.own_class is False
    for column in model.history:
        assert again.history[column].dtype == model.history[column].dtype
        assert (again.history[column] == model.history[column]).all()
    assert again.dual_.shape == (60, 4)
    assert (again.dual_ != model.dual_).nnz == 0
    assert (again.sample_weight == weight).all()
    assert [p.name for p in tmp_path.iterdir()] == ["m.npz"]


def test_training_goes_on_from_a_native_file(tmp_path, trained):
    X, y, weight, model = trained
    model.save(tmp_path / "m.npz")
    again = fastmc.train(X, y, "topk", k=2, own_class=False, C=3.0, smoothing=0.1, bias=1.5,
                         sample_weight=weight, init=load_model(tmp_path / "m.npz"))
    assert again.n_passes == 0
    assert bits(again.weights) == bits(model.weights)


def test_history_of_a_loaded_model_writes_the_same_table(tmp_path, trained):
    model = trained[3]
    model.save(tmp_path / "m.npz")
    model.history.to_csv(tmp_path / "a.csv")
    load_model(tmp_path / "m.npz").history.to_csv(tmp_path / "b.csv")
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()


@pytest.mark.parametrize("classes", [
    np.array([-5, 10**12]), np.array([0.5, 1.5]), np.array([False, True]),
    np.array(["a", "zoë"]), np.array([b"a", b"b"]), np.array(["a", "bcd"], dtype=object),
    np.array([1, 2**63], dtype=np.uint64), np.array([1, 5], dtype=np.int8),
    np.array([3, 4], dtype=object)], ids=str)
def test_native_keeps_any_label(tmp_path, classes):
    model = Model([[1.0, -1.0]], classes)
    model.save(tmp_path / "m.npz")
    again = load_model(tmp_path / "m.npz")
    assert again.classes_.dtype == classes.dtype
    assert again.classes_.tolist() == classes.tolist()
    assert list(map(type, again.classes_)) == list(map(type, classes))
    assert again.predict([[-1.0]]).tolist() == [classes[1]]
    assert again.dual_ is None and again.history is None and again.certificate is None


@pytest.mark.parametrize("classes", [
    np.array([1, 2.5], dtype=object), np.array([1j, 2j]),
    np.array([10**30, 10**31], dtype=object), np.array(["2020-01-01", "2020-01-02"], "M8[D]"),
    np.array(["a", "b\0"], dtype=object)], ids=str)
def test_native_refuses_other_labels(tmp_path, classes):
    model = small_model()
    model.classes_ = classes
    with pytest.raises(ValueError, match="cannot be saved"):
        model.save(tmp_path / "m.npz")
    assert list(tmp_path.iterdir()) == []


def rewritten(path, change, drop=()):
    """The archive at path with some arrays changed; `meta` as a dict."""
    with np.load(path) as archive:
        arrays = {key: archive[key] for key in archive if key not in drop}
    meta = json.loads(str(arrays["meta"])) if "meta" in arrays else {}
    for key, value in change.items():
        target = arrays if key in arrays else meta
        target[key] = value
    if "meta" in arrays and "meta" not in change:
        arrays["meta"] = np.array(json.dumps(meta))
    with open(path, "wb") as file:
        np.savez(file, **arrays)


@pytest.mark.parametrize("change, drop, message", [
    ({}, ["meta"], "no meta in the archive"),
    ({}, ["weights"], "no weights in the archive"),
    ({}, ["classes"], "no classes in the archive"),
    ({}, ["dual_indptr"], "no dual_indptr"),
    ({}, ["history_gap"], "no history_gap"),
    ({"meta": np.array("{")}, [], "not a model file"),
    ({"meta": np.array("[]")}, [], "format None is unknown"),
    ({"meta": np.array('{"format": 1}')}, [], "no bias in meta"),
    ({"meta": np.array(3.0)}, [], "meta has dtype float64"),
    ({"format": 2}, [], "format 2 is unknown"),
    ({"bias": "x"}, [], "bias is 'x'"),
    ({"bias": None}, [], "bias is None"),
    ({"C": [1]}, [], r"C is \[1\]"),
    ({"n_passes": 1.5}, [], "n_passes is 1.5"),
    ({"status": 3}, [], "status is 3"),
    ({"certificate": [1.0, 2.0]}, [], "not a model file"),
    ({"spec": ["foo", [1, 0, 0, 0], True]}, [], "loss 'foo'"),
    ({"spec": ["topk", [1, 0, 0], True]}, [], "does not fit 4 classes"),
    ({"spec": ["topk", [0, 1, 0, 0], True]}, [], "does not fit"),
    ({"spec": ["topk", [1, 1, 1, 1], True]}, [], "does not fit"),
    ({"spec": ["topk"]}, [], "not a model file"),
    ({"weights": np.zeros(4)}, [], "weights has dtype float64 and shape"),
    ({"weights": np.zeros((13, 4), dtype=int)}, [], "weights has dtype int64"),
    ({"weights": np.zeros((13, 3))}, [], "one column per class"),
    ({"weights": np.full((13, 4), np.nan)}, [], "finite"),
    ({"classes": np.array([3, 2, 1, 0])}, [], "sorted"),
    ({"classes": np.zeros((4, 1))}, [], "classes has dtype"),
    ({"sample_weight": np.ones(59)}, [], "sample_weight does not fit 60 samples"),
    ({"dual_indptr": np.zeros(60, dtype=int)}, [], "dual.indptr must start at 0"),
    ({"dual_indices": np.full(240, 4)}, [], "dual"),
    ({"dual_data": np.zeros(1)}, [], "dual.indptr ends at"),
    ({"n_samples": 59}, [], "59"),
    ({"n_samples": None}, [], "not a model file|does not fit"),
    ({"history_gap": np.zeros(99)}, [], "differ in length"),
])
def test_bad_archives(tmp_path, trained, change, drop, message):
    path = tmp_path / "m.npz"
    trained[3].save(path)
    rewritten(path, change, drop)
    with pytest.raises(ModelError, match=message) as caught:
        load_model(path)
    assert str(caught.value).startswith(f"{path}: ") and "\n" not in str(caught.value)


def test_files_that_are_no_archive(tmp_path, trained):
    path = tmp_path / "m.npz"
    trained[3].save(path)
    whole = path.read_bytes()
    np.save(tmp_path / "array.npy", np.zeros(3))
    array = (tmp_path / "array.npy").read_bytes()
    for data in (b"", TEXT.encode(), whole[:len(whole) // 2], array, b"PK\x05\x06" + bytes(18)):
        path.write_bytes(data)
        with pytest.raises(ModelError, match="not a model file"):
            load_model(path)


def test_damaged_bytes_never_pass_as_something_else(tmp_path, trained):
    """Whatever byte is damaged: an error that names the file, or an equal model."""
    path = tmp_path / "m.npz"
    model = small_model(spec=make_spec("topk", 3, 2), history=History())
    model.save(path)
    whole = path.read_bytes()
    for at in range(0, len(whole), 7):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1:])
        try:
            again = load_model(path)
        except ModelError as error:
            assert str(path) in str(error)
        else:
            assert bits(again.weights) == bits(model.weights)


def test_loading_never_unpickles(tmp_path):
    class Trap:
        def __reduce__(self):
            return (pytest.fail, ("unpickled",))

    path = tmp_path / "m.npz"
    small_model().save(path)
    with np.load(path) as archive:
        arrays = dict(archive)
    arrays["classes"] = np.array([Trap(), 1, 2], dtype=object)
    with open(path, "wb") as file:
        np.savez(file, **arrays)
    assert zipfile.is_zipfile(path)
    with pytest.raises(ModelError, match="allow_pickle=False"):
        load_model(path)
