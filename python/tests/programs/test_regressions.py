"""Regressions over long rows and convolutions, whose derivatives are written out in NumPy."""

import numpy as np
import pytest

import chainrule as cr

RNG = np.random.default_rng(31)


def squares(w, x, y):
    r = x @ w - y
    return np.sum(r * r)


def logistic(w, x, y):
    z = x @ w
    return np.sum(np.logaddexp(0.0, z) - y * z)


def rates(w, x, y):
    z = x @ w
    return np.mean(z + y * np.exp(-z))


def slopes(f, z, y):
    """The derivatives by `x @ w`."""
    if f is squares:
        return 2 * (z - y)
    return 1 / (1 + np.exp(-z)) - y if f is logistic else (1 - y * np.exp(-z)) / len(y)


@pytest.mark.parametrize("f", [squares, logistic, rates])
def test_regressions_of_any_size(f):
    value, slope, both = cr.function(f), cr.gradient(f), cr.value_and_gradient(f, argnums=(0, 2))
    for n, m in [(1, 64), (2, 3), (5, 63), (7, 64), (8, 65), (9, 100), (16, 71), (23, 130), (1100, 64), (700, 130)]:
        w, x, y = RNG.normal(size=m) / np.sqrt(m), RNG.normal(size=(n, m)), RNG.normal(size=n)
        want = x.T @ slopes(f, x @ w, y)
        np.testing.assert_allclose(value(w, x, y), f(w, x, y), rtol=1e-12)
        np.testing.assert_allclose(slope(w, x, y), want, rtol=1e-10, atol=1e-12)
        found, (by_w, by_y) = both(w, x, y)
        np.testing.assert_allclose(found, f(w, x, y), rtol=1e-12)
        np.testing.assert_allclose(by_w, want, rtol=1e-10, atol=1e-12)
        z = x @ w
        np.testing.assert_allclose(by_y, -2 * (z - y) if f is squares else -z if f is logistic else np.exp(-z) / n, rtol=1e-11, atol=1e-13)


def convolved(x, k):
    return np.sum(np.convolve(x, k, mode="valid") ** 2)


def test_convolutions_of_any_size():
    slope = cr.gradient(convolved, argnums=(0, 1))
    for n, m in [(1, 1), (8, 8), (40, 7), (41, 9), (100, 31), (203, 16), (64, 33)]:
        x, k = RNG.normal(size=n), RNG.normal(size=m)
        r = 2 * np.convolve(x, k, mode="valid")
        by_x, by_k = slope(x, k)
        np.testing.assert_allclose(by_x, np.convolve(r, k[::-1]), rtol=1e-11, atol=1e-11)
        np.testing.assert_allclose(by_k, np.convolve(x, r[::-1], mode="valid")[::-1], rtol=1e-11, atol=1e-11)
