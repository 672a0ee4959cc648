"""Programs that a stranger may try: the value of Python, or an error at the line."""

import functools
import math

import numpy as np
import pytest
from support import same

import chainrule as cr

X = np.array([0.5, 1.5, 2.5])


async def later(x):
    return x[0]


def one_by_one(x):
    yield x[0]


WRONG = {
    "max of nothing": (lambda x: max([]) * x, "empty"), "len of a number": (lambda x: len(3) * x, "len"), "no arrays": (lambda x: np.concatenate([]) * x, "concatenate"),
    "power": (lambda x: np.linalg.matrix_power(np.outer(x, x), 1.5), "matrix_power"), "text": (lambda x: float("zz") * x, "could not convert"),
    "axis twice": (lambda x: np.sum(np.outer(x, x), axis=(0, 0)), "named twice"), "order": (lambda x: np.diff(x, n=-1), "non-negative"),
    "async": (later, "async def"), "generator": (one_by_one, "yield"), "dict": (lambda x: np.sum({"a": x}), "a dict is used as a number"),
    "root of a str": (lambda x: math.sqrt("a") * x, "str"), "no arguments": (lambda x: max() * x, "max"), "reshape": (lambda x: x.reshape(-1, -1), "unknown dimension"),
    "reduce": (lambda x: functools.reduce(lambda a, b: a + b, []) * x, "reduce"),
}


@pytest.mark.parametrize("name", WRONG)
def test_mistakes_have_a_place(name):
    f, words = WRONG[name]
    for call in (cr.function(f), cr.gradient(f)):
        with pytest.raises(cr.CaptureError, match=words) as raised:
            call(X)
        assert raised.value.filename == __file__ and raised.value.lineno


RIGHT = {
    "infinity": lambda x: float("inf") + x + float(" -1.5e3"), "int of text": lambda x: int("12") * x, "default": lambda x: max([], default=2.0) * x,
    "mean of nothing": lambda x: np.mean(x[:0]), "mean of no rows": lambda x: np.mean(np.outer(x, x)[:0], axis=0), "var of nothing": lambda x: np.var(x[:0]),
    "mean of no columns": lambda x: np.mean(np.outer(x, x)[:, :0], axis=1, keepdims=True),
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", RIGHT)
def test_values(name):
    same(cr.function(RIGHT[name])(X), RIGHT[name](X))


def test_the_place_of_the_largest_of_nothing():
    for f in (lambda x: np.argmax(x), lambda x: x.argmin()):
        largest = cr.function(f)
        assert largest(X) == f(X)
        for _ in range(2):
            with pytest.raises(cr.ShapeError, match="no elements"):
                largest(np.zeros(0))


def test_sums_that_start_with_an_int():
    def totals(x):
        s, n, p, low = 0, 1, 1, 10
        for i, v in enumerate(x):
            s += v
            n = n * 0.5
            p *= v
            low = min(low, v)
            for w in x:
                s -= 0.1 * w
            if i == 1:
                p = p / 2
        while n < 4:
            n *= 1.5
        return s, n, p, low

    same(cr.function(totals)(X), totals(X))
    assert np.allclose(cr.jacobian(totals)(X)[0], 0.7)
