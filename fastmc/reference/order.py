"""Which sample is visited next, in plain Python: the mirror of `fastmc._order`."""


class Order:
    """Source of sample numbers for a pass."""

    def next(self, position):
        """The sample to visit at this position of the pass."""
        raise NotImplementedError

    def saw(self, i, gap):
        """Told the block gap that the visit found."""


class ListOrder(Order):
    """The samples of an array, in turn.

    Parameters
    ----------
    samples : ndarray of intp
        Sample numbers; their weights must be positive.
    """

    def __init__(self, samples):
        self.samples = samples.tolist()

    def next(self, position):
        return self.samples[position]


class GapOrder(Order):
    """Sample i with probability proportional to its last known gap (Osokin et al., section 3.1).

    A binary tree of sums over the samples: drawing and changing a gap cost O(log n). The random
    numbers come from outside, so that a run is repeatable.

    Parameters
    ----------
    samples : ndarray of intp
        The samples of positive weight.
    n_samples : int
    """

    def __init__(self, samples, n_samples):
        self.samples = samples.tolist()
        self.n_leaves = len(self.samples)
        self.base = 1
        while self.base < self.n_leaves:
            self.base *= 2
        self.tree = [0.0] * (2 * self.base)
        self.leaf = {i: at for at, i in enumerate(self.samples)}

    def refresh(self, gaps):
        """Take up all gaps anew; negative ones (rounding) count as zero."""
        for at, i in enumerate(self.samples):
            self.tree[self.base + at] = max(float(gaps[i]), 0.0)
        for at in range(self.base - 1, 0, -1):
            self.tree[at] = self.tree[2 * at] + self.tree[2 * at + 1]

    def draw(self, uniforms):
        """Set the random numbers in [0, 1), one for each position of the next pass."""
        self.uniforms = uniforms.tolist()

    def next(self, position):
        target = self.uniforms[position] * self.tree[1]
        if not self.tree[1] > 0.0:
            return self.samples[int(self.uniforms[position] * self.n_leaves)]
        node = 1
        while node < self.base:
            node *= 2
            # Rounding must not lead to an empty half.
            if target >= self.tree[node] and self.tree[node + 1] > 0.0:
                target -= self.tree[node]
                node += 1
        return self.samples[node - self.base]

    def saw(self, i, gap):
        node = self.base + self.leaf[i]
        self.tree[node] = max(gap, 0.0)
        while node > 1:
            node //= 2
            self.tree[node] = self.tree[2 * node] + self.tree[2 * node + 1]
