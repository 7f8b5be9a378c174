"""The trace of a training run: one row per certificate."""
import csv
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from fastmc._files import replacing
from fastmc._types import Array, FilePath

COLUMNS = ("passes", "oracle_calls", "cache_hits", "primal", "dual", "gap", "seconds")
COUNTS = COLUMNS[:3]


class History(Mapping[str, Array]):
    """Read-only mapping from column name to array, one entry per certificate.

    Columns: passes, oracle_calls, cache_hits (cumulative counts), primal, dual, gap (of the best
    primal and the best dual so far) and seconds (wall clock since training began). The last
    row is the final one.
    """

    def __init__(self, rows=()):
        self._rows = [tuple(row) for row in rows]

    def append(self, **row):
        self._rows.append(tuple(row[column] for column in COLUMNS))

    def __getitem__(self, column: str) -> Array:
        if column not in COLUMNS:
            raise KeyError(column)
        at = COLUMNS.index(column)
        dtype = np.int64 if column in COUNTS else np.float64
        return np.array([row[at] for row in self._rows], dtype=dtype)

    def __iter__(self) -> Iterator[str]:
        return iter(COLUMNS)

    def __len__(self) -> int:
        return len(COLUMNS)

    def __repr__(self):
        return f"History({len(self._rows)} certificates; columns {', '.join(COLUMNS)})"

    def to_csv(self, path: FilePath, more: Mapping[str, Sequence[Any]] | None = None) -> None:
        """Write the columns with a header line; the file appears whole or not at all.

        Parameters
        ----------
        path : str or os.PathLike
        more : mapping from column name to sequence, or None
            Further columns, each as long as those of the history.
        """
        more = more or {}
        with replacing(path, "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow([*COLUMNS, *more])
            writer.writerows([repr(v) if isinstance(v, float) else v for v in (*row, *rest)]
                             for row, *rest in zip(self._rows, *more.values(), strict=True))

    def plot(self, path: str | None = None, others: "Mapping[str, History] | None" = None) -> Any:
        """Gap and objectives against passes and seconds, on log scales (needs matplotlib).

        Parameters
        ----------
        path : str or None
            Write a picture there, in the format of its extension; None returns the figure alone.
        others : mapping from label to History, or None
            Runs to draw in the same picture; this one is labelled "this run".

        Returns
        -------
        matplotlib.figure.Figure
        """
        from fastmc._plot import plot_histories
        return plot_histories({"this run": self, **(others or {})}, path)
