"""Programs that a stranger may try: the value of Python, or an error at the line."""

import functools
import math

import numpy as np
import pytest
from support import check, same

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


def rows(a):
    s = 0
    for row in a:
        s = s + row
    return s


def powers(a):
    s, t = 0, 1
    for row in a:
        s, t = s + row * t, t * row
    return s, t


def first_or_more(a):
    s = None
    for row in a:
        s = row if s is None else s * row
    return s


def largest(a):
    best = None
    for v in a[:, 0]:
        if best is None or v > best:
            best = v
    return best


def grown(a):
    s = np.zeros(1)
    for row in a:
        s = s + np.sin(row)
    return s


def products(a):
    total = 0
    for row in a:
        inner = 0
        for other in a:
            inner = inner + other * row
        total = total + inner
    return total


def collected(a):
    s, sums = 0, []
    for row in a:
        s = s + row
        sums.append(np.sum(s ** 2))
    return np.array(sums), s


def written(a):
    s, b = 0, a.copy()
    for i in range(len(a)):
        b[i] = b[i] * 2.0
        s = s + b[i]
    return s, b


def backwards(a):
    s = 0
    for i in range(len(a), 0, -1):
        s = s + a[i - 1] * i
    return s


def repeated(a, n):
    s = 0
    for i in range(n):
        s = s + i * a
    return s


def power_method(a):
    v = 1.0
    for _ in range(3):
        v = a @ (v * np.ones(a.shape[1]))
    return v


@pytest.mark.parametrize("f", [rows, powers, first_or_more, largest, grown, products, collected, written, backwards], ids=lambda f: f.__name__)
@pytest.mark.parametrize("shape", [(3, 4), (1, 4), (2, 1), (5, 2)])
def test_variables_that_become_arrays_in_the_first_step(f, shape):
    check(f, [np.linspace(0.5, 2.0, math.prod(shape)).reshape(shape) ** 2])


def test_variables_that_become_arrays_and_counts():
    for n in (3, 0, 1, 3):
        same(cr.function(repeated)(X, n), repeated(X, n))
    check(power_method, [np.outer(X, X)])
    compiled = cr.function(rows)
    same(compiled(np.ones((3, 2))), np.full(2, 3.0))
    assert compiled(np.ones((0, 2))) == 0 and compiled.compilations == 2


OPERANDS = {
    "or": lambda x: x[0] or x[2], "or of zero": lambda x: x[1] or x[2], "and": lambda x: x[0] and x[2], "and of zero": lambda x: x[1] and x[2],
    "three": lambda x: x[1] or x[1] or x[0], "mixed": lambda x: (x[1] or 3.0) * x[0], "with a comparison": lambda x: (x[0] > 1.0 or x[2]) * x[0],
    "with None": lambda x: x[1] or None or x[0], "not": lambda x: x[0] if not (x[1] or x[1]) else x[2], "as a condition": lambda x: x[0] if x[0] and x[2] else x[1],
}


@pytest.mark.parametrize("name", OPERANDS)
def test_and_and_or_give_an_operand(name):
    check(OPERANDS[name], [np.array([0.5, 0.0, 2.5])], gradient=False)
    slope = cr.gradient(OPERANDS[name])(np.array([0.5, 0.0, 2.5]))
    index = {"or": 0, "or of zero": 2, "and": 2, "and of zero": 1, "three": 0, "with None": 0, "not": 0, "as a condition": 0}.get(name)
    want = {"mixed": [3.0, 0.0, 0.0], "with a comparison": [2.5, 0.0, 0.5]}.get(name) or np.eye(3)[index]
    np.testing.assert_array_equal(slope, want)


def test_and_and_or_in_loops():
    def first_and_last(x):
        first, all_true, n = 0, 1, 0
        for v in x:
            first = first or v
            all_true = all_true and v
            while n < 5 and not (v > 1.0 or n > 2):
                n += 1
        return first, all_true, n

    check(first_and_last, [X], gradient=False)
    check(first_and_last, [np.array([0.0, 1.5, 0.0])], gradient=False)


def test_conditions_of_loops_assign():
    def before(x):
        i, total = 0, 0.0
        while (v := x[i]) < 2:
            total += v ** 2
            i += 1
        return total

    def behind_and(x):
        i, total, v = 0, 0.0, 0.0
        while i < 2 and (v := 2 * x[i]) < 4:
            total += v * i
            i += 1
            if i == 7:
                break
        return total + v

    for f in before, behind_and:
        check(f, [X])


def test_lambdas_on_one_line():
    first, second, third = lambda x: x[0], lambda x: x[1] if True else x[2], lambda x: (lambda y: y * 2.0)(x[2]) + 1.0
    nested = [lambda x: [x[0], 1.0 if False else x[1] * 3.0][1], lambda x: 5.0 * x[2], (lambda k: lambda x: k * x[0])(7.0)]
    assert [cr.function(f)(X) for f in (first, second, third)] == [0.5, 1.5, 6.0]
    assert [cr.function(f)(X) for f in nested] == [4.5, 12.5, 3.5]
    inner = (lambda a: (lambda x: x[0] + a, lambda x: x[1] + a))(1.0)
    assert [cr.function(f)(X) for f in inner] == [1.5, 2.5]
