"""Loops whose steps write separate parts of an array: the parts are built side by side, no state is carried.

Every use of the array in the body has the variable of the loop at one place of its index, and the loop carries nothing else.
The body then sees the part alone. Reverse mode saves no array at each step, and vectorisation and threads see independent steps.
"""

from __future__ import annotations

import ast
import copy

from .operations.operators import scalar
from .syntax import leaves_loop, rebound_names, targets, written_names
from .values import Dim, Gone, Known, Local, Num, storages


class Rows:
    """Part of the loops: `row_by_row` runs a loop in this way, where that can be done."""

    def row_by_row(self, node, inner):
        """Runs a `for` over a counted loop; whether it could be run."""
        found = self.separate(node, inner) if self.has_rows else None
        if found is None:
            return False
        name, array, axis, variable = found
        before, start, required = self.snapshot(), len(self.writes), set(self.w.required)
        place = (self.w.source, self.w.node)
        part = f"{name}[{variable}]"
        body = Parts(name, axis, variable, part, array.rank).body(node)
        others = tuple(dim for k, dim in enumerate(array.dims) if k != axis)
        count = self.w.at_least(inner.count, Dim(0))
        first = self.w.index(count)
        self.assign(node.target, inner.element(first))
        position = self.w.integer(self.frame.env[variable], "an index")
        self.frame.env[part] = own_part(self.w, array, axis, position)
        self.body_of(body)
        made = self.frame.env[part]
        roots = {root for _, env in before for value in env.values() for one in storages(value) for root in one.roots}
        is_alone = all(roots.isdisjoint(storage.roots) for storage, _ in self.writes[start:])
        form = position.dim - Dim(0, {first.term.name: 1}) if position.dim is not None else None
        is_alone = is_alone and form is not None and first.term.name not in form.coef and fits(self.w, made, array, others)
        is_alone = is_alone and self.is_inside(form, count, array.dims[axis])
        if is_alone:
            made = self.w.cast(made, array.kind)
        term = self.w.program.close(made.term if is_alone else self.w.program.integer(0))
        self.restore(before)
        del self.writes[start:]
        self.w.at(*place)
        if not is_alone:
            self.w.required = required  # What the block stated is gone with it.
            return False
        parts = Num(self.w.program.apply("build", [self.w.size(count).term, term]), array.kind, (count, *others))
        for other in written_names(node.body) | rebound_names([node]):
            if other != name and other not in self.frame.env:
                self.frame.env[other] = Gone(f"`{other}` is assigned in a loop that may take no steps", "assign it before the loop")
        for bound in (form, array.dims[axis] - form - count):
            self.w.require_not_negative(bound)
        self.written(name, array, put_parts(self.w, array, axis, form, parts))
        return True

    def is_inside(self, start, count, dim):
        """Whether parts from `start` on lie in an axis: that is known, or can be stated."""
        bounds = [start, dim - start - count]
        if any(bound.known is not None and bound.known < 0 for bound in bounds):
            return False
        return all(self.w.is_at_most(Dim(0), bound) or self.w.is_known_at_entry(bound) for bound in bounds)

    def separate(self, node, inner):
        """The one array whose parts the steps write, the axis, and the variable of the loop; `None` where it is another loop."""
        if leaves_loop(node.body) or any(isinstance(part, (ast.While, ast.FunctionDef, ast.NamedExpr, ast.Lambda)) for part in walk(node.body)):
            return None
        carried = self.carried(node)
        if len(carried) != 1:
            return None
        (name,) = carried
        array = self.frame.env[name]
        if not isinstance(array, Num) or not array.rank or array.is_view or array.is_list or array.storage.constant:
            return None
        target = node.target
        if isinstance(target, ast.Tuple) and target.elts:
            target = target.elts[0]
        if not isinstance(target, ast.Name) or target.id in rebound_names(node.body) or target.id == name:
            return None
        axis = common_axis(node.body, name, target.id, array.rank)
        if axis is None or self.is_seen_elsewhere(node, name, array):
            return None
        return name, array, axis, target.id

    def is_seen_elsewhere(self, node, name, array):
        """Whether the body can read or write the array by another name, or calls functions that might."""
        for part in walk(node.body):
            if not isinstance(part, ast.Name) or part.id == name:
                continue
            value = self.frame.lookup(part.id)
            if isinstance(value, Local) or any(one.shares(array.storage) for one in storages(value)):
                return True
        return False


def walk(statements):
    return ast.walk(ast.Module(body=list(statements), type_ignores=[]))


def index_of(node, rank):
    """The parts of an index, `...` written out; `None` where it has new axes or other dots."""
    parts = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
    dots = [k for k, part in enumerate(parts) if isinstance(part, ast.Constant) and part.value is Ellipsis]
    plain = (ast.Slice, ast.Name, ast.BinOp, ast.UnaryOp, ast.Constant)
    if len(dots) > 1 or any(not isinstance(part, plain) or isinstance(part, ast.Constant) and part.value is None for part in parts):
        return None
    if dots:
        whole = [ast.copy_location(ast.Slice(), parts[dots[0]]) for _ in range(rank - len(parts) + 1)]
        parts[dots[0]:dots[0] + 1] = whole
    return parts


def common_axis(statements, name, variable, rank):
    """The axis at which every use of the array has the variable as its index; the array is written at least once."""
    axes, n_uses, n_indexed, is_whole = None, 0, 0, False
    inner = targets([part.target for part in walk(statements) if isinstance(part, ast.For)])
    for part in walk(statements):
        n_uses += isinstance(part, ast.Name) and part.id == name
        if not (isinstance(part, ast.Subscript) and isinstance(part.value, ast.Name) and part.value.id == name):
            continue
        n_indexed += 1
        parts = index_of(part, rank)
        if parts is None:
            return None
        own = {k for k, one in enumerate(parts) if isinstance(one, ast.Name) and one.id == variable}
        is_stored = not isinstance(part.ctx, ast.Load)
        is_whole |= is_stored and all(isinstance(one, ast.Slice) or k in own or is_of_loop(one, inner) for k, one in enumerate(parts))
        # An array of indices beside the variable would be combined with it.
        axes = own if axes is None else axes & own
    # Where a step writes a few elements only, copies of all parts would cost more.
    return min(axes) if axes and n_uses == n_indexed and is_whole else None


def is_of_loop(node, names):
    """Whether an index is the variable of a loop, with a constant added."""
    if isinstance(node, ast.BinOp):
        return is_of_loop(node.left, names) and isinstance(node.right, ast.Constant)
    return isinstance(node, ast.Name) and node.id in names


class Parts(ast.NodeTransformer):
    """Puts the part in place of the array in the statements of a loop."""

    def __init__(self, name, axis, variable, part, rank):
        self.name, self.axis, self.variable, self.part, self.rank = name, axis, variable, part, rank

    def body(self, node):
        return [self.visit(copy.deepcopy(statement)) for statement in node.body]

    def visit_Subscript(self, node):
        if not isinstance(node.value, ast.Name) or node.value.id != self.name:
            return self.generic_visit(node)
        parts = [self.visit(one) for one in index_of(node, self.rank)]
        del parts[self.axis]
        name = lambda context: ast.copy_location(ast.Name(id=self.part, ctx=context), node)
        if self.rank == 1:
            return name(node.ctx)
        if not parts and isinstance(node.ctx, ast.Load):
            return name(node.ctx)
        index = parts[0] if len(parts) == 1 else ast.Tuple(elts=parts, ctx=ast.Load()) if parts else ast.Constant(value=Ellipsis)
        return ast.copy_location(ast.Subscript(value=name(ast.Load()), slice=ast.copy_location(index, node), ctx=node.ctx), node)


def own_part(w, array, axis, position):
    """The part at a position of an axis, as an array of its own."""
    if not axis:
        made = w.element(array, [position])
    else:
        dims = tuple(dim for k, dim in enumerate(array.dims) if k != axis)
        made = w.build(dims, lambda i: w.element(array, [*i[:axis], position, *i[axis:]]))
    return Num(made.term, made.kind, made.dims)


def fits(w, made, array, dims):
    """Whether the part after a step is one of the array."""
    if isinstance(made, Known):
        made = w.num(made)
    if not isinstance(made, Num) or made.dims != dims:
        return False
    return made.kind == array.kind or array.kind == "f"


def put_parts(w, array, axis, start, parts):
    """The array with parts from `start` of an axis on."""
    count = parts.dims[0]
    first, last = w.size(start), w.size(start + count)

    def element(i):
        own = lambda k: w.element(parts, [k, *i[:axis], *i[axis + 1:]])
        if start == Dim(0) and count == array.dims[axis]:
            return own(i[axis])
        inside = w.program.infix("&&", scalar(w, "<=", first, i[axis]).term, scalar(w, "<", i[axis], last).term)
        return w.choose(Num(inside, "b"), lambda: own(scalar(w, "-", i[axis], first)), lambda: w.element(array, i))

    if start == Dim(0) and count == array.dims[0] and not axis:
        made = parts
    else:
        made = w.build(array.dims, element)
    return Num(made.term, array.kind, array.dims, storage=array.storage)


