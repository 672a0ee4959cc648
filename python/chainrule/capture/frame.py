"""Names: from the variables of a captured function to those of its module; objects as values.

What is read of modules and closures is remembered, with what it was: a captured function is valid as long as that is so.
"""

from __future__ import annotations

import builtins
import types

import numpy as np

from .values import Gone, Known, Local, Num, Row, is_number

MISSING = object()
#: Modules whose attributes do not change.
CONSTANT_MODULES = ("numpy", "math", "scipy", "chainrule", "builtins")


class Dependency:
    """Something that was read while capturing: `read()` gives it again; `place` is the dict with the key, or the object with
    the attribute, that it was read from."""

    __slots__ = ("read", "value", "snapshot", "place")

    def __init__(self, read, value, place=None):
        self.read = read
        self.value = value
        self.snapshot = list(value) if isinstance(value, list) else None
        self.place = place

    def holds(self):
        try:
            now = self.read()
        except (KeyError, ValueError, AttributeError):
            return False
        if now is not self.value:
            same = type(now) is type(self.value) and is_number(now) and (now == self.value or now != now)
            if not same:
                return False
        return self.snapshot is None or now == self.snapshot


class Frame:
    """The variables of one call that is inlined."""

    def __init__(self, capture, source, module, closure, parent=None, name="?"):
        self.capture = capture
        self.source = source
        self.module = module  # the globals
        self.closure = closure  # names to cells
        self.parent = parent
        self.name = name
        self.env = {}
        self.n_loops = 0  # that are being run
        self.own = frozenset()  # names that the function assigns: they are never those of the module

    def lookup(self, name):
        frame = self
        while frame is not None:
            if name in frame.env:
                return frame.env[name]
            if name in frame.own:
                return Gone(f"`{name}` is read before it is assigned", "assign it before")
            if frame.parent is None:
                break
            frame = frame.parent
        capture = self.capture
        if name in frame.closure:
            cell = frame.closure[name]
            try:
                value = cell.cell_contents
            except ValueError:
                return None
            return capture.read(lambda: cell.cell_contents, value, (cell, "cell_contents"))
        if name in frame.module:
            module = frame.module
            return capture.read(lambda: module[name], module[name], (module, name))
        if hasattr(builtins, name):
            return Known(getattr(builtins, name))
        return None


class Effects:
    """What a call writes to its arguments: `function` has them as results, after the `n_results` that are returned."""

    __slots__ = ("function", "leaves", "n_results", "structure")

    def __init__(self, function, leaves, n_results, structure):
        self.function = function
        self.leaves = leaves  # numbers of the argument leaves that are written
        self.n_results = n_results
        self.structure = structure  # of what is returned; `False` for nothing


class Constants:
    """Arrays that a function reads without taking them: further arguments of the program."""

    def __init__(self, writer):
        self.writer = writer
        self.arrays = []
        self.dependencies = []
        self.lifted = {}
        self.effects = None
        self.deciding = []  # positions of extents and integers: see :mod:`chainrule.fit`

    def read(self, read, value, place=None):
        """A value of the surroundings, which is remembered."""
        self.dependencies.append(Dependency(read, value, place))
        return self.lift(value)

    def lift(self, value):
        """A Python object as a value of the program."""
        if isinstance(value, np.ndarray):
            return self.array(value)
        if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
            return Row([self.lift(item) for item in value], isinstance(value, list))
        return Known(value)

    def array(self, value):
        known = self.lifted.get(id(value))
        if known is None:
            known = self.writer.array_argument(f"constant{len(self.arrays)}", value)
            self.arrays.append(value)
            self.lifted[id(value)] = known
        return known

    def attribute(self, value, name):
        """An attribute of a known object."""
        found = getattr(value, name, MISSING)
        if found is MISSING:
            return None
        if isinstance(value, np.ufunc):
            return Known(found)
        if isinstance(value, types.ModuleType) and value.__name__.split(".")[0] in CONSTANT_MODULES:
            return Known(found)
        return self.read(lambda: getattr(value, name), found, (value, name))


__all__ = ["Constants", "Dependency", "Frame", "Gone", "Local", "Num"]
