"""Functions that write to arrays that are their arguments."""

from __future__ import annotations

import numpy as np

from .arguments import count_leaves
from .code import DTYPES, fill
from .errors import TypeError_
from .trees import parts_of


def run_with_effects(function, call, values, out):
    """Runs a function that writes to its arguments, which are these values."""
    effects = call.entry.constants.effects
    arrays = written_arrays(values, effects.leaves)
    code = call.entry.code("effects", lambda: effects.function)
    n = effects.n_results
    results = code.run(call.leaves, None if out is None else with_room(out, arrays))
    for array, result in zip(arrays, results[n:]):
        np.copyto(array, result)
    function._remember(call, code, (None if effects.structure is False else call.template, effects.leaves))
    if out is not None or effects.structure is False:
        return out
    return fill(call.template, code.leaves(results)[:n])


def written_arrays(values, numbers):
    """The arrays that a call writes to, of its arguments; they must not share memory with others."""
    flat = list(flatten(values))
    found = [flat[k] for k in numbers]
    for k, array in zip(numbers, found):
        if not isinstance(array, np.ndarray):
            raise TypeError_(f"the function writes to an argument that is a {type(array).__name__}", remedy="pass an array")
        if not array.flags.writeable:
            raise TypeError_("the function writes to an argument that is read-only", remedy="pass a copy")
        if any(j != k and isinstance(other, np.ndarray) and np.may_share_memory(array, other) for j, other in enumerate(flat)):
            raise TypeError_("the function writes to an argument that shares memory with another one", remedy="pass a copy")
    return found


def flatten(values):
    """The arguments that are leaves, in the order of their leaves."""
    for value in values:
        found = parts_of(value)
        if found is not None:
            yield from flatten(found[0])
        elif count_leaves(value):
            yield value


def with_room(out, arrays):
    """`out` with arrays for what is written to arguments."""
    return [*(out if isinstance(out, (tuple, list)) else [out]), *(np.empty(a.shape, DTYPES["f" if a.dtype.kind == "f" else "i"]) for a in arrays)]
