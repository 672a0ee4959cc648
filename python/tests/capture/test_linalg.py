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
