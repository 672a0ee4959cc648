"""Elements and their neighbours: arrays with a border, convolutions, differences over neighbours."""

from __future__ import annotations

from ...errors import ShapeError
from .operators import binary, scalar
from .products import summed
from .shaping import at_least_rank, axis_of, flip, joined, known, numbers, ravel, view
from .whole import clamped, smaller
from ..values import Dim, Form, Known, Row, describe


def pairs(w, value, rank, what):
    """A value before and after each axis: of a number, a pair, or a number or a pair for each axis."""
    if isinstance(value, Known) and isinstance(value.value, tuple):
        value = Row([Known(item) for item in value.value])
    if not isinstance(value, Row):
        if w.num(value).rank:
            w.fail(f"{what} is {describe(value)}", "write numbers, or a pair of them for each axis")
        return [(value, value)] * rank
    if isinstance(value.is_list, Form):
        w.fail(f"{what} is {describe(value)}", "write a pair for each axis")
    items = value.items
    if not any(isinstance(item, Row) for item in items):
        if len(items) not in (1, 2):
            w.fail(f"{what} has {len(items)} numbers", "write one, a pair, or a pair for each axis")
        return [(items[0], items[-1])] * rank
    found = [pairs(w, item, 1, what)[0] for item in items]
    if len(found) not in (1, rank):
        w.fail(f"{what} has {len(found)} pairs for {rank} axes", "write a pair for each axis")
    return found * rank if len(found) == 1 else found


def pad(w, array, pad_width, mode=Known("constant"), constant_values=Known(0)):
    a, name = w.num(array), getattr(mode, "value", None)
    if not a.rank:
        w.fail(f"`np.pad` of {describe(a)}", "it is for arrays")
    if name not in ("constant", "empty", *OUTSIDE):
        w.fail(f"`np.pad` with the mode {name!r}", f"use constant, {', '.join(OUTSIDE)}")
    widths = [tuple(w.dim(n, "a pad width") for n in pair) for pair in pairs(w, pad_width, a.rank, "`pad_width`")]
    for width in [width for pair in widths for width in pair]:
        if width.known is not None and width.known < 0:
            w.fail("index can't contain negative values", "pad widths are 0 or more")
        w.require_not_negative(width)
    if name in OUTSIDE:
        return extended(w, a, widths, OUTSIDE[name])
    values = pairs(w, constant_values, a.rank, "`constant_values`")
    return bordered(w, a, widths, [tuple(w.cast(w.scalar(v), a.kind) for v in pair) for pair in values])


def padded_dims(a, widths):
    return tuple(dim + before + after for dim, (before, after) in zip(a.dims, widths))


def bordered(w, a, widths, values):
    """The array with numbers around it: those of the last axis are in the corners."""
    def level(k, indices, own):
        if k < 0:
            return w.element(a, own)
        i, (before, after), (first, last) = indices[k], widths[k], values[k]
        end = before + a.dims[k]
        inner = lambda: level(k - 1, indices, [i if before == Dim(0) else scalar(w, "-", i, w.size(before)), *own])
        below = inner if after == Dim(0) else lambda: w.choose(scalar(w, "<", i, w.size(end)), inner, lambda: last)
        return below() if before == Dim(0) else w.choose(scalar(w, "<", i, w.size(before)), lambda: first, below)

    return w.build(padded_dims(a, widths), lambda i: level(a.rank - 1, i, []))


def extended(w, a, widths, outside):
    """The array with its own elements around it; `outside` has the index of an element that may lie outside."""
    padded = [k for k, width in enumerate(widths) if width != (Dim(0), Dim(0))]
    if any(a.dims[k].known == 0 for k in padded):
        w.fail("an axis without elements is extended by its elements", "pad it by a constant", error=ShapeError)

    def own(k, i):
        """The index inside of the array: affine but for the borders."""
        before, after = widths[k]
        inner = i if before == Dim(0) else scalar(w, "-", i, w.size(before))
        far = lambda: outside(w, inner, a.dims[k])
        below = (lambda: inner) if after == Dim(0) else lambda: w.choose(scalar(w, "<", i, w.size(before + a.dims[k])), lambda: inner, far)
        return below() if before == Dim(0) else w.choose(scalar(w, "<", i, w.size(before)), far, below)

    return w.build(padded_dims(a, widths), lambda indices: w.element(a, [own(k, i) if k in padded else i for k, i in enumerate(indices)]))


def sliding_window_view(w, x, window_shape, axis=None):
    """The parts of one length along axes, at all places: the places first, the axes of a part last."""
    a = w.num(x)
    lengths = window_shape.items if isinstance(window_shape, Row) else [window_shape]
    axes = list(range(a.rank)) if getattr(axis, "value", axis) is None else [axis_of(w, a, Known(k)) for k in numbers(w, axis)]
    if len(axes) != len(lengths):
        w.fail("Must provide matching length window_shape and axis", "write a length for each axis")
    sizes = [w.dim(length, "the length of a window") for length in lengths]
    dims = list(a.dims)
    for k, size in zip(axes, sizes):
        dims[k] = dims[k] - size + 1
        if dims[k].known is not None and dims[k].known < 1:
            w.fail("window shape cannot be larger than input array shape", error=ShapeError)
        w.require_not_negative(dims[k] - 1)

    def element(indices):
        own = indices[:a.rank]
        for k, i in zip(axes, indices[a.rank:]):
            own[k] = scalar(w, "+", own[k], i)
        return w.element(a, own)

    return view(w.build((*dims, *sizes), element), a)


def wrapped(w, i, n):
    return scalar(w, "%", i, w.size(n))


def reflected(w, i, n):
    """The index mirrored at the first and the last element, any number of times."""
    if n.known == 1:
        return w.constant(0)
    k = scalar(w, "%", i, w.size(n * 2 - 2))
    return smaller(w, k, scalar(w, "-", w.size(n * 2 - 2), k))


def symmetric(w, i, n):
    """The index mirrored before the first and after the last element, any number of times."""
    k = scalar(w, "%", i, w.size(n * 2))
    return smaller(w, k, scalar(w, "-", w.size(n * 2 - 1), k))


#: The index of the element that stands at an index outside of an axis.
OUTSIDE = {"edge": clamped, "reflect": reflected, "symmetric": symmetric, "wrap": wrapped}


def in_order(w, first, second):
    """Whether the first extent is the larger one. Where that is not known, it is stated as a condition."""
    if not w.is_at_most(second, first) and w.is_at_most(first, second):
        return False
    w.require_not_negative(first - second)
    return True


def vectors(w, name, *arrays):
    found = [at_least_rank(w, w.num(array), 1) for array in arrays]
    for array in found:
        if array.rank != 1:
            w.fail(f"`{name}` of {describe(array)}", "it is for vectors: loop over the other axes")
        if array.dims[0].known == 0:
            w.fail(f"`{name}` of an array that has no elements", error=ShapeError)
    if all(array.kind == "b" for array in found):
        w.fail(f"`{name}` of truth values", "make them numbers: `.astype(float)`")
    kind = w.common(*found)
    return [w.cast(array, kind) for array in found]


def convolved(w, a, v, mode, start):
    """The convolution of a vector with one that is not longer; `start` is the first element of the mode `same`."""
    m = v.dims[0]
    rest = m - 1
    borders = {"full": (rest, rest), "same": (rest - start, start), "valid": (Dim(0), Dim(0))}
    if mode not in borders:
        w.fail(f"a convolution of the mode {mode!r}", "use full, same or valid")
    zero = w.cast(w.constant(0), a.kind)
    if mode != "valid" and m.known != 1:
        a = bordered(w, a, [borders[mode]], [(zero, zero)])
    last = w.size(rest)

    def element(k):
        end = scalar(w, "+", k[0], last)
        return summed(w, [m], a.kind, lambda j: scalar(w, "*", w.element(a, [scalar(w, "-", end, j[0])]), w.element(v, j)))

    return w.build((a.dims[0] - rest,), element)


def convolve(w, a, v, mode=Known("full")):
    a, v = vectors(w, "np.convolve", a, v)
    mode = known(w, mode, "the mode")
    if mode != "full" and not in_order(w, a.dims[0], v.dims[0]):
        a, v = v, a
    return convolved(w, a, v, mode, w.divided_up(v.dims[0] - 2, 2))


def correlate(w, a, v, mode=Known("valid")):
    """`np.correlate`: a convolution with the reversed vector. Where that is the longer one, the result is reversed in NumPy."""
    a, v = vectors(w, "np.correlate", a, v)
    mode, v = known(w, mode, "the mode"), flip(w, v)
    if mode != "full" and not in_order(w, a.dims[0], v.dims[0]):
        return convolved(w, v, a, mode, w.divided_up(a.dims[0] - 1, 2))
    return convolved(w, a, v, mode, w.divided_up(v.dims[0] - 2, 2))


def gradient(w, f, *varargs, axis=None, edge_order=Known(1)):
    a, order = w.cast(w.num(f), "f"), known(w, edge_order, "the order")
    if not a.rank:
        w.fail(f"`np.gradient` of {describe(a)}", "it is for arrays")
    if order not in (1, 2):
        w.fail("'edge_order' greater than 2 not supported", "use 1 or 2")
    chosen = known(w, axis, "an axis")
    axes = range(a.rank) if chosen is None else [axis_of(w, a, Known(k)) for k in (chosen if isinstance(chosen, tuple) else (chosen,))]
    spacings = [w.cast(w.num(one), "f") for one in varargs or [Known(1.0)]]
    if len(spacings) == 1 and not spacings[0].rank:
        spacings = spacings * len(axes)
    if len(spacings) != len(axes):
        w.fail(f"`np.gradient` has {len(spacings)} spacings for {len(axes)} axes", "write one for each axis, or a number for all")
    made = [slope(w, a, k, spacing, order) for k, spacing in zip(axes, spacings)]
    return made[0] if len(made) == 1 else Row(made)


def slope(w, a, axis, spacing, order):
    """The derivative along one axis: by parabolas inside, and by lines or parabolas at both ends."""
    n = a.dims[axis]
    if n.known is not None and n.known <= order:
        w.fail("the array is too small to calculate a numerical gradient", f"it has {order + 1} elements at least", error=ShapeError)
    w.require_not_negative(n - (order + 1))
    if spacing.rank > 1:
        w.fail(f"the spacing of `np.gradient` is {describe(spacing)}", "write a number, or a vector of coordinates")
    if spacing.rank:
        w.require_equal(spacing.dims[0], n, "an array and its coordinates")
    last, one = w.size(n - 1), w.constant(1)
    parabola = by_coordinates if spacing.rank else by_spacing

    def element(indices):
        i = indices[axis]
        at = lambda k: w.element(a, [*indices[:axis], k, *indices[axis + 1:]])
        move = lambda k, by: scalar(w, "+" if by > 0 else "-", k, w.constant(abs(by))) if by else k

        def line(k):
            after = move(k, 1)
            step = scalar(w, "-", w.element(spacing, [after]), w.element(spacing, [k])) if spacing.rank else spacing
            return scalar(w, "/", scalar(w, "-", at(after), at(k)), step)

        def through(middle, place):
            places = [move(middle, by) for by in (-1, 0, 1)]
            return parabola(w, spacing, places, [at(k) for k in places], place)

        first = lambda: line(w.constant(0)) if order == 1 else through(one, -1)
        end = lambda: line(w.size(n - 2)) if order == 1 else through(w.size(n - 2), 1)
        inner = lambda: w.choose(scalar(w, "<", i, last), lambda: through(i, 0), end)
        return w.choose(scalar(w, "<", i, one), first, inner)

    return w.build(a.dims, element)


def combined(w, factors, values):
    """The sum of products of numbers, of which some are known."""
    total = None
    for factor, value in zip(factors, values):
        if factor is not None:
            part = scalar(w, "*", w.num(factor), value)
            total = part if total is None else scalar(w, "+", total, part)
    return total


def by_spacing(w, spacing, places, values, place):
    """The slope of a parabola through three equidistant points, at one of them."""
    factors = {-1: (-1.5, 2.0, -0.5), 0: (-0.5, None, 0.5), 1: (0.5, -2.0, 1.5)}[place]
    return scalar(w, "/", combined(w, [None if k is None else Known(k) for k in factors], values), spacing)


def by_coordinates(w, coordinates, places, values, place):
    """The slope of a parabola through three points, at one of them."""
    x = [w.element(coordinates, [k]) for k in places]
    left, right = scalar(w, "-", x[1], x[0]), scalar(w, "-", x[2], x[1])
    before, after = (scalar(w, "/", scalar(w, "-", values[k + 1], values[k]), step) for k, step in ((0, left), (1, right)))
    both = scalar(w, "+", left, right)
    bend = scalar(w, "/", scalar(w, "-", after, before), both)
    from_left = {-1: lambda: scalar(w, "*", bend, left), 0: lambda: scalar(w, "*", bend, left),
                 1: lambda: scalar(w, "*", bend, scalar(w, "+", both, right))}[place]()
    return scalar(w, "-" if place < 0 else "+", before, from_left)


def ediff1d(w, ary, to_end=None, to_begin=None):
    a = ravel(w, at_least_rank(w, w.num(ary), 1))
    empty = a.dims[0].known == 0
    after = lambda i: scalar(w, "+", i[0], w.constant(1))
    made = a if empty else w.build((a.dims[0] - 1,), lambda i: binary(w, "-", w.element(a, [after(i)]), w.element(a, i)))
    parts = [to_begin, made, to_end]
    ends = [None if getattr(part, "value", 0) is None else part for part in parts]
    return joined(w, [w.cast(ravel(w, at_least_rank(w, w.num(part), 1)), a.kind) for part in ends if part is not None], Known(0))
