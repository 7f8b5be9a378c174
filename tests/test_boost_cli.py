"""MultiBoost's model files, and `python -m fastmc boost` with predict and info."""
import json

import numpy as np
import pytest

import fastmc
from fastmc import boosting, cli
from fastmc.boosting import MultiBoostClassifier


def clusters(n=120, K=3, d=4, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % K)
    return np.round(rng.normal(size=(K, d))[y] * 2 + rng.normal(size=(n, d)), 3), y


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Run a command line in tmp_path, where files t and v hold data: (code, out, err)."""
    monkeypatch.chdir(tmp_path)
    X, y = clusters()
    fastmc.dump_svmlight(X[:80], y[:80] + 1, "t")
    fastmc.dump_svmlight(X[80:], y[80:] + 1, "v")

    def run(*words):
        capsys.readouterr()
        code = cli.main([str(word) for word in words])
        return code, *capsys.readouterr()

    return run


# Model files

FACTS = ["n_features_in_", "n_rounds_", "converged_", "solver_time_", "objective_", "lower_bound_",
         "global_lower_bound_", "learners_"]


@pytest.mark.parametrize("labels", [[1, 2, 5], [0.5, 1.5, 2.5], ["a", "b", "cc"], [True, False, True]])
@pytest.mark.parametrize("as_objects", [False, True])
@pytest.mark.parametrize("load", [boosting.load, fastmc.load_model])
def test_a_file_keeps_the_model(tmp_path, labels, as_objects, load):
    X, y = clusters()
    labels = np.array(labels, dtype=object if as_objects else None)
    model = MultiBoostClassifier(n_rounds=6, C=50.0, max_sweeps=7, random_state=3).fit(X, labels[y])
    model.save(tmp_path / "m.npz")
    read = load(tmp_path / "m.npz")
    assert type(read) is MultiBoostClassifier and read.get_params() == model.get_params()
    for name in FACTS:
        assert getattr(read, name) == getattr(model, name)
    np.testing.assert_array_equal(read.classes_, model.classes_)
    assert read.classes_.dtype == model.classes_.dtype
    np.testing.assert_array_equal(read.decision_function(X), model.decision_function(X))
    np.testing.assert_array_equal(read.predict(X), model.predict(X))
    np.testing.assert_array_equal(read.feature_counts(), model.feature_counts())
    with pytest.raises(ValueError, match="keeps the last round only"):
        read.staged_predict(X)
    read.save(tmp_path / "again.npz")
    assert boosting.load(tmp_path / "again.npz").learners_ == model.learners_
    assert read.fit(X, labels[y]).learners_ == model.learners_


def test_an_empty_model_and_a_generator(tmp_path):
    model = MultiBoostClassifier(random_state=np.random.default_rng(0)).fit(np.ones((4, 2)), [0, 0, 1, 1])
    model.save(tmp_path / "m.npz")
    read = boosting.load(tmp_path / "m.npz")
    assert read.n_rounds_ == 0 and read.learners_ == [[], []] and read.random_state == 0
    assert read.predict(np.ones((3, 2))).tolist() == [0, 0, 0]


def test_a_file_is_for_stumps(tmp_path):
    tree = pytest.importorskip("sklearn.tree", reason="a tree of scikit-learn").DecisionTreeClassifier
    model = MultiBoostClassifier(n_rounds=2, weak_learner=tree(max_depth=2)).fit(*clusters())
    with pytest.raises(ValueError, match="a model file keeps stumps only"):
        model.save(tmp_path / "m.npz")
    assert not list(tmp_path.iterdir())


def test_labels_that_need_pickling_are_refused(tmp_path):
    X, y = clusters()
    model = MultiBoostClassifier(n_rounds=2).fit(X, np.array([(0,), (1,), (2,), None], dtype=object)[:3][y])
    with pytest.raises(ValueError, match="cannot be saved"):
        model.save(tmp_path / "m.npz")


def test_kinds_are_told_apart(tmp_path):
    X, y = clusters()
    fastmc.train(X, y).save(tmp_path / "linear.npz")
    assert isinstance(fastmc.load_model(tmp_path / "linear.npz"), fastmc.Model)
    with pytest.raises(fastmc.ModelError, match="linear.npz: a linear model, not one of MultiBoost"):
        boosting.load(tmp_path / "linear.npz")


def damaged(tmp_path, meta=None, **changes):
    """A model file with some of its parts replaced (None: left out)."""
    path = tmp_path / "m.npz"
    # Noise, so that each of the 3 rounds finds a new stump for each of the 3 classes.
    X = np.random.default_rng(0).normal(size=(60, 4))
    MultiBoostClassifier(n_rounds=3).fit(X, np.arange(60) % 3).save(path)
    with np.load(path) as archive:
        parts = {key: archive[key] for key in archive}
    if meta is not None:
        told = json.loads(str(parts["meta"]))
        meta(told)
        parts["meta"] = np.array(json.dumps(told))
    parts = {key: value for key, value in (parts | changes).items() if value is not None}
    np.savez(path, **parts)
    return path


@pytest.mark.parametrize("changes, message", [
    ({"feature": None}, "no feature in the archive"), ({"count": np.array([1, 1])}, "does not fit 3 classes"),
    ({"count": np.array([9, -3, 3])}, "does not fit"), ({"feature": np.full(9, 4)}, "not one of 0..3"),
    ({"feature": np.full(8, 0)}, "must be of one length"), ({"threshold": np.full(9, np.nan)}, "NaN"),
    ({"polarity": np.zeros(9, dtype=int)}, "polarity must be"), ({"weights": np.full(9, -1.0)}, "non-negative"),
    ({"weights": np.full(9, np.inf)}, "finite"), ({"classes": np.array([2, 1, 0])}, "sorted"),
    ({"weights": np.array(["x"] * 9)}, "weights has dtype"),
    ({"classes": np.array([1, None, 2], dtype=object)}, "allow_pickle=False"),
    ({"meta": lambda m: m.update(kind="tree")}, "kind 'tree' is unknown"),
    ({"meta": lambda m: m.update(format=9)}, "format 9 is unknown"),
    ({"meta": lambda m: m["facts"].update(n_rounds_="x")}, "n_rounds_ is 'x'"),
    ({"meta": lambda m: m["facts"].update(n_features_in_=True)}, "n_features_in_ is True"),
    ({"meta": lambda m: m["facts"].pop("converged_")}, "converged_"),
    ({"meta": lambda m: m["parameters"].update(C=-1)}, "C=-1"),
    ({"meta": lambda m: m["parameters"].update(a=1)}, "unknown parameter 'a'")])
def test_damaged_files(tmp_path, changes, message):
    path = damaged(tmp_path, **changes)
    for load in (boosting.load, fastmc.load_model):
        with pytest.raises(fastmc.ModelError, match=message) as caught:
            load(path)
        assert "m.npz: " in str(caught.value)


# The command line

def test_boost_predict_info(run, tmp_path):
    code, out, err = run("boost", "--rounds", 20, "-c", 500, "t")
    assert (code, err) == (0, "")
    model = fastmc.load_model("t.npz")
    X, y = fastmc.load_svmlight("t")
    assert model.get_params() == MultiBoostClassifier(n_rounds=20, C=500.0).get_params()
    assert model.learners_ == MultiBoostClassifier(n_rounds=20, C=500.0).fit(X, y).learners_
    lines = out.splitlines()
    assert lines[0].startswith("n = 80, d = 4, m = 3, nnz = ")
    assert lines[1].startswith("trained in ") and lines[2].startswith(f"rounds = {model.n_rounds_} (")
    assert lines[3].startswith(f"objective = {model.objective_:.9g}, optimum at least ")
    assert lines[4:] == ["model = t.npz"]

    code, out, err = run("predict", "-k", 3, "v", "t.npz", "p")
    X, y = fastmc.load_svmlight("v", n_features=4)
    ranked = np.loadtxt("p", dtype=int)
    np.testing.assert_array_equal(ranked, model.predict_topk(X, 3))
    right = int((ranked[:, 0] == y).sum())
    assert (code, err) == (0, "") and out.splitlines()[0] == f"Accuracy = {100 * right / 40:g}% ({right}/40)"
    assert out.splitlines()[-1] == "Top-3 accuracy = 100% (40/40)"

    code, out, err = run("info", "t.npz")
    assert (code, err) == (0, "")
    assert out.splitlines()[:3] == ["classes = 3: 1 2 3", "features = 4",
                                    "MultiBoost of class-wise stumps, C = 500"]
    facts = json.loads(run("info", "--json", "t.npz")[1])
    assert facts["objective"] == model.objective_ and facts["classes"] == [1, 2, 3]
    assert facts["n_stumps"] == model.feature_counts().sum()


def test_options_reach_the_classifier(run):
    code, out, err = run("boost", "-e", 0.1, "-m", 2, "--rounds", 5, "--max-sweeps", 3, "--shared", "--seed",
                         4, "--json", "t", "m.npz")
    facts = json.loads(out)
    assert (code, err) == (0, "") and facts["model_file"] == "m.npz" and facts["class_wise"] is False
    model = boosting.load("m.npz")
    expected = MultiBoostClassifier(n_rounds=5, tol=0.1, n_threads=2, max_sweeps=3, class_wise=False,
                                    random_state=4)
    assert model.get_params() == expected.get_params()
    for words, options in ((["--stage-wise"], {"stage_wise": True}), (["--master", "lbfgsb"],
                                                                      {"master": "lbfgsb"})):
        assert run("boost", "-q", "--rounds", 3, *words, "t") == (0, "", "")
        assert boosting.load("t.npz").get_params() == MultiBoostClassifier(n_rounds=3, **options).get_params()


def test_early_stopping(run):
    assert run("boost", "-q", "--rounds", 40, "--early-stopping", 3, "--validation", "v", "t")[0] == 0
    X, y = fastmc.load_svmlight("t")
    validation = fastmc.load_svmlight("v", n_features=4)
    model = MultiBoostClassifier(n_rounds=40, early_stopping=3).fit(X, y, validation=validation)
    assert boosting.load("t.npz").n_rounds_ == model.n_rounds_ < 40


@pytest.mark.parametrize("words, message", [
    ([], "training_file"), (["-c", "0", "t"], "-c 0.0"), (["-e", "0", "t"], "-e 0.0"),
    (["--rounds", "0", "t"], "--rounds 0"), (["--max-sweeps", "0", "t"], "--max-sweeps 0"),
    (["-m", "-1", "t"], "-m -1"), (["--seed", "-1", "t"], "--seed -1"),
    (["--master", "x", "t"], "--master x"), (["--early-stopping", "0", "t"], "--early-stopping 0"),
    (["--validation", "v", "t"], "--validation is for --early-stopping"),
    (["--stage-wise", "--master", "lbfgsb", "t"], "--stage-wise is for --master fcd"),
    (["t", "m.model"], "m.model: a MultiBoost model needs a name that ends in .npz"),
    (["--round", "3", "t"], "unrecognized arguments"), (["-w1", "2", "t"], "unrecognized arguments"),
    (["--early-stopping", "2", "--validation", "v", "t", "v.npz/../v"], "ends in .npz")])
def test_wrong_command_lines(run, tmp_path, words, message):
    code, out, err = run("boost", *words)
    assert code == 2 and out == "" and message in err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["t", "v"]


def test_wrong_data(run, tmp_path):
    (tmp_path / "one").write_text("1 1:1\n1 2:1\n")
    (tmp_path / "bad").write_text("1 1:1\n2 1:x\n")
    (tmp_path / "d").mkdir()
    for words, message in ((["one"], "ERROR: one: y has one class only"), (["bad"], "ERROR: bad, line 2"),
                           (["none"], "ERROR: none: No such file"), (["t", "d/e/m.npz"], "No such file")):
        code, out, err = run("boost", *words)
        assert code == 1 and out == "" and err.startswith("ERROR: ") and message in err
        assert len(err.splitlines()) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad", "d", "one", "t", "v"]


def test_help_fits_a_screen(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    code, out, err = run("boost", "--help")
    assert code == 0 and max(map(len, out.splitlines())) <= 100 and len(out.splitlines()) <= 45
    for option in ("-c", "-e", "-m", "-q", "--rounds", "--max-sweeps", "--shared", "--stage-wise", "--master",
                   "--early-stopping", "--validation", "--seed", "--json"):
        assert f"\n  {option} " in out
