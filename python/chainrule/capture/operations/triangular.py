"""Triangular systems and Cholesky factors, as in `scipy.linalg`."""

from __future__ import annotations

from .operators import scalar
from .products import cholesky, square
from .shaping import known, permuted
from ..values import Known, Num, Row, describe


def transposed(w, a):
    return permuted(w, a, (1, 0))


def solve_triangular(w, a, b, trans=Known(0), lower=Known(False), unit_diagonal=Known(False), overwrite_b=None, check_finite=None):
    a, b = square(w, a, "scipy.linalg.solve_triangular"), w.cast(w.num(b), "f")
    is_lower, turned = bool(known(w, lower, "`lower`")), known(w, trans, "`trans`")
    if turned not in (0, 1, 2, "N", "T", "C"):
        w.fail(f"a system is solved with `trans={turned!r}`", "write 0 or 'N', 1 or 'T'")
    if turned not in (0, "N"):
        a, is_lower = transposed(w, a), not is_lower
    name = f"solve{'Unit' if known(w, unit_diagonal, '`unit_diagonal`') else ''}{'Lower' if is_lower else 'Upper'}"
    return solution(w, name, a, b)


def solution(w, name, a, b):
    """The solution of a triangular system, or those of one for each column."""
    if b.rank not in (1, 2):
        w.fail(f"the right side of a system is {describe(b)}", "write a vector or a matrix")
    w.require_equal(a.dims[0], b.dims[0], "a system and its right side")
    return Num(w.program.apply(name if b.rank == 1 else f"{name}Matrix", [a.term, b.term]), "f", b.dims)


def factor(w, a, is_lower):
    """The factor of the matrix of which one triangle is given, in that triangle."""
    return cholesky(w, a) if is_lower else transposed(w, cholesky(w, transposed(w, a)))


def upper_or_lower(w, a, lower=Known(False), overwrite_a=None, check_finite=None):
    """`scipy.linalg.cholesky`."""
    made = factor(w, square(w, a, "scipy.linalg.cholesky"), known(w, lower, "`lower`"))
    return Num(made.term, made.kind, made.dims)


def cho_factor(w, a, lower=Known(False), overwrite_a=None, check_finite=None):
    """The factor in one triangle, and the matrix itself in the other one."""
    a, is_lower = square(w, a, "scipy.linalg.cho_factor"), bool(known(w, lower, "`lower`"))
    made = factor(w, a, is_lower)
    sign = ">=" if is_lower else "<="
    both = w.build(a.dims, lambda i: w.choose(scalar(w, sign, i[0], i[1]), lambda: w.element(made, i), lambda: w.element(a, i)))
    return Row([both, Known(is_lower)])


def cho_solve(w, c_and_lower, b, overwrite_b=None, check_finite=None):
    if not isinstance(c_and_lower, Row) or len(c_and_lower.items) != 2:
        w.fail("`scipy.linalg.cho_solve` takes a factor and whether it is lower", "pass what `cho_factor` gives")
    c, lower = c_and_lower.items
    order = (0, 1) if known(w, lower, "`lower`") else (1, 0)
    for trans in order:
        b = solve_triangular(w, c, b, Known(trans), lower)
    return b
