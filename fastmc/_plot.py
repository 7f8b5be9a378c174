"""Pictures of training runs, regularization paths and predictions: all that uses matplotlib.

Lines differ by marker and dashes, not by colour alone. Figures are made without pyplot, so nothing
is left in a global state and no display is needed.
"""
import os

import numpy as np

from fastmc._files import replacing
from fastmc._reports import label_text

KINDS = ("eps", "jpg", "pdf", "png", "ps", "svg", "tif", "webp")
# Dark to light, so that the order survives a black-and-white print.
COLOURS = ("#000000", "#00518c", "#b5431a", "#4dab74", "#a6a6a6")
# As many as have no common factor with the colours: a pair comes back after 35 runs.
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
# Up to here each point has its marker; longer lines have some, evenly spaced.
FEW = 20
# Values of k, and classes of a confusion matrix, in a picture of predictions.
MOST_RANKS, MOST_CLASSES = 20, 10
# Certificates drawn between two breakpoints of a path.
BETWEEN = 3


def picture_kind(path):
    """The format that the name of a picture asks for.

    Raises
    ------
    ValueError
        If it ends in none that is known.
    ImportError
        If matplotlib is missing.
    """
    name = os.fsdecode(path)
    kind = os.path.splitext(name)[1][1:].lower()
    if kind not in KINDS:
        raise ValueError(f"{name}: the name of a picture must end in one of "
                         f"{', '.join('.' + kind for kind in KINDS)}")
    new_figure(1, 1)
    return kind


def new_figure(width, height):
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError("a picture needs matplotlib: pip install 'fastmc[plot]'") from None
    return Figure(figsize=(width, height), layout="constrained")


def plot_histories(histories, path=None):
    """Duality gap and objectives of training runs against passes and seconds, on log scales.

    Parameters
    ----------
    histories : History, or mapping from label (not "gap") to History
    path : str or None
        Write a picture there, in the format of its extension; None returns the figure alone.

    Returns
    -------
    matplotlib.figure.Figure
    """
    kind = None if path is None else picture_kind(path)
    figure = new_figure(9, 6.5)
    from matplotlib.ticker import NullFormatter

    runs = {"": histories} if "gap" in histories else histories
    grid = figure.subplots(2, 2, sharex="col", sharey="row")
    for (gaps, objectives), unit in zip(grid.T, ("passes", "seconds")):
        for number, (label, run) in enumerate(runs.items()):
            draw(gaps, run[unit], run["gap"], number, label=label)
            draw(objectives, run[unit], run["primal"], number)
            draw(objectives, run[unit], run["dual"], number, linestyle="--", filled=False)
        if has_points(objectives):
            started_from_a_model = any(0 in run[unit] for run in runs.values())
            objectives.set_xscale("symlog" if started_from_a_model else "log")
            # Labels between the decades would overlap.
            objectives.xaxis.set_minor_formatter(NullFormatter())
    name_axes(grid[:, 0], ("duality gap", "objective"), "passes over the data")
    name_axes(grid[:, 1], ("", ""), "time (seconds)")
    for axes in grid[:, 0]:
        axes.set_yscale("log" if has_points(axes) else "linear")
    keys = [line_key("primal"), line_key("dual", linestyle="--", filled=False)]
    if len(runs) > 1:
        keys += grid[0, 0].lines
    return finish(figure, keys, path, kind)


def plot_path(path_object, path=None):
    """Objective, certified gap and validation errors of a regularization path against lambda.

    Parameters
    ----------
    path_object : RegularizationPath
    path : str or None
        Write a picture there, in the format of its extension; None returns the figure alone.

    Returns
    -------
    matplotlib.figure.Figure
    """
    kind = None if path is None else picture_kind(path)
    has_errors = path_object.top1_error is not None
    figure = new_figure(8, 8.5 if has_errors else 6)
    grid = figure.subplots(2 + has_errors, sharex=True)
    lams = path_object.served(BETWEEN)
    primal, dual, _, relative_gap = np.array([path_object.certificate_at(lam) for lam in lams]).T
    draw(grid[0], lams, primal, 0, label="primal")
    draw(grid[0], lams, dual, 1, linestyle="--", filled=False, label="dual")
    grid[0].set_yscale("log")
    # The teeth tell where the breakpoints are; markers would hide them.
    grid[1].plot(lams, relative_gap, color=COLOURS[0], linewidth=0.8, label="certified gap")
    grid[1].axhline(path_object.eps, color=COLOURS[2], linestyle="--", label="eps")
    grid[1].set_ylim(0, 1.4 * path_object.eps)
    names = ["objective", "relative gap"]
    if has_errors:
        draw_errors(grid[2], path_object)
        names.append("validation error (%)")
    name_axes(grid, names, r"regularisation $\lambda$")
    for axes in grid:
        axes.legend(ncols=2, loc="upper right" if axes is grid[1] else "best")
    if lams[0] / lams[-1] < 1.01:
        grid[0].set_xlim(lams[-1] / 2, lams[0] * 2)  # a single point has no width of its own
    grid[0].set_xscale("log")
    grid[0].invert_xaxis()
    n_samples = 1.0 / (path_object.lams[0] * path_object.C[0])
    upper = grid[0].secondary_xaxis("top", functions=(lambda lam: swap(lam, n_samples),) * 2)
    upper.set_xlabel(r"$C = 1 / (\lambda n)$")
    return finish(figure, [], path, kind)


def plot_predictions(own, predicted, before, classes, path=None):
    """Top-k error against k, and how often the most confused classes are taken for one another.

    Parameters
    ----------
    own, predicted : ndarray, shape (n_samples,)
        Positions in `classes` of the own label, -1 for none, and of the best ranked one.
    before : ndarray, shape (n_samples,)
        How many classes are ranked before the own one.
    classes : ndarray, shape (n_classes,)
    path : str or None
        Write a picture there, in the format of its extension; None returns the figure alone.

    Returns
    -------
    matplotlib.figure.Figure
    """
    kind = None if path is None else picture_kind(path)
    figure = new_figure(11, 5.5)
    error, confusion = figure.subplots(1, 2, width_ratios=(5, 6))
    draw_topk_error(error, before, len(classes))
    shown = most_confused(own, predicted)
    counts = np.array([[np.sum((own == c) & (predicted == other)) for other in shown] for c in shown])
    draw_confusion(confusion, counts, [label_text(label) for label in classes[shown].tolist()])
    return finish(figure, [], path, kind)


def draw_topk_error(axes, before, n_classes):
    ranks = np.arange(1, min(n_classes, MOST_RANKS) + 1)
    percent = np.array([100.0 * np.mean(before >= k) for k in ranks])
    draw(axes, ranks, percent, 0, log=False)
    name_axes([axes], ["top-k error (%)"], "k")
    axes.set_ylim(0, max(1.05 * percent.max(), 1.0))
    axes.xaxis.get_major_locator().set_params(integer=True)
    told = "\n".join(f"top-{k}: {percent[k - 1]:.3g} %" for k in (1, 2, 3, 5, 10) if k <= len(ranks))
    axes.text(0.97, 0.97, told, ha="right", va="top", transform=axes.transAxes,
              bbox={"facecolor": "white", "edgecolor": "0.8"})


def most_confused(own, predicted):
    """Classes of the pairs that are confused most often, either way, these first; at most MOST_CLASSES."""
    wrong = (predicted != own) & (own >= 0)
    pairs = np.sort(np.column_stack([own[wrong], predicted[wrong]]), axis=1)
    pairs, counts = np.unique(pairs, axis=0, return_counts=True)
    chosen = []
    for pair in pairs[np.argsort(-counts, kind="stable")].tolist():
        new = [c for c in pair if c not in chosen]
        if len(chosen) + len(new) <= MOST_CLASSES:
            chosen += new
    return chosen


def draw_confusion(axes, counts, names):
    """Counts, the darker the more wrong ones; the right ones, on the diagonal, are hatched."""
    if not names:
        axes.set_axis_off()
        axes.text(0.5, 0.5, "no class is taken for another", ha="center", transform=axes.transAxes)
        return
    wrong = np.where(np.eye(len(names), dtype=bool), 0, counts)
    axes.imshow(wrong, cmap="Greys", vmin=0, vmax=1.5 * max(1, wrong.max()))
    for (row, column), count in np.ndenumerate(counts):
        if row == column:
            axes.add_patch(hatched(row))
        if count:
            dark = row != column and count > 0.9 * wrong.max()
            axes.text(column, row, str(count), ha="center", va="center", fontsize=8,
                      color="white" if dark else "black",
                      bbox={"facecolor": "white", "edgecolor": "none", "pad": 1} if row == column else None)
    short = [name if len(name) <= 16 else name[:15] + "\N{HORIZONTAL ELLIPSIS}" for name in names]
    axes.set_xticks(range(len(names)), short, rotation=45, ha="right", rotation_mode="anchor",
                    parse_math=False)
    axes.set_yticks(range(len(names)), short, parse_math=False)
    axes.set_xlabel("predicted class")
    axes.set_ylabel("own class")
    axes.set_title("number of samples, most confused classes first", fontsize="medium")


def hatched(at):
    """A cell of the diagonal."""
    from matplotlib.patches import Rectangle
    return Rectangle((at - 0.5, at - 0.5), 1, 1, facecolor="white", edgecolor="0.75", hatch="///",
                     linewidth=0)


def swap(value, n_samples):
    """C for lambda and lambda for C."""
    with np.errstate(divide="ignore"):
        return 1.0 / (np.asarray(value) * n_samples)


def draw_errors(axes, path_object):
    """Steps: the model of a breakpoint serves down to the next one."""
    lams = np.append(path_object.lams, path_object.lam_min)
    kinds = [("top-1", path_object.top1_error), (f"top-{path_object.k}", path_object.topk_error)]
    for number, (name, error) in enumerate(kinds[: 1 + (path_object.k > 1)]):
        percent = 100.0 * np.append(error, error[-1])
        draw(axes, lams, percent, number, linestyle=("-", "--")[number], filled=number == 0,
             label=f"{name} (best {percent.min():.3g} %)", drawstyle="steps-post", log=False)
    axes.set_ylim(bottom=0)


def draw(axes, x, y, number, filled=True, log=True, **look):
    """A line in the colour and with the marker of a run; a log scale has no place for y <= 0."""
    if log:
        x, y = x[y > 0], y[y > 0]
    colour = COLOURS[number % len(COLOURS)]
    # Runs begin their markers at places of their own, so that lines that meet stay apart.
    every = None if len(x) <= FEW else (0.1 * (number % 5) / 5, 0.1)
    axes.plot(x, y, color=colour, marker=MARKERS[number % len(MARKERS)], markersize=5,
              markerfacecolor=colour if filled else "white", markevery=every, linewidth=1.2, **look)


def has_points(axes):
    """Without any, matplotlib refuses a log scale."""
    return any(len(line.get_xdata()) for line in axes.lines)


def line_key(label, linestyle="-", filled=True):
    """What a legend shows for a kind of line, whatever its run."""
    from matplotlib.lines import Line2D
    return Line2D([], [], color=COLOURS[0], linestyle=linestyle, marker="o", markersize=5,
                  markerfacecolor=COLOURS[0] if filled else "white", label=label)


def name_axes(column, names, below):
    for axes, name in zip(column, names):
        axes.set_ylabel(name)
        axes.grid(color="0.9", linewidth=0.6)
        axes.set_axisbelow(True)
    column[-1].set_xlabel(below)


def finish(figure, keys, path, kind):
    figure.align_ylabels()
    if keys:
        figure.legend(handles=keys, loc="outside upper center", ncols=4)
    if path is not None:
        with replacing(path, "wb") as file:
            figure.savefig(file, format=kind, dpi=150)
    return figure
