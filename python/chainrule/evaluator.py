"""What functions and derivatives share: calls, and what is told of their programs."""

from __future__ import annotations

import inspect

import numpy as np

from . import _core
from . import sizes as known_sizes
from .arguments import spec_of
from .code import fill
from .errors import Error
from .fit import Fit, compared, numbers


class Call:
    """A call that can be run: code, the arrays that it takes, how the result is put together."""

    __slots__ = ("entry", "code", "leaves", "template", "keys", "by")

    def __init__(self, entry, code, leaves, template, keys, by=()):
        self.entry = entry
        self.code = code
        self.leaves = leaves
        self.template = template  # the result with numbers of leaves for the leaves
        self.keys = keys  # of the arguments and directions, each with whether ints are taken for floats
        self.by = by  # names of leaves by which it is differentiated


class Evaluator(_core.Caller):
    """What functions and derivatives share: calls.

    `_prepare(args, kwargs, fit)` makes a :class:`Call`, of code for all sizes or that fits those of the arguments;
    `_code(entry, by)` makes the code of an entry.
    """

    _last = None  # the call that was prepared last
    _writes = False  # whether a call writes to arguments, as the Python function does: derivatives do not
    _needs_sizes = False  # whether symbolic sizes do not do: see :mod:`chainrule.sizes`
    _counts_from_end = False  # whether an index that is data was negative: likewise

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
        return known_sizes.attempt(self, lambda: self._run(args, kwargs, out))

    def _run(self, args, kwargs, out):
        call = self._prepare(args, kwargs, Fit.CALL)
        self._last = last(call)
        if call.entry.constants.effects is not None and self._writes:
            return self._run_with_effects(call, args, kwargs, out)
        results = call.code.run(call.leaves, out)
        self._remember(call, call.code, (call.template, ()))
        return out if out is not None else fill(call.template, call.code.leaves(results))

    def batch(self, *args, in_axes=0, threads=1, out=None, progress=None, **kwargs):
        """The results at many points: see :func:`chainrule.vmap`."""
        from .batch import Batch
        return Batch(self, in_axes, 0, threads, progress)(*args, out=out, **kwargs)

    def bound(self, *args, **kwargs):
        """The function with arrays of its own, at first these arguments: see :class:`chainrule.bound.Bound`."""
        from .bound import Bound
        return Bound(self._prepare(args, kwargs, Fit.SHORT))

    def _told(self, args, kwargs):
        """The program for these arguments, or those of the last call, with its sizes."""
        if args or kwargs:
            self._last = last(known_sizes.attempt(self, lambda: self._prepare(args, kwargs)))
        if self._last is None:
            raise Error(f"`{self.__name__}` was not called yet", remedy="pass example arguments")
        entry, by, shapes, ints = self._last
        code = self._code(entry.general, by)
        if code.function is None:
            raise Error(f"the program of `{self.__name__}` was not saved with its code")
        leaves = [np.broadcast_to(0, shape) if n is None else np.array(n) for shape, n in zip(shapes, ints)]
        return code.function, sizes_of(code.function, leaves)

    @property
    def counts(self):
        """How many operations of each kind the last call takes: a dict."""
        function, sizes = self._told((), {})
        return dict(function.counts(sizes))

    def explain(self, *args, **kwargs):
        """What the optimiser does with the program, as text: for these arguments, or those of the last call."""
        function, sizes = self._told(args, kwargs)
        counts = ", ".join(f"{n} {name}" for name, n in function.counts(sizes) if n)
        return f"{function.explain() or 'straight-line code'}\noperations at {dict(sizes)}: {counts}"

    def source(self, language="c", *args, **kwargs):
        """The program as text: `c`, `rust`, or `ft` for F~. For these arguments, or those of the last call."""
        languages = {"c": "c", "rust": "rust", "ft": "text"}
        if language not in languages:
            raise Error(f"there is no language `{language}`", remedy="'c', 'rust' or 'ft'")
        return getattr(self._told(args, kwargs)[0], languages[language])()

    def graph(self, *args, **kwargs):
        """A picture of straight-line code (of `f.unroll()` and its derivatives)."""
        from .display import graph_picture
        dot = self._told(args, kwargs)[0].dot()
        if dot is None:
            raise Error(f"`{self.__name__}` keeps its loops", remedy="draw `f.unroll()` or a derivative of it")
        return graph_picture(dot)

    def report(self, path, *args, **kwargs):
        """Writes a page with source, program, operations and C: for these arguments, or those of the last call."""
        from .display import report
        report(self, path, args, kwargs)

    def _repr_html_(self):
        from .display import table
        return table(self)

    def _remember(self, call, code, results):
        """Lets later calls like this one run without Python code; `results` are their template, and leaves that are written to."""
        constants = call.entry.constants
        if any(d.place is None for d in constants.dependencies):
            return
        arrays = [(array, spec_of(array, "constant", [])) for array in constants.arrays]
        # As they are now: an equal number may be another object.
        places = [(*d.place, d.read(), d.snapshot) for d in constants.dependencies]
        pairs = compared(call.entry.base.deciding, call.leaves)
        sizes = [n for n, _ in numbers(call.leaves)] if known_sizes.is_known() else None
        self._plan((call.keys, pairs, sizes), arrays, places, code.compiled, results, call.entry.check)


def last(call):
    """What is kept of a call: its entry, what it is differentiated by, the shapes of the arguments, integers among them."""
    ints = [int(a.reshape(-1)[0]) if kind == "i" and not rank else None for a, (_, kind, rank) in zip(call.leaves, call.code.inputs)]
    return call.entry, call.by, [array.shape for array in call.leaves], ints


def sizes_of(function, leaves):
    """The sizes of a function by name, for arrays."""
    known = set(function.sizes)
    found = {}
    for (name, kind, rank), array in zip(function.inputs, leaves):
        if not rank and kind == "i":
            found[name] = int(array.reshape(())[()])
        for k, n in enumerate(array.shape[:rank]):
            found[f"n_{name}{k}" if rank > 1 else f"n_{name}"] = n
    return [(name, n) for name, n in found.items() if name in known]
