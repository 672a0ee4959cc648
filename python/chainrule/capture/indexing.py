"""Elements, basic slices, integer-array indices; writing elements of local arrays."""

from __future__ import annotations

from .operators import scalar
from .values import Dim, Known, Num, Row, describe


class Axis:
    """What an index says of one axis: `at` one index, or from `start` in steps of `step`, `count` times; or new."""

    __slots__ = ("at", "start", "step", "count", "gather")

    def __init__(self, at=None, start=None, step=1, count=None, gather=None):
        self.at = at
        self.start = start
        self.step = step
        self.count = count
        self.gather = gather

    @property
    def is_new(self):
        return self.at is None and self.start is None and self.gather is None


class Slice:
    """A slice with bounds that are values."""

    __slots__ = ("start", "stop", "step")

    def __init__(self, start, stop, step):
        self.start, self.stop, self.step = start, stop, step


def axes_of(w, array, index):
    """One `Axis` for each axis of the array, and for each new one."""
    parts = index.items if isinstance(index, Row) and not index.is_list else [index]
    ellipsis = [k for k, part in enumerate(parts) if isinstance(part, Known) and part.value is Ellipsis]
    n_new = sum(isinstance(part, Known) and part.value is None for part in parts)
    missing = array.rank - (len(parts) - n_new - len(ellipsis))
    if missing < 0 or len(ellipsis) > 1:
        w.fail(f"{describe(array)} has too many indices", f"it has {array.rank} axes")
    full = [Slice(None, None, None)] * missing
    at = ellipsis[0] if ellipsis else len(parts)
    parts = [*parts[:at], *full, *parts[at + len(ellipsis):]]
    axes, axis = [], 0
    for part in parts:
        if isinstance(part, Known) and part.value is None:
            axes.append(Axis())
            continue
        axes.append(axis_of(w, part, array.dims[axis]))
        axis += 1
    return axes


def axis_of(w, part, dim):
    if isinstance(part, Slice):
        return slice_of(w, part, dim)
    if isinstance(part, Known) and isinstance(part.value, slice):
        given = part.value
        bounds = (None if b is None else Known(b) for b in (given.start, given.stop, given.step))
        return slice_of(w, Slice(*bounds), dim)
    if isinstance(part, Row):
        part = w.num(part)
    if isinstance(part, Num) and part.rank:
        if part.kind == "b":
            w.fail("an array is indexed by truth values", "use `np.where(mask, a, b)`: sizes must not depend on data")
        if part.rank != 1 or part.kind != "i":
            w.fail(f"an array is indexed by {describe(part)}", "index by an array of ints of one dimension")
        return Axis(gather=part)
    return Axis(at=w.size(position(w, part, dim)) if isinstance(part, Known) else variable(w, part))


def position(w, part, dim):
    """A known index, counted from the end where it is negative."""
    if not hasattr(part.value, "__index__") or isinstance(part.value, bool):
        w.fail(f"{describe(part)} is used as an index", "index by ints")
    k = int(part.value.__index__())
    if dim.known is not None and not -dim.known <= k < dim.known:
        w.fail("an index is out of range", reason=f"the index is {k}, the axis has {dim.known} elements")
    return Dim(k) if k >= 0 else dim + k


def variable(w, part):
    return w.integer(part, "an index")


def bound(w, part, dim, default):
    if part is None or isinstance(part, Known) and part.value is None:
        return default
    if isinstance(part, Known):
        k = int(w.integer(part, "a bound of a slice").dim.known)
        if dim.known is not None:
            return Dim(min(max(k + dim.known if k < 0 else k, 0), dim.known))
        return Dim(k) if k >= 0 else dim + k
    form = w.dim(part, "a bound of a slice")
    w.require_not_negative(form)
    return form


def slice_of(w, part, dim):
    step = 1
    if part.step is not None and not (isinstance(part.step, Known) and part.step.value is None):
        if not isinstance(part.step, Known):
            w.fail("the step of a slice is not known", "write a number")
        step = int(part.step.value)
        if step == 0:
            w.fail("slice step cannot be zero")
    if step == 1:
        start = bound(w, part.start, dim, Dim(0))
        stop = bound(w, part.stop, dim, dim)
        count = stop - start
        if count.known is not None and count.known < 0:
            count = Dim(0)
        return Axis(start=start, count=count)
    if step > 0:
        start, stop = bound(w, part.start, dim, Dim(0)), bound(w, part.stop, dim, dim)
        length = stop - start
    else:
        start, stop = bound(w, part.start, dim, dim - 1), bound(w, part.stop, dim, Dim(-1))
        length = start - stop
    return Axis(start=start, step=step, count=divided_up(w, length, abs(step)))


def divided_up(w, length, step):
    """The least integer that is not less than `length / step`."""
    if step == 1:
        return length if length.known is None else Dim(max(length.known, 0))
    if length.known is not None:
        return Dim(max(-(-length.known // step), 0))
    known = w.quotients.get((length, step))
    if known is None or not w.names[known].is_visible:
        up = w.size(length + (step - 1))
        term = w.program.apply("div", [up.term, w.program.integer(step)])
        known = w.quotients[length, step] = term.name
        w.names[known] = term
    return Dim(0, {known: 1})


def place(w, axis, k):
    """The index of element `k` of a slice."""
    if axis.step != 1:
        k = scalar(w, "*", w.constant(axis.step), k)
    if axis.start == Dim(0):
        return k
    return scalar(w, "+", w.size(axis.start), k)


def get(w, array, index):
    """`array[index]`."""
    axes = axes_of(w, array, index)
    # Leading single indices take parts; so do whole axes at the end.
    n = 0
    while n < len(axes) and axes[n].at is not None:
        n += 1
    part = w.element(array, [axis.at for axis in axes[:n]])
    rest = axes[n:]
    if all(is_whole(axis, dim) for axis, dim in zip(rest, part.dims)) and len(rest) == part.rank:
        return part
    n_gather = sum(axis.gather is not None for axis in axes)
    advanced = [k for k, axis in enumerate(axes) if axis.at is not None or axis.gather is not None]
    if n_gather > 1 or n_gather and advanced[-1] - advanced[0] >= len(advanced):
        w.fail("several axes are indexed by arrays and ints", "index one axis at a time, or loop over the indices")
    dims = []
    for axis in rest:
        if axis.is_new:
            dims.append(Dim(1))
        elif axis.gather is not None:
            dims.append(axis.gather.dims[0])
        elif axis.at is None:
            dims.append(axis.count)

    def element(indices):
        indices = iter(indices)
        own = []
        for axis in rest:
            if axis.is_new:
                next(indices)
            elif axis.gather is not None:
                own.append(w.element(axis.gather, [next(indices)]))
            elif axis.at is not None:
                own.append(axis.at)
            else:
                own.append(place(w, axis, next(indices)))
        return w.element(part, own)

    result = w.build(tuple(dims), element)
    return Num(result.term, result.kind, result.dims, storage=None if n_gather else array.storage)


def is_whole(axis, dim):
    return axis.start == Dim(0) and axis.step == 1 and axis.count == dim


def put(w, array, index, value):
    """The array with the elements at `index` replaced by `value`, which is broadcast."""
    axes = axes_of(w, array, index)
    if any(axis.gather is not None for axis in axes):
        w.fail("elements at an array of indices are written", "loop over the indices: `for k in indices: a[k] = ...`")
    if any(axis.is_new for axis in axes):
        w.fail("`None` is used in an index that is written to")
    free = [axis for axis in axes if axis.at is None]
    value = w.num(value)
    if value.kind == "f" and array.kind != "f":
        w.fail(f"a float is written into {describe(array)}", "make the array of floats: `np.zeros(n)`, or round the value")
    value = w.cast(value, array.kind)
    if value.rank > len(free):
        w.fail(f"{describe(value)} is written to {len(free)} axes", "reduce it or take a part of it")
    fit(w, value, [axis.count for axis in free])

    def level(part, k, taken):
        """Axes from `k` on of `part`, all conditions before being true; `taken` are indices into the free axes."""
        if k == len(axes):
            return w.spread(value, taken) if value.rank else value
        axis = axes[k]
        if is_whole(axis, part.dims[0]):
            return w.build((part.dims[0],), lambda i: level(w.element(part, i), k + 1, [*taken, i[0]]))

        def chosen(i):
            old = lambda: w.element(part, [i])
            if axis.at is not None:
                return w.choose(scalar(w, "==", i, axis.at), lambda: level(old(), k + 1, taken), old)
            return inside(w, axis, i, lambda own: level(old(), k + 1, [*taken, own]), old)

        return w.build((part.dims[0],), lambda i: chosen(i[0]))

    result = level(array, 0, [])
    return Num(result.term, array.kind, array.dims, storage=array.storage)


def inside(w, axis, i, then, otherwise):
    """`then` of the position in a slice where `i` lies in it."""
    start = w.size(axis.start)
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


def fit(w, value, dims):
    """States that a value can be broadcast to these extents."""
    for own, dim in zip(reversed(value.dims), reversed(dims)):
        if own.known != 1:
            w.require_equal(dim, own, "elements are written")
