"""The search for the best decision stumps in plain Python: the mirror of `fastmc._stumps`.

A stump h(x) = p (+1 if x_f > threshold else -1), p = +1 or -1, has for weights u the edge
sum_i u_i h(x_i). With T the sum of all u_i and P that of the rows at or below the threshold,

    edge = p (T - 2 P) = 2 p (T/2 - P).

Twice |T/2 - P| is thus the better edge of the two polarities. Counting S, the rows above the
threshold, from the other end gives the same: T/2 - P = S - T/2. So each feature is walked from
both ends towards its most frequent value, whose rows are never touched: the walk starts at T/2
and subtracts the rows it passes. On sparse data that value is zero as a rule, and a sweep over
all features costs one addition for every non-zero and class.
"""


class Bins:
    """Rows grouped by feature and value.

    Bin g holds the rows `rows[row_start[g]:row_start[g + 1]]`, in order, which have one value in
    one feature. Feature f has the bins `bin_start[f]` to `bin_start[f + 1] - 1`, by rising value;
    bin `usual[f]` lists no rows: it has all rows that the others have not. A split is named by
    its `last` bin, the highest one that is not above the threshold.

    Parameters
    ----------
    n_samples : int
    rows : ndarray of int32
    row_start : ndarray of int64, shape (n_bins + 1,)
    bin_start : ndarray of int64, shape (n_features + 1,)
    usual : ndarray of int64, shape (n_features,)
    """

    def __init__(self, n_samples, rows, row_start, bin_start, usual):
        self.n_samples = n_samples
        self.rows = rows
        self.row_start = row_start
        self.bin_start = bin_start
        self.usual = usual

    def sweep(self, U, half, top, feature, start, stop):
        """Best splits of features start..stop-1 for all columns of U at once.

        Parameters
        ----------
        U : ndarray, shape (n_samples, K)
        half : ndarray, shape (K,)
            T/2, half the column sums of U.
        top, feature : ndarray, shape (K,)
            The largest |T/2 - P| so far and its feature; replaced where a feature has a larger one.
        start, stop : int
        """
        m = U.shape[1]
        reached = top.tolist()
        for f in range(start, stop):
            for side in self._sides(f):
                rest = half.tolist()
                for g in side:
                    for i in self._rows(g):
                        for c in range(m):
                            rest[c] -= float(U[i, c])
                    for c in range(m):
                        reached[c] = max(reached[c], abs(rest[c]))
            for c in range(m):
                if reached[c] > top[c]:
                    top[c] = reached[c]
                    feature[c] = f

    def split(self, U, half, top, feature, last, polarity):
        """The lowest split of the feature that `sweep` found, and its polarity, for each column.

        The same subtractions as in the sweep, so |T/2 - P| takes the value `top` again.

        Parameters
        ----------
        U, half, top, feature
            As `sweep` left them; features must not be -1.
        last, polarity : ndarray, shape (K,)
            Overwritten.
        """
        for c in range(U.shape[1]):
            left, right = self._sides(feature[c])
            last[c] = -1
            rest = float(half[c])
            for g in left:
                rest = self._take_column(U, c, g, rest)
                if abs(rest) == top[c]:
                    last[c] = g
                    polarity[c] = 1 if rest >= 0.0 else -1
                    break
            if last[c] >= 0:
                continue
            # From the right the lowest split comes last.
            rest = float(half[c])
            for g in right:
                rest = self._take_column(U, c, g, rest)
                if abs(rest) == top[c]:
                    last[c] = g - 1
                    polarity[c] = 1 if rest <= 0.0 else -1

    def outputs(self, feature, last, polarity, out):
        """Outputs h(x_i) of the stumps on all rows, into `out`, shape (n_samples, L)."""
        for j in range(out.shape[1]):
            f = feature[j]
            low = -polarity[j]
            out[:, j] = low if self.usual[f] <= last[j] else -low
            for g in range(self.bin_start[f], self.bin_start[f + 1]):
                for i in self._rows(g):
                    out[i, j] = low if g <= last[j] else -low

    def _sides(self, f):
        """Bins below the usual one, upwards, and bins above it, downwards."""
        return (range(self.bin_start[f], self.usual[f]),
                range(self.bin_start[f + 1] - 1, self.usual[f], -1))

    def _rows(self, g):
        return self.rows[self.row_start[g]:self.row_start[g + 1]]

    def _take_column(self, U, c, g, rest):
        for i in self._rows(g):
            rest -= float(U[i, c])
        return rest


def edges(U, out, edge):
    """sum_i U[i, c] out[i, c] into `edge`, row after row."""
    edge[:] = 0.0
    for i in range(U.shape[0]):
        for c in range(U.shape[1]):
            edge[c] += U[i, c] * out[i, c]
