"""Dicts with known keys, NamedTuples and dataclasses: tuples whose items have names."""

from __future__ import annotations

import dataclasses
import inspect

from .source import is_python_function
from .values import Bound, Form, Known, Row, describe


def is_record_class(cls):
    """Whether calling a class makes a record."""
    if not isinstance(cls, type):
        return False
    if dataclasses.is_dataclass(cls):
        return "__init__" in cls.__dict__ and not hasattr(cls, "__post_init__")
    return issubclass(cls, tuple) and hasattr(cls, "_fields")


def construct(w, cls, args, kwargs, lift):
    """A record of a class."""
    try:
        bound = inspect.signature(cls).bind(*args, **kwargs)
    except TypeError as error:
        w.fail(f"{cls.__name__}() {error}")
    given = bound.arguments
    names, items = [], []
    for name, parameter in inspect.signature(cls).parameters.items():
        names.append(name)
        if name in given:
            items.append(given[name])
            continue
        default = parameter.default
        if default is dataclasses._HAS_DEFAULT_FACTORY:
            w.fail(f"the field `{name}` of {cls.__name__} has a default that is made by a function", "pass it")
        items.append(lift(default))
    return Row(items, Form(cls, names))


def item(w, row, name):
    """The item of this name."""
    names = row.is_list.names
    return row.items[names.index(name)] if name in names else None


def attribute(w, row, name, lift):
    """An attribute of a record: a field, a method, a constant of its class."""
    form = row.is_list
    if form.cls is dict:
        return Bound(row, name) if name in DICT_METHODS else w.fail(f"`.{name}` of a dict cannot be compiled", f"supported are {', '.join(DICT_METHODS)}")
    if name in form.names:
        return item(w, row, name)
    found = inspect.getattr_static(form.cls, name, None)
    if name in ("_replace",):
        return Bound(row, name)
    if is_python_function(found):
        return Bound(row, name)
    if isinstance(found, property):
        return Bound(row, name)
    if found is None:
        w.fail(f"{describe(row)} has no attribute '{name}'")
    return lift(getattr(form.cls, name))


def replaced(w, row, changes):
    """The record with other items."""
    form = row.is_list
    for name in changes:
        if name not in form.names:
            w.fail(f"{describe(row)} has no field '{name}'")
    return Row([changes.get(name, old) for name, old in zip(form.names, row.items)], Form(form.cls, form.names))


def with_item(w, row, name, value):
    """The record after `record[name] = value`: the same record, with another value or a further item."""
    form = row.is_list
    if name in form.names:
        return Row([value if key == name else old for key, old in zip(form.names, row.items)], form)
    return Row([*row.items, value], Form(form.cls, [*form.names, name]))


def _get(w, row, key, default=Known(None)):
    found = item(w, row, key.value)
    return default if found is None else found


DICT_METHODS = {
    "items": lambda w, row: Row([Row([Known(key), value]) for key, value in zip(row.is_list.names, row.items)]),
    "keys": lambda w, row: Row([Known(key) for key in row.is_list.names]),
    "values": lambda w, row: Row(row.items),
    "get": _get,
    "copy": lambda w, row: Row(row.items, Form(dict, row.is_list.names)),
}
