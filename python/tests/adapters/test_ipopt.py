"""Nonlinear programs for Ipopt."""

import numpy as np
import pytest

import chainrule as cr

pytest.importorskip("cyipopt", reason="cyipopt is not installed")

from chainrule.adapters import cyipopt as ipopt  # noqa: E402


def test_hock_schittkowski_71():
    f = lambda x: x[0] * x[3] * (x[0] + x[1] + x[2]) + x[2]
    g = lambda x: np.stack([np.prod(x), np.sum(x ** 2)])
    made = ipopt.problem(f, [1.0, 5.0, 5.0, 1.0], bounds=(1.0, 5.0), constraints=g, limits=([25.0, 40.0], [np.inf, 40.0]))
    made.add_option("print_level", 0)
    # Ipopt compares all derivatives with differences.
    made.add_option("derivative_test", "second-order")
    x, report = made.solve(np.array([1.0, 5.0, 5.0, 1.0]))
    assert report["status"] == 0
    np.testing.assert_allclose(x, [1.0, 4.74299963, 3.82114998, 1.37940829], rtol=1e-7)
    np.testing.assert_allclose(report["obj_val"], 17.0140173, rtol=1e-8)


def chain(n):
    """A chain of elements, each with a constraint on neighbours."""
    f = lambda x, a: np.sum((x[1:] - a * x[:-1]) ** 2) + np.sum(x ** 4)
    g = lambda x, a: x[1:] * x[:-1] - a
    return ipopt.Callbacks(f, g, np.linspace(1.0, 2.0, n), (0.5,)), f, g


def test_structure_and_values():
    made, f, g = chain(30)
    x, multipliers = np.linspace(0.5, 2.0, 30), np.cos(np.arange(29.0))
    rows, columns = made.jacobianstructure()
    assert len(rows) == 58 and made.n_constraints == 29
    dense = np.zeros((29, 30))
    dense[rows, columns] = made.jacobian(x)
    np.testing.assert_allclose(dense, cr.jacobian(g)(x, 0.5), rtol=1e-14)
    rows, columns = made.hessianstructure()
    assert np.all(rows >= columns) and len(rows) == 59
    triangle = np.zeros((30, 30))
    triangle[rows, columns] = made.hessian(x, multipliers, 0.7)
    whole = 0.7 * cr.hessian(f)(x, 0.5) + cr.hessian(lambda x, a, m: np.sum(m * g(x, a)))(x, 0.5, multipliers)
    np.testing.assert_allclose(triangle, np.tril(whole), atol=1e-12)
    np.testing.assert_allclose(made.gradient(x), cr.gradient(f)(x, 0.5))


def test_a_large_sparse_program():
    n = 2000
    f = lambda x: np.sum((x[1:] - 2.0 * x[:-1] ** 2) ** 2) + np.sum((x - 1.0) ** 2)
    x, report = ipopt.minimize(f, np.full(n, 0.5), constraints=lambda x: x[1:] + x[:-1], limits=(0.0, 1.5))
    assert report["status"] == 0 and np.max(x[1:] + x[:-1]) < 1.5 + 1e-6
    assert len(ipopt.Callbacks(f, None, x, ()).hessianstructure()[0]) == 2 * n - 1


def test_without_constraints_and_of_other_shapes():
    target = np.arange(6.0).reshape(2, 3)
    x, report = ipopt.minimize(lambda x, t: np.sum((x - t) ** 4 + (x - t) ** 2), np.zeros((2, 3)), args=(target,), tol=1e-12)
    assert report["status"] == 0 and x.shape == (2, 3)
    np.testing.assert_allclose(x, target, atol=1e-6)
    x, report = ipopt.minimize(lambda x: np.sum(x ** 2), [3.0, 3.0], constraints=lambda x: x[0] * x[1], limits=(1.0, 1.0), bounds=(0.0, np.inf))
    np.testing.assert_allclose(x, [1.0, 1.0], atol=1e-6)


def test_mistakes():
    f = lambda x: np.sum(x ** 2)
    for options in ({"constraints": f}, {"bounds": ([0.0, 0.0], 1.0)}, {"constraints": f, "limits": (0.0, [1.0, 2.0])}):
        with pytest.raises(cr.ShapeError):
            ipopt.problem(f, np.ones(3), **options)
    with pytest.raises(cr.CaptureError):
        ipopt.problem(lambda x: np.sum(np.fft.fft(x)), np.ones(3))


def test_exceptions_in_functions_propagate():
    f = lambda x, at: np.sum(x ** 2) + x[at[0]]
    made = ipopt.Callbacks(f, None, np.ones(3), (np.array([1]),))
    made.args = (np.array([99]),)
    with pytest.raises(cr.Error, match="outside of the array"):
        made.objective(np.ones(3))
