"""Functions with arrays of their own: calls without checks, and addresses for C, SciPy and Numba."""

from __future__ import annotations

import ctypes

import numpy as np

from . import _core
from .code import DTYPES, fill
from .errors import TypeError_


class Bound:
    """A function or derivative with arrays of its own, at the extents of one call.

    ``inputs`` are the arrays of the arguments, one after the other, to be written to; ``outputs`` those of the results. A call evaluates and
    gives the results, the same arrays each time.

    ``address`` is that of a C function ``int f(void *context, const double *x, double *y)``: ``x`` has the doubles of all arguments,
    ``y`` room for those of all results; it gives 0, or 1 where the program fails. ``context`` is valid as long as this object lives.
    Integers stay as they are. Threads may call it at once, and take turns.
    """

    def __init__(self, call):
        self.inputs = tuple([np.array(a, order="C") if a.ndim else np.array(a).reshape(1) for a in call.leaves])
        workspace = call.code.compiled.workspace(list(self.inputs))
        outputs = call.code.outputs
        if any(kind == "b" for _, kind, _ in outputs):
            raise TypeError_("a result is a truth value, which has no array of its own", remedy="call the function as it is")
        self.outputs = tuple([np.zeros(tuple(workspace.shape(k)) or 1, DTYPES[kind]) for k, (_, kind, _) in enumerate(outputs)])
        results = [array if rank else array.reshape(()) for array, (_, _, rank) in zip(self.outputs, outputs)]
        self._core = _core.Bound(call.code.compiled, list(self.inputs), list(self.outputs), fill(call.template, results))
        #: Evaluates at the arrays; the fastest way to call from Python.
        self.call = self._core

    def __call__(self):
        return self._core()

    @property
    def address(self):
        return self._core.address

    @property
    def context(self):
        return self._core.context

    @property
    def ctypes(self):
        """The C function with types: ``f(context, x, y)``; works inside of ``numba.njit``."""
        double = ctypes.POINTER(ctypes.c_double)
        return ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, double, double)(self.address)

    def low_level_callable(self):
        """The function of numbers as ``scipy.LowLevelCallable``, for ``scipy.integrate.quad`` and ``nquad``."""
        from scipy import LowLevelCallable
        signature = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_int, ctypes.POINTER(ctypes.c_double), ctypes.c_void_p)
        made = LowLevelCallable(signature(self._core.number_address), ctypes.c_void_p(self.context))
        _KEPT[id(made)] = (made, self)
        return made


#: Callables of SciPy are tuples without attributes: what they need lives as long as the process.
_KEPT = {}
