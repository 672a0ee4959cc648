"""Negative indices that are data: they count from the end, as NumPy's do."""

import numpy as np
import pytest

import chainrule as cr
from support import check

RNG = np.random.default_rng(11)
V, M = RNG.normal(size=12), RNG.normal(size=(12, 3))
AT = np.array([-1, 0, -12, 3])


def written_out(v):
    return v[[-1, 0]] ** 2


def around_a_ring(v):
    return (v[np.arange(12) - 1] - v) ** 2


def columns(m):
    return np.take(m, [-1, 0], 1) ** 3, m[:, np.array([-2, 1])]


def given(v, at):
    return v[at] ** 2


def of_the_module(v):
    return np.sum(v[AT] ** 2)


def written(v):
    y = v * 2
    y[np.array([-1])] += 1
    y[[-3, 2]] = v[0]
    y[np.arange(4) - 1] = v[4:8]
    return y


def in_a_loop(v, at):
    total = 0.0
    y = v * 1
    for i in at:
        total += v[i] ** 2
        y[i] = v[i - 1] * total
    return total, y


def added(v, at):
    y = np.zeros(12)
    np.add.at(y, at, v[:3] ** 2)
    return y


def pairs(m, i, j):
    return m[i, j] ** 2, m[i]


THREE, COLUMNS = np.array([-2, 5, -1]), np.array([0, -1, -3])


@pytest.mark.parametrize("f, args", [
    (written_out, (V,)), (around_a_ring, (V,)), (columns, (M,)), (given, (V, THREE)), (of_the_module, (V,)), (written, (V,)),
    (in_a_loop, (V, THREE)), (added, (V, THREE)), (pairs, (M, THREE, COLUMNS)),
], ids=lambda value: getattr(value, "__name__", ""))
def test_they_count_from_the_end(f, args):
    check(f, args)


def test_one_that_comes_later():
    f, g = cr.function(given), cr.gradient(lambda v, at: np.sum(given(v, at)))
    for at in ([1, 2, 3], [1, 2, 3], [-1, -2, 3], [1, 2, 3], [-12, 11, 0]):
        at = np.array(at)
        np.testing.assert_allclose(f(V, at), given(V, at), rtol=1e-14)
        want = np.zeros(12)
        np.add.at(want, at, 2 * V[at])
        np.testing.assert_allclose(g(V, at), want, rtol=1e-14)


def writes_before_the_start(v):
    y = v * 2
    y[[-13]] = 1.0
    return y


def writes_behind_the_end(v):
    y = v * 2
    y[np.arange(12) + 1] = v
    return y


@pytest.mark.parametrize("f, args", [
    (given, (V, np.array([-13, 0]))), (given, (V, np.array([12, -1]))), (writes_before_the_start, (V,)), (writes_behind_the_end, (V,)),
], ids=["before", "behind", "written before", "written behind"])
def test_those_outside_fail(f, args):
    function = cr.function(f)
    for _ in range(2):
        with pytest.raises(cr.Error, match="lies outside of"):
            function(*args)
    with pytest.raises(cr.Error, match="lies outside of"):
        cr.gradient(lambda *given: np.sum(f(*given)), argnums=0)(*args) if f is not given else cr.jacobian(f)(*args)


def square(m, at):
    return np.sum((m @ m)[at] ** 2)


def test_they_are_saved(tmp_path):
    f, at = cr.function(square), np.array([-1, 0, -12])
    for size in (12, 20):
        m = RNG.normal(size=(size, size))
        want = f(m, at)
        assert want == pytest.approx(square(m, at), rel=1e-12)
        f.save(tmp_path / "f")
        g = cr.load(tmp_path / "f")
        for _ in range(2):
            assert g(m, at) == want
            with pytest.raises(cr.Error):
                g(m[:, 1:], at)


def up_to(v, at):
    return np.sum(v[:at[0]] ** 2)


def from_on(v, at):
    return np.sum(v[at[0]:] ** 2)


def backwards(v, at):
    return np.sum(v[at[0]::-1] ** 2) + np.sum(v[:at[0]:-1]) + np.sum(v[at[0]:at[1]:-1] ** 3)


def of_rows(v, at):
    total = 0.0
    for k in range(len(at) - 1):
        total += np.sum(v[at[k]:at[k + 1]] ** 2) * (k + 1)
    return total


def set_up_to(v, at):
    y = v * 2
    y[1:at[0]] = v[3]
    y[at[1]:] *= 3.0
    y[1:at[0]:-1] = v[2]
    y[at[0]:0:-1] += 0.25
    return np.sum(y ** 2)


def written_windows(v, at):
    y = v * 2
    y[at[0]:at[0] + 2] = 0.5
    for k in at:
        y[k:k + 3] *= 2.0
    return np.sum(y ** 2)


def assembled(v, at):
    y = np.zeros(12)
    for k in at:
        y[3 * k:3 * k + 3] += v[3 * k:3 * k + 3] ** 2 + v[k]
    return np.sum(y ** 2)


def added_to_a_slice(v, at):
    y = np.zeros(12)
    y[at[0]:at[1]] += v[at[0]:at[1]] ** 2
    return np.sum(y * v)


def joined(v, at):
    return np.sum(np.concatenate([v[:at[0]], v[at[1]:at[0]], v[1:2] * 2]) ** 2)


def lengths(v, at):
    return np.sum(v) * (len(v[at[0]:at[1]]) + 2 * len(v[:at[0]]) + 3 * v[at[0]:].shape[0] + 5 * len(v[4:at[1]]))


def slices_of_slices(v, at):
    return np.sum(v[at[0]:][:at[1]] ** 2) + np.sum(v[at[0]:at[1]][::-1] ** 3) + np.sum(v[:at[0]])


@pytest.mark.parametrize("f", [up_to, from_on, backwards, of_rows, set_up_to, added_to_a_slice, joined, lengths, slices_of_slices])
def test_bounds_of_slices_that_are_data(f):
    """A negative upper end gave an empty slice; written slices, lengths and joined ones took bounds as they were."""
    fixed = [[4, 9], [0, 3, -2, 4], [-3, -1], [20, 30], [-20, 5], [5, -7, 30], [-1, -2], [-20, -13], [12, 12], [-1, -1]]
    for at in [*fixed, *np.random.default_rng(3).integers(-11, 16, (6, 2)).tolist()]:
        check(f, (V, np.array(at)))


def test_windows_at_places_that_are_data():
    for at in ([4, 9], [0, 3, 9], [11, 10], [-3, -1], [2, -12]):
        check(written_windows, (V, np.array(at)))
    for at in ([0, 3, 1, 3, 2], [0, 5]):
        check(assembled, (V, np.array(at)))


@pytest.mark.parametrize("f", [
    lambda v, k: np.sum(v[:(k - 7) // 2] ** 2),
    lambda v, k: np.sum(v[(k - 7) // 2:] ** 2),
    lambda v, k: np.sum(v[:(k - 7) * (k - 6)] ** 2),
    lambda v, k: np.sum(v[:(k - 8) % 3 - 1] ** 2),
    lambda v, k: np.sum(v[1:min(k, 3) - 5] ** 2),
    lambda v, k: np.sum(v[:int(np.floor(v[1])) - k] ** 2),
    lambda v, k: np.sum(v[len(v) // 2 * 2 - 3:k - 4:-2] ** 2),
    lambda v, k: sum(v[j] for j in range(0, k - 5, 2)) + max((k - 4) // 2, -1) * np.sum(v[:(k - 4) // 2] ** 2),
], ids=["quotient", "start", "product", "remainder", "minimum", "data", "backwards", "steps"])
def test_computed_bounds(f):
    for k in (0, 1, 3, 5, 8, 10, -3):
        check(f, (V, k))
