"""Products of arrays, and what NumPy computes of matrices."""

from __future__ import annotations

import string

import numpy as np

from .operators import binary, call, scalar
from .reductions import nested, sum_
from .shaping import axis_of, diagonal, known, known_int, moveaxis
from ..values import Dim, Form, Known, Num, Row, describe, is_given


def matmul(w, a, b):
    a, b = w.num(a), w.num(b)
    if a.rank == 0 or b.rank == 0:
        w.fail("`@` is used with a number", "write `*`")
    kind = w.common(a, b)
    a, b = w.cast(a, kind), w.cast(b, kind)
    return stacked(w, [(a, min(a.rank, 2)), (b, min(b.rank, 2))], lambda x, y: product(w, x, y))


def stacked(w, arrays, function):
    """A function of matrices and vectors at each place of the outer axes: each array is given with how many axes it takes."""
    outer = [Num(array.term, array.kind, array.dims[:array.rank - n]) for array, n in arrays]
    if not any(one.rank for one in outer):
        return function(*[array for array, _ in arrays])
    dims = w.broadcast(*[one for one in outer if one.rank])

    def part(array, n, indices):
        """The matrix or vector of one place."""
        n_outer = array.rank - n
        own = indices[len(indices) - n_outer:] if n_outer else []
        zero = w.constant(0)
        return w.element(array, [zero if dim.known == 1 else i for dim, i in zip(array.dims, own)])

    made = w.build(dims, lambda i: function(*[part(array, n, i) for array, n in arrays]))
    return Num(made.term, made.kind, made.dims)


def product(w, a, b):
    """The product of two matrices or vectors of one kind."""
    w.require_equal(a.dims[-1], b.dims[0], "the last axis of the left side and the first axis of the right side of a product")
    if a.kind == "i" or not w.is_known_at_entry(a.dims[-1]):
        dims = (*a.dims[:-1], *b.dims[1:])
        n = a.rank - 1

        def element(indices):
            pick = lambda k: scalar(w, "*", w.element(a, [*indices[:n], k[0]]), w.element(b, [k[0], *indices[n:]]))
            return summed(w, [a.dims[-1]], a.kind, pick)

        return w.build(dims, element) if dims else element([])
    name = {(1, 1): "vectorDot", (2, 1): "matrixVectorMul", (1, 2): "vectorMatrixMul", (2, 2): "matrixMul"}[a.rank, b.rank]
    return Num(w.program.apply(name, [a.term, b.term]), "f", (*a.dims[:-1], *b.dims[1:]))


def dot(w, a, b):
    a, b = w.num(a), w.num(b)
    if a.rank == 0 or b.rank == 0:
        return binary(w, "*", a, b)
    if a.rank <= 2 and b.rank <= 2:
        return matmul(w, a, b)
    return tensordot(w, a, b, Row([Known((a.rank - 1,)), Known((max(b.rank - 2, 0),))]))


def inner(w, a, b):
    a, b = w.num(a), w.num(b)
    if a.rank == 0 or b.rank == 0:
        return binary(w, "*", a, b)
    return tensordot(w, a, b, Row([Known((a.rank - 1,)), Known((b.rank - 1,))])) if a.rank + b.rank > 2 else matmul(w, a, b)


def vdot(w, a, b):
    from .shaping import ravel
    return matmul(w, ravel(w, a), ravel(w, b))


def outer(w, a, b):
    from .shaping import ravel
    a, b = ravel(w, a), ravel(w, b)
    return w.build((*a.dims, *b.dims), lambda i: binary(w, "*", w.element(a, i[:1]), w.element(b, i[1:])))


def summed(w, dims, kind, element):
    """The sum of numbers of a kind."""
    if not dims:
        return element([])
    if kind == "f":
        return w.total(dims, element)
    return nested(w, dims, w.constant(0), lambda s, x: scalar(w, "+", s, x), element)


def tensordot(w, a, b, axes=Known(2)):
    a, b = w.num(a), w.num(b)
    kind = w.common(a, b)
    a, b = w.cast(a, kind), w.cast(b, kind)
    chosen = known(w, axes, "the axes")
    if isinstance(chosen, int):
        left, right = list(range(a.rank - chosen, a.rank)), list(range(chosen))
    else:
        left, right = ([one] if isinstance(one, int) else list(one) for one in chosen)
        left, right = [axis_of(w, a, Known(k)) for k in left], [axis_of(w, b, Known(k)) for k in right]
    for i, j in zip(left, right):
        w.require_equal(a.dims[i], b.dims[j], "axes are summed over together")
    keep_a, keep_b = [k for k in range(a.rank) if k not in left], [k for k in range(b.rank) if k not in right]

    def element(outer):
        def one(summed_over):
            own_a, own_b = dict(zip(keep_a, outer)), dict(zip(keep_b, outer[len(keep_a):]))
            own_a |= dict(zip(left, summed_over))
            own_b |= dict(zip(right, summed_over))
            return scalar(w, "*", w.element(a, [own_a[k] for k in range(a.rank)]), w.element(b, [own_b[k] for k in range(b.rank)]))
        return summed(w, [a.dims[k] for k in left], kind, one)

    dims = (*(a.dims[k] for k in keep_a), *(b.dims[k] for k in keep_b))
    return w.build(dims, element) if dims else element([])


def with_letters(w, parts, result, arrays):
    """The subscripts with letters for the axes of `...`, which are broadcast from the last one on."""
    free = [letter for letter in string.ascii_letters if letter not in "".join(parts) + (result or "")]
    counts = [array.rank - len(part.replace("...", "")) if "..." in part else 0 for part, array in zip(parts, arrays)]
    if any(count < 0 for count in counts):
        w.fail("the subscripts do not fit the arrays", "write a letter for each axis")
    shared = "".join(free[:max(counts, default=0)])
    named = [part.replace("...", shared[len(shared) - count:]) for part, count in zip(parts, counts)]
    if result is None:
        text = "".join(parts).replace(".", "")
        result = "..." + "".join(sorted(letter for letter in set(text) if text.count(letter) == 1))
    return named, result.replace("...", shared)


def einsum(w, subscripts, *operands, optimize=None):
    text = known(w, subscripts, "the subscripts of `np.einsum`")
    if not isinstance(text, str):
        w.fail("`np.einsum` takes its subscripts as a string", "write a letter for each axis")
    parts, arrow, result = text.replace(" ", "").partition("->")
    parts = parts.split(",")
    arrays = [w.num(one) for one in operands]
    if len(parts) != len(arrays):
        w.fail("the subscripts do not fit the arrays", "write a letter for each axis")
    parts, result = with_letters(w, parts, result if arrow else None, arrays)
    if any(len(part) != array.rank for part, array in zip(parts, arrays)):
        w.fail("the subscripts do not fit the arrays", "write a letter for each axis")
    kind = w.common(*arrays)
    arrays = [w.cast(array, kind) for array in arrays]
    dims = {}
    for part, array in zip(parts, arrays):
        for letter, dim in zip(part, array.dims):
            if dims.get(letter, Dim(1)).known == 1:
                dims[letter] = dim
            elif dim.known != 1:
                w.require_equal(dims[letter], dim, f"they have the subscript `{letter}`")
    if any(letter not in dims for letter in result):
        w.fail("a subscript of the result is none of the arrays'")
    rest = [letter for letter in dims if letter not in result]

    def element(outer):
        def one(inner):
            index = dict(zip(result, outer)) | dict(zip(rest, inner))
            total = None
            for part, array in zip(parts, arrays):
                factor = w.element(array, [w.constant(0) if dim.known == 1 else index[letter] for letter, dim in zip(part, array.dims)])
                total = factor if total is None else scalar(w, "*", total, factor)
            return total
        return summed(w, [dims[letter] for letter in rest], kind, one)

    made = tuple(dims[letter] for letter in result)
    return w.build(made, element) if made else element([])


def kron(w, a, b):
    from .shaping import at_least_rank, product as extent
    a, b = w.num(a), w.num(b)
    rank = max(a.rank, b.rank)
    a, b = at_least_rank(w, a, rank), at_least_rank(w, b, rank)
    sizes = [w.size(dim) for dim in b.dims]

    def element(i):
        left = [scalar(w, "//", j, n) for j, n in zip(i, sizes)]
        right = [scalar(w, "%", j, n) for j, n in zip(i, sizes)]
        return binary(w, "*", w.element(a, left), w.element(b, right))

    return w.build(tuple(extent(w, [p, q]) for p, q in zip(a.dims, b.dims)), element)


def cross(w, a, b, axisa=Known(-1), axisb=Known(-1), axisc=Known(-1), axis=None):
    """`np.cross` of vectors of three elements, or of two, whose third one is 0."""
    a, b = w.num(a), w.num(b)
    if is_given(axis):
        axisa = axisb = axisc = axis
    if not a.rank or not b.rank:
        w.fail("At least one array has zero dimension")
    a, b = moveaxis(w, a, axisa, Known(-1)), moveaxis(w, b, axisb, Known(-1))
    lengths = []
    for array in (a, b):
        if array.dims[-1].known not in (None, 2, 3):
            w.fail(f"`np.cross` of {describe(array)}", "vectors have two or three elements")
        if array.dims[-1].known is None:
            w.require_equal(array.dims[-1], Dim(3), "vectors of three elements are multiplied")
        lengths.append(array.dims[-1].known or 3)
    outer_a, outer_b = Num(a.term, a.kind, a.dims[:-1]), Num(b.term, b.kind, b.dims[:-1])
    dims = w.broadcast(outer_a, outer_b) if a.rank + b.rank > 2 else ()
    zero = w.cast(w.constant(0), w.common(a, b))

    def vector(indices):
        pick = lambda array, n, k: w.spread(array, [*indices, w.constant(k)]) if k < n else zero
        both = lambda i, j: binary(w, "*", pick(a, lengths[0], i), pick(b, lengths[1], j))
        term = lambda i, j: binary(w, "-", both(i, j), both(j, i))
        return term(0, 1) if lengths == [2, 2] else w.stack([term(1, 2), term(2, 0), term(0, 1)])

    made = w.build(dims, vector) if dims else vector([])
    made = Num(made.term, made.kind, made.dims)
    return made if lengths == [2, 2] else moveaxis(w, made, Known(-1), axisc)


def cross_of_three(w, x1, x2, *, axis=Known(-1)):
    return cross(w, x1, x2, axis=axis)


def vecdot(w, x1, x2, *, axis=Known(-1)):
    return sum_(w, binary(w, "*", w.num(x1), w.num(x2)), axis)


def trace(w, a, offset=Known(0), axis1=Known(0), axis2=Known(1)):
    return sum_(w, diagonal(w, a, offset, axis1, axis2), Known(-1))


def trace_of_last(w, x, *, offset=Known(0)):
    """`np.linalg.trace`: of the last two axes."""
    return trace(w, x, offset, Known(-2), Known(-1))


def matrices(w, array, name):
    """A matrix of floats, or one at each place of the first axes."""
    array = w.cast(w.num(array), "f")
    if array.rank < 2:
        w.fail(f"`{name}` of {describe(array)}", "it is for matrices")
    return array


def square(w, array, name):
    """A square matrix."""
    array = squares(w, array, name)
    if array.rank != 2:
        w.fail(f"`{name}` is for a square matrix, not {describe(array)}", "loop over the first axes")
    return array


def squares(w, array, name):
    """A square matrix, or one at each place of the first axes."""
    array = w.cast(w.num(array), "f")
    if array.rank < 2:
        w.fail(f"`{name}` is for a square matrix, not {describe(array)}", "give it two axes")
    w.require_equal(array.dims[-2], array.dims[-1], "the matrix is to be square")
    return array


def solve(w, a, b):
    """The solution of a system, or of one at each place of the first axes; only a vector is one right side for all."""
    a, b = squares(w, a, "np.linalg.solve"), w.cast(w.num(b), "f")
    if not b.rank:
        w.fail(f"the right side of a system is {describe(b)}", "write a vector or a matrix")
    n_axes = min(b.rank, 2)
    w.require_equal(a.dims[-1], b.dims[-n_axes], "a system and its right side")
    name = "solve" if n_axes == 1 else "solveMatrix"
    return stacked(w, [(a, 2), (b, n_axes)], lambda x, y: Num(w.program.apply(name, [x.term, y.term]), "f", y.dims))


def of_matrix(name, function, is_number):
    def compute(w, a):
        a = squares(w, a, name)
        return stacked(w, [(a, 2)], lambda x: Num(w.program.apply(function, [x.term]), "f", () if is_number else x.dims))
    return compute


def cholesky(w, a):
    """The factor of the matrix whose lower triangle is given: NumPy does not read the upper one."""
    a = squares(w, a, "np.linalg.cholesky")
    if a.dims[-1].known == 0:
        return w.build(a.dims, lambda _: w.constant(0.0))

    def factor(x):
        lower = lambda i: w.choose(scalar(w, ">=", i[0], i[1]), lambda: w.element(x, i), lambda: w.element(x, i[::-1]))
        return Num(w.program.apply("cholesky", [w.build(x.dims, lower).term]), "f", x.dims)

    return stacked(w, [(a, 2)], factor)


def slogdet(w, a):
    a = squares(w, a, "np.linalg.slogdet")
    part = lambda of_one: stacked(w, [(a, 2)], of_one)
    sign = lambda x: call(w, "sign", Num(w.program.apply("det", [x.term]), "f"))
    items = [part(sign), part(lambda x: Num(w.program.apply("logdet", [x.term]), "f"))]
    return Row(items, Form(type(np.linalg.slogdet(np.eye(1))), ("sign", "logabsdet")))


def matrix_power(w, a, n):
    a, k = squares(w, a, "np.linalg.matrix_power"), known_int(w, n, "the power")
    return stacked(w, [(a, 2)], lambda x: power_of_matrix(w, x, k))


def power_of_matrix(w, a, k):
    if k < 0:
        a, k = of_matrix("np.linalg.inv", "inverse", False)(w, a), -k
    result = None
    while k:
        if k & 1:
            result = a if result is None else product(w, result, a)
        a = product(w, a, a) if k > 1 else a
        k >>= 1
    if result is None:
        from .arrays import eye
        return eye(w, w.size(a.dims[0]))
    return Num(result.term, result.kind, result.dims)


def multi_dot(w, arrays):
    """The product of several matrices: from the right, where the last one is a vector."""
    from .shaping import rows
    parts = rows(w, arrays)
    if len(parts) < 2:
        w.fail("Expecting at least two arrays.")
    if parts[-1].rank == 1:
        result = parts[-1]
        for part in reversed(parts[:-1]):
            result = matmul(w, part, result)
        return result
    result = parts[0]
    for part in parts[1:]:
        result = matmul(w, result, part)
    return result
