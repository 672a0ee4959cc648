"""The writer of a program: terms of numbers and arrays, extents, conditions, errors at the current place."""

from __future__ import annotations

import numpy as np

from .. import _core
from ..errors import CaptureError
from .extents import Extents
from .values import Dim, Form, Gone, Known, Masked, Num, Row, describe, is_number


def is_empty(count):
    """Whether a loop never runs: indices in its body need not be in range."""
    return getattr(count, "known", None) is not None and count.known <= 0


class Writer(Extents):
    """Writes one program. `node` and `source` are the place that is being captured."""

    def __init__(self, name):
        self.program = _core.Program(name)
        Extents.__init__(self)
        self.masks = {}
        self.files = {}
        self.source = None
        self.node = None

    # Places and errors.

    def at(self, source, node):
        """Sets the place; the one before is given back."""
        before = self.source, self.node
        self.source, self.node = source, node
        if source is not None and hasattr(node, "lineno"):
            if source.name not in self.files:
                self.files[source.name] = self.program.source(source.name, source.text)
            start, end = source.span(node)
            self.program.locate(self.files[source.name], start, end)
        return before

    def fail(self, title, remedy=None, reason=None, node=None, error=CaptureError):
        node = self.node if node is None else node
        place = self.source.place(node) if self.source is not None and hasattr(node, "lineno") else None
        raise error(title, place=place, reason=reason, remedy=remedy)

    # Numbers.

    def constant(self, value):
        """The number of a known object."""
        if isinstance(value, (bool, np.bool_)):
            return Num(self.program.boolean(bool(value)), "b")
        if isinstance(value, (int, np.integer)):
            value = int(value)
            if not -(2**63) <= value < 2**63:
                self.fail(f"the integer {value} is too large", "write it as a float: integers have 64 bits")
            return Num(self.program.integer(value), "i", dim=Dim(value))
        return Num(self.program.real(float(value)), "f")

    def num(self, value):
        """A value as a number or an array."""
        if isinstance(value, Num):
            return value
        if isinstance(value, Known) and is_number(value.value):
            return self.constant(value.value)
        if isinstance(value, Row):
            if isinstance(value.is_list, Form) and not issubclass(value.is_list.cls, tuple):
                self.fail(f"{describe(value)} is used as a number", "use its parts")
            return self.stack([self.num(item) for item in value.items])
        if isinstance(value, Masked):
            self.fail("an array is indexed by truth values, and its elements are used as a whole",
                      "use `np.where(mask, a, b)`: sizes must not depend on data", node=value.node)
        if isinstance(value, Gone):
            self.fail(value.why, value.remedy)
        return self.fail(f"{describe(value)} is used as a number", "pass numbers and arrays of numbers")

    def scalar(self, value, what="a number"):
        value = self.num(value)
        if value.rank:
            self.fail(f"{describe(value)} is used as {what}", "take an element of it, or reduce it by `np.sum`")
        return value

    def cast(self, value, kind):
        """A number or an array of another kind, elementwise."""
        value = self.num(value)
        if value.kind == kind:
            return value
        if value.rank:
            return self.map(lambda x: self.cast(x, kind), value)
        if kind == "b":
            zero = self.constant(0 if value.kind == "i" else 0.0)
            return Num(self.program.infix("<>", value.term, zero.term), "b")
        if value.kind == "b":
            one, zero = (self.constant(k if kind == "i" else float(k)) for k in (1, 0))
            self.program.open([])
            then = self.program.close(one.term)
            self.program.open([])
            return Num(self.program.choose(value.term, then, self.program.close(zero.term)), kind)
        if kind == "f":
            return Num(self.program.apply("real", [value.term]), "f")
        return self.fail("a float is used as an int", "compute indices and sizes with integers: `//` instead of `/`")

    def common(self, *values):
        """The kind of arithmetic with these numbers."""
        kinds = {value.kind for value in values}
        return "f" if "f" in kinds else "i"

    def integer(self, value, what):
        value = self.scalar(value, what)
        if value.kind == "b":
            value = self.cast(value, "i")
        if value.kind != "i":
            self.fail(f"a float is used as {what}", "write an int, or `//` instead of `/`")
        return value

    # Arrays.

    def index(self, count=None):
        """Opens a block with an index, less than `count`."""
        term = self.program.open(["i"])[0]
        self.counted(term, count)
        return Num(term, "i", dim=Dim(0, {term.name: 1}))

    def build(self, dims, element, is_list=False):
        """The array of these extents: `element` of a list of indices is a number or an array."""
        counts = [self.size(dim).term for dim in dims]
        indices = [self.index(dim) for dim in dims]
        inner = element(indices)
        term = inner.term
        for count in reversed(counts):
            term = self.program.apply("build", [count, self.program.close(term)])
        parts = tuple(self.outside(dim) for dim in inner.dims)
        if None in parts:
            self.fail("the shapes of a loop's arrays are not known to be equal", "let no size depend on the loop's variable")
        return Num(term, inner.kind, (*dims, *parts), is_list=is_list)

    def element(self, array, indices):
        """The element, or the part, at these first indices."""
        if not indices:
            return array
        if array.kind == "i" and len(indices) == array.rank:
            # Read once, so that sizes and bounds that are equal are known to be.
            key = (array.term.name, *(index.dim or index.term.name for index in indices))
            name = self.named(key, lambda: self.program.get(array.term, [index.term for index in indices])).coef
            (name,) = name
            return Num(self.names[name], "i", dim=Dim(0, {name: 1}))
        term = self.program.get(array.term, [index.term for index in indices])
        return Num(term, array.kind, array.dims[len(indices):], storage=array.storage, is_view=True)

    def checked(self, index, dim):
        """An index to write at: the program fails where it lies outside of an axis. Reads are checked by themselves."""
        form = index.dim
        if form is not None and self.is_at_most(Dim(0), form) and self.is_at_most(form + 1, dim):
            return index
        if form is not None:
            self.undecided(dim - form)
        zeros = self.build((dim,), lambda _: self.constant(0))
        zero = self.program.get(zeros.term, [index.term])
        return Num(self.program.infix("+", index.term, zero), "i", dim=form)

    def broadcast(self, *arrays):
        """The common extents of arrays."""
        rank = max(array.rank for array in arrays)
        dims = []
        for k in range(rank):
            chosen = None
            for array in arrays:
                axis = k - (rank - array.rank)
                if axis < 0 or array.dims[axis].known == 1:
                    continue
                if chosen is None:
                    chosen = array.dims[axis]
                elif chosen != array.dims[axis]:
                    if chosen.known is None and array.dims[axis].known is not None:
                        chosen, other = array.dims[axis], chosen
                    else:
                        other = array.dims[axis]
                    self.require_equal(chosen, other, "arrays are combined elementwise")
            dims.append(Dim(1) if chosen is None else chosen)
        return tuple(dims)

    def spread(self, array, indices):
        """The element of an array at indices of the broadcast extents."""
        own = indices[len(indices) - array.rank:] if array.rank else []
        zero = self.constant(0) if any(dim.known == 1 for dim in array.dims) else None
        return self.element(array, [zero if dim.known == 1 else i for dim, i in zip(array.dims, own)])

    def map(self, function, *arrays):
        """A function of numbers, elementwise with broadcasting."""
        under = [array for array in arrays if isinstance(array, Masked)]
        if under:
            return self.map_masked(function, arrays, under[0])
        arrays = [self.num(array) for array in arrays]
        dims = self.broadcast(*arrays)
        if not dims:
            return function(*arrays)
        return self.build(dims, lambda indices: function(*(self.spread(array, indices) for array in arrays)))

    def mask(self, key, make):
        """An array of truth values, the same one for each key: elements under it are known to be under one mask."""
        found = self.masks.get(key)
        if found is None or not found.term.is_visible:
            found = self.masks[key] = make()
        return Num(found.term, found.kind, found.dims)

    def map_masked(self, function, arrays, first):
        """A function of elements under one mask and of numbers: evaluated where the mask is true."""
        mask = first.mask
        for array in arrays:
            if isinstance(array, Masked) and not array.is_under(mask):
                self.fail("elements under one mask are combined with elements under another one", "give the mask a name, and use it for both")
            rank = first.array.rank - mask.rank
            if isinstance(array, Masked) and array.array.rank != first.array.rank or not isinstance(array, Masked) and self.num(array).rank > rank:
                self.fail("elements under a mask are combined with an array", "index the array by the mask, too")

        def element(i):
            kinds = []

            def inside():
                made = function(*(self.element(a.array, i) if isinstance(a, Masked) else self.spread(self.num(a), i) for a in arrays))
                kinds.append(made.kind)
                return made

            return self.choose(self.element(mask, i[:mask.rank]), inside, lambda: self.cast(self.constant(0), kinds[0]))

        return Masked(self.build(first.array.dims, element), mask, first.node)

    def broadcast_to(self, array, dims):
        """The array with more extents, its elements repeated."""
        if array.rank == len(dims) and all(a == b for a, b in zip(array.dims, dims)):
            return array
        if array.rank > len(dims):
            self.fail(f"{describe(array)} has a shape that does not fit")
        for own, dim in zip(reversed(array.dims), reversed(dims)):
            if own.known != 1:
                self.require_equal(dim, own, "an array is broadcast")
        return self.build(dims, lambda indices: self.spread(array, indices))

    def stack(self, parts, is_list=False):
        """The array of these numbers or arrays of one shape."""
        if not parts:
            self.fail("an array without elements is written", "use `np.zeros(0)`")
        kind = "b" if all(part.kind == "b" for part in parts) else self.common(*parts)
        parts = [self.cast(part, kind) for part in parts]
        for part in parts[1:]:
            if part.rank != parts[0].rank:
                self.fail("the elements of an array have different dimensions")
            for first, other in zip(parts[0].dims, part.dims):
                self.require_equal(first, other, "they are put into one array")
        term = self.program.array([part.term for part in parts])
        return Num(term, kind, (Dim(len(parts)), *parts[0].dims), is_list=is_list)

    # Loops.

    def reduce(self, count, start, step):
        """The fold of `step(state, index)` from a number or an array."""
        if is_empty(count):
            return start
        term = self.size(count).term
        state, index = self.program.open(["s", "i"])
        self.counted(index, count)
        after = step(Num(state, start.kind, start.dims), Num(index, "i", dim=Dim(0, {index.name: 1})))
        lambda_ = self.program.close(after.term)
        return Num(self.program.apply("ifold", [lambda_, start.term, term]), start.kind, start.dims)

    def total(self, dims, element):
        """The sum over indices of these extents of a float."""
        if any(is_empty(dim) for dim in dims):
            return self.constant(0.0)
        counts = [self.size(dim).term for dim in dims]
        indices = [self.index(dim) for dim in dims]
        term = element(indices).term
        for count in reversed(counts):
            term = self.program.apply("sum", [count, self.program.close(term)])
        return Num(term, "f")

    def choose(self, condition, then, otherwise):
        """One of two numbers of a kind, lazily; `then` and `otherwise` write them."""
        self.program.open([])
        first = then()
        first_block = self.program.suspend()
        self.program.open([])
        second = otherwise()
        second_block = self.program.suspend()
        kind = first.kind if first.kind == second.kind else self.common(first, second)
        self.program.resume(first_block)
        first_lambda = self.program.close(self.cast(first, kind).term)
        self.program.resume(second_block)
        second_lambda = self.program.close(self.cast(second, kind).term)
        term = self.program.choose(condition.term, first_lambda, second_lambda)
        return Num(term, kind, first.dims)
