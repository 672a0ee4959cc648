"""Branches: both sides are run, and their variables merged."""

from __future__ import annotations

from .operations.operators import truth
from .shapes import count, pack, rebuild, shown
from .syntax import ends
from .values import Gone, Known, Local, Num, Row, describe, is_number

RETURN, CONTINUE, BREAK = "return", "continue", "break"
#: The variables of a frame that hold what is returned, whether a loop was left, and whether by `return`.
RESULT, LEFT, RETURNED = "return value", "loop was left", "loop has returned"


class Branches:
    """Runs `if` statements and conditional expressions."""

    def branch(self, node, rest):
        """Runs an `if`; `NotImplemented` where the block goes on with the statements after it."""
        condition = truth(self.w, self.condition(node.test))
        if isinstance(condition, bool):
            end = self.block(node.body if condition else node.orelse)
            return NotImplemented if end is None else end
        if not ends(node.body) and not ends(node.orelse):
            self.sides(condition, lambda: self.block(node.body), lambda: self.block(node.orelse))
            return NotImplemented
        # A side that ends by itself does not see the rest; the other one does.
        first = lambda: self.block([*node.body, *rest])
        second = lambda: self.block([*node.orelse, *rest])
        return self.sides(condition, first, second)

    def sides(self, condition, first, second):
        """Runs both sides of a branch and merges their variables; how they end, which has to be the same."""
        program = self.w.program
        before = self.snapshot()
        place = (self.w.source, self.w.node)
        program.open([])
        end = first()
        first_envs, blocks = [dict(frame.env) for frame, _ in before], [program.suspend()]
        self.restore(before)
        program.open([])
        other_end = second()
        second_envs = [dict(frame.env) for frame, _ in before]
        blocks.append(program.suspend())
        self.restore(before)
        self.w.at(*place)
        endings = {end, other_end}
        if RETURN in endings and endings != {RETURN}:
            self.w.fail("the function returns here on one path only", "let all paths return a value")
        pairs = {}
        for (frame, env), a, b in zip(before, first_envs, second_envs):
            if frame is self.frame:
                self.complete(a, b, blocks)
            frame.env.update({name: value for name, value in a.items() if b.get(name) is value})
            for name in [name for name in {**a, **b} if a.get(name) is not b.get(name)]:
                self.pair(frame, name, a.get(name), b.get(name), pairs)
        merged = self.merge(condition, blocks, [(names[0][1], a, b) for names, a, b in pairs.values()])
        for (names, *_), value in zip(pairs.values(), merged):
            for frame, name in names:
                frame.env[name] = value
        for (names, a, _), value in zip(pairs.values(), merged):
            if isinstance(value, Num) and value.rank:
                self.writes.append((a.storage if isinstance(a, Num) else value.storage, value))
        return RETURN if RETURN in endings else BREAK if endings == {BREAK} else CONTINUE if None not in endings else None

    def pair(self, frame, name, a, b, pairs):
        """Adds what a variable is on both sides to the pairs to merge; names of one array are one pair."""
        if a is None or b is None:
            frame.env[name] = Gone(f"`{name}` is assigned on one side of an `if` only", "assign it before the `if`")
        elif isinstance(a, Gone) or isinstance(b, Gone):
            frame.env[name] = a if isinstance(a, Gone) else b
        elif isinstance(a, Known) and isinstance(b, Known) and not is_number(a.value):
            if a.value is not b.value and a.value != b.value:
                self.w.fail(f"`{name}` is {describe(a)} or {describe(b)}, by data", "choose between numbers")
            frame.env[name] = a
        else:
            pairs.setdefault((id(a), id(b)), ([], a, b))[0].append((frame, name))

    def complete(self, a, b, blocks):
        """Where a loop is left on one side, by `break` or `return`, the other side has the variables that say so, too."""
        for name in (LEFT, RETURNED):
            if name in a or name in b:
                a.setdefault(name, Known(False))
                b.setdefault(name, Known(False))
        if RETURNED not in a or (RESULT in a) == (RESULT in b):
            return
        # A result that is never read.
        k, env, value = (1, b, a[RESULT]) if RESULT in a else (0, a, b[RESULT])
        self.w.program.resume(blocks[k])
        env[RESULT] = self.zeros(value)
        blocks[k] = self.w.program.suspend()

    def zeros(self, value):
        """Zeros in the shape of a value, whose extents have to be known here."""
        if isinstance(value, Row):
            return Row([self.zeros(item) for item in value.items], value.is_list)
        number = self.w.num(value)
        zero = self.w.cast(self.w.constant(0), number.kind)
        for dim in number.dims:
            if not all(self.w.names[name].is_visible for name in dim.coef):
                self.w.fail("an array whose size is computed in a loop is returned from the loop", "let its size be known before the loop")
        return self.w.build(number.dims, lambda _: zero, is_list=number.is_list) if number.rank else zero

    def choose_values(self, condition, first, second):
        """The value of one of two expressions, lazily."""
        name = "value of a conditional expression"

        def side(value):
            self.frame.env[name] = value()

        self.sides(condition, lambda: side(first), lambda: side(second))
        return self.frame.env.pop(name)

    def merge(self, condition, blocks, pairs):
        """One value for each pair, of the side that is taken; closes the blocks of both sides."""
        program = self.w.program
        shapes = [self.common_shape(name, a, b) for name, a, b in pairs]
        sides = []
        for k, block in enumerate(blocks):
            program.resume(block)
            leaves = [leaf for (_, *values), shape in zip(pairs, shapes) for leaf in self.flatten(values[k], shape)]
            sides.append(program.close(pack(program, leaves)))
        if not pairs:
            return []
        whole = program.choose(condition.term, *sides)
        total = sum(map(count, shapes))
        leaves = iter([whole] if total == 1 else [program.component(whole, k) for k in range(total)])
        return [rebuild(shape, leaves) for shape in shapes]

    def common_shape(self, name, a, b):
        """What both values are made to: a list for tuples, else the kind and extents of a number."""
        if isinstance(a, Row) and isinstance(b, Row) and len(a.items) == len(b.items) and a.is_like(b):
            return ("row", [self.common_shape(name, x, y) for x, y in zip(a.items, b.items)], a.is_list)
        if isinstance(a, (Local,)) or isinstance(b, (Local,)):
            self.w.fail(f"`{name}` is one of two functions, by data", "choose between their values")
        for value in (a, b):
            if isinstance(value, Known) and not is_number(value.value):
                other = b if value is a else a
                self.w.fail(f"`{shown(name)}` is {describe(value)} or {describe(other)}, by data", "let both be numbers")
        a, b = self.w.num(a), self.w.num(b)
        if a.rank != b.rank:
            self.w.fail(f"`{shown(name)}` is {describe(a)} or {describe(b)}, by data", "let both have one shape")
        dims = tuple(self.common_extent(name, first, second) for first, second in zip(a.dims, b.dims))
        kind = a.kind if a.kind == b.kind else self.w.common(a, b)
        storage = a.storage.union(b.storage) if a.rank else None
        return ("num", kind, dims, storage, a.is_list, a.is_view or b.is_view)

    def common_extent(self, name, first, second):
        """The extent of an array that is one of two, after both sides of the branch."""
        if first.known is not None and second.known is not None and first != second:
            self.w.fail(f"`{shown(name)}` has one of two shapes, by data", "let both have one shape")
        for extent in (first, second):
            outside = self.w.outside(extent)
            if outside is not None:
                return outside
        return self.w.fail(f"`{shown(name)}` has a size that is computed in a branch by data", "let its size be known before the branch")

    def flatten(self, value, shape):
        if shape[0] == "row":
            return [leaf for item, part in zip(value.items, shape[1]) for leaf in self.flatten(item, part)]
        return [self.w.cast(value, shape[1]).term]
