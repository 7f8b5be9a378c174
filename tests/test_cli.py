"""The command line: output, messages, exit codes and files."""
import bz2
import csv
import gzip
import json
import lzma
import os
import re
import signal
import subprocess
import sys
import types
import warnings
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import fastmc
import fastmc.__main__
from fastmc import _folds, _progress, _scoring, cli
from fastmc._folds import stratified_folds
from fastmc._model import Model

# Child processes run the package that is tested, wherever they start.
ROOT = str(Path(fastmc.__file__).resolve().parents[1])
ENV = os.environ | {"PYTHONPATH": os.pathsep.join([ROOT, os.environ.get("PYTHONPATH", "")])}

TINY = "1 1:1\n2 1:-1\n"
THREE = "1 1:1 2:0.5\n2 1:-1 3:1\n3 2:-1 3:-1\n1 1:2\n2 3:2\n3 2:-2\n"


class Result:
    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Run a command line in tmp_path, in this process."""
    monkeypatch.chdir(tmp_path)

    def run(*words):
        capsys.readouterr()
        code = cli.main([str(word) for word in words])
        return Result(code, *capsys.readouterr())

    return run


def process(folder, *words):
    """Run a command line in a process of its own."""
    return subprocess.run([sys.executable, "-m", "fastmc", *words], cwd=folder, timeout=60,
                          capture_output=True, text=True, env=ENV)


def write(folder, **files):
    for name, text in files.items():
        (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())


def write_problem(path, n_classes=4, n_samples=80, n_features=15, seed=0):
    rng = np.random.default_rng(seed)
    X = sp.random_array((n_samples, n_features), density=0.5, random_state=rng, format="csr")
    scores = X @ rng.normal(size=(n_features, n_classes))
    y = 1 + np.argmax(scores + rng.normal(scale=0.3, size=scores.shape), axis=1)
    y[:n_classes] = 1 + np.arange(n_classes)
    fastmc.dump_svmlight(X, y, path)
    return fastmc.load_svmlight(path)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


# Usage

def test_usage_and_version(tmp_path):
    usage = process(tmp_path, "--help")
    assert usage.returncode == 0 and usage.stderr == ""
    assert usage.stdout.startswith("usage: python -m fastmc train ")
    script = subprocess.run([sys.executable, "-c", "import sys; from fastmc.cli import main; "
                             "sys.argv[0] = 'bin/fastmc.exe'; sys.exit(main())", "--help"], capture_output=True, text=True, env=ENV)
    assert script.stdout == usage.stdout.replace("python -m fastmc", "fastmc")
    alone = process(tmp_path)
    assert alone.returncode == 2 and alone.stdout == ""
    assert "usage:" in alone.stderr and "a command is missing" in alone.stderr
    version = process(tmp_path, "--version")
    assert (version.returncode, version.stdout) == (0, f"fastmc {fastmc.__version__}\n")


@pytest.mark.parametrize("command, option", [("train", "--max-passes"), ("predict", "-k"),
                                             ("path", "--lam-min"), ("info", "--json")])
def test_help_fits_a_screen(run, monkeypatch, command, option):
    monkeypatch.setenv("COLUMNS", "80")
    result = run(command, "--help")
    assert result.code == 0 and option in result.out
    assert len(result.out.splitlines()) <= 45
    assert max(map(len, result.out.splitlines())) <= 100


COMMON = ["-c", "-B", "-wi", "-q", "--loss", "-k", "--rho", "--cost", "--no-own-class",
          "--smoothing", "--solver", "--sampling", "--gap-refresh", "--cache-size", "--cache-f",
          "--cache-nu", "--max-passes", "--max-time", "--plot", "--json", "--seed"]


@pytest.mark.parametrize("command, options", [
    ("train", [*COMMON, "--lam", "-e", "-v", "-C", "-m", "--averaging", "--trace", "--validation"]),
    ("path", [*COMMON, "--eps", "--lam-min", "-m", "--validation"]),
    ("predict", ["-k", "-q", "--scores", "--plot", "--json"]),
    ("info", ["--names", "-n", "--json"])])
def test_help_names_every_option(run, command, options):
    text = run(command, "--help").out
    assert [option for option in options if not re.search(rf"\n  {option}[ ,]", text)] == []
    assert ("stdfw" in text) == (command == "train")


@pytest.mark.parametrize("words, message", [
    (["trian", "t"], "command 'trian' is unknown"),
    (["train"], "training_file"),
    (["train", "t", "m", "x"], "unrecognized arguments: x"),
    (["train", "--los", "topk", "t"], "unrecognized arguments: --los"),
    (["train", "-s", "4", "t"], "-s 4: choose with --loss; LIBLINEAR's -s 4 is maxhinge, the default"),
    (["train", "-C", "--lam", "1", "t"], "give -C or --lam 1.0, not both"),
    (["train", "-C", "--solver", "pg", "t"], "-C: --solver pg cannot follow a path"),
    (["train", "-C", "-v", "1", "t"], "-v 1 must be at least 2"),
    (["train", "-C", "-c", "0", "t"], "-c 0.0 must be a finite number"),
    (["train", "-C", "--plot", "x.png", "--validation", "v", "t"],
     "--plot and --validation: -C trains a model only if model_file is given"),
    (["train", "-m", "-1", "t"], "-m -1 must be at least 0"),
    (["train", "-c", "0", "t"], "-c 0.0 must be a finite number"),
    (["train", "-c", "-1", "t"], "-c -1.0 must be"),
    (["train", "-c", "nan", "t"], "-c nan must be"),
    (["train", "-c", "inf", "t"], "-c inf must be"),
    (["train", "-c", "1e308", "t"], "-c 1e+308 must be"),
    (["train", "-c", "x", "t"], "invalid float value: 'x'"),
    (["train", "-c"], "expected one argument"),
    (["train", "-c", "1", "--lam", "1", "t"], "not both"),
    (["train", "--lam", "0", "t"], "--lam 0.0 must be"),
    (["train", "-e", "-1", "t"], "-e -1.0 must be"),
    (["train", "-e", "nan", "t"], "-e nan must be"),
    (["train", "-B", "0", "t"], "-B 0: a constant feature of value 0 changes nothing"),
    (["train", "-B", "nan", "t"], "-B is nan"),
    (["train", "-B", "inf", "t"], "-B is inf"),
    (["train", "-v", "1", "t"], "-v 1 must be at least 2"),
    (["train", "-v", "x", "t"], "invalid int value"),
    (["train", "-v", "2", "--trace", "x.csv", "t"], "--trace: not for cross-validation"),
    (["train", "-v", "2", "--validation", "v", "t"], "--validation: not for cross-validation"),
    (["train", "--loss", "foo", "t"], "--loss foo is unknown; valid losses: maxhinge, structured"),
    (["train", "-k", "2", "t"], "--loss maxhinge takes no -k (got -k 2)"),
    (["train", "-k", "0", "--loss", "topk", "t"], "-k 0 must be a whole number of at least 1"),
    (["train", "-k", "1.5", "--loss", "topk", "t"], "invalid int value"),
    (["train", "--loss", "wtopk", "t"], "needs --rho"),
    (["train", "--rho", "1,2", "--loss", "wtopk", "t"], "non-increasing"),
    (["train", "--rho", "1,x", "--loss", "wtopk", "t"], "--rho: '1,x' must be numbers"),
    (["train", "--rho", "1", "t"], "takes no --rho"),
    (["train", "--no-own-class", "t"], "--no-own-class is for topk and wtopk"),
    (["train", "--loss", "structured", "t"], "needs --cost"),
    (["train", "--solver", "foo", "t"], "--solver foo is unknown"),
    (["train", "--sampling", "foo", "t"], "--sampling foo is unknown"),
    (["train", "--smoothing", "-1", "t"], "--smoothing -1.0 must be"),
    (["train", "--averaging", "t"], "--averaging is for bcfw, pairwise, away"),
    (["train", "--cache-size", "5", "t"], "--cache-size 5 is for bcfw, pairwise, away"),
    (["train", "--cache-size", "-1", "t"], "--cache-size -1 must be a whole number"),
    (["train", "--gap-refresh", "-1", "t"], "--gap-refresh -1 must be"),
    (["train", "--gap-refresh", "1.5", "t"], "invalid int value: '1.5'"),
    (["train", "--cache-f", "-1", "t"], "--cache-f -1.0 must be"),
    (["train", "--cache-nu", "nan", "t"], "--cache-nu nan must be"),
    (["train", "--max-passes", "0", "t"], "--max-passes 0 must be"),
    (["train", "--max-time", "0", "t"], "--max-time 0.0 must be"),
    (["train", "--seed", "-1", "t"], "--seed -1 must be at least 0"),
    (["train", "--plot", "x.foo", "t"], "--plot: x.foo: the name of a picture must end in one of .eps"),
    (["train", "-w1"], "-w1 needs a weight, a finite number of at least 0, not nothing"),
    (["train", "-w1", "x", "t"], "-w1 needs a weight"),
    (["train", "-w1", "-2", "t"], "-w1 needs a weight"),
    (["train", "-w1", "nan", "t"], "-w1 needs a weight"),
    (["train", "-w", "2", "t"], "the label of a class must follow -w"),
    (["train", "-wnan", "2", "t"], "the label of a class must follow -w"),
    (["train", "-wi", "2", "t"], "the label of a class must follow -w"),
    (["predict", "t", "m"], "output_file"),
    (["predict", "-b", "1", "t", "m", "o"], "these models give no probabilities"),
    (["predict", "-k", "0", "t", "m", "o"], "-k 0 must be at least 1"),
    (["predict", "-k", "x", "t", "m", "o"], "invalid int value"),
    (["predict", "-m", "-1", "t", "m", "o"], "-m -1 must be a whole number of at least 0"),
    (["predict", "--plot", "x", "t", "m", "o"], "--plot: x: the name of a picture must end in one of"),
    (["path", "t"], "output_file"),
    (["path", "t", "o", "x"], "unrecognized arguments: x"),
    (["path", "--lam", "1", "t", "o"], "unrecognized arguments: --lam"),
    (["path", "--averaging", "t", "o"], "unrecognized arguments: --averaging"),
    (["path", "-e", "1", "t", "o"], "unrecognized arguments: -e"),
    (["path", "-c", "1", "--lam-min", "0.1", "t", "o"], "give -c 1 or --lam-min 0.1, not both"),
    (["path", "-c", "0", "t", "o"], "-c 0.0 must be a finite number"),
    (["path", "-m", "-1", "t", "o"], "-m -1 must be a whole number of at least 0"),
    (["path", "--lam-min", "0", "t", "o"], "--lam-min 0.0 must be a finite number above 0"),
    (["path", "--lam-min", "nan", "t", "o"], "--lam-min nan must be"),
    (["path", "--eps", "0", "t", "o"], "--eps 0.0 must be a finite number at least 1e-12"),
    (["path", "--eps", "1", "t", "o"], "--eps 1.0 must be"),
    (["path", "--eps", "x", "t", "o"], "invalid float value: 'x'"),
    (["path", "--solver", "pg", "t", "o"], "--solver pg cannot follow a path"),
    (["path", "--solver", "stdfw", "t", "o"], "--solver stdfw cannot follow a path"),
    (["path", "--solver", "foo", "t", "o"], "--solver foo is unknown"),
    (["path", "--solver", "fw", "--sampling", "gap", "t", "o"], "--sampling gap is for block"),
    (["path", "--loss", "structured", "t", "o"], "needs --cost"),
    (["path", "-k", "2", "t", "o"], "--loss maxhinge takes no -k"),
    (["path", "-B", "0", "t", "o"], "-B 0: a constant feature of value 0 changes nothing"),
    (["path", "-w1", "x", "t", "o"], "-w1 needs a weight"),
    (["path", "--seed", "-1", "t", "o"], "--seed -1 must be at least 0"),
    (["path", "--max-passes", "0", "t", "o"], "--max-passes 0 must be"),
    (["path", "--max-time", "-1", "t", "o"], "--max-time -1.0 must be"),
    (["path", "--plot", "x", "t", "o"], "--plot: x: the name of a picture must end in one of"),
    (["info"], "model_file"),
    (["info", "m", "x"], "unrecognized arguments: x"),
    (["info", "--top", "0", "m"], "--top 0 must be at least 1"),
    (["info", "-n", "x", "m"], "invalid int value"),
])
def test_wrong_command_lines(run, tmp_path, words, message):
    """Exit 2 before any file is looked at: none of them exists."""
    result = run(*words)
    assert result.code == 2 and result.out == ""
    assert message in result.err and "usage:" in result.err and "Traceback" not in result.err
    assert names(tmp_path) == []


def test_predict_with_two_words(tmp_path):
    result = process(tmp_path, "predict", "t", "m")
    assert result.returncode == 2 and result.stdout == ""
    assert result.stderr.startswith("usage: python -m fastmc predict [options] test_file model")


def test_plot_without_matplotlib(run, tmp_path, monkeypatch):
    write(tmp_path, t=TINY)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    result = run("train", "--plot", "x.png", "t")
    assert result.code == 2 and "--plot: a picture needs matplotlib: pip install" in result.err
    assert names(tmp_path) == ["t"]


# train

def test_train_reports_and_writes_the_python_model(tmp_path):
    X, y = write_problem(tmp_path / "data.svm")
    result = process(tmp_path, "train", "data.svm")
    assert result.returncode == 0 and result.stderr == ""
    model = fastmc.train(X, y)
    lines = result.stdout.splitlines()
    assert lines[0].startswith(f"n = 80, d = 15, m = 4, nnz = {X.nnz}, loaded in ")
    assert lines[1].startswith(f"passes = {model.n_passes} (converged), trained in ")
    certificate = model.certificate
    assert lines[2:] == [f"primal = {certificate.primal:.9g}, dual = {certificate.dual:.9g}, "
                         f"relative gap = {certificate.relative_gap:.3g}",
                         "model = data.svm.model"]
    assert names(tmp_path) == ["data.svm", "data.svm.model"]
    assert (fastmc.load_model(tmp_path / "data.svm.model").weights == model.weights).all()


def test_default_name_is_in_the_current_folder(run, tmp_path):
    (tmp_path / "sub").mkdir()
    write(tmp_path / "sub", t=TINY)
    assert run("train", "-q", "sub/t").code == 0
    assert names(tmp_path) == ["sub", "t.model"] and names(tmp_path / "sub") == ["t"]


@pytest.mark.parametrize("words, options", [
    (["-c", "3"], {"C": 3.0}),
    (["-c3"], {"C": 3.0}),
    (["--lam", "0.01"], {"lam": 0.01}),
    (["-e", "1e-6"], {"tol": 1e-6}),
    (["-B", "2"], {"bias": 2.0}),
    (["-B", "-1"], {}),
    (["-B", "-0.5"], {}),
    (["-w1", "2", "-w+2", "0.5", "-w3", "0"], {"class_weight": {1: 2.0, 2: 0.5, 3: 0.0}}),
    (["-w1.0", "2"], {"class_weight": {1: 2.0}}),
    (["--loss", "crammer_singer"], {}),
    (["--loss", "topk", "-k", "2"], {"loss": "topk", "k": 2}),
    (["--loss", "topk", "-k", "3", "--no-own-class"],
     {"loss": "topk", "k": 3, "own_class": False}),
    (["--loss", "usunier", "-k", "2"], {"loss": "usunier", "k": 2}),
    (["--loss", "wtopk", "--rho", "3,1"], {"loss": "wtopk", "rho": [3, 1]}),
    (["--loss", "wusunier", "--rho", "2,1,0.5,0"], {"loss": "wusunier", "rho": [2, 1, 0.5]}),
    (["--solver", "bcfw", "--sampling", "uniform", "-e", "0.1"],
     {"solver": "bcfw", "sampling": "uniform", "tol": 0.1}),
    (["--solver", "bcfw", "--averaging", "-e", "0.1"],
     {"solver": "bcfw", "averaging": True, "tol": 0.1}),
    (["--sampling", "gap", "--gap-refresh", "3"], {"sampling": "gap", "gap_refresh": 3}),
    (["--solver", "pairwise", "--cache-size", "4", "--cache-f", "0.5", "--cache-nu", "0.1"],
     {"solver": "pairwise", "cache_size": 4, "cache_f": 0.5, "cache_nu": 0.1}),
    (["--seed", "5"], {"random_state": 5}),
    (["--smoothing", "0.5"], {"smoothing": 0.5}),
    (["-e", "0", "--max-passes", "7"], {"tol": 0, "max_passes": 7}),
    (["-m", "1"], {}),
])
def test_options_mean_what_they_mean_in_python(run, tmp_path, words, options):
    X, y = write_problem(tmp_path / "t")
    result = run("train", "-q", *words, "t", "m.npz")
    assert (result.code, result.out, result.err) == (0, "", "")
    model, expected = fastmc.load_model(tmp_path / "m.npz"), fastmc.train(X, y, **options)
    assert (model.weights == expected.weights).all()
    assert (model.spec, model.lam, model.bias, model.n_passes, model.smoothing) == (
        expected.spec, expected.lam, expected.bias, expected.n_passes, expected.smoothing)


def test_class_weight_of_negative_labels(run, tmp_path):
    write(tmp_path, t="+1 1:1\n-1 1:-1\n-1 1:2\n")
    X, y = fastmc.load_svmlight(tmp_path / "t")
    assert run("train", "-q", "-w-1", "3", "-w+1", "0.5", "t").code == 0
    expected = fastmc.train(X, y, class_weight={-1: 3, 1: 0.5})
    assert (fastmc.load_model(tmp_path / "t.model").weights == expected.weights).all()


def test_json(run, tmp_path):
    X, y = write_problem(tmp_path / "t")
    result = run("train", "--json", "-q", "--loss", "topk", "-k", "2", "t", "m.npz")
    facts = json.loads(result.out)
    model = fastmc.train(X, y, "topk", k=2)
    assert result.code == 0 and result.err == ""
    assert {key: facts[key] for key in ("n_samples", "n_features", "n_classes", "nnz", "n_passes",
                                        "status", "model_file", "loss", "rho")} == {
        "n_samples": 80, "n_features": 15, "n_classes": 4, "nnz": X.nnz,
        "n_passes": model.n_passes, "status": "converged", "model_file": "m.npz", "loss": "topk",
        "rho": [0.5, 0.5]}
    assert {key: facts[key] for key in model.certificate._fields} == model.certificate._asdict()
    assert facts["load_seconds"] > 0 and facts["train_seconds"] > 0


def test_not_converged_is_a_warning_and_success(tmp_path):
    X, y = write_problem(tmp_path / "t")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = fastmc.train(X, y, C=100.0, max_passes=2)
    result = process(tmp_path, "train", "-c", "100", "--max-passes", "2", "t")
    assert result.returncode == 0 and "(max_passes)" in result.stdout
    told = str(caught[0].message)
    for argument, option in (("tol=0.001", "-e 0.001"), ("raise max_passes", "raise --max-passes"),
                             ("raise tol", "raise -e"), ("lower C=100", "lower -c 100")):
        assert argument in told
        told = told.replace(argument, option)
    assert result.stderr == f"WARNING: {told}\n"
    assert f"{model.certificate.relative_gap:.3g}" in result.stderr
    assert names(tmp_path) == ["t", "t.model"]


def test_weight_of_a_class_that_is_not_there(run, tmp_path):
    write(tmp_path, t=THREE)
    assert run("train", "-q", "t", "a").err == ""
    result = run("train", "-w7", "2", "t", "b")
    assert result.code == 0
    assert result.err == "WARNING: class_weight: there is no class 7 in the data\n"
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_trace_and_plot(run, tmp_path):
    write_problem(tmp_path / "t")
    result = run("train", "--trace", "t.csv", "--plot", "t.png", "t")
    assert result.code == 0
    assert result.out.splitlines()[-2:] == ["trace = t.csv", "plot = t.png"]
    with open(tmp_path / "t.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["passes", "oracle_calls", "cache_hits", "primal", "dual", "gap",
                             "seconds"]
    assert [int(row["passes"]) for row in rows] == list(range(1, len(rows) + 1))
    gaps = [float(row["gap"]) for row in rows]
    assert gaps == sorted(gaps, reverse=True) and 0 <= gaps[-1] <= 1e-3 * float(rows[-1]["primal"])
    assert (tmp_path / "t.png").read_bytes().startswith(b"\x89PNG")
    assert names(tmp_path) == ["t", "t.csv", "t.model", "t.png"]


def test_cost_file(run, tmp_path):
    write(tmp_path, t=THREE, cost="0 1 2.5\r\n1e0 0 3\n2\t1 0\n\n")
    X, y = fastmc.load_svmlight(tmp_path / "t")
    assert run("train", "-q", "--loss", "structured", "--cost", "cost", "t").code == 0
    expected = fastmc.train(X, y, "structured", cost=[[0, 1, 2.5], [1, 0, 3], [2, 1, 0]])
    assert (fastmc.load_model(tmp_path / "t.model").weights == expected.weights).all()


@pytest.mark.parametrize("cost, message", [
    ("0 1\n1 0\n", "cost: 2 rows, but the training data has 3 classes"),
    ("0 1 1\n1 0\n1 1 0\n", "cost, line 2: 2 numbers in one of 3 rows"),
    ("0 1 1\n1 0 x\n1 1 0\n", "cost, line 2: 'x' is not a finite number"),
    ("0 1 1\n1 0 nan\n1 1 0\n", "cost, line 2: 'nan' is not a finite number"),
    ("0 1 1\n1 0 1\n1 -1 0\n", "cost, line 3: '-1' is not a finite number of at least 0"),
    ("0 1 1\n1 4 1\n1 1 0\n", "cost, line 2: '4' stands on the diagonal"),
    ("", "cost, line 1: 0 numbers"),
    (b"0 1 1\n1 0 \xff\n1 1 0\n", r"cost, line 2: '\xff' is not"),
])
def test_bad_cost_file(run, tmp_path, cost, message):
    write(tmp_path, t=THREE, cost=cost)
    one_line_error(run("train", "--cost", "cost", "t"), message)
    assert names(tmp_path) == ["cost", "t"]


def one_line_error(result, message):
    assert result.code == 1 and result.out == ""
    assert result.err.startswith("ERROR: ") and message in result.err
    assert result.err.count("\n") == 1 and "Traceback" not in result.err


# Bad data and files that cannot be had

@pytest.mark.parametrize("data, message", [
    ("1 0:1 2:1\n2 1:-1\n", "t, line 1: "),
    ("1 1:1\n" * 10 + "1 7:1 3:1\n", "t, line 11: "),
    ("cat 1:1\ndog 1:-1\n", "cat"),
    ("nan 1:1\n2 1:-1\n", "t, line 1: "),
    ("1 1:1\n2 1:inf\n", "t, line 2: "),
    ("1 1:1\n\n2 1:-1\n", "t, line 2: "),
    ("1 1:1\n1 1:-1\n", "t: y has one class only (1); at least two are needed"),
    ("1\n2\n", "t: X is empty"),
    ("", "t: no rows"),
    ("3000000000 1:1\n2 1:-1\n", "t: label 3000000000 is not a whole number of 32 bits"),
    ("1.2 1:1\n1.8 1:-1\n", "t: label 1.2 is not a whole number of 32 bits"),
])
def test_bad_training_data(run, tmp_path, data, message):
    write(tmp_path, t=data)
    one_line_error(run("train", "t"), message)
    assert names(tmp_path) == ["t"]


def test_labels_are_refused_before_training(run, tmp_path, monkeypatch):
    write(tmp_path, t="3000000000 1:1\n2 1:-1\n")
    with monkeypatch.context() as patch:
        patch.setattr(cli, "fit", None)
        one_line_error(run("train", "t", "x.model"), "name the model 'x.npz' to keep any label")
    assert run("train", "-q", "t", "x.npz").code == 0
    assert fastmc.load_model(tmp_path / "x.npz").classes_.tolist() == [2, 3000000000]


def test_one_line_in_a_process(tmp_path):
    write(tmp_path, t="1 1:1\n2 x:1\n")
    result = process(tmp_path, "train", "t")
    assert result.returncode == 1 and result.stdout == ""
    assert result.stderr.startswith("ERROR: t, line 2: ") and result.stderr.count("\n") == 1


@pytest.mark.parametrize("words, message", [
    (["train", "none"], "none: No such file or directory"),
    (["train", "folder"], "folder: Is a directory"),
    (["train", "t", "folder"], "folder: Is a directory"),
    (["train", "t", "none/m"], "none/m: No such file or directory"),
    (["train", "t", "t/m"], "t/m: Not a directory"),
    (["train", "--trace", "none/x", "t"], "none/x: No such file or directory"),
    (["train", "--plot", "none/x.png", "t"], "none/x.png: No such file or directory"),
    (["train", "--cost", "none", "t"], "none: No such file or directory"),
    (["predict", "none", "m", "o"], "none: No such file or directory"),
    (["predict", "t", "none", "o"], "none: No such file or directory"),
    (["predict", "t", "m", "none/o"], "none/o: No such file or directory"),
    (["predict", "t", "m", "folder"], "folder: Is a directory"),
    (["predict", "t", "t", "o"], "t, line 1: "),
    (["predict", "m", "m", "o"], "m, line 1: "),
    (["path", "none", "o"], "none: No such file or directory"),
    (["path", "t", "folder"], "folder: Is a directory"),
    (["path", "t", "none/o"], "none/o: No such file or directory"),
    (["path", "--plot", "none/x.png", "t", "o"], "none/x.png: No such file or directory"),
    (["path", "--validation", "none", "t", "o"], "none: No such file or directory"),
    (["path", "--validation", "m", "t", "o"], "m, line 1: "),
    (["info", "t"], "t, line 1: '1' is no part of a model's header"),
    (["info", "none"], "none: No such file or directory"),
])
def test_files_that_cannot_be_had(run, tmp_path, monkeypatch, words, message):
    (tmp_path / "folder").mkdir()
    write(tmp_path, t=TINY)
    assert run("train", "-q", "t", "m").code == 0
    with monkeypatch.context() as patch:
        patch.setattr(cli, "fit", None)  # outputs are checked before training
        one_line_error(run(*words), message)
    assert names(tmp_path) == ["folder", "m", "t"]


@pytest.mark.parametrize("words", [
    ["train", "t", "t"], ["train", "t", "./t"], ["train", "--trace", "m", "t", "m"],
    ["train", "--cost", "c", "t", "c"], ["predict", "t", "m", "t"], ["predict", "t", "m", "m"],
    ["path", "t", "t"], ["path", "--validation", "c", "t", "c"],
    ["path", "--plot", "x.png", "t", "x.png"]])
def test_outputs_never_replace_inputs(run, tmp_path, words):
    write(tmp_path, t=TINY, c="0 1\n1 0\n")
    result = run(*words)
    assert result.code == 2 and "would be written over another file of this command" in result.err
    assert (tmp_path / "t").read_text() == TINY and names(tmp_path) == ["c", "t"]


@pytest.mark.parametrize("words, message", [
    (["--loss", "topk", "-k", "3"], "-k 3 must be at most n_classes - 1 = 2"),
    (["--loss", "wtopk", "--rho", "3,2,1"], "--rho has 3 positive weights"),
    (["-v", "7"], "-v 7: there are 6 samples only"),
    (["--lam", "1e-300"], "--lam 1e-300 must be a finite number above"),
    (["-v", "6", "--loss", "usunier", "-k", "3"], "-k 3 must be at most"),
])
def test_options_that_do_not_fit_the_data(run, tmp_path, words, message):
    write(tmp_path, t=THREE)
    result = run("train", *words, "t")
    assert result.code == 2 and message in result.err and result.out == ""
    assert names(tmp_path) == ["t"]


@pytest.mark.parametrize("words, message", [
    (["--loss", "topk", "-k", "3"], "-k 3 must be at most n_classes - 1 = 2"),
    (["--lam-min", "1e-300"], "--lam-min 1e-300 must be a finite number above"),
])
def test_path_options_that_do_not_fit_the_data(run, tmp_path, words, message):
    write(tmp_path, t=THREE)
    result = run("path", *words, "t", "o")
    assert result.code == 2 and message in result.err and result.out == ""
    assert names(tmp_path) == ["t"]


def test_devices_are_written_to_not_replaced(tmp_path):
    """A pipe stays a pipe; what goes through it is the whole output."""
    write(tmp_path, t=TINY)
    assert process(tmp_path, "train", "-q", "t").returncode == 0
    os.mkfifo(tmp_path / "pipe")
    reader = subprocess.Popen(["cat", "pipe"], cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    with reader:
        assert process(tmp_path, "predict", "-q", "t", "t.model", "pipe").returncode == 0
        assert reader.communicate(timeout=20)[0] == "1\n2\n"
    for words in (["t", "pipe"], ["--trace", "pipe", "t", "m"]):
        result = process(tmp_path, "train", *words)
        assert (result.returncode, result.stderr) == (1, "ERROR: pipe: not a regular file\n")
    assert (tmp_path / "pipe").is_fifo()


def test_closed_output_is_no_traceback(tmp_path):
    write(tmp_path, t=TINY)
    read, write_end = os.pipe()
    os.close(read)
    result = subprocess.run([sys.executable, "-m", "fastmc", "train", "t"], cwd=tmp_path,
                            text=True, stdout=write_end, stderr=subprocess.PIPE, timeout=60,
                            env=ENV)
    os.close(write_end)
    assert result.returncode == 1 and result.stderr == ""


# Ctrl-C

@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT")
@pytest.mark.parametrize("extra", [[], ["-v", "2"], ["-C", "-v", "2"]])
def test_interrupt(tmp_path, extra):
    write_problem(tmp_path / "t", n_samples=2000)
    # The warning about class 99 tells that training begins.
    words = ["-w99", "1", "-e", "0", "--max-passes", "100000000", *extra, "t", "m.npz"]
    child = subprocess.Popen([sys.executable, "-m", "fastmc", "train", *words], cwd=tmp_path, env=ENV,
                             text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    with child:
        try:
            assert child.stderr.readline().startswith("WARNING: class_weight")
            child.send_signal(signal.SIGINT)
            out, err = child.communicate(timeout=5)
        finally:
            child.kill()
    assert (child.returncode, out, err) == (130, "", "interrupted\n")
    assert names(tmp_path) == ["t"]


@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT")
def test_interrupt_while_python_imports(tmp_path):
    (tmp_path / "numpy.py").write_text(
        "import sys, time\nprint('importing', file=sys.stderr, flush=True)\ntime.sleep(60)\n")
    environment = ENV | {"PYTHONPATH": os.pathsep.join([str(tmp_path), ROOT])}
    child = subprocess.Popen([sys.executable, "-m", "fastmc", "info", "none"], cwd=tmp_path, env=environment,
                             text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    with child:
        try:
            assert child.stderr.readline() == "importing\n"
            child.send_signal(signal.SIGINT)
            out, err = child.communicate(timeout=5)
        finally:
            child.kill()
    assert (child.returncode, out, err) == (130, "", "interrupted\n")


def test_console_script(monkeypatch, capsys):
    assert 'fastmc = "fastmc.__main__:main"' in (Path(__file__).parents[1] / "pyproject.toml").read_text()
    handler = signal.getsignal(signal.SIGINT)
    monkeypatch.setattr(sys, "argv", ["fastmc", "--version"])
    assert fastmc.__main__.main() == 0
    assert capsys.readouterr().out == f"fastmc {fastmc.__version__}\n"
    assert signal.getsignal(signal.SIGINT) is handler


def test_interrupt_while_writing_leaves_nothing(run, tmp_path, monkeypatch):
    write(tmp_path, t=TINY)
    assert run("train", "-q", "t").code == 0

    def interrupted(label):
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "label_text", interrupted)
    result = run("predict", "t", "t.model", "o")
    assert (result.code, result.err) == (130, "interrupted\n")
    assert names(tmp_path) == ["t", "t.model"]


# Cross-validation

def test_folds_are_balanced_and_seeded():
    y = np.repeat([1, 2, 3, 4], [50, 23, 9, 1])
    fold = stratified_folds(y, 5, np.random.default_rng(0))
    counts = np.array([np.bincount(fold[y == label], minlength=5) for label in (1, 2, 3, 4)])
    assert counts.sum(axis=1).tolist() == [50, 23, 9, 1]
    assert np.ptp(counts, axis=1).max() <= 1 and np.ptp(counts.sum(axis=0)) <= 1
    assert (fold == stratified_folds(y, 5, np.random.default_rng(0))).all()
    assert (fold != stratified_folds(y, 5, np.random.default_rng(1))).any()


def test_cross_validation(run, tmp_path):
    X, y = write_problem(tmp_path / "t")
    fold = stratified_folds(y, 4, np.random.default_rng(3))
    best, top = 0, 0
    for held_out in range(4):
        rows, test = np.flatnonzero(fold != held_out), np.flatnonzero(fold == held_out)
        model = fastmc.train(X[rows], y[rows], "topk", k=3, C=0.5, random_state=3)
        best += round(model.score(X[test], y[test]) * len(test))
        top += round((1 - model.topk_error(X[test], y[test], 3)) * len(test))
    words = ["train", "-v", "4", "--seed", "3", "-c", "0.5", "--loss", "topk", "-k", "3", "t"]
    result = run(*words)
    assert result.code == 0 and result.err == ""
    lines = result.out.splitlines()
    assert lines[0] == f"Cross Validation Accuracy = {100 * best / 80:g}%"
    assert lines[-1] == f"Cross Validation Top-3 accuracy = {100 * top / 80:g}%"
    assert run(*words).out == result.out
    facts = json.loads(run(*words, "--json").out)
    assert facts["accuracy"] == best / 80 and facts["topk_accuracy"]["3"] == top / 80
    assert names(tmp_path) == ["t"]


def test_class_that_a_fold_lacks_counts_as_wrong(run, tmp_path):
    rows = ["1 1:1", "2 2:1"] * 4 + ["1 1:2"]
    write(tmp_path, three="\n".join(rows + ["3 3:1"]) + "\n", two="\n".join(rows[::2] * 2))
    result = run("train", "-v", "5", "-w3", "2", "three")
    assert (result.code, result.out, result.err) == (0, "Cross Validation Accuracy = 90%\n", "")
    # The rows left without the only sample of class 2 have one class.
    write(tmp_path, two="\n".join(["1 1:1"] * 9 + ["2 2:1"]) + "\n")
    assert run("train", "-v", "5", "two").out == "Cross Validation Accuracy = 90%\n"
    result = run("train", "-v", "5", "--loss", "topk", "-k", "2", "three")
    assert result.code == 2 and "-v 5: without fold " in result.err
    assert "-k 2 must be at most n_classes - 1 = 1" in result.err


def test_cross_validation_with_costs_of_absent_classes(run, tmp_path):
    rows = ["1 1:1", "2 2:1"] * 4 + ["1 1:2", "3 3:1"]
    write(tmp_path, t="\n".join(rows) + "\n", c="0 1 1\n1 0 1\n1 1 0\n")
    result = run("train", "-v", "5", "--cost", "c", "--loss", "structured", "-w7", "2", "t")
    assert (result.code, result.out) == (0, "Cross Validation Accuracy = 90%\n")
    assert result.err == "WARNING: class_weight: there is no class 7 in the data\n"


def test_cross_validation_takes_any_label(run, tmp_path):
    write(tmp_path, t="1.5 1:1\n3000000000 1:-1\n" * 4)
    assert run("train", "-v", "2", "t").out == "Cross Validation Accuracy = 100%\n"


def test_leave_one_out(run, tmp_path):
    write(tmp_path, t=THREE)
    assert run("train", "-v", "6", "t").code == 0


# Progress

def test_progress_of_what_takes_long(run, tmp_path, monkeypatch):
    write_problem(tmp_path / "t")
    words = (["train", "t", "m"], ["train", "-v", "2", "t"], ["train", "-C", "t"], ["path", "t", "p"],
             ["predict", "t", "m", "o"], ["boost", "--rounds", "2", "t"])
    monkeypatch.setattr(cli, "verbosity", lambda args: int(not args.quiet))
    plain = [run(*w).out.splitlines()[-1] for w in words if w[1] != "-C"]
    assert [run(*w).err for w in words] == [""] * 6  # none of it takes two seconds
    monkeypatch.setattr(_progress, "DELAY", 0.0)
    for tqdm in (True, False):
        if tqdm:
            pytest.importorskip("tqdm")
        else:
            monkeypatch.setitem(sys.modules, "tqdm", None)
        results = [run(*w) for w in words]
        units = ("pass", "pass fold", "pass fold", "pass", "row", "round")
        for result, steps in zip(results, map(str.split, units)):
            assert result.code == 0 and "reading t: " in result.err
            assert [step for step in steps if step not in result.err.split("reading t: ")[-1]] == []
        assert [r.out.splitlines()[-1] for r, w in zip(results, words) if w[1] != "-C"] == plain
        assert [run(w[0], "-q", *w[1:]).err for w in words] == [""] * 6


def test_no_progress_where_nobody_looks_on(monkeypatch):
    args = types.SimpleNamespace(quiet=False)
    for looks_on in (False, True):
        monkeypatch.setattr(sys, "stderr", types.SimpleNamespace(isatty=lambda: looks_on))
        assert cli.verbosity(args) == looks_on
    args.quiet = True
    assert cli.verbosity(args) == 0


# Finding C

def path_table(X, y, fold, Cs, **options):
    """Mean accuracies over the folds of the models that a path serves, C by C."""
    tables = []
    for held_out in np.unique(fold):
        rows, test = np.flatnonzero(fold != held_out), np.flatnonzero(fold == held_out)
        found = fastmc.path(X[rows], y[rows], eps=_folds.EPS, lam_min=1 / (Cs[-1] * len(rows)), **options)
        models = [found.model_at(1 / (C * len(rows))) for C in Cs]
        tables.append([(m.score(X[test], y[test]), 1 - m.topk_error(X[test], y[test], 2)) for m in models])
    return np.mean(tables, axis=0).T


def test_find_C(run, tmp_path):
    X, y = write_problem(tmp_path / "t", seed=3)
    words = ["train", "-C", "-c", "12", "-v", "3", "--seed", "2", "--loss", "topk", "-k", "2"]
    result = run(*words, "t")
    assert (result.code, result.err) == (0, "") and names(tmp_path) == ["t"]
    facts = json.loads(run(*words, "--json", "t").out)
    Cs = facts["search"]["C"]
    assert Cs == [12 / 2**at for at in range(len(Cs))][::-1] and len(Cs) > 4
    fold = stratified_folds(y, 3, np.random.default_rng(2))
    accuracy, top2 = path_table(X, y, fold, Cs, loss="topk", k=2, random_state=2)
    assert facts["search"]["accuracy"] == pytest.approx(accuracy.tolist(), abs=1e-12)
    assert facts["search"]["top2_accuracy"] == pytest.approx(top2.tolist(), abs=1e-12)
    best = int(np.argmax(accuracy))  # the first of several
    assert 0 < best < len(Cs) - 1
    assert (facts["best_C"], facts["best_accuracy"]) == (Cs[best], pytest.approx(accuracy[best]))
    head, *rows, last = result.out.splitlines()
    assert head.split() == ["C", "accuracy", "top-2", "accuracy"]
    assert [row.split() for row in rows] == [
        [f"{C:g}", f"{100 * a:.6g}%", f"{100 * b:.6g}%"] for C, a, b in zip(Cs, accuracy, top2)]
    assert last.startswith(f"Best C = {Cs[best]:g}  CV accuracy = {100 * accuracy[best]:g}%  (3 folds in ")


def test_grid_of_C_reaches_where_each_path_begins(tmp_path):
    """Below, predictions stay the same; the default for the largest C knows the scale of X."""
    X, y = write_problem(tmp_path / "t")
    splits = _folds.splits_of(stratified_folds(y, 4, np.random.default_rng(0)))
    scores = _folds.path_scores(X, y, splits)
    mean = np.mean(X.multiply(X).sum(axis=1))
    assert scores.Cs[-1] == 2.0 ** round(np.log2(16 / mean))
    begin = [fastmc.path(X[rows], y[rows], eps=_folds.EPS, lam_min=1 / (scores.Cs[-1] * len(rows))).C[0]
             for rows, _ in splits]
    assert scores.Cs[0] <= min(begin) < scores.Cs[1]
    lower = _folds.path_scores(X, y, splits, Cs=[scores.Cs[0] / 64, scores.Cs[0], scores.Cs[-1]])
    assert (lower.accuracy[:, 0] == lower.accuracy[:, 1]).all()
    assert (lower.accuracy[:, 1:] == scores.accuracy[:, [0, -1]]).all()
    assert (_folds.path_scores(X / 16, y, splits).Cs == 256 * scores.Cs).all()


def test_weights_and_costs_of_samples_go_with_their_rows(tmp_path):
    X, y = write_problem(tmp_path / "t")
    rng = np.random.default_rng(1)
    weight, cost = rng.uniform(0.5, 2, size=80), rng.uniform(0.5, 2, size=(80, 4))
    cost[np.arange(80), y - 1] = 0.0
    rows, test = split = np.arange(0, 60), np.arange(60, 80)
    scores = _folds.path_scores(X, y, [split], [0.5, 4.0], sample_weight=weight, cost=cost, loss="structured")
    found = fastmc.path(X[rows], y[rows], eps=_folds.EPS, lam_min=1 / (4 * 60), loss="structured",
                        sample_weight=weight[rows], cost=cost[rows])
    assert scores.accuracy.tolist() == [[found.model_at(1 / (C * 60)).score(X[test], y[test])
                                         for C in (0.5, 4.0)]]


def test_find_C_and_train(run, tmp_path):
    X, y = write_problem(tmp_path / "t", seed=4)
    words = ["train", "-C", "-v", "3", "--trace", "c", "t", "m.npz"]
    result = run(*words)
    assert (result.code, result.err) == (0, "") and names(tmp_path) == ["c", "m.npz", "t"]
    facts = json.loads(run(*words, "--json").out)
    model = fastmc.load_model(tmp_path / "m.npz")
    assert model.C == facts["C"] == facts["best_C"] and facts["folds"] == 3
    expected = fastmc.train(X, y, C=model.C, callback=lambda state: state.certificate and False)
    assert (model.weights == expected.weights).all()
    assert f"Best C = {model.C:g}  CV" in result.out
    assert result.out.splitlines()[-2:] == ["model = m.npz", "trace = c"]
    assert run("train", "-q", *words[1:]).out == ""
    # Without a model file what was found is all there is to tell.
    assert run("train", "-q", "-C", "-v", "3", "t").out.splitlines()[-1].startswith(f"Best C = {model.C:g} ")


def test_find_C_warns_at_the_end_of_the_grid(run, tmp_path):
    write_problem(tmp_path / "t", seed=4)
    best = json.loads(run("train", "-C", "--json", "t").out)["best_C"]
    result = run("train", "-C", "-c", repr(best), "t")
    assert result.code == 0 and f"Best C = {best:g} " in result.out
    assert result.err == ("WARNING: the best C is the largest that was tried; "
                          f"larger ones may be better: -c {4 * best:g}\n")


def test_find_C_on_a_budget(run, tmp_path):
    write_problem(tmp_path / "t", seed=4)
    facts = json.loads(run("train", "-C", "--max-passes", "4", "--json", "t").out)
    accuracy = facts["search"]["accuracy"]
    reached = accuracy.index(None)
    assert 0 < reached < len(accuracy) and accuracy[reached:] == [None] * (len(accuracy) - reached)
    assert facts["best_accuracy"] == max(accuracy[:reached])
    result = run("train", "-C", "--max-passes", "4", "t")
    assert result.code == 0 and "not reached" in result.out and "raise --max-passes" in result.err


def test_find_C_of_hardly_any_data(run, tmp_path):
    rows = ["1 1:1"] * 9 + ["2 2:1"]
    write(tmp_path, t="\n".join(rows) + "\n", two="1 1:1\n2 1:-1\n", one="1 1:1\n1 2:1\n",
          zero="1 1:0\n2 1:0\n")
    # Without the one sample of class 2 the others say class 1.
    assert "CV accuracy = 90%" in run("train", "-C", "t").out
    assert run("train", "-C", "t").err == ""
    result = run("train", "-C", "two")
    assert result.code == 2 and "-C without -v makes 5 folds: there are 2 samples only" in result.err
    assert "CV accuracy = 0%" in run("train", "-C", "-v", "2", "two").out
    assert run("train", "-C", "-v", "2", "zero").code == 0
    result = run("train", "-C", "-v", "2", "one", "m")
    one_line_error(Result(result.code, "", result.err), "one: y has one class only")
    result = run("train", "-C", "--loss", "topk", "-k", "2", "t")
    assert result.code == 2 and "-k 2 must be at most n_classes - 1 = 1" in result.err
    assert names(tmp_path) == ["one", "t", "two", "zero"]


# Validation data during training

def test_validation(run, tmp_path):
    X, y = write_problem(tmp_path / "t", seed=1)
    write_problem(tmp_path / "v", seed=2)
    with open(tmp_path / "v", "a") as file:
        file.write("7 1:1 99:1\n")  # a class and a feature that the training data lack
    held_X, held_y = fastmc.load_svmlight(tmp_path / "v", n_features=15, ignore_extra=True)
    words = ["train", "--loss", "topk", "-k", "2", "-B", "1", "--validation", "v"]
    result = run(*words, "t", "m.npz")
    model, seen = fastmc.load_model(tmp_path / "m.npz"), []

    def watch(state):
        m = Model(state.weights, model.classes_, bias=1.0)
        seen.append((m.score(held_X, held_y), 1 - m.topk_error(held_X, held_y, 2)))

    plain = fastmc.train(X, y, "topk", k=2, bias=1.0, callback=watch)
    assert (plain.weights == model.weights).all()  # to look on changes nothing
    passes = [p for p in (1, 3, 6, 10, 16, 25, 39, 60) if p <= model.n_passes]
    lines = result.out.splitlines()
    assert (result.code, result.err) == (0, "") and len(passes) > 2
    assert lines[:len(passes)] == [
        f"pass {p}: validation accuracy = {100 * seen[p - 1][0]:g}%, "
        f"top-2 accuracy = {100 * seen[p - 1][1]:g}%" for p in passes]
    correct = int((model.predict(held_X) == held_y).sum())
    among = round(81 * (1 - model.topk_error(held_X, held_y, 2)))
    assert lines[-3:] == [f"Validation Accuracy = {100 * correct / 81:g}% ({correct}/81)",
                          f"Validation Top-2 accuracy = {100 * among / 81:g}% ({among}/81)", "model = m.npz"]
    told = json.loads(run(*words, "--json", "t").out)["validation"]
    assert (told["file"], told["n_samples"], told["correct"]) == ("v", 81, correct)
    assert told["history"] == {"passes": passes, "accuracy": [seen[p - 1][0] for p in passes],
                               "top2_accuracy": [pytest.approx(seen[p - 1][1]) for p in passes]}
    assert run(*words, "-q", "t").out == ""
    assert run("train", "-q", "--trace", "c", *words[1:], "t").code == 0
    table = read_table(tmp_path / "c")
    assert list(table)[-3:] == ["seconds", "accuracy", "top2_accuracy"]
    assert table["accuracy"].tolist() == [a for a, _ in seen[:len(table["passes"])]]
    assert table["top2_accuracy"].tolist() == pytest.approx([b for _, b in seen[:len(table["passes"])]])


def test_validation_when_time_runs_out(run, tmp_path):
    """The row of a pass that was broken off is that of the model."""
    write_problem(tmp_path / "t")
    held_X, held_y = fastmc.load_svmlight(tmp_path / "t")
    words = ["train", "-q", "--max-time", "1e-9", "--trace", "c", "--validation", "t", "t", "m.npz"]
    assert run(*words).code == 0
    model, table = fastmc.load_model(tmp_path / "m.npz"), read_table(tmp_path / "c")
    assert model.status == "time_limit"
    assert table["accuracy"].tolist() == [model.score(held_X, held_y)] and table["passes"].tolist() == [0]


@pytest.mark.parametrize("text, message", [
    ("", "v: no rows"), ("1 1:x\n", "v, line 1: "), ("# nothing\n", "v: no rows")])
def test_bad_validation_files(run, tmp_path, text, message):
    write(tmp_path, t=THREE, v=text)
    for words in (["t", "m"], ["-C", "t", "m"]):
        one_line_error(run("train", "--validation", "v", *words), message)
    one_line_error(run("train", "--validation", "none", "t"), "none: No such file or directory")
    result = run("train", "--validation", "v", "t", "v")
    assert result.code == 2 and "would be written over another file" in result.err
    assert names(tmp_path) == ["t", "v"]


def test_training_data_without_features(run, tmp_path):
    write(tmp_path, t="1\n2\n", v=TINY)
    for words in (["train", "t"], ["train", "-C", "t"], ["train", "-v", "2", "t"], ["path", "t", "o"]):
        one_line_error(run(*words), "t: X is empty")
        if "-v" not in words:
            more = ["m"] if words[0] == "train" else []
            one_line_error(run(words[0], "--validation", "v", *words[1:], *more), "t: X is empty")
    one_line_error(run("boost", "--early-stopping", "2", "--validation", "v", "t"), "t: X is empty")


def test_validation_labels_that_training_lacks(run, tmp_path):
    write(tmp_path, t=THREE, v="8 1:1\n9.5 2:1\n")
    result = run("train", "--validation", "v", "t")
    assert result.code == 0 and "Validation Accuracy = 0% (0/2)" in result.out


# predict

@pytest.fixture
def ranked_model(tmp_path):
    """Scores of classes 2, 5, 9 for feature 1 are 1, 0, -1 and for feature 2 0, 2, -2."""
    Model([[1.0, 0.0, -1.0], [0.0, 2.0, -2.0]], [2, 5, 9]).save(tmp_path / "m")


def test_predict(tmp_path, ranked_model):
    write(tmp_path, t="2 1:1\n9 2:1\n9 1:-1\n")
    result = process(tmp_path, "predict", "t", "m", "o")
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout == "Accuracy = 66.6667% (2/3)\n"
    assert (tmp_path / "o").read_text() == "2\n5\n9\n"


def test_predict_ranks(run, tmp_path, ranked_model):
    write(tmp_path, t="5 1:1\n9 2:1\n9 1:-1\n7 1:1 2:1\n")
    result = run("predict", "-k", "3", "t", "m", "o")
    assert result.code == 0
    assert result.out == ("Accuracy = 25% (1/4)\nTop-2 accuracy = 50% (2/4)\n"
                          "Top-3 accuracy = 75% (3/4)\n")
    assert (tmp_path / "o").read_text() == "2 5 9\n5 2 9\n9 5 2\n5 2 9\n"
    facts = json.loads(run("predict", "-k", "3", "--json", "t", "m", "o").out)
    assert facts["accuracy"] == 0.25 and facts["correct"] == 1 and facts["n_samples"] == 4
    assert facts["topk_accuracy"] == {"2": 0.5, "3": 0.75}
    quiet = run("predict", "-q", "t", "m", "o")
    assert (quiet.code, quiet.out, quiet.err) == (0, "", "")


def test_predict_scores(run, tmp_path, ranked_model):
    """The k labels come first, then their decision values, to the last bit."""
    write(tmp_path, t="5 1:1\n9 2:0.1\n9 1:-1\n")
    assert run("predict", "-k", "2", "--scores", "t", "m", "o").code == 0
    assert (tmp_path / "o").read_text() == "2 5 1.0 0.0\n5 2 0.2 0.0\n9 5 1.0 0.0\n"
    assert run("predict", "--scores", "t", "m", "o").code == 0
    assert (tmp_path / "o").read_text() == "2 1.0\n5 0.2\n9 1.0\n"
    X, y = write_problem(tmp_path / "u")
    assert run("train", "-q", "u", "u.npz").code == 0
    assert run("predict", "-q", "-k", "4", "--scores", "u", "u.npz", "o").code == 0
    model, table = fastmc.load_model(tmp_path / "u.npz"), np.loadtxt(tmp_path / "o")
    scores = -np.sort(-model.decision_function(X), axis=1)
    assert (table[:, :4] == model.predict_topk(X, 4)).all() and (table[:, 4:] == scores).all()


def test_predict_threads(run, tmp_path):
    X, y = write_problem(tmp_path / "t")
    assert run("train", "-q", "t", "m.npz").code == 0
    for threads in ("1", "2", "0"):
        result = run("predict", "-m", threads, "-k", "2", "--scores", "t", "m.npz", threads)
        assert (result.code, result.err) == (0, "")
    texts = [(tmp_path / threads).read_text() for threads in ("1", "2", "0")]
    assert len(texts[0].splitlines()) == len(y) and texts[0] == texts[1] == texts[2]


def test_files_are_read_by_as_many_threads(run, tmp_path, monkeypatch):
    write_problem(tmp_path / "t")
    load, counts = fastmc.load_svmlight, []

    def counted(path, **options):
        counts.append(options["n_threads"])
        return load(path, **options)

    monkeypatch.setattr(fastmc, "load_svmlight", counted)
    assert run("train", "-q", "-m", "2", "--validation", "t", "t", "m.npz").code == 0
    assert run("predict", "-q", "-m", "3", "t", "m.npz", "o").code == 0
    assert run("path", "-q", "-m", "4", "-c", "1", "--validation", "t", "t", "o.csv").code == 0
    assert counts == [2, 2, 3, 4, 4]


def test_predict_plot(run, tmp_path, ranked_model):
    write(tmp_path, t="5 1:1\n9 2:1\n9 1:-1\n7 1:1 2:1\n")
    result = run("predict", "--plot", "x.png", "t", "m", "o")
    assert result.code == 0 and result.out == "Accuracy = 25% (1/4)\nplot = x.png\n"
    assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")
    assert json.loads(run("predict", "--json", "--plot", "x.png", "t", "m", "o").out)["plot"] == "x.png"
    for words in (["--plot", "o.png", "t", "m", "o.png"], ["--plot", "x.png", "x.png", "m", "o"]):
        result = run("predict", *words)
        assert result.code == 2 and "would be written over another file" in result.err


def test_predict_k_above_the_classes(run, tmp_path, ranked_model):
    write(tmp_path, t=TINY)
    result = run("predict", "-k", "4", "t", "m", "o")
    assert result.code == 2 and "-k 4 must be a whole number from 1 to n_classes = 3" in result.err
    assert names(tmp_path) == ["m", "t"]


def test_predict_pads_and_ignores_columns(run, tmp_path):
    rng = np.random.default_rng(0)
    Model(rng.normal(size=(5, 3)), [1, 2, 3]).save(tmp_path / "m")
    write(tmp_path, few="1 2:1\n", many="1 2:1 9:1\n", none="1 9:1\n", label="4\n")
    for name in ("few", "many"):
        assert run("predict", "-q", name, "m", f"{name}.out").code == 0
    assert (tmp_path / "few.out").read_text() == (tmp_path / "many.out").read_text()
    # No feature of the model: equal scores, the lowest class.
    assert run("predict", "none", "m", "o").out == "Accuracy = 100% (1/1)\n"
    assert run("predict", "label", "m", "o").out == "Accuracy = 0% (0/1)\n"
    assert (tmp_path / "o").read_text() == "1\n"


def test_predict_more_rows_than_a_block(run, tmp_path, ranked_model, monkeypatch):
    monkeypatch.setattr(_scoring, "BLOCK", 4)
    write(tmp_path, t="2 1:1\n5 2:1\n9 1:-1\n" * 3)
    assert run("predict", "t", "m", "o").out == "Accuracy = 100% (9/9)\n"
    assert (tmp_path / "o").read_text() == "2\n5\n9\n" * 3


@pytest.mark.parametrize("labels, texts", [
    (["ham", "spam"], ["ham", "spam"]), ([1.0, 2.5], ["1", "2.5"]),
    ([-3, 10**12], ["-3", "1000000000000"]),
    ([False, True], ["False", "True"]), (np.array(["é", "ü"], dtype=object), ["é", "ü"])])
def test_predicted_labels_of_any_kind(run, tmp_path, labels, texts):
    Model([[1.0, -1.0]], labels).save(tmp_path / "m.npz")
    write(tmp_path, t=TINY)
    assert run("predict", "-q", "t", "m.npz", "o").code == 0
    assert (tmp_path / "o").read_text(encoding="utf-8").split() == texts


def test_written_labels_read_as_labels(run, tmp_path):
    write(tmp_path, t="1.5 1:1\n-2 1:-1\n")
    assert run("train", "-q", "t", "m.npz").code == 0
    assert run("predict", "t", "m.npz", "o").out == "Accuracy = 100% (2/2)\n"
    assert (tmp_path / "o").read_text() == "1.5\n-2\n"


def test_bad_model_names_its_line(run, tmp_path, ranked_model):
    text = (tmp_path / "m").read_text()
    write(tmp_path, t=TINY, bad=text.replace("MCSVM_CS", "FOO"), cut=text[:-4],
          crlf=text.replace("\n", "\r\n"))
    one_line_error(run("predict", "t", "bad", "o"), "bad, line 1: solver_type 'FOO'")
    one_line_error(run("predict", "t", "cut", "o"), "cut, line 8: ")
    write(tmp_path, **{"x.npz": "text"})
    one_line_error(run("predict", "t", "x.npz", "o"), "x.npz: not a model file: not an .npz")
    assert "o" not in names(tmp_path)
    assert run("predict", "t", "crlf", "o").code == 0


def test_whole_way_is_the_python_way(run, tmp_path):
    """Train and predict by files give the labels and accuracy of Python."""
    X, y = write_problem(tmp_path / "train", seed=1)
    test_X, test_y = write_problem(tmp_path / "test", seed=2)
    for model_file in ("m", "m.npz"):
        assert run("train", "-q", "-B", "1", "train", model_file).code == 0
        result = run("predict", "test", model_file, "o")
        model = fastmc.train(X, y, bias=1.0)
        correct = int((model.predict(test_X) == test_y).sum())
        assert result.out == f"Accuracy = {100 * correct / 80:g}% ({correct}/80)\n"
        assert (tmp_path / "o").read_text().split() == list(map(str, model.predict(test_X)))


# path

def read_table(path):
    """Columns of a table: name to array."""
    with open(path, newline="") as file:
        head, *rows = csv.reader(file)
    return dict(zip(head, np.array(rows, dtype=float).T))


def assert_same_path(table, expected):
    """All columns but the time, to the last bit."""
    columns = expected.columns()
    assert list(table) == list(columns)
    for name in set(columns) - {"seconds"}:
        assert table[name].tolist() == columns[name].tolist(), name
    assert (np.diff(table["seconds"]) >= 0).all()


def test_path(tmp_path):
    X, y = write_problem(tmp_path / "t")
    result = process(tmp_path, "path", "-c", "10", "t", "o.csv")
    assert (result.returncode, result.stderr) == (0, "")
    expected = fastmc.path(X, y, lam_min=1 / (10 * 80))
    assert len(expected) > 3
    table = read_table(tmp_path / "o.csv")
    assert list(table) == ["lam", "C", "primal", "dual", "gap", "relative_gap", "passes", "seconds"]
    assert_same_path(table, expected)
    largest = max(expected.certificate_at(lam).relative_gap for lam in expected.served())
    assert 0.08 < largest <= 0.1 + 1e-9
    lines = result.stdout.splitlines()
    assert lines[0].startswith(f"n = 80, d = 15, m = 4, nnz = {X.nnz}, loaded in ")
    assert lines[1] == (f"breakpoints = {len(expected)}, "
                        f"lambda from {expected.lams[0]:.6g} to {1 / 800:.6g}")
    assert lines[2].startswith(f"passes = {expected.n_passes[-1]} (converged), "
                               f"largest relative gap = {largest:.3g}, in ")
    assert lines[3:] == ["path = o.csv"]
    assert names(tmp_path) == ["o.csv", "t"]


@pytest.mark.parametrize("words, options", [
    (["--lam-min", "0.01", "--eps", "0.3"], {"lam_min": 0.01, "eps": 0.3}),
    (["-c2", "--loss", "topk", "-k", "2"], {"loss": "topk", "k": 2}),
    (["-c2", "--loss", "topk", "-k", "2", "--no-own-class"],
     {"loss": "topk", "k": 2, "own_class": False}),
    (["-c2", "--loss", "wusunier", "--rho", "2,1"], {"loss": "wusunier", "rho": [2, 1]}),
    (["-c2", "--smoothing", "0.5", "-B", "1"], {"smoothing": 0.5, "bias": 1.0}),
    (["-c2", "-w1", "2", "-w+3", "0.5"], {"class_weight": {1: 2.0, 3: 0.5}}),
    (["-c2", "--solver", "pairwise", "--sampling", "gap", "--gap-refresh", "3", "--seed", "4"],
     {"solver": "pairwise", "sampling": "gap", "gap_refresh": 3, "random_state": 4}),
    (["-c2", "--solver", "away", "--cache-size", "3", "--cache-f", "0.5", "--cache-nu", "0.1"],
     {"solver": "away", "cache_size": 3, "cache_f": 0.5, "cache_nu": 0.1}),
    (["-c2", "--loss", "structured", "--cost", "cost"],
     {"loss": "structured", "cost": 2.0 * (1 - np.eye(4))}),
])
def test_path_options_mean_what_they_mean_in_python(run, tmp_path, words, options):
    X, y = write_problem(tmp_path / "t")
    np.savetxt(tmp_path / "cost", 2.0 * (1 - np.eye(4)))
    result = run("path", "-q", *words, "t", "o.csv")
    assert (result.code, result.out, result.err) == (0, "", "")
    assert_same_path(read_table(tmp_path / "o.csv"),
                     fastmc.path(X, y, **{"lam_min": 1 / (2 * 80), **options}))


def test_path_goes_to_C_100_by_default(run, tmp_path):
    write(tmp_path, t=THREE)
    facts = json.loads(run("path", "--json", "t", "o").out)
    assert facts["lam_min"] == 1 / (100 * 6) and facts["eps"] == 0.1


def test_path_with_validation_and_plot(run, tmp_path):
    X, y = write_problem(tmp_path / "t", seed=1)
    write_problem(tmp_path / "v", seed=2)
    with open(tmp_path / "v", "a") as file:
        file.write("4 1:1 99:1\n")  # a feature that the training data lacks
    held_out = fastmc.load_svmlight(tmp_path / "v", n_features=15, ignore_extra=True)
    words = ["path", "-c", "10", "--loss", "topk", "-k", "2", "--validation", "v", "--plot",
             "o.png", "t", "o.csv"]
    result = run(*words)
    assert (result.code, result.err) == (0, "")
    expected = fastmc.path(X, y, loss="topk", k=2, lam_min=1 / 800, validation=held_out)
    table = read_table(tmp_path / "o.csv")
    assert list(table)[-2:] == ["top1_error", "top2_error"]
    assert_same_path(table, expected)
    lines = []
    for name in ("top1", "top2"):
        best = int(np.argmin(table[f"{name}_error"]))
        lines.append(f"best top-{name[3]} error = {100 * table[f'{name}_error'][best]:g}% "
                     f"at C = {table['C'][best]:.6g}")
    assert result.out.splitlines()[3:] == [*lines, "path = o.csv", "plot = o.png"]
    assert (tmp_path / "o.png").read_bytes().startswith(b"\x89PNG")
    assert names(tmp_path) == ["o.csv", "o.png", "t", "v"]

    facts = json.loads(run(*words, "--json").out)
    best = int(np.argmin(expected.top1_error))
    assert facts["best"]["1"] == {"error": expected.top1_error[best], "C": expected.C[best],
                                  "lam": expected.lams[best]}
    assert {key: facts[key] for key in ("n_samples", "n_features", "n_classes", "nnz", "status",
                                        "n_breakpoints", "n_passes", "lambda_max", "lam_min",
                                        "output_file", "plot")} == {
        "n_samples": 80, "n_features": 15, "n_classes": 4, "nnz": X.nnz, "status": "converged",
        "n_breakpoints": len(expected), "n_passes": expected.n_passes[-1],
        "lambda_max": expected.lams[0], "lam_min": 1 / 800, "output_file": "o.csv", "plot": "o.png"}
    assert facts["load_seconds"] > 0 and facts["path_seconds"] > 0


@pytest.mark.parametrize("words, status", [(["--max-passes", "1", "--eps", "0.01"], "max_passes"),
                                           (["--max-time", "1e-9"], "time_limit")])
def test_path_that_ends_early_is_a_warning_and_success(run, tmp_path, words, status):
    write_problem(tmp_path / "t", n_samples=30)
    result = run("path", *words, "t", "o")
    assert result.code == 0 and f"({status})" in result.out
    assert result.err.startswith(f"WARNING: the path ended early ({status}) at lam=")
    assert result.err.endswith("; raise --max-passes or --max-time\n")
    lams = read_table(tmp_path / "o")["lam"]
    lam_min = float(result.err.split("lam=")[1].split(";")[0])
    assert len(lams) >= 1 and 1 / (100 * 30) < lam_min <= lams[-1] * (1 + 1e-5)


@pytest.mark.parametrize("data, message", [
    ("1 1:1\n1 1:-1\n", "t: y has one class only (1); at least two are needed"),
    ("1 1:1\n2 1:x\n", "t, line 2"),
    ("", "t: "),
])
def test_path_of_bad_data(run, tmp_path, data, message):
    write(tmp_path, t=data)
    one_line_error(run("path", "t", "o"), message)
    assert names(tmp_path) == ["t"]


def test_path_with_bad_cost_or_no_validation_rows(run, tmp_path):
    write(tmp_path, t=THREE, c="0 1\n1 0\n", v="# nothing\n")
    one_line_error(run("path", "--cost", "c", "t", "o"), "c: 2 rows, but the training data has 3")
    one_line_error(run("path", "--validation", "v", "t", "o"), "v: ")
    assert names(tmp_path) == ["c", "t", "v"]


# info

def test_info(run, tmp_path):
    write(tmp_path, t=THREE)
    options = ["--loss", "topk", "-k", "2", "-c", "2", "-B", "1"]
    assert run("train", "-q", *options, "t", "m.npz").code == 0
    model = fastmc.load_model(tmp_path / "m.npz")
    result = run("info", "m.npz")
    assert result.code == 0 and result.err == ""
    assert result.out.splitlines() == [
        "classes = 3: 1 2 3", "features = 3", "bias = 1", "loss = topk, rank weights 0.5, 0.5",
        "C = 2", f"lam = {1 / 12:g}", "smoothing = 0", "solver = sdca", "samples = 6",
        f"passes = {model.n_passes}", "status = converged",
        f"primal = {model.certificate.primal:.9g}, dual = {model.certificate.dual:.9g}, "
        f"relative gap = {model.certificate.relative_gap:.3g}",
        "dual = kept, training can go on from it"]
    facts = json.loads(run("info", "--json", "m.npz").out)
    assert facts["classes"] == [1, 2, 3] and facts["C"] == 2.0
    assert facts["gap"] == model.certificate.gap


def test_info_of_text(run, tmp_path, ranked_model):
    assert run("info", "m").out.splitlines() == [
        "classes = 3: 2 5 9", "features = 2", "bias = none", "loss = unknown",
        "certificate = none", "dual = none"]


@pytest.fixture
def named_model(tmp_path):
    """Weights of two classes on three features."""
    Model([[1.0, -1.0], [0.25, 2.5], [3.0, 0.0]], [2, 5]).save(tmp_path / "m")


def test_heaviest_features(run, tmp_path, named_model):
    write(tmp_path, n="ham\negg and\u2028spam\r\n\u00e9\nmore than needed\n")
    plain = run("info", "m").out.splitlines()
    assert run("info", "--names", "n", "m").out.split("\n") == [
        *plain, "class 2: \u00e9 3, ham 1, egg and\u2028spam 0.25",
        "class 5: egg and\u2028spam 2.5", ""]
    assert run("info", "--top", "1", "m").out.splitlines() == [*plain, "class 2: 3 3", "class 5: 2 2.5"]
    facts = json.loads(run("info", "--json", "--names", "n", "-n", "2", "m").out)
    assert facts["heaviest"] == [[["\u00e9", 3.0], ["ham", 1.0]], [["egg and\u2028spam", 2.5]]]
    assert "heaviest" not in json.loads(run("info", "--json", "m").out)


@pytest.mark.parametrize("ending, pack", [("", bytes), (".gz", gzip.compress), (".bz2", bz2.compress),
                                          (".xz", lzma.compress)])
def test_names_are_unpacked(run, tmp_path, named_model, ending, pack):
    write(tmp_path, **{f"n{ending}": pack(b"\xef\xbb\xbfham\negg\nspam")})
    lines = run("info", "--names", f"n{ending}", "m").out.splitlines()
    assert lines[-2:] == ["class 2: spam 3, ham 1, egg 0.25", "class 5: egg 2.5"]


@pytest.mark.parametrize("names_text, message", [
    ("ham\negg\n", "n: 2 names, but the model has 3 features"), ("", "n: 0 names"),
    (b"ham\n\xff\nspam\n", "n: names must be in UTF-8, byte 5 is not")])
def test_bad_names(run, tmp_path, named_model, names_text, message):
    write(tmp_path, **{"n": names_text, "n.gz": b"no gzip"})
    one_line_error(run("info", "--names", "n", "m"), message)
    one_line_error(run("info", "--names", "none", "m"), "none: No such file or directory")
    one_line_error(run("info", "--names", "n.gz", "m"), "n.gz: damaged or cut compressed file")


# Kinds of files that are read

@pytest.mark.parametrize("data", [
    "1 1:1 # a:b\n2 1:-1\n", "# head\n1 1:1\n2 1:-1\n", "1 1:1\r\n2 1:-1\r\n", "1 1:1\n2 1:-1\n\n",
    "  1 1:1\t \n2\t1:-1  \n", "+1 1:1\n+2 1:-1\n", b"\xef\xbb\xbf1 1:1\n2 1:-1\n",
    "1 1:1e0\n2 1:-1.0E+0"])
def test_equal_data_give_equal_models(run, tmp_path, data):
    write(tmp_path, t=data, tiny=TINY)
    assert run("train", "-q", "t", "a").code == 0
    assert run("train", "-q", "tiny", "b").code == 0
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_uncompiled_source_says_what_to_do(tmp_path):
    source = Path(fastmc.__file__).parent
    (tmp_path / "fastmc").mkdir()
    for name in ("__init__.py", "__main__.py", "cli.py"):
        (tmp_path / "fastmc" / name).write_text((source / name).read_text())
    for words in (["-m", "fastmc", "--help"], ["-c", "import fastmc"]):
        done = subprocess.run([sys.executable, *words], cwd=tmp_path, capture_output=True, text=True, timeout=60,
                              env=os.environ | {"PYTHONPATH": ""})
        assert done.returncode == 1
        assert f"ImportError: fastmc in {tmp_path / 'fastmc'} is not compiled: run `make build` there" in done.stderr
