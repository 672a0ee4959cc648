"""Stages on arrays, which run together row by row where the arrays are large: results are NumPy's."""

import chainrule as cr
import numpy as np
import pytest


def blurred(x):
    rows = (x[:-2] + 2.0 * x[1:-1] + x[2:]) * 0.25
    both = (rows[:, :-2] + 2.0 * rows[:, 1:-1] + rows[:, 2:]) * 0.25
    edge = x[1:-1, 1:-1] - both
    return np.sqrt(1e-3 + edge**2), np.sum(edge * both)


def corners(x):
    gx, gy = 0.5 * (x[1:-1, 2:] - x[1:-1, :-2]), 0.5 * (x[2:, 1:-1] - x[:-2, 1:-1])

    def blur(a):
        b = (a[:-2] + 2.0 * a[1:-1] + a[2:]) * 0.25
        return (b[:, :-2] + 2.0 * b[:, 1:-1] + b[:, 2:]) * 0.25

    xx, yy, xy = blur(gx * gx), blur(gy * gy), blur(gx * gy)
    return xx * yy - xy * xy - 0.05 * (xx + yy) ** 2


def flow(x):
    dx, dy = x[1:, :-1] - x[:-1, :-1], x[:-1, 1:] - x[:-1, :-1]
    m = np.sqrt(dx * dx + dy * dy + 1e-3)
    px, py = dx / m, dy / m
    return px[1:, 1:] - px[:-1, 1:] + py[1:, 1:] - py[1:, :-1]


def upwards(x):
    """Rows are read far behind and far ahead, and the last stage writes a part of them."""
    a = np.maximum(x[5:, :], x[:-5, :] * 0.5)
    b = a[7:, 1:] * a[:-7, :-1] + a[3:-4, 1:]
    y = np.zeros(x.shape)
    y[2:-10, 1:] = b + x[12:, 1:]
    return y, b


def waves(x):
    ex, ey, hz = x * 0.5, x * 0.25, x * 1.0
    for t in range(3):
        ey[0, :] = 0.1 * t
        ey[1:, :] -= 0.5 * (hz[1:, :] - hz[:-1, :])
        ex[:, 1:] -= 0.5 * (hz[:, 1:] - hz[:, :-1])
        hz[:-1, :-1] -= 0.7 * (ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1])
    return hz, ex


@pytest.mark.parametrize("shape", [(300, 260), (1700, 50), (90, 3000), (40, 20), (13, 6)], ids=str)
@pytest.mark.parametrize("f", [blurred, corners, flow, upwards, waves], ids=lambda f: f.__name__)
def test_stages_are_numpys(f, shape):
    x = np.random.default_rng(shape[0]).random(shape)
    want, got = f(x.copy()), cr.function(f)(x.copy())
    for one, other in zip(want if isinstance(want, tuple) else (want,), got if isinstance(got, tuple) else (got,)):
        np.testing.assert_allclose(other, one, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("shape", [(300, 260), (20, 15)], ids=str)
@pytest.mark.parametrize("f", [blurred, corners, flow, upwards, waves], ids=lambda f: f.__name__)
def test_gradients_of_stages_are_quotients(f, shape):
    def total(x):
        y = f(x)
        return np.sum((y[0] if isinstance(y, tuple) else y) * weights)

    rng = np.random.default_rng(1)
    x, direction = 0.5 + rng.random(shape), rng.standard_normal(shape)
    y = f(x.copy())
    weights = rng.random((y[0] if isinstance(y, tuple) else y).shape)
    slope = np.sum(cr.gradient(cr.function(total))(x.copy()) * direction)
    h = 1e-6
    quotient = (total(x + h * direction) - total(x - h * direction)) / (2 * h)
    np.testing.assert_allclose(slope, quotient, rtol=1e-5, atol=1e-5 * np.sqrt(x.size))
