"""The two loss families in plain Python: the mirror of `fastmc._losses`.

A loss sees the scores of one sample with the costs already added, a_j = s_j + c_j
(c_y = 0 for the own class y), never X. The margins are h = a - a_y, so h_y = 0;
h_(1) >= ... >= h_(m) are the margins sorted. With weights rho_1 >= ... >= rho_m = 0,

    Usunier type   Phi = sum_j rho_j max(0, h_(j))
    top-k type     Phi = max(0, sum_j rho_j h_(j))

(Tajima et al., equations 2.2 to 2.8; max hinge is rho = (1, 0, ..)). In the top-k type the own
class can hold one of the ranks, unless own_class is False, when the sum runs over the
other classes alone.

Both are Phi = max over beta in B of <beta, h>, B convex. The dual of a sample is
alpha = (sum beta) e_y - beta with beta in omega B: alpha_j <= 0 for the wrong classes, and
the entries sum to zero. Everything a solver needs follows from two operations:

oracle
    Phi and the corner of B where the maximum is taken (Tajima et al., equation 2.19).
project
    The Euclidean projection onto the set of feasible alpha. In beta, with b_j = -v_j and
    a = v_y for the target v,

        minimise 1/2 ||beta - b||^2 + 1/2 (sum beta - a)^2   over beta in omega B,

    so beta is the projection of b - u 1 onto omega B, where u = sum beta - a is the root of
    an increasing piecewise linear function. Sort b into z_1 >= z_2 >= ..; PAV is the
    non-increasing isotonic regression. For the scale t (1 for the Usunier type),

        low = PAV(z - t omega rho_1..),   high = PAV(z - t omega rho_2..)   (Usunier: high = z)
        beta_j = z_j - low_j    where u < low_j     (the class is at its upper bound)
               = z_j - u        where low_j <= u <= high_j
               = z_j - high_j   where u > high_j    (at its lower bound)

    The top-k type has t in [0, 1]: t = 1 if f(1) >= 0, beta = 0 if f(0) <= 0, else f(t) = 0
    with f(t) = sum_j rho_j [x; 0]_(j), x = z - u - beta, which falls in t.

Ties go to the lower class number, here and in the kernel.
"""
import math

import numpy as np


class Loss:
    """One loss for one number of classes.

    Parameters
    ----------
    n_classes : int
    rho : ndarray of float64, shape (n_classes,)
        Rank weights, non-increasing, non-negative, the last one zero.
    """

    def __init__(self, n_classes, rho):
        self.n_classes = n_classes
        self.rho = [float(r) for r in rho]
        self.n_ranks = sum(r > 0.0 for r in self.rho)
        # All rank weights are equal: closed forms serve instead of the general routine.
        self.uniform = self.rho[self.n_ranks - 1] == self.rho[0]

    def block_max(self, scores, label, dual, weight, q, gamma):
        """Exact maximiser of the dual over one sample's block.

        Parameters
        ----------
        scores : sequence of float
            Scores plus costs of the sample at the current W.
        label : int
            Own class.
        dual : sequence of float
            The current alpha of the sample.
        weight, q, gamma : float
            omega_i; ||x_i||^2 / (lambda n); the smoothing gamma / omega_i.

        Returns
        -------
        list of float
            argmin over feasible alpha of ||alpha - v||, v = (q alpha - scores) / (q + gamma).
        """
        total = q + gamma
        if total == 0.0:
            # An all-zero row without smoothing: the block objective is linear.
            vertex = self.oracle(scores, label)[1]
            return [weight * v for v in vertex]
        target = [(q * dual[j] - scores[j]) / total for j in range(self.n_classes)]
        return self.project(target, label, weight)

    def project(self, target, label, weight=1.0):
        """Projection of `target` onto the feasible alpha of a sample of that weight."""
        own = self.margins(target, label)
        dual = [0.0] * self.n_classes
        # Otherwise every margin is at most zero: the loss is zero there, and so is beta.
        if own > 0.0:
            self.beta = []
            self.gather(label, weight, self.least(weight, own))
            self.scale = 1.0
            if self.z:
                self.solve(weight, own)
            total = 0.0
            for j, beta in zip(self.order, self.beta):
                if beta > 0.0:
                    dual[j] = -beta
                    total += beta
            dual[label] = total
        return dual

    def project_rows(self, targets, label):
        """`project` with weight 1 for each row of an (n, n_classes) array."""
        return np.array([self.project(v.tolist(), y) for v, y in zip(targets, label)])

    def rank(self, values, skip, count):
        """Class numbers of the `count` largest values, best first, leaving out `skip`."""
        classes = [j for j in range(self.n_classes) if j != skip]
        return sorted(classes, key=lambda j: -values[j])[:count]

    def margins(self, target, label):
        """b_j - top into self.margin, top = max b_j over the wrong classes; returns target_y + top.

        Only differences of b_j = -target_j matter, so all are taken from the largest: large
        equal parts (tiny C) cancel before anything is added up.
        """
        top = -math.inf
        for j in range(self.n_classes):
            if j != label and -target[j] > top:
                top = -target[j]
        self.margin = [-target[j] - top for j in range(self.n_classes)]
        return target[label] + top

    def gather(self, label, weight, least):
        """Sort the classes that can have beta_j > 0 into self.order and self.z.

        A class more than omega rho_1 below the last ranked one is pooled with nobody and gets
        nothing; neither does one below `least`, a lower bound of u. `trim` cuts the rest.
        """
        floor = 0.0
        if self.n_ranks > 1:
            floor = self.margin[self.rank(self.margin, label, self.n_ranks)[-1]]
        floor = max(least, floor - weight * self.rho[0])
        classes = [j for j in range(self.n_classes) if j != label and self.margin[j] >= floor]
        self.order = sorted(classes, key=lambda j: -self.margin[j])
        self.z = [self.margin[j] for j in self.order]
        count, _ = self.trim(weight, -math.inf)
        del self.order[count:], self.z[count:]

    def trim(self, weight, floor):
        """How many of the sorted classes can have beta_j > 0, and what another would have to exceed.

        None can below `floor`, nor past the ranks from the first class on that does not join the
        last block of PAV(z - omega rho).
        """
        blocks, count = [], len(self.z)
        for taken in range(len(self.z)):
            if self.z[taken] < floor:
                return taken, floor
            if taken >= self.n_ranks and self.z[taken] <= blocks[-1][3]:
                count = taken
                break
            self.push(blocks, self.z, taken, weight * self.rho[taken], 1.0)
        return count, max(floor, blocks[-1][3]) if count >= self.n_ranks else floor

    def push(self, blocks, z, j, sum_rho, t):
        """Add entry j to the pooled blocks (sum of z, sum of rho, first entry, value).

        A block sums z relative to its first entry: the bounds of beta must not suffer from far
        away z.
        """
        sum_z, start, value = 0.0, j, z[j] - t * sum_rho
        while blocks and blocks[-1][3] < value:
            last_z, rho, first, _ = blocks.pop()
            sum_z = last_z + (sum_z + (j + 1 - start) * (z[start] - z[first]))
            sum_rho, start = rho + sum_rho, first
            value = z[start] + (sum_z - t * sum_rho) / (j + 1 - start)
        blocks.append((sum_z, sum_rho, start, value))

    def pool(self, count, first_rank, weight, t):
        """PAV(z - t omega rho_{first_rank..}) by pooling adjacent violators.

        Returns the value of each entry's block, z minus that value (the bound of beta), and
        the block's mean of omega rho (minus the derivative of the value in t).
        """
        blocks = []
        for j in range(count):
            self.push(blocks, self.z, j, weight * self.rho[first_rank + j], t)
        value, cap, mean_rho = [], [], []
        ends = [block[2] for block in blocks[1:]] + [count]
        for (sum_z, sum_rho, start, block_value), end in zip(blocks, ends):
            mean_z, rho = sum_z / (end - start), sum_rho / (end - start)
            for j in range(start, end):
                value.append(block_value)
                cap.append((self.z[j] - self.z[start] - mean_z) + t * rho)
                mean_rho.append(rho)
        return value, cap, mean_rho

    def threshold(self, count, own):
        """The root u of u + own - sum beta(u), walking down the sorted break points.

        Returns u and the numbers of classes at their upper bound and not at their lower one.
        """
        n_low = n_high = 0
        total = 0.0
        for j in range(count):
            total += self.high_cap[j]
        total -= own
        u = total
        while True:
            next_high = self.high[n_high] if n_high < count else -math.inf
            next_low = self.low[n_low] if n_low < count else -math.inf
            if n_low == n_high or next_high >= next_low:
                if next_high <= u:
                    break
                total += self.z[n_high] - self.high_cap[n_high]
                n_high += 1
            else:
                if next_low <= u:
                    break
                total += self.low_cap[n_low] - self.z[n_low]
                n_low += 1
            u = total / (1 + n_high - n_low)
        return u, n_low, n_high

    def solve_box(self, cap, own):
        """Equal rank weights: beta = z - u between 0 and cap, sum beta at most n_ranks cap.

        u = sum beta - own, or where that sum is too large the u that gives its bound.
        """
        u, n_low, n_high = self.walk(cap, own, 0)
        self.fill_box(cap, u, 0, n_low, n_high)
        total = 0.0
        for beta in self.beta[:n_high]:
            total += beta
        if total > self.n_ranks * cap:
            u, n_low, n_high = self.walk(cap, own, self.n_ranks)
            self.fill_box(cap, u, self.n_ranks, n_low, n_high)
        return u

    def walk(self, cap, own, n_caps):
        """u with beta = z - u between 0 and cap, walking down the sorted break points.

        sum beta is u + own, or n_caps times cap if n_caps is not 0. Returns u and the numbers of
        classes at the cap and not at zero.
        """
        n_low = n_high = 0
        slope = 0 if n_caps else 1
        total, u = (-n_caps * cap, -math.inf) if n_caps else (-own, -own)
        while True:
            next_high = self.z[n_high] if n_high < len(self.z) else -math.inf
            next_low = self.z[n_low] - cap if n_low < n_high else -math.inf
            if max(next_high, next_low) <= u:
                break
            if next_high >= next_low:
                total += self.z[n_high]
                n_high += 1
            else:
                total += cap - self.z[n_low]
                n_low += 1
                if n_caps and n_low == n_caps:
                    # As many as can be are at the cap: any u from here to the next class would do. What rounding
                    # of large z left between has nothing to get.
                    u, n_high = next_low, n_low
                    break
            free = slope + n_high - n_low
            u = total / free if free else -math.inf
        return u, n_low, n_high

    def fill_box(self, cap, u, n_caps, n_low, n_high):
        """beta from the results of `walk`.

        Where the sum is given, it holds to rounding of beta, not of z: all start from the first z.
        """
        if n_caps and n_high > n_low:
            first = ((n_caps - n_low) * cap - self.behind(n_low, n_high)) / (n_high - n_low)
            # Classes that are there by rounding of z alone would get less than nothing.
            while (self.z[n_high - 1] - self.z[n_low]) + first < 0.0:
                n_high -= 1
                first = ((n_caps - n_low) * cap - self.behind(n_low, n_high)) / (n_high - n_low)
        elif n_low < len(self.z):
            first = self.z[n_low] - u
        self.beta = [cap if j < n_low else
                     min(max((z - self.z[n_low]) + first, 0.0), cap) if j < n_high else 0.0
                     for j, z in enumerate(self.z)]

    def behind(self, first, last):
        """Sum of z - z_first from `first` on."""
        total = 0.0
        for j in range(first, last):
            total += self.z[j] - self.z[first]
        return total

    def fill(self, kept, count, u, n_low, n_high):
        """beta from u, by the three cases of the module's docstring; 0 from `kept` on."""
        self.beta = []
        for j in range(count):
            if j >= kept:
                self.beta.append(0.0)
            elif j < n_low:
                self.beta.append(self.low_cap[j])
            elif j < n_high:
                # The bounds hold to rounding of beta, z - u only to rounding of z.
                self.beta.append(min(max(self.z[j] - u, self.high_cap[j]), self.low_cap[j]))
            else:
                self.beta.append(self.high_cap[j])

    def insert(self, value, j):
        """Put class j into its place in self.order and self.z, after equals."""
        at = len(self.z)
        while at > 0 and self.z[at - 1] < value:
            at -= 1
        self.z.insert(at, value)
        self.order.insert(at, j)

    def least(self, weight, own):
        """A lower bound of u: classes with z below it get nothing."""
        return -math.inf


class UsunierLoss(Loss):
    """sum_j rho_j max(0, h_(j)): Usunier losses and max hinge (Tajima et al., 2.6 and 2.8)."""

    def oracle(self, scores, label):
        """Phi and a corner alpha of the feasible set (of weight 1) where it is taken.

        Parameters
        ----------
        scores : sequence of float, length n_classes
            Scores plus costs.
        label : int
            Own class.

        Returns
        -------
        value : float
        vertex : list of float
            -rho_j at the classes with positive margin, their sum at the own class.
        """
        value = total = 0.0
        vertex = [0.0] * self.n_classes
        for r, j in enumerate(self.rank(scores, label, self.n_ranks)):
            h = scores[j] - scores[label]
            if h <= 0.0:
                break
            value += self.rho[r] * h
            total += self.rho[r]
            vertex[j] = -self.rho[r]
        vertex[label] = total
        return value, vertex

    def sorted_value(self, own):
        """Phi from self.z, the largest wrong classes sorted, and the own class's score."""
        value = 0.0
        for r in range(min(len(self.z), self.n_ranks)):
            if self.z[r] <= own:
                break
            value += self.rho[r] * (self.z[r] - own)
        return value

    def least(self, weight, own):
        """A lower bound of u: classes with z below it get nothing. That of the best class alone (z = 0)."""
        if self.n_ranks == 1:
            return max(-0.5 * own, -weight * self.rho[0])
        # sum beta is at least min(beta_1, omega rho_1) whatever the other classes do.
        return max(-own, min(-0.5 * own, weight * self.rho[0] - own))

    def solve(self, weight, own):
        """self.beta of the sorted classes self.z; returns u.

        With it they and any classes of z <= u, which get nothing, solve the whole block.
        """
        if self.uniform:
            return self.solve_box(weight * self.rho[0], own)
        kept, floor = self.trim(weight, self.least(weight, own))
        self.low, self.low_cap, _ = self.pool(kept, 0, weight, 1.0)
        self.high, self.high_cap = self.z, [0.0] * kept
        u, n_low, n_high = self.threshold(kept, own)
        self.fill(kept, len(self.z), u, n_low, n_high)
        return max(u, floor)


class TopKLoss(Loss):
    """max(0, sum_j rho_j h_(j)): top-k losses (Tajima et al., 2.5 and 2.7).

    Parameters
    ----------
    own_class : bool
        Whether the own class (h_y = 0) can hold one of the ranks, as in the paper.
    """

    def __init__(self, n_classes, rho, own_class=True):
        super().__init__(n_classes, rho)
        self.own_class = own_class

    def oracle(self, scores, label):
        """As `UsunierLoss.oracle`; -rho_j at all ranks, or 0 where the sum is not positive."""
        value = total = 0.0
        vertex = [0.0] * self.n_classes
        ranked = self.rank(scores, -1 if self.own_class else label, self.n_ranks)
        for r, j in enumerate(ranked):
            value += self.rho[r] * (scores[j] - scores[label])
        if not value > 0.0:
            return 0.0, vertex
        for r, j in enumerate(ranked):
            if j != label:
                vertex[j] = -self.rho[r]
                total += self.rho[r]
        vertex[label] = total
        return value, vertex

    def sorted_value(self, own):
        """As `UsunierLoss.sorted_value`; the own class can hold a rank."""
        value, r = 0.0, 0
        placed = not self.own_class
        for z in self.z:
            if not placed and z < own:
                placed = True
                r += 1
            if r >= self.n_ranks:
                break
            value += self.rho[r] * (z - own)
            r += 1
        return max(value, 0.0)

    def solve(self, weight, own):
        """self.beta of the sorted classes self.z; returns what any other class would have to exceed.

        self.z holds the n_ranks best of all. Past the ranks a class gets something only if it joins the last
        block of PAV(z - t omega rho) at the t of the solution. It is looked for from self.scale on: 1 for a new
        block, and with more classes what it was with fewer.
        """
        if self.uniform and self.own_class:
            return self.solve_capped(weight, own)
        count, floor = self.trim(weight, -math.inf)
        t, t_low, t_high, tries = self.scale, 0.0, math.inf, 0
        f, slope, u, n_low, n_high = self.excess(count, own, weight, t)
        if f < 0.0 and self.value_at_zero(count, own, weight) <= 0.0:
            self.fill_box(0.0, 0.0, 0, 0, 0)
            return math.inf
        while (f < 0.0 or (f > 0.0 and t < 1.0)) and tries < 200:
            tries += 1
            if f > 0.0:
                t_low = t
            else:
                t_high = t
            # Newton's step is exact on the linear piece of the root; the bracket guards it.
            step = min(t - f / slope, 1.0) if slope < 0.0 else -1.0
            # Converged: leaving the bracket by rounding must not start a bisection.
            if abs(step - t) <= 1e-15 * t:
                break
            if not t_low < step < t_high:
                step = 0.5 * (t_low + min(t_high, 1.0))
            moved = abs(step - t)
            t = step
            f, slope, u, n_low, n_high = self.excess(count, own, weight, t)
            if moved <= 1e-15 * t:
                break
        self.scale = t
        self.fill(count, len(self.z), u, n_low, n_high)
        return self.low[count - 1] if count >= self.n_ranks else floor

    def solve_capped(self, weight, own):
        """Equal rank weights omega/k: beta_j <= min(omega/k, S/(k-1)), S = sum beta <= omega.

        Where S >= omega (k-1)/k only the fixed cap counts, and `solve_box` serves, or S is just that.
        Otherwise r classes are at S/(k-1) and the next s at z - u, and with A = ((k-1)^2 + r) / (k-1-r)

            u = (A sum of the s z - (k-1) own - sum of the r z) / (A s + k-1-r)
            S = (k-1) (sum of the s z - s u) / (k-1-r);

        k-1 classes at the cap have S = (sum of their z + (k-1) own) / k, and no others.
        """
        others, cap = self.n_ranks - 1, weight * self.rho[0]
        u, n_low, _ = self.walk(cap, own, 0)
        if n_low >= others or u + own >= others * cap:
            u, total = self.solve_box(cap, own), 0.0
            for beta in self.beta:
                total += beta
            if total < others * cap:
                # By rounding of z alone.
                u, n_low, n_high = self.walk(cap, own, others)
                self.fill_box(cap, u, others, n_low, n_high)
            return u
        count = len(self.z)
        if self.value_at_zero(count, own, weight) <= 0.0:
            self.fill_box(0.0, 0.0, 0, 0, 0)
            return math.inf
        sum_capped = 0.0
        for r in range(others):
            factor = (others * others + r) / (others - r)
            s, total, u = 0, 0.0, -math.inf
            while r + s < count and self.z[r + s] > u:
                total += self.z[r + s]
                s += 1
                u = ((factor * total - others * own) - sum_capped) / (factor * s + (others - r))
            share = (total - s * u) / (others - r)
            if self.z[r] - u <= share:
                break
            sum_capped += self.z[r]
        else:
            r, s, share = others, 0, (sum_capped + others * own) / (others * self.n_ranks)
            u = self.z[others - 1] - share
        first = self.z[r] - u if s else 0.0
        if r + s > others:
            # Where the first of them just reaches the cap, rounding of z must not take it above.
            first = max(first, -self.behind(r, r + s) / (r + s - others))
        free = [max((z - self.z[r]) + first, 0.0) if j < r + s else 0.0
                for j, z in enumerate(self.z) if j >= r]
        total = 0.0
        for beta in free:
            total += beta
        if r < others:
            share = total / (others - r)
        self.beta = [share] * r + free
        if share > cap:
            u, n_low, n_high = self.walk(cap, own, others)
            self.fill_box(cap, u, others, n_low, n_high)
        return u

    def value_at_zero(self, count, own, weight):
        """f(0): the loss of the sample when its own dual is taken out, times omega."""
        f = 0.0
        r = 0
        placed = not self.own_class
        for j in range(count):
            x = self.z[j] + own
            if not placed and x < 0.0:
                placed = True
                r += 1
            if r >= self.n_ranks:
                break
            f += weight * self.rho[r] * x
            r += 1
        return f

    def excess(self, count, own, weight, t):
        """f(t) and its derivative, with u and the counts of `threshold` for that scale t."""
        self.low, self.low_cap, self.low_rho = self.pool(count, 0, weight, t)
        if self.own_class:
            self.high, self.high_cap, self.high_rho = self.pool(count, 1, weight, t)
        else:
            self.high, self.high_cap, self.high_rho = self.low, self.low_cap, self.low_rho
        u, n_low, n_high = self.threshold(count, own)
        if not self.own_class:
            n_low = n_high = count
        du = 0.0
        for j in range(count):
            if j < n_low:
                du += self.low_rho[j]
            elif j >= n_high:
                du += self.high_rho[j]
        du /= 1 + n_high - n_low
        f = slope = 0.0
        for j in range(count):
            if j < n_low:
                f += weight * self.rho[j] * (self.low[j] - u)
                slope -= weight * self.rho[j] * (self.low_rho[j] + du)
            elif j >= n_high:
                f += weight * self.rho[j + 1] * (self.high[j] - u)
                slope -= weight * self.rho[j + 1] * (self.high_rho[j] + du)
        return f, slope, u, n_low, n_high
