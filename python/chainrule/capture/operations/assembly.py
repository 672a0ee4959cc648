"""Arrays put together from parts, and cut into parts."""

from __future__ import annotations

from ...errors import Limitation
from . import indexing
from .operators import scalar
from .shaping import at_least_rank, atleast_3d, axis_of, concatenate, is_list, joined, known_int, moveaxis, of_one_kind, product, quotient, ravel, rows
from .slices import Slice
from ..values import Dim, Known, Num, Row, describe, is_given


def append(w, arr, values, axis=None):
    return concatenate(w, Row([arr, values]), Known(None) if axis is None else axis)


def dstack(w, tup):
    return joined(w, of_one_kind(w, [atleast_3d(w, part) for part in rows(w, tup)]), Known(2))


def block(w, arrays):
    """`np.block`: the lists in the lists are put together along the last axis, those around them along the axis before."""
    def depth_of(value):
        if is_list(value):
            w.fail("a list whose length is not known is given to `np.block`", "use `np.concatenate`")
        if not isinstance(value, Row) or value.is_list is not True:
            return 0
        depths = {depth_of(item) for item in value.items}
        if len(depths) != 1:
            w.fail("the lists of `np.block` have different depths or are empty", "write lists of arrays, or lists of such lists")
        return depths.pop() + 1

    def leaves(value, depth):
        return [leaf for item in value.items for leaf in leaves(item, depth - 1)] if depth else [w.num(value)]

    depth = depth_of(arrays)
    parts = leaves(arrays, depth)
    rank = max(depth, *(part.rank for part in parts))
    parts = iter(of_one_kind(w, [at_least_rank(w, part, rank) for part in parts]))

    def assembled(value, level):
        return joined(w, [assembled(item, level - 1) for item in value.items], Known(-level)) if level else next(parts)

    made = assembled(arrays, depth)
    return Num(made.term, made.kind, made.dims)


def unstack(w, x, axis=Known(0)):
    """`np.unstack`: the parts of one index along an axis, as a tuple."""
    a = w.num(x)
    parts = moveaxis(w, a, Known(axis_of(w, a, axis)), Known(0))
    if parts.dims[0].known is None:
        w.fail("the number of arrays that `np.unstack` makes is not known", "index the array", error=Limitation)
    return Row([w.element(parts, [w.constant(k)]) for k in range(parts.dims[0].known)])


def between(w, a, axis, bounds):
    """The parts between indices along an axis: views, as those that slices make."""
    whole = Slice(None, None, None)
    ends = [None, *bounds, None]
    return Row([indexing.get(w, a, Row([*[whole] * axis, Slice(first, last, None)])) for first, last in zip(ends, ends[1:])], is_list=True)


def cut(name, default=0, least=1, is_even=True):
    """`np.split` and its relatives, along an axis; `is_even` says that equal parts are wanted of a number of parts."""
    def split(w, ary, indices_or_sections, axis=None):
        a = w.num(ary)
        if a.rank < least:
            w.fail(f"`{name}` of {describe(a)}", f"it is for arrays of {least} dimension{'s' if least > 1 else ''} or more")
        along = Known(0 if a.rank == 1 else default) if axis is None else axis
        k = axis_of(w, a, along)
        if isinstance(indices_or_sections, Row):
            return between(w, a, k, indices_or_sections.items)
        n = known_int(w, indices_or_sections, f"the number of parts of `{name}`")
        if n <= 0:
            w.fail("number sections must be larger than 0")
        return between(w, a, k, (evenly if is_even else nearly_evenly)(w, name, a.dims[k], n))
    return split


def evenly(w, name, extent, n):
    """The bounds of equal parts."""
    if extent.known is not None and extent.known % n:
        w.fail("array split does not result in an equal division", f"the axis has {extent.known} elements: use `np.array_split`")
    part = quotient(w, [extent], [Dim(n)])
    w.require_equal(product(w, [part, Dim(n)]), extent, f"`{name}` makes equal parts")
    return [w.size(part * k) for k in range(1, n)]


def nearly_evenly(w, name, extent, n):
    """The bounds of parts of which the first ones have one more element."""
    if extent.known is None:
        w.fail(f"the sizes of the parts of `{name}` are not known", "use `np.split`, or slices", error=Limitation)
    part, rest = divmod(extent.known, n)
    return [Known(k * part + min(k, rest)) for k in range(1, n)]


def block_diag(w, *arrs):
    """`scipy.linalg.block_diag`: matrices along the diagonal, zeros elsewhere."""
    parts = [at_least_rank(w, w.num(one), 2) for one in arrs]
    if not parts or any(part.rank != 2 for part in parts):
        w.fail("`scipy.linalg.block_diag` takes matrices", "loop over the first axes")
    kind = w.common(*parts)
    parts, zero = [w.cast(part, kind) for part in parts], w.cast(w.constant(0), kind)
    width = Dim(0)
    for part in parts:
        width = width + part.dims[1]
    rows, before = [], Dim(0)
    for part in parts:
        first, end = w.size(before), w.size(before + part.dims[1])

        def element(i, part=part, first=first, end=end):
            inside = scalar(w, "&", scalar(w, "<=", first, i[1]), scalar(w, "<", i[1], end))
            return w.choose(inside, lambda: w.element(part, [i[0], scalar(w, "-", i[1], first)]), lambda: zero)

        rows.append(w.build((part.dims[0], width), element))
        before = before + part.dims[1]
    return joined(w, rows, Known(0))


def toeplitz(w, c, r=None):
    """`scipy.linalg.toeplitz`: the first column, and the first row, whose own first element is not read."""
    column = ravel(w, at_least_rank(w, w.num(c), 1))
    row = ravel(w, at_least_rank(w, w.num(r), 1)) if is_given(r) else column
    kind = w.common(column, row)
    column, row = w.cast(column, kind), w.cast(row, kind)
    return w.build((column.dims[0], row.dims[0]), lambda i: w.choose(
        scalar(w, ">=", i[0], i[1]), lambda: w.element(column, [scalar(w, "-", i[0], i[1])]), lambda: w.element(row, [scalar(w, "-", i[1], i[0])])))


def circulant(w, c):
    """`scipy.linalg.circulant` of a vector."""
    a = at_least_rank(w, w.num(c), 1)
    if a.rank != 1:
        w.fail(f"`scipy.linalg.circulant` of {describe(a)}", "it is for vectors")
    n = w.size(a.dims[0])
    return w.build((a.dims[0], a.dims[0]), lambda i: w.element(a, [scalar(w, "%", scalar(w, "-", i[0], i[1]), n)]))
