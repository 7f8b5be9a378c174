"""README and docs/math.md say what the code does."""
import re
from pathlib import Path

import numpy as np
import pytest

import fastmc
from fastmc.cli import main
from fastmc.losses import LOSSES

ROOT = Path(__file__).parent.parent


def test_the_examples_of_the_readme_run(monkeypatch, tmp_path):
    (tmp_path / "data").symlink_to(ROOT / "data")
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.S)
    assert len(blocks) == 5
    names = {}
    for code in blocks:
        exec(compile(code, "README.md", "exec"), names)
    model = fastmc.load_model("stdlib.npz")
    assert model.status == "converged" and model.certificate.relative_gap <= 1e-3 and model.C == 2.0
    assert model.topk_error(names["X_test"], names["y_test"], k=5) < 0.06
    assert names["path"].relative_gap.max() <= 0.1
    assert names["best"].score(names["X_test"], names["y_test"]) == 1 - names["path"].top1_error.min()
    assert fastmc.load_model("boosted.npz").n_rounds_ == 10
    assert names["classifier"].topk_score(names["vectorizer"].transform(names["texts"]), names["y"], k=5) > 0.99


def test_the_command_lines_of_the_readme_run(monkeypatch, tmp_path):
    (tmp_path / "data").symlink_to(ROOT / "data")
    monkeypatch.chdir(tmp_path)
    lines = re.findall(r"^    python -m fastmc (.*)$", (ROOT / "README.md").read_text(), flags=re.M)
    assert [line.split()[0] for line in lines] == ["train", "predict", "info", "path", "boost"]
    assert [main(line.split()) for line in lines] == [0] * 5


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
