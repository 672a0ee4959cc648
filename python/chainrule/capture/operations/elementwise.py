"""Calls of elementwise functions of arrays."""

from __future__ import annotations

import numpy as np

from . import arrays, options
from .operators import binary, named
from .ufuncs import BY_OBJECT
from ..values import Masked, Num, is_given


def elementwise(w, row, args):
    wanted = len(row.samples)
    if len(args) != wanted:
        if row.names[-1] == "math.log" and len(args) == 2:
            return binary(w, "/", elementwise(w, row, args[:1]), elementwise(w, row, args[1:]))
        w.fail(f"`{row.names[0]}` takes {wanted} argument{'s' if wanted > 1 else ''}, not {len(args)}")
    numbers = [arg if isinstance(arg, Masked) else w.num(arg) for arg in args]
    made = lambda: w.map(lambda *xs: row.compute(w, *xs), *numbers)
    if not row.is_mask or not any(isinstance(x, Num) and x.rank for x in numbers):
        return made()
    key = (row.names[0], *map(named, args))
    return made() if None in key else w.mask(key, made)


def clip(w, a, a_min=None, a_max=None, out=None, *, min=None, max=None):
    """`np.clip`, with both bounds or one of them."""
    options.no_out(w, "np.clip", out)
    low, high = (first if is_given(first) else second for first, second in ((a_min, min), (a_max, max)))
    if is_given(low) and is_given(high):
        return elementwise(w, BY_OBJECT[np.clip], [a, low, high])
    for bound, ufunc in ((low, np.maximum), (high, np.minimum)):
        if is_given(bound):
            return elementwise(w, BY_OBJECT[ufunc], [a, bound])
    return arrays.array(w, a)
