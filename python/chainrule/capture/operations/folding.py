"""Calls of library functions with arguments that are all known: made while the function is captured."""

from __future__ import annotations

import functools

import numpy as np

from .. import loops
from .operators import scalar
from ..values import Form, Known, Loop, Num, Row, describe

#: Functions of Python that only compute.
PURE = (sorted, str, repr, format, chr, ord, isinstance, issubclass, hasattr, getattr, type, complex, set, frozenset, hash, map, filter)
#: Packages whose functions only compute, but for these parts of them.
PACKAGES, EXCEPT = ("math", "numpy", "scipy"), ("numpy.random", "scipy.stats", "numpy.lib._npyio_impl")
MISSING = object()


def python_value(value):
    """The Python object that a known value stands for."""
    if isinstance(value, Known):
        return value.value
    if isinstance(value, Row) and not isinstance(value.is_list, Form):
        items = [python_value(item) for item in value.items]
        return MISSING if any(item is MISSING for item in items) else items if value.is_list else tuple(items)
    return MISSING


def is_pure(function):
    if isinstance(function, np.ufunc) or any(function is one for one in PURE):
        return True
    module = getattr(function, "__module__", None) or ""
    name = module.split(".")[0].removeprefix("_")
    return callable(function) and name in PACKAGES and not module.startswith(EXCEPT)


def folded(w, function, args, kwargs):
    """What a call gives, if all is known; else `None`."""
    given = [python_value(arg) for arg in args]
    named = {name: python_value(value) for name, value in kwargs.items()}
    if not is_pure(function) or any(value is MISSING for value in [*given, *named.values()]):
        return None
    if any(isinstance(value, np.ndarray) for value in [*given, *named.values()]):
        return None
    try:
        made = function(*given, **named)
    except Exception as error:  # What Python says of these objects.
        return w.fail(f"{type(error).__name__}: {error}")
    return list(made) if isinstance(made, (map, filter)) else made


#: Classes of the numbers that a value without axes may be.
CLASSES = {"f": (float, np.float64), "i": (int, np.int64), "b": (bool, np.bool_)}


def is_instance(w, value, kinds):
    """`isinstance`, where all objects that a value may stand for agree."""
    wanted = python_value(kinds)
    if wanted is MISSING:
        w.fail("`isinstance` with classes that are not known", "write the classes")
    if isinstance(value, Num) and value.is_list:
        possible = (list,)
    elif isinstance(value, Num):
        possible = (np.ndarray,) if value.rank else (*CLASSES[value.kind], np.ndarray)
    elif isinstance(value, Row):
        possible = (value.is_list.cls,) if isinstance(value.is_list, Form) else (list,) if value.is_list else (tuple,)
    else:
        return w.fail(f"`isinstance` of {describe(value)} cannot be compiled")
    found = {issubclass(one, wanted) for one in possible}
    if len(found) > 1:
        w.fail(f"`isinstance` of {describe(value)} is not known", "ask for `np.ndim(x) == 0`, or for all of `(float, int, np.generic, np.ndarray)`")
    return Known(found.pop())


def mapped(w, call, iterables):
    """`map` of a captured function."""
    inner = loops.loop_of(w, iterables[0] if len(iterables) == 1 else loops.zip_(w, *iterables))
    given = lambda item: [item] if len(iterables) == 1 else item.items
    if isinstance(inner, list):
        return Row([call(given(item)) for item in inner])
    return Loop(inner.count, lambda i: call(given(inner.element(i))), inner.storages)


def reduce(w, call, iterable, initial=None):
    """`functools.reduce`; `call` is a captured function of two values."""
    inner = loops.loop_of(w, iterable)
    if isinstance(inner, list):
        if not inner and initial is None:
            w.fail("reduce() of empty iterable with no initial value")
        return functools.reduce(call, inner if initial is None else [initial, *inner])
    start = w.num(inner.element(w.constant(0)) if initial is None else initial)
    first = 1 if initial is None else 0

    def step(state, index):
        after = w.num(call(state, inner.element(scalar(w, "+", index, w.constant(first)) if first else index)))
        if after.kind != start.kind and start.kind != "f" or after.rank != start.rank:
            w.fail(f"a reduction starts with {describe(start)} and goes on with {describe(after)}", "start with a float, or an array of that shape")
        return w.cast(after, start.kind)

    return w.reduce(inner.count - first, start, step)
