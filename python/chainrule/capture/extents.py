"""Extents: linear forms over names of the program, what is known of their order, and conditions on them.

A condition on sizes and on integers that are arguments is stated once, and checked at entry. Numbers that a program
computes are brought into range instead, as NumPy does.
"""

from __future__ import annotations

from .values import Dim, Num


def _with(write):
    """An operation that writes a term of the terms of linear forms."""
    return lambda w, *parts: write(w.program, [w.size(part).term for part in parts])


def _from_the_end(w, index, length):
    """An index that is counted from the end where it is negative."""
    from .operations.operators import scalar
    is_negative = scalar(w, "<", w.size(index), w.constant(0))
    return w.choose(is_negative, lambda: w.size(index + length), lambda: w.size(index)).term


#: The operations whose results have names of their own.
OPERATIONS = {
    "*": _with(lambda program, terms: program.infix("*", *terms)),
    "div": _with(lambda program, terms: program.apply("div", terms)),
    "steps": _with(lambda program, terms: program.apply("div", terms)),
    "min": _with(lambda program, terms: program.apply("min", terms)),
    "max": _with(lambda program, terms: program.apply("max", terms)),
    "from the end": _from_the_end,
}


class Extents:
    """Part of the writer. An extent that is not known to be 1 is taken to be at least 2: an empty array fails a condition."""

    def __init__(self):
        self.names = {}  # of sizes and integers in linear forms: their terms
        self.entry = set()  # those of them that are known at entry
        self.least = {}  # lower bounds of names
        self.limits = {}  # extents that names are less than
        self.steps = set()  # names of the numbers of steps of loops
        self.required = set()  # conditions that are stated already
        self.deciding = set()  # names on which it depends whether a condition or an index is known to be right
        self.made = {}  # names of quotients, minima and maxima of linear forms, so that equal ones are one
        self.formulas = {}  # of such names: the operation, and its linear forms

    def dim(self, value, what="a size"):
        """The linear form of an integer."""
        if isinstance(value, Dim):
            return value
        number = self.integer(value, what)
        if number.dim is not None:
            return number.dim
        name = number.term.name
        self.names[name] = number.term
        return Dim(0, {name: 1})

    def size(self, dim):
        """The integer of a linear form."""
        total = None
        for name, k in sorted(dim.coef.items(), key=lambda item: item[1] < 0):
            term = self.names[name]
            if k not in (1, -1) or (k == -1 and total is None):
                term, k = self.program.infix("*", self.program.integer(k), term), 1
            if total is None:
                total = term
            else:
                total = self.program.infix("+" if k == 1 else "-", total, term)
        if total is None:
            return Num(self.program.integer(dim.const), "i", dim=dim)
        if dim.const:
            sign = "+" if dim.const > 0 else "-"
            total = self.program.infix(sign, total, self.program.integer(abs(dim.const)))
        return Num(total, "i", dim=dim)

    def at_entry(self, name, term, least=None):
        """Notes that a term is known at entry."""
        self.names[name] = term
        self.entry.add(name)
        if least is not None:
            self.least[name] = least

    def counted(self, term, count):
        """Notes that a term is the number of a step of so many."""
        self.names[term.name] = term
        self.least[term.name] = 0
        self.limits[term.name] = count
        self.steps.add(term.name)

    def named(self, key, make, least=None, limit=None):
        """The extent of a term that no linear form is; one for each key."""
        name = self.made.get(key)
        if name is None or not self.names[name].is_visible:
            term = make()
            name = self.made[key] = term.name
            self.names[name] = term
            if least is not None:
                self.least[name] = least
            if limit is not None:
                self.limits[name] = limit
        return Dim(0, {name: 1})

    def symbol(self, operation, *parts, least=None, limit=None):
        """The extent that an operation makes of linear forms."""
        made = self.named((operation, *parts), lambda: OPERATIONS[operation](self, *parts), least, limit)
        (name,) = made.coef
        self.formulas[name] = (operation, parts)
        return made

    def outside(self, dim):
        """The linear form after the block that it was written in; `None` where it depends on that block.

        Operations on extents that are visible are written again.
        """
        found = Dim(dim.const)
        for name, k in dim.coef.items():
            if not self.names[name].is_visible:
                operation, parts = self.formulas.get(name, (None, ()))
                parts = [self.outside(part) for part in parts]
                if operation is None or None in parts:
                    return None
                limit = self.limits.get(name)
                (name,) = self.symbol(operation, *parts, least=self.least.get(name), limit=limit and self.outside(limit)).coef
            found = found + Dim(0, {name: k})
        return found

    def worst(self, dim):
        """A linear form that this one is at least, with the numbers of steps of loops at their ends."""
        for _ in range(30):
            name = next((name for name, k in reversed(dim.coef.items()) if name not in self.entry
                         and (self.limits if k < 0 else self.least).get(name) is not None), None)
            if name is None:
                break
            k = dim.coef[name]
            dim = dim - Dim(0, {name: k}) + ((self.limits[name] - 1) * k if k < 0 else self.least[name] * k)
        return dim

    def lower_bound(self, dim):
        """A number that a linear form is at least, or `None`."""
        dim = self.worst(dim)
        if any(k < 0 or name not in self.least for name, k in dim.coef.items()):
            return None
        return dim.const + sum(k * self.least[name] for name, k in dim.coef.items())

    def is_at_most(self, first, second):
        """Whether `first <= second` is known."""
        bound = self.lower_bound(second - first)
        return bound is not None and bound >= 0

    def undecided(self, *dims):
        """Notes that it is not known of linear forms which sign they have, or which are equal: what is known at entry decides."""
        self.deciding.update(name for dim in dims for name in self.worst(dim).coef if name in self.entry)

    def is_data(self, dim):
        """Whether a linear form has numbers that the program computes, not only sizes, integers that are arguments, and steps of loops."""
        return any(name not in self.entry and name not in self.steps for name in dim.coef)

    def is_known_at_entry(self, *dims):
        return all(name in self.entry for dim in dims for name in dim.coef)

    def within(self, dim, low, high):
        """A linear form brought into `low <= .. <= high`."""
        return self.at_most(self.at_least(dim, low), high)

    def at_least(self, dim, low):
        return self.ordered(low, dim, "max", dim, low)

    def at_most(self, dim, high):
        return self.ordered(dim, high, "min", dim, high)

    def ordered(self, small, large, name, dim, limit):
        """`dim`, where `small <= large`; else the limit. The order is known, or decided by the program; of sizes and integers that
        are arguments, and steps of loops, it is stated as a condition."""
        if self.is_at_most(small, large):
            return dim
        if self.is_at_most(large, small):
            return limit
        worst = self.worst(large - small)
        self.undecided(worst)
        if self.is_known_at_entry(worst) and worst.known is None and not self.is_data(large - small):
            self.require_not_negative(worst)
            return dim
        bounds = [self.lower_bound(dim), self.lower_bound(limit)]
        least = bounds[1] if name == "max" else None if None in bounds else min(bounds)
        return self.symbol(name, dim, limit, least=least, limit=limit + 1 if name == "min" else None)

    def shorter(self, first, second):
        """The smaller of two extents."""
        if self.is_at_most(first, second):
            return first
        if self.is_at_most(second, first):
            return second
        return self.symbol("min", first, second, least=0, limit=first + 1)

    def divided_up(self, length, step):
        """The number of steps that a length takes; a loop takes none where it is negative."""
        if length.known is not None:
            return Dim(max(-(-length.known // step), 0))
        if step == 1:
            return length
        return self.divided(length + (step - 1), step, "steps", least=0, limit=length + 1)

    def divided(self, dim, by, operation="div", least=None, limit=None):
        """The quotient by a positive number, rounded down; a number of steps has a name of its own, since none counts as 0."""
        if all(k % by == 0 for k in dim.coef.values()):
            return Dim(dim.const // by, {name: k // by for name, k in dim.coef.items()})
        bound = self.lower_bound(dim)
        if least is None and bound is not None:
            least = bound // by
        return self.symbol(operation, dim, Dim(by), least=least, limit=limit)

    def require_equal(self, first, second, what):
        """States that two extents are equal; an error where they are known not to be."""
        if first == second:
            return
        if first.known is not None and second.known is not None:
            self.fail(f"shapes do not agree: {what}", reason=f"the extents are {first.known} and {second.known}")
        pair = frozenset((first, second))
        if pair in self.required:
            return
        self.required.add(pair)
        if any(self.names[name].is_visible for name in self.limits):
            # Outside of loops, the condition is stated once, and known from then on.
            self.undecided(first - second)
        zeros = [self.build((dim,), lambda _: self.constant(0.0)).term for dim in (first, second)]
        self.program.apply("vectorZip", zeros)

    def require_not_negative(self, dim):
        """States that an integer is not negative."""
        if self.is_at_most(Dim(0), dim) or dim in self.required:
            return
        self.required.add(dim)
        self.undecided(dim)
        zeros = self.build((dim + 1,), lambda _: self.constant(0.0))
        self.program.get(zeros.term, [self.size(dim).term])
