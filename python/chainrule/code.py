"""Compiled code and what it takes and gives: results as arrays, `out`, results put together."""

from __future__ import annotations

import warnings

import numpy as np

from .arguments import InterpreterWarning, count_leaves, levels_to_caller
from .errors import ShapeError, TypeError_
from .trees import Filled, parts_of, put_together, template

DTYPES = {"f": np.float64, "i": np.int64, "b": np.int64}


class Code:
    """Compiled code with what it takes and gives."""

    def __init__(self, compiled, function=None):
        self.function = function  # the program, unless only the code was loaded
        self.compiled = compiled
        self.inputs = compiled.inputs
        self.outputs = compiled.outputs
        if compiled.backend == "interpreter" and compiled.refusal is not None:
            warnings.warn(f"the interpreter runs this, which takes longer: {compiled.refusal}", InterpreterWarning, stacklevel=levels_to_caller())

    def run(self, inputs, out=None):
        """The results, one array a leaf; a number is an array of one element."""
        if len(inputs) != len(self.inputs):
            raise TypeError_(f"{len(inputs)} numbers and arrays are given, {len(self.inputs)} are expected",
                             remedy="directions are shaped like the arguments, weights like the result")
        inputs = [array if array.ndim else array.reshape(1) for array in inputs]
        workspace = self.compiled.workspace(inputs)
        shapes = [tuple(workspace.shape(k)) for k in range(len(self.outputs))]
        if out is None:
            results = [np.empty(shape or 1, DTYPES[kind]) for shape, (_, kind, _) in zip(shapes, self.outputs)]
        else:
            results = check_out(out, shapes, [kind for _, kind, _ in self.outputs], inputs)
        self.compiled.run(workspace, inputs, results)
        return results

    def leaves(self, results):
        """The results as NumPy gives them."""
        return [self._leaf(array, kind, rank) for array, (_, kind, rank) in zip(results, self.outputs)]

    @staticmethod
    def _leaf(array, kind, rank):
        array = array.astype(np.bool_) if kind == "b" else array
        return array if rank else array[0]


def check_out(out, shapes, kinds, inputs):
    """The arrays that results are written to."""
    out = list(out) if isinstance(out, (tuple, list)) else [out]
    if len(out) != len(shapes):
        raise ShapeError(f"`out` has {len(out)} arrays, the function has {len(shapes)} results")
    for array, shape, kind in zip(out, shapes, kinds):
        wanted = np.dtype(DTYPES[kind])
        if not isinstance(array, np.ndarray) or array.dtype != wanted or not array.flags.c_contiguous or kind == "b":
            raise TypeError_("`out` takes arrays in C order", remedy=f"make one by `np.empty({shape}, np.{wanted})`")
        if array.shape != shape:
            raise ShapeError(f"`out` has the shape {array.shape}, the result has {shape}")
        if not array.flags.writeable:
            raise TypeError_("`out` is read-only")
    for k, array in enumerate(out):
        if any(np.may_share_memory(array, other) for other in [*inputs, *out[:k]]):
            raise TypeError_("`out` shares memory with an argument or another result", remedy="pass an array of its own")
    # A dtype with an explicit byte order exports a buffer whose format names that order.
    out = [array.view(np.dtype(DTYPES[kind])) for array, kind in zip(out, kinds)]
    return [array.reshape(1) if not array.ndim else array for array in out]


def assemble(structure, leaves):
    """A result from its leaves; `None` for what has no derivative."""
    if structure is False:
        return None
    if structure is None:
        return next(leaves)
    parts, form = structure
    return template(form, [assemble(part, leaves) for part in parts])


def fill(made, leaves):
    """A result whose template has numbers of leaves."""
    if isinstance(made, int):
        return leaves[made]
    if isinstance(made, tuple):
        return tuple([fill(part, leaves) for part in made])
    if isinstance(made, Filled):
        return put_together(made.form, [fill(part, leaves) for part in made.parts])
    return None if made is None else [fill(part, leaves) for part in made]


def smooth(structure, floats):
    """A structure with `False` for leaves that are not floats."""
    if structure is None:
        return None if next(floats) else False
    return tuple([smooth(part, floats) for part in structure[0]]), structure[1]


def structure_of(value):
    """How an argument is put together, as results are."""
    if count_leaves(value) == 0:
        return False
    found = parts_of(value)
    return None if found is None else (tuple([structure_of(part) for part in found[0]]), found[1])


def count_parts(structure):
    """How many leaves have a derivative."""
    if structure is None or structure is False:
        return int(structure is None)
    return sum(map(count_parts, structure[0]))
