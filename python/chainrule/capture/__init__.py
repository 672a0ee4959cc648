"""Source capture: from a Python function and the kinds of its arguments to a function of the library.

| module | owns |
| --- | --- |
| `source` | source text and syntax trees of functions, places in them |
| `values` | what a value of a captured program is; extents as linear forms |
| `writer` | writing terms: arithmetic, broadcasting, conditions, loops; errors at a place |
| `frame` | names, what is read of modules and closures |
| `expressions`, `statements` | Python's syntax |
| `operators`, `ufuncs` | arithmetic and elementwise functions |
| `indexing`, `reductions`, `arrays`, `loops` | NumPy by what it does |
| `calls` | the tables of what may be called |
| `derivatives` | derivatives of functions inside of functions |
"""

from __future__ import annotations

import ast

from ..errors import CaptureError
from .expressions import Expressions
from .frame import Constants, Frame
from .source import of_function
from .statements import Statements
from .values import Dim, Known, Num, Row, Storage, describe
from .writer import Writer


class ArrayWriter(Writer):
    """A writer that makes arguments."""

    def argument(self, name, kind, ones, owner):
        """An argument of a kind; `ones` says of each axis whether its extent is 1."""
        sizes = [f"n_{name}{k}" if len(ones) > 1 else f"n_{name}" for k in range(len(ones))]
        type_ = {"f": "Double", "i": "Int", "b": "Bool"}[kind]
        extents = "".join("[1]" if one else f"[{size}]" for one, size in zip(ones, sizes))
        term = self.program.argument(name, extents + type_)
        dims = []
        for one, size in zip(ones, sizes):
            if one:
                dims.append(Dim(1))
                continue
            self.names[size] = self.program.size(size)
            self.not_negative.add(size)
            dims.append(Dim(0, {size: 1}))
        storage = Storage(argument=owner) if ones else None
        return Num(term, kind, dims, storage=storage)

    def array_argument(self, name, array):
        from ..arguments import kind_of_array
        return self.argument(name, kind_of_array(array, name), tuple(n == 1 for n in array.shape), name)


class Capture(Expressions, Statements):
    """One capture of one function."""

    def __init__(self, function, specs):
        self.w = ArrayWriter(function.__name__ if function.__name__.isidentifier() else "function")
        self.capture = Constants(self.w)
        self.frame = None
        self.depth = 0
        self.function = function
        self.specs = specs

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
        result = self.value(node.body) if isinstance(node, ast.Lambda) else self.body(node)
        self.w.at(source, node)
        leaves, structure = [], self.structure(result)
        self.collect(result, leaves)
        term = leaves[0] if len(leaves) == 1 else self.w.program.tuple(leaves)
        if not names and not self.capture.arrays:
            raise CaptureError(f"`{function.__name__}` takes no numbers", remedy="give it an argument")
        return self.w.program.function(term), names, structure, self.capture

    def parameter(self, name, spec, names):
        """A parameter as a value; its leaves are added to `names`."""
        if spec[0] == "row":
            parts = [self.parameter(f"{name}_{k}", part, names) for k, part in enumerate(spec[1])]
            return Row(parts, spec[2])
        if spec[0] == "known":
            return Known(spec[1].value)
        value = self.w.argument(name, spec[1], spec[2], name)
        names.append(value.term.name)
        if spec[1] == "i" and not spec[2]:
            self.w.names[value.term.name] = value.term
            value.dim = Dim(0, {value.term.name: 1})
        return value

    def structure(self, value):
        """How a result is put together: `None` for a leaf, else its parts and whether it is a list."""
        if isinstance(value, Row):
            return tuple(self.structure(item) for item in value.items), value.is_list
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


def capture(function, specs):
    """Captures a Python function for parameters of these specifications."""
    return Capture(function, specs).run()


__all__ = ["capture"]
