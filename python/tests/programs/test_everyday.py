"""Programs as people write them: NumPy's values, and gradients against differences; what cannot be compiled is told at its line."""

import everyday
import numpy as np
import pytest
from support import check

import chainrule as cr

PROGRAMS = everyday.PROGRAMS


@pytest.mark.parametrize("f, args", PROGRAMS, ids=[f"{k}-{f.__name__}" for k, (f, _) in enumerate(PROGRAMS)])
def test_values_and_gradients(f, args):
    check(f, args)


def test_bits_of_ints():
    def f(a, b, k):
        return a & b, a | b, a ^ b, ~a, a << 3, a >> 2, a >> k, a << k, a & 0xF0, a | 5, a ^ -3, b & -8, 12 & a

    g = cr.function(f)
    numbers = [0, 1, -1, 5, -6, 255, -256, 12345678901, -98765432109, 2**61, -(2**61)]
    for a in numbers[:9]:
        for b in numbers[:9]:
            assert g(a, b, 4) == f(a, b, 4)
    assert cr.function(lambda a, b: (a & b, a | b, a ^ b))(2**61 + 3, -(2**61) + 9) == ((2**61 + 3) & (9 - 2**61), (2**61 + 3) | (9 - 2**61), (2**61 + 3) ^ (9 - 2**61))


def test_bits_of_arrays_of_ints():
    k = np.array([3, 8, -5, 0, 1023])
    f = lambda k: (k & 6, k | 1, k ^ k[0], ~k, k << 2, k >> 1, (k & 1) == 1)
    for got, want in zip(cr.function(f)(k), f(k)):
        assert np.array_equal(got, want) and got.dtype == want.dtype


@pytest.mark.parametrize("x", [0.0, -0.0, 0.999, -0.999, 1.0, 4.5e15, -4.5e15, 2.0**53 - 1, 123456.789])
def test_floats_to_ints(x):
    assert cr.function(lambda x: int(x))(x) == int(x)
    assert cr.function(lambda x: x.astype(int))(np.full(3, x)).tolist() == [int(x)] * 3


@pytest.mark.parametrize("x", [np.nan, np.inf, -np.inf, 2.0**53, 1e300])
def test_floats_that_are_no_ints_fail(x):
    with pytest.raises((cr.Error, IndexError)):
        cr.function(lambda x: int(x) + 1)(x)
