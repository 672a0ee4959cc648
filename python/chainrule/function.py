"""Functions: captured at the first call with arguments of a kind, compiled, and run; derivatives of them."""

from __future__ import annotations

import functools
import inspect
import threading
import types

import numpy as np

from . import _core
from .arguments import count_leaves, spec_of, to_floats
from .capture import capture
from .errors import Error, ShapeError, TypeError_

DTYPES = {"f": np.float64, "i": np.int64, "b": np.int64}


class Entry:
    """A function of the library for arguments of one key, with code where it has run."""

    def __init__(self, function, names, structure, constants):
        self.function = function
        self.names = names  # of the leaves of each parameter
        self.structure = structure  # of the result
        self.constants = constants
        floats = iter([kind == "f" for _, kind, _ in function.outputs])
        self.smooth = smooth(structure, floats)  # the structure with `False` for results without derivatives
        self.lock = threading.Lock()
        self.derived = {}

    def holds(self):
        return all(dependency.holds() for dependency in self.constants.dependencies)


class Code:
    """Compiled code with what it takes and gives."""

    def __init__(self, function):
        self.function = function
        self.compiled = function.compile()
        self.outputs = function.outputs

    def run(self, inputs, out=None):
        """The results, one array a leaf; a number is an array of one element."""
        inputs = [array if array.ndim else array.reshape(1) for array in inputs]
        workspace = self.compiled.workspace(inputs)
        shapes = [tuple(workspace.shape(k)) for k in range(len(self.outputs))]
        if out is None:
            results = [np.empty(shape or 1, DTYPES[kind]) for shape, (_, kind, _) in zip(shapes, self.outputs)]
        else:
            results = check_out(out, shapes, [kind for _, kind, _ in self.outputs], inputs)
        self.compiled.run(workspace, inputs, results)
        return results

    def _is_number(self, k):
        return self.outputs[k][2] == 0

    def leaf(self, k, array):
        """Result `k` as NumPy gives it."""
        if self.outputs[k][1] == "b":
            array = array.astype(np.bool_)
        return array[0] if self._is_number(k) else array


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
    return [array.reshape(1) if not array.ndim else array for array in out]


class Function:
    """A Python function whose calls run compiled code. Made by :func:`function`, and by the derivatives."""

    def __init__(self, python):
        functools.update_wrapper(self, python)
        self.__wrapped_python__ = python
        self.__signature__ = inspect.signature(python)
        self._parameters = list(self.__signature__.parameters.values())
        self._names = [p.name for p in self._parameters]
        for p in self._parameters:
            if p.kind is p.VAR_KEYWORD:
                raise TypeError_(f"`{python.__name__}` takes `**{p.name}`", remedy="name its arguments")
        self._is_plain = all(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in self._parameters)
        self._entries = {}
        self._lock = threading.RLock()
        self._n_captures = 0
        self._latest = None

    def __repr__(self):
        return f"<chainrule function {self.__name__}>"

    def __get__(self, instance, owner=None):
        return self if instance is None else types.MethodType(self, instance)

    @property
    def compilations(self):
        """How many times the function was captured: once for each key of ranks, dtypes and extents that are 1."""
        return self._n_captures

    def _bind(self, args, kwargs):
        if self._is_plain and not kwargs and len(args) == len(self._names):
            return args
        bound = self.__signature__.bind(*args, **kwargs)
        bound.apply_defaults()
        return tuple(bound.arguments.values())

    def _entry(self, values):
        """The entry for these arguments, and their leaves."""
        leaves = []
        specs = tuple([spec_of(value, name, leaves) for name, value in zip(self._names, values)])
        entry = self._entries.get(specs)
        if entry is None or not entry.holds():
            with self._lock:
                entry = self._entries.get(specs)
                if entry is None or not entry.holds():
                    entry = self._capture(specs)
                    self._entries[specs] = entry
        self._latest = entry
        constants = entry.constants
        if constants.arrays:
            for k, array in enumerate(constants.arrays):
                spec_of(array, f"constant{k}", leaves)
        return entry, leaves

    def _capture(self, specs):
        self._n_captures += 1
        function, names, structure, constants = capture(self.__wrapped_python__, list(zip(self._names, specs)))
        return Entry(function, names, structure, constants)

    def _code(self, entry, key, derive):
        code = entry.derived.get(key)
        if code is None:
            with entry.lock:
                code = entry.derived.get(key)
                if code is None:
                    code = entry.derived[key] = Code(derive())
        return code

    def __call__(self, *args, out=None, **kwargs):
        entry, leaves = self._entry(self._bind(args, kwargs))
        code = self._code(entry, None, lambda: entry.function)
        results = code.run(leaves, out)
        if out is not None:
            return out
        return assemble(entry.structure, iter([code.leaf(k, r) for k, r in enumerate(results)]))

    def source(self, language="c", *args, **kwargs):
        """The function as text: `c`, or `ft` for F~. For these arguments, or those of the last call."""
        entry = self._entry(self._bind(args, kwargs))[0] if args or kwargs else self._latest
        return text_of(self, entry and entry.function, language)


def text_of(function, core, language):
    if core is None:
        raise Error(f"`{function.__name__}` was not called yet", remedy="pass example arguments: `f.source('c', x)`")
    if language == "c":
        return core.c()
    if language == "ft":
        return core.text()
    raise Error(f"there is no language `{language}`", remedy="'c' or 'ft'")


def smooth(structure, floats):
    """A structure with `False` for leaves that are not floats."""
    if structure is None:
        return None if next(floats) else False
    return tuple([smooth(part, floats) for part in structure[0]]), structure[1]


def assemble(structure, leaves):
    """A result from its leaves; `None` for what has no derivative."""
    if structure is False:
        return None
    if structure is None:
        return next(leaves)
    parts, is_list = structure
    made = [assemble(part, leaves) for part in parts]
    return made if is_list else tuple(made)


def structure_of(value):
    """How an argument is put together, as results are."""
    return (tuple(structure_of(part) for part in value), False) if isinstance(value, tuple) else None


class Derivative:
    """A derivative of a function, by some of its arguments."""

    def __init__(self, function, what, argnums=0, with_value=False):
        self.function = function if isinstance(function, Function) else Function(function)
        self.what = what
        self.with_value = with_value
        self.is_single = isinstance(argnums, (int, str))
        chosen = (argnums,) if self.is_single else tuple(argnums)
        self.argnums = tuple(self._position(k) for k in chosen)
        if len(set(self.argnums)) != len(self.argnums) or not self.argnums:
            raise Error(f"argnums={argnums} names an argument twice or none")
        self.__name__ = f"{what}_of_{self.function.__name__}"
        self.__doc__ = f"The {what} of {self.function.__name__}."

    def _position(self, k):
        names = self.function._names
        if isinstance(k, str):
            if k not in names:
                raise Error(f"`{self.function.__name__}` has no argument `{k}`", remedy=f"it has {', '.join(names)}")
            return names.index(k)
        if not isinstance(k, int) or not -len(names) <= k < len(names):
            raise Error(f"argnums={k} is out of range", remedy=f"`{self.function.__name__}` has {len(names)} arguments")
        return k % len(names)

    def __repr__(self):
        return f"<chainrule {self.what} of {self.function.__name__}>"

    def _prepare(self, args, kwargs):
        f = self.function
        directions = ()
        if self.what in ("jvp", "hvp", "vjp"):
            n = len(self.argnums) if self.what != "vjp" else 1
            if len(args) <= n:
                raise TypeError_(f"`{self.__name__}` takes the arguments of `{f.__name__}`, then {n} "
                                 f"{'direction' if self.what != 'vjp' else 'weight'}{'s' if n > 1 else ''}")
            args, directions = args[:-n], args[-n:]
        values = list(f._bind(args, kwargs))
        for k in self.argnums:
            values[k] = to_floats(values[k])
        entry, leaves = f._entry(values)
        by = self._names_of(entry, values)
        for k, direction in enumerate(directions):
            like = (values[self.argnums[k]],) if self.what != "vjp" else None
            self._direction(direction, like, leaves)
        code = f._code(entry, (self.what, self.argnums, self.with_value),
                       lambda: entry.function.derive(self.what, by, self.with_value))
        return entry, leaves, values, code

    def _names_of(self, entry, values):
        """Names of the leaves of the chosen arguments."""
        names, k, found = entry.names, 0, {}
        for position, value in enumerate(values):
            n = count_leaves(value)
            found[position] = names[k:k + n]
            k += n
        by = [name for position in self.argnums for name in found[position]]
        if not by:
            raise TypeError_(f"`{self.function.__name__}` is differentiated by an argument without numbers")
        return by

    def _direction(self, direction, like, leaves):
        made = []
        spec_of(to_floats(direction), "direction", made)
        if like is not None:
            wanted = []
            spec_of(like[0], "argument", wanted)
            for got, want in zip(made, wanted):
                if got.shape != want.shape:
                    raise ShapeError(f"a direction has the shape {got.shape}, its argument has {want.shape}")
        leaves.extend(made)

    def __call__(self, *args, out=None, **kwargs):
        entry, leaves, values, code = self._prepare(args, kwargs)
        results = code.run(leaves, out)
        if out is not None:
            return out
        parts = iter([code.leaf(k, r) for k, r in enumerate(results)])
        value = assemble(entry.structure, parts) if self.with_value else None
        chosen = [structure_of(values[k]) for k in self.argnums]
        if self.what in ("jvp",):
            derivative = assemble(entry.smooth, parts)
        elif self.what == "hessian":
            derivative = self._blocks(chosen, parts)
        elif self.what == "jacobian" and entry.structure is not None:
            derivative = self._jacobians(entry.smooth, chosen, parts)
        else:
            derivative = self._single(tuple(assemble(structure, parts) for structure in chosen))
        return (value, derivative) if self.with_value else derivative

    def _single(self, made):
        return made[0] if self.is_single else made

    def _blocks(self, chosen, parts):
        if any(structure is not None for structure in chosen):
            raise TypeError_("a Hessian by a tuple of arrays", remedy="pass the arrays as arguments: argnums=(0, 1)")
        rows = tuple(self._single(tuple(next(parts) for _ in chosen)) for _ in chosen)
        return self._single(rows)

    def _jacobians(self, structure, chosen, parts):
        """One block for each result and argument."""
        made = [self._single(tuple(assemble(one, parts) for one in chosen)) for _ in range(count_parts(structure))]
        return assemble(structure, iter(made))

    def source(self, language="c", *args, **kwargs):
        """The derivative as text, for these arguments of the function."""
        if not args and not kwargs:
            raise Error("a derivative's text needs example arguments", remedy="f.source('c', x)")
        return text_of(self, self._prepare(args, kwargs)[3].function, language)


def count_parts(structure):
    """How many leaves have a derivative."""
    if structure is None or structure is False:
        return int(structure is None)
    return sum(map(count_parts, structure[0]))


def function(python=None):
    """Compiles a Python function at its first call: a decorator.

    >>> import numpy as np, chainrule as cr
    >>> @cr.function
    ... def energy(x):
    ...     return np.sum((x[1:] - x[:-1]) ** 2)
    """
    if python is None:
        return function
    if isinstance(python, (Function, ModuleFunction)):
        return python
    if not isinstance(python, types.FunctionType):
        raise TypeError_(f"{python!r} is not a Python function", remedy="decorate a `def` or pass a lambda")
    return Function(python)


class ModuleFunction(Function):
    """A function of an F~ file. Its arguments are as F~ has them: floats, ints, arrays."""

    def __init__(self, core):
        self._core = core
        self.__name__ = core.name
        self.__doc__ = f"The function {core.name} of an F~ file."
        parameter = lambda name: inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        names = list(dict.fromkeys(name for name, _, _ in core.inputs))
        self.__signature__ = inspect.Signature([parameter(name) for name in names])
        self._names, self._is_plain = names, True
        self._entries, self._lock, self._n_captures = {}, threading.RLock(), 0
        self._single = Entry(core, names, None, Nothing())
        self._latest = self._single
        n = len(core.outputs)
        self._single.structure = None if n == 1 else (tuple([None] * n), False)

    def _entry(self, values):
        leaves = []
        for (name, kind, rank), value in zip(self._core.inputs, values):
            value = to_floats(value) if kind == "f" else value
            before = len(leaves)
            spec = spec_of(value, name, leaves)
            if spec[0] != "num" or spec[1] != kind or len(spec[2]) != rank or len(leaves) != before + 1:
                raise TypeError_(f"`{name}` is to be an array of {rank} dimensions of {DTYPES[kind].__name__}")
        return self._single, leaves


class Nothing:
    """What a function of an F~ file reads of its surroundings."""

    arrays = ()
    dependencies = ()


class Module:
    """The functions of an F~ file as attributes."""

    def __init__(self, path):
        self._functions = {name: ModuleFunction(core) for name, core in _core.module(path)}
        self.__dict__.update(self._functions)

    def __repr__(self):
        return f"<chainrule module: {', '.join(self._functions)}>"


def module(path):
    """The functions of an F~ file: `cr.module("model.ft").energy`."""
    return Module(path)


def gradient(function, argnums=0):
    """The gradient of a function with a scalar result, shaped like its argument."""
    return Derivative(function, "gradient", argnums)


def value_and_gradient(function, argnums=0):
    """The value and the gradient, in one call."""
    return Derivative(function, "gradient", argnums, with_value=True)


def jacobian(function, argnums=0):
    """The Jacobian: the extents of the result, then those of the argument."""
    return Derivative(function, "jacobian", argnums)


def hessian(function, argnums=0):
    """The Hessian of a function with a scalar result."""
    return Derivative(function, "hessian", argnums)


def hessian_diagonal(function, argnums=0):
    """The diagonal of the Hessian, shaped like the argument."""
    return Derivative(function, "hessian_diagonal", argnums)


def jvp(function, argnums=0, with_value=False):
    """The derivative along a direction, which is passed after the arguments."""
    return Derivative(function, "jvp", argnums, with_value)


def vjp(function, argnums=0, with_value=False):
    """The weights of the results, which are passed after the arguments, times the Jacobian."""
    return Derivative(function, "vjp", argnums, with_value)


def hvp(function, argnums=0, with_value=False):
    """The Hessian times a direction, which is passed after the arguments."""
    return Derivative(function, "hvp", argnums, with_value)


grad = gradient
value_and_grad = value_and_gradient
