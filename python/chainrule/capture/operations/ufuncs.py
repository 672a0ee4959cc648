"""Elementwise functions: the table of what is supported, from NumPy, `math` and `scipy.special`.

A row is what it computes of numbers, and arguments at which it is tested against the function itself.
"""

from __future__ import annotations

import math

import numpy as np

from .operators import call, finite, is_infinite, is_nan, negative_scalar, scalar
from ..values import Num

try:
    import scipy.special as special
except ImportError:  # SciPy is optional.
    special = None


class Row:
    """A supported function. `samples` are arguments inside of its domain; `smooth` says it has a derivative there."""

    __slots__ = ("names", "compute", "samples", "smooth", "objects", "is_mask")

    def __init__(self, names, compute, samples, smooth=True, is_mask=False):
        self.names = names.split()
        self.compute = compute
        self.samples = samples
        self.smooth = smooth
        self.is_mask = is_mask  # gives truth values
        self.objects = [found for found in map(_resolve, self.names) if found is not None]


def _resolve(name):
    module, _, attribute = name.rpartition(".")
    return getattr({"np": np, "math": math, "special": special}[module], attribute, None)


def _plain(name):
    return lambda w, x: call(w, name, x)


def _two(name):
    return lambda w, x, y: call(w, name, x, y)


def _infix(sign):
    return lambda w, x, y: scalar(w, sign, x, y)


def _extreme(name, *, nan_wins):
    """A NaN wins as in `np.maximum`, or loses as in `np.fmax`. The operators of F~ have the first number if one of two is a NaN."""
    def compute(w, x, y):
        kind = w.common(x, y)
        x, y = w.cast(x, kind), w.cast(y, kind)
        found = lambda: Num(w.program.apply(name, [x.term, y.term]), kind)
        return w.choose(is_nan(w, y if nan_wins else x), lambda: y, found) if kind == "f" else found()
    return compute


def _kept(name):
    """A function that gives an int for an int."""
    def compute(w, x):
        x = w.cast(x, "i") if x.kind == "b" else x
        if x.kind == "f":
            return call(w, name, x)
        if name in ("floor", "ceil"):
            return w.cast(x, "f")
        return Num(w.program.apply(name, [x.term]), "i")
    return compute


def _times(factor, name=None, by=None):
    def compute(w, x):
        x = x if name is None else call(w, name, x)
        return scalar(w, "*", w.cast(x, "f"), w.constant(factor))
    return compute


def _square(w, x):
    return scalar(w, "*", x, x)


def _sigmoid(w, x):
    # exp of what is not positive, on either side: nothing overflows.
    x = w.cast(x, "f")
    one = w.constant(1.0)
    def right():
        return scalar(w, "/", one, scalar(w, "+", one, call(w, "exp", negative_scalar(w, x))))
    def left():
        e = call(w, "exp", x)
        return scalar(w, "/", e, scalar(w, "+", one, e))
    return w.choose(scalar(w, ">=", x, w.constant(0.0)), right, left)


def _logaddexp(w, x, y):
    x, y = w.cast(x, "f"), w.cast(y, "f")
    def side(large, small):
        difference = scalar(w, "-", small, large)
        of_finite = lambda: scalar(w, "+", large, call(w, "log1p", call(w, "exp", difference)))
        return w.choose(is_infinite(w, large), lambda: large, of_finite)
    return w.choose(scalar(w, ">=", x, y), lambda: side(x, y), lambda: side(y, x))


def _log_expit(w, x):
    zero = w.constant(0.0)
    return negative_scalar(w, _logaddexp(w, zero, negative_scalar(w, w.cast(x, "f"))))


def _times_log(w, x, y, log):
    """`x * log(y)`, and 0 where `x` is 0 and the logarithm infinite. Where it is finite, the product has the derivative."""
    x, zero = w.cast(x, "f"), w.constant(0.0)
    found = call(w, log, y)
    is_lost = scalar(w, "&", scalar(w, "==", x, zero), is_infinite(w, found))
    return w.choose(is_lost, lambda: zero, lambda: scalar(w, "*", x, found))


def _xlogy(w, x, y):
    return _times_log(w, x, y, "log")


def _clip(w, x, low, high):
    return _extreme("min", nan_wins=True)(w, _extreme("max", nan_wins=True)(w, x, low), high)


def _logical(sign):
    return lambda w, x, y: Num(w.program.infix(sign, w.cast(x, "b").term, w.cast(y, "b").term), "b")


def _not(w, x):
    return Num(w.program.apply("not", [w.cast(x, "b").term]), "b")


def _power(w, x, y):
    return scalar(w, "**", x, y)


def _heaviside(w, x, y):
    x, zero = w.cast(x, "f"), w.constant(0.0)
    above = lambda: w.choose(scalar(w, ">", x, zero), lambda: w.constant(1.0), lambda: zero)
    return w.choose(scalar(w, "==", x, zero), lambda: w.cast(y, "f"), above)


def _truncated(w, x):
    """Towards zero."""
    if x.kind != "f":
        return w.cast(x, "i")
    return w.choose(scalar(w, "<", x, w.constant(0.0)), lambda: call(w, "ceil", x), lambda: call(w, "floor", x))


def nearest(w, x):
    """To the nearest whole number, to an even one in the middle."""
    x = w.cast(x, "f")
    half = w.constant(0.5)
    up = call(w, "floor", scalar(w, "+", x, half))
    is_odd = lambda: scalar(w, "<>", up, scalar(w, "*", w.constant(2.0), call(w, "floor", scalar(w, "*", up, half))))
    in_the_middle = scalar(w, "==", scalar(w, "-", up, x), half)
    down = lambda: w.choose(is_odd(), lambda: scalar(w, "-", up, w.constant(1.0)), lambda: up)
    return w.choose(in_the_middle, down, lambda: up)


def _fmod(w, x, y):
    """The remainder with the sign of the first number; see `operators.remainder` for 0 and infinite numbers."""
    x, y = w.cast(x, "f"), w.cast(y, "f")
    formula = lambda: scalar(w, "-", x, scalar(w, "*", y, _truncated(w, scalar(w, "/", x, y))))
    has_value = lambda: scalar(w, "&", scalar(w, "<>", y, w.constant(0.0)), finite(w, x))
    special = lambda: w.choose(has_value(), lambda: x, lambda: w.constant(math.nan))
    is_special = scalar(w, "|", scalar(w, "==", y, w.constant(0.0)), is_infinite(w, y))
    return w.choose(is_special, special, formula)


#: Bound of the numbers whose `sin(x) / x` is a polynomial: derivatives of the quotient lose digits there.
SERIES_OF_SINC = 0.5


def _sinc(w, x):
    x = scalar(w, "*", w.constant(math.pi), w.cast(x, "f"))

    def series():
        square, total = scalar(w, "*", x, x), w.constant(0.0)
        for k in reversed(range(10)):
            total = scalar(w, "+", w.constant((-1) ** k / math.factorial(2 * k + 1)), scalar(w, "*", square, total))
        return total

    is_small = scalar(w, "<", call(w, "abs", x), w.constant(SERIES_OF_SINC))
    return w.choose(is_small, series, lambda: scalar(w, "/", call(w, "sin", x), x))


def _test(name):
    return lambda w, x: Num(w.program.apply(name, [w.cast(x, "f").term]), "b")


def _is_infinite(w, x):
    return is_infinite(w, w.cast(x, "f"))


def _log2addexp(w, x, y):
    factor = w.constant(math.log(2.0))
    return scalar(w, "/", _logaddexp(w, scalar(w, "*", w.cast(x, "f"), factor), scalar(w, "*", w.cast(y, "f"), factor)), factor)


def _copysign(w, x, y):
    size = lambda: call(w, "abs", w.cast(x, "f"))
    return w.choose(scalar(w, "<", w.cast(y, "f"), w.constant(0.0)), lambda: negative_scalar(w, size()), size)


def _xlog1py(w, x, y):
    return _times_log(w, x, y, "log1p")


def _logit(w, x):
    x = w.cast(x, "f")
    return scalar(w, "-", call(w, "log", x), call(w, "log1p", negative_scalar(w, x)))


def _x_log_x(w, x):
    """`x * log(x)`; at 0, a root has its value 0 and its infinite derivative."""
    x, zero = w.cast(x, "f"), w.constant(0.0)
    return w.choose(scalar(w, "==", x, zero), lambda: negative_scalar(w, call(w, "sqrt", x)), lambda: scalar(w, "*", x, call(w, "log", x)))


def _entr(w, x):
    return negative_scalar(w, _x_log_x(w, x))


def _rel_entr(w, x, y):
    x, y = w.cast(x, "f"), w.cast(y, "f")
    return scalar(w, "-", _x_log_x(w, x), _xlogy(w, x, y))


def _kl_div(w, x, y):
    return scalar(w, "+", scalar(w, "-", _rel_entr(w, x, y), w.cast(x, "f")), w.cast(y, "f"))


def _gamma(w, x):
    """The gamma function; between two negative integers its sign alternates."""
    x = w.cast(x, "f")
    size = call(w, "exp", call(w, "lgamma", x))
    half = w.constant(0.5)
    floor = call(w, "floor", x)
    is_even = scalar(w, "==", scalar(w, "*", half, floor), call(w, "floor", scalar(w, "*", half, floor)))
    is_plain = scalar(w, "|", scalar(w, ">", x, w.constant(0.0)), is_even)
    return w.choose(is_plain, lambda: size, lambda: negative_scalar(w, size))


def _ndtr(w, x):
    return scalar(w, "*", w.constant(0.5), call(w, "erfc", _times(-math.sqrt(0.5))(w, x)))


def _betaln(w, x, y):
    gamma = lambda v: call(w, "lgamma", v)
    return scalar(w, "-", scalar(w, "+", gamma(x), gamma(y)), gamma(scalar(w, "+", w.cast(x, "f"), w.cast(y, "f"))))


def _huber(w, delta, r):
    delta, size = w.cast(delta, "f"), call(w, "abs", r)
    half = w.constant(0.5)
    inner = lambda: scalar(w, "*", half, scalar(w, "*", size, size))
    outer = lambda: scalar(w, "*", delta, scalar(w, "-", size, scalar(w, "*", half, delta)))
    return w.choose(scalar(w, "<=", size, delta), inner, outer)


def _pseudo_huber(w, delta, r):
    delta = w.cast(delta, "f")
    ratio = scalar(w, "/", w.cast(r, "f"), delta)
    root = call(w, "sqrt", scalar(w, "+", w.constant(1.0), scalar(w, "*", ratio, ratio)))
    return scalar(w, "*", scalar(w, "*", delta, delta), scalar(w, "-", root, w.constant(1.0)))


R = [-1.3, -0.4, 0.25, 1.7]
POSITIVE = [0.3, 0.9, 1.6, 4.2]
UNIT = [-0.8, -0.3, 0.2, 0.7]
PAIRS = ([0.3, -1.3, 2.0, 0.7], [1.1, 0.4, -0.6, 0.9])

ROWS = [
    Row("np.sin math.sin", _plain("sin"), [R]),
    Row("np.cos math.cos", _plain("cos"), [R]),
    Row("np.tan math.tan", _plain("tan"), [R]),
    Row("np.arcsin np.asin math.asin", _plain("asin"), [UNIT]),
    Row("np.arccos np.acos math.acos", _plain("acos"), [UNIT]),
    Row("np.arctan np.atan math.atan", _plain("atan"), [R]),
    Row("np.arctan2 np.atan2 math.atan2", _two("atan2"), PAIRS),
    Row("np.hypot math.hypot", _two("hypot"), PAIRS),
    Row("np.sinh math.sinh", _plain("sinh"), [R]),
    Row("np.cosh math.cosh", _plain("cosh"), [R]),
    Row("np.tanh math.tanh", _plain("tanh"), [R]),
    Row("np.arcsinh np.asinh math.asinh", _plain("asinh"), [R]),
    Row("np.arccosh np.acosh math.acosh", _plain("acosh"), [[1.2, 2.0, 3.5, 7.0]]),
    Row("np.arctanh np.atanh math.atanh", _plain("atanh"), [UNIT]),
    Row("np.exp math.exp", _plain("exp"), [R]),
    Row("np.expm1 math.expm1 special.expm1", _plain("expm1"), [R]),
    Row("np.exp2 math.exp2 special.exp2", lambda w, x: call(w, "exp", _times(math.log(2.0))(w, x)), [R]),
    Row("np.log math.log", _plain("log"), [POSITIVE]),
    Row("np.log1p math.log1p special.log1p", _plain("log1p"), [POSITIVE]),
    Row("np.log2 math.log2", _times(1.0 / math.log(2.0), "log"), [POSITIVE]),
    Row("np.log10 math.log10", _times(1.0 / math.log(10.0), "log"), [POSITIVE]),
    Row("np.logaddexp", _logaddexp, PAIRS),
    Row("np.sqrt math.sqrt", _plain("sqrt"), [POSITIVE]),
    Row("np.cbrt math.cbrt special.cbrt", _plain("cbrt"), [R]),
    Row("np.square", _square, [R]),
    Row("np.reciprocal", lambda w, x: scalar(w, "/", w.constant(1.0), w.cast(x, "f")), [R]),
    Row("np.power np.pow", _power, [POSITIVE, PAIRS[1]]),
    Row("np.float_power math.pow", lambda w, x, y: _power(w, w.cast(x, "f"), w.cast(y, "f")), [POSITIVE, PAIRS[1]]),
    Row("np.absolute np.abs", _kept("abs"), [R]),
    Row("np.fabs math.fabs", _plain("abs"), [R]),
    Row("np.sign", _kept("sign"), [R], smooth=False),
    Row("np.floor", _kept("floor"), [R], smooth=False),
    Row("np.ceil", _kept("ceil"), [R], smooth=False),
    Row("np.heaviside", _heaviside, [R, POSITIVE], smooth=False),
    Row("np.negative", negative_scalar, [R]),
    Row("np.positive", lambda w, x: x, [R]),
    Row("np.conjugate np.conj", lambda w, x: x, [R]),
    Row("np.add", _infix("+"), PAIRS),
    Row("np.subtract", _infix("-"), PAIRS),
    Row("np.multiply", _infix("*"), PAIRS),
    Row("np.divide np.true_divide", _infix("/"), PAIRS),
    Row("np.floor_divide", _infix("//"), PAIRS, smooth=False),
    Row("np.mod np.remainder", _infix("%"), PAIRS),
    Row("np.maximum", _extreme("max", nan_wins=True), PAIRS),
    Row("np.fmax", _extreme("max", nan_wins=False), PAIRS),
    Row("np.minimum", _extreme("min", nan_wins=True), PAIRS),
    Row("np.fmin", _extreme("min", nan_wins=False), PAIRS),
    Row("np.clip", _clip, ([0.3, -1.2, 2.0, 0.7], [-0.5] * 4, [1.0] * 4)),
    Row("np.deg2rad np.radians math.radians", _times(math.pi / 180.0), [R]),
    Row("np.rad2deg np.degrees math.degrees", _times(180.0 / math.pi), [R]),
    Row("np.less", _infix("<"), PAIRS, smooth=False, is_mask=True),
    Row("np.less_equal", _infix("<="), PAIRS, smooth=False, is_mask=True),
    Row("np.greater", _infix(">"), PAIRS, smooth=False, is_mask=True),
    Row("np.greater_equal", _infix(">="), PAIRS, smooth=False, is_mask=True),
    Row("np.equal", _infix("=="), PAIRS, smooth=False, is_mask=True),
    Row("np.not_equal", _infix("<>"), PAIRS, smooth=False, is_mask=True),
    Row("np.logical_and", _logical("&&"), PAIRS, smooth=False, is_mask=True),
    Row("np.logical_or", _logical("||"), PAIRS, smooth=False, is_mask=True),
    Row("np.logical_not", _not, [R], smooth=False, is_mask=True),
    Row("special.expit", _sigmoid, [R]),
    Row("special.log_expit", _log_expit, [R]),
    Row("special.erf math.erf", _plain("erf"), [R]),
    Row("special.erfc math.erfc", _plain("erfc"), [R]),
    Row("np.trunc np.fix", _truncated, [R], smooth=False),
    Row("np.rint", nearest, [[-1.5, -0.5, 0.5, 1.7, 2.5]], smooth=False),
    Row("np.fmod math.fmod", _fmod, PAIRS),
    Row("np.sinc", _sinc, [R]),
    Row("np.isposinf", lambda w, x: scalar(w, "==", w.cast(x, "f"), w.constant(math.inf)), [R], smooth=False, is_mask=True),
    Row("np.isneginf", lambda w, x: scalar(w, "==", w.cast(x, "f"), w.constant(-math.inf)), [R], smooth=False, is_mask=True),
    Row("special.gamma math.gamma", _gamma, [POSITIVE]),
    Row("special.beta", lambda w, x, y: call(w, "exp", _betaln(w, x, y)), [POSITIVE, POSITIVE[::-1]]),
    Row("np.isnan math.isnan", _test("isNaN"), [R], smooth=False, is_mask=True),
    Row("np.isfinite math.isfinite", _test("isFinite"), [R], smooth=False, is_mask=True),
    Row("np.isinf math.isinf", _is_infinite, [R], smooth=False, is_mask=True),
    Row("np.logaddexp2", _log2addexp, PAIRS),
    Row("np.copysign math.copysign", _copysign, PAIRS),
    Row("np.logical_xor", lambda w, x, y: scalar(w, "^", w.cast(x, "b"), w.cast(y, "b")), PAIRS, smooth=False, is_mask=True),
    Row("special.xlog1py", _xlog1py, [POSITIVE, POSITIVE]),
    Row("special.logit", _logit, [[0.2, 0.4, 0.7, 0.95]]),
    Row("special.entr", _entr, [POSITIVE]),
    Row("special.rel_entr", _rel_entr, [POSITIVE, POSITIVE[::-1]]),
    Row("special.kl_div", _kl_div, [POSITIVE, POSITIVE[::-1]]),
    Row("special.ndtr", _ndtr, [R]),
    Row("special.betaln", _betaln, [POSITIVE, POSITIVE[::-1]]),
    Row("special.huber", _huber, [[1.0] * 4, [-1.3, -0.4, 0.25, 1.7]]),
    Row("special.pseudo_huber", _pseudo_huber, [[1.0] * 4, R]),
    Row("special.gammaln math.lgamma", _plain("lgamma"), [POSITIVE]),
    Row("special.digamma special.psi", _plain("digamma"), [POSITIVE]),
    Row("special.xlogy", _xlogy, [POSITIVE, POSITIVE]),
]

BY_OBJECT = {}
for _row in ROWS:
    for _object in _row.objects:
        BY_OBJECT[_object] = _row
