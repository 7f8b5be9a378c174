"""Coordinate descent for the boosting master problem in plain Python: the mirror of `fastmc._fcd`.

The master problem of MultiBoost with class-wise weak learners and exponential loss (Lin et al.,
equation 2) over weights w >= 0 of learners h_(c,j) with outputs -1 and +1:

    O(w) = sum w + C/p sum_i sum_{y != y_i} mu_(i,y),    mu_(i,y) = exp(F_y(x_i) - F_{y_i}(x_i)),
    F_y = sum_j w_(y,j) h_(y,j),    p = n (K - 1).

Coordinate (c, j) moves mu of the rows of class c, by -h w for each of their K - 1 constraints,
and mu_(i,c) of the other rows, by +h w. With delta = h on the former and -h on the latter, V+ and V-
the sums of mu where delta = +1 and -1, and a = p/(2C), the coordinate is best at

    w* = max(0, w + log(V+ / (sqrt(V+ V- + a^2) + a)))          (0 if V+ = 0)

(equation 12, with V at the current w and without its cancellation). mu is kept as r_i e_(y,i), so a
coordinate costs O(n): while one class is worked on, its mu are one vector u, r_i sum_y e_(y,i) on the
rows of the class and r_i e_(c,i) elsewhere.
"""
import math


def signed_sums(bits, u):
    """Sums of u over the rows whose bit is one and zero, in eight lanes."""
    plus, minus = [0.0] * 8, [0.0] * 8
    for b, byte in enumerate(bits.tolist()):
        for lane in range(8):
            if byte >> lane & 1:
                plus[lane] += u[8 * b + lane]
            else:
                minus[lane] += u[8 * b + lane]
    return tuple(((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]))
                 for s in (plus, minus))


def rescale(bits, u, if_plus, if_minus):
    """u times one of two factors, in place."""
    for b, byte in enumerate(bits.tolist()):
        for lane in range(8):
            u[8 * b + lane] *= if_plus if byte >> lane & 1 else if_minus


def gather(label, r, e, c, n_padded):
    """The vector u of class c; rows whose e ran out of range are renormalised."""
    u = [0.0] * n_padded
    for i, y in enumerate(label.tolist()):
        if y == c:
            total = 0.0
            for value in e[:, i].tolist():
                total += value
            if not 1e-100 < total < 1e100 and 0.0 < total < math.inf:
                e[:, i] /= total
                r[i] *= total
                total = 1.0
            u[i] = float(r[i]) * total
        else:
            u[i] = float(r[i]) * float(e[c, i])
    return u


def scatter(label, r, e, c, u, before):
    """Bring the changes of u back into r (rows of the class) and e (the others)."""
    for i, y in enumerate(label.tolist()):
        if before[i] > 0.0:
            if y == c:
                r[i] *= u[i] / before[i]
            else:
                e[c, i] *= u[i] / before[i]


def fcd_sweep(bits, w, r, e, label, classes, learners, scale, tol, violation):
    """Visit coordinates in turn; move those that violate their optimality condition.

    Parameters
    ----------
    bits : ndarray of uint8, shape (n_classes, n_learners, ceil(n_samples / 8))
        Bit l of byte b is 1 where delta = +1 at row 8 b + l.
    w : ndarray of float64, shape (n_classes, n_learners)
        Updated in place.
    r : ndarray, shape (n_samples,)
    e : ndarray, shape (n_classes, n_samples)
        Factors of mu, zero at the own class; updated in place.
    label : ndarray of int64, shape (n_samples,)
    classes, learners : ndarray of intp
        The coordinates; those of a class should follow each other.
    scale : float
        C / p.
    tol : float
        Coordinates with a violation above it are set to their best value.
    violation : ndarray
        Set for each coordinate, before it moves: with g = C/p (V+ - V-) it is |1 - g| if w > 0
        and max(0, g - 1) if not (equation 16).
    """
    n_padded = 8 * bits.shape[2]
    half = 0.5 / scale
    current, changed, u, before = -1, False, None, None
    for t, (c, j) in enumerate(zip(classes.tolist(), learners.tolist())):
        if c != current:
            if changed:
                scatter(label, r, e, current, u, before)
            u = gather(label, r, e, c, n_padded)
            before = list(u)
            current, changed = c, False
        plus, minus = signed_sums(bits[c, j], u)
        old = float(w[c, j])
        slack = scale * (plus - minus) - 1.0
        if old > 0.0:
            slack = abs(slack)
        violation[t] = max(slack, 0.0)
        if violation[t] > tol:
            new = 0.0
            if plus > 0.0:
                new = max(0.0, old + math.log(plus / (math.sqrt(plus * minus + half * half) + half)))
            if new != old:
                rescale(bits[c, j], u, math.exp(old - new), math.exp(new - old))
                w[c, j] = new
                changed = True
    if changed:
        scatter(label, r, e, current, u, before)
