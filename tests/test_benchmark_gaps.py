"""The experiments of Osokin et al. run, count what they should, and obey weak duality."""
import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="matplotlib draws the pictures")
# Rows of the made-up training set.
N = 140


def experiment(run_benchmark, read_results, tmp_path, command, *options):
    """Rows of an experiment; checked are its table, its picture and weak duality across all rows."""
    out = run_benchmark("minding_the_gaps.py", command, "--data", "made_sparse", "--out", str(tmp_path),
                        *options)
    table = (tmp_path / f"{command}.txt").read_text()
    assert table.startswith("command: ") and table.split("\n\n", 1)[1] in out
    assert (tmp_path / f"{command}.png").stat().st_size > 1000
    return read_results(tmp_path / f"{command}.csv")


def check_traces(rows):
    best = max(row["dual"] for row in rows)
    for row in rows:
        assert row["primal"] >= best * (1 - 1e-10)
        assert row["gap"] == pytest.approx(row["primal"] - row["dual"], abs=1e-14)
        assert row["gap_estimate"] > 0 and row["seconds"] >= 0
        # Every block step came from the oracle or from the cache; samples that rest take none.
        steps = row["core_effective_passes"] * N + row["cache_hits"]
        if row["solver"] == "sdca-permutation" and row["passes"] > 1:
            assert 0.5 * row["passes"] * N < steps <= row["passes"] * N
        else:
            assert steps == pytest.approx(row["passes"] * N)
        assert row["oracle_calls"] == pytest.approx(row["effective_passes"] * N)
    for name in {row["solver"] for row in rows}:
        mine = [row for row in rows if row["solver"] == name]
        # Line searches and exact steps never lower the dual.
        assert (np.diff([row["dual"] for row in mine]) >= -1e-12).all()
        assert (np.diff([row["passes"] for row in mine]) > 0).all()


def test_sampling(run_benchmark, read_results, tmp_path):
    rows = experiment(run_benchmark, read_results, tmp_path, "sampling", "--passes", "12")
    check_traces(rows)
    last = {row["solver"]: row["effective_passes"] for row in rows if row["passes"] == 12}
    assert last == {"uniform": 12, "gap 1": 24, "gap 5": 15, "gap 10": 14, "gap 100": 13, "gap never": 13}


def test_methods(run_benchmark, read_results, tmp_path):
    names = ["bcfw-uniform", "pairwise-gap", "pairwise-gap-cache", "sdca-permutation"]
    rows = experiment(run_benchmark, read_results, tmp_path, "methods", "--passes", "30", "--methods", *names)
    check_traces(rows)
    assert list(dict.fromkeys(row["solver"] for row in rows)) == names
    hits = {row["solver"]: row["cache_hits"] for row in rows}
    assert hits["pairwise-gap-cache"] > 0 == hits["pairwise-gap"]
    assert "bcfw-uniform / pairwise-gap " in (tmp_path / "methods.txt").read_text()


def test_cache(run_benchmark, read_results, tmp_path):
    rows = experiment(run_benchmark, read_results, tmp_path, "cache", "--passes", "6")
    check_traces(rows)
    assert len({row["solver"] for row in rows}) == 1 + 4 * 5
    assert all((row["cache_hits"] == 0) == (row["solver"] == "no cache")
               for row in rows if row["passes"] == 6 and "nu=1" not in row["solver"])


def test_path(run_benchmark, read_results, tmp_path):
    rows = experiment(run_benchmark, read_results, tmp_path, "path", "--repeats", "2", "--C-max", "1",
                      "--points", "4", "--kappas", "0.8")
    assert len(rows) == 2 * 3
    for row in rows:
        assert 0 <= row["worst_relative_gap"] <= (0.08 if row["solver"] == "path 0.8" else 0.1)
        twin = [other for other in rows if other["solver"] == row["solver"]]
        assert len({(other["solves"], other["passes"]) for other in twin}) == 1
    points = read_results(tmp_path / "path_points.csv")
    for name in ("cold grid", "warm grid", "path 0.8"):
        lams = [row["lam"] for row in points if row["solver"] == name]
        assert (np.diff(lams) < 0).all() and lams[-1] >= (1 - 1e-9) / N
    split = read_results(tmp_path / "path_split.csv")
    assert sum(row["share"] for row in split) == pytest.approx(1.0)
    assert [row["part"] for row in split][0] == "passes" and all(row["seconds"] >= -1e-3 for row in split)
