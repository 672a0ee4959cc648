"""What is iterated over: ranges, arrays, `enumerate`, `zip`, tuples of known length."""

from __future__ import annotations

from ..errors import Limitation
from .operations.operators import scalar
from .values import Dim, Form, Known, Loop, Num, Row, describe


def counted(w, start, stop, step):
    """How many steps a range has, and its element at an index."""
    if isinstance(step, Known) and isinstance(step.value, int):
        by = step.value
    else:
        w.fail("the step of a range is not known", "write a number as the step")
    if by == 0:
        w.fail("range() arg 3 must not be zero")
    first, last = w.dim(start, "a bound of a range"), w.dim(stop, "a bound of a range")
    length = last - first if by > 0 else first - last
    count = w.divided_up(length, abs(by))

    def at(index):
        k = index if abs(by) == 1 else scalar(w, "*", index, w.constant(abs(by)))
        if by > 0:
            return k if first == Dim(0) else scalar(w, "+", w.size(first), k)
        return scalar(w, "-", w.size(first), k)

    return count, at


def range_(w, *bounds):
    if len(bounds) == 1:
        bounds = (Known(0), *bounds)
    start, stop, step = (*bounds, Known(1))[:3]
    count, at = counted(w, start, stop, step)
    return Loop(count, at)


def loop_of(w, value):
    """A value as something that is iterated over: a `Loop`, or the list of its items where their number is known."""
    if isinstance(value, Loop):
        return value
    if isinstance(value, Row) and isinstance(value.is_list, Form) and value.is_list.cls is dict:
        return [Known(key) for key in value.is_list.names]
    if isinstance(value, Row) and isinstance(value.is_list, Form) and not issubclass(value.is_list.cls, tuple):
        return w.fail(f"{describe(value)} is iterated over", "iterate over its fields")
    if isinstance(value, Row):
        return value.items
    if isinstance(value, Known) and isinstance(value.value, range):
        r = value.value
        return range_(w, Known(r.start), Known(r.stop), Known(r.step))
    if isinstance(value, Known) and isinstance(value.value, (tuple, list)):
        return [Known(item) for item in value.value]
    if isinstance(value, Num) and value.rank:
        return Loop(value.dims[0], lambda i: w.element(value, [i]), [value.storage])
    return w.fail(f"{describe(value)} is iterated over", "iterate over a range, an array, `enumerate`, `zip` or a tuple")


def enumerate_(w, iterable, start=Known(0)):
    inner = loop_of(w, iterable)
    if isinstance(inner, list):
        return Row([Row([Known(k + start.value), item]) for k, item in enumerate(inner)])
    number = lambda i: i if getattr(start, "value", None) == 0 else scalar(w, "+", i, w.num(start))
    return Loop(inner.count, lambda i: Row([number(i), inner.element(i)]), inner.storages)


def zip_(w, *iterables):
    inner = [loop_of(w, iterable) for iterable in iterables]
    if all(isinstance(one, list) for one in inner):
        return Row([Row(items) for items in zip(*inner)])
    loops = [Loop(Dim(len(one)), of_items(w, one)) if isinstance(one, list) else one for one in inner]
    count = loops[0].count
    for one in loops[1:]:
        if one.count != count:
            count = w.shorter(count, one.count)
    return Loop(count, lambda i: Row([one.element(i) for one in loops]), [s for one in loops for s in one.storages])


#: Maximum number of items of a comprehension whose loops run once for each item while code is captured.
MAX_ITEMS = 256


def nested(w, loop):
    """The loop over the elements of loops, which are the elements of a loop: one loop, where the inner ones have one length.

    The index is a quotient and a remainder, as that of a matrix that is reshaped to a vector.
    """
    from .operations.shaping import product
    # One inner loop is written to see its length; what is not used of it goes.
    required = set(w.required)
    inner = loop.element(w.index(loop.count))
    w.program.close(w.program.integer(0))
    w.required = required
    count = Dim(len(inner.items)) if isinstance(inner, Row) else inner.count
    if loop.count.known == 0 or count.known == 0:
        return inner if isinstance(inner, Row) and not inner.items else Loop(Dim(0), lambda index: loop_of(w, loop.element(index)).element(index))
    if not all(w.names[name].is_visible for name in count.coef):
        if loop.count.known is None:
            w.fail("the inner loop of a comprehension has another length in each step of the outer one", "fill an array of known size in a loop",
                   error=Limitation)
        return chained(w, [loop.element(w.constant(k)) for k in range(loop.count.known)])

    def element(index):
        n = w.size(count)
        items = loop_of(w, loop.element(scalar(w, "//", index, n)))
        at = scalar(w, "%", index, n)
        return of_items(w, items)(at) if isinstance(items, list) else items.element(at)

    return Loop(product(w, [loop.count, count]), element)


def chained(w, parts):
    """The items of several rows and loops, one after the other."""
    counts = [len(part.items) if isinstance(part, Row) else part.count.known for part in parts]
    if None not in counts and sum(counts) == 0:
        return next((Loop(Dim(0), part.element) for part in parts if isinstance(part, Loop)), Row([]))
    if None not in counts and sum(counts) <= MAX_ITEMS:
        items = lambda part: part.items if isinstance(part, Row) else [part.element(w.constant(k)) for k in range(part.count.known)]
        return Row([item for part in parts for item in items(part)])
    from .operations.shaping import joined, of_one_kind
    array = lambda part: w.build((part.count,), lambda i: w.num(part.element(i[0])))
    arrays = [w.num(part) if isinstance(part, Row) else array(part) for part in parts if not isinstance(part, Row) or part.items]
    return loop_of(w, joined(w, of_one_kind(w, arrays), Known(0)))


def of_items(w, items):
    table = w.stack([w.num(item) for item in items])
    return lambda i: w.element(table, [i])


def reversed_(w, iterable):
    inner = loop_of(w, iterable)
    if isinstance(inner, list):
        return Row(inner[::-1])
    last = w.size(inner.count - 1)
    return Loop(inner.count, lambda i: inner.element(scalar(w, "-", last, i)), inner.storages)
