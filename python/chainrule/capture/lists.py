"""Lists that grow: `.append` and `.extend`.

Outside of counted loops the items of a list are known. A loop whose every step appends one element to a list writes the elements
of an array instead, whose length is known before: the list's length, and one for each step.
"""

from __future__ import annotations

import ast
import copy

from .operations.operators import scalar
from .rows import walk
from .syntax import leaves_loop
from .values import Dim, Known, Loop, Num, Row, describe

REMEDY = "append once in each step of a `for`, not under a condition; or make an array of its length by `np.zeros(n)` and assign its elements"


def appended(statement):
    """The name of the list that a statement appends to."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "append" \
            and isinstance(call.func.value, ast.Name) and len(call.args) == 1 and not call.keywords:
        return call.func.value.id
    return None


class Lists:
    """Part of the statements: appends to lists."""

    def append(self, call):
        """Runs `name.append(x)` or `name.extend(xs)` where the list's items are known."""
        name, added = call.func.value.id, [self.value(part) for part in call.args]
        self.w.at(self.frame.source, call)
        known = self.frame.lookup(name)
        if len(added) != 1 or call.keywords:
            self.w.fail(f"`.{call.func.attr}` takes one argument")
        if not self.is_list(known):
            self.w.fail(f"`.{call.func.attr}` of {describe(known)} cannot be compiled", "append to lists")
        for lists, found in self.trials:
            if id(known) in lists:
                found[lists[id(known)]] = self.w.num(added[0])
                return
        self.check_local(name, known, f"`.{call.func.attr}` changes a list")
        if self.is_outside(known):
            self.w.fail(f"`.{call.func.attr}` cannot be compiled here: the length of `{name}` would depend on data", REMEDY)
        if isinstance(known, Num):
            if call.func.attr == "extend":
                self.w.fail("a list whose length is not known is extended", REMEDY)
            return self.replace(known, longer(self.w, known, self.w.num(added[0])))
        items = added
        if call.func.attr == "extend":
            if not isinstance(added[0], Row):
                self.w.fail(f"a list is extended by {describe(added[0])}", REMEDY)
            items = added[0].items
        self.replace(known, Row([*known.items, *items], is_list=True))

    def write_to_list(self, name, known, index, value):
        """Runs `name[k] = value` for a list whose items are known."""
        if not isinstance(index, Known) or not isinstance(index.value, int):
            self.w.fail(f"elements of {describe(known)} are written", f"make it an array: `{name} = np.array(...)`")
        if not -len(known.items) <= index.value < len(known.items):
            self.w.fail("list assignment index out of range")
        self.check_local(name, known, "an element is assigned of a list")
        if self.is_outside(known):
            self.w.fail(f"an element of the list `{name}` is assigned in a loop or under a condition", f"make it an array: `{name} = np.array(...)`")
        items = list(known.items)
        items[index.value] = value
        self.replace(known, Row(items, is_list=True))

    def check_local(self, name, known, what):
        """Fails where a change of a list would be seen outside of the function, or by no name."""
        if any(known is one for one in self.given) or not any(known is value for frame in self.live() for value in frame.env.values()):
            self.w.fail(f"{what} that is not local", f"copy it first: `{name} = list({name})`")

    def is_outside(self, known):
        """Whether a list was there before the loop, or the branch, that is being run."""
        return any(known is value for _, env in self.outside for value in env.values())

    def replace(self, old, new):
        """Lets all names of a list stand for what it has become."""
        for frame in self.live():
            for name, value in frame.env.items():
                if value is old:
                    frame.env[name] = new

    def with_arrays(self, node, inner):
        """A loop, and what it iterates over, with writes to elements of arrays for appends; and the names of the lists."""
        names = [appended(statement) for statement in node.body]
        names = [name for name in names if name is not None and self.is_list(self.frame.env.get(name))]
        if not names or len(set(names)) != len(names) or leaves_loop(node.body):
            return node, inner, []
        uses = [part.id for part in walk(node.body) if isinstance(part, ast.Name)]
        for name in names:
            if self.is_outside(self.frame.env[name]):
                self.w.fail(f"`{name}` grows in a loop inside of another one", "append in one loop alone, or make an array of its length by `np.zeros(n)` and assign its elements", node=node)
            last = sum(is_last(part, name) for part in walk(node.body))
            if uses.count(name) != 1 + last:
                self.w.fail(f"`{name}` is used in the loop that appends to it", f"use `{name}[-1]`, or another variable")
        elements = self.trial(node, inner, names)
        index = f"step of {names[0]}"
        starts = {}
        for name in names:
            old = self.frame.env[name]
            starts[name] = old.dims[0] if isinstance(old, Num) else Dim(len(old.items))
            self.frame.env[array_of(name)] = self.room(old, starts[name], inner.count, elements[name])
        body = [Writes(names, index).visit(copy.deepcopy(statement)) for statement in node.body]
        target = ast.copy_location(ast.Tuple(elts=[*[name_node(place_of(name, index), node.target) for name in names], node.target], ctx=ast.Store()), node.target)
        place = lambda name, i: i if starts[name] == Dim(0) else scalar(self.w, "+", self.w.size(starts[name]), i)
        loop = Loop(inner.count, lambda i: Row([*[place(name, i) for name in names], inner.element(i)]), inner.storages)
        made = ast.copy_location(ast.For(target=target, iter=node.iter, body=body, orelse=[], type_comment=None), node)
        return made, loop, names

    def finish(self, names):
        """Makes lists of the arrays again."""
        for name in names:
            made = self.frame.env.pop(array_of(name))
            self.replace(self.frame.env[name], Num(made.term, made.kind, made.dims, is_list=True))

    @staticmethod
    def is_list(value):
        return isinstance(value, Row) and value.is_list is True or isinstance(value, Num) and value.is_list

    def trial(self, node, inner, names):
        """The elements that two steps append: what they are, for the writer only."""
        before, start, required = self.snapshot(), len(self.writes), set(self.w.required)
        index = self.w.index(inner.count)
        found = {}
        self.trials.append(({id(self.frame.env[name]): name for name in names}, found))
        for _ in range(2):
            self.assign(node.target, inner.element(index))
            self.body_of(node.body)
        self.trials.pop()
        self.w.program.close(self.w.program.integer(0))
        self.w.required = required
        self.restore(before)
        del self.writes[start:]
        for name in names:
            for dim in found[name].dims:
                if not all(self.w.names[one].is_visible for one in dim.coef):
                    self.w.fail(f"the elements that are appended to `{name}` have a size that is computed in the loop", "let it be known before the loop")
        return found

    def room(self, old, length, count, element):
        """An array for the items of a list and those that follow; they have the kind of `element`."""
        zero = self.w.cast(self.w.constant(0), element.kind)
        if length == Dim(0):
            return self.w.build((self.w.at_least(count, Dim(0)), *element.dims), lambda _: zero)
        old = self.w.cast(self.w.num(old), element.kind)
        within = lambda i: scalar(self.w, "<", i[0], self.w.size(length))
        return self.w.build((length + self.w.at_least(count, Dim(0)), *element.dims),
                            lambda i: self.w.choose(within(i), lambda: self.w.element(old, i), lambda: zero))


class Writes(ast.NodeTransformer):
    """Writes to elements in place of appends, and reads of the element before in place of `name[-1]`."""

    def __init__(self, names, index):
        self.names, self.index = names, index

    def visit_Expr(self, node):
        name = appended(node)
        if name not in self.names:
            return self.generic_visit(node)
        value = self.visit(node.value.args[0])
        target = ast.Subscript(value=name_node(array_of(name), node), slice=name_node(place_of(name, self.index), node), ctx=ast.Store())
        return ast.copy_location(ast.Assign(targets=[ast.copy_location(target, node)], value=value), node)

    def visit_Subscript(self, node):
        name = next((name for name in self.names if is_last(node, name)), None)
        if name is None:
            return self.generic_visit(node)
        one = ast.copy_location(ast.Constant(value=1), node)
        before = ast.copy_location(ast.BinOp(left=name_node(place_of(name, self.index), node), op=ast.Sub(), right=one), node)
        return ast.copy_location(ast.Subscript(value=name_node(array_of(name), node), slice=before, ctx=ast.Load()), node)


def array_of(name):
    return f"elements of {name}"


def place_of(name, index):
    return f"{index}, for {name}"


def name_node(name, node):
    return ast.copy_location(ast.Name(id=name, ctx=ast.Load()), node)


def is_last(node, name):
    """Whether a node is `name[-1]`."""
    return isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id == name and isinstance(node.ctx, ast.Load) \
        and isinstance(node.slice, ast.UnaryOp) and isinstance(node.slice.op, ast.USub) and getattr(node.slice.operand, "value", None) == 1


def longer(w, old, item):
    """A list of unknown length with one more item."""
    kind = old.kind if old.kind == item.kind else w.common(old, item)
    old, item, n = w.cast(old, kind), w.cast(item, kind), w.size(old.dims[0])
    within = lambda i: scalar(w, "<", i[0], n)
    made = w.build((old.dims[0] + 1, *old.dims[1:]), lambda i: w.choose(within(i), lambda: w.element(old, i), lambda: w.element(item, i[1:])))
    return Num(made.term, kind, made.dims, is_list=True)
