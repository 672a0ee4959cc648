"""QR factors of matrices, and what follows from them: least squares and pseudoinverses of matrices of full rank.

The library's factor R has no negative element on its diagonal, that of LAPACK and NumPy the signs of Householder's
reflections. The signs are constant wherever the factors have derivatives.
"""

from __future__ import annotations

import numpy as np

from .norms import norm
from .operators import binary, scalar
from .products import matmul, matrices, of_matrix, squares, stacked
from .shaping import known
from .triangular import solution, transposed
from ..values import Dim, Form, Gone, Known, Num, Row, describe

FULL_RANK = "solve the system by `np.linalg.qr`, or by `np.linalg.solve` with `a.T @ a + c * np.eye(n)`"


def columns(w, a, count):
    """The first columns of a matrix."""
    return a if count == a.dims[1] else w.build((a.dims[0], count), lambda i: w.element(a, i))


def tall_factors(w, a):
    """Q and R of a matrix that has as many rows as columns at least, with LAPACK's signs."""
    term = w.program.apply("qrReflected", [a.term])
    n = a.dims[1]
    return Num(w.program.component(term, 0), "f", a.dims), Num(w.program.component(term, 1), "f", (n, n))


def factors(w, a):
    """Q and R of a matrix of any shape, with LAPACK's signs."""
    m, n = a.dims
    k = w.shorter(m, n)
    if k.known == 0:
        zero = w.constant(0.0)
        return w.build((m, Dim(0)), lambda _: zero), w.build((Dim(0), n), lambda _: zero)
    q, r = tall_factors(w, columns(w, a, k))
    if k == n:
        return q, r
    count = w.size(k)
    rest = lambda i: w.total([m], lambda l: scalar(w, "*", w.element(q, [l[0], i[0]]), w.element(a, [l[0], i[1]])))
    return q, w.build((k, n), lambda i: w.choose(scalar(w, "<", i[1], count), lambda: w.element(r, i), lambda: rest(i)))


def qr(w, a, mode=Known("reduced")):
    a, mode = matrices(w, a, "np.linalg.qr"), known(w, mode, "the mode")
    if mode not in ("reduced", "r"):
        w.fail(f"`np.linalg.qr` of the mode {mode!r}", "use 'reduced' or 'r'")
    w.shorter(*a.dims[-2:])  # Written outside of the loops over a stack, so that the extent is known there.
    r = stacked(w, [(a, 2)], lambda x: factors(w, x)[1])
    if mode == "r":
        return r
    q = stacked(w, [(a, 2)], lambda x: factors(w, x)[0])
    return Row([q, r], Form(type(np.linalg.qr(np.eye(1))), ("Q", "R")))


def by_shape(w, a, tall, wide):
    """One of two arrays of the same extents: for a matrix with as many rows as columns at least, or for another one."""
    m, n = a.dims
    if w.is_at_most(n, m):
        return tall()
    if w.is_at_most(m, n):
        return wide()
    w.undecided(m - n)
    return w.choose(scalar(w, ">=", w.size(m), w.size(n)), tall, wide)


def least_squares(w, a, b):
    """The solution of least squares; where there are several, the shortest one."""
    (m, n), rest = a.dims, b.dims[1:]
    if 0 in (m.known, n.known):
        return w.build((n, *rest), lambda _: w.constant(0.0))

    def tall():
        if b.rank == 1:
            return Num(w.program.apply("leastSquares", [a.term, b.term]), "f", (n,))
        q, r = tall_factors(w, a)
        return solution(w, "solveUpper", r, matmul(w, transposed(w, q), b))

    def wide():
        q, r = tall_factors(w, transposed(w, a))
        return matmul(w, q, solution(w, "solveLower", transposed(w, r), b))

    return by_shape(w, a, tall, wide)


def lstsq(w, a, b, rcond=None):
    """`np.linalg.lstsq` for a matrix of full rank: the solution, the sums of squares that are left, the rank."""
    a, b = w.cast(w.num(a), "f"), w.cast(w.num(b), "f")
    if a.rank != 2 or b.rank not in (1, 2):
        w.fail(f"`np.linalg.lstsq` of {describe(a)} and {describe(b)}", "write a matrix, and a vector or a matrix")
    w.require_equal(a.dims[0], b.dims[0], "a system and its right side")
    x = least_squares(w, a, b)
    m, n = a.dims
    if w.is_at_most(m, n):
        left = w.build((Dim(0),), lambda _: w.constant(0.0))
    elif w.is_at_most(n + 1, m) or n.known is not None:
        w.require_not_negative(m - n - 1)
        rest = binary(w, "-", b, matmul(w, a, x))
        squared = binary(w, "*", rest, rest)
        sums = [Dim(1)] if b.rank == 1 else [b.dims[1]]
        left = w.build(sums, lambda j: w.total([m], lambda i: w.element(squared, [*i, *j[:b.rank - 1]])))
    else:
        left = Gone("the number of residuals of `np.linalg.lstsq` depends on the shape of the matrix", "compute `np.sum((b - a @ x) ** 2)`")
    smaller = w.shorter(m, n)
    rank = Known(smaller.known) if smaller.known is not None else w.size(smaller)
    return Row([x, left, rank, Gone("the singular values of `np.linalg.lstsq` are not computed", FULL_RANK)])


def pinv(w, a, rcond=None, hermitian=Known(False)):
    """`np.linalg.pinv` of a matrix of full rank, or of one at each place of the first axes."""
    a = matrices(w, a, "np.linalg.pinv")

    def of_tall(x):
        q, r = tall_factors(w, x)
        return solution(w, "solveUpper", r, transposed(w, q))

    def of_one(x):
        m, n = x.dims
        if 0 in (m.known, n.known):
            return w.build((n, m), lambda _: w.constant(0.0))
        return by_shape(w, x, lambda: of_tall(x), lambda: transposed(w, of_tall(transposed(w, x))))

    return stacked(w, [(a, 2)], of_one)


def cond(w, x, p=None):
    """`np.linalg.cond` in the norms that need no singular values."""
    order = known(w, p, "the order of a norm")
    if order in (None, 2, -2, "nuc"):
        w.fail(f"`np.linalg.cond` of order {order!r}", "it needs singular values: use the order 1, `np.inf` or 'fro'")
    a = squares(w, x, "np.linalg.cond")
    of = lambda one: norm(w, one, Known(order), Row([Known(-2), Known(-1)]))
    return binary(w, "*", of(a), of(of_matrix("np.linalg.inv", "inverse", False)(w, a)))
