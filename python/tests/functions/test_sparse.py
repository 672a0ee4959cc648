"""Sparse Jacobians and Hessians against dense ones, on functions with arrays of indices."""

import builtins

import numpy as np
import pytest
from scipy.sparse import csr_array

import chainrule as cr


def springs(x, pairs, k=1.0):
    e = 0.0
    for i, j in pairs:
        e += 0.5 * k * (np.linalg.norm(x[j] - x[i]) - 1.0) ** 2
    return e


def stencil(x):
    return x[1:-1] ** 2 * x[2:] - np.sin(x[:-2])


def gather(x, at):
    return np.exp(x[at]) * x[at]


def grid(u):
    return np.sum((u[1:, :] - u[:-1, :]) ** 2) + np.sum((u[:, 1:] - u[:, :-1]) ** 4)


def chain(x):
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def bundle(cameras, points, which, where):
    r = np.zeros((len(which), 2))
    for k in range(len(which)):
        c = cameras[which[k]]
        p = points[where[k]]
        r[k, 0] = c[0] * p[0] / p[2] + c[1]
        r[k, 1] = c[0] * p[1] / p[2] + c[2] * p[0]
    return r


@pytest.mark.parametrize("seed", range(8))
def test_hessians_are_the_dense_ones(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 9))
    pairs = rng.integers(0, n, size=(int(rng.integers(1, 12)), 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]] if np.any(pairs[:, 0] != pairs[:, 1]) else np.array([[0, 1]])
    cases = [(springs, (rng.normal(size=(n, 3)), pairs, 0.7)), (chain, (rng.normal(size=n),)), (grid, (rng.normal(size=(n, 4)),))]
    for f, args in cases:
        sparse = cr.sparse_hessian(f)
        dense = cr.hessian(f)(*args).reshape(args[0].size, -1)
        got = sparse(*args)
        assert isinstance(got, csr_array) and got.has_canonical_format
        np.testing.assert_allclose(got.toarray(), dense, rtol=1e-10, atol=1e-10)
        assert not np.any(dense[~sparse.pattern(*args).toarray()])


@pytest.mark.parametrize("seed", range(8))
def test_jacobians_are_the_dense_ones(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 9))
    for f, args in [(stencil, (rng.normal(size=n),)), (gather, (rng.normal(size=n), rng.integers(0, n, size=11)))]:
        got = cr.sparse_jacobian(f)(*args)
        dense = cr.jacobian(f)(*args)
        np.testing.assert_allclose(got.toarray(), dense, rtol=1e-12, atol=1e-12)
        assert got.nnz <= 3 * dense.shape[0]


def test_columns_follow_the_arguments():
    rng = np.random.default_rng(3)
    cameras, points = rng.normal(size=(3, 3)), rng.normal(size=(5, 3))
    which, where = rng.integers(0, 3, size=9), rng.integers(0, 5, size=9)
    args = (cameras, points, which, where)
    by_cameras, by_points = cr.jacobian(bundle, argnums=(0, 1))(*args)
    dense = np.hstack([by_cameras.reshape(18, -1), by_points.reshape(18, -1)])
    for argnums in [(0, 1), (1, 0), ("cameras", "points")]:
        got = cr.sparse_jacobian(bundle, argnums=argnums)(*args)
        assert got.shape == (18, 24) and got.nnz < 18 * 24 / 2
        np.testing.assert_allclose(got.toarray(), dense, rtol=1e-10, atol=1e-12)
    alone = cr.sparse_jacobian(bundle, argnums=1)(*args)
    np.testing.assert_allclose(alone.toarray(), by_points.reshape(18, -1), rtol=1e-10, atol=1e-12)


def test_the_pattern_follows_indices_and_extents():
    f = cr.sparse_jacobian(gather)
    x = np.arange(1.0, 6.0)
    for at in ([0, 1], [4, 4], [0, 1], [2, 3, 0]):
        at = np.array(at)
        got = f(x, at)
        assert got.indices.tolist() == at.tolist() and got.shape == (len(at), 5)
        got.data[:] = 0.0
        got.eliminate_zeros()
    assert f(x, np.array([0, 1])).nnz == 2
    assert f.compilations == 1
    # Integers that are written to in place are seen.
    at = np.array([0, 1])
    f(x, at)
    at[0] = 3
    assert f(x, at).indices.tolist() == [3, 1]


def test_forms(monkeypatch):
    x = np.arange(1.0, 5.0)
    dense = cr.jacobian(stencil)(x)
    for form in ("csr", "csc", "coo"):
        got = cr.sparse_jacobian(stencil, form=form)(x)
        assert got.format == form
        np.testing.assert_allclose(got.toarray(), dense)
    starts, columns, values = cr.sparse_jacobian(stencil, form="parts")(x)
    np.testing.assert_allclose(csr_array((values, columns, starts), shape=dense.shape).toarray(), dense)
    with pytest.raises(cr.Error, match="no form `dia`"):
        cr.sparse_jacobian(stencil, form="dia")
    with pytest.raises(cr.TypeError_, match="no `out`"):
        cr.sparse_jacobian(stencil)(x, out=np.empty(3))
    real = builtins.__import__
    monkeypatch.setattr(builtins, "__import__", lambda name, *a, **k: (_ for _ in ()).throw(ImportError(name))
                        if name.startswith("scipy") else real(name, *a, **k))
    with pytest.raises(cr.Error, match="form='parts'"):
        cr.sparse_jacobian(stencil)(x)


def test_arrays_without_elements():
    got = cr.sparse_jacobian(gather)(np.ones(3), np.zeros(0, np.int64))
    assert got.shape == (0, 3) and got.nnz == 0


def test_a_hessian_of_an_array_is_refused():
    with pytest.raises(cr.Error):
        cr.sparse_hessian(stencil)(np.arange(5.0))
