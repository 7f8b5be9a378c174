"""The embedded data set: its properties, and that it can be made again."""
from collections import Counter
import importlib.util
import json
import os
from pathlib import Path
import re
import subprocess
import sys

import numpy as np
import pytest

import fastmc

DATA = Path(__file__).resolve().parents[1] / "data"
SCRIPT = DATA / "make_stdlib.py"
MADE = json.loads((DATA / "stdlib.json").read_text())
FILES = ["stdlib.train.svm.bz2", "stdlib.test.svm.bz2", "stdlib.classes.txt",
         "stdlib.words.txt", "stdlib.json"]


def read_lines(name):
    return (DATA / name).read_text().splitlines()


@pytest.fixture(scope="module")
def parts():
    width = len(read_lines("stdlib.words.txt"))
    return {part: fastmc.load_svmlight(DATA / f"stdlib.{part}.svm.bz2",
                                       n_features=width)
            for part in ("train", "test")}


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("make_stdlib", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def row_keys(X):
    """Each row as bytes that are equal for equal rows alone."""
    X = X.sorted_indices()
    indices, values = X.indices.astype(np.int64), X.data
    return [indices[a:b].tobytes() + values[a:b].tobytes()
            for a, b in zip(X.indptr[:-1], X.indptr[1:])]


# The files in the repository

def test_files_are_small():
    assert sum((DATA / name).stat().st_size for name in FILES[:2]) < 3_000_000


def test_counts(parts):
    sizes = {part: X.shape for part, (X, _) in parts.items()}
    assert sizes == {"train": (9475, 5732), "test": (2358, 5732)}
    assert (MADE["train"], MADE["words"]) == sizes["train"]
    assert (MADE["test"], MADE["words"]) == sizes["test"]
    assert MADE["classes"] == 75


def test_every_class_has_its_documents_on_both_sides(parts):
    labels = {part: Counter(y.tolist()) for part, (_, y) in parts.items()}
    expected = set(range(1, MADE["classes"] + 1))
    assert set(labels["train"]) == set(labels["test"]) == expected
    for label in expected:
        n_train, n_test = labels["train"][label], labels["test"][label]
        assert n_train + n_test >= 40
        assert 0.15 < n_test / (n_train + n_test) < 0.25


def test_class_and_word_lists_are_in_order():
    classes = [line.split("\t") for line in read_lines("stdlib.classes.txt")]
    names = [name for _, name in classes]
    assert [int(label) for label, _ in classes] == list(range(1, 76))
    assert names == sorted(set(names))
    assert {"asyncio", "email", "tkinter"} <= set(names)
    words = read_lines("stdlib.words.txt")
    assert len(words) == MADE["words"] == 5732
    assert words == sorted(set(words))
    assert all(re.fullmatch("[a-z]{2,}", word) for word in words)


@pytest.mark.parametrize("part", ["train", "test"])
def test_rows_have_unit_length(parts, part):
    X, _ = parts[part]
    assert X.data.min() > 0
    lengths = np.sqrt(X.multiply(X).sum(axis=1))
    np.testing.assert_allclose(lengths, 1, rtol=0, atol=1e-3)


def test_words_are_in_three_training_documents_or_more(parts):
    X, _ = parts["train"]
    assert np.bincount(X.indices, minlength=X.shape[1]).min() == 3


def test_no_test_row_is_a_training_row(parts):
    train, test = (set(row_keys(parts[part][0])) for part in ("train", "test"))
    assert not train & test
    # Most rows are distinct, so the keys do tell rows apart.
    assert len(train) > 9300 and len(test) > 2300


@pytest.mark.parametrize("part", ["train", "test"])
def test_rows_are_shuffled(parts, part):
    _, y = parts[part]
    # The share of neighbours with one label is the sum of squared class
    # shares in random order, about 1 / 30 here, and near 1 in sorted order.
    assert np.mean(y[1:] == y[:-1]) < 0.06


def test_readme_states_the_counts():
    text = (DATA / "README.md").read_text(encoding="utf-8")
    for line in ("| classes | {classes} |", "| documents, train | {train} |",
                 "| documents, test | {test} |",
                 "| words (features) | {words} |"):
        assert line.format(**MADE) in text
    assert "CPython " + ".".join(map(str, MADE["version"])) in text


# The script

def test_script_gives_the_same_bytes_again(script, tmp_path):
    here = [sys.implementation.name, list(sys.version_info[:3])]
    made = [MADE["implementation"], MADE["version"]]
    if here != made:
        pytest.skip(f"the files were made with {made}, this is {here}")
    # A fixed seed other than the usual one: no order may come from hashes.
    subprocess.run([sys.executable, str(SCRIPT), "--out", str(tmp_path)],
                   check=True, env={**os.environ, "PYTHONHASHSEED": "7"},
                   stdout=subprocess.DEVNULL)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(FILES)
    again = json.loads((tmp_path / "stdlib.json").read_text())
    if again["sources_sha256"] != MADE["sources_sha256"]:
        pytest.skip("same version of Python, but its library was altered")
    for name in FILES:
        assert (tmp_path / name).read_bytes() == (DATA / name).read_bytes(), name


def test_words_of_a_text(script):
    text = ('def parseHTTPHeader(self, raw_line2, x):  # see me@a-b.example.org\n'
            '    return "\\nEnd"\n')
    assert script.split_words(text) == [
        "def", "parse", "http", "header", "self", "raw", "line", "see",
        "return", "end"]


def test_functions_of_a_source(script):
    source = ("import a\n"
              "class C:\n"
              "    @property\n"
              "    def one(self):\n"
              "        '''Text.\f'''\n"
              "        def inner(): pass\n"
              "        # last words\n"
              "        return inner\n"
              "if a:\n"
              "    async def two(): return 2\n")
    assert list(script.function_sources(source)) == [
        "\n".join(source.split("\n")[2:8]),
        "    async def two(): return 2"]


def test_library_files_and_copies(script, tmp_path):
    body = "def f(alpha, beta):\n    return gamma(delta(beta, alpha), eps, zeta)\n"
    same_words = body.replace("beta, alpha)", "alpha, beta)", 1)
    assert sorted(script.split_words(body)) == sorted(
        script.split_words(same_words))
    for name, source in [("json/tests/a.py", body), ("notlibrary.py", body),
                         ("site-packages/b.py", body),
                         ("zipfile.py", same_words), ("json/c.py", body),
                         ("csv.py", "def f(): return 1\n"),
                         ("os.py", body.replace("gamma", "other"))]:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)
    names = [name for name, _ in script.library_files(tmp_path)]
    assert names == ["csv", "json", "os", "zipfile"]
    documents, _ = script.read_documents(tmp_path)
    assert [name for name, _ in documents] == ["json", "os"]


def test_split_is_a_fifth_of_each_large_class(script):
    documents = [(name, [name, "word", chr(97 + i // 26), chr(97 + i % 26)])
                 for name, n in (("big", 100), ("least", 40), ("small", 39))
                 for i in range(n)]
    train, test = script.split_documents(documents)
    assert Counter(name for name, _ in train) == {"big": 80, "least": 32}
    assert Counter(name for name, _ in test) == {"big": 20, "least": 8}
    # The order documents come in does not matter.
    assert script.split_documents(documents[::-1]) == (train, test)


def test_weights(script):
    train = [("a", ["x", "y"]), ("a", ["x"]), ("b", ["x", "y", "y", "z"]),
             ("b", ["y", "z"])]
    idf = script.inverse_frequencies(train)
    # x and y are each in 3 of 4 documents, z is too rare.
    assert idf == pytest.approx({"x": 1 + np.log(5 / 4), "y": 1 + np.log(5 / 4)})
    weights = script.weigh(["y", "y", "x", "z"], idf)
    tf = 1 + np.log(2)
    assert weights == pytest.approx({"x": 1 / np.hypot(1, tf),
                                     "y": tf / np.hypot(1, tf)})
    assert script.make_rows([("a", ["y", "z"])], idf) == [("a", "2:1")]
