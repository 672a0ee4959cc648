"""Polynomials, integrals, interpolation, histograms and functions of parts of arrays at many extents: values and gradients."""

import warnings

import numpy as np
import pytest
import scipy.linalg
import scipy.special

import chainrule as cr
from support import check, same

W, EDGES = np.array([0.5, -1.0, 2.0, 0.25]), np.array([-2.0, -0.5, 0.0, 0.5, 1.0])

FUNCTIONS = {
    "polyval": lambda x: (np.polyval(x, W), np.polyval(W, x), np.polyval(x, 0.5)),
    "polyder": lambda x: (np.polyder(x), np.polyder(x, 2), np.polyder(x, 0)),
    "polyint": lambda x: (np.polyint(x), np.polyint(x, 2), np.polyint(x, 2, [1.0, 2.0]), np.polyint(x, k=3.0)),
    "polyadd": lambda x: (np.polyadd(x, W), np.polysub(W, x), np.polyadd(x, x), np.polysub(x, 1.0)),
    "polymul": lambda x: (np.polymul(x, W), np.polymul(W, x)),
    "polyfit": lambda x: (np.polyfit(np.arange(len(x)) + 0.5, x, 1), np.polyfit(np.arange(len(x)) ** 2 + x, x * x, 1, w=1.0 + x * x)),
    "trapezoid": lambda x: (np.trapezoid(x), np.trapezoid(x, dx=0.1), np.trapezoid(x, x * x), np.trapezoid(x[:, None] * W, axis=0), np.trapezoid(x[:, None] * W, W), np.trapezoid(x[:, None] * W, x, axis=0), np.trapezoid(x[:, None] * W, x[:, None] + W, axis=1)),
    "interp": lambda x: (np.interp(x, EDGES, W[[0, 1, 2, 3, 0]]), np.interp(x, EDGES, EDGES**2, left=-9.0, right=x[0] if len(x) else 0.0), np.interp(1.0, EDGES, EDGES**2, right=7.0)),
    "cross": lambda x: (np.cross(x[:, None] * W[:3], W[1:]), np.cross(x[:, None] * W[:3], W[:3, None] * x, axisb=0), np.cross(W[:3, None] * x, np.sin(W[:3, None] * x), axis=0), np.linalg.cross(x[:, None] * W[:3], W[1:][None])),
    "roll": lambda x: (np.roll(x, 3), np.roll(x[:, None] * W, (1, -2), axis=(0, 1)), np.roll(x[:, None] * W, 1, axis=(0, 1)), np.roll(x[:, None] * W, (1, 2), axis=0), np.roll(x[:, None] * W, -5)),
    "einsum": lambda x: (np.einsum("...i,i->...", x[:, None] * W, W), np.einsum("i...->...", x[:, None] * W), np.einsum("...,...", x, x), np.einsum("i...,j...->ij...", x[:, None] * W, x[:, None]), np.einsum("ij,j", x[:, None] * W, W, optimize=True)),
    "vecdot": lambda x: (np.vecdot(x[:, None] * W, W), np.linalg.vecdot(x[:, None] * W, x[:, None], axis=0)),
    "along": lambda x: (np.apply_along_axis(np.sum, 0, x[:, None] * W), np.apply_along_axis(lambda v: v / (1.0 + v @ v), 1, x[:, None] * W), np.apply_along_axis(lambda v, k: np.array([v[0] * k, v @ v]), 1, x[:, None] * W, 2.0), np.apply_along_axis(np.outer, 0, W[:, None] * x, W), np.apply_along_axis(np.cumsum, 0, W)),
    "over": lambda x: (np.apply_over_axes(np.sum, x[:, None] * W, [0, 1]), np.apply_over_axes(np.mean, x[:, None] * W, 1)),
    "piecewise": lambda x: (np.piecewise(x, [x < 0, x >= 0], [lambda v: -v, lambda v: v * v]), np.piecewise(x, [x < -0.5], [2.0, np.sin]), np.piecewise(x, [x > 0, x > 0.5], [np.exp, 3.0]), np.piecewise(x, x > 0, [np.exp])),
    "vectorize": lambda x: (np.vectorize(lambda u: u * u if u > 0 else -u)(x), np.vectorize(lambda u, v: u * v)(x[:, None], W)),
    "fromfunction": lambda x: (np.fromfunction(lambda i, j: np.sum(x) * i + j, (3, 2)), np.fromiter((v * v for v in x), float), np.fromiter([1, 2], dtype=int)),
    "histogram": lambda x: (*np.histogram(x, EDGES), *np.histogram(x, 4, (-1.0, 2.0)), np.histogram(x, bins=3, range=(-1, 1), weights=x * x)[0], *np.histogram(x, 5), np.histogram(x, EDGES, weights=x)[0], np.histogram_bin_edges(x, 3, (0.0, 1.0))),
    "density": lambda x: (np.histogram(x, EDGES * 4, density=True)[0], np.histogram(x, 3, (-9, 9), True, x * x)[0]),
    "percentile": lambda x: tuple(np.percentile(x, [0, 30, 50, 99, 100], method=name) for name in (
        "linear", "lower", "higher", "nearest", "midpoint", "hazen", "weibull", "median_unbiased", "normal_unbiased", "interpolated_inverted_cdf")),
    "quantile": lambda x: (np.quantile(x[:, None] * W, 0.3, 0, method="hazen"), np.quantile(x, 0.7, keepdims=True, method="midpoint")),
    "clip": lambda x: (np.clip(x, -0.5, None), np.clip(x, None, 0.5), np.clip(x, a_min=-0.5, a_max=0.5), np.clip(x, max=0.5), x.clip(0.0), x.clip(max=0.1), x.clip(-0.1, 0.1)),
    "diff": lambda x: (np.diff(x, prepend=0.0), np.diff(x, append=x[:1]), np.diff(x[:, None] * W, axis=1, prepend=x[:, None], append=2.0), np.diff(x, 2, -1, 1.0)),
    "order": lambda x: (np.reshape(x[:, None] * W, (4, -1), order="F"), (x[:, None] * W).ravel("F"), (x[:, None] * W).flatten(order="F"), x.reshape((1, -1), order="F"), np.reshape(x, (len(x), 1), "F")),
    "axes": lambda x: (np.expand_dims(x, (0, 2)), np.expand_dims(x, axis=(-1, 0)), np.diagflat(x), np.diagflat(x[:, None], 1), (x[:, None, None] * W).mT, np.matrix_transpose(x[:, None] * W), np.linalg.diagonal(x[:, None] * W, offset=1), np.array(x, ndmin=2, copy=True), np.asarray(x, copy=True)),
    "sort": lambda x: (np.sort(x, kind="stable"), np.argsort(x, kind="stable"), np.sort(x, stable=True)),
    "infinite": lambda x: (np.isposinf(x), np.isneginf(x / 0.5)),
    "toeplitz": lambda x: (scipy.linalg.toeplitz(x), scipy.linalg.toeplitz(x, W), scipy.linalg.circulant(x), scipy.linalg.block_diag(x[:, None] * W, x), scipy.linalg.block_diag(W, x[:, None])),
    "scipy": lambda x: (scipy.linalg.norm(x), scipy.linalg.norm(x[:, None] * W, 1), scipy.linalg.pinv(x[:, None] * x + np.eye(len(x)))),
}


@pytest.mark.parametrize("n", (0, 1, 2, 3, 9, 20))
@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_and_gradients(name, n):
    f, x = FUNCTIONS[name], np.random.default_rng(n + 1).normal(size=n)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            f(x)
        except (ValueError, IndexError, TypeError, np.linalg.LinAlgError):
            return
        check(f, (x,), rtol=1e-9, tolerance=1e-6)


@pytest.mark.parametrize("name", ("interp", "histogram", "piecewise", "percentile", "clip", "sort"))
def test_ties(name):
    x = np.array([-2.0, -0.5, -0.5, 0.0, 0.0, 0.5, 1.0, 1.0, 1.0, 0.25])
    for n in (3, 10):
        same(cr.function(FUNCTIONS[name])(x[:n]), FUNCTIONS[name](x[:n]))


def test_histograms_of_what_lies_outside():
    x = np.array([np.nan, -9.0, 9.0, np.inf, -np.inf, 0.1, 1.0, -2.0])
    f = lambda x: (*np.histogram(x, EDGES), np.histogram(x, EDGES, weights=np.ones(8))[0], *np.histogram(np.arange(9), 3), *np.histogram(np.arange(9), [0, 3, 8]))
    same(cr.function(f)(x), f(x))


def test_gamma():
    f = lambda x: (scipy.special.gamma(x), scipy.special.beta(x, 2.5), scipy.special.expm1(x), scipy.special.exp2(x))
    check(f, (np.array([0.3, 1.0, 2.0, 4.5, 10.0]),), rtol=1e-12)
    check(lambda x: scipy.special.gamma(x), (np.array([-0.5, -1.5, -2.3, -3.7]),), rtol=1e-12)


@pytest.mark.parametrize("f, words", (
    (lambda x: np.histogram(x, "auto"), "number or their bounds"), (lambda x: np.interp(x, EDGES, EDGES, period=1.0), "period"), (lambda x: np.percentile(x, 30, method="inverted_cdf"), "the method 'inverted_cdf'"),
    (lambda x: np.polyfit(x, x, 1, full=True), "full"), (lambda x: np.piecewise(x, [x > 0], [1.0, 2.0, 3.0]), "functions are expected"), (lambda x: np.reshape(x, 4, order="X"), "order 'X'"),
    (lambda x: np.trapezoid(x[0]), "a float"), (lambda x: np.einsum("ij,...", x, x), "subscripts do not fit"), (lambda x: np.cross(x, x), "size 3"), (lambda x: np.apply_along_axis(writing(x), 0, x), "writes to an array"))
)
def test_what_cannot_be_compiled(f, words):
    with pytest.raises((cr.CaptureError, cr.ShapeError), match=words):
        cr.function(f)(W)


def writing(y):
    def f(v):
        y[0] = 1.0
        return v
    return f
