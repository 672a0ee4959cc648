"""Statements of Python: assignments, branches, loops, returns.

A block is run in the frame's variables and says how it ends: `None` where it goes on, or `RETURN`, `CONTINUE`, `BREAK`. A
branch in which one of these stands is run with the statements after it, so that both sides end in one way.
"""

from __future__ import annotations

import ast
import dataclasses
import importlib
import sys

import numpy as np

from . import loops, records
from .operations import indexing, ufuncs
from .branches import BREAK, CONTINUE, LEFT, RESULT, RETURN, RETURNED, Branches
from .expressions import phrase
from .frame import Gone
from .lists import Lists
from .memory import Memory
from .operations.operators import ARITHMETIC, binary, truth
from .repetition import Repetition
from .syntax import copied, is_endless, rebound_names, returns_from_loop
from .values import Dim, Form, Known, Local, Num, Row, describe


class Statements(Memory, Branches, Repetition, Lists):
    """Runs statements in `self.frame`."""

    def body(self, node):
        """The value that a function returns."""
        end = self.block(node.body)
        if end != RETURN:
            return Known(None)
        return self.frame.env.pop(RESULT)

    def own_names(self, node):
        """The names that a function assigns."""
        return frozenset() if isinstance(node, ast.Lambda) else frozenset(rebound_names(node.body, augmented=True))

    def block(self, statements):
        for k, node in enumerate(statements):
            before = self.w.at(self.frame.source, node)
            if isinstance(node, ast.If):
                end = self.branch(node, statements[k + 1:])
                if end is not NotImplemented:
                    self.w.at(*before)
                    return end
                continue
            if isinstance(node, ast.With):
                self.check_contexts(node)
                end = self.block([*node.body, *statements[k + 1:]])
                self.w.at(*before)
                return end
            method = getattr(self, f"do_{type(node).__name__}", None)
            if method is None:
                self.w.fail(f"{phrase(node)} cannot be compiled", "captured functions compute numbers only")
            end = method(node)
            if end is None and RETURNED in self.frame.env and returns_from_loop(node):
                end = self.returned() if is_endless(node) else self.after_loop(statements[k + 1:])
                self.w.at(*before)
                return end
            self.w.at(*before)
            if end is not None:
                return end
        return None

    def after_loop(self, rest):
        """Goes on after a loop that may have returned."""
        env = self.frame.env
        has_returned = truth(self.w, env.pop(RETURNED))
        if isinstance(has_returned, bool):
            return self.returned() if has_returned else self.block(rest)
        return self.sides(has_returned, self.returned, lambda: self.block(rest))

    def returned(self):
        """The end of a block in which `return` was reached: inside of a loop, the loop is left."""
        if not self.frame.n_loops:
            self.frame.env.pop(RETURNED, None)
            return RETURN
        self.frame.env[RETURNED] = self.frame.env[LEFT] = Known(True)
        return BREAK

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
            if not isinstance(value.func.value, ast.Name):
                self.w.fail(f"`.{value.func.attr}` cannot be compiled here", "give the list a name")
            return self.append(value)
        if isinstance(value, ast.Call) and self.writing_call(value):
            return
        self.value(value)

    def writing_call(self, call):
        """Runs a call that writes to an array: `np.add.at`, `.fill`, `np.copyto`, `np.fill_diagonal`; whether it is one."""
        if not isinstance(call.func, ast.Attribute):
            return False
        name = call.func.attr
        owner = self.value(call.func.value)
        target, rest = (call.func.value, call.args) if isinstance(owner, Num) else (call.args[0] if call.args else None, call.args[1:])
        ufunc = owner.value if isinstance(owner, Known) and isinstance(owner.value, np.ufunc) else None
        function = getattr(owner.value, name, None) if isinstance(owner, Known) else None
        if not (isinstance(owner, Num) and name == "fill" or ufunc is not None and name == "at" or function in (np.copyto, np.fill_diagonal)):
            return False
        if target is None or call.keywords:
            self.w.fail(f"`.{name}` is called with other arguments", "pass them by place")
        array = self.owner(ast.unparse(target), target, self.value(target))
        *index, value = self.values(rest)
        self.w.at(self.frame.source, call)
        if name == "at":
            new = indexing.accumulate(self.w, array, index[0], value, ufuncs.BY_OBJECT[ufunc])
        elif name == "fill_diagonal":
            new = indexing.put_diagonal(self.w, array, value)
        else:
            new = indexing.put(self.w, array, Known(Ellipsis), value)
        self.written(ast.unparse(target), array, new)
        return True

    def do_Assert(self, node):
        condition = truth(self.w, self.condition(node.test))
        if condition is False:
            self.w.fail("an assertion does not hold")

    def do_Return(self, node):
        self.frame.env[RESULT] = Known(None) if node.value is None else self.value(node.value)
        return self.returned()

    def do_Continue(self, node):
        return CONTINUE

    def do_Break(self, node):
        self.frame.env[LEFT] = Known(True)
        return BREAK

    def do_FunctionDef(self, node):
        if node.decorator_list:
            self.w.fail("a decorated function cannot be compiled inside of another one", "leave the decorator out")
        self.frame.env[node.name] = Local(node, self.frame, node.name)

    def do_Import(self, node):
        for alias in node.names:
            module = importlib.import_module(alias.name)
            bound = module if alias.asname else sys.modules[alias.name.partition(".")[0]]
            self.frame.env[alias.asname or alias.name.partition(".")[0]] = Known(bound)

    def do_ImportFrom(self, node):
        module = importlib.import_module("." * node.level + (node.module or ""), self.frame.module.get("__package__"))
        for alias in node.names:
            found = self.capture.attribute(module, alias.name)
            if found is None:
                self.w.fail(f"cannot import name '{alias.name}' from '{module.__name__}'")
            self.frame.env[alias.asname or alias.name] = found

    def check_contexts(self, node):
        """Fails unless a `with` only says how NumPy warns."""
        for item in node.items:
            call = item.context_expr
            made = self.value(call.func) if isinstance(call, ast.Call) else None
            if not isinstance(made, Known) or made.value is not np.errstate or item.optional_vars is not None:
                self.w.fail("a `with` statement cannot be compiled", "only `with np.errstate(...)` can", node=item.context_expr)

    def do_Delete(self, node):
        for target in node.targets:
            if not isinstance(target, ast.Name):
                self.w.fail(f"`del` of {phrase(target)} cannot be compiled", "delete names")
            self.frame.env[target.id] = Gone(f"`{target.id}` was deleted", "delete it later")

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
                value = Num(named, value.kind, value.dims, value.dim, value.storage, value.is_list, value.is_view)
            self.frame.env[target.id] = value
        elif isinstance(target, (ast.Tuple, ast.List)):
            self.unpack(target, value)
        elif isinstance(target, ast.Subscript):
            self.write(target, value)
        elif isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
            known = self.frame.lookup(target.value.id)
            if not isinstance(known, Row) or not isinstance(known.is_list, Form) or known.is_list.cls is dict:
                self.w.fail(f"an attribute of {describe(known)} is assigned", "assign to names and to elements of arrays")
            if target.attr not in known.is_list.names or not dataclasses.is_dataclass(known.is_list.cls) or known.is_list.cls.__dataclass_params__.frozen:
                self.w.fail(f"cannot assign to field '{target.attr}' of {describe(known)}", "make another one: `dataclasses.replace`")
            self.write_item(target.value.id, known, Known(target.attr), value)
        else:
            self.w.fail(f"assignment to {phrase(target)} cannot be compiled", "assign to names and to elements of local arrays")

    def unpack(self, target, value):
        inner = loops.loop_of(self.w, value)
        n = len(target.elts)
        starred = [k for k, part in enumerate(target.elts) if isinstance(part, ast.Starred)]
        if not isinstance(inner, list) and starred:
            return self.unpack_starred(target.elts, inner, starred[0])
        if not isinstance(inner, list):
            if inner.count.known is None:
                self.w.require_equal(inner.count, Dim(n), "an array is unpacked")
            elif inner.count.known != n:
                self.w.fail(f"{inner.count.known} values are unpacked into {n} names")
            inner = [inner.element(self.w.constant(k)) for k in range(n)]
        if len(inner) != n and not starred or len(inner) < n - 1:
            self.w.fail(f"{len(inner)} values are unpacked into {n} names")
        parts = list(target.elts)
        if starred:
            (k,) = starred
            rest = len(inner) - (n - 1)
            inner = [*inner[:k], Row(inner[k:k + rest], is_list=True), *inner[k + rest:]]
            parts[k] = parts[k].value
        for part, item in zip(parts, inner):
            self.assign(part, item)

    def unpack_starred(self, parts, inner, k):
        """Assigns the elements before and after a `*`, and the list of those between; at least one is there."""
        after = len(parts) - k - 1
        length = inner.count - (len(parts) - 1)
        if length.known is not None and length.known < 0:
            self.w.fail(f"{inner.count.known} values are unpacked into {len(parts) - 1} names and more")
        self.w.require_not_negative(length)
        last = lambda j: self.w.size(inner.count - (after - j))
        items = [inner.element(self.w.constant(j)) for j in range(k)]
        moved = lambda i: self.w.size(i.dim + k)
        items.append(self.w.build((length,), lambda i: self.w.num(inner.element(moved(i[0]))), is_list=True))
        items += [inner.element(last(j)) for j in range(after)]
        for part, item in zip(parts, items):
            self.assign(part.value if isinstance(part, ast.Starred) else part, item)

    def owner(self, name, node, value):
        """The array that is written to, by this name."""
        if isinstance(value, Gone):
            self.w.fail(value.why, value.remedy, node=node)
        if isinstance(value, Known):
            self.w.fail(f"`{name}` is written to, and is not a local array", f"copy it first: `{name} = np.array(...)`", node=node)
        if isinstance(value, Row):
            self.w.fail(f"elements of {describe(value)} are written", f"make it an array: `{name} = np.array(...)`", node=node)
        if not isinstance(value, Num) or not value.rank:
            self.w.fail(f"elements of {describe(value)} are written", "make an array by `np.zeros(n)`", node=node)
        if value.storage.constant:
            self.w.fail(f"`{name}` shares memory with an array that is not an argument, and would change it at each call",
                        f"copy it first: `{name} = {name}.copy()`", node=node)
        return value

    def write(self, target, value):
        """`name[..] = value`; of `name[..][..]` each index takes a part."""
        indices, node = [], target
        while isinstance(node, ast.Subscript):
            indices.insert(0, self.index_value(node.slice))
            node = node.value
        name = ast.unparse(node)
        known = self.value(node)
        while isinstance(known, Row) and len(indices) > 1:
            # Items of tuples and records up to the array itself.
            known = self.part_of(known, indices.pop(0))
        if isinstance(known, Row) and isinstance(known.is_list, Form) and known.is_list.cls is dict:
            return self.write_item(name, known, indices[0], value)
        if isinstance(known, Row) and known.is_list is True and isinstance(target.value, ast.Name):
            return self.write_to_list(name, known, indices[0], value)
        array = self.owner(name, target, known)
        index = indices[0]
        if len(indices) > 1:
            if not all(isinstance(i, Known) and isinstance(i.value, int) or isinstance(i, Num) and not i.rank for i in indices[:-1]):
                self.w.fail("parts of parts of an array are written", "write `a[i, j] = ...`", node=target)
            last = indices[-1].items if isinstance(indices[-1], Row) else [indices[-1]]
            index = Row([*indices[:-1], *last])
        self.w.at(self.frame.source, target)
        self.written(name, array, indexing.put(self.w, array, index, value))

    def write_item(self, name, row, key, value):
        """`dict[key] = value`, `record.field = value`: for all names of the dict or object."""
        if not isinstance(key, Known):
            self.w.fail(f"{describe(key)} is a key of a dict", "use keys that are known, or an array")
        if row.is_list.is_argument:
            self.w.fail(f"`{name}` is changed, and is an argument", f"copy it first: `{name} = {'dict' if row.is_list.cls is dict else 'dataclasses.replace'}({name})`")
        new = records.with_item(self.w, row, key.value, value)
        in_loop = any(frame.n_loops for frame in [self.frame, *self.callers])
        for frame in self.live():
            for other, known in frame.env.items():
                if not holds(known, row.is_list):
                    continue
                if in_loop and (frame is not self.frame or other != name) or known.is_list is not row.is_list:
                    self.w.fail(f"`{name}` is changed, and `{other}` is or has the same {row.is_list.cls.__name__}", "make a new one")
                frame.env[other] = new

    def do_AugAssign(self, node):
        load = copied(node.target)
        old = self.value(load)
        change = self.value(node.value)
        self.w.at(self.frame.source, node)
        if isinstance(node.op, ast.MatMult):
            self.w.fail("`@=` cannot be compiled", "write `a = a @ b`")
        new = binary(self.w, ARITHMETIC[type(node.op)][0], old, change)
        is_whole = isinstance(node.target, ast.Name) or isinstance(self.value(node.target.value), Row)
        if is_whole and isinstance(old, Num) and old.rank:
            # NumPy writes to the array itself.
            name = ast.unparse(node.target)
            array = self.owner(name, node, old)
            new = self.w.num(new)
            if new.kind != array.kind and array.kind != "f":
                self.w.fail(f"a float is added into {describe(array)}", "make the array of floats: `np.zeros(n)`")
            if new.rank != array.rank:
                self.w.fail("the shape of an array would change", f"write `{name} = ...`")
            new = self.w.cast(new, array.kind)
            self.written(name, array, Num(new.term, new.kind, array.dims, storage=array.storage, is_view=array.is_view))
            return
        self.assign(node.target, new)


def holds(value, form):
    """Whether a value is, or has in it, the record of this form."""
    return isinstance(value, Row) and (value.is_list is form or any(holds(item, form) for item in value.items))
