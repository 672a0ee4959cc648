"""Norms of vectors and matrices."""

from __future__ import annotations

import math

from .operators import call, scalar
from .products import matrices
from .reductions import axes_of, extreme, sum_
from .shaping import axis_of, dropped, known, numbers, permuted, ravel, reshape
from ..values import Dim, Known, Num, Row, describe, is_given

SINGULAR = "it needs singular values: leave `ord` out, or use 1, `np.inf` or 'fro'"


def norm(w, x, ord=None, axis=None, keepdims=None):
    """`np.linalg.norm`: of vectors along one axis, of matrices along two, of all elements without an axis and an order."""
    array, order = w.cast(w.num(x), "f"), known(w, ord, "the order of a norm")
    if not is_given(axis):
        if order is None:
            return frobenius(w, array, None, keepdims)
        if array.rank not in (1, 2):
            w.fail("Improper number of dimensions to norm.", "name the axes: `axis=1`, `axis=(0, 1)`")
        axes = list(range(array.rank))
    else:
        axes = [axis_of(w, array, Known(k)) for k in numbers(w, axis)]
        if len(axes) not in (1, 2):
            w.fail("Improper number of dimensions to norm.", "a norm is along one axis or two")
        if len(set(axes)) < len(axes):
            w.fail("Duplicate axes given.")
    return of_vectors(w, array, order, axes[0], keepdims) if len(axes) == 1 else of_matrices(w, array, order, axes, keepdims)


def absolute(w, array):
    return w.map(lambda v: call(w, "abs", v), array)


def frobenius(w, array, axis, keepdims):
    """The root of the sum of squares."""
    squares = w.map(lambda v: scalar(w, "*", v, v), array)
    return w.map(lambda v: call(w, "sqrt", v), sum_(w, squares, axis, keepdims))


def of_vectors(w, array, order, axis, keepdims):
    axis = Known(axis)
    if order in (None, 2):
        return frobenius(w, array, axis, keepdims)
    if isinstance(order, str):
        w.fail(f"Invalid norm order '{order}' for vectors", "write a number")
    if order == 1:
        return sum_(w, absolute(w, array), axis, keepdims)
    if math.isinf(order):
        return extreme("max" if order > 0 else "min", nan_wins=True)(w, absolute(w, array), axis, keepdims)
    if order == 0:
        zero = w.constant(0.0)
        return sum_(w, w.map(lambda v: w.cast(scalar(w, "<>", v, zero), "f"), array), axis, keepdims)
    power = lambda v, p: w.map(lambda u: scalar(w, "**", u, w.constant(p)), v)
    return power(sum_(w, power(absolute(w, array), float(order)), axis, keepdims), 1.0 / order)


def of_matrices(w, array, order, axes, keepdims):
    row, column = axes
    both = Row([Known(row), Known(column)])
    if order in (None, "fro", "f"):
        return frobenius(w, array, both, keepdims)
    if order in (2, -2, "nuc"):
        w.fail(f"`np.linalg.norm` of a matrix of order {order!r}", SINGULAR)
    if order not in (1, -1, math.inf, -math.inf):
        w.fail("Invalid norm order for matrices.", "use 1, -1, `np.inf`, `-np.inf` or 'fro'")
    summed, compared = (row, column) if abs(order) == 1 else (column, row)
    sums = sum_(w, absolute(w, array), Known(summed), Known(True))
    found = extreme("max" if order > 0 else "min", nan_wins=True)(w, sums, Known(compared), Known(True))
    if getattr(keepdims, "value", False):
        return found
    made = dropped(w, found, axes)
    return Num(made.term, made.kind, made.dims)


def vector_norm(w, x, *, axis=None, keepdims=None, ord=Known(2)):
    """`np.linalg.vector_norm`: along several axes, or of all elements, as of one vector."""
    array, order = w.cast(w.num(x), "f"), known(w, ord, "the order of a norm")
    if not array.rank:
        w.fail(f"`np.linalg.vector_norm` of {describe(array)}", "write `abs(x)`")
    axes = axes_of(w, array, axis)
    kept = [k for k in range(array.rank) if k not in axes]
    if len(axes) == 1:
        return of_vectors(w, array, order, axes[0], keepdims)
    moved = permuted(w, array, [*kept, *axes])
    outer = [w.size(array.dims[k]) for k in kept]
    flat = reshape(w, moved, Row([*outer, Known(-1)])) if kept else ravel(w, moved)
    found = of_vectors(w, flat, order, len(kept), None)
    if not getattr(keepdims, "value", False):
        return found
    shown = tuple(Dim(1) if k in axes else dim for k, dim in enumerate(array.dims))
    return w.build(shown, lambda i: w.element(found, [i[k] for k in kept]))


def matrix_norm(w, x, *, keepdims=None, ord=Known("fro")):
    """`np.linalg.matrix_norm`: of the matrix, or of one at each place of the first axes."""
    array = matrices(w, x, "np.linalg.matrix_norm")
    return of_matrices(w, array, known(w, ord, "the order of a norm"), [array.rank - 2, array.rank - 1], keepdims)
