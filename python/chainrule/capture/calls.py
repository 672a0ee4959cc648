"""Functions and methods that captured code may call, by the objects that they are.

`NAMES` is the table of supported calls besides the elementwise ones: what a reader of the guide sees.
"""

from __future__ import annotations

import inspect
import math

import numpy as np

from . import arrays, loops, reductions
from .operators import binary, call, scalar
from .ufuncs import BY_OBJECT, ROWS, special
from .values import Dim, Known, Num, Row, describe, is_number


def _len(w, obj):
    if isinstance(obj, Row):
        return Known(len(obj.items))
    if isinstance(obj, Known):
        return Known(len(obj.value))
    if isinstance(obj, Num) and obj.rank:
        return size_value(w, obj.dims[0])
    return w.fail(f"{describe(obj)} has no len()")


def size_value(w, dim):
    return Known(dim.known) if dim.known is not None else w.size(dim)


def shape(w, a):
    return Row([size_value(w, dim) for dim in w.num(a).dims])


def size(w, a):
    total = Known(1)
    for dim in w.num(a).dims:
        total = binary(w, "*", total, size_value(w, dim))
    return total


def ndim(w, a):
    return Known(w.num(a).rank)


def _float(w, x=Known(0.0)):
    return Known(float(x.value)) if isinstance(x, Known) and is_number(x.value) else w.cast(w.scalar(x), "f")


def _int(w, x=Known(0)):
    if isinstance(x, Known) and is_number(x.value):
        return Known(int(x.value))
    x = w.scalar(x)
    return w.fail("a float is made an int", "compute indices and sizes with integers") if x.kind == "f" else w.cast(x, "i")


def _bool(w, x=Known(False)):
    from .operators import truth
    value = truth(w, x)
    return Known(value) if isinstance(value, bool) else value


def _abs(w, x):
    return w.map(lambda v: BY_OBJECT[np.absolute].compute(w, v), w.num(x))


def _extreme(name, by_axis):
    def compute(w, *values):
        if len(values) == 1:
            inner = loops.loop_of(w, values[0])
            if not isinstance(inner, list):
                return by_axis(w, values[0])
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


def _sum(w, iterable, start=Known(0)):
    inner = loops.loop_of(w, iterable)
    if isinstance(inner, list):
        total = start
        for item in inner:
            total = binary(w, "+", total, item)
        return total
    # One element is written to see what it is; what is not used of it goes.
    w.index()
    probe = w.num(inner.element(w.index()))
    for _ in range(2):
        w.program.close(w.program.integer(0))
    if probe.rank:
        made = w.build((inner.count,), lambda i: w.num(inner.element(i[0])))
        total = reductions.sum_(w, made, Known(0))
    elif probe.kind == "f":
        total = w.total([inner.count], lambda i: w.num(inner.element(i[0])))
    else:
        total = w.reduce(inner.count, w.constant(0), lambda s, i: scalar(w, "+", s, w.cast(w.num(inner.element(i)), "i")))
    return total if isinstance(start, Known) and is_number(start.value) and start.value == 0 else binary(w, "+", start, total)


def _tuple(w, iterable=None):
    if iterable is None:
        return Row([])
    inner = loops.loop_of(w, iterable)
    if isinstance(inner, list):
        return Row(inner)
    if inner.count.known is not None:
        return Row([inner.element(w.constant(k)) for k in range(inner.count.known)])
    return w.fail("a tuple of unknown length is made", "use an array")


def _list(w, iterable=None):
    made = _tuple(w, iterable)
    return Row(made.items, is_list=True)


def _divmod(w, x, y):
    return Row([binary(w, "//", x, y), binary(w, "%", x, y)])


def _pow(w, base, exp):
    return binary(w, "**", base, exp)


def _round(w, number):
    return w.fail("`round` is called", "its derivative is 0: use `np.floor(x + 0.5)` if that is meant")


def _copy(w, a):
    return arrays.array(w, a)


def _where(w, condition, x=None, y=None):
    if x is None or y is None:
        w.fail("`np.where` with one argument", "its result's size depends on data: use `np.where(c, a, b)`")
    return arrays.where(w, condition, x, y)


def _fsum(w, iterable):
    return _sum(w, iterable)


TABLE = {
    len: _len, float: _float, int: _int, bool: _bool, abs: _abs, sum: _sum, tuple: _tuple, list: _list, divmod: _divmod,
    pow: _pow, round: _round, range: loops.range_, enumerate: loops.enumerate_, zip: loops.zip_, reversed: loops.reversed_,
    min: _extreme("min", reductions.extreme("min")), max: _extreme("max", reductions.extreme("max")), math.fsum: _fsum,
    np.shape: shape, np.size: size, np.ndim: ndim, np.float64: _float, np.int64: _int,
    np.sum: reductions.sum_, np.prod: reductions.prod, np.mean: reductions.mean, np.var: reductions.var, np.std: reductions.std,
    np.max: reductions.extreme("max"), np.min: reductions.extreme("min"), np.any: reductions.any_all("||"),
    np.all: reductions.any_all("&&"), np.dot: reductions.dot, np.matmul: reductions.matmul, np.vdot: reductions.inner,
    np.inner: reductions.inner, np.outer: reductions.outer, np.trace: reductions.trace,
    np.cumsum: reductions.cumulative("+"), np.cumprod: reductions.cumulative("*"), np.linalg.norm: reductions.norm,
    np.linalg.solve: reductions.solve, np.linalg.inv: reductions.of_matrix("np.linalg.inv", "inverse", False),
    np.linalg.det: reductions.of_matrix("np.linalg.det", "det", True),
    np.linalg.cholesky: reductions.of_matrix("np.linalg.cholesky", "cholesky", False),
    np.zeros: arrays.filled(0), np.ones: arrays.filled(1), np.empty: arrays.filled(0), np.full: arrays.full,
    np.zeros_like: arrays.filled_like(0), np.ones_like: arrays.filled_like(1), np.empty_like: arrays.filled_like(0),
    np.full_like: arrays.full_like, np.arange: arrays.arange, np.linspace: arrays.linspace, np.eye: arrays.eye,
    np.identity: arrays.eye, np.array: arrays.array, np.asarray: arrays.asarray, np.ascontiguousarray: arrays.asarray,
    np.copy: _copy, np.transpose: arrays.transpose, np.ravel: arrays.ravel, np.concatenate: arrays.concatenate,
    np.stack: arrays.stack, np.diag: arrays.diag, np.where: _where, np.diff: arrays.diff,
}
if special is not None:
    TABLE[special.logsumexp] = reductions.logsumexp

METHODS = {
    "sum": reductions.sum_, "prod": reductions.prod, "mean": reductions.mean, "var": reductions.var, "std": reductions.std,
    "max": reductions.extreme("max"), "min": reductions.extreme("min"), "any": reductions.any_all("||"),
    "all": reductions.any_all("&&"), "dot": reductions.dot, "copy": _copy, "transpose": arrays.transpose,
    "ravel": arrays.ravel, "flatten": lambda w, a: arrays.array(w, arrays.ravel(w, a)), "astype": arrays.astype,
    "cumsum": reductions.cumulative("+"), "cumprod": reductions.cumulative("*"), "trace": reductions.trace,
    "item": lambda w, a: w.scalar(a), "clip": lambda w, a, min, max: elementwise(w, BY_OBJECT[np.clip], [a, min, max]),
}

ATTRIBUTES = {"T": arrays.transpose, "shape": shape, "size": size, "ndim": ndim}


def elementwise(w, row, args):
    wanted = len(row.samples)
    if len(args) != wanted:
        w.fail(f"`{row.names[0]}` takes {wanted} argument{'s' if wanted > 1 else ''}, not {len(args)}")
    numbers = [w.num(arg) for arg in args]
    return w.map(lambda *xs: row.compute(w, *xs), *numbers)


def known_call(w, function, args, kwargs):
    """Calls a supported function of known objects: `None` where it is not supported."""
    row = _find(BY_OBJECT, function)
    if row is not None:
        if kwargs:
            w.fail(f"`{row.names[0]}` is called with `{next(iter(kwargs))}=`", "leave it out")
        return elementwise(w, row, args)
    handler = _find(TABLE, function)
    if handler is None:
        return None
    return apply(w, handler, name_of(function), args, kwargs)


def apply(w, handler, name, args, kwargs):
    try:
        inspect.signature(handler).bind(w, *args, **kwargs)
    except TypeError as error:
        w.fail(f"`{name}`: {error}", "leave out what is not supported here")
    return handler(w, *args, **kwargs)


def _find(table, function):
    try:
        return table.get(function)
    except TypeError:  # Not hashable.
        return None


def name_of(function):
    module = getattr(function, "__module__", None) or ""
    name = getattr(function, "__name__", repr(function))
    short = {"numpy": "np", "numpy.linalg": "np.linalg", "builtins": "", "math": "math"}.get(module, module)
    return f"{short}.{name}" if short else name


def supported():
    """Names of everything that captured code may call, sorted."""
    names = {name_of(function) for function in TABLE} | {f".{name}" for name in METHODS | ATTRIBUTES}
    for row in ROWS:
        names |= {name.replace("special.", "scipy.special.") for name in row.names}
    return sorted(names)
