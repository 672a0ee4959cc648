"""Functions of elements that loops compute twice, and searches, beside NumPy."""

import numpy as np
import pytest

import chainrule as cr

RNG = np.random.default_rng(32)


def old_element(h, steps):
    s = 0.0
    for _ in range(steps):
        a = h[0]
        h = 0.5 * h + 0.3
        s = s + np.sum(np.sin(h))
        s = s * 0.5 + np.sin(a) + np.sin(h[0])
    return s


def old_beside_new(z, steps):
    s = 0.0
    o = np.zeros(z.shape[0])
    for _ in range(steps):
        n = 0.5 * z + 0.3
        w = np.sum(np.sin(z * n))
        z = n
        o = np.cos(z * z) * w + np.sin(z * z) * o
        s = s + np.sum(o)
    return s


def layers(x, steps):
    for _ in range(steps):
        h = np.tanh(x)
        x = 0.9 * x + 0.1 * h * np.tanh(x[::-1])
    return np.sum(np.tanh(x) ** 2)


@pytest.mark.parametrize("f", [old_element, old_beside_new, layers])
def test_functions_that_are_kept(f):
    for n in [1, 7, 8, 40, 301]:
        x = RNG.normal(size=n)
        np.testing.assert_allclose(cr.function(f)(x, 5), f(x, 5), rtol=1e-11)
        slope, step = cr.gradient(f)(x, 5), 1e-6
        along = RNG.normal(size=n)
        near = (f(x + step * along, 5) - f(x - step * along, 5)) / (2 * step)
        np.testing.assert_allclose(slope @ along, near, rtol=1e-5, atol=1e-6)


def network(w, b, u, c, v, x, y):
    h = np.tanh(x @ w + b)
    h = np.tanh(h @ u + c)
    return np.mean((h @ v - y) ** 2)


def test_networks_beside_their_derivatives():
    for n, k, m in [(1, 2, 3), (9, 3, 8), (50, 5, 16)]:
        w, b, u, c, v = (RNG.normal(size=s) for s in [(k, m), (m,), (m, m), (m,), (m,)])
        x, y = RNG.normal(size=(n, k)), RNG.normal(size=n)
        h = np.tanh(x @ w + b)
        g = np.tanh(h @ u + c)
        r = 2 * (g @ v - y) / n
        d = r[:, None] * v * (1 - g * g)
        e = (d @ u.T) * (1 - h * h)
        want = [x.T @ e, e.sum(0), h.T @ d, d.sum(0), g.T @ r]
        value, slopes = cr.value_and_gradient(network, argnums=(0, 1, 2, 3, 4))(w, b, u, c, v, x, y)
        np.testing.assert_allclose(value, network(w, b, u, c, v, x, y), rtol=1e-12)
        for found, wanted in zip(slopes, want):
            np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-10)
        along = RNG.normal(size=w.shape)
        step = 1e-6
        gradient = cr.gradient(network)
        near = (gradient(w + step * along, b, u, c, v, x, y) - gradient(w - step * along, b, u, c, v, x, y)) / (2 * step)
        np.testing.assert_allclose(cr.hvp(network)(w, b, u, c, v, x, y, along), near, rtol=1e-4, atol=1e-6)


def first_of_rows(x):
    return np.argmax(x, axis=1) * 1.0 - np.argmin(x, axis=1)


def spread(x):
    return np.sum((np.max(x, axis=1) - np.min(x, axis=1)) ** 2)


def from_a_number(x, k):
    m = x[0]
    for i in range(x.shape[0]):
        if x[i] > m:
            m = x[i]
            k = i
    return m, k


@pytest.mark.parametrize("m", [1, 2, 7, 8, 9, 50, 64, 65, 300])
def test_searches_along_rows(m):
    for n in [1, 3, 8, 21]:
        # Many ties.
        x = np.floor(RNG.normal(size=(n, m)) * 4)
        x[0, m // 2] = np.inf
        x[-1, 0] = -np.inf
        np.testing.assert_array_equal(cr.function(first_of_rows)(x), first_of_rows(x))
        x = RNG.normal(size=(n, m))
        np.testing.assert_allclose(cr.function(spread)(x), spread(x), rtol=1e-12)
        width = 2 * (x.max(1) - x.min(1))
        want = np.zeros_like(x)
        np.add.at(want, (np.arange(n), x.argmax(1)), width)
        np.add.at(want, (np.arange(n), x.argmin(1)), -width)
        np.testing.assert_allclose(cr.gradient(spread)(x), want, rtol=1e-12, atol=1e-12)


def test_a_search_that_begins_at_any_integer():
    x = -np.linspace(0.1, 3, 300)
    for k in [-1, 2**53 + 1, -(2**62) + 1]:
        assert cr.function(from_a_number)(x, k) == (x[0], k)
    assert cr.function(from_a_number)(-x, 2**53 + 1) == (3.0, 299)
