"""README and docs say what the code does; every example and command in them runs, and in docstrings."""
import doctest
import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import numpy as np
import pytest

import fastmc
from fastmc.boosting import MultiBoostClassifier, solve_weights
from fastmc.cli import main
from fastmc.losses import LOSSES

ROOT = Path(__file__).parent.parent
PAGES = sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob("docs/**/*.md"))


@pytest.fixture
def folder(monkeypatch, tmp_path):
    """An empty working folder with the embedded data."""
    (tmp_path / "data").symlink_to(ROOT / "data")
    monkeypatch.chdir(tmp_path)


def examples():
    """The docstrings of fastmc that have examples."""
    found = []
    for module in pkgutil.walk_packages(fastmc.__path__, "fastmc."):
        if module.name != "fastmc.__main__":
            found += doctest.DocTestFinder().find(importlib.import_module(module.name))
    found += doctest.DocTestFinder().find(fastmc)
    return [test for test in found if test.examples]


@pytest.mark.parametrize("test", examples(), ids=lambda test: test.name)
def test_the_examples_of_docstrings_run(test, folder):
    assert doctest.DocTestRunner().run(test).failed == 0


def test_what_users_call_has_an_example():
    have = {test.name for test in examples()}
    assert have >= {"fastmc._train.train", "fastmc._path.path", "fastmc._model.Ranker.predict_topk",
                    "fastmc.svmlight.load_svmlight", "fastmc.boosting.solve_weights",
                    "fastmc.boosting.MultiBoostClassifier"}


@pytest.mark.parametrize("function", [
    fastmc.train, fastmc.path, fastmc.load_svmlight, fastmc.dump_svmlight, solve_weights,
    MultiBoostClassifier, MultiBoostClassifier.fit], ids=lambda function: function.__qualname__)
def test_docstrings_list_the_parameters(function):
    sections = re.split(r"\n(\w+)\n-+\n", inspect.getdoc(function))
    names = re.findall(r"^(\w.*?)(?: :|$)", sections[sections.index("Parameters") + 1], flags=re.M)
    listed = [name for line in names for name in line.split(", ")]
    assert sorted(listed) == sorted(set(inspect.signature(function).parameters) - {"self"})


def test_the_links_of_the_readme_lead_to_files():
    links = re.findall(r"\]\((?!https?:)([^)#]+)", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert "docs/quickstart.md" in links and all((ROOT / link).exists() for link in links)


@pytest.mark.parametrize("page", PAGES)
def test_the_examples_and_commands_of_a_page_run(page, folder):
    text = (ROOT / page).read_text(encoding="utf-8")
    for line in re.findall(r"^    python -m fastmc (.*)$", text, flags=re.M):
        assert main(line.split()) == 0
    assert doctest.testfile(str(ROOT / page), module_relative=False, encoding="utf-8").failed == 0


def test_the_examples_of_the_readme_run(folder):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.S)
    assert len(blocks) == 5
    names = {}
    for code in blocks:
        exec(compile(code, "README.md", "exec"), names)
    model = fastmc.load_model("stdlib.npz")
    assert model.status == "converged" and model.certificate.relative_gap <= 1e-3 and model.C == 2.0
    assert model.topk_error(names["X_test"], names["y_test"], k=5) < 0.06
    assert names["path"].relative_gap.max() <= 0.1
    assert names["best"].topk_error(names["X_test"], names["y_test"], 1) == names["path"].top1_error.min()
    assert fastmc.load_model("boosted.npz").n_rounds_ == 10
    rows = names["vectorizer"].transform([*names["texts"], "read numbers from a file"])
    assert names["classifier"].topk_score(rows[:-1], names["labels"], k=2) == 1.0
    assert sorted(names["classifier"].predict_topk(rows[-1:], k=2)[0]) == ["algorithms", "io"]


def test_the_command_lines_of_the_readme_run(folder):
    lines = re.findall(r"^    python -m fastmc (.*)$", (ROOT / "README.md").read_text(), flags=re.M)
    assert [line.split()[0] for line in lines] == ["train", "predict", "info", "train", "path", "boost"]
    assert [main(line.split()) for line in lines] == [0] * 6


@pytest.mark.parametrize("file", ["README.md", "docs/math.md"])
def test_objective_lambda_and_each_loss_are_stated(file):
    text = (ROOT / file).read_text()
    assert "P(W) = lambda/2 ||W||^2 + 1/n sum_i omega_i Phi" in text
    assert "lambda = 1 / (C n)" in text
    for name in LOSSES:
        assert f"`{name}`" in text


def test_the_dual_of_each_loss_is_stated():
    text = (ROOT / "docs/math.md").read_text()
    table = text[text.index("What makes beta feasible"):text.index("The block gap")]
    for name in LOSSES:
        assert f"`{name}`" in table
    assert "D(A) = -lambda/2 ||W(A)||^2" in text


def test_the_stated_objective_is_the_certified_one():
    # The formula of the documents, written out once more for a model of two samples.
    X, y = np.array([[1.0, 0.0], [0.0, 2.0]]), np.array([0, 1])
    model = fastmc.train(X, y, C=0.3, tol=1e-9)
    lam = 1 / (0.3 * 2)
    scores = model.decision_function(X)
    hinge = [max(0.0, 1 + scores[0, 1] - scores[0, 0]), max(0.0, 1 + scores[1, 0] - scores[1, 1])]
    value = lam / 2 * np.sum(model.coef_**2) + np.mean(hinge)
    assert model.certificate.primal == pytest.approx(value, rel=1e-12)
