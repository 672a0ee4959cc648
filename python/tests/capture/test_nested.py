"""Derivatives inside of captured functions: their values, and derivatives of them."""

import numpy as np
import pytest

import chainrule as cr


def energy(x, k=1.0):
    return k * np.sum((x[1:] - x[:-1]) ** 4)


slope = cr.gradient(energy)
X, D = np.array([0.3, -0.7, 1.1, 0.4]), np.array([1.0, -2.0, 0.5, 0.0])


def differences(f, x, h=1e-5):
    return np.array([(f(x + h * e) - f(x - h * e)) / (2 * h) for e in np.eye(len(x))])


@pytest.mark.parametrize("inner, outer", [
    (lambda x: np.sum(slope(x) ** 2), lambda x: np.sum(slope(x) ** 2)),
    (lambda x: np.sum(slope(x, 2.0) * x), None),
    (lambda x: np.sum(cr.hessian(energy)(x) @ D), None),
    (lambda x: np.sum(cr.hvp(energy)(x, D) * x), None),
    (lambda x: np.sum(cr.hessian_diagonal(energy)(x)), None),
    (lambda x: cr.jvp(energy)(x, D), None),
    (lambda x: np.sum(cr.vjp(lambda y: np.sin(y) * y[0])(x, D)), None),
    (lambda x: np.sum(cr.jacobian(lambda y: np.sin(y) * y[0])(x) ** 2), None),
    (lambda x: cr.gradient(energy, argnums=1)(x, 3.0) * x[0], None),
    (lambda x: cr.gradient(energy, argnums="k")(x, k=3.0) + 0.0, None),
    (lambda x: np.sum(cr.gradient(energy, argnums=(0, 1))(x, 2.0)[0]) * cr.gradient(energy, argnums=(0, 1))(x, 2.0)[1], None),
    (lambda x: cr.value_and_gradient(energy)(x)[0] + cr.value_and_gradient(energy)(x)[1][0], None),
    (lambda x: cr.hessian(lambda t: np.sin(t) * x[0] ** 2)(x[1]), None),
])
def test_values_and_gradients(inner, outer):
    f = cr.function(inner)
    assert f(X) == pytest.approx(inner(X), rel=1e-12)
    np.testing.assert_allclose(cr.gradient(f)(X), differences(inner, X), rtol=1e-6, atol=1e-7)


def test_newton_in_a_loop():
    @cr.function
    def newton(x, a, steps):
        def residual(t):
            return t ** 3 - a * t - 1.0

        for _ in range(steps):
            x = x - residual(x) / cr.gradient(residual)(x)
        return x

    found = newton(2.0, 2.0, 20)
    assert found**3 - 2.0 * found - 1.0 == pytest.approx(0.0, abs=1e-12)
    assert cr.gradient(newton, argnums="a")(2.0, 2.0, 20) == pytest.approx(found / (3 * found**2 - 2.0), rel=1e-10)


def test_hamilton():
    def hamiltonian(q, p):
        return 0.5 * np.sum(p ** 2) + np.sum(np.cos(q))

    @cr.function
    def leapfrog(q, p, h, n):
        for _ in range(n):
            p = p - 0.5 * h * cr.gradient(hamiltonian, argnums=0)(q, p)
            q = q + h * cr.gradient(hamiltonian, argnums=1)(q, p)
            p = p - 0.5 * h * cr.gradient(hamiltonian, argnums=0)(q, p)
        return q, p

    q, p = X.copy(), D.copy()
    got = leapfrog(q, p, 0.1, 30)
    for _ in range(30):
        p = p + 0.05 * np.sin(q)
        q = q + 0.1 * p
        p = p + 0.05 * np.sin(q)
    np.testing.assert_allclose(got[0], q, rtol=1e-12)
    np.testing.assert_allclose(got[1], p, rtol=1e-12)


@pytest.mark.parametrize("f, words", [
    (lambda x: cr.sparse_hessian(energy), "sparse"), (lambda x: cr.gradient(np.sin)(x), "derivative of"),
    (lambda x: cr.gradient(lambda y: y * 2.0)(x), "result is an array"), (lambda x: cr.gradient(energy, argnums=5)(x), "out of range"),
    (lambda x: cr.gradient(lambda y: (np.sum(y), 1.0))(x), "several results"), (lambda x: cr.hvp(energy)(x), "more"),
    (lambda x: cr.hessian(energy, argnums=(0, 1))(x, 1.0), "several arguments"),
])
def test_what_cannot_be_captured(f, words):
    with pytest.raises(cr.CaptureError, match=words) as raised:
        cr.function(f)(X)
    assert raised.value.lineno


def test_stated_derivatives():
    @cr.function
    def root(a):
        x = 1.0
        for _ in range(60):
            x = 0.5 * (x + a / x)
        return x

    assert cr.gradient(root)(4.0) == pytest.approx(0.25)

    @root.derivative
    def slope_of_root(a):
        return 1000.0 + a

    assert root(4.0) == 2.0 and cr.gradient(root)(4.0) == 1004.0
    assert cr.jvp(root)(4.0, 2.0) == 2008.0 and cr.hessian(root)(4.0) == 1.0
    outer = cr.function(lambda x: root(x[0]) * x[1])
    assert cr.gradient(outer)(np.array([4.0, 3.0])).tolist() == [3012.0, 2.0]


def test_stated_derivatives_of_arrays_and_several_arguments():
    @cr.function
    def f(x, k, n, mode="a"):
        return x * x * k * n if mode == "a" else x

    @f.derivative
    def of_f(x, k, n, mode="a"):
        return np.diag(x) * 2.0 * k * n, 7.0 * x * x * n

    by_x, by_k = cr.jacobian(f, argnums=(0, 1))(X, 3.0, 2)
    np.testing.assert_allclose(by_x, np.diag(2 * X) * 6.0)
    np.testing.assert_allclose(by_k, 14.0 * X**2)
    np.testing.assert_allclose(cr.jvp(f)(X, 3.0, 2, D), 12.0 * X * D)
    np.testing.assert_allclose(cr.vjp(f, argnums=1)(X, 3.0, 2, D), np.sum(14.0 * X**2 * D))
    total = cr.function(lambda x, k: np.sum(f(x, k, 2)))
    np.testing.assert_allclose(cr.gradient(total, argnums=(0, 1))(X, 3.0)[0], 12.0 * X)
    assert cr.gradient(total, argnums=1)(X, 3.0) == pytest.approx(14.0 * np.sum(X**2))


def test_rules_call_their_function():
    @cr.function
    def power(x, y, n):
        z = np.ones_like(x)
        for _ in range(n):
            z = z * x
        return z * y

    @power.derivative
    def of_power(x, y, n):
        value = power(x, y, n)
        return np.diag(n * value / x), value / y

    x = np.abs(X)
    np.testing.assert_allclose(power(x, 2.0, 3), 2.0 * x**3)
    by_x, by_y = cr.jacobian(power, argnums=(0, 1))(x, 2.0, 3)
    np.testing.assert_allclose(by_x, np.diag(6.0 * x**2), rtol=1e-12)
    np.testing.assert_allclose(by_y, x**3, rtol=1e-12)
    total = cr.function(lambda x: np.sum(power(x, 2.0, 3)))
    np.testing.assert_allclose(cr.hessian(total)(x), np.diag(12.0 * x), rtol=1e-12)


def test_stated_derivatives_that_do_not_fit():
    f = cr.function(lambda x: np.sum(x))
    f.derivative(lambda x: 1.0)
    with pytest.raises(cr.CaptureError, match="has 0 dimensions, not 1"):
        cr.gradient(f)(X)
    with pytest.raises(cr.TypeError_, match="not a Python function"):
        f.derivative(np.sin)
    g = cr.function(lambda x, y: x * y)
    g.derivative(lambda x, y: y)
    with pytest.raises(cr.CaptureError, match="has 1 parts"):
        g(1.0, 2.0)
