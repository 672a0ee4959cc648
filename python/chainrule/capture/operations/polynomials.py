"""Polynomials by their coefficients, the highest power first; integrals and interpolation between points."""

from __future__ import annotations

from . import sorting, whole
from .arrays import diff, vander
from .factors import least_squares
from .operators import binary, call, scalar
from .padding import convolve
from .reductions import sum_
from .shaping import at_least_rank, axis_of, known_int
from ..values import Dim, Known, describe, is_given


def coefficients(w, name, p):
    p = at_least_rank(w, w.num(p), 1)
    if p.rank != 1:
        w.fail(f"`{name}` of {describe(p)}", "write a vector of coefficients")
    return p


def polyval(w, p, x):
    p, x = w.num(p), w.num(x)
    kind = w.common(p, x)
    zero = w.cast(w.constant(0), kind)
    start = w.build(x.dims, lambda _: zero) if x.rank else zero
    x, p = w.cast(x, kind), w.cast(p, kind)
    return w.reduce(p.dims[0], start, lambda s, i: binary(w, "+", binary(w, "*", s, x), w.element(p, [i])))


def polyder(w, p, m=Known(1)):
    p, order = coefficients(w, "np.polyder", p), known_int(w, m, "the order of a derivative")
    if order < 0:
        w.fail("Order of derivative must be positive (see polyint)")
    for _ in range(order):
        n = p.dims[0]
        if n.known == 0:
            return p
        power = lambda i, last: scalar(w, "-", last, i[0])
        last = w.size(n - 1)
        p = w.build((n - 1,), lambda i, p=p, last=last: scalar(w, "*", w.element(p, i), power(i, last)))
    return p


def polyint(w, p, m=Known(1), k=None):
    """The integral, with one constant or one for each order."""
    p, order = w.cast(coefficients(w, "np.polyint", p), "f"), known_int(w, m, "the order of an integral")
    if order < 0:
        w.fail("Order of integral must be positive (see polyder)")
    constants = at_least_rank(w, w.cast(w.num(k), "f"), 1) if is_given(k) else w.build((Dim(order),), lambda _: w.constant(0.0))
    one = constants.dims[0].known == 1
    for step in range(order):
        n = w.size(p.dims[0])
        last = w.element(constants, [w.constant(0 if one else step)])
        inside = lambda i, p=p, n=n: scalar(w, "/", w.element(p, i), scalar(w, "-", n, i[0]))
        p = w.build((p.dims[0] + 1,), lambda i: w.choose(scalar(w, "<", i[0], n), lambda: inside(i), lambda: last))
    return p


def aligned(name, sign):
    """A sum or a difference of polynomials, which end with the same power."""
    def compute(w, a1, a2):
        a, b = coefficients(w, name, a1), coefficients(w, name, a2)
        kind = w.common(a, b)
        a, b, zero = w.cast(a, kind), w.cast(b, kind), w.cast(w.constant(0), kind)
        if a.dims[0] == b.dims[0]:
            return binary(w, sign, a, b)
        longer = a.dims[0] + b.dims[0] - w.shorter(a.dims[0], b.dims[0])

        def own(p, i):
            before = w.size(longer - p.dims[0])
            return w.choose(scalar(w, "<", i, before), lambda: zero, lambda: w.element(p, [scalar(w, "-", i, before)]))

        return w.build((longer,), lambda i: scalar(w, sign, own(a, i[0]), own(b, i[0])))
    return compute


def polymul(w, a1, a2):
    zero = w.stack([w.constant(0.0)])
    factors = [coefficients(w, "np.polymul", p) for p in (a1, a2)]
    return convolve(w, *[zero if p.dims[0].known == 0 else p for p in factors])


def polyfit(w_, x, y, deg, rcond=None, full=Known(False), w=None, cov=Known(False)):
    """`np.polyfit` for at least as many points as coefficients: least squares by QR of powers with columns of length 1."""
    x, y, degree = w_.cast(w_.num(x), "f"), w_.cast(w_.num(y), "f"), known_int(w_, deg, "a degree")
    if full.value or cov.value:
        w_.fail("`np.polyfit` with `full` or `cov`", "leave it out")
    if x.rank != 1 or y.rank not in (1, 2):
        w_.fail(f"`np.polyfit` of {describe(x)} and {describe(y)}", "write vectors")
    if degree < 0:
        w_.fail("expected deg >= 0")
    w_.require_equal(x.dims[0], y.dims[0], "points and their values")
    powers = vander(w_, x, Known(degree + 1))
    if is_given(w):
        weights = w_.cast(w_.num(w), "f")
        w_.require_equal(x.dims[0], weights.dims[0], "points and their weights")
        by_row = lambda a: w_.build(a.dims, lambda i: scalar(w_, "*", w_.element(a, i), w_.element(weights, i[:1])))
        powers, y = by_row(powers), by_row(y)
    lengths = w_.map(lambda v: call(w_, "sqrt", v), sum_(w_, binary(w_, "*", powers, powers), Known(0)))
    found = least_squares(w_, binary(w_, "/", powers, lengths), y)
    return w_.build(found.dims, lambda i: scalar(w_, "/", w_.element(found, i), w_.element(lengths, i[:1])))


def trapezoid(w, y, x=None, dx=Known(1.0), axis=Known(-1)):
    """The integral by trapezoids along an axis; coordinates are a vector, or as many as values."""
    y = w.cast(w.num(y), "f")
    if not y.rank:
        w.fail(f"`np.trapezoid` of {describe(y)}", "it is for arrays")
    k = axis_of(w, y, axis)
    if y.dims[k].known == 0:
        return sum_(w, y, Known(k))
    after = lambda i: [scalar(w, "+", j, w.constant(1)) if m == k else j for m, j in enumerate(i)]
    dims = tuple(dim - 1 if m == k else dim for m, dim in enumerate(y.dims))
    middle = w.build(dims, lambda i: scalar(w, "*", w.constant(0.5), scalar(w, "+", w.element(y, i), w.element(y, after(i)))))
    if not is_given(x):
        steps = w.num(dx)
    else:
        x = w.num(x)
        steps = diff(w, x, axis=Known(0 if x.rank == 1 else k))
    if steps.rank == 1 and y.rank > 1:
        vector = steps
        w.require_equal(dims[k], vector.dims[0], "an array and its coordinates")
        steps = w.build(dims, lambda i: w.element(vector, [i[k]]))
    return sum_(w, binary(w, "*", middle, steps), Known(k))


def interp(w, x, xp, fp, left=None, right=None, period=None):
    """`np.interp`: between the last point that is not above, and the next one."""
    xp, fp = w.cast(w.num(xp), "f"), w.cast(w.num(fp), "f")
    if is_given(period):
        w.fail("`np.interp` with a period", "take the points modulo the period, with one more at each end")
    if xp.rank != 1 or fp.rank != 1:
        w.fail(f"`np.interp` between {describe(xp)} and {describe(fp)}", "write vectors of points and of values")
    w.require_equal(xp.dims[0], fp.dims[0], "points and their values")
    if xp.dims[0].known == 0:
        w.fail("`np.interp` of an array that has no elements")
    zero, one, last = w.constant(0), w.constant(1), w.size(xp.dims[0] - 1)
    count = sorting.counting(w, xp, "<=")
    before = w.cast(w.scalar(left), "f") if is_given(left) else w.element(fp, [zero])
    behind = w.cast(w.scalar(right), "f") if is_given(right) else w.element(fp, [last])

    def of_number(v):
        v = w.cast(v, "f")
        below = count(v)
        # Both are in range also where they are not used.
        places = [whole.clamped(w, k, xp.dims[0]) for k in (scalar(w, "-", below, one), below)]

        def between():
            (start, first), (end, second) = ((w.element(xp, [k]), w.element(fp, [k])) for k in places)
            slope = scalar(w, "/", scalar(w, "-", second, first), scalar(w, "-", end, start))
            return scalar(w, "+", first, scalar(w, "*", slope, scalar(w, "-", v, start)))

        def outside():
            at_end = scalar(w, "==", v, w.element(xp, [last]))
            return w.choose(at_end, lambda: w.element(fp, [last]), lambda: behind) if is_given(right) else behind

        return w.choose(scalar(w, "==", below, zero), lambda: before,
                        lambda: w.choose(scalar(w, ">", below, last), outside, between))

    return w.map(of_number, w.num(x))
