"""Orders: sorting, where each element of a short vector counts those that stand before it; looking up."""

from __future__ import annotations

import numpy as np

from .. import loops
from . import indexing
from .operators import scalar
from .slices import Axis, Slice
from ..values import Dim, Known, Num, Row, describe, is_given


def before(w, a, b):
    """Whether one number stands before another one; NaN stands last."""
    less = scalar(w, "<", a, b)
    if a.kind != "f":
        return less
    is_nan = lambda x: w.program.apply("isNaN", [x.term])
    last = w.program.infix("&&", is_nan(b), w.program.apply("not", [is_nan(a)]))
    return Num(w.program.infix("||", less.term, last), "b")


def order_of(w, a):
    """The indices of a vector in order; equal numbers keep theirs."""
    n, one, zero = a.dims[0], w.constant(1), w.constant(0)
    if n.known is None or n.known > ALL_COMPARED:
        return Num(w.program.apply("argsort", [a.term]), "i", (n,))

    def rank(i):
        own = w.element(a, i)

        def step(count, j):
            other = w.element(a, [j])
            is_before = w.choose(scalar(w, "<", j, i[0]), lambda: negated(w, before(w, own, other)), lambda: before(w, other, own))
            return scalar(w, "+", count, w.choose(is_before, lambda: one, lambda: zero))

        return w.reduce(n, zero, step)

    ranks = w.build((n,), rank)
    start = w.build((n,), lambda _: zero)
    place = lambda s, i: w.build((n,), lambda r: w.choose(scalar(w, "==", r[0], w.element(ranks, [i])), lambda: i, lambda: w.element(s, r)))
    return w.reduce(n, start, place)


def negated(w, x):
    return Num(w.program.apply("not", [x.term]), "b")


def by_rows(w, a, axis, function):
    """A function of vectors along an axis; `None` is all elements in one row."""
    from .shaping import axis_of, moveaxis, ravel
    a = w.num(a)
    if not a.rank or a.kind == "b":
        w.fail(f"{describe(a)} is sorted", "sort arrays of numbers")
    if getattr(axis, "value", 0) is None:
        a, axis = ravel(w, a), Known(0)
    k = axis_of(w, a, axis)
    rows = moveaxis(w, a, Known(k), Known(-1))
    made = function(rows) if a.rank == 1 else w.build(rows.dims[:-1], lambda i: function(w.element(rows, i)))
    made = moveaxis(w, Num(made.term, made.kind, rows.dims), Known(-1), Known(k))
    return Num(made.term, made.kind, a.dims)


def argsort(w, a, axis=Known(-1), kind=None, order=None, *, stable=None):
    return by_rows(w, a, axis, lambda v: order_of(w, v))


def sort(w, a, axis=Known(-1), kind=None, order=None, *, stable=None):
    def one(v):
        order = order_of(w, v)
        return w.build(v.dims, lambda i: w.element(v, [w.element(order, i)]))
    return by_rows(w, a, axis, one)


def searchsorted(w, a, v, side=Known("left")):
    a, v = w.num(a), w.num(v)
    kind = w.common(a, v)
    a, sign = w.cast(a, kind), "<" if side.value == "left" else "<="
    count = counting(w, a, sign)
    return w.map(lambda x: count(w.cast(x, kind)), v)


#: The longest vector whose elements are all compared. Of a longer one, half is left after each comparison.
ALL_COMPARED = 16
#: Bits of a length.
LENGTH_BITS = 40


def counting(w, a, sign):
    """A function of a number: how many first elements of a sorted vector are below it, by this sign."""
    n, one, zero = a.dims[0], w.constant(1), w.constant(0)
    if n.known is not None and n.known <= ALL_COMPARED:
        return lambda x: w.reduce(n, zero, lambda s, i: scalar(w, "+", s, w.cast(scalar(w, sign, w.element(a, [i]), x), "i")))
    steps, halves = halvings(w, n)

    def count(x):
        def step(found, k):
            middle = scalar(w, "+", found, w.element(halves, [k]))
            return w.choose(scalar(w, sign, w.element(a, [middle]), x), lambda: middle, lambda: found)

        # The last element that is known to be below.
        return scalar(w, "+", w.reduce(steps, w.constant(-1), step), one)

    return count


def halvings(w, n):
    """The steps of a binary search in `n` elements, and how many elements each of them passes over if it goes on.

    Of the elements that are left, `n // 2**k` at most in step `k`, it compares the one in the middle, so that no index
    reaches beyond the end.
    """
    if n.known is not None:
        lengths = [n.known >> k for k in range(n.known.bit_length())]
        return Dim(len(lengths)), w.stack([w.constant(length - length // 2) for length in lengths])
    zero, length, table = w.constant(0), w.size(n), w.stack([w.constant(1 << k) for k in range(LENGTH_BITS + 1)])
    is_within = lambda i: w.cast(scalar(w, "<=", w.element(table, [i]), length), "i")
    steps = w.dim(w.reduce(Dim(LENGTH_BITS), zero, lambda s, i: scalar(w, "+", s, is_within(i))))
    left = lambda k: scalar(w, "//", length, w.element(table, [k]))
    return steps, w.build((Dim(LENGTH_BITS),), lambda k: scalar(w, "-", left(k[0]), left(scalar(w, "+", k[0], w.constant(1)))))


def digitize(w, x, bins, right=Known(False)):
    """The number of bounds that are not above, or below where `right` is true; bounds are in rising or falling order."""
    x, bins = w.num(x), w.num(bins)
    if bins.rank != 1:
        w.fail(f"the bins of `np.digitize` are {describe(bins)}", "write a vector")
    kind, n = w.common(x, bins), bins.dims[0]
    bins, zero = w.cast(bins, kind), w.constant(0)
    rising, falling = (counting(w, bins, sign) for sign in (("<", ">=") if right.value else ("<=", ">")))
    if n.known in (0, 1):
        return w.map(lambda v: rising(w.cast(v, kind)), x)
    falls = scalar(w, ">", w.element(bins, [zero]), w.element(bins, [w.size(n - 1)]))
    return w.map(lambda v: w.choose(falls, lambda: falling(w.cast(v, kind)), lambda: rising(w.cast(v, kind))), x)


def take_along_axis(w, arr, indices, axis=Known(-1)):
    from .shaping import axis_of, ravel
    a, given = w.num(arr), w.num(indices)
    if getattr(axis, "value", 0) is None:
        a, axis = ravel(w, a), Known(0)
    if given.kind != "i" or given.rank != a.rank:
        w.fail(f"`np.take_along_axis` of {describe(a)} by {describe(given)}", "index by ints, an array with as many axes")
    k = axis_of(w, a, axis)
    shape = Num(a.term, a.kind, (*a.dims[:k], given.dims[k], *a.dims[k + 1:]))

    def element(i):
        own = [w.spread(given, i) if j == k else index for j, index in enumerate(i)]
        return w.element(a, [w.constant(0) if j != k and dim.known == 1 else index for j, (dim, index) in enumerate(zip(a.dims, own))])

    return w.build(w.broadcast(shape, given), element)


def take(w, a, indices, axis=None):
    from .shaping import axis_of, ravel
    a = w.num(a)
    if not is_given(axis):
        a, axis = ravel(w, a), Known(0)
    k = axis_of(w, a, axis)
    given = w.num(indices)
    if not given.rank:
        whole = Slice(None, None, None)
        return indexing.get(w, a, Row([*[whole] * k, indices]))
    if given.kind != "i":
        w.fail(f"an array is indexed by {describe(given)}", "index by ints")
    axes = [Axis(start=Dim(0), count=dim) for dim in a.dims]
    axes[k] = Axis(gather=given)
    return indexing.gathered(w, a, axes)


def quantified(name):
    """`any` and `all` of what is iterated over."""
    def compute(w, iterable):
        inner = loops.loop_of(w, iterable)
        if isinstance(inner, list) and all(isinstance(item, Known) for item in inner):
            return Known(getattr(np, name)([bool(item.value) for item in inner]).item())
        values = inner if isinstance(inner, list) else None
        sign, start = ("||", False) if name == "any" else ("&&", True)
        combine = lambda s, x: Num(w.program.infix(sign, s.term, w.cast(w.scalar(x), "b").term), "b")
        if values is None:
            return w.reduce(inner.count, w.constant(start), lambda s, i: combine(s, inner.element(i)))
        result = w.constant(start)
        for item in values:
            result = combine(result, item)
        return result
    return compute
