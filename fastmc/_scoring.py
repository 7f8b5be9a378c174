"""Data that a model is tried on: decision values block by block, and accuracy during training."""
import contextlib

import numpy as np

from fastmc._model import Model, own_ranks, positions
from fastmc._progress import Progress, say
from fastmc._reports import accuracies, watch_line

# Rows scored at a time.
BLOCK = 8192


def score_blocks(model, X, verbose, n_threads=1):
    """(rows, decision values) of some rows after the other."""
    with contextlib.closing(Progress(verbose, X.shape[0], "row")) as progress:
        for start in range(0, X.shape[0], BLOCK):
            rows = slice(start, min(start + BLOCK, X.shape[0]))
            yield rows, model.decision_function(X[rows], n_threads)
            progress.show("", steps=rows.stop - start)


class Watch:
    """A callback of fastmc.train that tells the accuracy on validation data and changes nothing.

    Parameters
    ----------
    X, y : validation data
    classes : ndarray
        Those of the training data, sorted.
    bias : float or None
        As in fastmc.train.
    k : int
        Of the top-k accuracy.
    every : bool
        Look after every pass and ask for its certificate, for a trace; else after passes 1, 3, 6, 10,
        16, ... which takes little time. The latter are printed in both cases.
    silent : bool
        Print nothing.
    """

    def __init__(self, X, y, classes, bias, k, every, silent):
        self.X, self.y, self.classes, self.bias, self.every = X, y, classes, bias or 0.0, every
        self.own = positions(y, classes)
        self.k, self.silent, self.next = min(k, len(classes)), silent, 1
        self.passes, self.rows = [], []

    def __call__(self, state):
        due = state.passes >= self.next
        if due:
            self.next = 1.5 * state.passes + 1
        if self.every:
            state.certificate
        if self.every or due:
            self.passes.append(state.passes)
            self.rows.append(self.measure(Model(state.weights, self.classes, bias=self.bias)))
        if due and not self.silent:
            say(watch_line(state.passes, self.k, self.rows[-1]))

    def measure(self, model):
        """Top-1 and top-k accuracy."""
        before = np.concatenate([own_ranks(scores, self.own[rows])
                                 for rows, scores in score_blocks(model, self.X, 0)])
        return [float(np.mean(before < k)) for k in (1, self.k)]

    def columns(self, model=None):
        """The accuracies by name; for a model, as many as its history has rows."""
        rows = [*self.rows]
        while model and len(rows) < len(model.history["passes"]):
            rows.append(self.measure(model))  # the last pass was broken off
        names = ("accuracy", f"top{self.k}_accuracy")[:min(self.k, 2)]
        return {name: [row[at] for row in rows] for at, name in enumerate(names)}

    def facts(self, model):
        """The accuracies of the trained model, and those on the way to it."""
        return {"n_samples": len(self.y), **accuracies(model.predict_topk(self.X, self.k), self.y),
                "history": {"passes": self.passes, **self.columns()}}
