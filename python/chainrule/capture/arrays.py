"""Arrays that are made: constructors, copies, transposes, parts put together."""

from __future__ import annotations

import numpy as np

from .operators import binary, scalar
from .values import Dim, Known, Num, Row, describe

FLOATS = (float, np.float64, "float64", "float", "d")
INTS = (int, np.int64, "int64", "int")
BOOLS = (bool, np.bool_, "bool")


def kind_of(w, dtype, default):
    """The kind of a dtype that is given."""
    if dtype is None:
        return default
    value = getattr(dtype, "value", dtype)
    if value is None:
        return default
    if isinstance(value, np.dtype):
        value = value.type
    for kind, names in (("f", FLOATS), ("i", INTS), ("b", BOOLS)):
        if any(value is name or isinstance(name, str) and value == name for name in names):
            return kind
    return w.fail(f"the dtype {getattr(value, '__name__', value)} is not supported", "use float64, int64 or bool")


def shape_of(w, shape):
    if isinstance(shape, Known) and isinstance(shape.value, tuple):
        shape = Row([Known(k) for k in shape.value])
    parts = shape.items if isinstance(shape, Row) else [shape]
    dims = [w.dim(part, "an extent") for part in parts]
    for dim in dims:
        if dim.known is not None and dim.known < 0:
            w.fail("negative dimensions are not allowed")
    return tuple(dims)


def filled(value):
    def make(w, shape, dtype=None):
        kind = kind_of(w, dtype, "f")
        dims = shape_of(w, shape)
        number = w.cast(w.constant(value), kind)
        return w.build(dims, lambda _: number) if dims else number
    return make


def full(w, shape, fill_value, dtype=None):
    number = w.num(fill_value)
    number = w.cast(number, kind_of(w, dtype, number.kind))
    dims = shape_of(w, shape)
    return w.broadcast_to(number, dims) if dims else number


def filled_like(value):
    def make(w, a, dtype=None):
        a = w.num(a)
        number = w.cast(w.constant(value), kind_of(w, dtype, a.kind))
        return w.build(a.dims, lambda _: number) if a.rank else number
    return make


def full_like(w, a, fill_value, dtype=None):
    a = w.num(a)
    number = w.cast(w.num(fill_value), kind_of(w, dtype, a.kind))
    return w.broadcast_to(number, a.dims) if a.rank else number


def arange(w, start, stop=None, step=None, dtype=None):
    if stop is None:
        start, stop = Known(0), start
    step = Known(1) if step is None else step
    first, last, by = w.num(start), w.num(stop), w.num(step)
    if "f" in (first.kind, last.kind, by.kind):
        w.fail("`np.arange` of floats", "use `np.linspace`, or multiply `np.arange(n)` by the step")
    from .loops import counted
    n, at = counted(w, start, stop, step)
    return w.build((n,), lambda i: w.cast(at(i[0]), kind_of(w, dtype, "i")))


def linspace(w, start, stop, num=None):
    start, stop = (w.cast(w.scalar(x), "f") for x in (start, stop))
    n = w.dim(Known(50) if num is None else num)
    name = w.program.apply("linspace", [start.term, stop.term, w.size(n).term])
    return Num(name, "f", (n,))


def eye(w, N, dtype=None):
    n, kind = w.dim(N), kind_of(w, dtype, "f")
    one, zero = w.cast(w.constant(1), kind), w.cast(w.constant(0), kind)
    return w.build((n, n), lambda i: w.choose(scalar(w, "==", *i), lambda: one, lambda: zero))


def array(w, object, dtype=None):
    """`np.array`, `np.asarray`: a fresh array of what is given."""
    made = w.num(object)
    made = w.cast(made, kind_of(w, dtype, made.kind))
    return Num(made.term, made.kind, made.dims, dim=made.dim)


def asarray(w, a, dtype=None):
    made = w.num(a)
    cast = w.cast(made, kind_of(w, dtype, made.kind))
    if cast is made and not made.is_list:
        return made
    return Num(cast.term, cast.kind, cast.dims)


def astype(w, a, dtype):
    a = w.num(a)
    return array(w, a, Known(kind_name(kind_of(w, dtype, a.kind))))


def kind_name(kind):
    return {"f": "float64", "i": "int64", "b": "bool"}[kind]


def transpose(w, a):
    a = w.num(a)
    if a.rank < 2:
        return a
    if a.rank == 2:
        term = w.program.apply("matrixTranspose", [a.term])
        return Num(term, a.kind, a.dims[::-1], storage=a.storage)
    made = w.build(a.dims[::-1], lambda i: w.element(a, i[::-1]))
    return Num(made.term, made.kind, made.dims, storage=a.storage)


def ravel(w, a):
    a = w.num(a)
    if a.rank < 2:
        return a if a.rank else w.stack([a])
    total = w.size(a.dims[0])
    for dim in a.dims[1:]:
        total = scalar(w, "*", total, w.size(dim))

    def element(i):
        rest, indices = i[0], []
        for dim in reversed(a.dims[1:]):
            n = w.size(dim)
            indices.append(scalar(w, "%", rest, n))
            rest = scalar(w, "//", rest, n)
        return w.element(a, [rest, *reversed(indices)])

    return w.build((w.dim(total),), element)


def concatenate(w, arrays, axis=None):
    parts = [w.num(part) for part in rows(w, arrays)]
    if axis is not None and getattr(axis, "value", 0) != 0:
        w.fail("`np.concatenate` along another axis than 0", "transpose before and after")
    kind = "b" if all(part.kind == "b" for part in parts) else w.common(*parts)
    parts = [w.cast(part, kind) for part in parts]
    result = parts[0]
    for part in parts[1:]:
        if part.rank != result.rank or not part.rank:
            w.fail("arrays of different dimensions are put together")
        for first, other in zip(result.dims[1:], part.dims[1:]):
            w.require_equal(first, other, "they are put together along axis 0")
        term = w.program.apply("vectorConcat", [result.term, part.term])
        result = Num(term, kind, (result.dims[0] + part.dims[0], *result.dims[1:]))
    return result


def rows(w, arrays):
    if isinstance(arrays, Row):
        return arrays.items
    return w.fail(f"{describe(w.num(arrays))} stands for a list of arrays", "write a list or a tuple of arrays")


def stack(w, arrays):
    return w.stack([w.num(part) for part in rows(w, arrays)])


def diag(w, v):
    v = w.num(v)
    if v.rank == 2:
        w.require_equal(v.dims[0], v.dims[1], "`np.diag` is for square matrices")
        return w.build((v.dims[0],), lambda i: w.element(v, [i[0], i[0]]))
    zero = w.cast(w.constant(0), v.kind)
    n = v.dims[0]
    return w.build((n, n), lambda i: w.choose(scalar(w, "==", *i), lambda: w.element(v, i[:1]), lambda: zero))


def where(w, condition, x, y):
    condition, x, y = w.cast(w.num(condition), "b"), w.num(x), w.num(y)
    kind = x.kind if x.kind == y.kind else w.common(x, y)
    x, y = w.cast(x, kind), w.cast(y, kind)
    dims = w.broadcast(condition, x, y)

    def element(i):
        # The elements are taken inside of the branches.
        return w.choose(w.spread(condition, i), lambda: w.spread(x, i), lambda: w.spread(y, i))

    return w.build(dims, element) if dims else w.choose(condition, lambda: x, lambda: y)


def diff(w, a):
    a = w.num(a)
    if a.rank != 1:
        w.fail(f"`np.diff` of {describe(a)}", "subtract slices")
    return w.build((a.dims[0] - 1,), lambda i: binary(
        w, "-", w.element(a, [scalar(w, "+", i[0], w.constant(1))]), w.element(a, i)))
