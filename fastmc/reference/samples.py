"""The rows of a problem, in plain Python: the mirror of `fastmc._samples`."""
import numpy as np


class Samples:
    """A problem as the passes see it.

    Parameters
    ----------
    values : ndarray
        Dense: (n_samples, width). CSR: (nnz,). float32 or float64.
    indices, indptr : ndarray or None
        CSR column numbers (nnz,), int32 or int64, and row starts (n_samples + 1,), int64;
        None for a dense matrix.
    n_classes : int
    label : ndarray of int64, shape (n_samples,)
        Class numbers 0..n_classes-1.
    weight, sqnorm : ndarray of float64, shape (n_samples,)
        Sample weights omega_i and squared row norms ||x_i||^2, the bias included.
    width : int
        Columns of X.
    cost : ndarray of float64 or None
        (n_classes, n_classes), row = own class, or (n_samples, n_classes); None means 1 for
        every wrong class.
    bias : float
        Value of the constant feature appended to each row; 0 for none.
    stride : int or None
        Columns of W, n_classes or more: whole vectors. The columns past n_classes stay zero.
    """

    def __init__(self, values, indices, indptr, n_classes, label, weight, sqnorm, width,
                 cost=None, bias=0.0, stride=None):
        self.values, self.indices, self.indptr = values, indices, indptr
        self.n_samples, self.n_classes = len(label), n_classes
        self.stride = n_classes if stride is None else stride
        self.label, self.weight, self.sqnorm = label.tolist(), weight.tolist(), sqnorm.tolist()
        self.width, self.bias = width, bias
        self.n_features = width + (bias != 0.0)
        self.cost = None if cost is None else cost.tolist()
        self.cost_per_sample = cost is not None and cost.shape[0] != n_classes

    def load(self, i):
        """Fetch row i as Python floats `x` with their rows of W `feature`."""
        if self.indptr is None:
            self.x = [float(v) for v in self.values[i]]
            self.feature = list(range(self.width))
        else:
            start, stop = self.indptr[i], self.indptr[i + 1]
            self.x = [float(v) for v in self.values[start:stop]]
            self.feature = self.indices[start:stop].tolist()
        if self.bias != 0.0:
            self.x.append(self.bias)
            self.feature.append(self.width)

    def load_columns(self, i, first, last):
        """Fetch what row i has in the columns from `first` up to `last`, counted from `first`; the bias is the last."""
        self.load(i)
        kept = [(x, t - first) for x, t in zip(self.x, self.feature) if first <= t < last]
        self.x, self.feature = [x for x, _ in kept], [t for _, t in kept]

    def cut(self, columns):
        """Cut the rows of a CSR matrix up at some columns; where the parts begin, to be shared with others.

        Parameters
        ----------
        columns : sequence of int
            Ascending: a part begins at each of them.

        Returns
        -------
        ndarray of int64, shape (n_samples, len(columns) + 2)
            Places in `values`: the beginnings of the parts of a row, and its end.
        """
        places = np.empty((self.n_samples, len(columns) + 2), dtype=np.int64)
        for i in range(self.n_samples):
            start, stop = self.indptr[i], self.indptr[i + 1]
            places[i] = [start, *(start + np.searchsorted(self.indices[start:stop], columns)), stop]
        self.share_cuts(places)
        return places

    def share_cuts(self, places):
        """Take over what `cut` returned."""
        self.places, self.n_parts = places, places.shape[1] - 1

    def load_part(self, i, part):
        """Fetch one of the parts of row i; the bias is in the last."""
        start, stop = self.places[i, part], self.places[i, part + 1]
        self.x = [float(v) for v in self.values[start:stop]]
        self.feature = self.indices[start:stop].tolist()
        if self.bias != 0.0 and part == self.n_parts - 1:
            self.x.append(self.bias)
            self.feature.append(self.width)

    def scores(self, weights):
        """Scores s = W^T x of the loaded row in the precision of W, a list of `stride` numbers."""
        real = weights.dtype.type
        out = np.zeros(self.stride, real)
        for value, feature in zip(self.x, self.feature):
            # Element by element in the order of the non-zeros, as the kernel does.
            out += real(value) * weights[feature]
        return out.tolist() if real is np.float64 else list(out)

    def class_scores(self, weights, classes, out):
        """The scores of some classes alone, written into the list `out`."""
        for j in classes:
            out[j] = 0.0
        for value, feature in zip(self.x, self.feature):
            row = weights[feature]
            for j in classes:
                out[j] += value * float(row[j])

    def class_cost(self, i, j):
        """Cost of class j for sample i."""
        if j == self.label[i]:
            return 0.0
        if self.cost is None:
            return 1.0
        return self.cost[i if self.cost_per_sample else self.label[i]][j]

    def add_cost(self, i, scores):
        """Add the costs of sample i to its scores, in place, up to a number that is the same for all classes.

        No loss and no dual feels such a number. Of costs that are all 1 a single entry changes.
        """
        own = scores[self.label[i]]
        real = type(own)
        if self.cost is None:
            scores[self.label[i]] = own - real(1.0)
            return
        cost = self.cost[i if self.cost_per_sample else self.label[i]]
        for j in range(self.n_classes):
            scores[j] += real(cost[j])
        scores[self.label[i]] = own

    def update(self, coef, weights):
        """W += x coef^T for the loaded row, in place."""
        real = weights.dtype.type
        coef = np.array(coef, real)
        for value, feature in zip(self.x, self.feature):
            weights[feature] += real(value) * coef
