"""Options: strategies, checkpoints, strict arithmetic, unrolled code, static arguments; texts, counts; arrays of its own."""

import ctypes
import threading

import numpy as np
import pytest
from scipy.integrate import quad

import chainrule as cr

X = np.array([0.5, -1.0, 2.0, 0.25])


def step(x, n):
    for _ in range(n):
        x = x + 0.01 * np.sin(x)
    return np.sum(x ** 2)


def test_strategies_and_checkpoints():
    want = cr.gradient(step)(X, 50)
    for options in ({"strategy": "forward"}, {"strategy": "reverse"}, {"checkpoints": 4}, {"strategy": "reverse", "checkpoints": 1}):
        np.testing.assert_allclose(cr.gradient(step, **options)(X, 50), want, rtol=1e-13)
    with pytest.raises(cr.Error, match="strategy"):
        cr.gradient(step, strategy="sideways")(X, 50)
    for wrong in ({"checkpoints": 0}, {"checkpoints": 1.5}, {"strategy": 3}):
        with pytest.raises(cr.TypeError_):
            cr.gradient(step, **wrong)
    with pytest.raises(TypeError, match="unexpected keyword argument 'strateg'"):
        cr.gradient(step, strateg="forward")


def test_argnames():
    f = lambda x, y: np.sum(x * y ** 2)
    assert cr.gradient(f, argnames="y")(1.0, 3.0) == 6.0
    assert cr.gradient(f, argnames=("y", "x"))(1.0, 3.0) == (6.0, 9.0)
    assert cr.gradient(f, argnums=-1)(1.0, 3.0) == 6.0


def test_strict():
    f = lambda x: x * 0.0 + 1.0
    assert cr.function(f)(np.inf) == 1.0
    assert np.isnan(cr.function(f, strict=True)(np.inf))

    @cr.function(strict=True)
    def g(x):
        return x * 0.0

    assert np.isnan(g(np.inf)) and g.strict


def test_static_arguments():
    @cr.function(static=("n",))
    def power(x, n):
        y = 1.0
        for _ in range(n):
            y = y * x
        return y

    assert [power(2.0, n) for n in (3, 3, 5, 0, 1000)] == [8.0, 8.0, 32.0, 1.0, 2.0**1000]
    assert power.compilations == 4
    assert cr.gradient(power)(2.0, 3) == 12.0
    assert cr.gradient(power)(2.0, n=3) == 12.0
    with pytest.raises(cr.TypeError_, match="static"):
        power(2.0, np.array([3]))
    with pytest.raises(cr.Error, match="no argument `m`"):
        cr.function(lambda x: x, static="m")


def test_unrolled_code():
    f = cr.function(step)
    u = f.unroll(x=4)
    for n in (3, 7):
        np.testing.assert_allclose(u(X, n), f(X, n), rtol=1e-14)
        np.testing.assert_allclose(cr.gradient(u)(X, n), cr.gradient(f)(X, n), rtol=1e-13)
        np.testing.assert_allclose(cr.hessian(u)(X, n), cr.hessian(f)(X, n), rtol=1e-12)
    assert u.compilations == 2 and "ifold" in f.source("ft", X, 3) and "ifold" not in u.source("ft", X, 3)
    with pytest.raises(cr.ShapeError, match="unrolled for x=4"):
        u(X[:3], 3)
    free = f.unroll()
    for k in (2, 3, 4, 2):
        np.testing.assert_allclose(free(X[:k], 3), f(X[:k], 3), rtol=1e-14)
        np.testing.assert_allclose(cr.gradient(free)(X[:k], 3), cr.gradient(f)(X[:k], 3), rtol=1e-13)
    assert free.compilations == 3
    chain = cr.function(lambda x: np.prod(np.cos(x)) * x[0])
    want = cr.gradient(chain)(X)
    for strategy in ("forward", "reverse", "markowitz", "dstar"):
        try:
            np.testing.assert_allclose(cr.gradient(chain.unroll(), strategy=strategy)(X), want, rtol=1e-12)
        except cr.Error as error:
            assert "strategy" in str(error)
    with pytest.raises(cr.Error):
        cr.function(lambda x, at: x[at]).unroll()(X, np.array([0, 1]))
    with pytest.raises(cr.Error, match="no argument `y`"):
        f.unroll(y=3)


def test_texts_counts_and_accounts():
    f = cr.function(lambda x, y: np.sum(x * y))
    for ask in (lambda: f.counts, f.explain, f.source):
        with pytest.raises(cr.Error, match="not called yet"):
            ask()
    f(X, X)
    assert f.counts["mul"] == 4 and f.counts["add"] in (3, 4)
    assert "mul" in f.explain() and "fuse" in f.explain()
    assert "double" in f.source() and "pub fn" in f.source("rust") and "let " in f.source("ft")
    with pytest.raises(cr.Error, match="no language"):
        f.source("cobol")
    g = cr.gradient(f)
    assert "double" in g.source("c", X, X) and g.counts["weight"] >= 0
    u = f.unroll()
    u(X, X)
    assert u.counts["mul"] == 4 and "straight-line" in u.explain()


def test_structures_of_arguments():
    f = lambda p, k: np.sum(p[0] ** 2 * p[1][0]) * k + p[1][1] ** 3
    p, k = (X, (2.0, np.array(3.0))), 1.5
    g = cr.gradient(f)(p, k)
    np.testing.assert_allclose(g[0], 2 * X * 3.0)
    np.testing.assert_allclose(g[1], (np.sum(X**2) * k, 27.0))
    d = (np.ones(4), (1.0, 2.0))
    slope = np.sum(g[0]) + g[1][0] + 2 * g[1][1]
    np.testing.assert_allclose(cr.jvp(f)(p, k, d), slope)
    np.testing.assert_allclose(cr.vjp(f)(p, k, 2.0)[1], (2 * g[1][0], 2 * g[1][1]))
    h = cr.hessian(f)(p, k)
    np.testing.assert_allclose(h[0][0], np.eye(4) * 6.0)
    np.testing.assert_allclose(h[0][1][0], 2 * X * 1.5)
    assert h[1][1][0][0] == h[1][1][1][0] == 0.0 and h[1][1][1][1] == 18.0
    assert h[1][0][0].tolist() == h[0][1][0].tolist()
    product = cr.hvp(f)(p, k, d)
    np.testing.assert_allclose(product[0], h[0][0] @ d[0] + h[0][1][0])
    np.testing.assert_allclose(product[1][1], 36.0)
    diagonal = cr.hessian_diagonal(f)(p, k)
    np.testing.assert_allclose(diagonal[0], np.full(4, 6.0))
    np.testing.assert_allclose(diagonal[1], (0.0, 18.0))


def test_jacobians_of_several_results_by_several_arguments():
    f = lambda a, p, k: (a * k, k, [np.sum(a, axis=1) * p[0], 7], p[1] * p[0])
    a, p, k = np.arange(6.0).reshape(3, 2), (2.0, np.array([3.0, 4.0])), 5.0
    by_a, by_p, by_k = (cr.jacobian(f, argnums=n)(a, p, k) for n in (0, 1, 2))
    got = cr.jacobian(f, argnums=("a", "p", "k"))(a, p, k)
    assert got[2][1] is None
    for block, *alone in [(got[0], by_a[0], by_p[0], by_k[0]), (got[1], by_a[1], by_p[1], by_k[1]),
                          (got[2][0], by_a[2][0], by_p[2][0], by_k[2][0]), (got[3], by_a[3], by_p[3], by_k[3])]:
        np.testing.assert_array_equal(block[0], alone[0])
        for x, y in zip(block[1], alone[1]):
            np.testing.assert_array_equal(x, y)
        np.testing.assert_array_equal(block[2], alone[2])
    np.testing.assert_array_equal(by_p[3][1], 2.0 * np.eye(2))
    np.testing.assert_array_equal(by_p[3][0], p[1])
    np.testing.assert_array_equal(by_k[0], a)


def test_arrays_of_its_own():
    g = cr.value_and_gradient(lambda x, k: k * np.sum(x ** 2))
    b = g.bound(X, 2.0)
    value, slope = b()
    assert value == 2 * np.sum(X**2) and slope.tolist() == (4 * X).tolist()
    b.inputs[0][:] = 1.0
    assert b.call() is not None and value == 8.0 and slope.tolist() == [4.0] * 4
    x, y = np.array([3.0, 0.0, 0.0, 1.0, 0.5]), np.zeros(5)
    pointer = ctypes.POINTER(ctypes.c_double)
    call = b.ctypes
    assert call(b.context, x.ctypes.data_as(pointer), y.ctypes.data_as(pointer)) == 0
    assert y.tolist() == [5.0, 3.0, 0.0, 0.0, 1.0]
    failing = cr.function(lambda x, at: x * np.arange(3)[at[0]]).bound(1.0, np.array([1]))
    failing.inputs[1][0] = 7
    with pytest.raises(cr.Error, match="index"):
        failing()
    assert failing.ctypes(failing.context, x.ctypes.data_as(pointer), y.ctypes.data_as(pointer)) == 1
    errors = []

    def work():
        try:
            for _ in range(1000):
                b()
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors


def test_scipy_integrates_compiled_code():
    f = cr.function(lambda t, a: np.exp(-a * t) * np.sin(t))
    callable_ = f.bound(0.0, 0.0).low_level_callable()
    got, _ = quad(callable_, 0.0, 10.0, args=(0.5,))
    want, _ = quad(lambda t: np.exp(-0.5 * t) * np.sin(t), 0.0, 10.0)
    assert got == pytest.approx(want, rel=1e-12)
