"""Code that fits the sizes of a call: short extents are known in it, and equal ones are one size.

A function can be captured for all sizes. Loops over three or eight elements are slow so: they cannot be unrolled, and their
rows do not fit lanes. Extents of at most `SHORT` are known in the code that a call runs, as those of 0 and 1 are, which
are broadcast or have no first element.

Where it is not known whether a condition or an index is right, it is checked while the code runs, and what is checked
neither leaves its loop nor is fused with another one. Mostly the sizes are equal that it depends on, as those of a square
matrix, or the `n` that is passed with an array of n elements. Such calls run code that is captured once more, with one
size for them: it depends on the sizes of a call alone which code it runs.

Extents of arrays, and integers and truth values that are not in arrays, have positions: in the order of the arguments.
"""

from __future__ import annotations

import enum


class Fit(enum.Enum):
    """The sizes that code is for."""

    ALL = "all sizes"
    SHORT = "the short extents"
    CALL = "the short extents, and what is equal"


def numbers(leaves):
    """The numbers by position, each with whether it is an extent; truth values are 0 or 1."""
    found = []
    for array in leaves:
        if array.ndim:
            found.extend((n, True) for n in array.shape)
        elif array.dtype.kind == "i":
            found.append((int(array), False))
    return found


def compared(deciding, leaves):
    """Pairs of positions, the second that of an extent, with whether the numbers are equal."""
    at = numbers(leaves)
    return tuple([(p, q, at[p][0] == at[q][0]) for q in deciding if at[q][1] for p in deciding if p > q or p < q and not at[p][1]])


def same(pairs):
    """Of positions that are one size with an earlier extent, or integers with any, the position of the first such extent."""
    found = {}
    for p, q, is_equal in pairs:
        if is_equal and p not in found:
            found[p] = found.get(q, q)
    return tuple(sorted(found.items()))
