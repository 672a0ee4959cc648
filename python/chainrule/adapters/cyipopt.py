"""Nonlinear programs for Ipopt, with the gradient, the sparse Jacobian of the constraints and the sparse Hessian of the Lagrangian."""

from __future__ import annotations

import cyipopt
import numpy as np

from ..derivative import gradient
from ..errors import ShapeError
from ..function import Function
from ..function import function as as_function
from ..sparse import sparse_hessian, sparse_jacobian


class Callbacks:
    """What `cyipopt.Problem` calls: `f`, and constraints `g` unless it is `None`, at vectors with the elements of `x`."""

    def __init__(self, f, g, x, args):
        self.f, self.g = function_of(f), None if g is None else function_of(g)
        self.shape, self.args = x.shape, args
        self.slope = gradient(self.f)
        self.n_constraints = 0 if g is None else np.size(self.g(x, *args))
        self.curved = sparse_hessian(as_function(lagrangian(self.f, self.g)), form="parts")
        if g is not None:
            self.slopes = sparse_jacobian(self.g, form="parts")
        starts, columns, _ = self.curved(x, np.ones(self.n_constraints), 1.0, *args)
        rows = rows_of(starts)
        # Ipopt takes the lower triangle.
        self.lower = np.flatnonzero(rows >= columns)
        self.triangle = rows[self.lower], columns[self.lower]

    def at(self, x):
        return x.reshape(self.shape)

    def objective(self, x):
        return self.f(self.at(x), *self.args)

    def gradient(self, x):
        return self.slope(self.at(x), *self.args).ravel()

    def constraints(self, x):
        return np.empty(0) if self.g is None else np.ravel(self.g(self.at(x), *self.args))

    def jacobianstructure(self):
        if self.g is None:
            return np.empty(0, int), np.empty(0, int)
        starts, columns, _ = self.slopes(np.zeros(self.shape), *self.args)
        return rows_of(starts), columns

    def jacobian(self, x):
        return np.empty(0) if self.g is None else self.slopes(self.at(x), *self.args)[2]

    def hessianstructure(self):
        return self.triangle

    def hessian(self, x, multipliers, factor):
        return self.curved(self.at(x), np.asarray(multipliers, float), float(factor), *self.args)[2][self.lower]


def function_of(f):
    return f if isinstance(f, Function) else as_function(f)


def lagrangian(f, g):
    if g is None:
        return lambda x, multipliers, factor, *rest: factor * f(x, *rest)
    return lambda x, multipliers, factor, *rest: factor * f(x, *rest) + np.sum(multipliers * np.ravel(g(x, *rest)))


def rows_of(starts):
    return np.repeat(np.arange(len(starts) - 1), np.diff(starts))


def problem(f, x0, args=(), *, bounds=None, constraints=None, limits=None):
    """`cyipopt.Problem`: minimise `f(x, *args)` within `bounds` of `x` and `limits` of `constraints(x, *args)`.

    Each is a pair of lower and upper ends, numbers or arrays; infinities stand for none. Arrays `x` of any shape are vectors for Ipopt.
    """
    x0 = np.asarray(x0, dtype=float)
    made = Callbacks(f, constraints, x0, tuple(args))
    if constraints is not None and limits is None:
        raise ShapeError("constraints without limits", remedy="`limits=(lower, upper)`; equal ends for an equation")
    lower, upper = ends(bounds, x0.size, "bounds")
    least, most = ends(limits, made.n_constraints, "limits")
    return cyipopt.Problem(n=x0.size, m=made.n_constraints, problem_obj=made, lb=lower, ub=upper, cl=least, cu=most)


def ends(pair, n, name):
    lower, upper = (-np.inf, np.inf) if pair is None else pair
    made = []
    for end in (lower, upper):
        array = np.ravel(np.asarray(end, dtype=float))
        if array.size not in (1, n):
            raise ShapeError(f"`{name}` has {array.size} numbers for {n}", remedy="pass one number, or one for each")
        made.append(np.array(np.broadcast_to(array, (n,))))
    return made


def minimize(f, x0, args=(), *, bounds=None, constraints=None, limits=None, **options):
    """The solution, with the shape of `x0`, and Ipopt's report; `options` are Ipopt's, such as `tol=1e-10` and `print_level=5` (0 here)."""
    x0 = np.asarray(x0, dtype=float)
    made = problem(f, x0, args, bounds=bounds, constraints=constraints, limits=limits)
    for name, value in {"print_level": 0, "sb": "yes", **options}.items():
        made.add_option(name, value)
    x, report = made.solve(x0.ravel())
    return x.reshape(x0.shape), report


__all__ = ["minimize", "problem"]
