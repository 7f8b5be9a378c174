"""The scripts in examples/ run, and print what they are there to show."""
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import fastmc

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"

pytest.importorskip("sklearn")


@pytest.fixture
def run(tmp_path):
    """A function that runs an example in an empty folder and returns what it prints."""
    def run_example(name, data=""):
        # The script must find the fastmc that is tested here, wherever it stands.
        environment = dict(os.environ, FASTMC_DATA=str(data), PYTHONPATH=str(Path(fastmc.__file__).parents[1]))
        done = subprocess.run([sys.executable, str(EXAMPLES / name)], env=environment, cwd=tmp_path,
                              capture_output=True, text=True, timeout=300)
        assert done.returncode == 0 and not done.stderr, done.stderr
        assert not list(tmp_path.iterdir())
        return done.stdout
    return run_example


def numbers(pattern, text):
    """The numbers that the groups of the pattern find, as one list."""
    found = re.findall(pattern, text)
    assert found, f"{pattern} is not in: {text}"
    return [float(number) for groups in found for number in (groups if isinstance(groups, tuple) else [groups])]


def test_there_are_no_other_examples():
    tested = re.findall(r'run\("(\w+\.py)"', Path(__file__).read_text())
    assert sorted(set(tested)) == sorted(path.name for path in EXAMPLES.glob("*.py"))


def test_intents_on_the_embedded_data(run):
    text = run("intents.py")
    first, among = numbers(r"right label (?:first|among five): ([\d.]+)%", text)
    assert 85 < first < 90 and 95 < among < 98
    rows = re.findall(r"is of (.+); suggested: (.+)", text)
    assert len(rows) == 3 and all(len(set(found.split(", "))) == 5 for _, found in rows)


def test_intents_on_raw_text(run, data_dir):
    text = run("intents.py", data_dir)
    first, among = numbers(r"right label (?:first|among five): ([\d.]+)%", text)
    assert 87 < first < 91 and 97 < among < 100
    assert "I think my child used my card while I wasn't home.\n    is of compromised_card;" in text


def test_crammer_singer(run):
    text = run("crammer_singer.py")
    theirs, ours = numbers(r"SVC: accuracy ([\d.]+)", text)
    assert theirs == ours > 0.95
    assert numbers(r"difference of the weights: (\S+)", text)[0] < 1e-3
    objective, gap = numbers(r"objective ([\d.]+), at most (\S+) above", text)
    assert gap <= 1e-5 * objective


def test_choosing_C(run):
    text = run("choosing_C.py")
    Cs, scores = numbers(r"C = (\S+) +cross-", text), numbers(r"cross-validated accuracy ([\d.]+)", text)
    chosen, test_score = numbers(r"chosen: C = ([\d.]+), test accuracy ([\d.]+)", text)
    assert Cs == [0.01, 0.03, 0.1, 0.3, 1.0] and chosen == Cs[scores.index(max(scores))]
    assert test_score > 0.95
    assert numbers(r"largest relative gap ([\d.]+)", text)[0] <= 0.05


def test_costs(run):
    equal, given = re.findall(r"costs: .*", run("costs.py"))
    pattern = r"(\d+) missed, (\d+) false alarms, mean cost ([\d.]+)"
    (missed, alarms, cost), (fewer, more, less) = numbers(pattern, equal), numbers(pattern, given)
    assert fewer < missed and more > alarms and less < 0.7 * cost
    assert less == pytest.approx((10 * fewer + more) / 569, abs=5e-4)


def test_boosting(run):
    text = run("boosting.py")
    scores = numbers(r"test accuracy ([\d.]+)", text)
    assert len(scores) == 3 and scores == sorted(scores) and scores[-1] > 0.93
    objective, bound = numbers(r"objective ([\d.]+), bound over all stumps ([\d.]+)", text)
    assert 0.98 * objective < bound <= objective


def test_certificate(run):
    text = run("certificate.py")
    bounds = numbers(r"optimum between ([\d.]+) and ([\d.]+)", text)
    lower, upper = bounds[::2], bounds[1::2]
    assert lower == sorted(lower) and upper == sorted(upper, reverse=True) and lower[-1] < upper[-1]
    assert all(gap <= tol for tol, gap in zip((1e-1, 1e-2, 1e-3, 1e-4), numbers(r"relative gap ([^;]+)", text)))
    final = numbers(r"([\d.]+)% of the test labels are final", text)
    assert final == sorted(final) and final[-1] > 20
