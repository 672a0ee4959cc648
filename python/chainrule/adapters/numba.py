"""Functions inside of Numba's compiled code."""

from __future__ import annotations

import numba

from ..evaluator import Evaluator
from ..function import function as as_function


def to_numba(f, *args, **kwargs):
    """A compiled function `call(x, y)` for `numba.njit`: evaluates a function or derivative at the doubles `x` and writes the doubles `y`.

    `x` has the numbers of all float arguments, one argument after the other, `y` those of all results; both are contiguous arrays of float64. The
    extents and the integers are those of the example arguments. A failure is a `RuntimeError`, wrong lengths are a `ValueError`.
    """
    f = f if isinstance(f, Evaluator) else as_function(f)
    bound = f.bound(*args, **kwargs)
    address, context = bound.ctypes, bound.context
    n_in = sum(a.size for a in bound.inputs if a.dtype.kind == "f")
    n_out = sum(a.size for a in bound.outputs if a.dtype.kind == "f")

    @numba.njit
    def call(x, y):
        if x.size != n_in or y.size != n_out:
            raise ValueError("x or y has another length than the arguments or the results")
        if address(context, x.ctypes, y.ctypes) != 0:
            raise RuntimeError("the function failed")

    # The code refers to the address: its arrays live as long as the function.
    call.bound = bound
    call.n_in, call.n_out = n_in, n_out
    return call


__all__ = ["to_numba"]
