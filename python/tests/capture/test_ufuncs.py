"""Every elementwise function of the table against the function itself, and its derivative against central differences."""

import numpy as np
import pytest

import chainrule as cr
from chainrule.capture.operations.ufuncs import ROWS

CASES = [(row, name, obj) for row in ROWS for name, obj in zip(row.names, row.objects)]


def make(obj, n):
    return cr.function({1: lambda x: obj(x), 2: lambda x, y: obj(x, y), 3: lambda x, y, z: obj(x, y, z)}[n])


def apply(obj, samples):
    """The function at each sample: `math` takes numbers only."""
    return np.array([obj(*point) for point in zip(*samples)])


@pytest.mark.parametrize("row, name, obj", CASES, ids=[name for _, name, _ in CASES])
def test_values_are_those_of_numpy(row, name, obj):
    samples = [np.array(s, dtype=float) for s in row.samples]
    f = make(obj, len(samples))
    got, want = f(*samples), apply(obj, samples)
    if name.startswith("math."):
        want = want if want.dtype == bool else want.astype(float)
    assert got.dtype == want.dtype and got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=1e-14, atol=1e-15)
    one = f(*[float(s[0]) for s in samples])
    np.testing.assert_allclose(one, want[0], rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize("row, name, obj", [c for c in CASES if c[0].smooth], ids=[n for r, n, _ in CASES if r.smooth])
def test_derivatives_are_those_of_central_differences(row, name, obj):
    samples = [np.array(s, dtype=float) for s in row.samples]
    n = len(samples)
    total = cr.function({
        1: lambda x: np.sum(obj(x)), 2: lambda x, y: np.sum(obj(x, y)), 3: lambda x, y, z: np.sum(obj(x, y, z)),
    }[n])
    got = cr.gradient(total, argnums=tuple(range(n)))(*samples)
    for k in range(n):
        for i in range(len(samples[0])):
            h = 1e-5
            at = lambda d: apply(obj, [s + (np.arange(len(s)) == i) * (d if j == k else 0.0) for j, s in enumerate(samples)])[i]
            # Richardson's extrapolation of two central differences: an error of h^4.
            slope = lambda h: (at(h) - at(-h)) / (2 * h)
            want = (4 * slope(h) - slope(2 * h)) / 3
            assert abs(got[k][i] - want) <= 1e-8 * max(1.0, abs(want)), (name, k, i)


def test_the_table_has_all_rows_of_this_numpy():
    assert all(row.objects for row in ROWS)
    assert len(ROWS) >= 55


@pytest.mark.parametrize("a, b", [((3, 1), (4,)), ((2, 3), (2, 3)), ((1,), (5,)), ((2, 1, 3), (4, 1)), ((0,), (0,)), ((3, 0), (1,))])
@pytest.mark.parametrize("kinds", ["ff", "fi", "if", "ii", "bf", "bi"])
def test_broadcasting_and_kinds(a, b, kinds):
    rng = np.random.default_rng(0)
    make_one = {"f": rng.normal, "i": lambda size: rng.integers(1, 5, size=size), "b": lambda size: rng.integers(0, 2, size=size) > 0}
    x, y = make_one[kinds[0]](size=a), make_one[kinds[1]](size=b)

    def f(x, y):
        return x + y, x - 2 * y, x * y, x / (y * y + 1), x < y, np.maximum(x, y), -y, y ** 2, x // (y * y + 1), x % (y * y + 2)

    if "b" in kinds:
        def f(x, y):
            return x + y, x * y, y - x, x / (y * y + 1), x == y

    for got, want in zip(cr.function(f)(x, y), f(x, y)):
        assert got.dtype == want.dtype and got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=1e-14)


def test_numbers_of_python_do_not_widen():
    f = cr.function(lambda n: (n + 1, n * 2.0, n / 2, 7 // n, -7 % n, n ** 3, 2 ** 0.5 * n, True + n))
    for got, want in zip(f(3), (4, 6.0, 1.5, 2, 2, 27, 2 ** 0.5 * 3, 4)):
        assert got == want and isinstance(got, (int, np.integer)) == isinstance(want, int)


def test_derivatives_at_the_ends_of_domains():
    special = pytest.importorskip("scipy.special")
    one = cr.function(lambda x: np.sinc(x))
    for x in (0.0, 1e-9, 1e-5, 1e-3, 0.1, 0.159, 0.16):
        t = np.pi * x
        slope, curve = -t / 3 + t**3 / 30 - t**5 / 840 + t**7 / 45360, -1 / 3 + t**2 / 10 - t**4 / 168 + t**6 / 6480 - t**8 / 443520
        assert one(x) == pytest.approx(np.sinc(x), rel=1e-15)
        assert cr.gradient(one)(x) == pytest.approx(np.pi * slope, rel=1e-6 if x > 0.1 else 1e-9)
        assert cr.hessian(one)(x) == pytest.approx(np.pi**2 * curve, rel=1e-6 if x > 0.1 else 1e-9)
    by_x = lambda f, *args: cr.gradient(f, argnums=0)(*args)
    assert by_x(lambda x, y: special.xlogy(x, y), 0.0, 2.0) == pytest.approx(np.log(2.0))
    assert by_x(lambda x, y: special.xlog1py(x, y), 0.0, 2.0) == pytest.approx(np.log(3.0))
    assert by_x(lambda x, y: special.xlogy(x, y), 0.0, 0.0) == 0.0
    assert by_x(lambda x: special.entr(x), 0.0) == np.inf and by_x(lambda x, y: special.kl_div(x, y), 0.0, 2.0) == -np.inf
