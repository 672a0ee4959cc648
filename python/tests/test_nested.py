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
