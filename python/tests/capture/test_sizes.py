"""Calls of which one compiled function is right for arrays of every size, or fails where NumPy does."""

import warnings

import numpy as np
import pytest
import scipy.linalg
from support import check, same

import chainrule as cr

W = np.array([0.5, -1.0, 2.0])

FUNCTIONS = {
    "pad": lambda x: (np.pad(x, 2), np.pad(x, (0, 1), constant_values=3.0), np.pad(x[:, None] * x, ((1, 2), (0, 1)))),
    "pad edge": lambda x: np.pad(x, (2, 3), "edge"),
    "pad reflect": lambda x: np.pad(x[:, None] * x, (2, 3), "reflect"),
    "pad symmetric": lambda x: np.pad(x, (2, 3), "symmetric"),
    "pad wrap": lambda x: np.pad(x, (2, 7), "wrap"),
    "convolve": lambda x: [np.convolve(x, W, "full"), np.convolve(x, W, "same"), np.convolve(W, x, "valid"), np.convolve(x, x, "same")],
    "correlate": lambda x: [np.correlate(x, W, "full"), np.correlate(x, W, "same"), np.correlate(W, x, "same"), np.correlate(W, x)],
    "gradient": lambda x: [np.gradient(x, 0.3), *np.gradient(x[:, None] * x), np.gradient(x, np.arange(len(x)) ** 2)],
    "gradient of order 2": lambda x: [np.gradient(x, edge_order=2), np.gradient(x, np.arange(len(x)) ** 2, edge_order=2)],
    "ediff1d": lambda x: np.ediff1d(x),
    "rot90": lambda x: np.rot90(x[:, None] * x),
    "append": lambda x: np.append(x, 1.0),
    "split": lambda x: np.split(x, [1, 2]),
    "array_split": lambda x: np.array_split(x, 3),
    "even split": lambda x: np.split(x, 3),
    "diagonal": lambda x: [np.diagonal(x[:, None] * x, k) for k in (0, 1, -2, 4)],
    "diagonal of a rectangle": lambda x: (np.diagonal(x[:, None] * W), np.diagonal(W[:, None] * x)),
    "diag": lambda x: [np.diag(x, k) for k in (0, 1, -2)],
    "take_along_axis": lambda x: np.take_along_axis(x, np.argsort(x), 0),
    "nansum": lambda x: (np.nansum(x), np.nanmean(x), np.nanvar(x)),
    "nanmax": lambda x: (np.nanmax(x), np.nanmin(x)),
    "digitize": lambda x: (np.digitize(W, np.sort(x)), np.digitize(x, np.arange(3.0))),
    "median": lambda x: (np.median(x), np.median(x[:, None] * x, axis=0), np.median(x[:, None] * x)),
    "quantile": lambda x: (np.quantile(x, [0.2, 0.5, 1]), np.percentile(x[:, None] * x, 33, axis=1)),
    "indices": lambda x: (np.indices(x.shape), np.indices((len(x), 2))),
    "broadcast_arrays": lambda x: np.broadcast_arrays(x, x[:, None]),
    "vander": lambda x: (np.vander(x), np.vander(x, 2)),
    "logspace": lambda x: (np.logspace(0.0, 1.0, len(x)), np.geomspace(1.0, 3.0, len(x))),
    "multi_dot": lambda x: np.linalg.multi_dot([x[:, None] * W, W[:, None] * x, x]),
    "array_equal": lambda x: (np.array_equal(x, W), np.array_equal(x, x[:1]), np.allclose(x, x)),
    "triu_indices": lambda x: (x[:, None] * x)[np.triu_indices(len(x))],
    "cumulative_sum": lambda x: np.cumulative_sum(x, include_initial=True),
    "unstack": lambda x: np.unstack(np.append(x, 1.0)),
    "sliding_window_view": lambda x: np.lib.stride_tricks.sliding_window_view(x, 3),
    "block": lambda x: (np.block([x, x]), np.block([[x[:, None] * x, x[:, None]], [x, 1.0]])),
    "solve_triangular": lambda x: scipy.linalg.solve_triangular(x[:, None] * x + np.eye(len(x)), x),
    "sort": lambda x: np.sort(x[:, None] * x, axis=0),
    "nest": lambda x: np.array([x[i] * x[j] for i in range(len(x)) for j in range(len(x))]),
    "max": lambda x: max(x[i] * x[j] for i in range(len(x)) for j in range(len(x))),
    "nest in a row": lambda x: np.reshape([[x[i] * x[j] * v for i in range(len(x)) for j in range(len(x))] for v in x], (-1, 1)),
    "flattened in a row": lambda x: np.reshape([np.ravel(x[:, None] * x * v) for v in x], (-1, 1)),
    "triangle": lambda x: np.array([x[i] * x[j] for i in range(len(x)) for j in range(i)]),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_one_function_for_all_sizes(name):
    f = FUNCTIONS[name]
    compiled = cr.function(f)
    for n in (5, 0, 1, 2, 3, 9, 5):
        x = np.random.default_rng(n).normal(size=n)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                want = f(x)
            except (ValueError, IndexError, AttributeError):
                want = None
        if want is None:
            with pytest.raises(cr.Error):
                compiled(x)
        else:
            same(compiled(x), want)


def test_elements_that_are_not_numbers():
    x = np.array([[0.5, np.nan, 2.0], [np.nan, np.nan, np.nan], [np.inf, -np.inf, 1.0]])
    f = lambda x: (
        np.nan_to_num(x), np.nan_to_num(x, nan=7.0, posinf=1.0), np.nansum(x[:2], axis=1), np.nanmax(x, axis=1), np.nanmin(x, axis=0),
        np.nanmean(x[:2], axis=0), np.nanmean(x[:2], axis=1), np.nanvar(x[:2], axis=1), np.median(x, axis=0), np.median(x),
        np.quantile(x[:2], 0.3, axis=1), np.percentile(x[0], [0, 100]), np.median(x[:, :0], axis=1), np.isclose(x, x), np.isclose(x, x, equal_nan=True), np.allclose(x, x), np.round(x, 1), np.pad(x, 1, "edge"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        same(cr.function(f)(x), f(x))


@pytest.mark.parametrize("n_copies", (1, 2, 4))
@pytest.mark.parametrize("inner", (lambda x: x, lambda x: 1.0 / x, lambda x: x * x, np.log, np.exp, np.sqrt, np.sin))
def test_derivatives_beside_numbers_that_are_replaced(inner, n_copies):
    x = np.array([1.5, np.inf, np.nan, -np.inf, 0.3] * n_copies)
    f = lambda x: np.sum(np.nan_to_num(inner(x), nan=0.5, posinf=2.0, neginf=-3.0) ** 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert cr.function(f)(x) == pytest.approx(f(x), rel=1e-12)
        ordinary = np.isfinite(x) & np.isfinite(inner(x))
    clean = np.where(ordinary, x, 1.0)
    gradient = np.where(ordinary, cr.gradient(lambda x: np.sum(inner(x) ** 2))(clean), 0.0)
    curvature = np.where(ordinary, cr.hessian_diagonal(lambda x: np.sum(inner(x) ** 2))(clean), 0.0)
    np.testing.assert_allclose(cr.gradient(f)(x), gradient, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(cr.hessian(f)(x), np.diag(curvature), rtol=1e-12, atol=1e-12)


def test_programs_for_known_sizes_are_told():
    def f(m):
        return np.sum(np.concatenate([m[:, 0::2], m[:, 1::2]], axis=1) @ m.T)

    m = np.ones((50, 60))
    for asked in (cr.function(f), cr.gradient(f)):
        assert "[50][60]Double" in asked.source("ft", m)
        assert "the optimiser on" in asked.explain(m)
    assert cr.function(f)(m) == pytest.approx(f(m))


def test_strided_parts_of_a_generator_have_one_size():
    def f(x):
        n = (x.shape[0] - 4) // 2 + 1
        return np.sum(sum(x[a:a + 2 * n - 1:2] for a in range(4)) ** 2)

    for size in (37, 20, 4):
        check(f, [np.sin(np.arange(float(size)))])
