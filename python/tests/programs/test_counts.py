"""Counts, and truth values of all elements, beside NumPy: in matrices and vectors of many sizes, with NaN."""

import numpy as np
import pytest

import chainrule as cr


def reductions(x, m):
    return (np.sum(m), np.sum(x > 0.3), np.sum((x > 0.1) & m, axis=0), np.sum(~m, axis=1), np.any(x > 2.0, axis=1),
            np.all(x > -2.0, axis=1), np.any(m), np.all(m), np.mean(m), np.sum(np.where(m, 1.0, 2.0)))


def loops(x, m):
    n_large, balance, is_any, are_all = 3, 0, False, True
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            if x[i, j] > 0.3:
                n_large += 1
                balance += 1
            else:
                balance -= 1
            if x[i, j] > 2.0:
                is_any = True
            if not m[i, j]:
                are_all = False
    return n_large, balance, is_any, are_all


def two_conditions(x, m):
    found = False
    for i in range(x.shape[0]):
        for j in range(3):
            if x[i, j] > 1.5:
                found = True
    return found


def masked_mean(x, m):
    return np.sum(np.where(m, np.exp(-x * x), 0.0)) / (1.0 + np.sum(m))


SHAPES = [(1, 1), (3, 3), (5, 17), (40, 3), (9, 64), (64, 100)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("share", [0.0, 0.4, 1.0])
@pytest.mark.parametrize("has_nan", [False, True])
def test_counts_and_truth_values_are_those_of_numpy(shape, share, has_nan):
    random = np.random.default_rng(sum(shape))
    x, m = random.standard_normal(shape), random.random(shape) < share
    if has_nan:
        x[0, 0] = np.nan
    for f in (reductions, loops, *([two_conditions] if shape[1] >= 3 else [])):
        got, want = cr.function(f)(x, m), f(x, m)
        for a, b in zip(got, want) if isinstance(want, tuple) else [(got, want)]:
            np.testing.assert_allclose(np.asarray(a, float), np.asarray(b, float), rtol=1e-15)


@pytest.mark.parametrize("shape", SHAPES)
def test_functions_under_masks_and_their_slopes(shape):
    random = np.random.default_rng(7)
    x, m = random.standard_normal(shape), random.random(shape) < 0.5
    value, slope = cr.value_and_gradient(cr.function(masked_mean), argnums=0)(x, m)
    count = 1.0 + np.sum(m)
    np.testing.assert_allclose(value, masked_mean(x, m), rtol=1e-13)
    np.testing.assert_allclose(slope, np.where(m, -2.0 * x * np.exp(-x * x), 0.0) / count, rtol=1e-13, atol=1e-300)


@pytest.mark.parametrize("times", [2, 4, 7, 9])
def test_gradients_of_repeated_elements(times):
    def cubes(x):
        return np.sum(np.repeat(x, times) ** 3)

    x = np.linspace(-1.0, 2.0, 37)
    np.testing.assert_allclose(cr.function(cubes)(x), cubes(x), rtol=1e-13)
    np.testing.assert_allclose(cr.gradient(cr.function(cubes))(x), times * 3.0 * x**2, rtol=1e-13)
