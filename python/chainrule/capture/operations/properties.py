"""Shapes, sizes and dtypes of arrays."""

from __future__ import annotations

import numpy as np

from . import reductions
from .operators import binary
from ..values import Known, Row


def size_value(w, dim):
    return Known(dim.known) if dim.known is not None else w.size(dim)


def shape(w, a):
    return Row([size_value(w, dim) for dim in w.num(a).dims])


def size(w, a):
    total = Known(1)
    for dim in w.num(a).dims:
        total = binary(w, "*", total, size_value(w, dim))
    return total


def ndim(w, a):
    return Known(w.num(a).rank)


def dtype(w, a):
    return Known(np.dtype({"f": np.float64, "i": np.int64, "b": np.bool_}[w.num(a).kind]))


def size_of_masked(w, a):
    total = reductions.sum_(w, a.mask)
    for dim in a.array.dims[a.mask.rank:]:
        total = binary(w, "*", total, size_value(w, dim))
    return total
