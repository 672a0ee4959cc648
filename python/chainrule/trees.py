"""Arguments and results that are put together of parts: tuples, lists, dicts, NamedTuples, dataclasses.

The form of one is `False` for a tuple, `True` for a list, and a :class:`Record` for what has names.
"""

from __future__ import annotations

import dataclasses
import sys

import numpy as np

from .errors import Error


class Record:
    """The class of a dict, a NamedTuple or a dataclass, and the names of its parts in order."""

    __slots__ = ("cls", "names")

    def __init__(self, cls, names):
        self.cls = cls
        self.names = tuple(names)

    def __eq__(self, other):
        return isinstance(other, Record) and self.cls is other.cls and self.names == other.names

    def __hash__(self):
        return hash((self.cls, self.names))

    def __repr__(self):
        return f"{self.cls.__name__}({', '.join(map(str, self.names))})"


class Filled:
    """A template of a record: its form and the templates of its parts."""

    __slots__ = ("form", "parts")

    def __init__(self, form, parts):
        self.form = form
        self.parts = parts


def parts_of(value):
    """The parts of an object and its form; `None` for numbers, arrays and other objects."""
    kind = type(value)
    if kind is tuple:
        return value, False
    if kind is dict:
        return tuple(value.values()), Record(dict, value)
    if kind is list:
        return (tuple(value), True) if any(is_part(item) for item in value) else None
    if isinstance(value, tuple):
        names = getattr(kind, "_fields", None)
        return tuple(value), False if names is None else Record(kind, names)
    if dataclasses.is_dataclass(kind):
        names = [field.name for field in dataclasses.fields(kind)]
        return tuple(getattr(value, name) for name in names), Record(kind, names)
    return None


def is_part(value):
    """Whether an item makes its list a list of parts: an array or what is put together, not numbers and lists of numbers."""
    return isinstance(value, np.ndarray) and value.ndim > 0 or type(value) is not list and parts_of(value) is not None \
        or type(value) is list and any(map(is_part, value))


def name_of_part(name, form, k):
    """A part in messages."""
    if not isinstance(form, Record):
        return f"{name}[{k}]"
    return f"{name}[{form.names[k]!r}]" if form.cls is dict else f"{name}.{form.names[k]}"


def put_together(form, parts):
    """The object of a form with these parts."""
    if form is False:
        return tuple(parts)
    if form is True:
        return list(parts)
    if form.cls is dict:
        return dict(zip(form.names, parts))
    if issubclass(form.cls, tuple):
        return form.cls(*parts)
    made = object.__new__(form.cls)
    for name, part in zip(form.names, parts):
        object.__setattr__(made, name, part)
    return made


def template(form, parts):
    """A template of an object of a form."""
    return Filled(form, tuple(parts)) if isinstance(form, Record) else put_together(form, parts)


def to_json(form):
    """A record's form as JSON."""
    for name in form.names:
        if type(name) not in (str, int, float, bool):
            raise Error(f"a dict with the key {name!r} cannot be saved", remedy="use strings as keys")
    return {"class": None if form.cls is dict else [form.cls.__module__, form.cls.__qualname__], "names": list(form.names)}


def from_json(parts):
    """The form of a record. Its class is one of a module that was imported: reading bytes imports nothing."""
    if parts["class"] is None:
        return Record(dict, parts["names"])
    module, path = parts["class"]
    found = sys.modules.get(module)
    for name in path.split("."):
        found = getattr(found, name, None)
    if not isinstance(found, type) or not (dataclasses.is_dataclass(found) or issubclass(found, tuple) and hasattr(found, "_fields")):
        raise Error(f"the class {path} of a saved function is not there", remedy=f"import {module} first")
    return Record(found, parts["names"])
