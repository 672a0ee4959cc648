"""Values of a program that is being captured, and extents of arrays.

An extent is a linear form over sizes and integers of the program, so that extents that are equal are known to be equal.
"""

from __future__ import annotations

import numpy as np


class Dim:
    """A linear form: `const` and the integer factors of names of the program."""

    __slots__ = ("coef", "const")

    def __init__(self, const=0, coef=None):
        self.const = const
        self.coef = {name: k for name, k in (coef or {}).items() if k}

    @property
    def known(self):
        """The number, where the form has no names."""
        return None if self.coef else self.const

    def __add__(self, other):
        if isinstance(other, int):
            return Dim(self.const + other, self.coef)
        coef = dict(self.coef)
        for name, k in other.coef.items():
            coef[name] = coef.get(name, 0) + k
        return Dim(self.const + other.const, coef)

    def __mul__(self, factor):
        return Dim(self.const * factor, {name: k * factor for name, k in self.coef.items()})

    def __sub__(self, other):
        return self + (-other if isinstance(other, int) else other * -1)

    def __eq__(self, other):
        return isinstance(other, Dim) and self.const == other.const and self.coef == other.coef

    def __hash__(self):
        return hash((self.const, tuple(sorted(self.coef.items()))))

    def __repr__(self):
        return " + ".join([f"{k}*{name}" for name, k in self.coef.items()] + [str(self.const)])


class Storage:
    """The memory of an array. Arrays that share a root may be views of each other; those of one storage are.

    `constant` is the name of an array that the function reads without taking it.
    """

    __slots__ = ("constant", "roots")

    def __init__(self, roots=None, constant=None):
        self.constant = constant
        self.roots = frozenset((self,)) if roots is None else roots

    def shares(self, other):
        return not self.roots.isdisjoint(other.roots)

    def union(self, other):
        """The storage of an array that is one of two."""
        if self is other:
            return self
        return Storage(self.roots | other.roots, self.constant or other.constant)


def storages(value):
    """The storages of the arrays in a value."""
    if isinstance(value, Row):
        return [storage for item in value.items for storage in storages(item)]
    return [value.storage] if isinstance(value, Num) and value.rank else []


class Num:
    """A number or an array: a term of the program, its kind (`f`, `i`, `b`), its extents.

    `dim` is the linear form of an integer; `storage` is where the elements of an array are; `is_list` says that it stands
    for a Python list, `is_view` that it is a part of the memory of another array.
    """

    __slots__ = ("term", "kind", "dims", "dim", "storage", "is_list", "is_view")

    def __init__(self, term, kind, dims=(), dim=None, storage=None, is_list=False, is_view=False):
        self.term = term
        self.kind = kind
        self.dims = tuple(dims)
        self.dim = dim
        self.storage = storage or (Storage() if dims else None)
        self.is_list = is_list
        self.is_view = is_view

    @property
    def rank(self):
        return len(self.dims)


class Masked:
    """The elements of an array under a mask: `array` has them where `mask` is true, and anything elsewhere.

    The mask has all axes of the array, or the first one.
    """

    __slots__ = ("array", "mask", "node")

    def __init__(self, array, mask, node=None):
        self.array = array
        self.mask = mask
        self.node = node  # where the mask was used

    def is_under(self, mask):
        return self.mask.term.name == mask.term.name


class Known:
    """A Python object that is known while the function is captured."""

    __slots__ = ("value",)

    def __init__(self, value):
        self.value = value


class Form:
    """The names of a record's items, and its class. Variables with one form stand for one dict or object.

    `is_argument` says that the object is the caller's.
    """

    __slots__ = ("cls", "names", "is_argument")

    def __init__(self, cls, names, is_argument=False):
        self.cls = cls
        self.names = tuple(names)
        self.is_argument = is_argument

    def is_like(self, other):
        return isinstance(other, Form) and self.cls is other.cls and self.names == other.names


class Row:
    """A tuple or list of known length, or a record: then `is_list` is its form."""

    __slots__ = ("items", "is_list")

    def __init__(self, items, is_list=False):
        self.items = list(items)
        self.is_list = is_list

    def is_like(self, other):
        """Whether both are tuples, lists, or records of one class with the same names."""
        return self.is_list.is_like(other.is_list) if isinstance(self.is_list, Form) else self.is_list == other.is_list


class Local:
    """A function defined inside a captured function: its node and the frame that it sees."""

    __slots__ = ("node", "frame", "name")

    def __init__(self, node, frame, name):
        self.node = node
        self.frame = frame
        self.name = name


class Partial:
    """A function with some of its arguments: `functools.partial`."""

    __slots__ = ("function", "args", "kwargs")

    def __init__(self, function, args, kwargs):
        self.function = function
        self.args = args
        self.kwargs = kwargs


class Bound:
    """A method of a value."""

    __slots__ = ("value", "name")

    def __init__(self, value, name):
        self.value = value
        self.name = name


class Gone:
    """A name that has no value here, and why."""

    __slots__ = ("why", "remedy")

    def __init__(self, why, remedy):
        self.why = why
        self.remedy = remedy


class Loop:
    """Something that is iterated over: `count` (an extent), `element(index)`, the storages of arrays that it reads."""

    __slots__ = ("count", "element", "storages")

    def __init__(self, count, element, storages=()):
        self.count = count
        self.element = element
        self.storages = storages


KINDS = {"f": "float64", "i": "int64", "b": "bool"}


def is_number(value):
    """Whether a known object is a number of Python or NumPy."""
    return isinstance(value, (bool, int, float, np.bool_, np.integer, np.floating))


def known_number(value):
    """The value; a known object for an integer whose number is known."""
    is_constant = isinstance(value, Num) and value.dim is not None and value.dim.known is not None
    return Known(value.dim.known) if is_constant else value


def is_given(option):
    """Whether an optional argument is neither left out nor `None`, nor what NumPy has for such ones."""
    value = None if option is None else getattr(option, "value", option)
    return value is not None and value is not np._NoValue


def describe(value):
    """A value in words, for messages."""
    if isinstance(value, Num):
        if value.rank == 0:
            return {"f": "a float", "i": "an int", "b": "a bool"}[value.kind]
        return f"an array of {value.rank} dimension{'s' if value.rank > 1 else ''} of {KINDS[value.kind]}"
    if isinstance(value, Known):
        return f"`{value.value!r}`" if is_number(value.value) or value.value is None else f"a {type(value.value).__name__}"
    if isinstance(value, Row) and isinstance(value.is_list, Form):
        return f"a {value.is_list.cls.__name__}"
    if isinstance(value, Row):
        return f"a {'list' if value.is_list else 'tuple'} of {len(value.items)}"
    if isinstance(value, Gone):
        return "nothing"
    if isinstance(value, Masked):
        return "an array whose size depends on data"
    return "a function"
