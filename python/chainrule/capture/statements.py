"""Statements of Python: assignments, branches, loops, returns.

A block is run in the frame's variables and says how it ends: `None` where it goes on, or `RETURN`, `CONTINUE`, `BREAK`. A
branch in which one of these stands is run with the statements after it, so that both sides end in one way.
"""

from __future__ import annotations

import ast

from . import indexing, loops
from .expressions import phrase
from .frame import Gone
from .operators import ARITHMETIC, binary, scalar, truth
from .values import Dim, Known, Local, Num, Row, Storage, describe, is_number, storages

RETURN, CONTINUE, BREAK = "return", "continue", "break"
#: The variables of a frame that hold what is returned, and whether a loop was left.
RESULT, LEFT = "return value", "loop was left"
#: How many steps a `while` may take. Beyond a million, reverse mode keeps 32 states and computes the others again.
WHILE_LIMIT = 1_000_000_000


class Statements:
    """Runs statements in `self.frame`."""

    def body(self, node):
        """The value that a function returns."""
        end = self.block(node.body)
        if end != RETURN:
            return Known(None)
        return self.frame.env.pop(RESULT)

    def own_names(self, node):
        """The names that a function assigns."""
        return frozenset() if isinstance(node, ast.Lambda) else frozenset(written_names(node.body))

    def block(self, statements):
        for k, node in enumerate(statements):
            before = self.w.at(self.frame.source, node)
            if isinstance(node, ast.If):
                end = self.branch(node, statements[k + 1:])
                if end is not NotImplemented:
                    self.w.at(*before)
                    return end
                continue
            method = getattr(self, f"do_{type(node).__name__}", None)
            if method is None:
                self.w.fail(f"{phrase(node)} cannot be compiled", "captured functions compute numbers only")
            end = method(node)
            self.w.at(*before)
            if end is not None:
                return end
        return None

    # Simple statements.

    def do_Pass(self, node):
        pass

    def do_Expr(self, node):
        if isinstance(node.value, ast.Constant):
            return
        value = node.value
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "print":
            self.w.fail("`print` cannot be compiled", "return the number and print it outside")
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in ("append", "extend"):
            self.w.fail(f"`.{value.func.attr}` cannot be compiled", "make an array of its length by `np.zeros(n)` and assign its elements")
        self.value(value)

    def do_Assert(self, node):
        condition = truth(self.w, self.value(node.test))
        if condition is False:
            self.w.fail("an assertion does not hold")

    def do_Return(self, node):
        self.frame.env[RESULT] = Known(None) if node.value is None else self.value(node.value)
        return RETURN

    def do_Continue(self, node):
        return CONTINUE

    def do_Break(self, node):
        self.frame.env[LEFT] = Known(True)
        return BREAK

    def do_FunctionDef(self, node):
        if node.decorator_list:
            self.w.fail("a decorated function cannot be compiled inside of another one", "leave the decorator out")
        self.frame.env[node.name] = Local(node, self.frame, node.name)

    def do_Raise(self, node):
        self.w.fail("`raise` is reached", "check arguments before the function is called")

    # Assignments.

    def do_Assign(self, node):
        value = self.value(node.value)
        for target in node.targets:
            self.assign(target, value)

    def do_AnnAssign(self, node):
        if node.value is not None:
            self.assign(node.target, self.value(node.value))

    def assign(self, target, value):
        if isinstance(target, ast.Name):
            if isinstance(value, Num) and value.rank and value.term.name is not None:
                named = self.w.program.named(value.term, target.id)
                value = Num(named, value.kind, value.dims, value.dim, value.storage, value.is_list)
            self.frame.env[target.id] = value
        elif isinstance(target, (ast.Tuple, ast.List)):
            self.unpack(target, value)
        elif isinstance(target, ast.Subscript):
            self.write(target, value)
        else:
            self.w.fail(f"assignment to {phrase(target)} cannot be compiled", "assign to names and to elements of local arrays")

    def unpack(self, target, value):
        inner = loops.loop_of(self.w, value)
        n = len(target.elts)
        if not isinstance(inner, list):
            if inner.count.known is None:
                self.w.require_equal(inner.count, Dim(n), "an array is unpacked")
            elif inner.count.known != n:
                self.w.fail(f"{inner.count.known} values are unpacked into {n} names")
            inner = [inner.element(self.w.constant(k)) for k in range(n)]
        if any(isinstance(part, ast.Starred) for part in target.elts):
            self.w.fail("`*` in an assignment cannot be compiled", "take parts by indices")
        if len(inner) != n:
            self.w.fail(f"{len(inner)} values are unpacked into {n} names")
        for part, item in zip(target.elts, inner):
            self.assign(part, item)

    def owner(self, name, node):
        """The array that is written to by this name."""
        value = self.frame.env.get(name)
        if value is None:
            self.w.fail(f"`{name}` is written to, and is not a local array", f"copy it first: `{name} = np.array(...)`", node=node)
        if isinstance(value, Gone):
            self.w.fail(value.why, value.remedy, node=node)
        if isinstance(value, Row):
            self.w.fail(f"elements of {describe(value)} are written", f"make it an array: `{name} = np.array(...)`", node=node)
        if not isinstance(value, Num) or not value.rank:
            self.w.fail(f"elements of {describe(value)} are written", "make an array by `np.zeros(n)`", node=node)
        if value.storage.argument:
            self.w.fail(f"`{name}` shares memory with the argument `{value.storage.argument}`, which would change for the caller",
                        f"copy it first: `{name} = {name}.copy()`", node=node)
        if not self.frame.foreign.isdisjoint(value.storage.roots):
            self.w.fail(f"`{name}` is an array of the caller, which would change there",
                        f"copy it first, and return it: `{name} = {name}.copy()`", node=node)
        return value

    def written(self, name, value, keep=()):
        """`name` is a written array: other names of its memory are gone, but those to keep."""
        frame = self.frame
        while frame is not None:
            for other, known in frame.env.items():
                if other != name and other not in keep and any(one.shares(value.storage) for one in storages(known)):
                    frame.env[other] = Gone(f"`{other}` is a view of `{name}`, which was written to since",
                                            f"copy it before: `{other} = {other}.copy()`")
            frame = frame.parent
        self.frame.env[name] = value

    def write(self, target, value):
        """`name[..] = value`; of `name[..][..]` each index takes a part."""
        indices, node = [], target
        while isinstance(node, ast.Subscript):
            indices.insert(0, self.index_value(node.slice))
            node = node.value
        if not isinstance(node, ast.Name):
            self.w.fail("elements of something without a name are written", "give the array a name first")
        array = self.owner(node.id, target)
        index = indices[0]
        if len(indices) > 1:
            if not all(isinstance(i, Known) and isinstance(i.value, int) or isinstance(i, Num) and not i.rank for i in indices[:-1]):
                self.w.fail("parts of parts of an array are written", "write `a[i, j] = ...`", node=target)
            last = indices[-1].items if isinstance(indices[-1], Row) else [indices[-1]]
            index = Row([*indices[:-1], *last])
        self.w.at(self.frame.source, target)
        self.written(node.id, indexing.put(self.w, array, index, value))

    def do_AugAssign(self, node):
        load = copied(node.target)
        old = self.value(load)
        change = self.value(node.value)
        self.w.at(self.frame.source, node)
        if isinstance(node.op, ast.MatMult):
            self.w.fail("`@=` cannot be compiled", "write `a = a @ b`")
        new = binary(self.w, ARITHMETIC[type(node.op)][0], old, change)
        if isinstance(node.target, ast.Name) and isinstance(old, Num) and old.rank:
            # NumPy writes to the array itself.
            array = self.owner(node.target.id, node)
            new = self.w.num(new)
            if new.kind != array.kind and array.kind != "f":
                self.w.fail(f"a float is added into {describe(array)}", "make the array of floats: `np.zeros(n)`")
            if new.rank != array.rank:
                self.w.fail("the shape of an array would change", f"write `{node.target.id} = ...`")
            new = self.w.cast(new, array.kind)
            self.written(node.target.id, Num(new.term, new.kind, array.dims, storage=array.storage))
            return
        self.assign(node.target, new)

    # Branches.

    def branch(self, node, rest):
        """Runs an `if`; `NotImplemented` where the block goes on with the statements after it."""
        condition = truth(self.w, self.value(node.test))
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
        program, frame = self.w.program, self.frame
        before = dict(frame.env)
        place = (self.w.source, self.w.node)
        program.open([])
        end = first()
        env_first, block_first = frame.env, program.suspend()
        frame.env = dict(before)
        program.open([])
        other_end = second()
        env_second, block_second = frame.env, program.suspend()
        self.w.at(*place)
        endings = {end, other_end}
        if RETURN in endings and endings != {RETURN}:
            self.w.fail("the function returns here on one path only",
                        "let all paths return a value; inside of loops, assign it and use `break`")
        if BREAK in endings:
            for env in (env_first, env_second):
                env.setdefault(LEFT, Known(False))
        changed = [name for name in {**env_first, **env_second} if env_first.get(name) is not env_second.get(name)]
        pairs, frame.env = [], dict(env_first)
        for name in changed:
            a, b = env_first.get(name), env_second.get(name)
            if a is None or b is None:
                frame.env[name] = Gone(f"`{name}` is assigned on one side of an `if` only", "assign it before the `if`")
            elif isinstance(a, Gone) or isinstance(b, Gone):
                frame.env[name] = a if isinstance(a, Gone) else b
            elif isinstance(a, Known) and isinstance(b, Known) and not is_number(a.value):
                if a.value is not b.value and a.value != b.value:
                    self.w.fail(f"`{name}` is {describe(a)} or {describe(b)}, by data", "choose between numbers")
            else:
                pairs.append((name, a, b))
        merged = self.merge(condition, block_first, block_second, pairs)
        frame.env.update(merged)
        return RETURN if RETURN in endings else BREAK if endings == {BREAK} else CONTINUE if None not in endings else None

    def choose_values(self, condition, first, second):
        """The value of one of two expressions, lazily."""
        program = self.w.program
        program.open([])
        a = first()
        block_first = program.suspend()
        program.open([])
        b = second()
        block_second = program.suspend()
        return self.merge(condition, block_first, block_second, [("value", a, b)])["value"]

    def merge(self, condition, block_first, block_second, pairs):
        """One value for each pair, of the side that is taken; closes the blocks of both sides."""
        program = self.w.program
        shapes = {name: self.common_shape(name, a, b) for name, a, b in pairs}
        sides = []
        for k, block in enumerate((block_first, block_second)):
            program.resume(block)
            leaves = [leaf for name, *values in pairs for leaf in self.flatten(values[k], shapes[name])]
            sides.append(program.close(pack(program, leaves)))
        if not pairs:
            return {}
        whole = program.choose(condition.term, *sides)
        total = sum(count(shapes[name]) for name, *_ in pairs)
        leaves = iter([whole] if total == 1 else [program.component(whole, k) for k in range(total)])
        return {name: rebuild(shapes[name], leaves) for name, *_ in pairs}

    def common_shape(self, name, a, b):
        """What both values are made to: a list for tuples, else the kind and extents of a number."""
        if isinstance(a, Row) and isinstance(b, Row) and len(a.items) == len(b.items):
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
        for first, second in zip(a.dims, b.dims):
            if first.known is not None and second.known is not None and first != second:
                self.w.fail(f"`{shown(name)}` has one of two shapes, by data", "let both have one shape")
        kind = a.kind if a.kind == b.kind else self.w.common(a, b)
        storage = a.storage.union(b.storage) if a.rank else None
        return ("num", kind, a.dims, storage, a.is_list)

    def flatten(self, value, shape):
        if shape[0] == "row":
            return [leaf for item, part in zip(value.items, shape[1]) for leaf in self.flatten(item, part)]
        return [self.w.cast(value, shape[1]).term]

    # Loops.

    def do_For(self, node):
        if node.orelse:
            self.w.fail("`else` of a loop cannot be compiled", "use a variable that says whether the loop was left")
        inner = loops.loop_of(self.w, self.value(node.iter))
        if isinstance(inner, list):
            return self.unrolled(node, inner)
        breaks = leaves_loop(node.body)
        names = self.carried(node)
        for name in stored_names(node.body):
            if any(one.shares(other) for one in storages(self.frame.env.get(name)) for other in inner.storages):
                self.w.fail(f"`{name}` is written while it is iterated over", f"iterate over `range(len({name}))` or a copy")

        def step(index):
            self.assign(node.target, inner.element(index))
            end = self.block(node.body)
            if end == RETURN:
                self.w.fail("`return` inside of a loop cannot be compiled", "assign the result and use `break`", node=node)

        self.loop(node, names, inner.count, step, breaks)
        for name in targets([node.target]) - set(names):
            self.frame.env[name] = Gone(f"`{name}` is the variable of a loop that has ended", "assign it to another name in the loop")

    def unrolled(self, node, items):
        """A loop over items of which each may be of another kind."""
        for item in items:
            self.assign(node.target, item)
            if leaves_loop(node.body):
                self.w.fail("`break` in a loop over a tuple cannot be compiled", "loop over an array: `np.array(...)`")
            end = self.block(node.body)
            if end == RETURN:
                return end
        return None

    def do_While(self, node):
        if node.orelse:
            self.w.fail("`else` of a loop cannot be compiled", "use a variable that says whether the loop was left")
        names = self.carried(node)

        def step(index):
            if self.block(node.body) == RETURN:
                self.w.fail("`return` inside of a loop cannot be compiled", "assign the result and use `break`", node=node)

        self.loop(node, names, None, step, leaves_loop(node.body), node.test)

    def carried(self, node):
        """The variables that a loop changes and that were there before."""
        assigned = written_names(node.body)
        found = [name for name in self.frame.env if name in assigned and not isinstance(self.frame.env[name], (Gone, Local))]
        for name in assigned - set(found):
            value = self.frame.env.get(name)
            if isinstance(value, Local):
                self.frame.env.pop(name)
        return found

    def loop(self, node, names, n, step, breaks, test=None):
        """A loop of `n` steps, or while `test` holds. It is run again with other kinds where its variables get them."""
        frame, program = self.frame, self.w.program
        before = dict(frame.env)
        place = (self.w.source, self.w.node)
        start = {}
        for name in names:
            value = before[name]
            if isinstance(value, Known) and not is_number(value.value):
                self.w.fail(f"`{name}` is {describe(value)} before the loop, and is assigned in it", "start with a number")
            start[name] = value
        for _ in range(3 + 4 * len(names)):
            shapes = {name: self.shape(value) for name, value in start.items()}
            frame.env = dict(before)
            result, wider = self.run_loop(node, start, shapes, n, step, breaks, test, before)
            lost = {} if wider is not None else self.lost(node, names, before)
            self.w.at(*place)
            if wider is None:
                break
            start = {name: self.widen(start[name], wider[name]) for name in names}
        else:
            self.w.fail("the variables of this loop change their kinds at each step", "start with floats and arrays of floats", node=node)
        new = {name for name in frame.env if name not in before}
        frame.env = dict(before) | lost
        for name in new | {name for name in written_names(node.body) if name not in before}:
            frame.env[name] = Gone(f"`{name}` is assigned in a loop that may take no steps", "assign it before the loop")
        for name, value in result.items():
            frame.env[name] = value
            if isinstance(value, Num) and value.rank and name in stored_names(node.body):
                self.written(name, value, keep=result)

    def shape(self, value):
        if isinstance(value, Row):
            return ("row", [self.shape(item) for item in value.items], value.is_list)
        number = self.w.num(value)
        return ("num", number.kind, number.dims, number.storage, number.is_list)

    def widen(self, value, shape):
        if shape[0] == "row":
            return Row([self.widen(item, part) for item, part in zip(value.items, shape[1])], value.is_list)
        cast = self.w.cast(value, shape[1])
        return Num(cast.term, cast.kind, cast.dims, storage=shape[3] if cast.rank else None)

    def run_loop(self, node, start, shapes, n, step, breaks, test, before):
        """The values after the loop, or the shapes that its variables have to have."""
        program, frame = self.w.program, self.frame
        names = list(start)
        initial = [leaf for name in names for leaf in self.flatten(start[name], shapes[name])]
        by_condition = breaks or test is not None
        counted = by_condition and n is not None
        if by_condition:
            initial = [*([program.integer(0)] if counted else []), *([program.boolean(False)] if breaks else []), *initial]
        if not initial:
            # Nothing is changed: the body is written for its mistakes.
            step(self.w.index())
            program.close(program.integer(0))
            return {}, None
        first = pack(program, initial)

        def enter(hints):
            """Opens a block of the loop: the variables are those of its state."""
            params = program.open(hints)
            parts = [params[0]] if len(initial) == 1 else [program.component(params[0], k) for k in range(len(initial))]
            leaves = iter(parts)
            k = next(leaves) if counted else None
            left = next(leaves) if by_condition and breaks else None
            for name in names:
                frame.env[name] = rebuild(shapes[name], leaves)
            return params, k, left

        def leave():
            """The leaves of the variables after a step, or the shapes that they need."""
            wider = {name: self.wider(name, shapes[name], frame.env[name]) for name in names}
            self.alias(names, shapes, wider, before)
            if any(wider[name] != shapes[name] for name in names):
                return None, wider
            return [leaf for name in names for leaf in self.flatten(frame.env[name], shapes[name])], None

        if not by_condition:
            size = self.w.size(n).term
            params, _, _ = enter(["s", "i"])
            index = params[1]
            self.w.names[index.name] = index
            self.w.not_negative.add(index.name)
            step(Num(index, "i", dim=Dim(0, {index.name: 1})))
            leaves, wider = leave()
            if wider is not None:
                program.close(program.integer(0))
                return {}, wider
            body = program.close(pack(program, leaves))
            whole = program.apply("ifold", [body, first, size])
        else:
            limit = program.infix("+", self.w.size(n).term, program.integer(1)) if counted else program.integer(WHILE_LIMIT)
            size = self.w.size(n) if counted else None
            params, k, left = enter(["s"])
            holds = []
            if breaks:
                holds.append(lambda: Num(program.apply("not", [left]), "b"))
            if counted:
                holds.append(lambda: scalar(self.w, "<", Num(k, "i"), size))
            if test is not None:
                holds.append(lambda: self.as_truth(self.value(test)))
            condition = program.close(self.all_of(holds).term)
            saved = dict(frame.env)
            params, k, left = enter(["s"])
            frame.env.pop(LEFT, None)
            index = None
            if counted:
                self.w.names[k.name] = k
                self.w.not_negative.add(k.name)
                index = Num(k, "i", dim=Dim(0, {k.name: 1}))
            step(index)
            gone = self.w.cast(self.w.num(frame.env.pop(LEFT, Known(False))), "b").term
            leaves, wider = leave()
            if wider is not None:
                program.close(program.integer(0))
                frame.env = saved
                return {}, wider
            next_k = [program.infix("+", k, program.integer(1))] if counted else []
            body = program.close(pack(program, [*next_k, *([gone] if breaks else []), *leaves]))
            whole = program.apply("while", [condition, body, first, limit])
        n_leaves = len(initial)
        parts = [whole] if n_leaves == 1 else [program.component(whole, k) for k in range(n_leaves)]
        leaves = iter(parts[n_leaves - sum(count(shapes[name]) for name in names):])
        result = {name: rebuild(shapes[name], leaves) for name in names}
        # An array may have come from another variable of the loop.
        roots = {root for shape in shapes.values() if shape[0] == "num" and shape[3] for root in shape[3].roots}
        for name, value in result.items():
            end = frame.env.get(name)
            if isinstance(value, Num) and value.rank and isinstance(end, Num):
                value.storage = value.storage.union(Storage(end.storage.argument, value.storage.roots | end.storage.roots & roots))
        return result, None

    def lost(self, node, names, before):
        """The arrays outside of a loop that a step writes to under another name."""
        found = {}
        for name, value in before.items():
            gone = self.frame.env.get(name)
            if name not in names and storages(value) and isinstance(gone, Gone):
                if any(isinstance(part, ast.Name) and part.id == name for part in ast.walk(node)):
                    self.w.fail(gone.why, gone.remedy)
                found[name] = gone
        return found

    def alias(self, names, shapes, wider, before):
        """Arrays of which a step makes one memory, or that of an array outside, have one at the start, too."""
        arrays = [name for name in names if shapes[name][0] == "num" and shapes[name][2] and isinstance(self.frame.env[name], Num)]
        outside = {root for name, value in before.items() if name not in names for one in storages(value) for root in one.roots}

        def join(name, other):
            kind, number, dims, storage, is_list = wider[name]
            wider[name] = (kind, number, dims, storage.union(other), is_list)

        for k, name in enumerate(arrays):
            end = self.frame.env[name].storage
            new = end.roots & outside - wider[name][3].roots
            if new:
                join(name, Storage(end.argument, new))
            for other in arrays[:k]:
                if end.shares(self.frame.env[other].storage) and not wider[name][3].shares(wider[other][3]):
                    first, second = wider[name][3], wider[other][3]
                    join(name, second)
                    join(other, first)

    def all_of(self, conditions):
        first, *rest = conditions
        value = first()
        if not rest:
            return value
        return self.w.choose(value, lambda: self.all_of(rest), lambda: self.w.constant(False))

    def wider(self, name, shape, value):
        """The shape of a variable that is to hold what it was and what it has become."""
        if isinstance(value, Gone):
            self.w.fail(value.why, value.remedy)
        if shape[0] == "row":
            if not isinstance(value, Row) or len(value.items) != len(shape[1]):
                self.w.fail(f"`{name}` becomes {describe(value)} in a loop", "let it keep its length")
            return ("row", [self.wider(name, part, item) for part, item in zip(shape[1], value.items)], shape[2])
        _, kind, dims, storage, is_list = shape
        number = self.w.num(value)
        if number.rank != len(dims):
            was = describe(Num(None, kind, dims))
            self.w.fail(f"`{name}` is {was} before the loop and becomes {describe(number)}", "start with an array of that shape: `np.zeros(...)`")
        for first, second in zip(dims, number.dims):
            if first.known is not None and second.known is not None and first != second:
                self.w.fail(f"the shape of `{name}` changes in a loop", "let it keep its shape")
        if number.kind == kind or kind == "f":
            return shape
        return ("num", self.w.common(number, Num(None, kind)), dims, storage, is_list)


def pack(program, leaves):
    if not leaves:
        return program.integer(0)
    return leaves[0] if len(leaves) == 1 else program.tuple(leaves)


def count(shape):
    return sum(map(count, shape[1])) if shape[0] == "row" else 1


def rebuild(shape, leaves):
    if shape[0] == "row":
        return Row([rebuild(part, leaves) for part in shape[1]], shape[2])
    _, kind, dims, storage, is_list = shape
    return Num(next(leaves), kind, dims, storage=storage, is_list=is_list)


def shown(name):
    return "the returned value" if name == RESULT else name


def copied(target):
    """A target of an assignment as an expression."""
    made = type(target)(**{field: getattr(target, field) for field in target._fields if field != "ctx"}, ctx=ast.Load())
    return ast.copy_location(made, target)


def ends(statements):
    """Whether a `return`, `break` or `continue` stands in a block, not counting those of loops and functions in it."""
    for node in statements:
        if isinstance(node, (ast.Return, ast.Break, ast.Continue)):
            return True
        if isinstance(node, ast.If) and (ends(node.body) or ends(node.orelse)):
            return True
        if isinstance(node, (ast.For, ast.While)) and any(isinstance(part, ast.Return) for part in ast.walk(node)):
            return True
    return False


def leaves_loop(statements):
    """Whether a `break` of this loop stands in its body."""
    for node in statements:
        if isinstance(node, ast.Break):
            return True
        if isinstance(node, ast.If) and (leaves_loop(node.body) or leaves_loop(node.orelse)):
            return True
    return False


def targets(nodes):
    """The names that targets of assignments assign to."""
    found = set()
    for node in nodes:
        if isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, (ast.Tuple, ast.List)):
            found |= targets(node.elts)
        elif isinstance(node, (ast.Subscript, ast.Starred)):
            found |= targets([node.value])
    return found


def written_names(statements):
    """The names that a block assigns to, in its loops and branches too."""
    found = set()
    for node in statements:
        if isinstance(node, ast.Assign):
            found |= targets(node.targets)
        elif isinstance(node, (ast.AugAssign, ast.AnnAssign)):
            found |= targets([node.target])
        elif isinstance(node, ast.For):
            found |= targets([node.target]) | written_names(node.body)
        elif isinstance(node, ast.While):
            found |= written_names(node.body)
        elif isinstance(node, ast.If):
            found |= written_names(node.body) | written_names(node.orelse)
        elif isinstance(node, ast.FunctionDef):
            found.add(node.name)
            continue
        for part in ast.walk(node):
            if isinstance(part, ast.NamedExpr):
                found.add(part.target.id)
    return found


def stored_names(statements):
    """The names of arrays whose elements a block writes."""
    found = set()
    for node in ast.walk(ast.Module(body=list(statements), type_ignores=[])):
        if isinstance(node, (ast.Assign, ast.AugAssign)):
            wanted = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= targets([t for t in wanted if isinstance(t, ast.Subscript) or isinstance(node, ast.AugAssign)])
    return found
