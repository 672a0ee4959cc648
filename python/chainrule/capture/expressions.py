"""Expressions of Python."""

from __future__ import annotations

import ast
import collections.abc
import dataclasses
import functools
import types

import numpy as np

from ..errors import Limitation
from . import derivatives, loops, records
from .operations import calls, folding, indexing, mapped, products, properties, reductions, slices, table
from .frame import Frame
from .opened import has_few_steps, steps
from .operations.operators import ARITHMETIC, COMPARISONS, binary, invert, negative, truth
from .source import is_python_function, of_function
from .values import Bound, Form, Gone, Known, Local, Loop, Masked, Num, Partial, Row, describe, is_number, known_number

#: How many calls of Python functions may stand in each other.
MAX_DEPTH = 40


class Expressions:
    """Evaluates expressions in `self.frame`, writing to `self.w`."""

    def value(self, node):
        before = self.w.at(self.frame.source, node)
        method = getattr(self, f"expr_{type(node).__name__}", None)
        if method is None:
            self.w.fail(f"{phrase(node)} cannot be compiled", REMEDIES.get(type(node)))
        result = method(node)
        self.w.at(*before)
        return result

    # Literals and names.

    def expr_Constant(self, node):
        value = node.value
        if isinstance(value, complex):
            self.w.fail("complex numbers cannot be compiled", "compute with real and imaginary parts")
        return Known(value)

    def expr_Name(self, node):
        found = self.frame.lookup(node.id)
        if found is None:
            self.w.fail(f"name '{node.id}' is not defined")
        if isinstance(found, Gone):
            self.w.fail(found.why, found.remedy)
        return found

    def expr_Tuple(self, node):
        return Row(self.items(node.elts))

    def expr_List(self, node):
        return Row(self.items(node.elts), is_list=True)

    def expr_Dict(self, node):
        items = {}
        for key, value in zip(node.keys, self.values(node.values)):
            if key is None:
                if not isinstance(value, Row) or not isinstance(value.is_list, Form) or value.is_list.cls is not dict:
                    self.w.fail(f"`**` is used with {describe(value)}", "it takes a dict")
                items.update(zip(value.is_list.names, value.items))
                continue
            known = self.value(key)
            if not isinstance(known, Known):
                self.w.fail(f"{describe(known)} is a key of a dict", "use keys that are known, or an array")
            items[known.value] = value
        return Row(items.values(), Form(dict, items))

    def items(self, nodes):
        found = []
        values = self.values([node.value if isinstance(node, ast.Starred) else node for node in nodes])
        for node, value in zip(nodes, values):
            if isinstance(node, ast.Starred):
                inner = loops.loop_of(self.w, value)
                if not isinstance(inner, list):
                    if not has_few_steps(inner):
                        self.w.fail("`*` of something of unknown or large length", "pass the array itself", error=Limitation)
                    inner = list(steps(self.w, inner))
                found += inner
            else:
                found.append(value)
        return found

    def expr_NamedExpr(self, node):
        value = self.value(node.value)
        self.frame.env[node.target.id] = value
        return value

    # Operators.

    def expr_BinOp(self, node):
        left, right = self.values([node.left, node.right])
        self.w.at(self.frame.source, node)
        if isinstance(node.op, ast.MatMult):
            return products.matmul(self.w, left, right)
        if type(node.op) not in ARITHMETIC:
            self.w.fail(f"{phrase(node.op)} cannot be compiled", "multiply and divide by powers of 2")
        return binary(self.w, ARITHMETIC[type(node.op)][0], left, right)

    def expr_UnaryOp(self, node):
        value = self.condition(node.operand) if isinstance(node.op, ast.Not) else self.value(node.operand)
        self.w.at(self.frame.source, node)
        if isinstance(node.op, ast.USub):
            return negative(self.w, value)
        if isinstance(node.op, ast.UAdd):
            return reductions.positive(self.w, value)
        if isinstance(node.op, ast.Not):
            known = truth(self.w, value)
            return Known(not known) if isinstance(known, bool) else invert(self.w, known)
        if isinstance(value, Known) and is_number(value.value):
            return Known(~value.value)
        return invert(self.w, value)

    def expr_Compare(self, node):
        left = self.value(node.left)
        result = None
        for op, part in zip(node.ops, node.comparators):
            right = self.value(part)
            self.w.at(self.frame.source, node)
            one = self.compare(op, left, right)
            result = one if result is None else self.both(result, one)
            left = right
        return result

    def compare(self, op, left, right):
        if isinstance(op, (ast.Is, ast.IsNot)):
            for side in (left, right):
                if not isinstance(side, Known):
                    other = right if side is left else left
                    if isinstance(other, Known) and other.value is None:
                        return Known(isinstance(op, ast.IsNot))
                    self.w.fail("`is` compares numbers", "write `==`")
            return Known((left.value is right.value) == isinstance(op, ast.Is))
        if isinstance(op, (ast.In, ast.NotIn)):
            if isinstance(left, Known) and isinstance(right, Known):
                return Known((left.value in right.value) == isinstance(op, ast.In))
            if isinstance(left, Known) and isinstance(right, Row) and isinstance(right.is_list, Form) and right.is_list.cls is dict:
                return Known((left.value in right.is_list.names) == isinstance(op, ast.In))
            if isinstance(left, Known) and isinstance(right, Row) and all(isinstance(x, Known) for x in right.items):
                return Known((left.value in [x.value for x in right.items]) == isinstance(op, ast.In))
            self.w.fail("`in` looks for a number that is not known", "compare with each element")
        return binary(self.w, COMPARISONS[type(op)][0], left, right)

    def both(self, first, second):
        if isinstance(first, Known):
            return second if first.value else first
        return binary(self.w, "&", first, self.w.cast(self.w.num(second), "b"))

    def expr_BoolOp(self, node):
        return self.chain(node, node.values, isinstance(node.op, ast.And), False)

    def condition(self, node):
        """An expression of which the truth is used, not the value: `a or b` is `True` where Python has the first of both that is true."""
        return self.chain(node, node.values, isinstance(node.op, ast.And), True) if isinstance(node, ast.BoolOp) else self.value(node)

    def chain(self, node, parts, is_and, is_condition):
        """`a and b and ...`, from the left, lazily."""
        first = self.condition(parts[0]) if is_condition else self.value(parts[0])
        if len(parts) == 1:
            return first
        known = truth(self.w, first)
        if isinstance(known, bool):
            return self.chain(node, parts[1:], is_and, is_condition) if known == is_and else first
        rest = lambda: self.chain(node, parts[1:], is_and, is_condition)
        stop = lambda: self.w.constant(not is_and)
        if is_condition:
            rest_truth = lambda: self.as_truth(rest())
            return self.w.choose(known, *((rest_truth, stop) if is_and else (stop, rest_truth)))
        other = stop if first.kind == "b" else lambda: first
        return self.choose_values(known, *((rest, other) if is_and else (other, rest)))

    def as_truth(self, value):
        known = truth(self.w, value)
        return self.w.constant(known) if isinstance(known, bool) else known

    def expr_IfExp(self, node):
        condition = truth(self.w, self.condition(node.test))
        if isinstance(condition, bool):
            return self.value(node.body if condition else node.orelse)
        return self.choose_values(condition, lambda: self.value(node.body), lambda: self.value(node.orelse))

    # Elements and attributes.

    def expr_Subscript(self, node):
        array = self.value(node.value)
        index = self.index_value(node.slice)
        self.w.at(self.frame.source, node)
        if isinstance(array, Row):
            return self.part_of(array, index)
        if isinstance(array, Known):
            if not isinstance(index, Known):
                self.w.fail(f"{describe(array)} is indexed by {describe(index)}", "index arrays: `np.array(...)`")
            try:
                return self.capture.lift(array.value[index.value])
            except Exception as error:
                self.w.fail(f"{type(error).__name__}: {error}")
        if not isinstance(array, Num) or not array.rank:
            self.w.fail(f"{describe(array)} is indexed", "index arrays and tuples")
        return indexing.get(self.w, array, index)

    def part_of(self, row, index):
        """The item of a tuple, a list or a dict."""
        if not isinstance(row.is_list, Form) or row.is_list.cls is not dict:
            return self.item(row, index)
        found = records.item(self.w, row, index.value) if isinstance(index, Known) else None
        if found is None:
            self.w.fail(f"KeyError: {describe(index)}", f"the dict has {', '.join(map(repr, row.is_list.names))}")
        return found

    def item(self, row, index):
        if isinstance(index, slices.Slice):
            bounds = [None if b is None else b.value if isinstance(b, Known) else self.w.fail("a bound is not known")
                      for b in (index.start, index.stop, index.step)]
            return Row(row.items[slice(*bounds)], row.is_list is True)
        if isinstance(index, Known):
            try:
                return row.items[index.value]
            except (IndexError, TypeError) as error:
                self.w.fail(str(error))
        return indexing.get(self.w, self.w.num(row), index)

    def index_value(self, node):
        if isinstance(node, ast.Slice):
            parts = (None if part is None else self.value(part) for part in (node.lower, node.upper, node.step))
            return slices.Slice(*parts)
        if isinstance(node, ast.Tuple):
            return Row([self.index_value(part) for part in node.elts])
        return self.value(node)

    def expr_Attribute(self, node):
        value = self.value(node.value)
        if isinstance(value, Masked) and node.attr in table.OF_MASKED:
            return Bound(value, node.attr)
        if isinstance(value, Masked) and node.attr == "size":
            return properties.size_of_masked(self.w, value)
        if isinstance(value, Row) and isinstance(value.is_list, Form):
            found = records.attribute(self.w, value, node.attr, self.capture.lift)
            is_property = isinstance(found, Bound) and isinstance(getattr(value.is_list.cls, node.attr, None), property)
            return self.inline_object(getattr(value.is_list.cls, node.attr).fget, [value], {}) if is_property else found
        if isinstance(value, Num) or isinstance(value, Row):
            if isinstance(value, Num) and node.attr in table.ATTRIBUTES:
                return table.ATTRIBUTES[node.attr](self.w, value)
            if isinstance(value, Num) and node.attr in table.METHODS:
                return Bound(value, node.attr)
            names = sorted(table.ATTRIBUTES) + sorted(table.METHODS)
            self.w.fail(f"`.{node.attr}` of {describe(value)} cannot be compiled", f"supported are {', '.join(names)}")
        if isinstance(value, Known):
            found = self.capture.attribute(value.value, node.attr)
            if found is None:
                self.w.fail(f"{describe(value)} has no attribute '{node.attr}'")
            return found
        return self.w.fail(f"`.{node.attr}` of {describe(value)} cannot be compiled")

    # Functions.

    def expr_Lambda(self, node):
        return Local(node, self.frame, "<lambda>")

    def expr_Call(self, node):
        function = self.value(node.func)
        args = []
        for part in node.args:
            if isinstance(part, ast.GeneratorExp):
                neutral = next((value for one, value in NEUTRAL if isinstance(function, Known) and function.value is one), None)
                if neutral is not None:
                    part = nested_fold(node, part, neutral)
                args.append(self.generator(part))
            else:
                args += self.items([part])
        kwargs = {}
        for keyword in node.keywords:
            value = self.value(keyword.value)
            if keyword.arg is not None:
                kwargs[keyword.arg] = value
            elif isinstance(value, Row) and isinstance(value.is_list, Form) and value.is_list.cls is dict:
                kwargs.update(zip(value.is_list.names, value.items))
            else:
                self.w.fail(f"`**` is used with {describe(value)}", "it takes a dict")
        self.w.at(self.frame.source, node)
        return self.call(node, function, args, kwargs)

    def call(self, node, function, args, kwargs):
        if isinstance(function, Bound) and isinstance(function.value, Row):
            return self.call_of_record(function.value, function.name, args, kwargs)
        if isinstance(function, Bound):
            handler = table.METHODS[function.name]
            return calls.apply(self.w, handler, f".{function.name}", [function.value, *args], kwargs, getattr(np, function.name, None))
        if isinstance(function, Local):
            return self.inline(function.node, function.frame, args, kwargs, function.name)
        if isinstance(function, Row) and isinstance(function.is_list, Form) and is_python_function(getattr(function.is_list.cls, "__call__", None)):
            return self.inline_object(function.is_list.cls.__call__, [function, *args], kwargs)
        if isinstance(function, Partial):
            return self.call(node, function.function, [*function.args, *args], function.kwargs | kwargs)
        if not isinstance(function, Known):
            self.w.fail(f"{describe(function)} is called")
        target = function.value
        if isinstance(target, functools.partial):
            lift = self.capture.lift
            given = {name: lift(value) for name, value in target.keywords.items()}
            return self.call(node, Known(target.func), [*map(lift, target.args), *args], given | kwargs)
        if target is functools.partial and args:
            return Partial(args[0], args[1:], kwargs)
        if target is functools.reduce and len(args) in (2, 3) and not kwargs:
            return folding.reduce(self.w, lambda a, b: self.call(node, args[0], [a, b], {}), *args[1:])
        handler = mapped.FUNCTIONS.get(target) if isinstance(target, collections.abc.Hashable) else None
        if handler is not None:
            return calls.apply(self.w, functools.partial(handler, call=lambda *given: self.call_purely(node, *given)), calls.name_of(target), args, kwargs)
        if records.is_record_class(target):
            return records.construct(self.w, target, args, kwargs, self.capture.lift)
        if target is dataclasses.replace and args and isinstance(args[0], Row):
            return records.replaced(self.w, args[0], kwargs)
        if target is dict and not args:
            return Row(kwargs.values(), Form(dict, kwargs))
        if target is dict and len(args) == 1 and isinstance(args[0], Row) and isinstance(args[0].is_list, Form) and args[0].is_list.cls is dict:
            items = dict(zip(args[0].is_list.names, args[0].items)) | kwargs
            return Row(items.values(), Form(dict, items))
        found = calls.known_call(self.w, target, args, kwargs)
        if found is not None:
            return found
        made = derivatives.call(self, node, target, args, kwargs)
        if made is not None:
            return made
        known = folding.folded(self.w, target, args, kwargs)
        if known is not None:
            return self.capture.lift(known)
        if target is isinstance and len(args) == 2 and not kwargs:
            return folding.is_instance(self.w, *args)
        if target is map and len(args) > 1 and not kwargs:
            return folding.mapped(self.w, lambda given: self.call_purely(node, args[0], given, {}), args[1:])
        target = getattr(target, "__wrapped_python__", target)
        if isinstance(target, types.MethodType) and is_python_function(target.__func__):
            return self.inline_object(target.__func__, [Known(target.__self__), *args], kwargs)
        if is_python_function(target):
            return self.inline_object(target, args, kwargs)
        return self.w.fail(f"`{calls.name_of(target)}` cannot be compiled", nearest(calls.name_of(target)))

    def call_purely(self, node, function, args, kwargs):
        """Calls a function for one part of an array: it must not write to arrays that are there before."""
        start, known = len(self.writes), self.snapshot()
        value = self.call(node, function, args, kwargs)
        self.no_writes(start, known, "a function of parts of an array")
        return value

    def call_of_record(self, row, name, args, kwargs):
        """Calls a method of a dict, a NamedTuple or a dataclass."""
        if row.is_list.cls is dict:
            return calls.apply(self.w, records.DICT_METHODS[name], f".{name}", [row, *args], kwargs)
        if name == "_replace":
            return records.replaced(self.w, row, kwargs)
        return self.inline_object(getattr(row.is_list.cls, name), [row, *args], kwargs)

    def inline_object(self, function, args, kwargs):
        """Calls a Python function by capturing it in place."""
        if hasattr(function, derivatives.RULE):
            return derivatives.by_rule(self, self.w.node, function, args, kwargs)
        source, node = of_function(function)
        closure = dict(zip(function.__code__.co_freevars, function.__closure__ or ()))
        outer = Frame(self.capture, source, function.__globals__, closure, name=function.__name__)
        defaults = [self.capture.lift(value) for value in function.__defaults__ or ()]
        keywords = {name: self.capture.lift(value) for name, value in (function.__kwdefaults__ or {}).items()}
        return self.inline(node, outer, args, kwargs, function.__name__, defaults, keywords)

    def inline(self, node, outer, args, kwargs, name, defaults=None, keywords=None):
        if self.depth >= MAX_DEPTH:
            self.w.fail(f"`{name}` calls itself, or calls nest more than {MAX_DEPTH} deep",
                        "write recursion as a loop: its depth would depend on data")
        frame = Frame(self.capture, outer.source, outer.module, outer.closure, parent=outer, name=name)
        self.bind(node, frame, args, kwargs, name, defaults, keywords)
        frame.own = self.own_names(node)
        before, place = self.frame, (self.w.source, self.w.node)
        self.frame, self.depth = frame, self.depth + 1
        self.callers.append(before)
        result = self.value(node.body) if isinstance(node, ast.Lambda) else self.body(node)
        self.callers.pop()
        self.frame, self.depth = before, self.depth - 1
        self.w.at(*place)
        return result

    def bind(self, node, frame, args, kwargs, name, defaults, keywords):
        """The parameters of a function as variables of its frame."""
        spec = node.args
        names = [part.arg for part in [*spec.posonlyargs, *spec.args]]
        kwargs = dict(kwargs)
        if len(args) > len(names) and spec.vararg is None:
            self.w.fail(f"{name}() takes {len(names)} positional arguments but {len(args)} were given")
        env = dict(zip(names, args))
        if spec.vararg is not None:
            env[spec.vararg.arg] = Row(args[len(names):])
        if spec.kwarg is not None:
            self.w.fail(f"`**{spec.kwarg.arg}` cannot be compiled", "name the arguments")
        only = [part.arg for part in spec.kwonlyargs]
        for key, value in kwargs.items():
            if key in env or key not in names + only:
                self.w.fail(f"{name}() got an unexpected argument '{key}'")
            env[key] = value
        if defaults is None:
            outside, self.frame = self.frame, frame.parent
            defaults = [self.value(part) for part in spec.defaults]
            keywords = {key: self.value(part) for key, part in zip(only, spec.kw_defaults) if part is not None}
            self.frame = outside
        for key, value in [*zip(names[len(names) - len(defaults):], defaults), *keywords.items()]:
            env.setdefault(key, value)
        missing = [key for key in names + only if key not in env]
        if missing:
            self.w.fail(f"{name}() is missing the argument '{missing[0]}'")
        frame.env.update(env)

    # Comprehensions.

    def expr_ListComp(self, node):
        made = self.generator(node)
        if isinstance(made, Row):
            return Row(made.items, is_list=True)
        return self.w.build((made.count,), lambda i: self.w.num(made.element(i[0])), is_list=True)

    def expr_GeneratorExp(self, node):
        return self.generator(node)

    def generator(self, node):
        """A comprehension as a loop, or as the items where their number is known."""
        first, *others = node.generators
        inner, outer = loops.loop_of(self.w, self.value(first.iter)), self.frame

        def within(item, read):
            """What `read()` gives where the target is an item."""
            frame = Frame(self.capture, outer.source, outer.module, outer.closure, parent=outer)
            before, self.frame = self.frame, frame
            place, start, known = (self.w.source, self.w.node), len(self.writes), self.snapshot()
            self.assign(first.target, known_number(item))
            value = read()
            self.no_writes(start, known, "a comprehension")
            self.frame = before
            self.w.at(*place)
            return value

        def element(item):
            if others:
                return within(item, lambda: self.generator(type(node)(elt=node.elt, generators=others, **positions(node))))
            return within(item, lambda: self.value(node.elt))

        _, is_opened = self.opened.enter(self.w.source, node)
        if (is_opened or any(part.ifs for part in node.generators)) and not isinstance(inner, list) and has_few_steps(inner):
            inner = list(steps(self.w, inner))
        if first.ifs:
            if not isinstance(inner, list):
                self.depends_on_data(first.ifs[0])
            inner = [item for item in inner if within(item, lambda: all(self.is_kept(test) for test in first.ifs))]
        if not others:
            return Row([element(item) for item in inner]) if isinstance(inner, list) else Loop(inner.count, lambda i: element(inner.element(i)))
        if isinstance(inner, list):
            return loops.chained(self.w, [element(item) for item in inner])
        return loops.nested(self.w, Loop(inner.count, lambda i: element(inner.element(i))))

    def is_kept(self, test):
        """Whether the condition of a comprehension holds, which is known."""
        holds = truth(self.w, self.condition(test))
        return holds if isinstance(holds, bool) else self.depends_on_data(test)

    def depends_on_data(self, test):
        self.w.fail("a comprehension with a condition cannot be compiled", "its length would depend on data: sum `x if c else 0.0` instead", node=test)

    def expr_JoinedStr(self, node):
        return Known("")


#: Functions whose value for several loops is that for their values for the inner loops, with the value for none.
NEUTRAL = ((sum, 0), (any, False), (all, True))


def nested_fold(call, node, neutral):
    """A fold over several loops as a fold of folds, and of what holds under conditions as a choice."""
    first, *others = node.generators
    element = node.elt
    if others:
        inner = nested_fold(call, ast.GeneratorExp(elt=element, generators=others, **positions(node)), neutral)
        element = ast.Call(func=call.func, args=[inner], keywords=[], **positions(node))
    for condition in first.ifs:
        otherwise = ast.Constant(value=neutral, **positions(node))
        element = ast.IfExp(test=condition, body=element, orelse=otherwise, **positions(node))
    loop = ast.comprehension(target=first.target, iter=first.iter, ifs=[], is_async=0)
    return ast.GeneratorExp(elt=element, generators=[loop], **positions(node))


def positions(node):
    return {key: getattr(node, key) for key in ("lineno", "col_offset", "end_lineno", "end_col_offset")}


REMEDIES = {
    ast.DictComp: "use an array",
    ast.Set: "use a tuple",
    ast.SetComp: "use an array",
    ast.Await: "captured functions compute numbers only",
    ast.Yield: "return an array",
    ast.YieldFrom: "return an array",
}


def phrase(node):
    names = {
        ast.Dict: "a dict", ast.DictComp: "a dict comprehension", ast.Set: "a set", ast.SetComp: "a set comprehension",
        ast.Await: "`await`", ast.Yield: "`yield`", ast.YieldFrom: "`yield from`", ast.LShift: "`<<`", ast.RShift: "`>>`",
        ast.Try: "`try`", ast.With: "`with`", ast.Raise: "`raise`", ast.ClassDef: "`class`", ast.Global: "`global`",
        ast.Nonlocal: "`nonlocal`", ast.Delete: "`del`", ast.Import: "`import`", ast.ImportFrom: "`import`", ast.Match: "`match`",
    }
    return names.get(type(node), f"`{type(node).__name__}`")


def nearest(name):
    import difflib
    found = difflib.get_close_matches(name, calls.supported(), n=1, cutoff=0.5)
    near = f"the nearest supported one is `{found[0]}`; " if found else ""
    return f"{near}`chainrule.supported()` lists all"
