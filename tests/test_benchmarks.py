"""The benchmarks run, and what they report obeys weak duality."""
import csv
import importlib.util

import numpy as np
import pytest

import fastmc
from fastmc._folds import cross_predict, stratified_folds

OURS = ["sdca", "bcfw", "pairwise", "away", "fw", "stdfw", "pg", "sdca-certified"]


def tight(value):
    """What rounding may take from an inequality between objectives."""
    return 1e-10 * max(1.0, abs(value))


def compare(run_benchmark, read_results, tmp_path, solvers):
    pytest.importorskip("matplotlib", reason="matplotlib draws the pictures")
    run_benchmark("compare.py", "run", "--data", "made_sparse", "made_dense", "--C", "0.3", "--solvers",
                  *solvers, "--passes", "1", "8", "--tol", "0.1", "0.001", "--repeats", "2",
                  "--reference-time", "0.2", "--out", str(tmp_path))
    assert (tmp_path / "run.png").stat().st_size > 1000
    rows = read_results(tmp_path / "run.csv")
    assert len(rows) == 2 * 2 * len(solvers)
    best = {}
    for row in rows:
        if not np.isnan(row["dual"]):
            best[row["dataset"]] = max(best.get(row["dataset"], 0.0), row["dual"])
    for row in rows:
        # Weak duality, across solvers: no primal is below any dual of the same problem.
        assert row["primal"] >= best[row["dataset"]] - tight(row["primal"])
        assert -1e-10 <= row["suboptimality_bound"] <= 1.0
        assert row["seconds"] > 0 and row["passes"] >= 1 and 0 <= row["test_error"] <= 1
    return rows


def test_run_own_solvers(run_benchmark, read_results, tmp_path):
    rows = compare(run_benchmark, read_results, tmp_path, OURS)
    for row in rows:
        assert row["gap"] == pytest.approx(row["primal"] - row["dual"], abs=1e-14)
        assert row["gap"] >= -tight(row["primal"])
        assert row["relative_gap"] >= row["suboptimality_bound"] - 1e-12
    certified = [row for row in rows if row["solver"] == "sdca-certified"]
    assert all(row["relative_gap"] <= float(row["setting"].split("=")[1]) for row in certified)


def test_run_peers(run_benchmark, read_results, tmp_path):
    pytest.importorskip("liblinear", reason="LIBLINEAR is a peer")
    pytest.importorskip("sklearn", reason="scikit-learn is a peer")
    rows = compare(run_benchmark, read_results, tmp_path, ["sdca-certified", "liblinear", "sklearn"])
    theirs = [row for row in rows if row["solver"] != "sdca-certified"]
    assert all(np.isnan(row["dual"]) for row in theirs)
    # Classes in the wrong columns, or C off by a factor, would be far from the optimum.
    assert all(row["suboptimality_bound"] < 0.01 for row in theirs if row["setting"] == "tol=0.001")


def test_run_other_objectives(run_benchmark, read_results, made_data, tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib draws the pictures")
    svm = pytest.importorskip("sklearn.svm", reason="scikit-learn is a peer")
    out = run_benchmark("compare.py", "run", "--data", "made_sparse", "--C", "0.3", "--solvers", "sdca-certified",
                        "sklearn-ovr", "sklearn-sgd", "lightning", "--tol", "0.001", "--repeats", "1",
                        "--reference-time", "0.2", "--out", str(tmp_path))
    rows = {row["solver"]: row for row in read_results(tmp_path / "run.csv")}
    for name in ("sklearn-ovr", "sklearn-sgd"):
        assert all(np.isnan(rows[name][key]) for key in ("primal", "dual", "gap", "suboptimality_bound"))
        assert f"{name} minimises, for each class against the rest, " in out
        line = next(line.split() for line in out.splitlines() if name in line and "tol=0.001" in line)
        # Data, C, name, setting, seconds, errors: nothing of fastmc's problem.
        assert line[5:] == [f"{100 * rows[name][key]:.2f}%" for key in ("test_error", "top5_error")]
    (X, y), (X_test, y_test) = (fastmc.load_svmlight(made_data / f"made_sparse.{part}.svm.bz2", n_features=12)
                                for part in ("train", "test"))
    model = svm.LinearSVC(C=0.3, tol=0.001, fit_intercept=False, random_state=0).fit(X, y)
    assert rows["sklearn-ovr"]["test_error"] == pytest.approx(1 - model.score(X_test, y_test), abs=1e-12)
    if importlib.util.find_spec("lightning") is None:
        assert "lightning: lightning is not installed: left out" in out and "lightning" not in rows


def test_run_dual_fw(run_benchmark, read_results, tmp_path):
    pytest.importorskip("dual_fw_svm", reason="dual-fw-svm is a peer")
    rows = compare(run_benchmark, read_results, tmp_path, ["fw", "dual-fw-svm"])
    # The same method: its C and its dual are read right if the objectives are the same.
    assert [row["dual"] for row in rows[1::2]] == pytest.approx([row["dual"] for row in rows[::2]], rel=1e-9)
    # On the sparse set fastmc returns W = 0, which is better than what either has after 8 passes.
    ours, theirs = rows[-2:]
    assert theirs["primal"] == pytest.approx(ours["primal"], rel=1e-9) and ours["dataset"] == "made_dense"


def test_figures(run_benchmark, read_results, tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib draws the pictures")
    run_benchmark("compare.py", "figures", "--data", "made_sparse", "made_dense", "--iterations", "20",
                  "--reference-time", "0.2", "--out", str(tmp_path))
    for name in ("figure1.png", "figure2.png"):
        assert (tmp_path / name).stat().st_size > 1000
    rows = read_results(tmp_path / "figures.csv")
    assert {row["solver"] for row in rows} == {"LSFW", "StdFW", "PG"}
    assert {row["smoothing"] for row in rows} == {0.0, 0.01}
    for row in rows:
        assert row["gap"] >= -tight(row["primal"])
        assert -tight(row["primal"]) <= row["objective_error"] <= row["gap"] + tight(row["primal"])
    duals = {}
    for row in rows:
        if row["solver"] == "LSFW":
            duals.setdefault((row["dataset"], row["smoothing"]), []).append(row["dual"])
    # An exact line search never lowers the dual.
    assert all((np.diff(values) >= -1e-12).all() for values in duals.values())


def test_tables(run_benchmark, read_results, tmp_path):
    out = run_benchmark("compare.py", "table1", "--data", "made_dense", "--iterations", "15",
                        "--trials", "2", "--C", "0.1", "1", "--out", str(tmp_path))
    rows = read_results(tmp_path / "table1.csv")
    assert len(rows) == 2 * 3 * 4
    for start in range(0, len(rows), 4):
        errors = [row["test_error"] for row in rows[start:start + 4]]
        assert errors == sorted(errors, reverse=True) and errors[-1] == 0.0  # 7 classes: top-10 holds all
    # The mean that is printed is the mean of the rows.
    mean = np.mean([row["test_error"] for row in rows if row["solver"] == "LSFW" and row["k"] == 1])
    assert f"{mean:.4f} (" in next(line for line in out.splitlines() if "LSFW" in line)
    out = run_benchmark("compare.py", "table2", "--data", "made_sparse", "--repeats", "3",
                        "--clock", "cpu", "--out", str(tmp_path))
    assert "LSFW / StdFW" in out and "made_sparse" in out


def test_kernels(run_benchmark):
    out = run_benchmark("kernels.py", "--data", "made_sparse", "--repeats", "1")
    passes = [line.split() for line in out.splitlines() if line.startswith("made_sparse")]
    assert len(passes) == 5 + 2
    assert all(float(cell) > 0 for line in passes[:5] for cell in line[3:])
    steps = [line.split() for line in out.split("(c)")[1].splitlines()[2:]]
    assert [line[0] for line in steps] == ["maxhinge", "topk", "usunier", "wtopk", "wusunier"]
    assert all(float(cell) > 0 for line in steps for cell in line[1:])


def test_stumps(run_benchmark):
    out = run_benchmark("stumps.py", "--data", "made_sparse", "made_dense", "--repeats", "1")
    rows = [line.split() for line in out.splitlines() if line.startswith("made_")]
    assert [row[:3] for row in rows] == [["made_sparse", "csr", "7"], ["made_dense", "csr", "7"],
                                         ["made_dense", "dense", "7"]]
    assert all(float(cell) > 0 for row in rows for cell in row[4:])


def test_predict(run_benchmark):
    out = run_benchmark("predict.py", "--data", "made_sparse", "made_dense", "--threads", "2", "--repeats", "2")
    rows = [line.split() for line in out.splitlines() if line.startswith("made_")]
    assert [row[:2] for row in rows[::4]] == [["made_sparse", "csr"], ["made_dense", "csr"],
                                              ["made_dense", "dense"]]
    assert [row[2:-2] for row in rows] == 3 * [
        ["7", "X", "@", "W", "1"], ["7", "decision_function", "2"], ["7", "predict", "2"], ["7", "top", "5", "2"]]
    for row in rows:
        assert float(row[-2]) >= 0 and float(row[-1]) > 0
    assert all(float(row[-1]) == 1 for row in rows[::4])


def test_multiboost(run_benchmark, tmp_path):
    out = run_benchmark("multiboost.py", "solver", "--data", "made_dense", "--rounds", "6", "--check", "3")
    row = next(line for line in out.splitlines() if line.startswith("made_dense")).split()
    assert row[1:4] == ["140", "7", "6"] and int(row[4]) <= 7 * 6
    seconds, above = [float(cell) for cell in row[5:7]], [float(cell) for cell in row[8:]]
    assert min(seconds) >= 0 and all(0 <= value < 0.1 for value in above)
    out = run_benchmark("multiboost.py", "kernel", "--rows", "50", "--classes", "2", "3")
    assert [line.split()[:2] for line in out.splitlines() if line.strip().startswith("50")][:2] == [
        ["50", "2"], ["50", "3"]]
    out = run_benchmark("multiboost.py", "errors", "--data", "made_dense", "--rounds", "4", "--seeds", "2", "--own",
              "--out", str(tmp_path))
    table, curves = (read_table(tmp_path / f"multiboost_{name}.csv") for name in ("errors", "curves"))
    assert [row["method"] for row in table] == ["class-wise", "stage-wise", "shared", "lbfgsb"] * 2
    for row in table:
        mine = [c for c in curves if (c["method"], c["seed"]) == (row["method"], row["seed"])]
        # The last point of a curve is the error of the model.
        assert float(mine[-1]["error"]) == pytest.approx(float(row["error"]), abs=1e-12)
        assert [int(c["rounds"]) for c in mine] == list(range(1, len(mine) + 1))
    assert "class-wise reaches the last error of shared" in out


def test_accuracy(run_benchmark, made_data, tmp_path):
    LinearSVC = pytest.importorskip("sklearn.svm", reason="scikit-learn is a peer").LinearSVC
    Cs, losses = [0.02, 0.5], {"maxhinge": {"loss": "maxhinge"}, "topk k=3": {"loss": "topk", "k": 3}}
    out = run_benchmark("accuracy.py", "--data", "made_sparse", "--methods", *losses, "LinearSVC",
                        "--Cs", *map(str, Cs), "--out", str(tmp_path))
    rows = read_table(tmp_path / "accuracy.csv")
    names = [(row["split"], row["method"]) for row in rows]
    assert names == [("given", name) for name in (*losses, "LinearSVC")]
    (X, y), (X_test, y_test) = (fastmc.load_svmlight(made_data / f"made_sparse.{part}.svm.bz2", n_features=12)
                                for part in ("train", "test"))
    fold, models = stratified_folds(y, 3, np.random.default_rng(0)), []
    for row, loss in zip(rows, losses.values()):
        options = {"bias": 1, "tol": 1e-2, **loss}
        held_out = {C: cross_predict(X, y, fold, 1, options | {"C": C})[:, 0] != y for C in Cs}
        errors = [np.mean([wrong[fold == number].mean() for number in range(3)])
                  for wrong in held_out.values()]
        assert float(row["C"]) == Cs[np.argmin(errors)]
        assert float(row["cv_error"]) == pytest.approx(min(errors), abs=1e-12) and row["limited"] == "0"
        models.append(fastmc.train(X, y, C=float(row["C"]), **options))
    models.append(LinearSVC(C=float(rows[2]["C"]), random_state=0).fit(X, y))
    for row, model in zip(rows, models):
        # Of equal scores, which rows without words have, the first class counts.
        ranked = np.argsort(-model.decision_function(X_test), axis=1, kind="stable")
        for k in (1, 3, 5):
            right = np.mean((ranked[:, :k] == y_test[:, None]).any(axis=1))
            assert float(row[f"top{k}"]) == pytest.approx(1 - right, abs=1e-12)
    # Over the test rows, how much more often the label is not among the first three.
    missed = [(model.predict_topk(X_test, 3) != y_test[:, None]).all(axis=1) for model in models[:2]]
    more = np.subtract(missed[1], missed[0], dtype=float)
    line = markdown(out, "topk k=3")
    assert line["top-3 more"] == f"{100 * more.mean():+.2f} ± {100 * more.std(ddof=1) / np.sqrt(70):.2f}"
    assert more.any() and markdown(out, "maxhinge")["top-3 more"] == "+0.00 ± 0.00"


def test_accuracy_of_drawn_splits(run_benchmark, tmp_path):
    pytest.importorskip("sklearn", reason="scikit-learn is a peer")
    out = run_benchmark("accuracy.py", "--data", "made_sparse", "--methods", "usunier k=3",
                        "LogisticRegression", "--Cs", "1", "10000", "--resplits", "3", "--out", str(tmp_path))
    assert "made_sparse: 157 rows to train on, 53 to test, 12 features, 7 classes" in out
    rows = read_table(tmp_path / "accuracy_resplits.csv")
    assert [row["split"] for row in rows] == ["0", "0", "1", "1", "2", "2"]
    errors = 100 * np.array([float(row["top1"]) for row in rows]).reshape(3, 2)
    line = markdown(out, "LogisticRegression")
    assert line["top-1"] == f"{errors[:, 1].mean():.2f} ({errors[:, 1].std(ddof=1):.2f})"
    more = errors[:, 1] - errors[:, 0]
    assert line["top-1 more"] == f"{more.mean():+.2f} ± {more.std(ddof=1) / np.sqrt(3):.2f}" and more.any()
    # lbfgs ends on its limit of iterations where C is large.
    assert int(line["limited"]) == sum(int(row["limited"]) for row in rows[1::2]) > 0


def markdown(out, first):
    """The cells of the line that begins so, by the titles of the table."""
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in out.splitlines() if line[:1] == "|"]
    return dict(zip(lines[0], next(line for line in lines if line[0] == first)))


def read_table(path):
    return list(csv.DictReader(line for line in path.read_text().splitlines() if line[0] != "#"))


def test_levels(run_benchmark, read_results, tmp_path):
    pytest.importorskip("liblinear", reason="LIBLINEAR is a peer")
    pytest.importorskip("matplotlib", reason="matplotlib draws the pictures")
    out = run_benchmark("compare.py", "levels", "--data", "made_sparse", "made_dense", "--C", "0.3", "--levels",
                        "0.1", "0.01", "--tol", "0.1", "0.001", "--repeats", "1", "--reference-time", "0.2",
                        "--out", str(tmp_path))
    assert (tmp_path / "levels.png").stat().st_size > 1000 and b"</svg>" in (tmp_path / "levels.svg").read_bytes()
    rows = read_results(tmp_path / "levels.csv")
    assert [row["dataset"] for row in rows] == ["made_sparse", "made_dense"]
    ratios = [row["liblinear 0.01"] / row["fastmc-1 0.01"] for row in rows]
    mean = np.exp(np.log(ratios).mean())
    assert f"0.01, threads 1: geometric mean {mean:.2f}, least {min(ratios):.2f}, of 2 rows" in out
    assert all(row["bound"] < 0.01 and row["fastmc-2 0.1"] > 0 for row in rows)


def test_levels_budget(run_benchmark, read_results, tmp_path):
    pytest.importorskip("liblinear", reason="LIBLINEAR is a peer")
    pytest.importorskip("matplotlib", reason="matplotlib draws the pictures")
    run_benchmark("compare.py", "levels", "--data", "made_sparse", "--C", "0.3", "--levels", "0.001", "--tol", "100",
                  "0.0001", "--budget", "0", "--threads", "1", "--repeats", "2", "--reference-time", "0.2",
                  "--out", str(tmp_path))
    # The second setting, which gets there, was not tried.
    assert read_results(tmp_path / "levels.csv")[0]["liblinear 0.001"] == np.inf


def test_defaults(run_benchmark):
    pytest.importorskip("sklearn", reason="scikit-learn is a peer")
    out = run_benchmark("compare.py", "defaults", "--data", "made_sparse")
    cells = out.strip().splitlines()[-1].split()
    assert cells[0] == "made_sparse"
    theirs, ours, factor = map(float, cells[1:4])
    assert factor == pytest.approx(theirs / ours, rel=0.6)
    # Both near the one optimum, so their errors are close.
    assert abs(float(cells[4].rstrip("%")) - float(cells[5].rstrip("%"))) < 10


def test_scaling(run_benchmark):
    out = run_benchmark("scaling.py", "--samples", "400", "--classes", "10", "--nonzeros", "8", "--repeats", "1")
    rows = [line.split() for line in out.splitlines() if line.strip()[:1].isdigit()]
    assert [[int(cell) for cell in row[:3]] for row in rows] == [[1000, 100, 40], [20000, 10, 40], [20000, 100, 8]]
    assert all(float(row[3]) > 0 and float(row[4]) > 0 and 1 <= int(row[6]) <= 100 for row in rows)
    # Three W of 20,000 features: two in float32, one in float64.
    assert [int(row[10]) for row in rows] == [31, 3, 31]


def test_scaling_rivals(run_benchmark):
    out = run_benchmark("scaling.py", "--rivals", "5", "--repeats", "1")
    rows = [line.split() for line in out.splitlines()]
    names = [row[0] for row in rows if row and row[0] in ("sdca", "pairwise", "pairwise-cache")]
    assert names == ["sdca", "pairwise", "pairwise-cache"]
    calls, hits = zip(*[map(float, row[3:]) for row in rows if row and row[0] in names])
    assert hits[:2] == (0, 0) and hits[2] > 0 and min(calls) > 0
    assert [row[0] for row in rows[-10:]] == [f"{at}:" for at in range(1, 11)]
    assert all(0 <= int(row[1]) <= 100 for row in rows[-10:])
