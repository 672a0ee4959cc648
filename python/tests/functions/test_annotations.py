"""Annotations of shapes and dtypes."""

import threading
from dataclasses import dataclass
from typing import NamedTuple, Optional

import numpy as np
import pytest

import chainrule as cr


@cr.function
def product(a: cr.F64["n", "m"], x: cr.F64["m"], k: cr.F64[()] = 1.0):
    return np.sum(a @ x) * k


A, V = np.ones((3, 4)), np.ones(4)


def test_arguments_that_agree():
    for n in range(1, 5):
        for m in range(1, 5):
            assert product(np.ones((n, m)), np.ones(m)) == n * m
    assert cr.gradient(product)(A, V).shape == (3, 4) and cr.sparse_jacobian(product)(A, V).shape == (1, 12)
    assert product(A, V, k=2.0) == 24.0 and product.batch(np.ones((5, 3, 4)), np.ones((5, 4))).shape == (5,)


@pytest.mark.parametrize("call", [product, cr.gradient(product), cr.hessian(product), cr.sparse_jacobian(product), product.bound],
                         ids=["value", "gradient", "hessian", "sparse", "bound"])
@pytest.mark.parametrize("warm", [False, True])
def test_names_that_do_not_agree(call, warm):
    if warm:
        call(A, V), call(A, V)
    for _ in range(2):
        with pytest.raises(cr.ShapeError) as raised:
            call(A, np.ones(3))
        text = str(raised.value)
        assert "`a` has the shape (3, 4)" in text and "`x` the shape (3,)" in text and "`m` is 4 in `a` and 3 in `x`" in text
        assert raised.value.text.strip().startswith("def product(") and raised.value.offset == raised.value.text.index("x: cr") + 1
    if warm:
        call(A, V)


def test_calls_that_are_like_earlier_ones_are_checked():
    f = cr.function(same_length)
    for n in (3, 3, 5, 3):
        assert f(np.ones(n), np.ones(n)) == 2.0 * n
    for _ in range(3):
        with pytest.raises(cr.ShapeError):
            f(np.ones(3), np.ones(5))
        assert f(np.ones(3), np.ones(3)) == 6.0


def same_length(x: cr.F64["n"], y: cr.F64["n"]):
    return np.sum(x) + np.sum(y)


def numbers(x: cr.F64["n", 3]):
    return np.sum(x)


def sums(x: cr.F64["n"], y: cr.F64["n + 1"], z: cr.F64["2 * n - 1"]):
    return np.sum(x) + np.sum(y) + np.sum(z)


def any_axes(x: cr.F64[..., "n"], y: cr.F64["n"], z: cr.F64[None, "n"]):
    return np.sum(x) + np.sum(y) + np.sum(z)


def one_text(x: cr.F64["n 3"], y: "cr.F64[np.ndarray, 'n']"):
    return np.sum(x) + np.sum(y)


def any_shape(x: cr.F64, i: cr.I64, b: cr.Bool):
    return np.sum(x) + np.sum(i) + np.sum(b)


@pytest.mark.parametrize("f, right, wrong", [
    (numbers, [(2, 3), (1, 3), (0, 3)], [(3, 2), (3,), (1, 2, 3), ()]),
    (sums, [((2,), (3,), (3,)), ((1,), (2,), (1,))], [((2,), (2,), (3,)), ((2,), (3,), (4,))]),
    (any_axes, [((2,), (2,), (5, 2)), ((4, 3, 2), (2,), (1, 2))], [((2, 3), (2,), (1, 2)), ((2,), (2,), (2,)), ((), (2,), (1, 2))]),
    (one_text, [((2, 3), (2,))], [((2, 3), (3,)), ((2, 2), (2,))]),
])
def test_extents(f, right, wrong):
    f, arrays = cr.function(f), lambda shapes: [np.ones(s) for s in (shapes if isinstance(shapes[:1], tuple) and shapes and isinstance(shapes[0], tuple) else [shapes])]
    for shapes in right:
        assert f(*arrays(shapes)) == sum(map(np.sum, arrays(shapes)))
    for shapes in wrong:
        with pytest.raises(cr.ShapeError):
            f(*arrays(shapes))


def test_dtypes():
    f = cr.function(any_shape)
    assert f(np.ones(2), np.arange(3), np.array([True])) == 6.0 and f(1.0, 2, np.array(True)) == 4.0
    for wrong in ((np.arange(3), np.arange(3), np.array([True])), (1.0, 2.0, np.array([True])), (1.0, 2, np.array([1.0]))):
        with pytest.raises(cr.TypeError_, match="is annotated"):
            f(*wrong)
    assert f(np.ones(2, np.float32), np.arange(3, dtype=np.uint8), np.array([True])) == 6.0


@dataclass
class Layer:
    w: cr.F64["n", "m"]
    b: cr.F64["m"]


class Pair(NamedTuple):
    x: cr.F64["n"]
    y: cr.F64["n"]


def parts(layers: list[Layer], pair: Pair, both: tuple[cr.F64["k"], cr.F64["k"]], named: dict[str, cr.F64["k"]], rest: Optional[cr.F64["k"]] = None):
    total = np.sum(pair.x) + np.sum(both[0]) + np.sum(named["a"])
    for layer in layers:
        total += np.sum(layer.w) + np.sum(layer.b)
    return total if rest is None else total + np.sum(rest)


def test_parts():
    f = cr.function(parts)
    layer = lambda n, m, k: Layer(np.ones((n, m)), np.ones(k))
    good = ([layer(2, 3, 3)], Pair(np.ones(2), np.ones(2)), (np.ones(4), np.ones(4)), {"a": np.ones(4)})
    assert f(*good) == 9.0 + 2.0 + 4.0 + 4.0 and f(*good, np.ones(4)) == f(*good) + 4.0
    for k, wrong in enumerate([[layer(2, 3, 2)], Pair(np.ones(2), np.ones(3)), (np.ones(4), np.ones(3)), {"a": np.ones(3)}]):
        with pytest.raises(cr.ShapeError) as raised:
            f(*[wrong if i == k else value for i, value in enumerate(good)])
        assert ["layers[0].b", "pair.y", "both[1]", "named['a']"][k] in str(raised.value)
    with pytest.raises(cr.ShapeError):
        f(*good, np.ones(3))


def test_annotations_that_are_wrong():
    for make in (lambda: cr.F64["n", ...], lambda: cr.F64[1.5], lambda: cr.F64["n +"], lambda: cr.F64["f(n)"], lambda: cr.F64[True]):
        with pytest.raises(cr.TypeError_):
            make()
    assert repr(cr.F64["n", 3]) == "F64['n', 3]" and repr(cr.I64) == "I64" and cr.F64["n"] == cr.F64["n"]


def test_names_for_type_checkers_only():
    def f(x: "Unknown[int]", y: "cr.F64['n']"):  # noqa: F821
        return np.sum(x) + np.sum(y)

    assert cr.function(f)(np.ones(2), np.ones(3)) == 5.0
    with pytest.raises(cr.ShapeError):
        cr.function(f)(np.ones(2), np.ones((3, 2)))


def test_one_name_twice_in_an_array_and_arguments_of_any_number():
    def f(a: cr.F64["n", "n"], *rest: cr.F64["n"], scale: cr.F64[()] = 1.0):
        return (np.sum(a) + sum(np.sum(x) for x in rest)) * scale

    f = cr.function(f)
    assert f(np.ones((2, 2)), np.ones(2), np.ones(2), scale=2.0) == 16.0 and f(np.ones((3, 3))) == 9.0
    with pytest.raises(cr.ShapeError, match=r"`a` has the shape \(2, 3\), and is annotated F64\['n', 'n'\]"):
        f(np.ones((2, 3)))
    with pytest.raises(cr.ShapeError, match=r"`rest\[1\]` the shape \(3,\)"):
        f(np.ones((2, 2)), np.ones(2), np.ones(3))
    with pytest.raises(cr.ShapeError, match="scale"):
        f(np.ones((2, 2)), scale=np.ones(2))


def test_methods_and_many_threads():
    class Model:
        @cr.function
        def value(self, x: cr.F64["n"], y: cr.F64["n"]):
            return np.sum(x * y)

    model = Model()
    assert model.value(np.ones(3), np.ones(3)) == 3.0
    wrong = []

    def work(n):
        for _ in range(200):
            if model.value(np.ones(n), np.ones(n)) != n:
                wrong.append(n)
            try:
                model.value(np.ones(n), np.ones(n + 1))
                wrong.append(-n)
            except cr.ShapeError:
                pass

    threads = [threading.Thread(target=work, args=(n,)) for n in (2, 3, 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
