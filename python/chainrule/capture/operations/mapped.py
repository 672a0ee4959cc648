"""Functions of NumPy that call a Python function for parts of arrays. `call` captures it in place, for values."""

from __future__ import annotations

import numpy as np

from . import arrays
from .shaping import axis_of, moveaxis, permuted
from ..values import Known, Num, Partial, Row, describe


def apply_along_axis(w, func1d, axis, arr, *args, call, **kwargs):
    """A function of vectors along an axis, whose results have their axes in place of that one."""
    a = w.num(arr)
    if not a.rank:
        w.fail("Cannot apply_along_axis to an array without axes")
    k = axis_of(w, a, axis)
    rows = moveaxis(w, a, Known(k), Known(-1))
    of_one = lambda v: w.num(call(func1d, [Num(v.term, v.kind, v.dims), *args], kwargs))
    if a.rank == 1:
        return of_one(rows)
    made = w.build(rows.dims[:-1], lambda i: of_one(w.element(rows, i)))
    n_own = made.rank - (a.rank - 1)
    order = [*range(k), *range(a.rank - 1, a.rank - 1 + n_own), *range(k, a.rank - 1)]
    made = permuted(w, made, order)
    return Num(made.term, made.kind, made.dims)


def piecewise(w, x, condlist, funclist, *args, call, **kwargs):
    """A function, or a number, for each condition; of several that hold, the last one. Functions get numbers, not arrays."""
    x = w.num(x)
    conditions = condlist.items if isinstance(condlist, Row) else [condlist]
    conditions = [w.cast(w.num(one), "b") for one in conditions]
    functions = funclist.items if isinstance(funclist, Row) else [Known(one) for one in getattr(funclist, "value", ())]
    if len(functions) not in (len(conditions), len(conditions) + 1):
        w.fail(f"with {len(conditions)} condition(s), either {len(conditions)} or {len(conditions) + 1} functions are expected")
    otherwise = functions[len(conditions)] if len(functions) > len(conditions) else Known(0)

    def of(function, v):
        is_number = isinstance(function, Num) or isinstance(function, Known) and not callable(function.value)
        return w.cast(w.scalar(function if is_number else call(function, [v, *args], kwargs)), x.kind)

    def element(v, *holds):
        found = lambda: of(otherwise, v)
        for one, function in zip(holds, functions):
            found = lambda one=one, function=function, before=found: w.choose(one, lambda: of(function, v), before)
        return found()

    return w.map(element, x, *conditions)


def vectorize(w, pyfunc, *, call):
    """`np.vectorize` without options: the function is called for each element."""
    return Partial(Known(of_elements), [pyfunc], {})


def of_elements(w, pyfunc, *args, call, **kwargs):
    if kwargs:
        w.fail("a vectorised function is called with keywords", "pass its arguments by position")
    return w.map(lambda *numbers: w.scalar(call(pyfunc, list(numbers), {}), "the result of a vectorised function"), *[w.num(arg) for arg in args])


def fromfunction(w, function, shape, *, call, dtype=Known(float), like=None, **kwargs):
    """A function of the coordinates of all elements, which are arrays."""
    coordinates = arrays.indices(w, shape, dtype)
    count = coordinates.dims[0].known
    return call(function, [w.element(coordinates, [w.constant(k)]) for k in range(count)], kwargs)


def apply_over_axes(w, func, a, axes, *, call):
    """A function of an array and an axis for each axis; an axis that it drops stays with the extent 1."""
    found = w.num(a)
    rank = found.rank
    given = axes.items if isinstance(axes, Row) else [axes]
    for axis in given:
        k = axis_of(w, found, axis)
        made = w.num(call(func, [found, Known(k)], {}))
        if made.rank == rank - 1:
            from .shaping import expand_dims
            made = expand_dims(w, made, Known(k))
        if made.rank != rank:
            w.fail(f"a function over axes gives {describe(made)}", "it keeps or drops one axis")
        found = made
    return found


FUNCTIONS = {
    np.apply_along_axis: apply_along_axis, np.piecewise: piecewise, np.vectorize: vectorize, of_elements: of_elements,
    np.fromfunction: fromfunction, np.apply_over_axes: apply_over_axes,
}
#: Names of what captured code may call.
NAMES = ("np.apply_along_axis", "np.piecewise", "np.vectorize", "np.fromfunction", "np.apply_over_axes")
