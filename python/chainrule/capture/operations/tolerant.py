"""Elementwise functions with options: tolerances, digits, replacements of NaN; parts of complex numbers that are real."""

from __future__ import annotations

import numpy as np

from .operators import binary, call, finite, is_nan, scalar
from .reductions import any_all
from .shaping import known, known_int
from .ufuncs import nearest
from ..values import Known, Num, describe

LARGEST = float(np.finfo(float).max)


def isclose(w, a, b, rtol=Known(1e-05), atol=Known(1e-08), equal_nan=Known(False)):
    """`|a - b| <= atol + rtol |b|` of finite numbers; infinite ones are close to equal ones only."""
    relative, absolute = w.cast(w.num(rtol), "f"), w.cast(w.num(atol), "f")
    same_nan = known(w, equal_nan, "`equal_nan`")

    def close(x, y, relative, absolute):
        x, y = w.cast(x, "f"), w.cast(y, "f")
        size = lambda v: call(w, "abs", v)
        limit = scalar(w, "+", absolute, scalar(w, "*", relative, size(y)))
        near = scalar(w, "&", scalar(w, "<=", size(scalar(w, "-", x, y)), limit), finite(w, y))
        found = scalar(w, "|", near, scalar(w, "==", x, y))
        return scalar(w, "|", found, scalar(w, "&", is_nan(w, x), is_nan(w, y))) if same_nan else found

    return w.map(close, w.num(a), w.num(b), relative, absolute)


def allclose(w, a, b, rtol=Known(1e-05), atol=Known(1e-08), equal_nan=Known(False)):
    return any_all("&&")(w, isclose(w, a, b, rtol, atol, equal_nan))


def array_equal(w, a1, a2):
    a, b = w.num(a1), w.num(a2)
    if a.rank != b.rank or any(m.known is not None and n.known is not None and m.known != n.known for m, n in zip(a.dims, b.dims)):
        return Known(False)
    for m, n in zip(a.dims, b.dims):
        w.require_equal(m, n, "arrays are compared")
    return any_all("&&")(w, binary(w, "==", a, b))


def around(w, a, decimals=Known(0)):
    a, digits = w.num(a), known_int(w, decimals, "the number of decimals")
    if a.kind != "f":
        if digits < 0 or a.kind == "b":
            w.fail(f"{describe(a)} is rounded to {digits} decimals", "make it a float before")
        return w.map(lambda x: x, a)
    scale = w.constant(10.0 ** abs(digits))
    there, back = ("*", "/") if digits > 0 else ("/", "*")
    return w.map(lambda x: scalar(w, back, nearest(w, scalar(w, there, x, scale)), scale) if digits else nearest(w, x), a)


def nan_to_num(w, x, copy=Known(True), nan=Known(0.0), posinf=None, neginf=None):
    a = w.num(x)
    if not known(w, copy, "`copy`"):
        w.fail("`np.nan_to_num` with `copy=False`", "assign its result")
    if a.kind != "f":
        return Num(a.term, a.kind, a.dims)
    limit = lambda value, default: w.constant(default) if getattr(value, "value", value) is None else w.cast(w.scalar(value), "f")
    instead, high, low = w.cast(w.scalar(nan), "f"), limit(posinf, LARGEST), limit(neginf, -LARGEST)

    def one(v):
        # One guard around the number: its derivative is selected before it is multiplied, so that no 0 * inf arises.
        infinite = lambda: w.choose(scalar(w, ">", v, w.constant(0.0)), lambda: high, lambda: low)
        return w.choose(finite(w, v), lambda: v, lambda: w.choose(is_nan(w, v), lambda: instead, infinite))

    return w.map(one, a)


def real(w, val):
    return w.num(val)


def imag(w, val):
    a = w.num(val)
    zero = w.cast(w.constant(0), a.kind)
    return w.map(lambda _: zero, a)
