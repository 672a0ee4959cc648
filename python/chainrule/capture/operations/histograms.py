"""Counts: by index, and by interval."""

from __future__ import annotations

import numpy as np

from . import indexing
from .arrays import diff
from .folding import MISSING, python_value
from .operators import binary, scalar
from .padding import pairs
from .reductions import extreme, sum_
from .shaping import ravel
from .sorting import counting
from .ufuncs import BY_OBJECT
from ..values import Known, Num, Row, describe, is_given


def bincount(w, x, weights=None, minlength=Known(0)):
    """`np.bincount`. Where indices are read from data, `minlength` is the size, and a larger index is an error."""
    k, given = w.num(x), python_value(x)
    if k.rank != 1 or k.kind != "i":
        w.fail(f"`np.bincount` of {describe(k)}", "it is for vectors of ints")
    if given is not MISSING and isinstance(minlength, Known):
        minlength = Known(len(np.bincount(given, minlength=minlength.value)))
    elif getattr(minlength, "value", None) == 0:
        w.fail("the size of `np.bincount` depends on data", "write `minlength=n` with an `n` above all indices, or `np.add.at(np.zeros(n), k, 1)`")
    n, kind = w.dim(minlength, "`minlength`"), "i"
    values = w.constant(1)
    if is_given(weights):
        values, kind = w.cast(w.num(weights), "f"), "f"
        w.require_equal(k.dims[0], values.dims[0], "indices and their weights")
    return counts(w, n, kind, k, values)


def counts(w, n, kind, k, values):
    """The sums of the values at each index."""
    zero = w.cast(w.constant(0), kind)
    made = indexing.accumulate(w, w.build((n,), lambda _: zero), k, values, BY_OBJECT[np.add])
    return Num(made.term, made.kind, made.dims)


def edges_of(w, a, bins, limits):
    """The bounds of intervals: a vector that is given, or one of equal steps between two numbers, the least and the largest one of
    data where none are given."""
    if isinstance(getattr(bins, "value", None), str):
        w.fail(f"`np.histogram` with the bins {bins.value!r}", "write their number or their bounds: the number would depend on data")
    given = w.num(bins)
    if given.rank == 1:
        if given.dims[0].known is not None and given.dims[0].known < 2:
            w.fail("the bounds of the bins are less than two")
        return w.cast(given, "f") if given.kind == "b" else given
    if given.rank:
        w.fail("`bins` must be 1d, when an array", "write a number or a vector")
    n = w.dim(given, "the number of bins")
    if n.known is not None and n.known < 1:
        w.fail("`bins` must be positive, when an integer")
    if is_given(limits):
        low, high = (w.cast(w.scalar(one), "f") for one in pairs(w, limits, 1, "the range")[0])
    else:
        low, high = (w.cast(extreme(name, nan_wins=True)(w, a), "f") for name in ("min", "max"))
    half, is_point = w.constant(0.5), scalar(w, "==", low, high)
    first = w.choose(is_point, lambda: scalar(w, "-", low, half), lambda: low)
    last = w.choose(is_point, lambda: scalar(w, "+", high, half), lambda: high)
    count = w.size(n)
    step = scalar(w, "/", scalar(w, "-", last, first), count)
    inner = lambda i: scalar(w, "+", scalar(w, "*", w.cast(i, "f"), step), first)
    return w.build((n + 1,), lambda i: w.choose(scalar(w, "<", i[0], count), lambda: inner(i[0]), lambda: last))


def histogram_bin_edges(w, a, bins=Known(10), range=None, weights=None):
    return edges_of(w, ravel(w, w.num(a)), bins, range)


def histogram(w, a, bins=Known(10), range=None, density=None, weights=None):
    """`np.histogram`: numbers between two bounds, the lower one included, and for the last interval also the upper one."""
    a = ravel(w, w.num(a))
    if is_given(bins) and w.num(bins).rank == 0 and not is_given(range) and a.dims[0].known == 0:
        range = Known((0.0, 1.0))
    edges = edges_of(w, a, bins, range)
    kind = w.common(a, edges)
    values, bounds = w.cast(a, kind), w.cast(edges, kind)
    n, one, zero = bounds.dims[0] - 1, w.constant(1), w.constant(0)
    count, last = counting(w, bounds, "<="), w.element(bounds, [w.size(n)])

    def place(v):
        """The interval of a number; beyond the last one, where none holds it."""
        below = count(v)
        is_last = scalar(w, "==", v, last)
        outside = lambda: w.choose(is_last, lambda: w.size(n - 1), lambda: w.size(n))
        is_inside = scalar(w, "&", scalar(w, ">", below, zero), scalar(w, "<", v, last))
        return w.choose(is_inside, lambda: scalar(w, "-", below, one), outside)

    factors, kind = one, "i"
    if is_given(weights):
        factors = ravel(w, w.num(weights))
        factors = w.cast(factors, "f")
        kind = "f"
        w.require_equal(a.dims[0], factors.dims[0], "numbers and their weights")
    places = w.build(a.dims, lambda i: place(w.element(values, i)))
    found = counts(w, n + 1, kind, places, factors)
    found = w.build((n,), lambda i: w.element(found, i))
    if is_given(density) and density.value:
        found = binary(w, "/", binary(w, "/", w.cast(found, "f"), diff(w, edges)), w.cast(sum_(w, found), "f"))
    return Row([found, edges])
