"""Pictures: what is drawn, and how the files are written."""
import sys

import numpy as np
import pytest

import fastmc
from fastmc._history import History
from fastmc._model import Model
from fastmc._plot import KINDS, MOST_CLASSES, most_confused, plot_histories, plot_path

pytest.importorskip("matplotlib")

START = {"eps": b"%!PS", "jpg": b"\xff\xd8", "pdf": b"%PDF", "png": b"\x89PNG", "ps": b"%!PS",
         "svg": b"<?xml", "tif": b"II*\0", "webp": b"RIFF"}


def history(factor=1.0, first=1):
    """Three certificates; the gap of the last is 0, the dual of the first too."""
    run = History()
    for row, (primal, dual) in enumerate([(1.0, 0.0), (0.8, 0.6), (0.75, 0.75)]):
        run.append(passes=first + row, oracle_calls=0, cache_hits=0, primal=factor * primal,
                   dual=factor * dual, gap=factor * (primal - dual), seconds=0.5 * (row + 1))
    return run


@pytest.fixture(scope="module")
def paths():
    """A path without validation data and one with them."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 5)), rng.permutation(np.arange(60) % 4)
    options = {"loss": "topk", "k": 2, "eps": 0.05, "lam_min": 0.002}
    return (fastmc.path(X, y, **options),
            fastmc.path(X, y, **options, validation=(X[:20], y[:20])))


def points(line):
    return list(zip(line.get_xdata(), line.get_ydata()))


def texts(legend):
    return [text.get_text() for text in legend.get_texts()]


def test_one_history():
    figure = plot_histories(history())
    gap, gap_in_time, objective, objective_in_time = figure.axes
    assert [axes.get_ylabel() for axes in figure.axes] == ["duality gap", "", "objective", ""]
    assert objective.get_xlabel() == "passes over the data"
    assert objective_in_time.get_xlabel() == "time (seconds)"
    assert {(axes.get_xscale(), axes.get_yscale()) for axes in figure.axes} == {("log", "log")}
    # The values of 0 are left out.
    assert points(gap.lines[0]) == [(1, 1.0), (2, 0.8 - 0.6)]
    assert points(gap_in_time.lines[0]) == [(0.5, 1.0), (1.0, 0.8 - 0.6)]
    primal, dual = objective.lines
    assert points(primal) == [(1, 1.0), (2, 0.8), (3, 0.75)]
    assert points(dual) == [(2, 0.6), (3, 0.75)]
    assert (primal.get_linestyle(), dual.get_linestyle()) == ("-", "--")
    assert dual.get_markerfacecolor() == "white" != primal.get_markerfacecolor()
    assert texts(figure.legends[0]) == ["primal", "dual"]


def test_many_histories_look_different():
    names = [f"run {number}" for number in range(7)]
    figure = plot_histories({name: history(1 + at) for at, name in enumerate(names)})
    gap, _, objective, _ = figure.axes
    assert texts(figure.legends[0]) == ["primal", "dual", *names]
    assert [line.get_label() for line in gap.lines] == names
    assert [line.get_ydata()[0] for line in gap.lines] == [1, 2, 3, 4, 5, 6, 7]
    assert len({line.get_marker() for line in gap.lines}) == 7
    assert len(objective.lines) == 14
    for primal, dual in zip(objective.lines[::2], objective.lines[1::2]):
        assert (primal.get_marker(), primal.get_color()) == (dual.get_marker(), dual.get_color())


def test_history_draws_others_with_it(tmp_path):
    figure = history().plot(tmp_path / "x.png", others={"slow": history(2.0)})
    assert texts(figure.legends[0]) == ["primal", "dual", "this run", "slow"]
    assert [line.get_ydata()[0] for line in figure.axes[0].lines] == [1.0, 2.0]
    assert len(history().plot().axes[0].lines) == 1


def test_run_that_went_on_from_a_model_starts_at_pass_0():
    figure = plot_histories({"new": history(), "warm": history(first=0)})
    assert figure.axes[2].get_xscale() == "symlog" and figure.axes[3].get_xscale() == "log"
    assert points(figure.axes[0].lines[1])[0] == (0, 1.0)


def test_long_history_has_some_markers_only(tmp_path):
    run = History()
    for row in range(1, 301):
        run.append(passes=row, oracle_calls=0, cache_hits=0, primal=1 + 1 / row, dual=1.0,
                   gap=1 / row, seconds=float(row))
    figure = plot_histories(run, tmp_path / "x.png")
    assert len(figure.axes[0].lines[0].get_xdata()) == 300
    assert figure.axes[0].lines[0].get_markevery() == (0.0, 0.1)


@pytest.mark.parametrize("rows", [0, 1])
def test_history_of_hardly_anything(tmp_path, rows):
    run = History()
    for row in range(rows):
        run.append(passes=1, oracle_calls=1, cache_hits=0, primal=0.0, dual=0.0, gap=0.0,
                   seconds=0.1)
    plot_histories(run, tmp_path / "x.png")
    assert (tmp_path / "x.png").read_bytes().startswith(START["png"])


def test_history_of_a_training_run():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 4)), np.arange(30) % 3
    run = fastmc.train(X, y, callback=lambda state: state.certificate and False).history
    gap = run.plot().axes[0].lines[0]
    assert gap.get_xdata().tolist() == run["passes"].tolist()
    assert gap.get_ydata().tolist() == run["gap"].tolist()


def test_path_objective_and_gap(paths):
    path = paths[0]
    figure = plot_path(path)
    objective, gap = figure.axes
    assert (objective.get_ylabel(), gap.get_ylabel()) == ("objective", "relative gap")
    assert gap.get_xlabel() == r"regularisation $\lambda$"
    assert objective.get_xscale() == gap.get_xscale() == objective.get_yscale() == "log"
    assert gap.xaxis_inverted()
    assert texts(objective.get_legend()) == ["primal", "dual"]
    primal, dual = objective.lines
    for lam, *ends in zip(primal.get_xdata(), primal.get_ydata(), dual.get_ydata()):
        certificate = path.certificate_at(lam)
        assert ends == [certificate.primal, certificate.dual]


def test_path_gap_is_a_saw(paths):
    """Each stretch rises from its breakpoint to eps, in between too."""
    path = paths[0]
    tooth, bound = plot_path(path).axes[1].lines
    lams, gap = tooth.get_data()
    assert bound.get_ydata() == [path.eps, path.eps] and bound.get_linestyle() == "--"
    assert len(path) > 3 and len(lams) == 1 + 5 * len(path)
    assert (np.diff(lams) < 0).all() and lams[-1] == pytest.approx(path.lam_min)
    assert (gap <= path.eps * (1 + 1e-9)).all()
    teeth = gap[1:].reshape(len(path), 5)
    assert lams[1::5].tolist() == path.lams.tolist()
    assert teeth[:, 0].tolist() == path.relative_gap.tolist()
    assert (np.diff(teeth) > 0).all()
    assert teeth[:-1, -1] == pytest.approx(path.eps)


def test_upper_axis_of_a_path_is_C(paths):
    path = paths[0]
    figure = plot_path(path)
    figure.draw_without_rendering()
    upper, = figure.axes[0].child_axes
    assert upper.get_xlabel() == r"$C = 1 / (\lambda n)$"
    for lam, C in zip(path.lams, path.C):
        at = figure.axes[0].transData.transform((lam, 1.0))[0]
        assert upper.transData.transform((C, 0.5))[0] == pytest.approx(at)


def test_path_errors_are_steps(paths):
    path = paths[1]
    figure = plot_path(path)
    assert len(figure.axes) == 3
    errors = figure.axes[2]
    assert errors.get_ylabel() == "validation error (%)" and errors.get_yscale() == "linear"
    for line, values in zip(errors.lines, (path.top1_error, path.topk_error)):
        assert line.get_xdata().tolist() == [*path.lams, path.lam_min]
        assert line.get_ydata().tolist() == (100 * np.append(values, values[-1])).tolist()
        assert line.get_drawstyle() == "steps-post"
    assert texts(errors.get_legend()) == [f"top-1 (best {100 * path.top1_error.min():.3g} %)",
                                          f"top-2 (best {100 * path.topk_error.min():.3g} %)"]


def test_two_classes_have_one_error_and_it_may_be_zero():
    X, y = np.array([[1.0], [-1.0]] * 5), [1, 2] * 5
    path = fastmc.path(X, y, lam_min=0.1, validation=(X, y))
    errors = plot_path(path).axes[2]
    assert len(errors.lines) == 1 and set(errors.lines[0].get_ydata()) == {0.0}


def test_path_that_ends_above_lambda_max(tmp_path):
    rng = np.random.default_rng(0)
    path = fastmc.path(rng.normal(size=(20, 3)), np.arange(20) % 2, lam_min=1e4)
    figure = path.plot(tmp_path / "x.png")
    (lam, primal), = points(figure.axes[0].lines[0])
    assert lam == np.nextafter(path.lams[0], np.inf) and path.lams.tolist() == [1e4]
    assert primal == path.certificate_at(lam).primal


@pytest.fixture
def predictions():
    """A model that scores the features themselves: X, y and the model of 4 classes."""
    X = np.eye(4)[[0] * 5 + [1] * 6 + [2] * 3 + [3] * 2] + 0.1 * np.arange(4)[::-1]
    y = np.array(["a"] * 3 + ["b"] * 2 + ["b"] * 5 + ["d"] + ["c"] * 2 + ["b"] + ["d", "e"])
    return X, y, Model(np.eye(4), ["a", "b", "c", "d"])


def test_topk_error_against_k(predictions):
    X, y, model = predictions
    error, _ = model.plot(X, y).axes
    assert (error.get_xlabel(), error.get_ylabel()) == ("k", "top-k error (%)")
    line, = error.lines
    assert line.get_xdata().tolist() == [1, 2, 3, 4]
    assert line.get_ydata().tolist() == [100 * model.topk_error(X, y, k) for k in (1, 2, 3, 4)]
    assert line.get_ydata()[-1] == 100 / 16  # label e is no class
    assert error.texts[0].get_text() == "top-1: 31.2 %\ntop-2: 18.8 %\ntop-3: 12.5 %"
    assert error.get_ylim()[0] == 0.0 and error.get_ylim()[1] > line.get_ydata().max()


def test_confusion_of_the_most_confused_classes(predictions):
    X, y, model = predictions
    axes = model.plot(X, y).axes[1]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("predicted class", "own class")
    # b is taken for a twice; b for c and d for b once.
    names = [label.get_text() for label in axes.get_xticklabels()]
    assert names == [label.get_text() for label in axes.get_yticklabels()] == ["a", "b", "c", "d"]
    assert axes.images[0].get_array().tolist() == [[0, 0, 0, 0], [2, 0, 1, 0], [0, 0, 0, 0], [0, 1, 0, 0]]
    told = {tuple(text.get_position()): text.get_text() for text in axes.texts}
    assert told == {(0, 0): "3", (0, 1): "2", (1, 1): "5", (2, 1): "1", (2, 2): "2", (1, 3): "1", (3, 3): "1"}
    assert [patch.get_hatch() for patch in axes.patches] == ["///"] * 4
    assert [patch.get_xy() for patch in axes.patches] == [(c - 0.5, c - 0.5) for c in range(4)]


def test_only_the_most_confused_pairs_are_drawn():
    rng = np.random.default_rng(0)
    own, predicted = rng.integers(0, 30, size=(2, 5000))
    own[:60], predicted[:60] = 17, 4
    own[60:100], predicted[60:100] = 4, 9
    chosen = most_confused(own, predicted)
    assert chosen[:3] == [4, 17, 9] and len(chosen) <= MOST_CLASSES == len(set(chosen))
    assert most_confused(np.array([0, 1, -1]), np.array([0, 1, 1])) == []


@pytest.mark.parametrize("names", [["$a^$", "_b"], ["x" * 99, "y"], [1.0, 2.5], [False, True]])
def test_any_class_has_a_name(tmp_path, names):
    model = Model([[1.0, -1.0]], names)
    figure = model.plot([[1.0], [2.0]], np.array(names)[[1, 0]], tmp_path / "x.png")
    shown = [label.get_text() for label in figure.axes[1].get_xticklabels()]
    assert shown == {"$a^$": ["$a^$", "_b"], 1.0: ["1", "2.5"], False: ["False", "True"]}.get(
        names[0], ["x" * 15 + "\N{HORIZONTAL ELLIPSIS}", "y"])


def test_predictions_without_a_fault(tmp_path):
    error, confusion = Model([[1.0, -1.0]], [1, 2]).plot([[1.0], [-1.0]], [1, 2], tmp_path / "x.png").axes
    assert error.lines[0].get_ydata().tolist() == [0.0, 0.0] and error.get_ylim() == (0.0, 1.0)
    assert [text.get_text() for text in confusion.texts] == ["no class is taken for another"]
    assert (tmp_path / "x.png").read_bytes().startswith(START["png"])


def test_no_predictions():
    with pytest.raises(ValueError, match="there are no rows to score"):
        Model([[1.0, -1.0]], [1, 2]).plot(np.zeros((0, 1)), [])


@pytest.mark.parametrize("kind", KINDS)
def test_format_is_that_of_the_name(tmp_path, kind):
    history().plot(tmp_path / f"x.{kind}")
    assert (tmp_path / f"x.{kind}").read_bytes().startswith(START[kind])
    assert len(list(tmp_path.iterdir())) == 1


def test_path_is_written(tmp_path, paths):
    paths[1].plot(str(tmp_path / "x.PNG"))
    assert (tmp_path / "x.PNG").read_bytes().startswith(START["png"])


@pytest.mark.parametrize("name", ["x.foo", "x", "x.", ".png", "png", "x.csv"])
def test_unknown_extension(tmp_path, monkeypatch, name):
    monkeypatch.setattr("fastmc._plot.draw", None)  # told before anything is drawn
    for plot in (history().plot, lambda path: plot_path(None, path)):
        with pytest.raises(ValueError, match=r"the name of a picture must end in one of \.eps, "
                                             r"\.jpg, .*\.webp") as error:
            plot(tmp_path / name)
        assert str(tmp_path / name) in str(error.value)
    assert list(tmp_path.iterdir()) == []


def test_file_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    (tmp_path / "x.png").write_bytes(b"old")

    def savefig(self, file, **options):
        file.write(b"half")
        raise OSError("no space")

    monkeypatch.setattr("matplotlib.figure.Figure.savefig", savefig)
    with pytest.raises(OSError, match="no space"):
        history().plot(tmp_path / "x.png")
    assert [path.name for path in tmp_path.iterdir()] == ["x.png"]
    assert (tmp_path / "x.png").read_bytes() == b"old"


def test_without_matplotlib(tmp_path, monkeypatch, paths):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    for plot in (history().plot, paths[0].plot):
        for args in ((), (tmp_path / "x.png",)):
            with pytest.raises(ImportError, match=r"pip install 'fastmc\[plot\]'"):
                plot(*args)
    assert list(tmp_path.iterdir()) == []


def test_pyplot_is_left_alone(tmp_path):
    """No figure is left behind in a global state, and no window system is asked for."""
    pyplot = pytest.importorskip("matplotlib.pyplot")
    before = pyplot.get_fignums()
    history().plot(tmp_path / "x.png")
    assert pyplot.get_fignums() == before
