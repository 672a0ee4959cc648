"""Every call of the table, and every kind of index, against NumPy itself and against central differences."""

import numpy as np
import pytest
from cases import CASES, INDEXED, INDEXING
from support import check, same

import chainrule as cr
from chainrule.capture.operations.calls import name_of
from chainrule.capture.operations.table import ATTRIBUTES, METHODS, TABLE


@pytest.mark.parametrize("name, f, args", CASES, ids=[f"{k}-{c[0].split()[0]}" for k, c in enumerate(CASES)])
def test_calls(name, f, args):
    check(f, args)


@pytest.mark.parametrize("f", INDEXING, ids=range(len(INDEXING)))
def test_indices(f):
    check(f, INDEXED[: f.__code__.co_argcount])


def test_every_row_of_the_table_has_a_case():
    covered = {name for names, *_ in CASES for name in names.split()}
    wanted = {name_of(f) for f in TABLE} | {f".{name}" for name in {*METHODS, *ATTRIBUTES}}
    assert wanted - covered == set()


@pytest.mark.parametrize("n", [0, 1, 2, 7])
def test_sizes_down_to_none(n):
    x = np.arange(float(n))
    f = lambda x: (np.sum(x), np.sum(x * x), x + 1, x[::-1][:n], np.zeros_like(x), np.prod(x), np.cumsum(x), x[:, None] * x)
    same(cr.function(f)(x), f(x))


def test_one_compilation_for_all_sizes_but_short_ones():
    f = cr.function(lambda a, v: np.sum(np.tanh(a @ v)))
    gradient = cr.gradient(f, argnums=(0, 1))
    rng = np.random.default_rng(0)
    for n in range(2, 102):
        a, v = rng.normal(size=(n, n + 1)), rng.normal(size=n + 1)
        da, dv = gradient(a, v)
        slope = 1 - np.tanh(a @ v) ** 2
        np.testing.assert_allclose(da, np.outer(slope, v), rtol=1e-9, atol=1e-14)
        np.testing.assert_allclose(dv, a.T @ slope, rtol=1e-9, atol=1e-13)
    short = list(range(2, 9))  # Shapes of (8, 9) have a short extent, too.
    assert f.compilations == 1 + len(short)
    f(np.ones((1, 9)), np.ones(9))
    assert f.compilations == 2 + len(short)
