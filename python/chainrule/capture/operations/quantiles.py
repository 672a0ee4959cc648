"""Medians, quantiles and percentiles: elements of sorted arrays, and numbers between two of them."""

from __future__ import annotations

import math

import numpy as np

from .folding import MISSING, python_value
from .operators import call, is_nan, scalar
from .reductions import axes_of, is_nothing, mean
from .shaping import known, permuted, product, reshape
from .sorting import sort
from .whole import to_int
from ..values import Dim, Known, Row


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


def quantile(w, a, q, axis=None, method=Known("linear"), keepdims=None):
    return interpolated(w, "np.quantile", a, q, 1.0, axis, method, keepdims)


def percentile(w, a, q, axis=None, method=Known("linear"), keepdims=None):
    return interpolated(w, "np.percentile", a, q, 100.0, axis, method, keepdims)


def interpolated(w, name, a, q, top, axis, method, keepdims):
    """The number at the part `q / top` of the way through a sorted array. Outside of it, the program fails."""
    given = python_value(q)
    if given is not MISSING and not np.all((0 <= np.asarray(given)) & (np.asarray(given) <= top)):
        w.fail(f"`{name}` of a part that is not between 0 and {top:g}")
    a, q = prepared(w, name, a), w.cast(w.num(q), "f")
    if known(w, method, "the method") != "linear":
        w.fail(f"`{name}` by another method than 'linear'", "leave `method` out")
    if is_nothing(w, a, axis):
        w.fail(f"`{name}` of an array that has no elements")
    total = product(w, [a.dims[k] for k in axes_of(w, a, axis)])
    part = lambda x: x if top == 1.0 else scalar(w, "/", x, w.constant(top))
    at = w.map(lambda x: scalar(w, "*", w.cast(w.size(total - 1), "f"), part(x)), q)
    below = w.map(lambda x: to_int(w, call(w, "floor", x)), at)

    def number(v, indices):
        k = w.element(below, indices)
        rest = scalar(w, "-", w.element(at, indices), w.cast(k, "f"))
        first = w.cast(w.element(v, [k]), "f")
        following = lambda: w.cast(w.element(v, [scalar(w, "+", k, w.constant(1))]), "f")
        between = lambda: scalar(w, "+", first, scalar(w, "*", rest, scalar(w, "-", following(), first)))
        return unless_nan(w, v, lambda: w.choose(scalar(w, "==", rest, w.constant(0.0)), lambda: first, between))

    return of_sorted(w, a, axis, keepdims, q.dims, number)
