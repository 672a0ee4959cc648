"""Reductions and products of arrays."""

from __future__ import annotations

import math

from ...errors import ShapeError
from .operators import binary, call, finite, is_nan, scalar
from ..values import Dim, Known, Masked, Num, describe, is_given


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
            if k % array.rank in found:
                w.fail(f"axis {k} is named twice")
            found.add(k % array.rank)
    return sorted(found)


def whole(w, array, neutral):
    """An array to reduce: elements that are not under its mask are neutral."""
    if not isinstance(array, Masked):
        return w.num(array)
    values, mask = array.array, array.mask
    if neutral is None:
        w.fail("the largest or smallest element under a mask is taken", "use `np.where(mask, a, -np.inf).max()`")
    other = w.cast(w.constant(neutral), values.kind)
    return w.build(values.dims, lambda i: w.choose(w.element(mask, i[:mask.rank]), lambda: w.element(values, i), lambda: other))


def axis_under(w, array, axis, keepdims=None):
    """The axis of the array itself where elements under a mask, which are one axis, are reduced by `axis`."""
    if not isinstance(array, Masked):
        return axis
    if keepdims is not None and getattr(keepdims, "value", True):
        w.fail("elements under a mask are reduced with `keepdims`", "index the result by `None`")
    if not is_given(axis):
        return None
    known = getattr(axis, "value", None)
    is_vector = array.mask.rank == array.array.rank
    if known != 0 and not (is_vector and known == -1):
        w.fail("elements under a mask are reduced along another axis than the first", "use `np.where(mask, a, b)`")
    return None if is_vector else Known(0)


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


def positive(w, value):
    """`+value`: an array of its own."""
    if not isinstance(value, Num) or not value.rank:
        return value
    return Num(value.term, value.kind, value.dims)


def sum_(w, array, axis=None, keepdims=None):
    axis, array = axis_under(w, array, axis, keepdims), whole(w, array, 0)
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
    axis, array = axis_under(w, array, axis, keepdims), whole(w, array, 1)
    if array.kind == "b":
        array = w.cast(array, "i")
    if array.rank == 0:
        return array
    one = 1.0 if array.kind == "f" else 1
    fold = lambda dims, element: nested(w, dims, w.constant(one), lambda s, x: scalar(w, "*", s, x), element)
    return reduced(w, array, axis, keepdims, fold)


def has_nan(w, dims, element):
    """Whether an element is NaN: counted in a loop of its own, which runs in lanes as the one that it stands beside."""
    one, zero = w.constant(1.0), w.constant(0.0)
    return scalar(w, ">", w.total(dims, lambda i: w.choose(is_nan(w, element(i)), lambda: one, lambda: zero)), zero)


def extreme(name, *, nan_wins=False):
    """The largest or smallest element. A NaN wins as in NumPy, or only if it comes first, as Python's comparisons decide."""
    def reduction(w, array, axis=None, keepdims=None):
        array = whole(w, array, None)
        if array.rank == 0:
            return array
        if array.kind == "b":
            w.fail(f"`{name}` of truth values", "use `np.any` or `np.all`")

        if is_nothing(w, array, axis):
            w.fail(f"`{name}` of an array that has no elements", error=ShapeError)

        def fold(dims, element):
            first = element([w.constant(0)] * len(dims))
            step = lambda s, x: Num(w.program.apply(name, [s.term, x.term]), array.kind)
            found = nested(w, dims, first, step, element)
            if not nan_wins or array.kind != "f":
                return found
            return w.choose(has_nan(w, dims, element), lambda: w.constant(math.nan), lambda: found)

        return reduced(w, array, axis, keepdims, fold)
    return reduction


def any_all(sign):
    def reduction(w, array, axis=None, keepdims=None):
        axis, array = axis_under(w, array, axis, keepdims), w.cast(whole(w, array, sign == "&&"), "b")
        if array.rank == 0:
            return array
        step = lambda s, x: Num(w.program.infix(sign, s.term, x.term), "b")
        fold = lambda dims, element: nested(w, dims, w.constant(sign == "&&"), step, element)
        return reduced(w, array, axis, keepdims, fold)
    return reduction


def count(w, array, axis):
    """The number of elements that are reduced, as a float."""
    total, counted = w.constant(1.0), 0
    if isinstance(array, Masked):
        axis, counted, total = axis_under(w, array, axis), array.mask.rank, w.cast(sum_(w, array.mask), "f")
        array = array.array
    for k in axes_of(w, array, axis):
        if k < counted:
            continue
        total = scalar(w, "*", total, w.cast(w.size(array.dims[k]), "f"))
    return total


def is_nothing(w, array, axis):
    """Whether no elements are reduced, whatever the arguments: 0 / 0 would be simplified as a quotient of real numbers."""
    return any(array.dims[k].known == 0 for k in axes_of(w, array, axis))


def mean(w, array, axis=None, keepdims=None):
    if isinstance(array, Masked):
        return binary(w, "/", sum_(w, array, axis, keepdims), count(w, array, axis))
    array = w.cast(w.num(array), "f")
    if not array.rank:
        return array
    if is_nothing(w, array, axis):
        return reduced(w, array, axis, keepdims, lambda dims, element: w.constant(math.nan))
    return binary(w, "/", sum_(w, array, axis, keepdims), count(w, array, axis))


def var(w, array, axis=None, ddof=None, keepdims=None):
    array = array if isinstance(array, Masked) else w.cast(w.num(array), "f")
    if not isinstance(array, Masked) and is_nothing(w, array, axis):
        return mean(w, array, axis, keepdims)
    centred = binary(w, "-", array, mean(w, array, axis, None if isinstance(array, Masked) else Known(True)))
    squares = sum_(w, binary(w, "*", centred, centred), axis, keepdims)
    n = count(w, array, axis)
    return binary(w, "/", squares, n if ddof is None else binary(w, "-", n, ddof))


def std(w, array, axis=None, ddof=None, keepdims=None):
    return w.map(lambda x: call(w, "sqrt", x), var(w, array, axis, ddof, keepdims))


def ptp(w, a, axis=None, keepdims=None):
    largest, smallest = (extreme(name, nan_wins=True)(w, a, axis, keepdims) for name in ("max", "min"))
    return binary(w, "-", largest, smallest)


def average(w, a, axis=None, weights=None):
    if not is_given(weights):
        return mean(w, a, axis)
    a, weights = w.num(a), w.num(weights)
    if weights.rank == 1 and a.rank > 1 and axis is not None:
        from .shaping import axis_of
        k = axis_of(w, a, axis)
        vector = weights
        weights = w.build(a.dims, lambda i: w.element(vector, [i[k]]))
    return binary(w, "/", sum_(w, binary(w, "*", a, weights), axis), sum_(w, weights, axis))


def instead_of_nan(w, a, value):
    """The array with a number in place of NaN."""
    return w.map(lambda x: w.choose(is_nan(w, x), lambda: w.constant(value), lambda: x), a)


def without_nan(reduction, neutral):
    """A reduction of the elements that are no NaN: the others are neutral."""
    def reduce(w, a, axis=None, keepdims=None):
        a = w.num(a)
        return reduction(w, instead_of_nan(w, a, neutral) if a.kind == "f" else a, axis, keepdims)
    return reduce


def present(w, a, axis, keepdims):
    """The number of elements that are no NaN."""
    return sum_(w, w.map(lambda x: w.choose(is_nan(w, x), lambda: w.constant(0.0), lambda: w.constant(1.0)), a), axis, keepdims)


def nan_extreme(name):
    """`np.nanmax`, `np.nanmin`: NaN where there are no other elements."""
    lowest = -math.inf if name == "max" else math.inf

    def reduction(w, a, axis=None, keepdims=None):
        a = w.num(a)
        found = without_nan(extreme(name), lowest)(w, a, axis, keepdims)
        if a.kind != "f":
            return found
        zero = w.constant(0.0)
        return w.map(lambda x, n: w.choose(scalar(w, "==", n, zero), lambda: w.constant(math.nan), lambda: x), found, present(w, a, axis, keepdims))

    return reduction


def nanmean(w, a, axis=None, keepdims=None):
    a = w.cast(w.num(a), "f")
    return binary(w, "/", without_nan(sum_, 0.0)(w, a, axis, keepdims), present(w, a, axis, keepdims))


def nanvar(w, a, axis=None, ddof=None, keepdims=None):
    a = w.cast(w.num(a), "f")
    centred = instead_of_nan(w, binary(w, "-", a, nanmean(w, a, axis, Known(True))), 0.0)
    n = present(w, a, axis, keepdims)
    return binary(w, "/", sum_(w, binary(w, "*", centred, centred), axis, keepdims), n if ddof is None else binary(w, "-", n, ddof))


def nanstd(w, a, axis=None, ddof=None, keepdims=None):
    return w.map(lambda x: call(w, "sqrt", x), nanvar(w, a, axis, ddof, keepdims))


def count_nonzero(w, a, axis=None, keepdims=None):
    return sum_(w, w.cast(whole(w, a, 0), "b"), axis_under(w, a, axis, keepdims), keepdims)


def covariance(w, m, y=None, rowvar=Known(True), bias=Known(False), ddof=None):
    """`np.cov` of the rows of a matrix, and of those of another one."""
    from .products import matmul
    from .shaping import at_least_rank, joined, transpose
    is_alone = not is_given(y)
    parts = [w.cast(w.num(part), "f") for part in ([m] if is_alone else [m, y])]
    is_vector = is_alone and parts[0].rank == 1
    rows = [at_least_rank(w, transpose(w, part) if part.rank == 2 and not rowvar.value else part, 2) for part in parts]
    m = rows[0] if is_alone else joined(w, rows, Known(0))
    centred = binary(w, "-", m, mean(w, m, Known(1), Known(True)))
    less = (0 if bias.value else 1) if ddof is None or ddof.value is None else ddof.value
    n = scalar(w, "-", w.cast(w.size(m.dims[1]), "f"), w.constant(float(less)))
    made = binary(w, "/", matmul(w, centred, transpose(w, centred)), n)
    return w.element(made, [w.constant(0), w.constant(0)]) if is_vector else made


def corrcoef(w, x, y=None, rowvar=Known(True)):
    c = covariance(w, x, y, rowvar)
    if not c.rank:
        return w.constant(1.0)
    deviation = lambda i: call(w, "sqrt", w.element(c, [i, i]))
    return w.build(c.dims, lambda i: scalar(w, "/", scalar(w, "/", w.element(c, i), deviation(i[0])), deviation(i[1])))


def no_out(w, name, out):
    if is_given(out):
        w.fail(f"`{name}` is called with `out=`", "assign its result to elements: `y[...] = ...`")


def arg_extreme(name, sign):
    """`np.argmax`, `np.argmin`: the first place of the largest element, or of a NaN."""
    def reduction(w, a, axis=None, out=None, *, keepdims=None):
        from .shaping import axis_of, ravel
        no_out(w, name, out)
        a = w.num(a)
        rank, keeps = a.rank, is_given(keepdims) and bool(keepdims.value)
        if not is_given(axis):
            a, axis = ravel(w, a), Known(0)
        k = axis_of(w, a, axis)
        if a.dims[k].known == 0:
            w.fail(f"`{name}` of an array that has no elements", error=ShapeError)

        start = w.checked(w.constant(0), a.dims[k])

        def best(outer):
            at = lambda i: w.element(a, [*outer[:k], i, *outer[k:]])
            if a.kind != "f":
                better = lambda s, i: w.choose(scalar(w, sign, at(i), at(s)), lambda: i, lambda: s)
                return w.reduce(a.dims[k], start, better)
            row = w.build((a.dims[k],), lambda i: at(i[0]))
            some = has_nan(w, (a.dims[k],), lambda i: at(i[0]))
            next_unless_nan = lambda s, i: w.choose(is_nan(w, at(s)), lambda: s, lambda: i)
            first_nan = lambda: w.reduce(a.dims[k], start, next_unless_nan)
            return w.choose(some, first_nan, lambda: Num(w.program.apply(name, [row.term]), "i"))

        dims = (*a.dims[:k], *a.dims[k + 1:])
        if keeps:
            ones = [Dim(1)] * (rank - a.rank + 1)
            return w.build((*dims[:k], *ones, *dims[k:]), lambda i: best([*i[:k], *i[k + len(ones):]]))
        return w.build(dims, best) if dims else best([])
    return reduction


def logsumexp(w, a, axis=None, b=None, keepdims=None):
    """The logarithm of the sum of exponentials, each times its factor where `b` is given."""
    array = w.cast(w.num(a), "f")
    has_factors = is_given(b)
    if has_factors:
        factors = w.cast(w.num(b), "f")
        dims = w.broadcast(array, factors)
        array, factors = w.broadcast_to(array, dims), w.broadcast_to(factors, dims)
    if array.rank == 1 and not has_factors:
        result = Num(w.program.apply("logSumExp", [array.term]), "f")
        return w.build((Dim(1),), lambda _: result) if isinstance(keepdims, Known) and keepdims.value else result
    top = Num(w.program.apply("constant", [array.term]), "f", array.dims)
    top = extreme("max")(w, top, axis, Known(True))
    top = w.map(lambda x: w.choose(finite(w, x), lambda: x, lambda: w.constant(0.0)), top)
    terms = w.map(lambda x: call(w, "exp", x), binary(w, "-", array, top))
    total = sum_(w, binary(w, "*", factors, terms) if has_factors else terms, axis, Known(True))
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


def softmax(w, x, axis=None):
    x = w.cast(w.num(x), "f")
    e = w.map(lambda v: call(w, "exp", v), binary(w, "-", x, extreme("max")(w, x, axis, Known(True))))
    return binary(w, "/", e, sum_(w, e, axis, Known(True)))


def log_softmax(w, x, axis=None):
    return binary(w, "-", w.num(x), logsumexp(w, x, axis, keepdims=Known(True)))


def running(compute, first):
    """Running results along an axis: `compute(w, before, next)`, which starts from `first(w, array)` of a vector."""
    def scan(w, a, axis=None):
        from .shaping import axis_of, moveaxis, ravel
        array = w.num(a)
        if not is_given(axis):
            array = ravel(w, array)
        elif array.rank > 1:
            k = axis_of(w, array, axis)
            moved = moveaxis(w, array, Known(k), Known(-1))
            made = w.build(moved.dims[:-1], lambda i: scan(w, w.element(moved, i)))
            made = moveaxis(w, made, Known(-1), Known(k))
            return Num(made.term, made.kind, made.dims)
        kind = w.common(array)
        array = w.cast(array, kind)
        if array.dims[0].known == 0:
            return w.build(array.dims, lambda _: w.cast(w.constant(0), kind))
        start = w.cast(first(w, array), kind)
        size = w.size(array.dims[0]).term
        state, index = w.program.open(["s", "i"])
        after = compute(w, Num(state, kind), w.element(array, [Num(index, "i")]))
        step = w.program.close(w.program.tuple([after.term, after.term]))
        both = w.program.apply("scan", [step, start.term, size])
        return Num(w.program.component(both, 1), kind, array.dims)
    return scan


def cumulative(sign):
    """Running sums and products."""
    return running(lambda w, s, x: scalar(w, sign, s, x), lambda w, _: w.constant({"+": 0, "*": 1}[sign]))


def cumulative_extreme(compute):
    """`np.maximum.accumulate` and `np.minimum.accumulate`."""
    scan = running(compute, lambda w, a: w.element(a, [w.checked(w.constant(0), a.dims[0])]))

    def accumulate(w, array, axis=None):
        array = w.num(array)
        return w.map(lambda x: w.cast(x, array.kind), scan(w, array, axis))
    return accumulate


def cumulative_along(sign):
    """`np.cumulative_sum`, `np.cumulative_prod`: along an axis that is named, also from the neutral element on."""
    def scan(w, x, axis=None, include_initial=Known(False)):
        from .shaping import axis_of, joined
        a = w.num(x)
        if a.rank != 1 and not is_given(axis):
            w.fail("For arrays which have more than one dimension ``axis`` argument is required.")
        k = axis_of(w, a, axis, 0)
        made = cumulative(sign)(w, a, Known(k))
        if not include_initial.value:
            return made
        neutral = w.cast(w.constant({"+": 0, "*": 1}[sign]), made.kind)
        start = w.build((*a.dims[:k], Dim(1), *a.dims[k + 1:]), lambda _: neutral)
        return joined(w, [start, made], Known(k))
    return scan
