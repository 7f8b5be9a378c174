"""The dual as short lists, in plain Python: the mirror of `fastmc._dual_rows`."""
import numpy as np


class DualRows:
    """beta_ij = -alpha_ij > 0 of the wrong classes, a list for each sample, now and the time before.

    alpha of the own class is the sum of the list. Few classes of a sample have beta > 0, so the
    lists take far less than n_samples x n_classes numbers; they grow when they have to.

    Parameters
    ----------
    n_samples, n_classes : int
    owner : DualRows or None
        Whose lists to share.
    """

    def __init__(self, n_samples, n_classes, owner=None):
        self.n_samples, self.n_classes = n_samples, n_classes
        self.now = [[] for _ in range(n_samples)] if owner is None else owner.now
        self.before = [[] for _ in range(n_samples)] if owner is None else owner.before

    def view(self):
        """The same lists with an open row of its own, for another thread."""
        return DualRows(self.n_samples, self.n_classes, self)

    def open(self, i, momentum):
        """Fetch row i: `classes`, `beta`, and `ahead` = beta + momentum (beta - beta before).

        The classes of both lists are there; those of the current list come first.
        """
        self.classes = [j for j, _ in self.now[i]]
        self.beta = [b for _, b in self.now[i]]
        self.ahead = list(self.beta)
        if momentum > 0.0:
            for k, b in enumerate(self.beta):
                self.ahead[k] += momentum * b
            slot = {j: k for k, j in enumerate(self.classes)}
            for j, b in self.before[i]:
                if j not in slot:
                    slot[j] = len(self.classes)
                    self.classes.append(j)
                    self.beta.append(0.0)
                    self.ahead.append(0.0)
                self.ahead[slot[j]] -= momentum * b

    def replace(self, i, classes, beta):
        """A new current list for row i; the current one becomes the one before."""
        self.before[i], self.now[i] = self.now[i], list(zip(classes, beta))

    def forget(self):
        """The lists before are the current ones: no momentum."""
        self.before[:] = [list(row) for row in self.now]

    def still(self, samples):
        """Whether both lists of each of these samples are the same, so that momentum moves nothing."""
        return np.array([dict(self.now[i]) == dict(self.before[i]) for i in samples], dtype=bool)

    def scale(self, factor):
        """The current beta times a factor; the next steps must be without momentum."""
        self.now = [[(j, factor * b) for j, b in row] for row in self.now]

    def set_rows(self, indptr, indices, values):
        """Take over the lists of a CSR matrix of beta."""
        for i in range(self.n_samples):
            row = slice(indptr[i], indptr[i + 1])
            self.now[i] = list(zip(indices[row].tolist(), values[row].tolist()))
        self.forget()

    def rows_of(self):
        """The current lists as CSR arrays indptr, indices, values."""
        indptr = np.concatenate([[0], np.cumsum([len(row) for row in self.now])])
        flat = [entry for row in self.now for entry in row]
        return (indptr.astype(np.int64), np.array([j for j, _ in flat], dtype=np.intc),
                np.array([b for _, b in flat], dtype=np.float64))
