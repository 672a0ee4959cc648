"""Annotations of arguments with dtypes and shapes: `x: cr.F64["n", 3]`, checked at each call whose shapes are new.

An extent is a number, a name, a sum or product of both (`"n + 1"`), `None` for any; `...` in front stands for any axes. Names that several arguments share have one
value within a call. An array type in front, `cr.F64[np.ndarray, "n", 3]`, is for type checkers, which read `Annotated`.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import operator
import types
import typing

import numpy as np

from .errors import CaptureError, Error, ShapeError, TypeError_

KINDS = {"f": "F64", "i": "I64", "b": "Bool"}
WORDS = {"f": "floats", "i": "integers", "b": "truth values"}
OPERATIONS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv}


class Shaped:
    """An array of floats (`F64`), integers (`I64`) or truth values (`Bool`) of a shape."""

    def __init__(self, kind, extents=(...,)):
        self.kind, self.extents = kind, extents

    def __getitem__(self, item):
        items = list(item) if isinstance(item, tuple) else [item]
        if items and isinstance(items[0], type):
            items = items[1:]
        if len(items) == 1 and isinstance(items[0], str) and len(items[0].split()) > 1 and not set("+-*/") & set(items[0]):
            items = [int(word) if word.isdigit() else ... if word == "..." else word for word in items[0].split()]
        for k, extent in enumerate(items):
            if extent is ... and k > 0:
                raise TypeError_("`...` stands for the first axes", remedy=f'{KINDS[self.kind]}[..., "n"]')
            if isinstance(extent, bool) or not (extent is None or extent is ... or isinstance(extent, (int, str))):
                raise TypeError_(f"{extent!r} is no extent", remedy='an extent is a number, a name, a sum such as "n + 1", or None')
            if isinstance(extent, str):
                names_in(extent)
        return Shaped(self.kind, tuple(items))

    def __or__(self, other):
        return typing.Union[self, other]

    def __ror__(self, other):
        return typing.Union[other, self]

    def __call__(self, *args):
        raise TypeError(f"{self!r} is an annotation")

    def __repr__(self):
        inside = ", ".join("..." if extent is ... else repr(extent) for extent in self.extents) or "()"
        return f"{KINDS[self.kind]}[{inside}]" if self.extents != (...,) else KINDS[self.kind]

    def __eq__(self, other):
        return isinstance(other, Shaped) and (self.kind, self.extents) == (other.kind, other.extents)

    def __hash__(self):
        return hash((self.kind, self.extents))


F64, I64, Bool = Shaped("f"), Shaped("i"), Shaped("b")


def names_in(text):
    """The names in an extent."""
    return {node.id for node in ast.walk(parsed(text)) if isinstance(node, ast.Name)}


def parsed(text):
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except SyntaxError:
        tree = None
    def is_fine(node):
        return isinstance(node, ast.Name) or isinstance(node, ast.Constant) and type(node.value) is int or isinstance(node, ast.BinOp) \
            and type(node.op) in OPERATIONS and is_fine(node.left) and is_fine(node.right)
    if tree is None or not is_fine(tree):
        raise TypeError_(f"{text!r} is no extent", remedy='an extent is a number, a name, a sum such as "n + 1", or None')
    return tree


def value_of(node, known):
    if isinstance(node, ast.BinOp):
        left, right = value_of(node.left, known), value_of(node.right, known)
        if isinstance(node.op, ast.FloorDiv) and right == 0:
            return None
        return None if left is None or right is None else OPERATIONS[type(node.op)](left, right)
    return node.value if isinstance(node, ast.Constant) else known.get(node.id, (None,))[0]


class Annotations:
    """The annotated arguments of a function. A call checks the arguments, given in order."""

    def __init__(self, function, found):
        self.function = function
        self.found = found  # positions, names and annotations

    def __call__(self, values):
        leaves = [leaf for position, name, annotation in self.found if position < len(values)
                  for leaf in arrays_of(annotation, values[position], name, name)]
        known = {}  # of each name its value, and the argument that shows it
        for array, shaped, name, argument in leaves:
            self.check_kind(array, shaped, name, argument)
            for extent, size in self.pairs(array, shaped, name, argument):
                if isinstance(extent, str) and extent.strip().isidentifier():
                    before = known.setdefault(extent.strip(), (size, name, np.shape(array)))
                    if before[0] != size and before[1] == name:
                        raise ShapeError(f"`{name}` has the shape {np.shape(array)}, and is annotated {shaped}", place=self.place(argument),
                                         reason=f"`{extent.strip()}` is {before[0]} and {size}")
                    if before[0] != size:
                        raise ShapeError(
                            f"`{before[1]}` has the shape {before[2]} and `{name}` the shape {np.shape(array)}", place=self.place(argument),
                            reason=f"`{extent.strip()}` is {before[0]} in `{before[1]}` and {size} in `{name}`: {shaped}",
                            remedy="pass arrays whose extents of one name agree")
        for array, shaped, name, argument in leaves:
            for extent, size in self.pairs(array, shaped, name, argument):
                wanted = value_of(parsed(extent), known) if isinstance(extent, str) else extent
                if wanted is not None and wanted != size:
                    others = sorted(names_in(extent) & set(known)) if isinstance(extent, str) else []
                    said = "".join(f", where `{other}` is {known[other][0]} in `{known[other][1]}` of the shape {known[other][2]}" for other in others)
                    raise ShapeError(f"`{name}` has the shape {np.shape(array)}, and is annotated {shaped}", place=self.place(argument),
                                     reason=f"an extent is {size}, not {wanted}{said}")

    def check_kind(self, array, shaped, name, argument):
        kind = np.asarray(array).dtype.kind
        kind = "i" if kind == "u" else kind
        if kind in KINDS and kind != shaped.kind:
            raise TypeError_(f"`{name}` is annotated {shaped}, and has {WORDS[kind]}", place=self.place(argument),
                             remedy=f"pass {WORDS[shaped.kind]}: `a.astype({ {'f': 'float', 'i': 'int', 'b': 'bool'}[shaped.kind]})`")

    def pairs(self, array, shaped, name, argument):
        """The extents of an annotation and of an array."""
        shape, extents = np.shape(array), shaped.extents
        is_open = bool(extents) and extents[0] is ...
        extents = extents[1:] if is_open else extents
        if len(shape) < len(extents) or not is_open and len(shape) != len(extents):
            raise ShapeError(f"`{name}` has the shape {shape}, and is annotated {shaped}", place=self.place(argument),
                             reason=f"it has {len(shape)} axes, not {'at least ' if is_open else ''}{len(extents)}")
        return list(zip(extents, shape[len(shape) - len(extents):]))

    def place(self, argument):
        """The place of an argument in the user's file."""
        from .capture.source import of_function
        try:
            source, node = of_function(self.function)
        except (CaptureError, OSError, TypeError):
            return None
        spec = node.args
        return next((source.place(part) for part in [*spec.posonlyargs, *spec.args, spec.vararg, *spec.kwonlyargs] if part is not None and part.arg == argument), None)


def arrays_of(annotation, value, name, argument):
    """The arrays in an argument with their annotations."""
    from .trees import Record, name_of_part, parts_of
    if isinstance(annotation, Shaped):
        if value is not None and not isinstance(value, (str, dict)):
            yield value, annotation, name, argument
        return
    origin, inner = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType):
        shaped = [part for part in inner if part is not type(None)]
        if value is not None and len(shaped) == 1:
            yield from arrays_of(shaped[0], value, name, argument)
        return
    found = parts_of(value)
    if found is None:
        return
    parts, form = found
    if origin is tuple and len(inner) == 2 and inner[1] is ... or origin is list:
        inner = [inner[0]] * len(parts)
    elif origin is dict:
        inner = [inner[1]] * len(parts)
    elif isinstance(form, Record) and isinstance(annotation, type) and (dataclasses.is_dataclass(annotation) or hasattr(annotation, "_fields")):
        hints = annotated(annotation)
        inner = [hints.get(field) for field in form.names]
    elif origin is not tuple:
        return
    for k, (part, one) in enumerate(zip(parts, inner)):
        yield from arrays_of(one, part, name_of_part(name, form, k), argument)


def has_shapes(annotation, depth=0):
    """Whether an annotation says the shape of an array somewhere."""
    if isinstance(annotation, Shaped):
        return True
    if depth > 8:
        return False
    if isinstance(annotation, type) and (dataclasses.is_dataclass(annotation) or hasattr(annotation, "_fields")):
        return any(has_shapes(one, depth + 1) for one in annotated(annotation).values())
    return any(has_shapes(one, depth + 1) for one in typing.get_args(annotation))


def annotated(owner):
    """The annotations of a function or a class. Those in quotes are evaluated where their names are known."""
    try:
        return inspect.get_annotations(owner, eval_str=True)
    except Exception:  # noqa: BLE001, a name that is known to type checkers only
        found = inspect.get_annotations(owner)
    closure = inspect.getclosurevars(owner).nonlocals if isinstance(owner, types.FunctionType) else {}
    names = {**getattr(owner, "__globals__", {}), **closure}
    made = {}
    for name, annotation in found.items():
        try:
            made[name] = eval(annotation, names) if isinstance(annotation, str) else annotation  # noqa: S307, the user's own annotation
        except Error:
            raise
        except Exception:  # noqa: BLE001
            continue
    return made


def of_function(python, names):
    """The annotations with shapes of a function's arguments; `None` without any."""
    hints = annotated(python)
    for parameter in inspect.signature(python).parameters.values():
        if parameter.kind is parameter.VAR_POSITIONAL and has_shapes(hints.get(parameter.name)):
            hints[parameter.name] = tuple[hints[parameter.name], ...]
    found = [(position, name, hints[name]) for position, name in enumerate(names) if name in hints and has_shapes(hints[name])]
    return Annotations(python, found) if found else None
