"""What Python and NumPy mean, with them as judges: slices, broadcasting, integers, records, closures, comprehensions."""

import dataclasses
import math
from typing import NamedTuple

import numpy as np
import pytest
from support import check, same

import chainrule as cr

rng = np.random.default_rng(12)
V, U = rng.normal(size=6), rng.normal(size=4)
M = rng.normal(size=(5, 4))
K = np.array([3, -2, 0, 7, -5])


class Pair(NamedTuple):
    first: float
    second: float = 2.0

    def total(self):
        return self.first + self.second


@dataclasses.dataclass
class Body:
    position: np.ndarray
    velocity: np.ndarray
    mass: float = 2.0

    @property
    def energy(self):
        return 0.5 * self.mass * np.sum(self.velocity ** 2)

    def moved(self, dt):
        return dataclasses.replace(self, position=self.position + dt * self.velocity)


def windows(v):
    s = 0.0
    for i in range(len(v)):
        w = v[max(0, i - 2):min(len(v), i + 3)]
        s += np.sum(w) * w.mean() + v[i:i + 3].sum() + v[i + 4:].sum() * i + v[i - 1]
    return s


def edges(m):
    out = np.zeros(m.shape)
    for i in range(m.shape[0]):
        for j in range(m.shape[1]):
            out[i, j] = m[i - 1, j] + m[i, j - 1] - np.sum(m[i:i + 2, j:j + 2])
    return out


def unequal_zip(v, u):
    s = 0.0
    for a, b in zip(v, u):
        s += a * b
    for i, (a, b, c) in enumerate(zip(u, v[1:], range(3))):
        s += a * b * c * i
    return s, sum(a * b for a, b in zip(v, u)), sum(x for x, _ in zip(v, (1, 2)))


def integers(k):
    return k // 3, k % 3, k // -3, k % -3, -k, abs(k), k * k, k ** 2, k / 4, np.sign(k), k > 0, (k // 2) * 1.5


def whole_numbers(n, x):
    return n // 4, n % 4, -n // 4, -n % 4, n // -4, divmod(n, 4), n ** 3, x // 0.3, x % 0.3, -x // 0.3, -x % 0.3, x // -0.3, x % -0.3


def dicts(v):
    p = {"w": v[:3], "b": v[3], 7: 2.0}
    q = {**{}} if False else p
    p["b"] = p["b"] * 2
    total = 0.0
    for name in p:
        total += np.sum(p[name])
    for name, value in p.items():
        if name != "w":
            total += value * 3
    return total * q["b"] + p.get("c", 1.0) + len(p) + ("w" in p) + sum(np.sum(x) for x in p.values())


def records(v):
    p = Pair(v[0])
    q = Pair(first=v[1], second=v[2])
    a, b = q
    body = Body(v[:2], v[2:4])
    for _ in range(3):
        body = body.moved(0.1)
        p = p._replace(second=p.first * 0.5)
    body.mass = 3.0
    return p.total() * q[1] + a * b + body.energy + body.position.sum() + (p if v[0] > 0 else q).first


def simulate(v, n):
    state = {"x": v[0], "v": 1.0}
    for _ in range(n):
        state = {"x": state["x"] + 0.1 * state["v"], "v": state["v"] - 0.1 * state["x"]}
    body = Body(v[:2].copy(), v[2:4])
    for i in range(n):
        body.position = body.position + 0.1 * body.velocity
        body.position[0] += i
    return state["x"] * state["v"], body.position


def moving(v, n):
    x, y = v.copy(), v * 2
    pair = (x, y)
    for i in range(n):
        pair[0][i] += 1.0
        pair = (pair[1] * 1.0, pair[0])
    return x.sum(), pair[0], pair[1]


def writing_items(v, n):
    pair = [v.copy(), v * 2]
    x = pair[0]
    for i in range(n):
        pair[0][i] += x[i + 1]
    return x, pair[0] * pair[1]


def closures(v):
    scale = v[0]

    def outer(k):
        def inner(x, *rest, by=scale):
            return x * by + k + sum(rest)
        return inner

    f, g = outer(1.0), outer(v[1])
    h = lambda x, y=2.0, *, z=1.0: f(x) * y + z
    return h(v[2]) + h(v[3], z=g(v[4], 1.0, v[5])) + (lambda: f(g(v[0])))()


def comprehensions(m):
    rows = [np.sum(row * row) for row in m]
    table = [[m[i, j] * i for j in range(4)] for i in range(m.shape[0])]
    squares = np.array([x * x for x in m[0]])
    nested = sum(m[i, j] for i in range(3) for j in range(i) if m[i, j] > 0)
    pairs = [(a, b) for a in (1.0, 2.0) for b in (m[0, 0], m[1, 1])]
    return np.array(rows), np.array(table), squares, nested, pairs[2][0] * pairs[3][1], max(x for x in m[1]), sum(a * b for a, b in pairs)


def sums_of_parts(m):
    # The bounds of a part are known to lie inside by the ends of both loops.
    moved = sum(m[i, j] * m[i:i + 2, j:j + 2] for i in range(2) for j in range(2))
    added = sum(sum(m[i + j:i + j + 1] for i in range(2)) for j in range(2))
    return moved, added, sum(np.sum(m[:i + 1]) for i in range(3))


def conditions(v):
    s = 0.0
    for x in v:
        if x > 0 and math.sqrt(x) > 0.5 or not x < -1:
            s += x
        elif -2 < x <= -1:
            s -= x * x
            continue
        else:
            s *= 0.5
        s = s + 1 if s < 3 else s - 1
    return s


def swaps(v):
    a, (b, c) = v[0], (v[1], v[2])
    a, b, c = c, a, b
    a += b
    (d, *_), e = ((v[3], 1), v[4]) if False else ((v[3], 1), v[4])
    return a, b, c, d * e


def reductions(m):
    e = m[:0]
    return np.sum(e), e.sum(axis=0), np.prod(e), e.shape[0], np.cumsum(e), (e @ m.T).sum(), np.sum(m[:, :0], axis=1)


def scatters(v, k):
    a = np.zeros(8)
    np.add.at(a, k, v[:5])
    b = np.zeros((4, 8))
    b[1, k] = v[:5] * 2
    b[:, k[1]] += v[0]
    np.subtract.at(b, (2, k), 1.5)
    c = np.ones(8)
    c[k] += v[:5]
    c[[0, 5]] = v[1]
    np.maximum.at(c, k, v[1:6])
    return a, b, c


def masks(v, m):
    a = v.copy()
    a[a > 0.5] = 0.5
    a[a < 0] *= 2
    low = a < 0.1
    a[low] = np.exp(a[low]) + v[low]
    b = m.copy()
    b[m > 0] = 1.0 / b[m > 0]
    b[~(m > 0)] = 0
    return a, b, v[v > 0].sum(), np.log(m[m > 0]).mean()


def fills(v, m):
    a = np.empty_like(m)
    a.fill(v[0])
    a[1::2, ::-1] = m[1::2]
    a[::2, 1:3] -= v[:2]
    a[-1] += v[:4][::-1]
    np.fill_diagonal(a, 7.0)
    a[None, 0, None, :2] = v[2]
    return a


def singles(m, v):
    return m[0:1] + m, m[:, 1:2] * m, v[:1] * v, v[5:] + v, m[4:, :] - m


PROGRAMS = [
    (windows, V), (windows, V[:2]), (edges, M), (unequal_zip, V, U), (unequal_zip, U, V), (integers, K), (whole_numbers, 7, 1.1),
    (whole_numbers, -9, -0.7), (dicts, V), (records, V), (records, -V), (simulate, V, 3), (writing_items, V, 3), (closures, V), (comprehensions, M), (sums_of_parts, M), (conditions, V), (swaps, V),
    (reductions, M), (scatters, V, np.array([1, 3, 1, 7, 3])), (masks, V, M), (fills, V, M), (singles, M, V),
]


@pytest.mark.parametrize("f, args", [(f, args) for f, *args in PROGRAMS], ids=[f"{k}-{p[0].__name__}" for k, p in enumerate(PROGRAMS)])
def test_programs_mean_what_they_mean_in_python(f, args):
    check(f, args)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 9])
def test_slices_are_cut_off_as_numpy_does(n):
    x = np.arange(float(n))
    f = cr.function(lambda x: (x[2:], x[:5], x[-4:], x[:-2], x[1:-1], x[::2], x[::-1], x[-2:0:-1], x[5:2], x[3:1:-1], x[-100:100], x[1:7:3], x[8::-3]))
    same(f(x), f.__wrapped_python__(x))


@pytest.mark.parametrize("k", [-9, -3, -1, 0, 1, 4, 6, 20])
def test_bounds_that_are_arguments_are_cut_off(k):
    f = cr.function(lambda x, k: (x[k:], x[:k], np.sum(x[k:5]), x[k::2], x[:k:-1]))
    same(f(V, k), f.__wrapped_python__(V, k))


@pytest.mark.parametrize("shapes", [((4, 2), (4, 5)), ((4, 4), (4, 4)), ((2, 2), (3, 3)), ((6, 3), (6, 2))])
def test_an_extent_that_becomes_one_is_broadcast(shapes):
    a, b = (rng.normal(size=shape) for shape in shapes)
    f = cr.function(lambda a, b: a[:, 1:] * b if a.shape[1] == 2 else a + b[:, 1:] if b.shape[1] == 2 else a * b[:, :1])
    if shapes[0][0] == shapes[1][0]:
        same(f(a, b), f.__wrapped_python__(a, b))
    else:
        with pytest.raises(cr.Error, match="agree"):
            f(a, b)


def test_integers_that_overflow_are_errors():
    f = cr.function(lambda n: n * n)
    assert f(3_000_000_000) == 9_000_000_000_000_000_000
    with pytest.raises(cr.Error):
        f(4_000_000_000)


NAN, INF = math.nan, math.inf
#: Numbers and NaNs, each of which is the first, one in the middle, the last.
NANS = [np.array(a, float) for a in ([NAN, 1, 2], [1, NAN, 2], [1, 2, NAN], [NAN, NAN, NAN], [-INF, INF, 3], [*range(20), NAN, *range(20)], [2, 3, 1])]


def extremes_of_numbers(a):
    return (np.max(a), a.min(), np.maximum.reduce(a), np.ptp(a), np.argmax(a), a.argmin(), np.linalg.norm(a, np.inf), np.clip(a, 1.2, 1.6),
            np.maximum(a, 1.5), np.maximum(1.5, a), np.minimum(a, a[::-1]), np.maximum(a[::-1], a), np.fmax(a, a[::-1]), np.fmin(a[::-1], a), np.fmax(1.5, a))


@pytest.mark.parametrize("a", NANS)
def test_a_nan_wins_or_loses_as_in_numpy(a):
    same(cr.function(extremes_of_numbers)(a), extremes_of_numbers(a))
    # Python's own decide by comparisons.
    same(cr.function(lambda a: (max(a), min(a)))(a), (max(a), min(a)))


def test_extremes_along_axes_have_the_nans_of_their_rows():
    f = lambda m: (np.max(m, axis=0), np.min(m, axis=1), m.max(axis=1, keepdims=True), np.argmax(m, axis=0), np.argmin(m, axis=1))
    for m in (np.array([[1.0, NAN, 3.0], [4.0, 5.0, 6.0]]), M):
        same(cr.function(f)(m), f(m))
    slope = cr.gradient(lambda v: np.max(v) * 2 + np.maximum(v, 0.5)[0])
    same(slope(np.array([1.0, 4.0, 2.0])), np.array([1.0, 2.0, 0.0]))


def test_remainders_by_nothing_and_by_infinity():
    x = np.array([5.0, -5.0, 0.0, INF, NAN])
    for y in (0.0, -0.0, INF, -INF, NAN, 3.0, -3.0):
        for f in (lambda a, b: a % b, lambda a, b: np.fmod(a, b)):
            with np.errstate(all="ignore"):
                expected = f(x, y)
                by_constant = cr.function((lambda a: a % y) if f(5.0, -3.0) < 0 else (lambda a: np.fmod(a, y)))
            same(cr.function(f)(x, y), expected)
            same(by_constant(x), expected)
    same(cr.function(lambda a: (a // INF, a // -INF))(x[:3]), (x[:3] // INF, x[:3] // -INF))


def writes_first(a):
    a = a.copy()
    a[0] = 1.0
    return a


@pytest.mark.parametrize("shape, f", [
    ((3, 0), lambda m: np.argmax(m, axis=1)), ((0, 3), lambda m: np.argmin(m, axis=0)), ((0, 0), lambda m: np.argmax(m, axis=1)), ((0,), lambda m: np.argmax(m)),
    ((3, 0), lambda m: np.max(m, axis=1)), ((0, 0), lambda m: m.min(axis=1)), ((0,), lambda m: np.max(m)), ((0,), writes_first),
    ((0, 2), writes_first), ((0,), lambda m: m[0]),
])
def test_arrays_without_elements_have_no_first_one(shape, f):
    with pytest.raises((ValueError, IndexError)):
        f(np.zeros(shape))
    with pytest.raises(cr.Error):
        cr.function(f)(np.zeros(shape))


def pairs(x, y):
    return np.array([a * b + i for i, a in enumerate(x) for b in y])


def triples(x, y):
    return np.array([x[i] * y[j] + k for i in range(len(x)) for j in range(len(y)) for k in range(3)])


def repeated_beside_tiled(x, y):
    return np.repeat(x, len(y)) * np.tile(y, len(x)) + np.repeat(x, 5 * len(y))[::5]


def reshaped(x, y):
    rows = np.outer(x, y).ravel().reshape(len(y), len(x))
    return np.sin(rows * np.kron(x, y).reshape(rows.shape))


@pytest.mark.parametrize("f", [pairs, triples, repeated_beside_tiled, reshaped])
def test_rows_and_columns_by_one_index(f):
    compiled = cr.function(f)
    squares = lambda x, y: np.sum(f(x, y) ** 2)
    gradient = cr.gradient(lambda x, y: np.sum(f(x, y) ** 2), argnums=(0, 1))
    rng = np.random.default_rng(7)
    for n, m in ((0, 3), (3, 0), (1, 1), (1, 9), (9, 1), (2, 5), (9, 20), (17, 33)):
        x, y = rng.normal(size=n), rng.normal(size=m)
        same(compiled(x, y), f(x, y))
        by = rng.normal(size=n), rng.normal(size=m)
        h = 1e-6
        difference = (squares(x + h * by[0], y + h * by[1]) - squares(x - h * by[0], y - h * by[1])) / (2 * h)
        slope = sum(np.dot(g, d) for g, d in zip(gradient(x, y), by))
        assert abs(slope - difference) <= 1e-6 * max(1.0, abs(difference))


def test_searches_in_vectors_of_any_length():
    places = cr.function(lambda a, x: (np.searchsorted(a, x), np.searchsorted(a, x, side="right")))
    rng = np.random.default_rng(6)
    for n in (0, 1, 2, 5, 8, 9, 15, 16, 17, 33, 100, 255, 256, 257):
        a = np.sort(np.round(rng.normal(size=n), 1))
        x = np.concatenate([rng.normal(size=20), np.round(rng.normal(size=20), 1), a[:3], a[-3:], [np.inf, -np.inf]])
        same(places(a, x), (np.searchsorted(a, x), np.searchsorted(a, x, side="right")))


def test_argmax_of_rows_of_any_length():
    """The first place of the largest number, or of a NaN: in lanes, by blocks of 64, and by what they leave over."""
    places = cr.function(lambda m: (np.argmax(m, axis=1), np.argmin(m, axis=1), np.argmax(m, axis=0), np.argmin(m)))
    rng = np.random.default_rng(5)
    for n in (1, 2, 8, 9, 17, 63, 64, 65, 128, 200):
        m = rng.normal(size=(3, n))
        zeros = np.where(m > 0, 0.0, -0.0)
        with_nans, with_infinities = np.where(rng.random(m.shape) < 0.1, np.nan, m), np.where(m > 0.5, np.inf, -np.inf)
        for given in (m, np.round(m), zeros, with_nans, with_infinities, np.full(m.shape, -np.inf)):
            same(places(given), (np.argmax(given, axis=1), np.argmin(given, axis=1), np.argmax(given, axis=0), np.argmin(given)))


def test_slopes_of_extremes_of_columns():
    """They go to the first of equal numbers; columns are searched in lanes, with the value too."""
    weighted = lambda m: np.sum(np.max(m, axis=0) * np.min(m, axis=0))
    both, alone = cr.value_and_gradient(weighted), cr.gradient(weighted)
    rng = np.random.default_rng(8)
    for n, k in ((1, 1), (1, 9), (2, 8), (5, 7), (9, 9), (10, 15), (16, 3), (20, 12), (40, 33), (65, 100)):
        for m in (rng.normal(size=(n, k)), np.round(rng.normal(size=(n, k))), np.zeros((n, k)), np.where(rng.random((n, k)) < 0.3, np.inf, 1.0)):
            greatest, least, columns = np.max(m, axis=0), np.min(m, axis=0), np.arange(k)
            want = np.zeros((n, k))
            np.add.at(want, (np.argmax(m, axis=0), columns), least)
            np.add.at(want, (np.argmin(m, axis=0), columns), greatest)
            value, slopes = both(m)
            np.testing.assert_allclose(value, np.sum(greatest * least), rtol=1e-13, atol=1e-13)
            np.testing.assert_array_equal(slopes, want)
            np.testing.assert_array_equal(alone(m), want)


def test_searches_in_columns_of_a_branch_leave_other_memory_alone():
    """At sizes for which the branch is not taken, its number of columns is negative."""
    def f(m, v):
        u, p = np.zeros(len(v)), 0.0
        for i in range(len(v)):
            p = np.sin(p) * 0.5 + v[i]
            u[i] = p
        s = 0.0
        if m.shape[1] > 100:
            for j in range(m.shape[1] - 100):
                s = s + np.max(m[:, j]) ** 2
        return s + np.sum(m) * np.sum(u * u) * np.sum(u * u[::-1])

    slopes = cr.value_and_gradient(f, argnums=(0, 1))
    rng = np.random.default_rng(10)
    for n, k in ((20, 140), (20, 60), (20, 50), (20, 40), (20, 30), (20, 12), (20, 120)):
        m, v = rng.normal(size=(n, k)), rng.normal(size=50) * 0.3
        by, h = rng.normal(size=50), 1e-6
        value, (_, of_v) = slopes(m, v)
        assert value == pytest.approx(f(m, v), rel=1e-12)
        difference = (f(m, v + h * by) - f(m, v - h * by)) / (2 * h)
        assert np.dot(of_v, by) == pytest.approx(difference, rel=1e-6, abs=1e-5)


def test_a_captured_function_runs_for_arrays_with_and_without_elements():
    f = cr.function(lambda a: (a[1:], np.diff(a), np.sum(a), 2.0 if len(a) > 1 else 3.0))
    for n in (3, 0, 1, 2, 0, 4):
        a = np.arange(float(n))
        same(f(a), f.__wrapped_python__(a))
    rows = cr.function(lambda m: np.argmax(m, axis=1))
    assert rows(np.zeros((0, 3))).shape == (0,)
    same(rows(M), np.argmax(M, axis=1))


def test_classes_of_values():
    def f(x, k):
        if isinstance(x, np.ndarray) and isinstance([x], list) and isinstance((x,), tuple) and not isinstance(x, (list, float)):
            x = x * 2
        return x * 3 if isinstance(k, (int, np.generic, np.ndarray)) else x

    x = np.array([1.0, -2.0])
    np.testing.assert_array_equal(cr.function(f, strict=True)(x, 3), f(x, 3))

    def g(x):
        return x if isinstance(x, float) else -x

    with pytest.raises(cr.CaptureError, match="`isinstance` of a float is not known"):
        cr.function(g, strict=True)(0.5)


def test_arrays_as_arguments_one_by_one():
    def f(x):
        norm = lambda *parts: sum(part ** 2 for part in parts)
        return norm(*x[:3]) + max(*x)

    for n in (4, 40):
        x = np.arange(1.0, n + 1)
        assert cr.function(f, strict=True)(x) == pytest.approx(f(x), rel=1e-14)


def halves_of_a_branch(x, c):
    n = x.shape[0]
    if c > 0:
        y = x[:n // 2] * 2.0
    else:
        y = x[n // 2:2 * (n // 2)] + 1.0
    return np.sum(y ** 2)


def half_on_one_side(x, c):
    y = np.zeros(x.shape[0] // 2)
    if c > 0:
        y = x[:x.shape[0] // 2] * 2.0
    return np.sum(y ** 2)


def every_second(x, c):
    y = x[::2] if c > 0 else x[1::2] * 2.0
    return np.sum(y)


def thirds_in_a_loop(x, c):
    n = x.shape[0]
    for t in range(3):
        if c > t:
            m = (n - 1) // 3 + 1
            x = np.concatenate([x[:m], x[m:] * 0.5])
    return np.sum(x * x)


def rows_of_a_branch(x, c):
    a = x.reshape(2, -1)
    if c > 0:
        b = a[0] * 2
    else:
        b = a[1]
    return np.sum(b * x[:len(b)])


@pytest.mark.parametrize("f", [halves_of_a_branch, half_on_one_side, every_second, thirds_in_a_loop, rows_of_a_branch])
def test_sizes_that_both_sides_of_a_branch_compute(f):
    for n in (8, 12):
        for c in (0.5, -1.0, 2.5):
            check(f, (rng.normal(size=n), c))


def one_next_value(x):
    s, t = 0.5, 1.0
    for i in range(x.shape[0]):
        u = (s + x[i]) + t
        s = u
        t = u
    return s * t


def one_next_value_inside(x):
    s, t = 0.5, 1.0
    for _ in range(2):
        for j in range(x.shape[0]):
            u = s * x[j] * t
            s = u
            t = u
    return s + t


@pytest.mark.parametrize("f", [one_next_value, one_next_value_inside])
def test_two_variables_that_become_one_number(f):
    """They were added up in lanes, each by itself."""
    for n in (3, 8, 12, 17):
        check(f, (rng.uniform(0.9, 1.1, n),), tolerance=1e-6)
