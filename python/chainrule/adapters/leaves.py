"""Functions on leaves: the numbers and arrays of arguments and results in order, without their structure.

JAX and PyTorch call these. A derivative is a function on leaves again: directions follow the arguments, weights of the results likewise, so derivatives
of every order exist without another capture.
"""

from __future__ import annotations

import hashlib
import math
import threading

import numpy as np

from .. import sizes
from ..arguments import is_object
from ..code import DTYPES
from ..errors import Error, Limitation, TypeError_
from ..fit import Fit
from ..trees import parts_of, put_together


class Program:
    """A function of the library on leaves, with its code and derivatives, made on first use."""

    def __init__(self, core, transposed=None):
        self.core = core
        self.inputs, self.outputs = core.inputs, core.outputs
        self.ranks = [rank for _, _, rank in self.inputs]
        self.smooth = [k for k, (_, kind, _) in enumerate(self.outputs) if kind == "f"]
        #: For a derivative: the function, the inputs that it is by, and whether it takes weights.
        self.transposed = transposed
        self._lock = threading.RLock()
        self._made = {}

    def _once(self, key, make):
        with self._lock:
            if key not in self._made:
                self._made[key] = make()
            return self._made[key]

    @property
    def compiled(self):
        return self._once("compiled", self.core.compile)

    @property
    def number(self):
        """A number of 63 bits that the content determines: equal in all processes."""
        def make():
            digest = hashlib.blake2b(self.compiled.to_bytes(), digest_size=8).digest()
            return int.from_bytes(digest, "little") >> 1
        return self._once("number", make)

    def whole(self, by):
        """The inputs `by`, and those that are in one tuple with them: directions are by whole parameters."""
        names = {self.inputs[k][0] for k in by}
        return tuple([k for k, (name, kind, _) in enumerate(self.inputs) if name in names and kind == "f"])

    def along(self, by):
        """The Jacobian by the inputs `by` times a direction: directions follow the inputs, results are those that are floats."""
        return self._once(("jvp", by), lambda: self._derived("jvp", by))

    def against(self, by):
        """Weights of the results that are floats, which follow the inputs, times the Jacobian by the inputs `by`."""
        return self._once(("vjp", by), lambda: self._derived("vjp", by))

    def _derived(self, what, by):
        names = list(dict.fromkeys(self.inputs[k][0] for k in by))
        made = self.core.derive(what, names)
        own = self.core.parameters
        # Directions of derivatives of derivatives have names of their own.
        added = [f"{name}_{len(own)}" for name in made.parameters[len(own):]]
        return Program(made.renamed([*own, *added]), (self, by, what == "vjp"))

    def shapes(self, given, integers=()):
        """The shapes of the results for inputs of these shapes. `integers` are pairs of an input and its value; others are unknown."""
        given = tuple(map(tuple, given))

        def at(unknown):
            arrays = [np.full(shape or 1, unknown if kind == "i" else 0, DTYPES[kind]) for shape, (_, kind, _) in zip(given, self.inputs)]
            for k, value in integers:
                arrays[k][0] = value
            workspace = self.compiled.workspace(arrays)
            return [tuple(workspace.shape(k)) for k in range(len(self.outputs))]

        def make():
            known = {k for k, _ in integers}
            deciding = [self.inputs[k][0] for k in self.compiled.size_arguments if k not in known]
            if not deciding:
                return at(0)
            found, errors = [], []
            for unknown in (0, 3):
                try:
                    found.append(at(unknown))
                except Error as error:
                    errors.append(error)
            if not found:
                raise errors[0]
            if found[0] != found[-1]:
                raise Limitation(f"the shape of a result depends on the integer `{deciding[0]}`", remedy="make this argument static")
            return found[0]

        return self._once(("shapes", given, integers), make)

    def run(self, arrays, n_axes=0):
        """The results at arrays whose first `n_axes` axes count points; an axis of 1 there is the same for all points."""
        arrays = [np.ascontiguousarray(array, DTYPES[kind]).reshape(np.shape(array)) for array, (_, kind, _) in zip(arrays, self.inputs)]
        points = np.broadcast_shapes(*[array.shape[:n_axes] for array in arrays])
        n = math.prod(points)
        cores = [array.shape[n_axes:] for array in arrays]
        if n == 0:
            return [np.empty((*points, *shape), DTYPES[kind]) for shape, (_, kind, _) in zip(self.shapes(cores), self.outputs)]
        flat, first = [], []  # points one after the other, or one for all; the first point
        for array, core in zip(arrays, cores):
            is_shared = math.prod(array.shape[:n_axes]) == 1
            array = array.reshape(core or 1) if is_shared else np.ascontiguousarray(np.broadcast_to(array, (*points, *core))).reshape(n, *core)
            flat.append((array, not is_shared))
            first.append(array if is_shared else array[0].reshape(core or 1))
        if n > 1 and any(flat[k][1] for k in self.compiled.size_arguments):
            each = [self.run([(a[k] if is_own else a).reshape(core) for (a, is_own), core in zip(flat, cores)]) for k in range(n)]
            return [np.stack(parts).reshape((*points, *parts[0].shape)) for parts in zip(*each)]
        workspace = self.compiled.workspace(first)
        shapes = [tuple(workspace.shape(k)) for k in range(len(self.outputs))]
        lead = () if n == 1 else (n,)
        results = [np.empty((*lead, *shape) or 1, DTYPES[kind]) for shape, (_, kind, _) in zip(shapes, self.outputs)]
        if n == 1:
            self.compiled.run(workspace, first, results)
        else:
            self.compiled.batch(n, flat, results, 1)
        return [result.reshape((*points, *shape)) for result, shape in zip(results, shapes)]


class Entrance:
    """How a call of a function becomes one of a program: what the program takes, and how its results are put together."""

    def __init__(self, function, values, unknown):
        entry, leaves, _ = function._entry(values, Fit.SHORT)
        n_arguments = len(unknown)
        program = entry.derived.get("leaves")
        if program is None:
            with entry.lock:
                program = entry.derived.setdefault("leaves", Program(entry.function))
        self.program, self.structure = program, entry.structure
        #: Numbers of the leaves that the program takes, among those of arguments and of arrays of modules and closures.
        self.taken = range(len(leaves)) if entry.kept is None else [*entry.kept, *range(entry.n_leaves, len(leaves))]
        self.arrays = leaves[n_arguments:]
        #: Inputs that are integers whose value is known, with the value.
        self.integers = tuple([(k, int(leaves[i])) for k, i in enumerate(self.taken)
                               if i < n_arguments and not unknown[i] and not leaves[i].ndim and leaves[i].dtype.kind == "i"])
        program.shapes([leaves[i].shape for i in self.taken], self.integers)


def entrance(function, values, unknown):
    """The entrance for example arguments; `unknown` marks the leaves that are integers without a value yet."""
    def find():
        if sizes.is_known() and any(unknown):
            raise Limitation(f"`{function.__name__}` needs the values of integers to be compiled", remedy="make these arguments static")
        return Entrance(function, tuple(values), unknown)

    return sizes.attempt(function, find)


def examples(value, leaves, to_array, is_array):
    """An argument with an example for each number and array; the arrays of the caller's package are added to `leaves`."""
    found = None if is_array(value) else parts_of(value)
    if found is not None:
        parts, form = found
        return put_together(form, [examples(part, leaves, to_array, is_array) for part in parts])
    if not is_array(value) and (isinstance(value, (bool, str)) or value is None or callable(value) or is_object(value)):
        return value
    array, example = to_array(value)
    leaves.append(array)
    return example


def example_of(shape, kind):
    """An array of zeros as an example of a leaf; a number without axes."""
    if kind == "b":
        return np.zeros(shape, np.bool_)
    if kind not in "fiu":
        raise TypeError_(f"an argument has a dtype of the kind {kind!r}", remedy="pass floats, integers or truth values")
    return np.zeros(shape, np.float64 if kind == "f" else np.int64)
