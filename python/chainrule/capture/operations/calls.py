"""Calls of functions that captured code may call: their arguments, their names, the list of all of them."""

from __future__ import annotations

import functools
import inspect
import itertools
import math
import re
import sys

import numpy as np

from ...errors import Error
from . import mapped, norms
from .elementwise import clip, elementwise
from .folding import MISSING
from .reductions import cumulative_extreme
from .table import ATTRIBUTES, LATER, METHODS, TABLE
from .ufuncs import BY_OBJECT, ROWS
from ..values import Known, Row


def of_ufunc(w, ufunc, name, args, kwargs):
    """`np.add.outer`, `np.add.reduce`: what every elementwise function of two numbers has."""
    row = BY_OBJECT.get(ufunc)
    if row is None or len(row.samples) != 2:
        return None
    compute = lambda x, y: row.compute(w, x, y)
    if name == "outer" and len(args) == 2 and not kwargs:
        a, b = (w.num(arg) for arg in args)
        return w.build((*a.dims, *b.dims), lambda i: compute(w.element(a, i[:a.rank]), w.element(b, i[a.rank:])))
    reductions_of = {np.add: np.sum, np.multiply: np.prod, np.maximum: np.max, np.minimum: np.min, np.logical_and: np.all, np.logical_or: np.any}
    extremes = dict.fromkeys((np.maximum, np.minimum), cumulative_extreme(row.compute))
    scans = {np.add: TABLE[np.cumsum], np.multiply: TABLE[np.cumprod]} | extremes
    if name == "reduce" and ufunc in reductions_of:
        kwargs.setdefault("axis", Known(0))
        return apply(w, TABLE[reductions_of[ufunc]], f"np.{ufunc.__name__}.reduce", args, kwargs)
    if name == "accumulate" and ufunc in scans:
        kwargs.setdefault("axis", Known(0))
        return apply(w, scans[ufunc], f"np.{ufunc.__name__}.accumulate", args, kwargs)
    return None


def known_call(w, function, args, kwargs):
    """Calls a supported function of known objects: `None` where it is not supported."""
    row = _find(BY_OBJECT, function)
    if function is np.clip:
        return apply(w, clip, "np.clip", args, kwargs)
    if function is math.hypot and len(args) > 2:
        return norms.norm(w, Row(args))
    if row is not None:
        if kwargs:
            w.fail(f"`{row.names[0]}` is called with `{next(iter(kwargs))}=`", "leave it out")
        return elementwise(w, row, args)
    if isinstance(getattr(function, "__self__", None), np.ufunc):
        return of_ufunc(w, function.__self__, function.__name__, args, kwargs)
    handler = _find(TABLE, function) or _later(function)
    if handler is None:
        return None
    return apply(w, handler, name_of(function), args, kwargs, function)


@functools.cache
def positions(function):
    """The names of the parameters of a function of NumPy or SciPy in order; none where Python does not know them."""
    try:
        parameters = inspect.signature(function).parameters
        return tuple(itertools.takewhile(lambda name: parameters[name].kind is not inspect.Parameter.VAR_POSITIONAL, parameters))
    except (TypeError, ValueError):
        return ()


def check_positions(w, handler, name, n_args, function):
    """Optional arguments that are given by position have to be those of the function itself: `np.sum(x, 0, float)` names a dtype."""
    names = positions(function)
    own = list(inspect.signature(handler).parameters.values())[1:]
    for k, (parameter, wanted) in enumerate(zip(own[:n_args], names)):
        if parameter.kind is parameter.POSITIONAL_OR_KEYWORD and parameter.default is not parameter.empty and parameter.name != wanted and k:
            w.fail(f"`{name}` is called with `{wanted}`, its argument number {k + 1}", "leave it out, and name the arguments behind it")


def apply(w, handler, name, args, kwargs, function=None):
    """Calls a handler with the arguments of `function`, or of a method of arrays that NumPy has as this function, too."""
    if function is not None and len(args) > 1:
        check_positions(w, handler, name, len(args), function)
    try:
        inspect.signature(handler).bind(w, *args, **kwargs)
    except TypeError as error:
        w.fail(f"`{name}`: {error}", "leave out what is not supported here")
    try:
        return handler(w, *args, **kwargs)
    except Error:
        raise
    except (TypeError, ValueError, LookupError, ArithmeticError, AttributeError) as error:  # What Python says of known arguments.
        return w.fail(f"`{name}`: {error}", "pass what NumPy or Python takes")


def _find(table, function):
    try:
        return table.get(function)
    except TypeError:  # Not hashable.
        return None


def _later(function):
    """The handler of a function of a module, or of a method of an object of it, that is not imported here."""
    owner = getattr(function, "__self__", None)
    for place, handlers in LATER.items():
        handler = handlers.get(getattr(function, "__name__", None))
        module, _, name = place.partition(":")
        if handler is not None and (owner is getattr(sys.modules.get(module), name, MISSING) if name
                                    else function is getattr(sys.modules.get(module), function.__name__, None)):
            return handler
    return None


def name_of(function):
    module = getattr(function, "__module__", None) or ""
    name = getattr(function, "__name__", repr(function))
    module = ".".join(part for part in module.split(".") if not part.startswith("_"))  # Where it is defined, in SciPy.
    short = "" if module == "builtins" else re.sub(r"^numpy\b", "np", module)
    return f"{short}.{name}" if short else name


def supported():
    """Names of everything that captured code may call, sorted."""
    names = {name_of(function) for function in TABLE} | {f".{name}" for name in METHODS | ATTRIBUTES}
    names |= {f"{module.replace(':', '.')}.{name}" for module, handlers in LATER.items() for name in handlers}
    names |= set(mapped.NAMES)
    for row in ROWS:
        names |= {name.replace("special.", "scipy.special.") for name in row.names}
    return sorted(names)
