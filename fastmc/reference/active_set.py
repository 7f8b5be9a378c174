"""The corners that each sample's dual is made of, in plain Python: the mirror of `fastmc._active_set`.

alpha_i = omega_i sum_a w_a corner_a: weights w on the simplex over corners of the sample's domain
(of weight 1), the zero corner among them (Osokin et al., section 3.2). A corner is a list of
classes with values, its coordinates -value_c at the classes c and their sum at the own class,
compared by content. Corners of weight zero stay as a cache (section 3.3).
"""

ZERO = None


class Atom:
    """A corner: {class: value} in ascending order of the classes, its weight and last use."""

    def __init__(self, corner):
        self.corner, self.weight, self.stamp = corner, 0.0, 0


class ActiveSet:
    """Atoms of all samples; the zero corner is kept apart and written ZERO.

    Parameters
    ----------
    n_samples : int
    slot : int
        Most classes that a corner can name.
    cache_size : int
        Corners kept per sample, those in use included; those in use are never evicted.
    """

    def __init__(self, n_samples, slot, cache_size=0):
        self.n_samples, self.slot, self.cache_size = n_samples, slot, cache_size
        self.atoms = [[] for _ in range(n_samples)]
        self.zero_weight = [1.0] * n_samples
        self.clock = 0

    def reserve(self, extra):
        """The kernel's pool grows here; lists need nothing."""

    def start_from(self, dual, label, weight):
        """Make each row of a feasible dual the one atom of its sample."""
        for i, y in enumerate(label.tolist()):
            if weight[i] > 0.0 and dual[i].any():
                atom = self.put(i, (dual[i] / weight[i]).tolist(), y)
                # In this order: a row that underflows to nothing is the zero corner.
                self.zero_weight[i] = 0.0
                self.set_weight(i, atom, 1.0)

    def shrink_weights(self, factor):
        """All duals times `factor` <= 1: what the weights lose goes to the zero corner."""
        for i in range(self.n_samples):
            self.scale(i, factor)
            self.zero_weight[i] += 1.0 - factor

    def items(self, i):
        """Pairs ({class: value}, weight) of a sample, the zero corner first."""
        return [({}, self.zero_weight[i])] + [(a.corner, a.weight) for a in self.atoms[i]]

    def put(self, i, corner, label):
        """The atom with the content of a dense corner, found or added in front."""
        content = {j: -v for j, v in enumerate(corner) if j != label and v != 0.0}
        if not content:
            return ZERO
        self.clock += 1
        atom = next((a for a in self.atoms[i] if a.corner == content), None)
        if atom is None:
            atom = Atom(content)
            self.atoms[i].insert(0, atom)
        atom.stamp = self.clock
        return atom

    def height(self, atom, shifted, label):
        """<corner, c + st>."""
        total = 0.0
        if atom is not ZERO:
            for c, value in atom.corner.items():
                total += value * (shifted[label] - shifted[c])
        return total

    def add(self, atom, factor, delta, label):
        """delta += factor * corner."""
        if atom is not ZERO:
            for c, value in atom.corner.items():
                delta[c] -= factor * value
                delta[label] += factor * value

    def lowest(self, i, shifted, label):
        """The Frank-Wolfe corner among those at hand, the zero corner included."""
        best, least = ZERO, 0.0
        for atom in self.atoms[i]:
            height = self.height(atom, shifted, label)
            if height < least:
                best, least = atom, height
        return best

    def highest(self, i, shifted, label):
        """The away corner: the worst one in use."""
        best, most, found = ZERO, 0.0, self.zero_weight[i] > 0.0
        for atom in self.atoms[i]:
            if atom.weight > 0.0:
                height = self.height(atom, shifted, label)
                if not found or height > most:
                    best, most, found = atom, height, True
        return best

    def get_weight(self, i, atom):
        return self.zero_weight[i] if atom is ZERO else atom.weight

    def set_weight(self, i, atom, weight):
        if atom is ZERO:
            self.zero_weight[i] = weight
        else:
            atom.weight = weight

    def scale(self, i, factor):
        self.zero_weight[i] *= factor
        for atom in self.atoms[i]:
            atom.weight *= factor

    def tidy(self, i, normalise):
        """Bring the weights back to sum one; evict the longest unused corners over cache_size."""
        if normalise:
            total = self.zero_weight[i]
            for atom in self.atoms[i]:
                total += atom.weight
            # By division: a corner that is left alone gets exactly one.
            self.zero_weight[i] /= total
            for atom in self.atoms[i]:
                atom.weight /= total
        while len(self.atoms[i]) > self.cache_size:
            unused = [a for a in self.atoms[i] if a.weight == 0.0]
            if not unused:
                return
            self.atoms[i].remove(min(unused, key=lambda a: a.stamp))

    def point(self, i, weight, label, n_classes):
        """alpha_i = omega_i sum_a w_a corner_a."""
        alpha = [0.0] * n_classes
        for atom in self.atoms[i]:
            self.add(atom, weight * atom.weight, alpha, label)
        return alpha

    def mark(self, i, marked):
        """Set marked[c] for the classes of all corners at hand."""
        for atom in self.atoms[i]:
            for c in atom.corner:
                marked[c] = True
