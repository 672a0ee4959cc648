"""Elements, slices, indices that are arrays; elements under a mask."""

from __future__ import annotations

from .operators import scalar
from .slices import axes_of, from_data, place
from ..values import Dim, Masked, Num, describe


def get(w, array, index):
    """`array[index]`."""
    axes = axes_of(w, array, index)
    if any(axis.mask is not None for axis in axes):
        return masked(w, array, axes)
    if any(axis.gather is not None for axis in axes):
        return gathered(w, array, axes)
    # Leading single indices take parts; so do whole axes at the end.
    n = 0
    while n < len(axes) and axes[n].at is not None:
        n += 1
    part = w.element(array, [axis.at for axis in axes[:n]])
    rest = axes[n:]
    if all(axis.is_whole(dim) for axis, dim in zip(rest, part.dims)) and len(rest) == part.rank:
        return part
    dims = [Dim(1) if axis.is_new else axis.count for axis in rest if axis.at is None]

    def element(indices):
        indices = iter(indices)
        own = []
        for axis in rest:
            if axis.is_new:
                next(indices)
            elif axis.at is not None:
                own.append(axis.at)
            else:
                own.append(place(w, axis, next(indices)))
        return w.element(part, own)

    result = w.build(tuple(dims), element) if dims else element([])
    return Num(result.term, result.kind, result.dims, storage=array.storage if dims else None, is_view=bool(dims))


def gathered(w, array, axes):
    """The elements at arrays of indices, which are broadcast; single indices are such arrays, too."""
    advanced = [k for k, axis in enumerate(axes) if axis.gather is not None or axis.at is not None]
    dims = w.broadcast(*[axes[k].gather for k in advanced if axes[k].gather is not None])
    adjacent = advanced[-1] - advanced[0] + 1 == len(advanced)
    shape, first = [], None
    for k, axis in enumerate(axes):
        if k in advanced:
            if first is None:
                first = len(shape) if adjacent else 0
            continue
        shape.append(Dim(1) if axis.is_new else axis.count)
    shape[first:first] = dims

    def element(indices):
        common = indices[first:first + len(dims)]
        others = iter([*indices[:first], *indices[first + len(dims):]])
        own = []
        for axis in axes:
            if axis.is_new:
                next(others)
            elif axis.gather is not None:
                own.append(from_data(w, w.spread(axis.gather, common), array.dims[len(own)]))
            elif axis.at is not None:
                own.append(axis.at)
            else:
                own.append(place(w, axis, next(others)))
        return w.element(array, own)

    result = w.build(tuple(shape), element)
    return Num(result.term, result.kind, result.dims)


def masked(w, array, axes):
    """The elements under a mask over all axes, or the parts under a mask over the first one."""
    mask = axes[0].mask
    rest = axes[1:]
    if mask is None or len(rest) != array.rank - mask.rank or not all(axis.is_whole(dim) for axis, dim in zip(rest, array.dims[mask.rank:])):
        w.fail("a mask is used with other indices", "use `np.where(mask, a, b)`: sizes must not depend on data")
    if rest and mask.rank > 1:
        w.fail("a mask of several axes is used for some of the axes", "use `np.where(mask[..., None], a, b)`: sizes must not depend on data")
    for dim, own in zip(array.dims, mask.dims):
        w.require_equal(dim, own, "an array and its mask")
    return Masked(Num(array.term, array.kind, array.dims), mask, w.node)


def put(w, array, index, value):
    """The array with the elements at `index` replaced by `value`, which is broadcast."""
    axes = axes_of(w, array, index)
    if any(axis.mask is not None for axis in axes):
        return put_masked(w, array, axes, value)
    value = w.num(value)
    if value.kind == "f" and array.kind != "f":
        w.fail(f"a float is written into {describe(array)}", "make the array of floats: `np.zeros(n)`, or round the value")
    value = w.cast(value, array.kind)
    for axis, dim in zip([axis for axis in axes if not axis.is_new], array.dims):
        if axis.at is not None:
            axis.at = w.checked(axis.at, dim)
        elif axis.is_window:
            # A negative one counts from the end; one behind the end writes nothing.
            axis.first = w.checked(w.size(axis.start), dim + axis.count + 1)
    if any(axis.gather is not None for axis in axes):
        return put_gathered(w, array, axes, value)
    # New axes are extents of 1 of the value.
    free = [axis for axis in axes if axis.at is None]
    if any(axis.is_new for axis in free):
        value = without_new(w, value, free)
        axes = [axis for axis in axes if not axis.is_new]
        free = [axis for axis in free if not axis.is_new]
    value = fitted(w, value, [axis.count for axis in free])

    def level(part, k, taken):
        """Axes from `k` on of `part`, all conditions before being true; `taken` are indices into the free axes."""
        if k == len(axes):
            return w.spread(value, taken) if value.rank else value
        axis = axes[k]
        if axis.is_whole(part.dims[0]):
            return w.build((part.dims[0],), lambda i: level(w.element(part, i), k + 1, [*taken, i[0]]))

        def chosen(i):
            old = lambda: w.element(part, [i])
            if axis.at is not None:
                return w.choose(scalar(w, "==", i, axis.at), lambda: level(old(), k + 1, taken), old)
            return inside(w, axis, i, lambda own: level(old(), k + 1, [*taken, own]), old)

        return w.build((part.dims[0],), lambda i: chosen(i[0]))

    result = level(array, 0, [])
    return Num(result.term, array.kind, array.dims, storage=array.storage, is_view=array.is_view)


def without_new(w, value, free):
    """The value without the axes that are new in the index that it is written to."""
    if value.rank < len(free):
        # What is missing in front is broadcast.
        value = w.broadcast_to(value, (Dim(1),) * (len(free) - value.rank) + value.dims) if value.rank else value
    if not value.rank:
        return value
    keep = [k for k, axis in enumerate(free) if not axis.is_new]
    for k, axis in enumerate(free):
        if axis.is_new and value.dims[k].known != 1:
            w.fail(f"{describe(value)} is written to a new axis", "its extent there has to be 1")
    zero = w.constant(0)

    def element(indices):
        own = [zero] * len(free)
        for k, i in zip(keep, indices):
            own[k] = i
        return w.element(value, own)

    return w.build(tuple(value.dims[k] for k in keep), element) if keep else element([])


def put_gathered(w, array, axes, value, combine=None):
    """Writes at arrays of indices, one after the other: of equal indices the last one stays, or all are combined."""
    advanced = [k for k, axis in enumerate(axes) if axis.gather is not None or axis.at is not None]
    if any(axis.is_new for axis in axes):
        w.fail("`None` is used beside an array of indices that is written to", "leave it out")
    dims = w.broadcast(*[axes[k].gather for k in advanced if axes[k].gather is not None])
    adjacent = advanced[-1] - advanced[0] + 1 == len(advanced)
    others = [axis for axis in axes if axis.at is None and axis.gather is None]
    first = len([k for k, axis in enumerate(axes) if k < advanced[0]]) if adjacent else 0
    shape = [axis.count for axis in others]
    shape[first:first] = dims
    value = w.broadcast_to(fitted(w, value, shape), tuple(shape))

    def write(state, common):
        index = lambda axis, dim: w.checked(from_data(w, w.spread(axis.gather, common), dim), dim)
        at = [axis.at if axis.gather is None else index(axis, dim) for axis, dim in zip(axes, array.dims)]

        def level(part, k, taken):
            if k == len(axes):
                new = w.element(value, [*taken[:first], *common, *taken[first:]])
                return new if combine is None else combine(part, new)
            if at[k] is not None:
                return w.build((part.dims[0],), lambda i: w.choose(
                    scalar(w, "==", i[0], at[k]), lambda: level(w.element(part, i), k + 1, taken), lambda: w.element(part, i)))
            axis = axes[k]
            if axis.is_whole(part.dims[0]):
                return w.build((part.dims[0],), lambda i: level(w.element(part, i), k + 1, [*taken, i[0]]))
            return w.build((part.dims[0],), lambda i: inside(
                w, axis, i[0], lambda q: level(w.element(part, i), k + 1, [*taken, q]), lambda: w.element(part, i)))

        return level(state, 0, [])

    def nested(state, indices):
        if len(indices) == len(dims):
            return write(state, indices)
        return w.reduce(dims[len(indices)], state, lambda s, i: nested(s, [*indices, i]))

    result = nested(Num(array.term, array.kind, array.dims), [])
    return Num(result.term, array.kind, array.dims, storage=array.storage, is_view=array.is_view)


def accumulate(w, array, index, value, row):
    """`np.add.at(array, index, value)`: every index counts, equal ones, too."""
    axes = axes_of(w, array, index)
    if any(axis.mask is not None for axis in axes):
        w.fail("`.at` with a mask", "write `a[mask] += ...`")
    for axis, dim in zip(axes, array.dims):
        if axis.at is not None:
            axis.at = w.checked(axis.at, dim)
    combine = lambda old, new: w.cast(row.compute(w, old, new), array.kind)
    return put_gathered(w, array, axes, w.cast(w.num(value), array.kind), combine)


def put_diagonal(w, array, value):
    """The matrix with a number on its diagonal."""
    value = w.cast(w.scalar(value), array.kind)
    made = w.build(array.dims, lambda i: w.choose(scalar(w, "==", i[0], i[1]), lambda: value, lambda: w.element(array, i)))
    return Num(made.term, array.kind, array.dims, storage=array.storage, is_view=array.is_view)


def put_masked(w, array, axes, value):
    """The array with elements under a mask replaced."""
    old = masked(w, array, axes)
    mask = old.mask
    if isinstance(value, Masked):
        if not value.is_under(mask):
            w.fail("elements under one mask are written under another one", "give the mask a name, and use it on both sides")
        source = value.array
    else:
        source = w.num(value)
        if source.rank > array.rank - mask.rank:
            w.fail("an array is written under a mask", "write a number, or elements under the same mask")
    if source.kind == "f" and array.kind != "f":
        w.fail(f"a float is written into {describe(array)}", "make the array of floats")
    source = w.cast(source, array.kind)
    result = w.build(array.dims, lambda i: w.choose(
        w.element(mask, i[:mask.rank]), lambda: w.spread(source, i) if source.rank else source, lambda: w.element(array, i)))
    return Num(result.term, array.kind, array.dims, storage=array.storage, is_view=array.is_view)


def inside(w, axis, i, then, otherwise):
    """`then` of the position in a slice where `i` lies in it."""
    start = axis.first or w.size(axis.start)
    if axis.step == 1:
        low = scalar(w, "<=", start, i)
        high = scalar(w, "<", i, w.size(axis.start + axis.count))
        within = Num(w.program.infix("&&", low.term, high.term), "b")
        return w.choose(within, lambda: then(scalar(w, "-", i, start)), otherwise)
    step = w.constant(axis.step)
    offset = scalar(w, "-", i, start)
    own = scalar(w, "//", offset, step)
    hits = scalar(w, "==", scalar(w, "*", own, step), offset)
    low = scalar(w, "<=", w.constant(0), own)
    high = scalar(w, "<", own, w.size(axis.count))
    within = w.program.infix("&&", hits.term, w.program.infix("&&", low.term, high.term))
    return w.choose(Num(within, "b"), lambda: then(own), otherwise)


def fitted(w, value, dims):
    """The value, which can be broadcast to these extents: without extents of 1 that are too many in front."""
    while value.rank > len(dims):
        if value.dims[0].known != 1:
            w.fail(f"an array of {value.rank} dimensions is written to {len(dims)} axes", "reduce it or take a part of it")
        value = w.element(value, [w.constant(0)])
    for own, dim in zip(reversed(value.dims), reversed(dims)):
        if own.known != 1:
            w.require_equal(dim, own, "elements are written")
    return value
