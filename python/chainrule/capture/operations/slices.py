"""What an index says of each axis: one element, a slice, an array of indices, a new axis."""

from __future__ import annotations

from .operators import scalar
from ..values import Dim, Known, Num, Row, describe


class Axis:
    """What an index says of one axis: `at` one index, or from `start` in steps of `step`, `count` times; or new.

    `is_window` says that the slice is taken to lie in the array; `first` is its start, once it is checked. `gather` is an array of indices, `mask` one of truth values, for as many axes as it has.
    """

    __slots__ = ("at", "start", "step", "count", "is_window", "first", "gather", "mask")

    def __init__(self, at=None, start=None, step=1, count=None, gather=None, mask=None, is_window=False):
        self.at = at
        self.start = start
        self.step = step
        self.count = count
        self.is_window = is_window
        self.first = None
        self.gather = gather
        self.mask = mask

    @property
    def is_new(self):
        return self.at is None and self.start is None and self.gather is None and self.mask is None

    def is_whole(self, dim):
        return self.start == Dim(0) and self.step == 1 and self.count == dim


class Slice:
    """A slice with bounds that are values."""

    __slots__ = ("start", "stop", "step")

    def __init__(self, start, stop, step):
        self.start, self.stop, self.step = start, stop, step


def parts_of(w, array, index):
    """The parts of an index, one for each axis of the array and each new one."""
    parts = index.items if isinstance(index, Row) and not index.is_list else [index]
    parts = [w.num(part) if isinstance(part, Row) else part for part in parts]
    ellipsis = [k for k, part in enumerate(parts) if isinstance(part, Known) and part.value is Ellipsis]
    taken = sum(axes_taken(part) for part in parts)
    missing = array.rank - taken
    if missing < 0 or len(ellipsis) > 1:
        w.fail(f"{describe(array)} has too many indices", f"it has {array.rank} axes")
    full = [Slice(None, None, None)] * missing
    at = ellipsis[0] if ellipsis else len(parts)
    return [*parts[:at], *full, *parts[at + len(ellipsis):]]


def axes_taken(part):
    """How many axes of an array a part of an index is for."""
    if isinstance(part, Known) and (part.value is None or part.value is Ellipsis):
        return 0
    return part.rank if isinstance(part, Num) and part.kind == "b" and part.rank else 1


def axes_of(w, array, index):
    """One `Axis` for each axis of the array, and for each new one."""
    axes, axis = [], 0
    for part in parts_of(w, array, index):
        if isinstance(part, Known) and part.value is None:
            axes.append(Axis())
            continue
        axes.append(axis_of(w, part, array.dims[axis]))
        axis += axes_taken(part)
    return axes


def axis_of(w, part, dim):
    if isinstance(part, Slice):
        return slice_of(w, part, dim)
    if isinstance(part, Known) and isinstance(part.value, slice):
        given = part.value
        bounds = (None if b is None else Known(b) for b in (given.start, given.stop, given.step))
        return slice_of(w, Slice(*bounds), dim)
    if isinstance(part, Num) and part.rank:
        if part.kind == "b":
            return Axis(mask=part)
        if part.kind != "i":
            w.fail(f"an array is indexed by {describe(part)}", "index by ints")
        return Axis(gather=part)
    return Axis(at=w.size(position(w, part, dim)) if isinstance(part, Known) else variable(w, part, dim))


def position(w, part, dim):
    """A known index, counted from the end where it is negative."""
    if not hasattr(part.value, "__index__") or isinstance(part.value, bool):
        w.fail(f"{describe(part)} is used as an index", "index by ints")
    k = int(part.value.__index__())
    if dim.known is not None and not -dim.known <= k < dim.known:
        w.fail("an index is out of range", reason=f"the index is {k}, the axis has {dim.known} elements")
    return Dim(k) if k >= 0 else dim + k


def variable(w, part, dim):
    """An index that is computed: counted from the end where it is a negative number of steps of loops."""
    index = w.integer(part, "an index")
    form = index.dim
    if form is not None and not w.is_at_most(form + 1, dim):
        w.undecided(dim - form)
    if form is not None and w.is_at_most(Dim(0), form):
        return index
    if form is not None and w.is_at_most(form, Dim(-1)):
        return w.size(form + dim)
    if form is None or not all(name in w.limits for name in form.coef):
        return from_data(w, index, dim)
    return counted_from_end(w, index, dim)


def from_data(w, index, dim):
    """An index that is data: at least 0 unless a negative one was met."""
    is_natural = index.dim is not None and w.is_at_most(Dim(0), index.dim)
    return counted_from_end(w, index, dim) if w.has_negative and not is_natural else index


def counted_from_end(w, index, dim):
    return w.choose(scalar(w, "<", index, w.constant(0)), lambda: scalar(w, "+", index, w.size(dim)), lambda: index)


def is_none(part):
    return part is None or isinstance(part, Known) and part.value is None


def slice_of(w, part, dim):
    step = 1
    if not is_none(part.step):
        if not isinstance(part.step, Known):
            w.fail("the step of a slice is not known", "write a number")
        step = int(part.step.value)
        if step == 0:
            w.fail("slice step cannot be zero")
    low, high = (Dim(0), dim) if step > 0 else (Dim(-1), dim - 1)
    bounds = window(w, part) if step > 0 else None
    start, stop = bounds or (
        bound(w, part.start, dim, low, high, low if step > 0 else high), bound(w, part.stop, dim, low, high, high if step > 0 else low))
    length = w.at_least(stop - start if step > 0 else start - stop, Dim(0))
    return Axis(start=start, step=step, count=w.divided_up(length, abs(step)), is_window=bounds is not None)


def window(w, part):
    """The bounds of a slice of known length that begins at a number that is data: taken to lie in the array, unless one was met that does
    not. Its elements are checked."""
    if w.has_negative or any(is_none(bound) or isinstance(bound, Known) for bound in (part.start, part.stop)):
        return None
    start, stop = (w.dim(bound, "a bound of a slice") for bound in (part.start, part.stop))
    length = (stop - start).known
    return (start, stop) if w.is_data(start) and length is not None and length >= 0 else None


def bound(w, part, dim, low, high, default):
    """A bound of a slice, brought into the array as NumPy does."""
    if is_none(part):
        return default
    if isinstance(part, Known):
        k = int(w.integer(part, "a bound of a slice").dim.known)
        if dim.known is not None:
            return Dim(min(max(k + dim.known if k < 0 else k, low.known), high.known))
        return w.within(Dim(k) if k >= 0 else dim + k, low, high)
    form = w.dim(part, "a bound of a slice")
    if w.is_known_at_entry(form):
        w.require_not_negative(form)
    elif w.is_at_most(form, Dim(-1)):
        form = form + dim
    elif not w.is_at_most(Dim(0), form) and (w.is_data(form) or all(name in w.steps for name in form.coef)):
        form = w.symbol("from the end", form, dim)
    return w.within(form, low, high)


def place(w, axis, k):
    """The index of element `k` of a slice."""
    if axis.step != 1:
        k = scalar(w, "*", w.constant(axis.step), k)
    if axis.start == Dim(0):
        return k
    return scalar(w, "+", w.size(axis.start), k)
