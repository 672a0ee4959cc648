"""Calls in which extents are short or sizes equal run code of their own, with the results of the code for all sizes."""

import concurrent.futures

import numpy as np
import pytest

import chainrule as cr
from chainrule import fit, saved


def sweep(u, n):
    """Steps that read the row before, up to an integer that is mostly the number of rows."""
    v = u.copy()
    for i in range(1, n):
        v[i, 1:n] = v[i, 1:n] + 0.5 * v[i - 1, 0:n - 1]
    return np.sum(v * v)


def lower(c, a):
    """Reads beside the diagonal of what need not be a square matrix."""
    total = 0.0
    for i in range(a.shape[0]):
        for k in range(a.shape[1]):
            total = total + np.sum(c[i, :i + 1] * a[:i + 1, k]) * a[i, k]
    return total


def made(*shape):
    return np.random.default_rng(sum(shape)).normal(size=shape)


def programs_run(function):
    """How many different programs calls have run."""
    return len({id(entry) for entry in function._entries.values() if entry.derived})


def check(slope, plain, x, *rest):
    found = slope(x, *rest)
    step = 1e-6
    for at in [(0, 0), (x.shape[0] - 1, x.shape[1] - 1)]:
        high, low = x.copy(), x.copy()
        high[at] += step
        low[at] -= step
        expected = (plain(high, *rest) - plain(low, *rest)) / (2 * step)
        assert found[at] == pytest.approx(expected, rel=1e-5, abs=1e-7)


@pytest.mark.parametrize("more", [0, 3, 10])
def test_equal_and_other_sizes_in_turn(more):
    f, slope = cr.function(sweep), cr.gradient(sweep)
    cases = [((6, 6), 6), ((7, 7), 5), ((9, 9), 9), ((7, 8), 7), ((8, 7), 7), ((8, 9), 5), ((6, 6), 6), ((5, 5), 3), ((3, 4), 3)]
    for _ in range(3):
        for (rows, columns), n in cases:
            shape, n = (rows + more, columns + more), n + more
            x = made(*shape)
            assert f(x, n) == pytest.approx(sweep(x, n), rel=1e-13)
            check(slope, sweep, x, n)
    assert programs_run(f) > 1


@pytest.mark.parametrize("more", [0, 2, 10])
def test_what_runs_depends_on_the_sizes_of_the_call_alone(more):
    calls = [(made(rows + more, columns + more), n + more) for rows, columns, n in [(6, 6, 6), (6, 8, 4), (7, 7, 5), (6, 6, 3)]]
    results = []
    for order in (calls, calls[::-1]):
        slope = cr.gradient(sweep)
        found = {(x.shape, n): slope(x, n) for x, n in order}
        again = {(x.shape, n): slope(x, n) for x, n in order}
        assert all(np.array_equal(found[key], again[key]) for key in found)
        results.append(found)
    assert all(np.array_equal(results[0][key], results[1][key]) for key in results[0])


@pytest.mark.parametrize("n", [6, 16])
def test_indices_out_of_range_are_still_mistakes(n):
    f = cr.function(sweep)
    f(made(n, n), n)
    for shape, k in [((n, n), n + 1), ((n, n - 1), n), ((n - 1, n), n), ((n, n), n + 2)]:
        with pytest.raises(cr.Error):
            f(made(*shape), k)
    assert f(made(n, n), n) == pytest.approx(sweep(made(n, n), n), rel=1e-13)


def test_sizes_of_two_arrays():
    f, slope = cr.function(lower), cr.gradient(lower)
    cases = [((5, 5), (5, 7)), ((7, 7), (5, 7)), ((5, 5), (5, 5)), ((6, 9), (5, 4)), ((5, 5), (5, 7))]
    for c, a in [*cases, *[(tuple(n + 9 for n in c), tuple(n + 9 for n in a)) for c, a in cases]]:
        c, a = made(*c), made(*a)
        assert f(c, a) == pytest.approx(lower(c, a), rel=1e-12)
        check(slope, lower, c, a)


def test_functions_without_doubtful_indices_have_one_program():
    f = cr.function(lambda x, n: np.sum(x @ x) * n)
    f(made(14, 14), 14)
    f(made(15, 15), 3)
    assert len(f._entries) == 1


def products(a, b):
    return np.sum(np.sin(np.einsum("bij,bjk->bik", a, b)) * a[:, :1])


def test_short_extents_are_known():
    f, slope = cr.function(products), cr.gradient(products, argnums=(0, 1))
    for n in (2, 8, 9, 30):
        for m in (1, 2, 3, 8, 9, 1):
            a, b = made(n, m, m), made(n, m, m)
            assert f(a, b) == pytest.approx(products(a, b), rel=1e-12)
            da, db = slope(a, b)
            step = 1e-6
            high, low = a.copy(), a.copy()
            high[-1, 0, -1] += step
            low[-1, 0, -1] -= step
            assert da[-1, 0, -1] == pytest.approx((products(high, b) - products(low, b)) / (2 * step), rel=1e-6, abs=1e-8)
            assert db.shape == b.shape
    assert f.source("ft", a, b) == f.source("ft", made(9, 1, 1), made(9, 1, 1))
    compilations = f.compilations
    f(made(11, 3, 3), made(11, 3, 3))
    f(made(12, 4, 3), made(12, 3, 3))
    assert f.compilations == compilations + 1


def test_programs_are_told_for_all_sizes():
    f = cr.function(sweep)
    f(made(6, 6), 6)
    assert "int64_t n_u0, int64_t n_u1" in f.source("c").replace("\n", " ")
    assert f.source("ft") == f.source("ft", made(5, 6), 5)


def test_batches_and_bound_code_take_integers_that_differ():
    f = cr.gradient(sweep)
    x = np.stack([made(6, 6)] * 3)
    assert np.allclose(f.batch(x, np.array([6, 4, 6])), [f(x[0], n) for n in (6, 4, 6)], rtol=1e-13)


def test_saved_functions_run_the_same_code():
    slope = cr.gradient(sweep)
    calls = [(made(6, 6), 6), (made(6, 8), 4), (made(16, 16), 16), (made(16, 8), 4)]
    found = [slope(*call) for call in calls]
    loaded = cr.gradient(saved.loads(saved.dumps(slope.function)))
    assert all(np.array_equal(loaded(*call), one) for call, one in zip(calls, found))
    # A pattern of sizes that was not saved runs the code for all sizes.
    assert np.allclose(loaded(made(6, 8), 6), slope(made(6, 8), 6), rtol=1e-13)


def test_positions_are_those_of_the_captured_program():
    # Numbers that are no integers, truth values, tuples and constants stand between integers and extents.
    weights = np.linspace(1.0, 2.0, 7)

    def mixed(flag, scale, parts, u, n, other, m):
        v = sweep(u, n) * scale + sweep(parts[1], parts[0]) * np.sum(weights)
        return v + sweep(other, m) if flag else v

    f, slope = cr.function(mixed), cr.gradient(mixed, argnums=3)
    for n, m, k in [(6, 5, 4), (5, 5, 5), (7, 3, 7), (6, 6, 3), (3, 7, 7), (13, 5, 4), (12, 12, 5), (13, 4, 13), (14, 14, 14)]:
        for du, dm, dk in [(0, 0, 0), (1, 0, 2), (0, 2, 0), (2, 1, 1)]:
            u, other, part = made(n + du, n + du), made(m + dm, m + dm), made(k + dk, k + dk)
            for flag in (np.bool_(True), np.bool_(False)):
                args = (flag, 0.5, (k, part), u, n, other, m)
                assert f(*args) == pytest.approx(mixed(*args), rel=1e-12)
                step = np.zeros_like(u)
                step[1, 1] = 1e-6
                expected = (mixed(flag, 0.5, (k, part), u + step, n, other, m) - mixed(flag, 0.5, (k, part), u - step, n, other, m)) / 2e-6
                assert slope(*args)[1, 1] == pytest.approx(expected, rel=1e-5, abs=1e-7)


def test_threads():
    f = cr.function(sweep)
    calls = [(made(k, k), k - j) for k in (5, 6, 7, 12, 13) for j in (0, 1)] * 10
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        assert np.allclose(list(pool.map(lambda call: f(*call), calls)), [sweep(*call) for call in calls], rtol=1e-12)


def test_positions():
    leaves = [np.array(2.0), np.zeros((3, 4)), np.array(4), np.zeros(3), np.array([3, 3])]
    assert fit.numbers(leaves) == [(3, True), (4, True), (4, False), (3, True), (2, True)]
    pairs = fit.compared([0, 1, 2, 3], leaves)
    assert fit.same(pairs) == ((2, 1), (3, 0))
    # Integers are not compared with each other.
    assert fit.compared([0, 1], [np.array(4), np.array(4)]) == ()
