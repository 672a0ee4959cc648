"""Whole numbers: floats made ints, and the bits of ints.

The program has no operator for bits: a bit is a quotient modulo 2.
"""

from __future__ import annotations

from .operators import call, negative_scalar, scalar
from ..values import Dim, Num

#: Bits of a float's magnitude: beyond them, not every int is a float.
FLOAT_BITS = 53
#: Bits of an int, but for its sign.
INT_BITS = 63


def powers(w, n):
    """The powers of 2 from `2**(n - 1)` down to 1."""
    return w.stack([w.constant(1 << k) for k in reversed(range(n))])


def smaller(w, i, j):
    return Num(w.program.apply("min", [i.term, j.term]), "i")


def clamped(w, i, n):
    """The index brought into an axis of this extent."""
    not_negative = Num(w.program.apply("max", [w.constant(0).term, i.term]), "i")
    return smaller(w, w.size(n - 1), not_negative)


def to_int(w, x):
    """A float as an int, rounded towards zero. Beyond 2**53, and for NaN, the program fails."""
    fits = scalar(w, "<", call(w, "abs", x), w.constant(float(1 << FLOAT_BITS)))
    # There is no element after the first one.
    place = w.choose(fits, lambda: w.constant(0), lambda: w.constant(1))
    zero = w.element(w.stack([w.constant(0)]), [place])
    return Num(scalar(w, "+", Num(w.program.apply("truncate", [x.term]), "i"), zero).term, "i")


def as_int(w, x):
    """A number as an int, rounded towards zero."""
    return to_int(w, x) if x.kind == "f" else w.cast(x, "i")


def complement(w, x):
    return scalar(w, "-", negative_scalar(w, x), w.constant(1))


def power_of_two(w, k):
    if k.dim is not None and k.dim.known is not None:
        if not 0 <= k.dim.known < INT_BITS:
            w.fail(f"bits are shifted by {k.dim.known}", f"shift by 0 to {INT_BITS - 1}")
        return w.constant(1 << k.dim.known)
    return w.reduce(w.dim(k), w.constant(1), lambda s, _: scalar(w, "*", s, w.constant(2)))


def shift(w, sign, x, k):
    """`x << k`, `x >> k`."""
    return scalar(w, "*" if sign == "<<" else "//", x, power_of_two(w, k))


def bits(w, sign, a, b):
    """`a & b`, `a | b`, `a ^ b` of two ints."""
    both = common_bits(w, a, b)
    if sign == "&":
        return both
    total = scalar(w, "+", a, b)
    return scalar(w, "-", total, both if sign == "|" else scalar(w, "*", w.constant(2), both))


def common_bits(w, a, b):
    for x, other in ((a, b), (b, a)):
        if x.dim is not None and x.dim.known is not None:
            return bits_of_mask(w, other, x.dim.known)
    zero = w.constant(0)
    is_negative = lambda x: scalar(w, "<", x, zero)
    one_side = lambda x, y: scalar(w, "-", x, common_of_positive(w, x, complement(w, y)))

    def of_negative():
        a1, b1 = complement(w, a), complement(w, b)
        return complement(w, scalar(w, "-", scalar(w, "+", a1, b1), common_of_positive(w, a1, b1)))

    return w.choose(
        is_negative(a), lambda: w.choose(is_negative(b), of_negative, lambda: one_side(b, a)),
        lambda: w.choose(is_negative(b), lambda: one_side(a, b), lambda: common_of_positive(w, a, b)))


def bits_of_mask(w, x, mask):
    """The bits of an int under a known mask."""
    if mask < 0:
        return scalar(w, "-", x, bits_of_mask(w, x, ~mask))
    if mask & (mask + 1) == 0:
        return scalar(w, "%", x, w.constant(mask + 1)) if mask.bit_length() < INT_BITS else common_of_positive(w, x, w.constant(mask))
    total = w.constant(0)
    for k in range(mask.bit_length()):
        if mask >> k & 1:
            bit = scalar(w, "%", scalar(w, "//", x, w.constant(1 << k)), w.constant(2))
            total = scalar(w, "+", total, scalar(w, "*", bit, w.constant(1 << k)))
    return total


def common_of_positive(w, a, b):
    table, two = powers(w, INT_BITS), w.constant(2)

    def step(total, i):
        power = w.element(table, [i])
        bit = lambda x: scalar(w, "%", scalar(w, "//", x, power), two)
        return scalar(w, "+", total, scalar(w, "*", power, scalar(w, "*", bit(a), bit(b))))

    return w.reduce(Dim(INT_BITS), w.constant(0), step)
