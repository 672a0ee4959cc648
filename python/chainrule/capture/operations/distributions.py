"""Distributions of `scipy.stats`: densities and probabilities, elementwise."""

from __future__ import annotations

import math

import numpy as np

from . import arrays
from .elementwise import elementwise
from .operators import binary
from .ufuncs import BY_OBJECT, special
from ..values import Known


def normal(compute):
    """A method of `scipy.stats.norm`: `compute(w, z, scale)` of the standardised number."""
    def method(w, x, loc=Known(0), scale=Known(1)):
        found = compute(w, binary(w, "/", binary(w, "-", x, loc), scale), scale)
        if isinstance(scale, Known) and scale.value > 0:
            return found
        return arrays.where(w, binary(w, ">", scale, Known(0)), found, Known(math.nan))
    return method


def _logpdf(w, z, scale):
    squares = binary(w, "*", Known(-0.5), binary(w, "*", z, z))
    return binary(w, "-", binary(w, "-", squares, Known(0.5 * math.log(2 * math.pi))), elementwise(w, BY_OBJECT[np.log], [scale]))


def _pdf(w, z, scale):
    density = elementwise(w, BY_OBJECT[np.exp], [binary(w, "*", Known(-0.5), binary(w, "*", z, z))])
    return binary(w, "/", binary(w, "*", Known(1 / math.sqrt(2 * math.pi)), density), scale)


def _probability(sign):
    return lambda w, z, _: elementwise(w, BY_OBJECT[special.ndtr], [binary(w, "*", Known(sign), z)])


NORMAL = {"logpdf": normal(_logpdf), "pdf": normal(_pdf), "cdf": normal(_probability(1.0)), "sf": normal(_probability(-1.0))}
