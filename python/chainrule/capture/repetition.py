"""Loops: the variables that a body changes are the state of a fold, or of a `while` where the loop can be left.

A slot is a variable of a frame that a loop carries. The body is run until it needs no further slots and no wider kinds;
what was written before is dropped with its block.
"""

from __future__ import annotations

import ast

from ..errors import Error
from . import loops
from .branches import LEFT, RESULT, RETURN, RETURNED
from .memory import is_same_array
from .opened import has_few_steps, steps
from .operations.operators import scalar
from .rows import Rows
from .shapes import count, pack, rebuild
from .syntax import has_return, inline_targets, leaves_loop, rebound_names, stored_names, targets, tested_inside, written_names
from .values import Dim, Gone, Known, Local, Num, Row, Storage, describe, is_number, storages

#: How many steps a `while` may take. Beyond a million, reverse mode keeps 32 states and computes the others again.
WHILE_LIMIT = 1_000_000_000


class OtherShape(Exception):
    """A variable gets another shape in a step: the message and the remedy."""


class Plan:
    """What is known of a loop before its body is run: grows from run to run."""

    def __init__(self, node, n, step, breaks, test, before):
        self.node, self.n, self.step, self.breaks, self.test = node, n, step, breaks, test
        self.before = before
        self.needs_first_step = None  # the :class:`OtherShape` because of which the first step is to be run by itself
        self.start = {}  # of each slot, its value before the loop
        self.moved = set()  # slots that become another array in a step
        self.written = set()  # roots of memory that the body writes to
        self.known = {root for _, env in before for value in env.values() for one in storages(value) for root in one.roots}

    @property
    def is_counted(self):
        """Whether a step's number is part of the state."""
        return self.n is not None and (self.breaks or self.test is not None)

    @property
    def has_condition(self):
        return self.breaks or self.test is not None

    def pairs(self, values):
        """Arrays before the loop and what they are now, where a slot stays one array."""
        return [(self.start[slot], value) for slot, value in values.items()
                if slot not in self.moved and isinstance(value, Num) and value.rank and not value.is_view]


class Repetition(Rows):
    """Runs `for` and `while`."""

    def do_For(self, node):
        if node.orelse:
            self.w.fail("`else` of a loop cannot be compiled", "use a variable that says whether the loop was left")
        inner = loops.loop_of(self.w, self.value(node.iter))
        if isinstance(inner, list):
            return self.unrolled(node, inner)
        for name in stored_names(node.body):
            known = self.frame.lookup(name)
            if any(one.shares(other) for one in storages(known) for other in inner.storages):
                self.w.fail(f"`{name}` is written while it is iterated over", f"iterate over `range(len({name}))` or a copy")
        place, is_open = self.opened.enter(self.w.source, node)
        if is_open and has_few_steps(inner):
            return self.unrolled(node, steps(self.w, inner))
        try:
            self.as_one(node, inner, is_open)
        except Error:
            self.opened.failed.append(place)
            raise
        for name in written_names(node.body) | targets([node.target]):
            if isinstance(value := self.frame.env.get(name), Gone):
                self.opened.gone[value.why] = place
        return None

    def as_one(self, node, inner, is_open):
        """A loop whose steps are alike; the first is run by itself where it is opened."""
        node, inner, lists = self.with_arrays(node, inner)

        def step(index):
            self.assign(node.target, inner.element(index))
            self.body_of(node.body)

        is_open = is_open and self.can_split(inner.count, leaves_loop(node.body))
        if is_open:
            self.after_first_step(node, inner.count, step)
        elif not self.row_by_row(node, inner):
            self.loop(node, inner.count, step, leaves_loop(node.body))
        if is_open and not lists:
            self.assign(node.target, inner.element(self.w.size(inner.count - 1)))
        else:
            for name in targets([node.target]) - self.carried(node):
                self.frame.env[name] = Gone(f"`{name}` is the variable of a loop that has ended", "assign it to another name in the loop")
        self.finish(lists)

    def can_split(self, n, breaks):
        """Whether a loop has a first step, which can be run by itself."""
        return n is not None and not breaks and self.w.is_at_most(Dim(1), n)

    def unrolled(self, node, items):
        """A loop over items of which each may be of another kind."""
        for item in items:
            self.assign(node.target, item)
            if leaves_loop(node.body) and not has_return(node.body):
                self.w.fail("`break` in a loop over a tuple cannot be compiled", "loop over an array: `np.array(...)`")
            end = self.block(node.body)
            if end == RETURN:
                return end
        return None

    def do_While(self, node):
        if node.orelse:
            self.w.fail("`else` of a loop cannot be compiled", "use a variable that says whether the loop was left")
        if inline_targets(node.test):
            node = tested_inside(node)
        self.loop(node, None, lambda index: self.body_of(node.body), leaves_loop(node.body), node.test)

    def body_of(self, statements):
        outside, self.outside = self.outside, [*self.outside, *self.snapshot()]
        self.frame.n_loops += 1
        self.block(statements)
        self.frame.n_loops -= 1
        self.outside = outside

    def carried(self, node):
        """The variables that a loop assigns and that were there before."""
        assigned = written_names(node.body)
        found = {name for name in self.frame.env if name in assigned and not isinstance(self.frame.env[name], (Gone, Local))}
        for name in assigned - found:
            if isinstance(self.frame.env.get(name), Local):
                self.frame.env.pop(name)
        return found

    def without_steps(self, node):
        """The variables that are assigned only if a loop takes a step."""
        for name in written_names(node.body):
            if name not in self.frame.env:
                self.frame.env[name] = Gone(f"`{name}` is assigned in a loop that may take no steps", "assign it before the loop")

    def after_first_step(self, node, n, step):
        """A loop whose first step is run by itself: it gives variables their shapes."""
        self.w.at(self.w.source, node)
        step(self.w.size(Dim(0)))
        self.loop(node, n - 1, lambda index: step(self.w.size(index.dim + 1)), False, is_rest=True)

    def loop(self, node, n, step, breaks, test=None, is_rest=False):
        """A loop of `n` steps, or while `test` holds; `is_rest` where the first step was run by itself."""
        frame = self.frame
        if n is not None and n.known is not None and n.known <= 0:
            self.without_steps(node)
            return
        can_split = not is_rest and test is None and self.can_split(n, breaks)
        place = (self.w.source, self.w.node)
        names = sorted(self.carried(node))
        if has_return(node.body):
            frame.env[RETURNED] = Known(False)
            names.append(RETURNED)
        plan = Plan(node, n, step, breaks, test, self.snapshot())
        rebound, stored = rebound_names(node.body), stored_names(node.body)
        for name in names:
            value = frame.env[name]
            if isinstance(value, Known) and not is_number(value.value):
                if can_split:
                    return self.after_first_step(node, n, step)
                self.w.fail(f"`{name}` is {describe(value)} before the loop, and is assigned in it", "start with a number")
            if name in rebound or not any(is_same_array(value, other) for other in plan.start.values()):
                plan.start[frame, name] = value
        for name in stored - rebound:
            known = frame.lookup(name)
            plan.written |= known.storage.roots if isinstance(known, Num) and known.rank else set()
        for _ in range(8 + 4 * len(names)):
            self.restore(plan.before)
            result = self.run_loop(plan)
            self.w.at(*place)
            if result is not None:
                break
            if plan.needs_first_step is not None:
                self.restore(plan.before)
                if can_split:
                    return self.after_first_step(node, n, step)
                self.w.fail(*plan.needs_first_step.args)
        else:
            self.w.fail("the variables of this loop change their kinds at each step", "start with floats and arrays of floats", node=node)
        self.restore(plan.before)
        if not is_rest:
            self.without_steps(node)
        for (owner, name), value in result.items():
            owner.env[name] = value
        self.follow(plan, result)
        for slot, value in result.items():
            if isinstance(value, Num) and value.rank and not plan.written.isdisjoint(value.storage.roots):
                self.writes.append((value.storage if slot in plan.moved else plan.start[slot].storage, value))

    def follow(self, plan, values):
        """The variables that no slot is for, where those of the slots have these values."""
        pairs = plan.pairs(values)
        for frame in self.live():
            for name, known in frame.env.items():
                if (frame, name) not in values:
                    frame.env[name] = self.followed(plan, name, known, pairs)

    def followed(self, plan, name, known, pairs):
        if isinstance(known, Row):
            items = [self.followed(plan, name, item, pairs) for item in known.items]
            gone = [item for item in items if isinstance(item, Gone)]
            return gone[0] if gone else known if all(a is b for a, b in zip(items, known.items)) else Row(items, known.is_list)
        for old, new in pairs:
            if is_same_array(known, old):
                return new
        if any(not plan.written.isdisjoint(one.roots) for one in storages(known)):
            writer = next((n for (_, n), v in plan.start.items() if any(one.shares(other) for one in storages(v) for other in storages(known))), "an array")
            return Gone(f"`{name}` is a view of `{writer}`, which was written to since", f"copy it before: `{name} = {name}.copy()`")
        return known

    def shape(self, value):
        if isinstance(value, Row):
            return ("row", [self.shape(item) for item in value.items], value.is_list)
        number = self.w.num(value)
        return ("num", number.kind, number.dims, number.storage, number.is_list, number.is_view)

    def widen(self, value, shape):
        if shape[0] == "row":
            return Row([self.widen(item, part) for item, part in zip(value.items, shape[1])], value.is_list)
        cast = self.w.cast(value, shape[1])
        if not cast.rank:
            return Num(cast.term, cast.kind, dim=cast.dim if cast.kind == "i" else None)
        return Num(cast.term, cast.kind, cast.dims, storage=shape[3], is_view=shape[5])

    def run_loop(self, plan):
        """The values of the slots after the loop; `None` where the plan has grown."""
        program = self.w.program
        shapes = {slot: self.shape(value) for slot, value in plan.start.items()}
        initial = [leaf for slot, value in plan.start.items() for leaf in self.flatten(value, shapes[slot])]
        if plan.has_condition:
            initial = [*([program.integer(0)] if plan.is_counted else []), *([program.boolean(False)] if plan.breaks else []), *initial]
        first = pack(program, initial)
        start_of_writes = len(self.writes)
        required = set(self.w.required)

        def enter(hints):
            """Opens a block of the loop: the slots are those of its state."""
            params = program.open(hints)
            n = len(initial)
            leaves = iter([params[0]] if n == 1 else [program.component(params[0], k) for k in range(n)])
            k = next(leaves) if plan.is_counted else None
            left = next(leaves) if plan.breaks else None
            values = {slot: rebuild(shapes[slot], leaves) for slot in plan.start}
            for (frame, name), value in values.items():
                frame.env[name] = value
            self.follow(plan, values)
            return params, k, left

        def leave():
            """The leaves of the slots after a step; `None` where the plan has grown."""
            if self.grown(plan, shapes, start_of_writes):
                return None
            return [leaf for slot in plan.start for leaf in self.flatten(slot[0].env[slot[1]], shapes[slot])]

        def drop():
            """Leaves a block whose body is to be run again."""
            program.close(program.integer(0))
            self.w.required = set(required)  # What the block stated is gone with it.
            self.restart(plan)

        if not plan.has_condition:
            params, _, _ = enter(["s", "i"])
            plan.step(self.step_index(params[1], plan.n))
            leaves = leave()
            if leaves is None:
                return drop()
            whole = program.apply("ifold", [program.close(pack(program, leaves)), first, self.w.size(plan.n).term])
        else:
            limit, condition = self.condition_of(plan, enter)
            params, k, left = enter(["s"])
            self.frame.env.pop(LEFT, None)
            plan.step(self.step_index(k, plan.n) if plan.is_counted else None)
            gone = self.w.cast(self.w.num(self.frame.env.pop(LEFT, Known(False))), "b").term
            leaves = leave()
            if leaves is None:
                return drop()
            next_k = [program.infix("+", k, program.integer(1))] if plan.is_counted else []
            body = program.close(pack(program, [*next_k, *([gone] if plan.breaks else []), *leaves]))
            whole = program.apply("while", [condition, body, first, limit])
        n = len(initial)
        parts = [whole] if n == 1 else [program.component(whole, k) for k in range(n)] if n else []
        leaves = iter(parts[n - sum(map(count, shapes.values())):])
        result = {slot: rebuild(shapes[slot], leaves) for slot in plan.start}
        self.origins(plan, shapes, result)
        return result

    def step_index(self, term, n):
        """The number of a step: less than the number of steps."""
        self.w.counted(term, n)
        return Num(term, "i", dim=Dim(0, {term.name: 1}))

    def condition_of(self, plan, enter):
        """The limit and the condition of a loop that can be left."""
        program = self.w.program
        limit = program.infix("+", self.w.size(plan.n).term, program.integer(1)) if plan.is_counted else program.integer(WHILE_LIMIT)
        size = self.w.size(plan.n) if plan.is_counted else None
        _, k, left = enter(["s"])
        holds = []
        if plan.breaks:
            holds.append(lambda: Num(program.apply("not", [left]), "b"))
        if plan.is_counted:
            holds.append(lambda: scalar(self.w, "<", Num(k, "i"), size))
        if plan.test is not None:
            holds.append(lambda: self.as_truth(self.condition(plan.test)))
        start = len(self.writes)
        condition = program.close(self.all_of(holds).term)
        self.no_writes(start, plan.before, "the condition of a loop")
        return limit, condition

    def grown(self, plan, shapes, start_of_writes):
        """Whether a step needs more than the plan has: kinds, slots, memory that is written."""
        self.next_shapes, self.next_slots = {}, []
        for slot, shape in shapes.items():
            frame, name = slot
            try:
                self.next_shapes[slot] = self.wider(name, shape, frame.env[name])
            except OtherShape as other:
                plan.needs_first_step = other
                return True
            value = frame.env[name]
            if isinstance(value, Num) and value.rank and slot not in plan.moved and is_another(value, shape):
                plan.moved.add(slot)
                _, kind, dims, storage, is_list, _ = self.next_shapes[slot]
                self.next_shapes[slot] = ("num", kind, dims, Storage(storage.roots, storage.constant), is_list, True)
            if isinstance(value, Row):
                self.next_shapes[slot] = self.row_moved(plan, slot, self.next_shapes[slot], value)
        self.alias(plan, shapes)
        if RETURNED in self.frame.env and (self.frame, RETURNED) in plan.start and (self.frame, RESULT) not in plan.start:
            self.next_slots.append(((self.frame, RESULT), self.frame.env.get(RESULT)))
        mine = [shape[3] for shape in shapes.values() if shape[0] == "num" and shape[2]]
        for storage, _ in self.writes[start_of_writes:]:
            roots = storage.roots & plan.known
            if not roots or any(one is storage for one in mine):
                plan.written |= roots
                continue
            if not roots <= plan.written:
                plan.written |= roots
                self.next_slots.append((None, storage))
        return self.next_slots or any(self.next_shapes[slot] != shape for slot, shape in shapes.items())

    def row_moved(self, plan, slot, shape, value):
        """The shape of a tuple whose arrays become others in a step."""
        if shape[0] == "row":
            return ("row", [self.row_moved(plan, slot, part, item) for part, item in zip(shape[1], value.items)], shape[2])
        _, kind, dims, storage, is_list, _ = shape
        if not dims or not isinstance(value, Num):
            return shape
        roots = storage.roots | value.storage.roots & plan.known
        if not is_another(value, shape) or (slot, storage) in plan.moved and roots == storage.roots:
            return shape
        fresh = Storage(roots, storage.constant)
        plan.moved.add((slot, fresh))
        return ("num", kind, dims, fresh, is_list, True)

    def restart(self, plan):
        """Takes what a run has found into the plan, outside of the loop's block."""
        self.restore(plan.before)
        if plan.needs_first_step is not None:
            return
        plan.start = {slot: self.widen(value, self.next_shapes[slot]) for slot, value in plan.start.items()}
        for slot, value in self.next_slots:
            if slot is not None:
                plan.start[slot] = self.zeros(value)
                continue
            for found in (self.find(env.values(), value) for _, env in plan.before):
                if found is not None:
                    plan.start[self.frame, f"array {len(plan.start)}"] = found
                    break

    def find(self, values, storage):
        """The array of a storage among values and what they hold."""
        for value in values:
            found = self.find(value.items, storage) if isinstance(value, Row) else value
            if isinstance(found, Num) and found.rank and not found.is_view and found.storage is storage:
                return found
        return None

    def alias(self, plan, shapes):
        """Arrays of which a step makes one memory, or that of an array outside, have one at the start, too."""
        arrays = [slot for slot, shape in shapes.items() if shape[0] == "num" and shape[2] and isinstance(slot[0].env[slot[1]], Num)]
        same = [old for old, _ in plan.pairs({slot: plan.start[slot] for slot in arrays})]
        outside = {root for frame, env in plan.before for name, value in env.items() if (frame, name) not in shapes
                   and not any(is_same_array(value, one) for one in same) for one in storages(value) for root in one.roots}

        def join(slot, roots):
            _, kind, dims, storage, is_list, is_view = self.next_shapes[slot]
            self.next_shapes[slot] = ("num", kind, dims, Storage(storage.roots | roots, storage.constant), is_list, is_view)

        for k, slot in enumerate(arrays):
            end = slot[0].env[slot[1]].storage
            new = end.roots & outside - self.next_shapes[slot][3].roots
            if new:
                join(slot, new)
            for other in arrays[:k]:
                first, second = self.next_shapes[slot][3], self.next_shapes[other][3]
                if end.shares(other[0].env[other[1]].storage) and not first.shares(second):
                    join(slot, second.roots)
                    join(other, first.roots)

    def origins(self, plan, shapes, result):
        """An array may have come from another slot."""
        roots = {root for shape in shapes.values() if shape[0] == "num" and shape[3] for root in shape[3].roots}
        for slot, value in result.items():
            end = slot[0].env.get(slot[1])
            if slot in plan.moved and isinstance(value, Num) and value.rank and isinstance(end, Num):
                value.storage = Storage(value.storage.roots | end.storage.roots & roots, value.storage.constant)

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
            if not isinstance(value, Row) or len(value.items) != len(shape[1]) or not value.is_like(Row([], shape[2])):
                self.w.fail(f"`{name}` becomes {describe(value)} in a loop", "let it keep its length")
            return ("row", [self.wider(name, part, item) for part, item in zip(shape[1], value.items)], shape[2])
        _, kind, dims, storage, is_list, is_view = shape
        number = self.w.num(value)
        if number.rank != len(dims):
            was = describe(Num(None, kind, dims))
            raise OtherShape(f"`{name}` is {was} before the loop and becomes {describe(number)}", "start with an array of that shape: `np.zeros(...)`")
        for first, second in zip(dims, number.dims):
            if first.known is not None and second.known is not None and first != second:
                raise OtherShape(f"the shape of `{name}` changes in a loop", "let it keep its shape")
        if number.kind == kind or kind == "f":
            return shape
        return ("num", self.w.common(number, Num(None, kind)), dims, storage, is_list, is_view)


def is_another(value, shape):
    """Whether an array is not the one of this shape, or only a part of it."""
    return value.storage is not shape[3] or value.is_view and not shape[5]
