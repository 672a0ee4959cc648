"""Reductions and products of arrays."""

from __future__ import annotations

from .operators import binary, call, scalar
from .values import Dim, Known, Num, describe


def axes_of(w, array, axis):
    """The axes that are reduced, as a sorted list."""
    if axis is None or isinstance(axis, Known) and axis.value is None:
        return list(range(array.rank))
    given = axis.items if hasattr(axis, "items") else [axis]
    found = set()
    for one in given:
        values = one.value if isinstance(one, Known) and isinstance(one.value, tuple) else [getattr(one, "value", None)]
        for k in values:
            if not isinstance(k, int) or not -array.rank <= k < array.rank:
                w.fail(f"axis {k} is out of bounds for {describe(array)}", "the axis is a number that is written or known")
            found.add(k % array.rank)
    return sorted(found)


def reduced(w, array, axis, keepdims, fold):
    """`fold(dims, element)` over some axes: `element` takes an index for each of `dims`."""
    axes = axes_of(w, array, axis)
    keep = isinstance(keepdims, Known) and bool(keepdims.value)
    dims = [array.dims[k] for k in axes]
    kept = [(k, dim) for k, dim in enumerate(array.dims) if k not in axes]

    def at(outer):
        def element(inner):
            indices = dict(zip([k for k, _ in kept], outer)) | dict(zip(axes, inner))
            return w.element(array, [indices[k] for k in range(array.rank)])
        return fold(dims, element)

    if not keep:
        return w.build(tuple(dim for _, dim in kept), at) if kept else at([])
    shown = tuple(Dim(1) if k in axes else dim for k, dim in enumerate(array.dims))
    return w.build(shown, lambda indices: at([i for k, i in enumerate(indices) if k not in axes]))


def sum_(w, array, axis=None, keepdims=None):
    array = w.num(array)
    if array.kind == "b":
        array = w.cast(array, "i")
    if array.rank == 0:
        return array

    def fold(dims, element):
        if array.kind == "f":
            return w.total(dims, element)
        return nested(w, dims, w.constant(0), lambda s, x: scalar(w, "+", s, x), element)

    return reduced(w, array, axis, keepdims, fold)


def nested(w, dims, start, step, element, indices=()):
    """The fold over several extents, the last one innermost."""
    if len(indices) == len(dims):
        return step(start, element(list(indices)))
    return w.reduce(dims[len(indices)], start, lambda s, i: nested(w, dims, s, step, element, (*indices, i)))


def prod(w, array, axis=None, keepdims=None):
    array = w.num(array)
    if array.kind == "b":
        array = w.cast(array, "i")
    if array.rank == 0:
        return array
    one = 1.0 if array.kind == "f" else 1
    fold = lambda dims, element: nested(w, dims, w.constant(one), lambda s, x: scalar(w, "*", s, x), element)
    return reduced(w, array, axis, keepdims, fold)


def extreme(name):
    def reduction(w, array, axis=None, keepdims=None):
        array = w.num(array)
        if array.rank == 0:
            return array
        if array.kind == "b":
            w.fail(f"`{name}` of truth values", "use `np.any` or `np.all`")

        def fold(dims, element):
            first = element([w.constant(0)] * len(dims))
            step = lambda s, x: Num(w.program.apply(name, [s.term, x.term]), array.kind)
            return nested(w, dims, first, step, element)

        return reduced(w, array, axis, keepdims, fold)
    return reduction


def any_all(sign):
    def reduction(w, array, axis=None, keepdims=None):
        array = w.cast(w.num(array), "b")
        if array.rank == 0:
            return array
        step = lambda s, x: Num(w.program.infix(sign, s.term, x.term), "b")
        fold = lambda dims, element: nested(w, dims, w.constant(sign == "&&"), step, element)
        return reduced(w, array, axis, keepdims, fold)
    return reduction


def count(w, array, axis):
    total = w.constant(1.0)
    for k in axes_of(w, array, axis):
        total = scalar(w, "*", total, w.cast(w.size(array.dims[k]), "f"))
    return total


def mean(w, array, axis=None, keepdims=None):
    array = w.cast(w.num(array), "f")
    return binary(w, "/", sum_(w, array, axis, keepdims), count(w, array, axis)) if array.rank else array


def var(w, array, axis=None, ddof=None, keepdims=None):
    array = w.cast(w.num(array), "f")
    centred = binary(w, "-", array, mean(w, array, axis, Known(True)))
    squares = sum_(w, binary(w, "*", centred, centred), axis, keepdims)
    n = count(w, array, axis)
    return binary(w, "/", squares, n if ddof is None else binary(w, "-", n, ddof))


def std(w, array, axis=None, ddof=None, keepdims=None):
    return w.map(lambda x: call(w, "sqrt", x), var(w, array, axis, ddof, keepdims))


def norm(w, array):
    array = w.cast(w.num(array), "f")
    return call(w, "sqrt", sum_(w, w.map(lambda x: scalar(w, "*", x, x), array)))


def logsumexp(w, array, axis=None, keepdims=None):
    array = w.cast(w.num(array), "f")
    if array.rank == 1:
        result = Num(w.program.apply("logSumExp", [array.term]), "f")
        return w.build((Dim(1),), lambda _: result) if isinstance(keepdims, Known) and keepdims.value else result
    top = Num(w.program.apply("constant", [array.term]), "f", array.dims)
    top = extreme("max")(w, top, axis, Known(True))
    total = sum_(w, w.map(lambda x: call(w, "exp", x), binary(w, "-", array, top)), axis, Known(True))
    result = binary(w, "+", top, w.map(lambda x: call(w, "log", x), total))
    if isinstance(keepdims, Known) and keepdims.value:
        return result
    axes = axes_of(w, array, axis)
    zero = w.constant(0)
    rest = tuple(dim for k, dim in enumerate(array.dims) if k not in axes)

    def element(indices):
        indices = iter(indices)
        return w.element(result, [zero if k in axes else next(indices) for k in range(array.rank)])

    return w.build(rest, element)


def matmul(w, a, b):
    a, b = w.num(a), w.num(b)
    if a.rank == 0 or b.rank == 0:
        w.fail("`@` is used with a number", "write `*`")
    if a.rank > 2 or b.rank > 2:
        w.fail("`@` of arrays of more than two dimensions", "loop over the first axis")
    kind = w.common(a, b)
    a, b = w.cast(a, kind), w.cast(b, kind)
    w.require_equal(a.dims[-1], b.dims[0], "the last axis of the left side and the first axis of the right side of a product")
    if kind == "i":
        dims = (*a.dims[:-1], *b.dims[1:])
        rows = a.rank - 1
        def element(indices):
            pick = lambda k: scalar(w, "*", w.element(a, [*indices[:rows], k[0]]), w.element(b, [k[0], *indices[rows:]]))
            return nested(w, [a.dims[-1]], w.constant(0), lambda s, x: scalar(w, "+", s, x), pick)
        return w.build(dims, element) if dims else element([])
    name = {(1, 1): "vectorDot", (2, 1): "matrixVectorMul", (1, 2): "vectorMatrixMul", (2, 2): "matrixMul"}[a.rank, b.rank]
    return Num(w.program.apply(name, [a.term, b.term]), "f", (*a.dims[:-1], *b.dims[1:]))


def dot(w, a, b):
    a, b = w.num(a), w.num(b)
    return binary(w, "*", a, b) if a.rank == 0 or b.rank == 0 else matmul(w, a, b)


def inner(w, a, b):
    a, b = w.num(a), w.num(b)
    if a.rank > 1 or b.rank > 1:
        w.fail("`np.inner` of matrices", "write `a @ b.T`")
    return dot(w, a, b)


def outer(w, a, b):
    a, b = w.num(a), w.num(b)
    if a.rank != 1 or b.rank != 1:
        w.fail("`np.outer` is for two arrays of one dimension")
    return w.build((*a.dims, *b.dims), lambda i: binary(w, "*", w.element(a, i[:1]), w.element(b, i[1:])))


def cumulative(sign):
    def scan(w, array):
        array = w.num(array)
        if array.rank != 1:
            w.fail(f"a running reduction of {describe(array)}", "loop over the other axes")
        kind = w.common(array)
        array = w.cast(array, kind)
        start = w.constant({"+": 0, "*": 1}[sign])
        start = w.cast(start, kind)
        size = w.size(array.dims[0]).term
        state, index = w.program.open(["s", "i"])
        after = scalar(w, sign, Num(state, kind), w.element(array, [Num(index, "i")]))
        step = w.program.close(w.program.tuple([after.term, after.term]))
        both = w.program.apply("scan", [step, start.term, size])
        return Num(w.program.component(both, 1), kind, array.dims)
    return scan


def trace(w, array):
    array = square(w, array, "np.trace")
    return w.total([array.dims[0]], lambda i: w.element(array, [i[0], i[0]]))


def square(w, array, name):
    array = w.cast(w.num(array), "f")
    if array.rank != 2:
        w.fail(f"`{name}` is for a square matrix, not {describe(array)}")
    w.require_equal(array.dims[0], array.dims[1], "the matrix is to be square")
    return array


def solve(w, a, b):
    a, b = square(w, a, "np.linalg.solve"), w.cast(w.num(b), "f")
    if b.rank not in (1, 2):
        w.fail(f"the right side of a system is {describe(b)}")
    w.require_equal(a.dims[0], b.dims[0], "a system and its right side")
    name = "solve" if b.rank == 1 else "solveMatrix"
    return Num(w.program.apply(name, [a.term, b.term]), "f", b.dims)


def of_matrix(name, function, is_number):
    def compute(w, a):
        a = square(w, a, name)
        return Num(w.program.apply(function, [a.term]), "f", () if is_number else a.dims)
    return compute
