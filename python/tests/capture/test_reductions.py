"""Reductions with all their parameters, by name and by position."""

import numpy as np
import pytest
import scipy.special

import chainrule as cr
from support import check, same

rng = np.random.default_rng(0)
V, A, K = rng.normal(size=6), rng.normal(size=(4, 3)), np.array([1, 2, 3])

FUNCTIONS = {
    "sum": lambda a, k: (np.sum(a, 0, float), np.sum(k, dtype=float), np.sum(a, where=a > 0), np.sum(a, 1, None, None, True), np.sum(a, initial=2.0, axis=0), np.sum(k, where=k > 1), a.sum(1, None)),
    "prod": lambda a, k: (np.prod(k, initial=2), np.prod(a, axis=1, where=a > 0), np.prod(a, 0, None, None, True)),
    "max": lambda a, k: (np.max(a, initial=0.5), np.max(a, 1, None, True), np.max(a, axis=0, where=a > 0, initial=-1.0), np.max(k, initial=7), np.max(a[:0], initial=1.5), np.max(a[:0], axis=0, initial=1.5), np.amax(a), a.max(0, None)),
    "min": lambda a, k: (np.min(a, initial=0.0, axis=1), np.amin(a, axis=0), np.min(a, where=a > 0, initial=9.0)),
    "mean": lambda a, k: (np.mean(a, where=a > 0), np.mean(a, axis=0, where=a > -1), np.mean(k, dtype=float), np.mean(a, 0, None, None, True)),
    "std": lambda a, k: (np.std(a, 0, None, None, 1), np.var(a, correction=1), a.std(0, ddof=1, keepdims=True), a.var(1, None, None, 1)),
    "any": lambda a, k: (np.any(a > 1, where=a < 2), np.all(a > 0, axis=1, where=a > 0), np.any(a > 0, 1, None, True)),
    "cumsum": lambda a, k: (np.cumsum(k, dtype=float), np.cumsum(a, 1), a.cumprod(0), np.cumsum(a, None, float)),
    "cov": lambda a, k: (np.cov(a, a * a), np.cov(a[0], a[1]), np.cov(a.T, a.T, rowvar=False), np.cov(a), np.cov(a[0]), np.cov(a, None, False), np.cov(a, a, True, True), np.cov(a, ddof=0)),
    "corrcoef": lambda a, k: (np.corrcoef(a[0], a[1]), np.corrcoef(a, a[:2] ** 2), np.corrcoef(a, rowvar=False), np.corrcoef(a[0], a[1])[0, 1], np.corrcoef(a, None, False)),
    "logsumexp": lambda a, k: (scipy.special.logsumexp(a, b=a * a), scipy.special.logsumexp(a[0], 0, k), scipy.special.logsumexp(a, axis=1, b=k), scipy.special.logsumexp(a, axis=0, keepdims=True, b=a[:, :1] ** 2)),
}


@pytest.mark.parametrize("n", (1, 2, 4, 9, 20))
@pytest.mark.parametrize("name", FUNCTIONS)
def test_parameters(name, n):
    if n == 1 and name in ("mean", "std", "cov", "corrcoef"):
        return
    check(FUNCTIONS[name], (rng.normal(size=(n, 3)) if n != 4 else A, K), rtol=1e-10)


def test_numbers_that_are_infinite():
    a = np.array([[-np.inf, -np.inf], [0.0, 1.0], [np.inf, 0.0]])
    f = lambda a: (scipy.special.logsumexp(a, axis=1), scipy.special.logsumexp(a[:2], axis=0), np.logaddexp(a[:, 0], a[:, 0]), np.logaddexp(a[:, 0], a[:, 1]))
    same(cr.function(f)(a), f(a))


@pytest.mark.parametrize("f, words", (
    (lambda a: np.sum(a, out=a[0]), "`out=`"), (lambda a: np.quantile(a, 0.3, 0, a), "`out=`"), (lambda a: np.nansum(a, 0, float), "with `dtype`"),
    (lambda a: np.ptp(a, 0, a), "with `out`"), (lambda a: np.max(a, where=a > 0), "`where=` only"), (lambda a: np.sum(a[a > 0], where=a > 0), "under a mask"),
    (lambda a: np.median(a, 0, a), "with `out`")))
def test_what_cannot_be_compiled(f, words):
    with pytest.raises(cr.CaptureError, match=words):
        cr.function(f)(A)
