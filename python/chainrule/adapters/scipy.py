"""SciPy's solvers with derivatives: `minimize`, `least_squares`, `root`, `solve_ivp`, constraints.

Each takes a Python function and what SciPy's function of the same name takes; derivatives are handed over where the method uses them.
"""

from __future__ import annotations

import numpy as np
from scipy import integrate, optimize

from ..derivative import hessian, hvp, jacobian, value_and_gradient
from ..function import Function
from ..function import function as as_function
from ..sparse import sparse_hessian, sparse_jacobian

WITHOUT_GRADIENT = ("nelder-mead", "powell", "cobyla", "cobyqa")
WITH_HESSIAN = ("newton-cg", "dogleg", "trust-ncg", "trust-krylov", "trust-exact", "trust-constr")
WITH_PRODUCTS = ("newton-cg", "trust-ncg", "trust-krylov", "trust-constr")
#: Methods of `solve_ivp` that use a Jacobian.
IMPLICIT = ("radau", "bdf", "lsoda")


def function_of(f):
    return f if isinstance(f, Function) else as_function(f)


def minimize(f, x0, args=(), method=None, *, sparse=False, products=False, **options):
    """`scipy.optimize.minimize` with the gradient, and with the Hessian where the method takes it.

    `sparse` makes the Hessian a sparse array (of `trust-constr`), `products` gives products with it instead.
    """
    f, name = function_of(f), (method or "").lower()
    x0 = np.asarray(x0, dtype=float)
    if name in WITHOUT_GRADIENT:
        return optimize.minimize(f, x0, args=args, method=method, **options)
    if name in WITH_HESSIAN and "hess" not in options and "hessp" not in options:
        if products and name in WITH_PRODUCTS:
            product = hvp(f)
            options["hessp"] = lambda x, p, *rest: product(x, *rest, p)
        else:
            options["hess"] = sparse_hessian(f) if sparse and name == "trust-constr" else hessian(f)
    return optimize.minimize(value_and_gradient(f), x0, args=args, method=method, jac=True, **options)


def least_squares(f, x0, args=(), *, sparse=False, **options):
    """`scipy.optimize.least_squares` with the Jacobian, which is a sparse array where `sparse` says so."""
    f = function_of(f)
    made = sparse_jacobian(f) if sparse else jacobian(f)
    kwargs = options.pop("kwargs", {})
    return optimize.least_squares(f, np.asarray(x0, dtype=float), jac=made, args=args, kwargs=kwargs, **options)


def root(f, x0, args=(), method="hybr", **options):
    """`scipy.optimize.root` with the Jacobian, for the methods that take it (`hybr`, `lm`)."""
    f = function_of(f)
    if method in ("hybr", "lm"):
        options.setdefault("jac", jacobian(f))
    return optimize.root(f, np.asarray(x0, dtype=float), args=args, method=method, **options)


def solve_ivp(f, t_span, y0, method="RK45", *, args=(), sparse=False, **options):
    """`scipy.integrate.solve_ivp` for `f(t, y, ...)`, with the Jacobian by `y` for `Radau`, `BDF` and `LSODA`."""
    f = function_of(f)
    args = () if args is None else tuple(args)
    if isinstance(method, str) and method.lower() in IMPLICIT and "jac" not in options:
        made = sparse_jacobian(f, argnums=1, form="csc") if sparse else jacobian(f, argnums=1)
        options["jac"] = lambda t, y: made(float(t), y, *args)
    return integrate.solve_ivp(lambda t, y: f(float(t), y, *args), t_span, np.asarray(y0, dtype=float), method=method, **options)


def constraint(f, lower, upper, args=(), *, sparse=False, **options):
    """`scipy.optimize.NonlinearConstraint` on the results of `f`, with their Jacobian and the Hessian of their weighted sum."""
    f = function_of(f)

    def weighted(x, v, *rest):
        return np.sum(v * f(x, *rest))

    made = sparse_jacobian(f) if sparse else jacobian(f)
    curved = sparse_hessian(as_function(weighted)) if sparse else hessian(as_function(weighted))
    row = (lambda m: m) if sparse else np.atleast_2d
    return optimize.NonlinearConstraint(lambda x: f(x, *args), lower, upper, jac=lambda x: row(made(x, *args)),
                                        hess=lambda x, v: curved(x, v if np.ndim(f(x, *args)) else float(v[0]), *args), **options)


__all__ = ["constraint", "least_squares", "minimize", "root", "solve_ivp"]
