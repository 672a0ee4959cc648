"""Medians, quantiles and percentiles: elements of sorted arrays, and numbers between two of them."""

from __future__ import annotations

import math

import numpy as np

from .folding import MISSING, python_value
from .operators import call, is_nan, scalar
from .reductions import axes_of, is_nothing, mean
from .options import no_out
from .shaping import known, permuted, product, reshape
from .sorting import sort
from .ufuncs import nearest
from .whole import to_int
from ..values import Dim, Known, Num, Row


def of_sorted(w, a, axis, keepdims, dims, number):
    """An array of `number(sorted, indices)` for each part along some axes, sorted, and for indices into the further extents `dims`."""
    axes = axes_of(w, a, axis)
    kept = [k for k in range(a.rank) if k not in axes]
    outer = tuple(a.dims[k] for k in kept)
    parts = permuted(w, a, [*kept, *axes])
    if len(axes) != 1:
        parts = reshape(w, parts, Row([w.size(dim) for dim in (*outer, product(w, [a.dims[k] for k in axes]))]))
    parts = sort(w, parts)
    keep = isinstance(keepdims, Known) and bool(keepdims.value)
    shown = tuple(Dim(1) if k in axes else dim for k, dim in enumerate(a.dims)) if keep else outer

    def element(indices):
        inner = indices[len(dims):]
        own = [inner[k] for k in kept] if keep else inner
        return number(w.element(parts, own), indices[:len(dims)])

    return w.build((*dims, *shown), element) if dims or shown else element([])


def prepared(w, name, a):
    a = w.num(a)
    if a.kind == "b":
        w.fail(f"`{name}` of truth values", "make them numbers: `.astype(float)`")
    return w.stack([a]) if not a.rank else a


def unless_nan(w, v, value):
    """The value of a sorted vector, or NaN where that has one: it stands last."""
    if v.kind != "f":
        return value()
    return w.choose(is_nan(w, w.element(v, [w.size(v.dims[0] - 1)])), lambda: w.constant(math.nan), value)


def median(w, a, axis=None, keepdims=None):
    a, half = prepared(w, "np.median", a), w.constant(0.5)
    if is_nothing(w, a, axis):
        return mean(w, a, axis, keepdims)

    def middle(v, _):
        n = w.size(v.dims[0])
        two = w.constant(2)
        before, after = (w.element(v, [scalar(w, "//", k, two)]) for k in (scalar(w, "-", n, w.constant(1)), n))
        return unless_nan(w, v, lambda: scalar(w, "*", half, scalar(w, "+", before, after)))

    return of_sorted(w, a, axis, keepdims, (), middle)


def quantile(w, a, q, axis=None, out=None, overwrite_input=None, method=Known("linear"), keepdims=None):
    no_out(w, "np.quantile", out)
    return interpolated(w, "np.quantile", a, q, 1.0, axis, method, keepdims)


def percentile(w, a, q, axis=None, out=None, overwrite_input=None, method=Known("linear"), keepdims=None):
    no_out(w, "np.percentile", out)
    return interpolated(w, "np.percentile", a, q, 100.0, axis, method, keepdims)


#: Methods that choose a place among `n - 1` steps: the whole number that they take.
PLACES = {"lower": lambda w, x: call(w, "floor", x), "higher": lambda w, x: call(w, "ceil", x), "nearest": nearest}
#: Methods that interpolate around the place `n * q + alpha + q * (1 - alpha - beta) - 1`: their alpha and beta.
SHIFTS = {"linear": (1.0, 1.0), "hazen": (0.5, 0.5), "weibull": (0.0, 0.0), "median_unbiased": (1 / 3, 1 / 3), "normal_unbiased": (0.375, 0.375),
          "interpolated_inverted_cdf": (0.0, 1.0)}


def place(w, method, n, x):
    """The place of a quantile in a sorted array of `n` numbers."""
    last = scalar(w, "-", n, w.constant(1.0))
    if method in PLACES:
        return PLACES[method](w, scalar(w, "*", last, x))
    alpha, beta = SHIFTS.get(method, (1.0, 1.0))
    if (alpha, beta) == (1.0, 1.0):
        return scalar(w, "*", last, x)
    shift = scalar(w, "+", w.constant(alpha - 1.0), scalar(w, "*", x, w.constant(1.0 - alpha - beta)))
    at = scalar(w, "+", scalar(w, "*", n, x), shift)
    smallest = Num(w.program.apply("max", [at.term, w.constant(0.0).term]), "f")
    return Num(w.program.apply("min", [smallest.term, last.term]), "f")


def interpolated(w, name, a, q, top, axis, method, keepdims):
    """The number at the part `q / top` of the way through a sorted array. Outside of it, the program fails."""
    given = python_value(q)
    if given is not MISSING and not np.all((0 <= np.asarray(given)) & (np.asarray(given) <= top)):
        w.fail(f"`{name}` of a part that is not between 0 and {top:g}")
    a, q, method = prepared(w, name, a), w.cast(w.num(q), "f"), known(w, method, "the method")
    if method not in PLACES | SHIFTS | {"midpoint": None}:
        w.fail(f"`{name}` by the method {method!r}", f"use {', '.join(SHIFTS)}, {', '.join(PLACES)} or midpoint")
    if is_nothing(w, a, axis):
        w.fail(f"`{name}` of an array that has no elements")
    total = w.cast(w.size(product(w, [a.dims[k] for k in axes_of(w, a, axis)])), "f")
    part = lambda x: x if top == 1.0 else scalar(w, "/", x, w.constant(top))
    at = w.map(lambda x: place(w, method, total, part(x)), q)
    whole = lambda name, x: to_int(w, call(w, name, x))
    below = w.map(lambda x: whole("floor", x), at)
    if method in SHIFTS and method != "linear":
        # Places are brought into range, parts that lie outside are not: an element is read there.
        last, zero = scalar(w, "-", total, w.constant(1.0)), w.constant(0)
        zeros = w.build((product(w, [a.dims[k] for k in axes_of(w, a, axis)]),), lambda _: zero)
        inside = lambda x, name: w.element(zeros, [whole(name, scalar(w, "*", last, part(x)))])
        below = w.map(lambda k, x: scalar(w, "+", scalar(w, "+", k, inside(x, "floor")), inside(x, "ceil")), below, q)

    def number(v, indices):
        k = w.element(below, indices)
        rest = scalar(w, "-", w.element(at, indices), w.cast(k, "f"))
        first = w.element(v, [k])
        if method in PLACES:
            return unless_nan(w, v, lambda: first)
        first = w.cast(first, "f")
        following = lambda: w.cast(w.element(v, [scalar(w, "+", k, w.constant(1))]), "f")
        share = w.constant(0.5) if method == "midpoint" else rest
        between = lambda: scalar(w, "+", first, scalar(w, "*", share, scalar(w, "-", following(), first)))
        return unless_nan(w, v, lambda: w.choose(scalar(w, "==", rest, w.constant(0.0)), lambda: first, between))

    return of_sorted(w, a, axis, keepdims, q.dims, number)
