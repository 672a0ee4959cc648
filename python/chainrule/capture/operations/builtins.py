"""Functions of Python and of `math`: numbers, sums, extremes, tuples and lists."""

from __future__ import annotations

import math

import numpy as np

from .. import loops
from . import norms, reductions, whole
from .elementwise import elementwise
from .operators import binary, call, scalar, truth
from .properties import size_value
from .ufuncs import BY_OBJECT, nearest
from ..values import Known, Masked, Num, Row, describe, is_number


def len_(w, obj):
    if isinstance(obj, Row):
        return Known(len(obj.items))
    if isinstance(obj, Known):
        return Known(len(obj.value))
    if isinstance(obj, Masked):
        return reductions.sum_(w, obj.mask)
    if isinstance(obj, Num) and obj.rank:
        return size_value(w, obj.dims[0])
    return w.fail(f"{describe(obj)} has no len()")


def of_text(w, kind, x):
    """A number that is written as a string."""
    try:
        return Known(kind(x.value))
    except ValueError as error:
        return w.fail(f"`{kind.__name__}`: {error}")


def float_(w, x=Known(0.0)):
    if isinstance(x, Known) and isinstance(x.value, str):
        return of_text(w, float, x)
    return Known(float(x.value)) if isinstance(x, Known) and is_number(x.value) else w.cast(w.scalar(x), "f")


def int_(w, x=Known(0)):
    if isinstance(x, Known) and isinstance(x.value, str):
        return of_text(w, int, x)
    if isinstance(x, Known) and is_number(x.value):
        return Known(int(x.value))
    return whole.as_int(w, w.scalar(x))


def rounded(name):
    """`math.floor` and its relatives: an int."""
    def compute(w, x):
        if isinstance(x, Known) and is_number(x.value):
            return Known(getattr(math, name)(x.value))
        x = w.scalar(x)
        return whole.as_int(w, x if name == "trunc" or x.kind != "f" else call(w, name, x))
    return compute


def bool_(w, x=Known(False)):
    value = truth(w, x)
    return Known(value) if isinstance(value, bool) else value


def abs_(w, x):
    return elementwise(w, BY_OBJECT[np.absolute], [x])


def extreme(name, by_axis):
    def compute(w, *values, default=None):
        if len(values) == 1:
            inner = loops.loop_of(w, values[0])
            if not isinstance(inner, list):
                is_loop = not isinstance(values[0], Num)
                return by_axis(w, w.build((inner.count,), lambda i: w.num(inner.element(i[0]))) if is_loop else values[0])
            if not inner and default is not None:
                return default
            values = inner
        if all(isinstance(v, Known) for v in values):
            return Known((min if name == "min" else max)(v.value for v in values))
        # Python keeps the first of equals, as the operators do.
        numbers = [w.scalar(v) for v in values]
        result = numbers[0]
        for number in numbers[1:]:
            kind = w.common(result, number)
            a, b = w.cast(result, kind), w.cast(number, kind)
            result = Num(w.program.apply(name, [a.term, b.term]), kind)
        return result
    return compute


def sum_(w, iterable, start=Known(0)):
    inner = loops.loop_of(w, iterable)
    if isinstance(inner, list):
        total = start
        for item in inner:
            total = binary(w, "+", total, item)
        return total
    # One element is written to see what it is; what is not used of it goes.
    required = set(w.required)
    w.index(inner.count)
    probe = w.num(inner.element(w.index(inner.count)))
    for _ in range(2):
        w.program.close(w.program.integer(0))
    w.required = required
    if probe.rank:
        made = w.build((inner.count,), lambda i: w.num(inner.element(i[0])))
        total = reductions.sum_(w, made, Known(0))
    elif probe.kind == "f":
        total = w.total([inner.count], lambda i: w.num(inner.element(i[0])))
    else:
        total = w.reduce(inner.count, w.constant(0), lambda s, i: scalar(w, "+", s, w.cast(w.num(inner.element(i)), "i")))
    return total if isinstance(start, Known) and is_number(start.value) and start.value == 0 else binary(w, "+", start, total)


def tuple_(w, iterable=None):
    if iterable is None:
        return Row([])
    inner = loops.loop_of(w, iterable)
    if isinstance(inner, list):
        return Row(inner)
    if inner.count.known is not None:
        return Row([inner.element(w.constant(k)) for k in range(inner.count.known)])
    return w.fail("a tuple of unknown length is made", "use an array")


def list_(w, iterable=None):
    made = tuple_(w, iterable)
    return Row(made.items, is_list=True)


def divmod_(w, x, y):
    return Row([binary(w, "//", x, y), binary(w, "%", x, y)])


def pow_(w, base, exp):
    return binary(w, "**", base, exp)


def round_(w, number, ndigits=Known(None)):
    if isinstance(number, Known) and isinstance(ndigits, Known):
        return Known(round(number.value, ndigits.value))
    if not isinstance(ndigits, Known) or ndigits.value is not None:
        w.fail("`round` is called with digits", "its derivative is 0: leave it out")
    x = w.scalar(number)
    return whole.as_int(w, nearest(w, x) if x.kind == "f" else x)


def dist(w, p, q):
    return norms.norm(w, binary(w, "-", w.num(p), w.num(q)))
