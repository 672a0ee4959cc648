"""Arrays that are made: constructors, copies, transposes, parts put together."""

from __future__ import annotations

import numpy as np

from .operators import binary, scalar
from .shaping import at_least_rank, axis_of, diagonal, joined, known_int, moved, ravel
from ..values import Dim, Known, Num, Row, describe, is_given
from .whole import to_int

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


def extents_of(w, shape):
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
        dims = extents_of(w, shape)
        number = w.cast(w.constant(value), kind)
        return w.build(dims, lambda _: number) if dims else number
    return make


def full(w, shape, fill_value, dtype=None):
    number = w.num(fill_value)
    number = w.cast(number, kind_of(w, dtype, number.kind))
    dims = extents_of(w, shape)
    return array(w, w.broadcast_to(number, dims)) if dims else number


def filled_like(value):
    def make(w, a, dtype=None):
        a = w.num(a)
        number = w.cast(w.constant(value), kind_of(w, dtype, a.kind))
        return w.build(a.dims, lambda _: number) if a.rank else number
    return make


def full_like(w, a, fill_value, dtype=None):
    a = w.num(a)
    number = w.cast(w.num(fill_value), kind_of(w, dtype, a.kind))
    return array(w, w.broadcast_to(number, a.dims)) if a.rank else number


def arange(w, start, stop=None, step=None, dtype=None):
    if stop is None:
        start, stop = Known(0), start
    step = Known(1) if step is None else step
    first, last, by = w.num(start), w.num(stop), w.num(step)
    if "f" in (first.kind, last.kind, by.kind):
        given = [getattr(x, "value", None) for x in (start, stop, step)]
        if None not in given:
            n = len(np.arange(*given))
            element = lambda i: scalar(w, "+", w.cast(first, "f"), scalar(w, "*", w.cast(i[0], "f"), w.cast(by, "f")))
            return w.build((Dim(n),), lambda i: w.cast(element(i), kind_of(w, dtype, "f")))
        whole = [Known(int(x)) if isinstance(x, float) and x.is_integer() else was for x, was in zip(given, (start, stop, step))]
        if "f" in [w.num(x).kind for x in whole]:
            w.fail("`np.arange` of floats", "use `np.linspace`, or multiply `np.arange(n)` by the step")
        return arange(w, *whole, Known(np.float64) if dtype is None else dtype)
    from ..loops import counted
    n, at = counted(w, start, stop, step)
    return w.build((n,), lambda i: w.cast(at(i[0]), kind_of(w, dtype, "i")))


def linspace(w, start, stop, num=None, endpoint=Known(True), dtype=None):
    start, stop = (w.cast(w.scalar(x), "f") for x in (start, stop))
    n = w.dim(Known(50) if num is None else num)
    kind_of(w, dtype, "f") == "f" or w.fail("`np.linspace` of ints", "use `np.arange`")
    if not endpoint.value:
        step = scalar(w, "/", scalar(w, "-", stop, start), w.size(n))
        return w.build((n,), lambda i: scalar(w, "+", start, scalar(w, "*", w.cast(i[0], "f"), step)))
    name = w.program.apply("linspace", [start.term, stop.term, w.size(n).term])
    return Num(name, "f", (n,))


def eye(w, N, M=None, k=Known(0), dtype=None):
    n, kind = w.dim(N), kind_of(w, dtype, "f")
    m = w.dim(M) if is_given(M) else n
    one, zero = w.cast(w.constant(1), kind), w.cast(w.constant(0), kind)
    row = lambda i: i if getattr(k, "value", None) == 0 else scalar(w, "+", i, w.integer(k, "a diagonal"))
    return w.build((n, m), lambda i: w.choose(scalar(w, "==", row(i[0]), i[1]), lambda: one, lambda: zero))


def identity(w, n, dtype=None):
    return eye(w, n, dtype=dtype)


def tri(w, N, M=None, k=Known(0)):
    n, m = w.dim(N), w.dim(N if M is None else M)
    one, zero = w.constant(1.0), w.constant(0.0)
    shift = w.integer(k, "a diagonal")
    return w.build((n, m), lambda i: w.choose(scalar(w, "<=", i[1], scalar(w, "+", i[0], shift)), lambda: one, lambda: zero))


def array(w, object, dtype=None, *, copy=None, order=None, ndmin=Known(0)):
    """`np.array`: a fresh array of what is given."""
    made = at_least_rank(w, w.num(object), ndmin.value)
    made = w.cast(made, kind_of(w, dtype, made.kind))
    return Num(made.term, made.kind, made.dims, dim=made.dim)


def asarray(w, a, dtype=None, order=None, *, copy=None):
    made = w.num(a)
    cast = w.cast(made, kind_of(w, dtype, made.kind))
    if cast is made and not made.is_list:
        return made
    return Num(cast.term, cast.kind, cast.dims)


def astype(w, a, dtype):
    a = w.num(a)
    kind = kind_of(w, dtype, a.kind)
    if a.kind == "f" and kind == "i":
        return w.map(lambda x: to_int(w, x), a)
    return array(w, a, Known(kind_name(kind)))


def kind_name(kind):
    return {"f": "float64", "i": "int64", "b": "bool"}[kind]


def diag(w, v, k=Known(0)):
    v, by = w.num(v), known_int(w, k, "the offset of a diagonal")
    if v.rank == 2:
        made = diagonal(w, v, Known(by))
        return Num(made.term, made.kind, made.dims)
    if v.rank != 1:
        w.fail(f"`np.diag` of {describe(v)}", "it is for vectors and matrices")
    zero = w.cast(w.constant(0), v.kind)
    n = v.dims[0] + abs(by)
    row, column = (lambda i: i[0]), (lambda i: moved(w, i[1], w.constant(-by)))
    own = column if by > 0 else row
    at = lambda i: i if by >= 0 else scalar(w, "-", i, w.constant(-by))
    return w.build((n, n), lambda i: w.choose(scalar(w, "==", row(i), column(i)), lambda: w.element(v, [at(own(i))]), lambda: zero))


def diagflat(w, v, k=Known(0)):
    return diag(w, ravel(w, at_least_rank(w, w.num(v), 1)), k)


def where(w, condition, x, y):
    condition, x, y = w.cast(w.num(condition), "b"), w.num(x), w.num(y)
    kind = x.kind if x.kind == y.kind else w.common(x, y)
    x, y = w.cast(x, kind), w.cast(y, kind)
    dims = w.broadcast(condition, x, y)

    def element(i):
        # The elements are taken inside of the branches.
        return w.choose(w.spread(condition, i), lambda: w.spread(x, i), lambda: w.spread(y, i))

    return w.build(dims, element) if dims else w.choose(condition, lambda: x, lambda: y)


def diff(w, a, n=Known(1), axis=Known(-1), prepend=None, append=None):
    a = w.num(a)
    k = axis_of(w, a, axis)
    ends = [end if end is None or getattr(end, "value", 0) is np._NoValue else w.num(end) for end in (prepend, append)]
    if any(isinstance(end, Num) for end in ends):
        dims = tuple(Dim(1) if m == k else dim for m, dim in enumerate(a.dims))
        before, after = (w.broadcast_to(end, dims) if isinstance(end, Num) and not end.rank else end for end in ends)
        parts = [part for part in (before, a, after) if isinstance(part, Num)]
        kind = w.common(*parts)
        a = joined(w, [w.cast(part, kind) for part in parts], Known(k))
    one = w.constant(1)
    if n.value < 0:
        w.fail(f"`np.diff`: order must be non-negative but got {n.value}")
    for _ in range(n.value):
        if a.dims[k].known == 0:
            return a
        dims = tuple(dim - 1 if m == k else dim for m, dim in enumerate(a.dims))
        a = w.build(dims, lambda i, a=a: binary(
            w, "-", w.element(a, [scalar(w, "+", j, one) if m == k else j for m, j in enumerate(i)]), w.element(a, i)))
    return a


def indices(w, dimensions, dtype=None, sparse=Known(False)):
    dims, kind = extents_of(w, dimensions), kind_of(w, dtype, "i")
    number = lambda i: w.cast(i, kind)
    if sparse.value:
        one = lambda k: tuple(dim if k == j else Dim(1) for j, dim in enumerate(dims))
        return Row([w.build(one(k), lambda i, k=k: number(i[k])) for k in range(len(dims))])
    return w.stack([w.build(dims, lambda i, k=k: number(i[k])) for k in range(len(dims))])


def ix_(w, *args):
    """`np.ix_`: each vector of indices along an axis of its own."""
    vectors = [w.num(arg) for arg in args]
    for one in vectors:
        if one.rank != 1 or one.kind != "i":
            w.fail(f"`np.ix_` of {describe(one)}", "it is for vectors of ints")
    shape = lambda k: tuple(vectors[k].dims[0] if j == k else Dim(1) for j in range(len(vectors)))
    return Row([w.build(shape(k), lambda i, k=k, one=one: w.element(one, [i[k]])) for k, one in enumerate(vectors)])


def vander(w, x, N=None, increasing=Known(False)):
    x = w.num(x)
    if x.rank != 1:
        w.fail(f"`np.vander` of {describe(x)}", "it is for vectors")
    x = w.cast(x, "i") if x.kind == "b" else x
    n = w.dim(N) if is_given(N) else x.dims[0]
    last, one = w.size(n - 1), w.cast(w.constant(1), x.kind)

    def element(i):
        base, exponent = w.element(x, i[:1]), i[1] if increasing.value else scalar(w, "-", last, i[1])
        if x.kind == "f":
            return scalar(w, "**", base, exponent)
        return w.reduce(exponent.dim, one, lambda s, _: scalar(w, "*", s, base))

    return w.build((x.dims[0], n), element)


def logspace(w, start, stop, num=None, endpoint=Known(True), base=Known(10.0), dtype=None):
    base = w.cast(w.scalar(base), "f")
    return w.map(lambda y: scalar(w, "**", base, y), linspace(w, start, stop, num, endpoint, dtype))


def geomspace(w, start, stop, num=None, endpoint=Known(True), dtype=None):
    """`np.geomspace` of two numbers of one sign."""
    first, last = (w.cast(w.scalar(x), "f") for x in (start, stop))
    ratio = scalar(w, "/", last, first)
    part = linspace(w, Known(0.0), Known(1.0), num, endpoint, dtype)
    return w.map(lambda t: scalar(w, "*", first, scalar(w, "**", ratio, t)), part)


def select(w, condlist, choicelist, default=Known(0)):
    result = default
    for condition, choice in reversed(list(zip(condlist.items, choicelist.items))):
        result = where(w, condition, choice, result)
    return result
