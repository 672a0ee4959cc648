"""Functions: captured at the first call with arguments of a kind, compiled, and run."""

from __future__ import annotations

import functools
import inspect
import threading
import types

import numpy as np

from . import annotations
from . import sizes as known_sizes
from ._core import SHORT
from .arguments import Static, for_all_sizes, n_threads, spec_of, with_extents
from .capture import capture
from .capture.derivatives import RULE
from .code import assemble
from .effects import run_with_effects
from .entry import Entry
from .errors import Error, ShapeError, TypeError_
from .evaluator import Call, Evaluator, sizes_of
from .fit import Fit, compared, same


class Function(Evaluator):
    """A Python function whose calls run compiled code. Made by :func:`function`, and by the derivatives."""

    #: Names of arguments that are known while it is captured.
    static = ()
    #: Extents and integers for which it is straight-line code; `None` where loops are kept.
    sizes = None
    #: Whether every operation is as IEEE 754 has it.
    strict = False
    #: Number of threads of one evaluation: see :func:`function`.
    threads = None
    #: Whether loops whose steps write separate parts of an array build them side by side.
    _has_rows = True
    _writes = True
    #: The shapes of the arguments that are annotated: see :mod:`chainrule.annotations`.
    _annotations = None

    def __init__(self, python, static=(), strict=False, sizes=None, threads=None):
        self.strict, self.sizes, self.threads = strict, sizes, threads
        self.static = (static,) if isinstance(static, str) else tuple(static)
        functools.update_wrapper(self, python)
        self.__wrapped_python__ = python
        self.__signature__ = inspect.signature(python)
        self._parameters = list(self.__signature__.parameters.values())
        for p in self._parameters:
            if p.kind is p.VAR_KEYWORD:
                raise TypeError_(f"`{python.__name__}` takes `**{p.name}`", remedy="name its arguments")
        self._setup()
        self._annotations = annotations.of_function(python, self._names)
        for name in [*self.static, *(sizes or ())]:
            if name not in self._names:
                raise Error(f"`{self.__name__}` has no argument `{name}`", remedy=f"it has {', '.join(self._names)}")

    def _setup(self):
        self._names = [p.name for p in self._parameters]
        self._is_plain = all(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in self._parameters)
        self._entries = {}
        self._lock = threading.RLock()
        self._n_captures = 0
        self._takes(self._parameters)

    def __repr__(self):
        return f"<chainrule function {self.__name__}>"

    def __get__(self, instance, owner=None):
        return self if instance is None else types.MethodType(self, instance)

    @property
    def compilations(self):
        """How many times the function was captured: once for each key of ranks, dtypes and extents of at most 8, and for equal sizes."""
        return self._n_captures

    def _bind(self, args, kwargs):
        if self._is_plain and not kwargs and len(args) == len(self._names):
            return args
        bound = self.__signature__.bind(*args, **kwargs)
        bound.apply_defaults()
        return tuple(bound.arguments.values())

    def _entry(self, values, fit=Fit.ALL):
        """The entry for these arguments; their leaves, and their keys."""
        if self._annotations is not None:
            self._annotations(values)
        leaves = []
        keys = tuple([known_spec(value, name) if name in self.static else spec_of(value, name, leaves)
                      for name, value in zip(self._names, values)])
        fit = fit if self.sizes is None else Fit.ALL
        if known_sizes.is_known() and self.sizes is None:
            rest = iter(list(leaves))
            specs = tuple([known_sizes.with_sizes(key, rest) for key in keys])
        else:
            specs = for_all_sizes(keys) if fit is Fit.ALL else tuple([with_extents(key, SHORT) for key in keys])
        if known_sizes.may_be_negative():
            specs = (*specs, known_sizes.FROM_END)
        key = specs if self.sizes is None else (specs, *[at_size(array) for array in leaves])
        entry = self._known(key, lambda: self._capture(specs, leaves, values))
        alike = same(compared(entry.deciding, leaves)) if fit is Fit.CALL else ()
        if alike:
            entry = self._known((specs, alike), lambda: self._captured_alike(entry, specs, alike))
        for k, array in enumerate(entry.constants.arrays):
            spec_of(array, f"constant{k}", leaves)
        return entry, leaves, keys

    def _known(self, key, make):
        """The entry of a key, made once as long as it holds."""
        entry = self._entries.get(key)
        if entry is None or not entry.holds():
            with self._lock:
                entry = self._entries.get(key)
                if entry is None or not entry.holds():
                    entry = make()
                    entry.check, entry.threads = self._annotations, self.threads
                    self._entries[key] = entry
        return entry

    def _captured_alike(self, base, specs, alike):
        """The entry in which these positions are one size; the one without where it cannot be captured so."""
        try:
            program = self._program(specs, alike)
        except Error:
            return base
        entry = Entry(*program)
        entry.deciding, entry.base = [], base
        return entry

    def _program(self, specs, alike=()):
        """The captured function, and what an entry has beside it."""
        self._n_captures += 1
        has_negative = known_sizes.FROM_END in specs
        function, *rest = capture(self.__wrapped_python__, list(zip(self._names, specs)), self._has_rows, alike, has_negative)
        return (function.strict() if self.strict else function, *rest)

    def _capture(self, specs, leaves, values):
        wide = for_all_sizes(specs)
        widen = None if wide == specs else lambda: self._known(wide, lambda: self._capture(wide, (), ()))
        try:
            function, names, structure, constants = self._program(specs)
        except Error:
            if widen is None:
                raise
            return widen()
        if self.sizes is None:
            entry = Entry(function, names, structure, constants)
            entry.widen = widen
            return entry
        self._check_sizes(specs, values)
        all_leaves = list(leaves)
        for k, array in enumerate(constants.arrays):
            spec_of(array, f"constant{k}", all_leaves)
        inputs = function.inputs
        entry = Entry(function.unrolled(sizes_of(function, all_leaves)), names, structure, constants)
        entry.deciding = []
        entry.kept = [k for k, (_, kind, rank) in enumerate(inputs) if kind == "f" or rank]
        entry.n_leaves = len(inputs)
        return entry

    def _check_sizes(self, specs, values):
        """Whether the arguments have the extents and integers that were said."""
        for name, value, spec in zip(self._names, values, specs):
            wanted = self.sizes.get(name)
            if wanted is None:
                continue
            got = np.shape(value) or value
            wanted = (wanted,) if isinstance(wanted, int) and np.ndim(value) else wanted
            if got != wanted:
                raise ShapeError(f"`{self.__name__}` is unrolled for {name}={self.sizes[name]}, not {got}")

    def _code(self, entry, by=()):
        return entry.code(None, lambda: entry.function)

    def _prepare(self, args, kwargs, fit=Fit.ALL):
        entry, leaves, keys = self._entry(self._bind(args, kwargs), fit)
        code = self._code(entry)
        template = assemble(entry.structure, iter(range(len(code.outputs))))
        return Call(entry, code, entry.taken(leaves), template, [(key, False) for key in keys])

    def unroll(self, **sizes):
        """The function as straight-line code, for extents (`x=6`, `x=(2, 3)`) and integers (`n=3`) of its arguments.

        Those that are not named are those of each call; each set of them is compiled by itself. Derivatives are found
        by elimination then: `strategy` is one of those of scalar code.
        """
        return Function(self._python(), self.static, self.strict, sizes, self.threads)

    def _repr_latex_(self):
        from .display import formula
        return formula(self)

    def _in_steps(self):
        """The function with loops that carry the arrays that they write: dependences are traced more exactly through them."""
        if type(self) is not Function or not hasattr(self, "__wrapped_python__"):
            return self
        made = Function(self.__wrapped_python__, self.static, self.strict, self.sizes, self.threads)
        made._has_rows = False
        return made

    def _python(self):
        python = getattr(self, "__wrapped_python__", None)
        if python is None:
            raise Error(f"`{self.__name__}` has no Python source", remedy="unroll the Python function")
        return python

    def derivative(self, rule):
        """States the derivative, as a decorator: `rule` takes the arguments of the function and returns its derivative by each argument
        of floats, a tuple for several: the extents of the result, then those of the argument.

        Stated right after the function is defined, before others use it.
        """
        python = self._python()
        rule = getattr(rule, "__wrapped_python__", rule)
        if not isinstance(rule, types.FunctionType):
            raise TypeError_(f"{rule!r} is not a Python function", remedy="decorate a `def`")
        setattr(python, RULE, rule)
        self._forget()
        with self._lock:
            self._entries.clear()
        return rule

    def save(self, path):
        """Writes the function, with all kinds of arguments and derivatives that it was called with, for :func:`chainrule.load`."""
        from .saved import save
        save(self, path)

    def __reduce__(self):
        from .saved import dumps, importable, loads
        return self.__qualname__ if importable(self) else (loads, (dumps(self),))

    def _run_with_effects(self, call, args, kwargs, out):
        return run_with_effects(self, call, self._bind(args, kwargs), out)


def known_spec(value, name):
    """The key of an argument that is known while capturing."""
    if isinstance(value, (np.ndarray, list, dict, set)):
        raise TypeError_(f"`{name}` is static, and a {type(value).__name__}", remedy="static arguments are numbers, strings, functions")
    return ("known", Static(value.item() if isinstance(value, np.generic) else value))


def at_size(array):
    """What unrolled code depends on: extents, and the value of an integer."""
    return int(array) if not array.ndim and array.dtype.kind == "i" else array.shape


def function(python=None, *, static=(), strict=False, threads=None):
    """Compiles a Python function at its first call: a decorator.

    `static` names arguments that are known while it is compiled, anew for each value. `strict` keeps every operation as
    IEEE 754 has it; otherwise arithmetic is that of real numbers: sums may be regrouped, `x*0` is 0.

    On several `threads` (0: all of the machine), loops whose steps are independent, or only add, run in chunks, and so in
    the derivatives, if a loop takes 40 microseconds or more. Results are the same bits for any number of threads; the last
    digits of sums may differ from those without `threads`.

    >>> import numpy as np, chainrule as cr
    >>> @cr.function
    ... def energy(x):
    ...     return np.sum((x[1:] - x[:-1]) ** 2)
    """
    if python is None:
        return functools.partial(function, static=static, strict=strict, threads=threads)
    threads = None if threads is None else n_threads(threads)
    if isinstance(python, Function):
        if not static and not strict and threads is None:
            return python
        if not hasattr(python, "__wrapped_python__"):
            raise Error(f"`{python.__name__}` has no Python source", remedy="pass options where it is made: `cr.module(path, threads=2)`")
        threads = python.threads if threads is None else threads
        return Function(python._python(), static or python.static, strict or python.strict, python.sizes, threads)
    if not isinstance(python, types.FunctionType):
        raise TypeError_(f"{python!r} is not a Python function", remedy="decorate a `def` or pass a lambda")
    return Function(python, static, strict, threads=threads)
