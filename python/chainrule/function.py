"""Functions: captured at the first call with arguments of a kind, compiled, and run."""

from __future__ import annotations

import functools
import inspect
import threading
import types

from . import _core
from .arguments import spec_of, to_floats
from .capture import capture
from .code import DTYPES, Code, assemble, fill, smooth
from .errors import Error, TypeError_


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

    def code(self, key, derive):
        """The code of a derivative, made once; that of the function for the key `None`."""
        code = self.derived.get(key)
        if code is None:
            with self.lock:
                code = self.derived.get(key)
                if code is None:
                    function = derive()
                    code = self.derived[key] = Code(function.compile(), function)
        return code


class Call:
    """A call that can be run: code, the arrays that it takes, how the result is put together."""

    __slots__ = ("entry", "code", "leaves", "template", "keys")

    def __init__(self, entry, code, leaves, template, keys):
        self.entry = entry
        self.code = code
        self.leaves = leaves
        self.template = template  # the result with numbers of leaves for the leaves
        self.keys = keys  # of the arguments and directions, each with whether ints are taken for floats


class Evaluator(_core.Caller):
    """What functions and derivatives share: calls. `_prepare(args, kwargs)` makes a :class:`Call`."""

    def _takes(self, parameters, n_extra=0):
        """Lets calls run without Python code where all arguments have names."""
        plain = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        if all(p.kind in plain for p in parameters):
            defaults = [() if p.default is p.empty else (p.default,) for p in parameters]
            self._interface([p.name for p in parameters], defaults, n_extra)

    def _general(self, args, kwargs):
        """A call that is not like an earlier one."""
        kwargs = dict(kwargs or {})
        out = None if "out" in self.__signature__.parameters else kwargs.pop("out", None)
        call = self._prepare(args, kwargs)
        results = call.code.run(call.leaves, out)
        self._remember(call)
        return out if out is not None else fill(call.template, call.code.leaves(results))

    def batch(self, *args, in_axes=0, threads=1, out=None, progress=None, **kwargs):
        """The results at many points: see :func:`chainrule.vmap`."""
        from .batch import Batch
        return Batch(self, in_axes, 0, threads, progress)(*args, out=out, **kwargs)

    def _remember(self, call):
        """Lets later calls like this one run without Python code."""
        constants = call.entry.constants
        places = [(d.place, d.value, d.snapshot) for d in constants.dependencies]
        if any(place is None for place, _, _ in places):
            return
        arrays = [(array, spec_of(array, "constant", [])) for array in constants.arrays]
        places = [(*place, value, snapshot) for place, value, snapshot in places]
        self._plan(call.keys, arrays, places, call.code.compiled, call.template)


class Function(Evaluator):
    """A Python function whose calls run compiled code. Made by :func:`function`, and by the derivatives."""

    def __init__(self, python):
        functools.update_wrapper(self, python)
        self.__wrapped_python__ = python
        self.__signature__ = inspect.signature(python)
        self._parameters = list(self.__signature__.parameters.values())
        for p in self._parameters:
            if p.kind is p.VAR_KEYWORD:
                raise TypeError_(f"`{python.__name__}` takes `**{p.name}`", remedy="name its arguments")
        self._setup()

    def _setup(self):
        self._names = [p.name for p in self._parameters]
        self._is_plain = all(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in self._parameters)
        self._entries = {}
        self._lock = threading.RLock()
        self._n_captures = 0
        self._latest = None
        self._takes(self._parameters)

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
        """The entry for these arguments, their leaves, and their keys."""
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
        for k, array in enumerate(entry.constants.arrays):
            spec_of(array, f"constant{k}", leaves)
        return entry, leaves, specs

    def _capture(self, specs):
        self._n_captures += 1
        function, names, structure, constants = capture(self.__wrapped_python__, list(zip(self._names, specs)))
        return Entry(function, names, structure, constants)

    def _prepare(self, args, kwargs):
        entry, leaves, specs = self._entry(self._bind(args, kwargs))
        code = entry.code(None, lambda: entry.function)
        template = assemble(entry.structure, iter(range(len(code.outputs))))
        return Call(entry, code, leaves, template, [(spec, False) for spec in specs])

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


def function(python=None):
    """Compiles a Python function at its first call: a decorator.

    >>> import numpy as np, chainrule as cr
    >>> @cr.function
    ... def energy(x):
    ...     return np.sum((x[1:] - x[:-1]) ** 2)
    """
    if python is None:
        return function
    if isinstance(python, Function):
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
        self._parameters = list(self.__signature__.parameters.values())
        self._setup()
        self._single = Entry(core, names, None, Nothing())
        self._latest = self._single
        n = len(core.outputs)
        self._single.structure = None if n == 1 else (tuple([None] * n), False)

    def _entry(self, values):
        leaves, specs = [], []
        for (name, kind, rank), value in zip(self._core.inputs, values):
            value = to_floats(value) if kind == "f" else value
            before = len(leaves)
            spec = spec_of(value, name, leaves)
            if spec[0] != "num" or spec[1] != kind or len(spec[2]) != rank or len(leaves) != before + 1:
                raise TypeError_(f"`{name}` is to be an array of {rank} dimensions of {DTYPES[kind].__name__}")
            specs.append(spec)
        return self._single, leaves, tuple(specs)


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
