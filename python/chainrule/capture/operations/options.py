"""Reductions with the parameters of NumPy's functions, in their order: kinds of numbers, elements that count, first numbers."""

from __future__ import annotations

import math

import numpy as np

from . import arrays, reductions
from .operators import scalar
from .reductions import no_out
from .ufuncs import BY_OBJECT
from ..values import Known, Masked, is_given


def cast(w, name, a, dtype):
    """The numbers of an array as ones of a dtype, where one is given."""
    if not is_given(dtype):
        return a
    if isinstance(a, Masked):
        w.fail(f"`{name}` of elements under a mask is called with `dtype=`", "leave it out")
    return arrays.astype(w, w.num(a), dtype)


def selected(w, name, a, where, neutral):
    """The array with a neutral number in place of elements that do not count."""
    if not is_given(where):
        return a
    if isinstance(a, Masked):
        w.fail(f"`{name}` of elements under a mask is called with `where=`", "combine both masks by `&`")
    array = w.num(a)
    return arrays.where(w, where, array, Known(neutral if array.kind == "f" or math.isinf(neutral) else int(neutral)))


def folded(name, reduction, neutral, ufunc):
    """`np.sum` and `np.prod`."""
    def reduce(w, a, axis=None, dtype=None, out=None, keepdims=None, initial=None, where=None):
        no_out(w, name, out)
        found = reduction(w, selected(w, name, cast(w, name, a, dtype), where, neutral), axis, keepdims)
        return w.map(lambda x, y: BY_OBJECT[ufunc].compute(w, x, y), found, w.num(initial)) if is_given(initial) else found
    return reduce


def extreme(name, kind, ufunc):
    """`np.max` and `np.min`."""
    reduction, lowest = reductions.extreme(kind, nan_wins=True), -math.inf if kind == "max" else math.inf

    def reduce(w, a, axis=None, out=None, keepdims=None, initial=None, where=None):
        no_out(w, name, out)
        if is_given(where) and not is_given(initial):
            w.fail(f"`{name}` is called with `where=` only", "write the number that it starts from: `initial=-np.inf`")
        if not is_given(initial):
            return reduction(w, a, axis, keepdims)
        first = w.num(initial)
        array = w.num(a) if not is_given(where) else selected(w, name, a, where, lowest)
        if array.rank and reductions.is_nothing(w, array, axis):
            first = w.cast(first, w.common(first, array))
            return reductions.reduced(w, array, axis, keepdims, lambda dims, element: first)
        return w.map(lambda x, y: BY_OBJECT[ufunc].compute(w, x, y), reduction(w, array, axis, keepdims), first)

    return reduce


def quantified(name, sign):
    """`np.any` and `np.all`."""
    def reduce(w, a, axis=None, out=None, keepdims=None, where=None):
        no_out(w, name, out)
        if is_given(where):
            a = arrays.where(w, where, w.cast(w.num(a), "b"), Known(sign == "&&"))
        return reductions.any_all(sign)(w, a, axis, keepdims)
    return reduce


def mean(w, a, axis=None, dtype=None, out=None, keepdims=None, where=None):
    no_out(w, "np.mean", out)
    a = cast(w, "np.mean", a, dtype)
    if not is_given(where):
        return reductions.mean(w, a, axis, keepdims)
    a = w.cast(w.num(a), "f")
    mask = w.broadcast_to(w.cast(w.num(where), "b"), a.dims) if a.rank else w.cast(w.num(where), "b")
    counted, total = reductions.sum_(w, mask, axis, keepdims), reductions.sum_(w, selected(w, "np.mean", a, mask, 0.0), axis, keepdims)
    # A quotient of zeros would be simplified as one of real numbers.
    none = lambda n: scalar(w, "==", n, w.constant(0))
    return w.map(lambda x, n: w.choose(none(n), lambda: w.constant(math.nan), lambda: scalar(w, "/", x, n)), total, counted)


def spread(name, reduction):
    """`np.var` and `np.std`."""
    def reduce(w, a, axis=None, dtype=None, out=None, ddof=None, keepdims=None, *, correction=None):
        no_out(w, name, out)
        ddof = correction if is_given(correction) else ddof if is_given(ddof) else None
        return reduction(w, cast(w, name, a, dtype), axis, ddof, keepdims)
    return reduce


def scan(name, sign):
    """`np.cumsum` and `np.cumprod`."""
    def accumulate(w, a, axis=None, dtype=None, out=None):
        no_out(w, name, out)
        return reductions.cumulative(sign)(w, cast(w, name, a, dtype), axis)
    return accumulate


sum_ = folded("np.sum", reductions.sum_, 0.0, np.add)
prod = folded("np.prod", reductions.prod, 1.0, np.multiply)
largest, smallest = extreme("np.max", "max", np.maximum), extreme("np.min", "min", np.minimum)
any_, all_ = quantified("np.any", "||"), quantified("np.all", "&&")
var, std = spread("np.var", reductions.var), spread("np.std", reductions.std)
cumsum, cumprod = scan("np.cumsum", "+"), scan("np.cumprod", "*")
