"""Source capture: from a Python function and the kinds of its arguments to a function of the library.

| module | owns |
| --- | --- |
| `source` | source text and syntax trees of functions, places in them |
| `values` | what a value of a captured program is; extents as linear forms |
| `writer` | writing terms: arithmetic, broadcasting, conditions, loops; errors at a place |
| `frame` | names, what is read of modules and closures |
| `expressions`, `statements`, `branches`, `repetition` | Python's syntax |
| `opened` | loops that are captured step by step |
| `lists` | lists that grow |
| `rows` | loops whose steps write separate parts of an array |
| `memory` | writes to arrays, and the names that see them |
| `shapes`, `syntax` | packing variables; what statements assign and how they end |
| `loops` | what is iterated over |
| `records` | dicts, NamedTuples and dataclasses |
| `operations` | operators, calls and indices |
| `derivatives` | derivatives of functions inside of functions |
"""

from __future__ import annotations

import ast

from .._core import SHORT
from ..errors import CaptureError
from ..sizes import is_known
from ..trees import Record
from .derivatives import RULE, by_rule
from .expressions import Expressions
from .frame import Constants, Effects, Frame
from .memory import HIDDEN
from .opened import attempts
from .source import of_function
from .statements import Statements
from .values import Dim, Form, Gone, Known, Num, Row, Storage, describe
from .writer import Writer


class ArrayWriter(Writer):
    """A writer that makes arguments.

    Their extents, and those of them that are integers or truth values, have positions in this order, those of
    :mod:`chainrule.fit`; `alike` has the position of an equal extent for some of them.
    """

    def __init__(self, name, alike, has_negative):
        super().__init__(name)
        self.alike = dict(alike)
        self.positions = []  # the name at each position, `None` for a known extent
        self.replaced = []  # integers that are extents, with the positions of these
        self.has_negative = has_negative  # whether indices that are data may be negative: see :mod:`chainrule.sizes`

    def argument(self, name, kind, extents, constant=None):
        """An argument of a kind; extents that are `None` are not known, but above 1."""
        sizes = [f"n_{name}{k}" if len(extents) > 1 else f"n_{name}" for k in range(len(extents))]
        type_ = {"f": "Double", "i": "Int", "b": "Bool"}[kind]
        for k, extent in enumerate(extents):
            position = len(self.positions)
            sizes[k] = self.positions[self.alike[position]] if position in self.alike else sizes[k]
            self.positions.append(sizes[k] if extent is None else None)
        written = "".join(f"[{size}]" if extent is None else f"[{extent}]" for extent, size in zip(extents, sizes))
        term = self.program.argument(name, written + type_)
        dims = []
        for extent, size in zip(extents, sizes):
            if extent is not None:
                dims.append(Dim(int(extent)))
                continue
            if size not in self.names:
                self.at_entry(size, self.program.size(size), least=2)
                self.program.require_at_least(size, 2)
            dims.append(Dim(0, {size: 1}))
        storage = Storage(constant=constant) if extents else None
        return Num(term, kind, dims, storage=storage)

    def integer_argument(self, value):
        """Gives the integer of an argument its position."""
        position = len(self.positions)
        self.positions.append(value.term.name)
        self.at_entry(value.term.name, value.term)
        value.dim = Dim(0, {value.term.name: 1})
        if position in self.alike:
            self.replaced.append((value, self.alike[position]))

    def replace(self):
        """Replaces integers by the extents that they are equal to, once all of these are arguments."""
        for value, position in self.replaced:
            value.dim = Dim(0, {self.positions[position]: 1})
            value.term = self.size(value.dim).term

    def array_argument(self, name, array):
        from ..arguments import kind_of_array
        extents = tuple(n if n <= SHORT or is_known() else None for n in array.shape)
        return self.argument(name, kind_of_array(array, name), extents, name)


class Capture(Expressions, Statements):
    """One capture of one function."""

    def __init__(self, function, specs, has_rows, alike, has_negative, opened):
        self.w = ArrayWriter(function.__name__ if function.__name__.isidentifier() else "function", alike, has_negative)
        self.capture = Constants(self.w)
        self.frame = None
        self.callers = []  # frames of calls that are not done
        self.writes = []  # storages and what they became, in order
        self.depth = 0
        self.outside = []  # frames with their variables where the loops that are being run started
        self.trials = []  # lists whose elements are looked at, and what is found
        self.given = []  # lists that are arguments
        self.function = function
        self.specs = specs
        self.has_rows = has_rows
        self.opened = opened

    def run(self):
        """The function of the library, the names of its arguments, how its result is made of leaves."""
        function = self.function
        source, node = of_function(function)
        closure = dict(zip(function.__code__.co_freevars, function.__closure__ or ()))
        outer = Frame(self.capture, source, function.__globals__, closure, name=function.__name__)
        self.frame = Frame(self.capture, source, outer.module, closure, parent=outer, name=function.__name__)
        self.frame.own = self.own_names(node)
        self.w.at(source, node)
        names = []
        for name, spec in self.specs:
            self.frame.env[name] = self.parameter(name, spec, names)
        arguments = list(self.w.positions)
        self.w.replace()
        memory = [(k, name) for k, name in enumerate(names) if HIDDEN + name in self.frame.env]
        before = [self.frame.env[HIDDEN + name].term.name for _, name in memory]
        if hasattr(function, RULE):
            result = by_rule(self, node, function, [], {name: self.frame.env[name] for name, _ in self.specs})
        else:
            result = self.value(node.body) if isinstance(node, ast.Lambda) else self.body(node)
        self.w.at(source, node)
        if not names and not self.capture.arrays:
            raise CaptureError(f"`{function.__name__}` takes no numbers", remedy="give it an argument")
        after = [self.frame.env[HIDDEN + name] for _, name in memory]
        for value in after:
            if isinstance(value, Gone):
                self.w.fail(value.why, value.remedy)
        written = [k for k, (argument, _) in enumerate(memory) if after[k].term.name != before[k]]
        arrays = [after[k].term for k in written]
        if isinstance(result, Known) and result.value is None and arrays:
            # What the function writes is its result.
            leaves = arrays
            structure = None if len(arrays) == 1 else (tuple([None] * len(arrays)), False)
            returns = None
        else:
            leaves, structure = [], self.structure(result)
            self.collect(result, leaves)
            returns = len(leaves)
        pure = self.w.program.function(self.packed(leaves))
        if arrays:
            calling = self.w.program.function(self.packed([*leaves, *arrays])) if returns else pure
            self.capture.effects = Effects(calling, [memory[k][0] for k in written], returns or 0, structure if returns else False)
        self.capture.deciding = [k for k, name in enumerate(arguments) if name in self.w.deciding]
        return pure, names, structure, self.capture

    def packed(self, leaves):
        return leaves[0] if len(leaves) == 1 else self.w.program.tuple(leaves)

    def parameter(self, name, spec, names):
        """A parameter as a value; its leaves are added to `names`."""
        if spec[0] == "row":
            parts = [self.parameter(f"{name}_{k}", part, names) for k, part in enumerate(spec[1])]
            if spec[2] is True:
                self.given.append(Row(parts, True))
                return self.given[-1]
            return Row(parts, Form(spec[2].cls, spec[2].names, is_argument=True) if isinstance(spec[2], Record) else spec[2])
        if spec[0] == "known":
            return Known(spec[1].value)
        value = self.w.argument(name, spec[1], spec[2])
        names.append(value.term.name)
        if spec[0] == "exact" and spec[3] is not None:
            return Known(spec[3])
        if value.rank:
            self.frame.env[HIDDEN + value.term.name] = value
        if spec[1] == "i" and not spec[2]:
            self.w.integer_argument(value)
        elif spec[1] == "b" and not spec[2]:
            self.w.positions.append(None)
        return value

    def structure(self, value):
        """How a result is put together: `None` for a leaf, else its parts and whether it is a list."""
        if isinstance(value, Row):
            form = Record(value.is_list.cls, value.is_list.names) if isinstance(value.is_list, Form) else value.is_list
            return tuple(self.structure(item) for item in value.items), form
        if isinstance(value, Known) and not isinstance(value.value, (bool, int, float)) and not hasattr(value.value, "dtype"):
            self.w.fail(f"the function returns {describe(value)}", "return numbers, arrays or tuples of them")
        self.w.num(value)
        return None

    def collect(self, value, leaves):
        if isinstance(value, Row):
            for item in value.items:
                self.collect(item, leaves)
        else:
            leaves.append(self.w.num(value).term)


def capture(function, specs, has_rows=True, alike=(), has_negative=False):
    """Captures a Python function for parameters of these specifications; see :mod:`chainrule.capture.rows` for `has_rows`,
    :mod:`chainrule.fit` for `alike`, and :mod:`chainrule.sizes` for `has_negative`."""
    return attempts(lambda opened: Capture(function, specs, has_rows, alike, has_negative, opened).run())


__all__ = ["capture"]
