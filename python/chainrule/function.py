"""Functions: captured at the first call with arguments of a kind, compiled, and run."""

from __future__ import annotations

import functools
import inspect
import threading
import types

import numpy as np

from . import _core, annotations
from . import sizes as known_sizes
from ._core import SHORT
from .arguments import Static, count_leaves, for_all_sizes, spec_of, to_floats, with_extents
from .capture import capture
from .capture.derivatives import RULE
from .code import DTYPES, Code, assemble, fill, smooth
from .errors import Error, ShapeError, TypeError_
from .fit import Fit, compared, same
from .trees import parts_of


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
        self.check = None  # of the shapes of arguments, where these are annotated
        self.deciding = constants.deciding  # see :mod:`chainrule.fit`
        self.base = self  # the entry whose deciding sizes this one is for
        self.widen = None  # makes the entry for all sizes, where this one is for short extents
        self.kept = None  # the numbers of the leaves that code takes, where it does not take all: integers of unrolled code

    @property
    def general(self):
        """The entry for all sizes; that for the short extents where a function cannot be captured so."""
        try:
            return self.base if self.base.widen is None else self.base.widen()
        except Error:
            return self.base

    def taken(self, leaves):
        """The leaves that code takes."""
        return leaves if self.kept is None else [leaves[k] for k in self.kept] + leaves[self.n_leaves:]

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
    _needs_sizes = False  # whether symbolic sizes do not do: see :mod:`chainrule.sizes`

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
        if call.entry.constants.effects is not None and isinstance(self, Function):
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
            self._last = last(self._prepare(args, kwargs))
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
        if known_sizes.is_known() or any(d.place is None for d in constants.dependencies):
            return
        arrays = [(array, spec_of(array, "constant", [])) for array in constants.arrays]
        # As they are now: an equal number may be another object.
        places = [(*d.place, d.read(), d.snapshot) for d in constants.dependencies]
        pairs = compared(call.entry.base.deciding, call.leaves)
        self._plan((call.keys, pairs), arrays, places, code.compiled, results, call.entry.check)


def last(call):
    """What is kept of a call: its entry, what it is differentiated by, the shapes of the arguments, integers among them."""
    ints = [int(a.reshape(-1)[0]) if kind == "i" and not rank else None for a, (_, kind, rank) in zip(call.leaves, call.code.inputs)]
    return call.entry, call.by, [array.shape for array in call.leaves], ints


class Function(Evaluator):
    """A Python function whose calls run compiled code. Made by :func:`function`, and by the derivatives."""

    #: Names of arguments that are known while it is captured.
    static = ()
    #: Extents and integers for which it is straight-line code; `None` where loops are kept.
    sizes = None
    #: Whether every operation is as IEEE 754 has it.
    strict = False
    #: Whether loops whose steps write separate parts of an array build them side by side.
    _has_rows = True
    #: The shapes of the arguments that are annotated: see :mod:`chainrule.annotations`.
    _annotations = None

    def __init__(self, python, static=(), strict=False, sizes=None):
        self.strict, self.sizes = strict, sizes
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
                    entry.check = self._annotations
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
        function, *rest = capture(self.__wrapped_python__, list(zip(self._names, specs)), self._has_rows, alike)
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
        return Function(self._python(), self.static, self.strict, sizes)

    def _repr_latex_(self):
        from .display import formula
        return formula(self)

    def _in_steps(self):
        """The function with loops that carry the arrays that they write: dependences are traced more exactly through them."""
        if type(self) is not Function or not hasattr(self, "__wrapped_python__"):
            return self
        made = Function(self.__wrapped_python__, self.static, self.strict, self.sizes)
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
        """Runs a function that writes to its arguments."""
        effects = call.entry.constants.effects
        arrays = written_arrays(self._bind(args, kwargs), effects.leaves)
        code = call.entry.code("effects", lambda: effects.function)
        n = effects.n_results
        results = code.run(call.leaves, None if out is None else with_room(out, arrays))
        for array, result in zip(arrays, results[n:]):
            np.copyto(array, result)
        self._remember(call, code, (None if effects.structure is False else call.template, effects.leaves))
        if out is not None or effects.structure is False:
            return out
        return fill(call.template, code.leaves(results)[:n])


def known_spec(value, name):
    """The key of an argument that is known while capturing."""
    if isinstance(value, (np.ndarray, list, dict, set)):
        raise TypeError_(f"`{name}` is static, and a {type(value).__name__}", remedy="static arguments are numbers, strings, functions")
    return ("known", Static(value.item() if isinstance(value, np.generic) else value))


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


def at_size(array):
    """What unrolled code depends on: extents, and the value of an integer."""
    return int(array) if not array.ndim and array.dtype.kind == "i" else array.shape


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


def function(python=None, *, static=(), strict=False):
    """Compiles a Python function at its first call: a decorator.

    `static` names arguments that are known while it is compiled, anew for each value. `strict` keeps every operation as
    IEEE 754 has it; otherwise arithmetic is that of real numbers: sums may be regrouped, `x*0` is 0.

    >>> import numpy as np, chainrule as cr
    >>> @cr.function
    ... def energy(x):
    ...     return np.sum((x[1:] - x[:-1]) ** 2)
    """
    if python is None:
        return functools.partial(function, static=static, strict=strict)
    if isinstance(python, Function):
        return python
    if not isinstance(python, types.FunctionType):
        raise TypeError_(f"{python!r} is not a Python function", remedy="decorate a `def` or pass a lambda")
    return Function(python, static, strict)


class ModuleFunction(Function):
    """A function of an F~ file. Its arguments are as F~ has them: floats, ints, arrays."""

    def __init__(self, core, path=None):
        self._core, self._path = core, path
        self.__name__ = self.__qualname__ = core.name
        self.__doc__ = f"The function {core.name} of an F~ file."
        parameter = lambda name: inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        names = list(dict.fromkeys(name for name, _, _ in core.inputs))
        self.__signature__ = inspect.Signature([parameter(name) for name in names])
        self._parameters = list(self.__signature__.parameters.values())
        self._setup()
        self._single = Entry(core, names, None, Nothing())
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
        return (_function_of_module, (self._path, self.__name__))


def _function_of_module(path, name):
    return Module(path)._functions[name]


class Nothing:
    """What a function of an F~ file reads of its surroundings."""

    arrays = ()
    dependencies = ()
    effects = None
    deciding = ()


class Module:
    """The functions of an F~ file as attributes."""

    def __init__(self, path):
        self._functions = {name: ModuleFunction(core, path) for name, core in _core.module(path)}
        self.__dict__.update(self._functions)

    def __repr__(self):
        return f"<chainrule module: {', '.join(self._functions)}>"


def module(path):
    """The functions of an F~ file: `cr.module("model.ft").energy`."""
    return Module(path)
