"""Functions of F~ files."""

from __future__ import annotations

import inspect

from . import _core
from .arguments import for_all_sizes, n_threads, spec_of, to_floats
from .code import DTYPES
from .entry import Entry
from .errors import TypeError_
from .fit import Fit
from .function import Function


class ModuleFunction(Function):
    """A function of an F~ file. Its arguments are as F~ has them: floats, ints, arrays."""

    def __init__(self, core, path=None, threads=None):
        self._core, self._path, self.threads = core, path, threads
        self.__name__ = self.__qualname__ = core.name
        self.__doc__ = f"The function {core.name} of an F~ file."
        parameter = lambda name: inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        names = list(dict.fromkeys(name for name, _, _ in core.inputs))
        self.__signature__ = inspect.Signature([parameter(name) for name in names])
        self._parameters = list(self.__signature__.parameters.values())
        self._setup()
        self._single = Entry(core, names, None, Nothing())
        self._single.threads = threads
        n = len(core.outputs)
        self._single.structure = None if n == 1 else (tuple([None] * n), False)

    def _entry(self, values, fit=Fit.ALL):
        leaves, keys = [], []
        for (name, kind, rank), value in zip(self._core.inputs, values):
            value = to_floats(value) if kind == "f" else value
            before = len(leaves)
            key = spec_of(value, name, leaves)
            if key[0] != "num" or key[1] != kind or len(key[2]) != rank or len(leaves) != before + 1:
                raise TypeError_(f"`{name}` is to be an array of {rank} dimensions of {DTYPES[kind].__name__}")
            keys.append(key)
        return self._single, leaves, for_all_sizes(keys)

    def __reduce__(self):
        return (_function_of_module, (self._path, self.__name__, self.threads))


def _function_of_module(path, name, threads=None):
    return Module(path, threads)._functions[name]


class Nothing:
    """What a function of an F~ file reads of its surroundings."""

    arrays = ()
    dependencies = ()
    effects = None
    deciding = ()


class Module:
    """The functions of an F~ file as attributes."""

    def __init__(self, path, threads=None):
        threads = None if threads is None else n_threads(threads)
        self._functions = {name: ModuleFunction(core, path, threads) for name, core in _core.module(path)}
        self.__dict__.update(self._functions)

    def __repr__(self):
        return f"<chainrule module: {', '.join(self._functions)}>"


def module(path, *, threads=None):
    """The functions of an F~ file: `cr.module("model.ft").energy`. `threads` is as in :func:`function`."""
    return Module(path, threads)
