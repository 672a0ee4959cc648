"""Functions of matrices beside NumPy and SciPy: values, gradients, matrices without elements."""

import numpy as np
import pytest
import scipy.linalg

import chainrule as cr
from support import check, same

OF_MATRIX = {
    "cholesky": lambda a: np.linalg.cholesky(a),
    "upper": lambda a: scipy.linalg.cholesky(a),
    "inv": lambda a: np.linalg.inv(a),
    "det": lambda a: np.linalg.det(a),
    "slogdet": lambda a: tuple(np.linalg.slogdet(a)),
    "solve": lambda a: np.linalg.solve(a, a),
    "vector": lambda a: np.linalg.solve(a, np.ones(a.shape[-1])),
    "columns": lambda a: np.linalg.solve(a, np.ones((a.shape[-1], 3))),
}


@pytest.mark.parametrize("shape", ((0, 0), (2, 0, 0), (0, 0, 0), (9, 0, 0), (0, 1, 1), (0, 3, 3), (0, 9, 9), (2, 0, 3, 3)))
@pytest.mark.parametrize("name", OF_MATRIX)
def test_no_elements(name, shape):
    f, a = OF_MATRIX[name], np.zeros(shape)
    if name == "upper" and len(shape) > 2:
        return
    compiled = cr.function(f)
    want = f(a)
    same(compiled(a), want)
    jacobians = cr.jacobian(compiled)(a)
    if isinstance(want, tuple):
        assert jacobians[1].shape == (*want[1].shape, *shape)
    else:
        assert jacobians.shape == (*np.shape(want), *shape)


@pytest.mark.parametrize("name", OF_MATRIX)
def test_leading_parts(name):
    f = OF_MATRIX[name]
    compiled = cr.function(lambda a, n: f(a[:n, :n]))
    a = np.random.default_rng(0).normal(size=(9, 9))
    a = a @ a.T + np.eye(9)
    for n in (3, 0, 1, 9, 2):
        same(compiled(a, n), f(a[:n, :n]), rtol=1e-9)

SHAPES = ((1, 1), (2, 1), (1, 2), (2, 2), (3, 2), (2, 9), (9, 2), (9, 9), (20, 9), (9, 20), (20, 20), (2, 0), (0, 2), (0, 0))
FACTORED = {
    "qr": lambda a: np.linalg.qr(a),
    "r": lambda a: np.linalg.qr(a, mode="r"),
    "named": lambda a: np.linalg.qr(a).R * 2.0,
    "pinv": lambda a: np.linalg.pinv(a),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", FACTORED)
def test_factors(name, shape):
    check(lambda a: FACTORED[name](a), (np.random.default_rng(len(name)).normal(size=shape),), rtol=1e-9, tolerance=1e-5)


@pytest.mark.parametrize("name", FACTORED)
def test_factors_of_stacks(name):
    for shape in ((2, 3, 2), (2, 2, 3), (0, 3, 2), (2, 1, 9, 10)):
        check(lambda a: FACTORED[name](a), (np.random.default_rng(1).normal(size=shape),), rtol=1e-9, tolerance=1e-6)


@pytest.mark.parametrize("shape", SHAPES)
def test_least_squares(shape):
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=shape), rng.normal(size=shape[0])
    right = rng.normal(size=(shape[0], 3))
    f = lambda a, b: np.linalg.lstsq(a, b, rcond=None)[0]
    check(f, (a, b), rtol=1e-9, tolerance=1e-5)
    check(f, (a, right), rtol=1e-9, tolerance=1e-5)
    assert cr.function(lambda a, b: np.linalg.lstsq(a, b)[2] + 0)(a, b) == min(shape)


def test_one_function_of_all_shapes():
    rng = np.random.default_rng(0)
    inverse, factors = cr.function(lambda a: np.linalg.pinv(a)), cr.function(lambda a: np.linalg.qr(a))
    solution = cr.function(lambda a, b: np.linalg.lstsq(a, b)[0])
    slope = cr.gradient(lambda a, b: np.sum(np.linalg.lstsq(a, b)[0] ** 2))
    for m, n in ((9, 12), (12, 9), (11, 11), (9, 10), (20, 15)):
        a, b = rng.normal(size=(m, n)), rng.normal(size=m)
        same(inverse(a), np.linalg.pinv(a), rtol=1e-9)
        same(tuple(factors(a)), tuple(np.linalg.qr(a)), rtol=1e-9)
        want = np.linalg.pinv(a) @ b
        same(solution(a, b), want, rtol=1e-9)
        p, rest = np.linalg.pinv(a), b - a @ want
        y = p @ p.T @ want
        null = want - p @ (a @ want)
        expected = 2 * (np.outer(rest, y) - np.outer(p.T @ want, want) + np.outer(p.T @ want, null))
        np.testing.assert_allclose(slope(a, b), expected, rtol=1e-7, atol=1e-9)


def test_residuals():
    rng = np.random.default_rng(0)
    for shape, right in (((3, 2), (3,)), ((3, 2), (3, 4)), ((2, 3), (2,)), ((3, 3), (3, 2)), ((9, 2), (9,))):
        a, b = rng.normal(size=shape), rng.normal(size=right)
        check(lambda a, b: np.linalg.lstsq(a, b)[1], (a, b), rtol=1e-9)
        x, left, rank, _ = cr.function(lambda a, b: (np.linalg.lstsq(a, b)[0], *np.linalg.lstsq(a, b)[1:3], 0))(a, b)
        same((x, left), np.linalg.lstsq(a, b)[:2], rtol=1e-9)
        assert rank == min(shape)

    def unpacked(a, b):
        x, left, rank, values = np.linalg.lstsq(a, b, rcond=None)
        return x * rank

    a, b = rng.normal(size=(4, 2)), rng.normal(size=4)
    check(unpacked, (a, b), rtol=1e-9)
    for f, words in ((lambda a, b: np.linalg.lstsq(a, b)[3], "singular values"), (lambda a, b: np.linalg.lstsq(a, b), "singular values"),
                     (lambda a, b: np.linalg.lstsq(a, b[0]), "a float"), (lambda a, b: np.linalg.qr(a, mode="complete"), "complete"),
                     (lambda a, b: np.linalg.norm(a, 2), "singular values"), (lambda a, b: np.linalg.norm(a, 3), "Invalid norm order"),
                     (lambda a, b: np.linalg.norm(a, 1, axis=(0, 0)), "Duplicate"), (lambda a, b: np.linalg.norm(a[None], 1), "Improper"),
                     (lambda a, b: np.linalg.cond(a[:2]), "singular values"), (lambda a, b: np.linalg.norm(b, "fro"), "Invalid norm order")):
        with pytest.raises(cr.CaptureError, match=words):
            cr.function(f)(a, b)


@pytest.mark.parametrize("a", (
    np.eye(3), -np.eye(3), np.diag([1.0, -2.0, 3.0]), np.triu(np.arange(1.0, 10.0).reshape(3, 3)), -np.triu(np.arange(1.0, 10.0).reshape(3, 3)),
    np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([[0.0, 1.0], [-1.0, 0.0], [0.0, 2.0]]), np.array([[3.0], [0.0]]), np.array([[-3.0], [0.0]]),
    np.array([[1.0, 2.0], [0.0, 3.0], [0.0, 0.0]]), np.array([[2.0, 1.0], [0.0, 0.0], [0.0, -5.0]]), np.eye(9)[::-1].copy(), np.eye(9)), ids=range(13))
def test_signs_of_factors(a):
    same(tuple(cr.function(lambda a: np.linalg.qr(a))(a)), tuple(np.linalg.qr(a)))


@pytest.mark.parametrize("scale", [1e-307, 1e-200, 1e-20, 1e200, 1e300])
def test_factors_of_tiny_and_huge_matrices(scale):
    factors = cr.function(lambda a: np.linalg.qr(a))
    for shape in ((1, 1), (2, 2), (5, 3), (3, 5), (30, 9)):
        a = np.random.default_rng(7).normal(size=shape)
        for b in (a, np.triu(a), np.where(np.arange(shape[0])[:, None] == 0, 0.0, np.abs(a))):
            (q, r), (expected_q, expected_r) = factors(b * scale), np.linalg.qr(b * scale)
            np.testing.assert_allclose(q, expected_q, rtol=1e-9, atol=1e-12)
            np.testing.assert_allclose(r / scale, expected_r / scale, rtol=1e-9, atol=1e-12)


def test_second_derivatives():
    rng = np.random.default_rng(0)
    for shape in ((3, 2), (2, 3), (9, 9), (10, 9)):
        a, b, v = rng.normal(size=shape), rng.normal(size=shape[0]), rng.normal(size=shape)
        for f in (lambda a: np.sum(np.sin(np.linalg.lstsq(a, b)[0])), lambda a: np.sum(np.linalg.pinv(a) ** 3), lambda a: np.sum(np.sin(np.linalg.qr(a)[0])),
                  lambda a: np.sum(np.cos(np.linalg.qr(a)[1])), lambda a: np.linalg.norm(a, 1) ** 2):
            slope, h = cr.gradient(f), 1e-5
            want = (slope(a + h * v) - slope(a - h * v)) / (2 * h)
            np.testing.assert_allclose(cr.hvp(f)(a, v), want, rtol=1e-4, atol=1e-5 * np.max(abs(want)) + 1e-7)


ORDERS = (None, 1, -1, np.inf, -np.inf)


@pytest.mark.parametrize("n", (1, 2, 9, 20))
@pytest.mark.parametrize("order", (*ORDERS, 0, 2, 3, 2.5, -2))
def test_norms_of_vectors(order, n):
    a = np.random.default_rng(n).normal(size=(n, 3))
    check(lambda a: (np.linalg.norm(a[:, 0], order), np.linalg.norm(a, order, axis=0), np.linalg.norm(a, order, 1, True)), (a,))
    if order is not None:
        check(lambda a: (np.linalg.vector_norm(a, ord=order), np.linalg.vector_norm(a[None], axis=(0, 2), ord=order, keepdims=True)), (a,))


@pytest.mark.parametrize("n", (1, 2, 9, 20))
@pytest.mark.parametrize("order", (*ORDERS, "fro"))
def test_norms_of_matrices(order, n):
    a = np.random.default_rng(n).normal(size=(n, 3, 2))
    check(lambda a: (np.linalg.norm(a[0], order), np.linalg.norm(a, order, axis=(0, 2)), np.linalg.norm(a, order, (2, 0), keepdims=True)), (a,))
    if order is not None:
        check(lambda a: (np.linalg.matrix_norm(a, ord=order), np.linalg.matrix_norm(a[:, 0], ord=order, keepdims=True)), (a,))


def test_norms_of_equal_and_missing_numbers():
    for a in (np.array([[1.0, -1.0], [2.0, 0.0]]), np.zeros((2, 2)), np.array([[np.nan, 1.0], [2.0, 3.0]]), np.array([[np.inf, 1.0], [2.0, 3.0]])):
        for order in (*ORDERS, 0, 3):
            f = lambda a: (np.linalg.norm(a[0], order), np.linalg.norm(a[:, 1], order), np.linalg.norm(a, order) if order not in (0, 3) else 0.0)
            same(cr.function(f)(a), f(a))
            assert all(np.shape(g) == (2, 2) for g in cr.jacobian(f)(a) if g is not None)


def test_convolutions_are_sums_of_products_of_shifted_images():
    def convolved(kernel, images):
        b, h, w, _ = images.shape
        result = np.zeros((b, h - 1, w - 2, kernel.shape[3]))
        for i in range(2):
            for j in range(3):
                result = result + images[:, i:i + h - 1, j:j + w - 2] @ kernel[i, j]
        return result

    values = cr.function(convolved)
    slopes = cr.gradient(lambda kernel, images: np.sum(convolved(kernel, images) ** 2), argnums=(0, 1))
    rng = np.random.default_rng(9)
    for b, h, w, c, d in ((1, 2, 3, 1, 1), (4, 5, 6, 4, 8), (2, 9, 7, 3, 12), (3, 4, 11, 2, 5), (5, 6, 6, 9, 4)):
        kernel, images = rng.normal(size=(2, 3, c, d)), rng.normal(size=(b, h, w, c))
        want = convolved(kernel, images)
        np.testing.assert_allclose(values(kernel, images), want, rtol=1e-12, atol=1e-12)
        of_kernel, of_images = np.zeros_like(kernel), np.zeros_like(images)
        for i in range(2):
            for j in range(3):
                of_kernel[i, j] = np.einsum("bhwc,bhwd->cd", images[:, i:i + h - 1, j:j + w - 2], 2 * want)
                of_images[:, i:i + h - 1, j:j + w - 2] += 2 * want @ kernel[i, j].T
        for found, expected in zip(slopes(kernel, images), (of_kernel, of_images)):
            np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-11)
