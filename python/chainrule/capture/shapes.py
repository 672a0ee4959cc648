"""Shapes of variables: how values that a block gives are packed into one, and taken out again.

The shape of a number or an array is `("num", kind, dims, storage, is_list, is_view)`, that of a tuple `("row", shapes, is_list)`.
"""

from __future__ import annotations

from .values import Num, Row


def pack(program, leaves):
    if not leaves:
        return program.integer(0)
    return leaves[0] if len(leaves) == 1 else program.tuple(leaves)


def count(shape):
    return sum(map(count, shape[1])) if shape[0] == "row" else 1


def rebuild(shape, leaves):
    """The value of a shape from its leaves."""
    if shape[0] == "row":
        return Row([rebuild(part, leaves) for part in shape[1]], shape[2])
    _, kind, dims, storage, is_list, is_view = shape
    return Num(next(leaves), kind, dims, storage=storage, is_list=is_list, is_view=is_view)


def shown(name):
    """The name of a variable in messages."""
    return name if name.isidentifier() else f"the {name}" if name.startswith("value") else "the returned value"
