"""Arrays in other shapes: reshaped, permuted, reversed, put together, cut to triangles, repeated."""

from __future__ import annotations

from .operators import scalar
from ..values import Dim, Known, Num, Row, describe, is_given


def known(w, value, what, default=None):
    """A number or a tuple of them that has to be written or known."""
    if value is None:
        return default
    if isinstance(value, Row):
        return tuple(known(w, item, what) for item in value.items)
    if isinstance(value, Known):
        return value.value
    return w.fail(f"{what} is not known", "write a number")


def known_int(w, value, what):
    """An integer that has to be written or known."""
    number = known(w, value, what)
    if isinstance(number, bool) or not hasattr(number, "__index__"):
        w.fail(f"{what} is {number!r}", "write an int")
    return number.__index__()


def axis_of(w, array, axis, default=None, extra=0):
    """An axis as a number that is not negative."""
    k = known(w, axis, "an axis", default)
    rank = array.rank + extra
    if not isinstance(k, int) or isinstance(k, bool) or not -rank <= k < rank:
        w.fail(f"axis {k} is out of bounds for {describe(array)}")
    return k % rank


def view(made, array):
    """An array that is made of the memory of another one."""
    return Num(made.term, made.kind, made.dims, storage=array.storage, is_view=True)


def permuted(w, array, order):
    """The array with its axes in this order."""
    if list(order) == list(range(array.rank)):
        return array
    if array.rank == 2:
        return view(Num(w.program.apply("matrixTranspose", [array.term]), array.kind, array.dims[::-1]), array)

    def element(indices):
        own = [None] * array.rank
        for axis, i in zip(order, indices):
            own[axis] = i
        return w.element(array, own)

    return view(w.build(tuple(array.dims[axis] for axis in order), element), array)


def transpose(w, a, axes=None):
    a = w.num(a)
    order = known(w, axes, "the order of axes")
    if order is None:
        return permuted(w, a, range(a.rank)[::-1])
    order = [axis_of(w, a, Known(k)) for k in order]
    if sorted(order) != list(range(a.rank)):
        w.fail("axes don't match array")
    return permuted(w, a, order)


def transpose_method(w, a, *axes):
    return transpose(w, a, (axes[0] if len(axes) == 1 and not isinstance(getattr(axes[0], "value", None), int) else Row(axes)) if axes else None)


def swapaxes(w, a, axis1, axis2):
    a = w.num(a)
    order = list(range(a.rank))
    i, j = axis_of(w, a, axis1), axis_of(w, a, axis2)
    order[i], order[j] = order[j], order[i]
    return permuted(w, a, order)


def moveaxis(w, a, source, destination):
    a = w.num(a)
    sources, destinations = ([axis_of(w, a, Known(k)) for k in numbers(w, given)] for given in (source, destination))
    if len(sources) != len(destinations):
        w.fail("`source` and `destination` arguments must have the same number of elements")
    if len(set(sources)) < len(sources) or len(set(destinations)) < len(destinations):
        w.fail("an axis is named twice")
    order = [k for k in range(a.rank) if k not in sources]
    for j, i in sorted(zip(destinations, sources)):
        order.insert(j, i)
    return permuted(w, a, order)


def numbers(w, axes):
    """An axis, or several of them, as a tuple."""
    chosen = known(w, axes, "an axis")
    return tuple(chosen) if isinstance(chosen, (tuple, list)) else (chosen,)


def rollaxis(w, a, axis, start=Known(0)):
    a = w.num(a)
    k, j = axis_of(w, a, axis), known_int(w, start, "an axis")
    if not -a.rank <= j <= a.rank:
        w.fail(f"axis {j} is out of bounds for {describe(a)}")
    j = j + a.rank if j < 0 else j
    order = [axis for axis in range(a.rank) if axis != k]
    order.insert(j - 1 if k < j else j, k)
    return permuted(w, a, order)


def rot90(w, m, k=Known(1), axes=Known((0, 1))):
    a, turns = w.num(m), known_int(w, k, "the number of turns") % 4
    chosen = [axis_of(w, a, Known(axis)) for axis in numbers(w, axes)]
    if len(chosen) != 2 or chosen[0] == chosen[1]:
        w.fail("an array is turned between two different axes", "write `axes=(0, 1)`")
    if turns == 0:
        return view(a, a)
    if turns == 2:
        return flip(w, a, Known(tuple(chosen)))
    swapped = lambda array: swapaxes(w, array, *map(Known, chosen))
    return swapped(flip(w, a, Known(chosen[1]))) if turns == 1 else flip(w, swapped(a), Known(chosen[1]))


def diagonal(w, a, offset=Known(0), axis1=Known(0), axis2=Known(1)):
    """`np.diagonal`: the elements of a diagonal as the last axis."""
    a, by = w.num(a), known_int(w, offset, "the offset of a diagonal")
    if a.rank < 2:
        w.fail(f"a diagonal of {describe(a)} is taken", "it is for matrices")
    i, j = axis_of(w, a, axis1), axis_of(w, a, axis2)
    if i == j:
        w.fail("axis1 and axis2 cannot be the same")
    down, right = w.constant(max(-by, 0)), w.constant(max(by, 0))
    n, m = (w.at_least(dim - less, Dim(0)) for dim, less in ((a.dims[i], max(-by, 0)), (a.dims[j], max(by, 0))))
    kept = [k for k in range(a.rank) if k not in (i, j)]
    outer = tuple(a.dims[k] for k in kept)
    if 0 in (n.known, m.known):
        zero = w.cast(w.constant(0), a.kind)
        return view(w.build((*outer, Dim(0)), lambda _: zero), a)

    def element(indices):
        own = dict(zip(kept, indices)) | {i: moved(w, indices[-1], down), j: moved(w, indices[-1], right)}
        return w.element(a, [own[k] for k in range(a.rank)])

    return view(w.build((*outer, n if n == m else w.at_most(n, m)), element), a)


def diagonal_of_last(w, x, *, offset=Known(0)):
    return diagonal(w, x, offset, Known(-2), Known(-1))


def matrix_transpose(w, x):
    """The transposes of the matrices on the last two axes."""
    a = w.num(x)
    if a.rank < 2:
        w.fail(f"matrices are transposed in {describe(a)}", "write `.T`")
    return swapaxes(w, a, Known(-2), Known(-1))


def moved(w, i, by):
    """The index after as many elements."""
    return i if by.dim.known == 0 else scalar(w, "+", i, by)


def expand_dims(w, a, axis):
    a, given = w.num(a), numbers(w, axis)
    rank = a.rank + len(given)
    axes = {axis_of(w, a, Known(k), extra=len(given)) for k in given}
    if len(axes) < len(given):
        w.fail("repeated axis")
    kept = [k for k in range(rank) if k not in axes]
    dims = iter(a.dims)
    return view(w.build(tuple(Dim(1) if k in axes else next(dims) for k in range(rank)), lambda i: w.element(a, [i[k] for k in kept])), a)


def squeeze(w, a, axis=None):
    a = w.num(a)
    chosen = known(w, axis, "an axis")
    if chosen is None:
        axes = [k for k, dim in enumerate(a.dims) if dim.known == 1]
    else:
        axes = [axis_of(w, a, Known(k)) for k in (chosen if isinstance(chosen, tuple) else (chosen,))]
        for k in axes:
            w.require_equal(a.dims[k], Dim(1), "an axis is left out")
    return dropped(w, a, axes)


def dropped(w, a, axes):
    """The array without axes, whose first elements are taken."""
    if not axes:
        return a
    keep, zero = [k for k in range(a.rank) if k not in axes], w.constant(0)

    def element(indices):
        own = [zero] * a.rank
        for k, i in zip(keep, indices):
            own[k] = i
        return w.element(a, own)

    return view(w.build(tuple(a.dims[k] for k in keep), element), a) if keep else element([])


def product(w, dims):
    """The extent that is the product of extents."""
    factor, rest = 1, []
    for dim in dims:
        if dim.known is not None:
            factor *= dim.known
        else:
            rest.append(dim)
    if not rest or not factor:
        return Dim(factor)
    rest.sort(key=repr)
    total = rest[0]
    for dim in rest[1:]:
        left, least = total, w.lower_bound(total)
        total = w.symbol("*", left, dim, least=0 if least is not None and least >= 0 else None)
        if w.is_known_at_entry(left, dim):
            w.entry.update(total.coef)
    return total * factor


def in_columns(w, a, order):
    """Whether elements are counted with the first index running fastest."""
    name = known(w, order, "the order", "C")
    if name not in ("C", "F", "A", "K"):
        w.fail(f"an array is read in the order {name!r}", "write 'C' or 'F'")
    return name == "F"


def reshape(w, a, shape, order=None):
    """`np.reshape`: axes that stay are taken as they are, those between are counted through."""
    a = w.num(a)
    parts = shape.items if isinstance(shape, Row) else [Known(k) for k in shape.value] if isinstance(getattr(shape, "value", None), tuple) else [shape]
    if in_columns(w, a, order):
        made = transpose(w, reshape(w, transpose(w, a), Row(parts[::-1])))
        return Num(made.term, made.kind, made.dims)
    from .arrays import extents_of
    guessed = [k for k, part in enumerate(parts) if isinstance(part, Known) and part.value == -1]
    if len(guessed) > 1:
        w.fail("can only specify one unknown dimension")
    dims = [None if k in guessed else extents_of(w, part)[0] for k, part in enumerate(parts)]
    # Of an array without elements, axes that are equal say nothing of the other ones.
    stays = lambda k: dims[k] == a.dims[k] and a.dims[k].known != 0
    first = 0
    while first < min(len(dims), a.rank) and stays(first):
        first += 1
    last = 0
    while last < min(len(dims), a.rank) - first and stays(-1 - last):
        last += 1
    old, new = a.dims[first:a.rank - last], dims[first:len(dims) - last]
    if None in new:
        k = new.index(None)
        new[k] = dims[first + k] = quotient(w, old, [dim for dim in new if dim is not None])
    if [dim for dim in old if dim.known != 1] != [dim for dim in new if dim.known != 1]:
        w.require_equal(product(w, old), product(w, new), "an array is reshaped")
        # Axes that are equal stay, and need no remainders.
        w.undecided(*old, *new)
    dims = tuple(dims)

    def element(indices):
        middle = indices[first:len(dims) - last]
        return w.element(a, [*indices[:first], *through(w, middle, new, old), *indices[len(dims) - last:]])

    return view(w.build(dims, element), a) if dims else element([])


def quotient(w, old, new):
    """The extent that makes the product of the new extents that of the old ones."""
    rest = list(old)
    left = []
    for dim in new:
        if dim in rest:
            rest.remove(dim)
        else:
            left.append(dim)
    total, divisor = product(w, rest), product(w, left)
    if divisor == Dim(1):
        return total
    if total.known is not None and divisor.known:
        return Dim(total.known // divisor.known)
    if divisor.known:
        return w.divided(total, divisor.known, least=0)
    return w.symbol("div", total, divisor, least=0)


def through(w, indices, new, old):
    """The indices into the old extents of an element at these indices into the new ones."""
    a, b = [dim for dim in new if dim.known != 1], [dim for dim in old if dim.known != 1]
    zero = w.constant(0)
    if a == b:
        taken = iter([i for dim, i in zip(new, indices) if dim.known != 1])
        return [zero if dim.known == 1 else next(taken) for dim in old]
    position = zero
    for dim, i in zip(new, indices):
        position = scalar(w, "+", scalar(w, "*", position, w.size(dim)), i) if position is not zero else i
    found = []
    for dim in reversed(old[1:]):
        n = w.size(dim)
        found.append(scalar(w, "%", position, n))
        position = scalar(w, "//", position, n)
    return [position, *reversed(found)] if old else []


def reshape_method(w, a, *shape, order=None):
    return reshape(w, a, shape[0] if len(shape) == 1 else Row(shape), order)


def ravel(w, a, order=None):
    a = w.num(a)
    if in_columns(w, a, order):
        made = ravel(w, transpose(w, a))
        return Num(made.term, made.kind, made.dims)
    return reshape(w, a, Known(-1)) if a.rank != 1 else a


def flip(w, a, axis=None):
    a = w.num(a)
    chosen = known(w, axis, "an axis")
    axes = range(a.rank) if chosen is None else [axis_of(w, a, Known(k)) for k in (chosen if isinstance(chosen, tuple) else (chosen,))]
    ends = {k: w.size(a.dims[k] - 1) for k in axes}
    return view(w.build(a.dims, lambda i: w.element(a, [scalar(w, "-", ends[k], j) if k in ends else j for k, j in enumerate(i)])), a)


def flipped(axis):
    return lambda w, m: flip(w, m, Known(axis))


def roll(w, a, shift, axis=None):
    a = w.num(a)
    is_flat = not is_given(axis)
    if is_flat and a.rank > 1:
        flat = roll(w, ravel(w, a), shift)
        return reshape(w, Num(flat.term, flat.kind, flat.dims), Row([w.size(dim) for dim in a.dims]))
    axes = [0] if is_flat else numbers(w, axis)
    shifts = shift.items if isinstance(shift, Row) else list(map(Known, shift.value)) if isinstance(getattr(shift, "value", None), tuple) else [shift]
    if len(axes) != len(shifts) and 1 not in (len(axes), len(shifts)):
        w.fail("'shift' and 'axis' should be scalars or 1D sequences")
    for k, by in zip(list(axes) * (len(shifts) if len(axes) == 1 else 1), shifts * (len(axes) if len(shifts) == 1 else 1)):
        a = rolled(w, a, by, axis_of(w, a, Known(k)))
    return a


def rolled(w, a, shift, k):
    """The array shifted along one axis; what leaves at one end enters at the other one."""
    by, n = w.integer(shift, "a shift"), w.size(a.dims[k])
    return w.build(a.dims, lambda i: w.element(a, [scalar(w, "%", scalar(w, "-", j, by), n) if m == k else j for m, j in enumerate(i)]))


def triangle(sign):
    """`np.tril`, `np.triu`: zeros where the column is beyond a diagonal."""
    def cut(w, m, k=None):
        m = w.num(m)
        if m.rank < 2:
            w.fail(f"a triangle of {describe(m)} is taken", "it is for matrices")
        shift = w.integer(Known(0) if k is None else k, "a diagonal")
        zero = w.cast(w.constant(0), m.kind)
        row = lambda i: i[-2] if getattr(k, "value", 0) == 0 else scalar(w, "+", i[-2], shift)
        return w.build(m.dims, lambda i: w.choose(scalar(w, sign, i[-1], row(i)), lambda: w.element(m, i), lambda: zero))
    return cut


def rows(w, arrays):
    if isinstance(arrays, Row):
        return [w.num(item) for item in arrays.items]
    array = w.num(arrays)
    if array.rank and array.dims[0].known is not None:
        return [w.element(array, [w.constant(k)]) for k in range(array.dims[0].known)]
    return w.fail(f"{describe(array)} stands for a list of arrays", "write a list or a tuple of arrays")


def of_one_kind(w, parts):
    kind = "b" if all(part.kind == "b" for part in parts) else w.common(*parts)
    return [w.cast(part, kind) for part in parts]


def concatenate(w, arrays, axis=Known(0)):
    if is_list(arrays):
        if known(w, axis, "an axis") != 0:
            w.fail("a list whose length is not known is concatenated along another axis than the first", "use `np.stack` and a transpose")
        return reshape(w, arrays, Row([Known(-1), *[w.size(dim) for dim in arrays.dims[2:]]]))
    parts = of_one_kind(w, rows(w, arrays))
    if known(w, axis, "an axis") is None:
        parts, axis = [ravel(w, part) for part in parts], Known(0)
    return joined(w, parts, axis)


def joined(w, parts, axis):
    result = parts[0]
    if not result.rank:
        w.fail("numbers are concatenated", "write `np.array([a, b])`")
    at = axis_of(w, result, axis)
    for part in parts[1:]:
        if part.rank != result.rank:
            w.fail("arrays of different dimensions are put together")
        for k, (first, other) in enumerate(zip(result.dims, part.dims)):
            if k != at:
                w.require_equal(first, other, "they are put together along another axis")
        dims = (*result.dims[:at], result.dims[at] + part.dims[at], *result.dims[at + 1:])
        if at == 0:
            result = Num(w.program.apply("vectorConcat", [result.term, part.term]), result.kind, dims)
            continue

        def element(i, first=result, second=part):
            n = w.size(first.dims[at])
            later = lambda: w.element(second, [*i[:at], scalar(w, "-", i[at], n), *i[at + 1:]])
            return w.choose(scalar(w, "<", i[at], n), lambda: w.element(first, i), later)

        result = w.build(dims, element)
    return Num(result.term, result.kind, result.dims)


def stack(w, arrays, axis=Known(0)):
    made = arrays if is_list(arrays) else w.stack(of_one_kind(w, rows(w, arrays)))
    at = axis_of(w, made, axis)
    order = list(range(1, made.rank))
    order.insert(at, 0)
    made = permuted(w, made, order)
    return Num(made.term, made.kind, made.dims)


def at_least_rank(w, part, rank, front=True):
    """The array with axes of extent 1 until it has so many."""
    while part.rank < rank:
        part = expand_dims(w, part, Known(0 if front else -1)) if part.rank else w.stack([part])
    return part


def hstack(w, tup):
    parts = [at_least_rank(w, part, 1) for part in rows(w, tup)]
    return joined(w, of_one_kind(w, parts), Known(0 if parts[0].rank == 1 else 1))


def is_list(value):
    """Whether a value is a list of arrays of one shape, whose length is not known."""
    return isinstance(value, Num) and value.is_list and value.rank > 1


def vstack(w, tup):
    if is_list(tup):
        return concatenate(w, tup) if tup.rank > 2 else Num(tup.term, tup.kind, tup.dims)
    return joined(w, of_one_kind(w, [at_least_rank(w, part, 2) for part in rows(w, tup)]), Known(0))


def column_stack(w, tup):
    return joined(w, of_one_kind(w, [at_least_rank(w, part, 2, front=False) for part in rows(w, tup)]), Known(1))


def atleast(make):
    """`np.atleast_1d` and its relatives, of one array or several."""
    def made(w, *arys):
        found = [make(w, a) for a in arys]
        return found[0] if len(found) == 1 else Row(found)
    return made


def atleast_1d(w, a):
    return at_least_rank(w, w.num(a), 1)


def atleast_2d(w, a):
    return at_least_rank(w, w.num(a), 2)


def atleast_3d(w, a):
    """`np.atleast_3d`: a vector becomes the middle axis."""
    a = at_least_rank(w, w.num(a), 1)
    return at_least_rank(w, at_least_rank(w, a, 2), 3, front=False)


def repeat(w, a, repeats, axis=None):
    a = w.num(a)
    if axis is None:
        a, axis = ravel(w, a), Known(0)
    k, n = axis_of(w, a, axis), w.integer(repeats, "a number of repeats")
    dims = (*a.dims[:k], times(w, a.dims[k], n), *a.dims[k + 1:])
    return w.build(dims, lambda i: w.element(a, [scalar(w, "//", j, n) if m == k else j for m, j in enumerate(i)]))


def times(w, dim, number):
    return product(w, [dim, w.dim(number)])


def tile(w, A, reps):
    a = w.num(A)
    reps = reps.items if isinstance(reps, Row) else [reps]
    rank = max(a.rank, len(reps))
    a = at_least_rank(w, a, rank)
    reps = [Known(1)] * (rank - len(reps)) + reps
    dims = [times(w, dim, w.integer(n, "a number of repeats")) for dim, n in zip(a.dims, reps)]
    return w.build(tuple(dims), lambda i: w.element(a, [
        j if getattr(n, "value", None) == 1 else scalar(w, "%", j, w.size(dim)) for j, n, dim in zip(i, reps, a.dims)]))


def broadcast_to(w, array, shape):
    from .arrays import extents_of
    made = w.broadcast_to(w.num(array), extents_of(w, shape))
    return Num(made.term, made.kind, made.dims)


def broadcast_arrays(w, *args):
    parts = [w.num(arg) for arg in args]
    dims = w.broadcast(*parts)
    return Row([w.broadcast_to(part, dims) if dims else part for part in parts])


def meshgrid(w, *xi, indexing=Known("xy")):
    parts = [at_least_rank(w, w.num(x), 1) for x in xi]
    order = list(range(len(parts)))
    if indexing.value == "xy" and len(parts) > 1:
        order[:2] = [1, 0]
    dims = tuple(parts[k].dims[0] for k in order)
    return Row([w.build(dims, lambda i, k=k, part=part: w.element(part, [i[order.index(k)]])) for k, part in enumerate(parts)])
