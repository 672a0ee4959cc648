"""Operators of Python on numbers and arrays, with NumPy's kinds."""

from __future__ import annotations

import ast
import math
import operator

from ..values import Known, Masked, Num, Row, describe, is_number

ARITHMETIC = {
    ast.Add: ("+", operator.add),
    ast.Sub: ("-", operator.sub),
    ast.Mult: ("*", operator.mul),
    ast.Div: ("/", operator.truediv),
    ast.FloorDiv: ("//", operator.floordiv),
    ast.Mod: ("%", operator.mod),
    ast.Pow: ("**", operator.pow),
    ast.BitAnd: ("&", operator.and_),
    ast.BitOr: ("|", operator.or_),
    ast.BitXor: ("^", operator.xor),
    ast.LShift: ("<<", operator.lshift),
    ast.RShift: (">>", operator.rshift),
}

COMPARISONS = {
    ast.Lt: ("<", operator.lt),
    ast.LtE: ("<=", operator.le),
    ast.Gt: (">", operator.gt),
    ast.GtE: (">=", operator.ge),
    ast.Eq: ("==", operator.eq),
    ast.NotEq: ("<>", operator.ne),
}

#: Signs that make masks.
MASKS = {sign for sign, _ in COMPARISONS.values()} | {"&", "|", "^"}

FOLDED = {sign: function for sign, function in [*ARITHMETIC.values(), *COMPARISONS.values()]}


def call(w, name, *numbers):
    """A function of F~ of floats."""
    return Num(w.program.apply(name, [w.cast(x, "f").term for x in numbers]), "f")


def scalar(w, sign, a, b):
    """`a sign b` of two numbers."""
    if sign in ("&", "|", "^", "<<", ">>"):
        if "f" in (a.kind, b.kind):
            w.fail(f"`{sign}` is used with a float", "it is for ints and truth values: `(x > 0) & (x < 1)`")
        if sign in ("<<", ">>") or a.kind != "b" or b.kind != "b":
            from . import whole
            a, b = w.cast(a, "i"), w.cast(b, "i")
            return (whole.shift if sign in ("<<", ">>") else whole.bits)(w, sign, a, b)
        return Num(w.program.infix({"&": "&&", "|": "||", "^": "<>"}[sign], *both(w, sign, a, b)), "b")
    if sign in ("<", "<=", ">", ">=", "==", "<>"):
        kind = w.common(a, b)
        return Num(w.program.infix(sign, w.cast(a, kind).term, w.cast(b, kind).term), "b")
    if sign == "**":
        return power(w, a, b)
    kind = "f" if sign == "/" else w.common(a, b)
    a, b = w.cast(a, kind), w.cast(b, kind)
    if sign in ("//", "%"):
        if sign == "//" and kind == "i" and a.dim is not None and b.dim is not None and (b.dim.known or 0) > 0:
            return w.size(w.divided(a.dim, b.dim.known))
        if kind == "i":
            return Num(w.program.apply("div" if sign == "//" else "mod", [a.term, b.term]), "i")
        return (floor_division if sign == "//" else remainder)(w, a, b)
    return Num(w.program.infix(sign, a.term, b.term), kind, dim=form(sign, a.dim, b.dim))


def is_nan(w, x):
    return Num(w.program.apply("isNaN", [x.term]), "b")


def is_infinite(w, x):
    return scalar(w, "==", call(w, "abs", x), w.constant(math.inf))


def is_negative(w, x):
    return scalar(w, "<", x, w.constant(0.0))


def floor_division(w, a, b):
    """`a // b` of floats: a small negative number over an infinite one is rounded down to -1."""
    quotient = lambda: call(w, "floor", scalar(w, "/", a, b))

    def by_infinite():
        signs_differ = scalar(w, "<>", is_negative(w, a), is_negative(w, b))
        is_rounded = scalar(w, "&", signs_differ, scalar(w, "<>", a, w.constant(0.0)))
        return w.choose(scalar(w, "&", is_rounded, finite(w, a)), lambda: w.constant(-1.0), quotient)

    return w.choose(is_infinite(w, b), by_infinite, quotient)


def remainder(w, a, b):
    """`a % b` of floats, with the sign of `b`: the formula has no value where `b` is infinite, and a wrong one for the literal 0."""
    formula = lambda: scalar(w, "-", a, scalar(w, "*", b, call(w, "floor", scalar(w, "/", a, b))))

    def special():
        signs_agree = scalar(w, "==", is_negative(w, a), is_negative(w, b))
        keeps = scalar(w, "|", signs_agree, scalar(w, "==", a, w.constant(0.0)))
        by_infinite = lambda: w.choose(keeps, lambda: a, lambda: b)
        has_value = scalar(w, "&", scalar(w, "<>", b, w.constant(0.0)), finite(w, a))
        return w.choose(has_value, by_infinite, lambda: w.constant(math.nan))

    is_special = scalar(w, "|", scalar(w, "==", b, w.constant(0.0)), is_infinite(w, b))
    return w.choose(is_special, special, formula)


def finite(w, x):
    return Num(w.program.apply("isFinite", [x.term]), "b")


def both(w, sign, a, b):
    if sign == "^":
        return w.cast(a, "i").term, w.cast(b, "i").term
    return a.term, b.term


def form(sign, a, b):
    """The linear form of a sum, a difference, a product with a number."""
    if a is None or b is None:
        return None
    if sign == "+":
        return a + b
    if sign == "-":
        return a - b
    if a.known is not None:
        return b * a.known
    return a * b.known if b.known is not None else None


def power(w, a, b):
    known = b.dim.known if b.dim is not None else None
    if b.kind == "b":
        b = w.cast(b, "i")
    if b.kind == "i":
        if a.kind != "f" and known is not None and 0 <= known <= 64:
            result = w.constant(1)
            for _ in range(known):
                result = scalar(w, "*", result, a)
            return result
        if a.kind != "f" and known is None:
            w.fail("an int is raised to a power that is not known", "make it a float: `float(n) ** k`")
        return Num(w.program.infix("**", w.cast(a, "f").term, b.term), "f")
    return Num(w.program.infix("**", w.cast(a, "f").term, b.term), "f")


def binary(w, sign, a, b):
    """`a sign b` of two values."""
    if isinstance(a, Known) and isinstance(b, Known) and (sign in ("==", "<>") or is_number(a.value) and is_number(b.value)
                                                           or isinstance(a.value, str)):
        try:
            return Known(FOLDED[sign](a.value, b.value))
        except Exception as error:  # What Python says of these objects.
            return w.fail(str(error))
    if isinstance(a, Row) and isinstance(b, Row) and a.is_list == b.is_list and sign == "+":
        return Row(a.items + b.items, a.is_list)
    if isinstance(a, Row) and isinstance(b, Known) and sign == "*" and isinstance(b.value, int):
        return Row(a.items * b.value, a.is_list)
    for value in (a, b):
        other = b if value is a else a
        lone = isinstance(value, Row) and not (isinstance(other, Num) and other.rank and not other.is_list)
        if lone or isinstance(value, Num) and value.is_list:
            w.fail(f"`{sign}` is used with a {'list' if isinstance(value, Num) else describe(value)[2:]}",
                   "make it an array: `np.array(...)`")
    # A whole number as an exponent stays one, so that it becomes products.
    if sign == "**" and isinstance(b, Known) and isinstance(b.value, float) and b.value.is_integer() and abs(b.value) < 1e6:
        a = w.num(a)
        return binary(w, sign, w.cast(a, "f"), Known(int(b.value)))
    if isinstance(a, Masked) or isinstance(b, Masked):
        return w.map(lambda x, y: scalar(w, sign, x, y), a, b)
    key = (sign, named(a), named(b))
    a, b = w.num(a), w.num(b)
    if a.kind == b.kind == "b" and a.rank + b.rank and sign in ("+", "*", "-"):
        w.fail(f"`{sign}` is used with arrays of bool", "combine them by `&` and `|`, or make them floats: `np.where(c, 1.0, 0.0)`")
    made = lambda: w.map(lambda x, y: scalar(w, sign, x, y), a, b)
    return w.mask(key, made) if sign in MASKS and a.rank + b.rank and None not in key else made()


def named(value):
    """What a number or an array is told apart by, if by anything."""
    if isinstance(value, Num):
        return value.term.name
    return (type(value.value), value.value) if isinstance(value, Known) and is_number(value.value) else None


def negative(w, value):
    if isinstance(value, Known) and is_number(value.value):
        return Known(-value.value)
    if isinstance(value, Masked):
        return w.map(lambda x: negative_scalar(w, x), value)
    value = w.num(value)
    if value.kind == "b" and value.rank:
        w.fail("`-` is used with an array of bool", "write `~`")
    return w.map(lambda x: negative_scalar(w, x), value)


def negative_scalar(w, x):
    x = w.cast(x, "i") if x.kind == "b" else x
    return Num(w.program.neg(x.term), x.kind, dim=None if x.dim is None else x.dim * -1)


def invert(w, value):
    """`~` of ints and truth values, and `not`."""
    value = w.num(value)
    if value.kind == "f":
        w.fail("`~` is used with floats", "it is for ints and truth values")
    if value.kind == "i":
        from . import whole
        return w.map(lambda x: whole.complement(w, x), value)
    made = lambda: w.map(lambda x: Num(w.program.apply("not", [x.term]), "b"), value)
    return w.mask(("~", named(value)), made) if value.rank and named(value) is not None else made()


def truth(w, value):
    """A value as a condition: a Python bool where it is known, else a number of kind `b`."""
    if isinstance(value, Known):
        try:
            return bool(value.value)
        except Exception as error:
            return w.fail(str(error))
    if isinstance(value, Row):
        return bool(value.items)
    if isinstance(value, Num):
        if value.rank:
            w.fail("an array is used as a condition", "use `np.where` for a choice by element, or reduce it by `np.any`, `np.all`")
        return w.cast(value, "b")
    return True
