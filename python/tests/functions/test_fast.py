"""Calls that take the fast way give what the general way gives, whatever changes between them."""

import gc
import sys
import threading
import warnings
import weakref

import numpy as np
import pytest

import chainrule as cr

SCALE = 2.0
TABLE = [1.0, 2.0]


def f(x, k=1.0, pair=(1.0, 2), mode="sum"):
    total = np.sum(x) if mode == "sum" else np.max(x)
    return k * total * pair[0] + pair[1], x * k


def both(function, *args, **kwargs):
    """The result of a call, which is that of the general way."""
    got, want = function(*args, **kwargs), function._general(args, kwargs)
    flat = lambda v: [leaf for part in v for leaf in flat(part)] if isinstance(v, (tuple, list)) else [v]
    assert type(got) is type(want) and len(flat(got)) == len(flat(want))
    for g, w in zip(flat(got), flat(want)):
        assert type(g) is type(w)
        np.testing.assert_array_equal(g, w)
    return got


X = np.arange(6.0)


@pytest.mark.parametrize("args, kwargs", [
    ((X,), {}), ((X, 2.0), {}), ((X,), {"k": 3.0}), ((), {"x": X, "k": 3.0}), ((X, 2), {}), ((X, np.float64(2.0)), {}),
    ((X, np.array(2.0)), {}), ((X, 1.0, (2.0, 3)), {}), ((X, 1.0, (2, 3)), {}), ((X,), {"mode": "max"}), ((X, 1.0, (X[:2], 3)), {}),
    ((X[:1],), {}), ((X[::2],), {}), ((X[::-1],), {}), ((X.reshape(2, 3),), {}), ((np.asfortranarray(X.reshape(2, 3)),), {}),
    ((X.astype(np.float32),), {}), ((X.astype(np.int64),), {}), ((X.astype(">f8"),), {}), ((X > 2,), {}), (([1.0, 2.0],), {}),
    ((np.zeros((3, 0)).sum(axis=0),), {"mode": "sum"}), ((X, True), {}), ((X, np.int64(3)), {}),
])
def test_calls_between_others(args, kwargs):
    function = cr.function(f)
    for _ in range(2):
        both(function, *args, **kwargs)
        both(function, X)
        both(function, X[:4], k=0.5)


def test_integers_decide_sizes():
    @cr.function
    def powers(n, x):
        return x ** np.arange(n)

    for n in (3, 3, 5, 0, 3):
        assert both(powers, n, 2.0).tolist() == [2.0 ** k for k in range(n)]
    assert powers.compilations == 1
    assert both(powers, -1, 2.0).tolist() == []
    with pytest.raises(cr.TypeError_):
        powers(2**63, 2.0)
    assert both(powers, 2, 2.0).tolist() == [1.0, 2.0]


def test_shapes_that_do_not_agree_fail_each_time():
    g = cr.function(lambda x, y: x + y)
    for _ in range(2):
        assert g(X, X).tolist() == (X + X).tolist()
        with pytest.raises(cr.ShapeError):
            g(X, X[:4])
        with pytest.raises(TypeError):
            g(X)
        with pytest.raises(TypeError):
            g(X, X, X)
        with pytest.raises(TypeError):
            g(X, X, y=X)
        with pytest.raises(TypeError):
            g(X, X, z=X)


def test_out():
    g = cr.value_and_gradient(lambda x: np.sum(x ** 2))
    value, slope = np.empty(()), np.empty(6)
    for _ in range(2):
        out = (value, slope)
        assert g(X, out=out) is out
        assert value == 55.0 and slope.tolist() == (2 * X).tolist()
        assert g(X, out=[value, slope])[1] is slope
        assert both(g, X)[0] == 55.0
        frozen = np.empty(6)
        frozen.flags.writeable = False
        x = X.copy()
        for wrong, error in [((value, x), TypeError), ((value, x[:5]), ValueError), ((value,), ValueError), ((value, frozen), TypeError),
                             ((value, np.empty(6, np.float32)), TypeError), ((value, np.empty(12)[::2]), TypeError), ((value, None), TypeError),
                             ((np.empty(1), slope), ValueError), ((slope[:1].reshape(()), slope), TypeError)]:
            with pytest.raises(cr.Error) as raised:
                g(x, out=wrong)
            assert isinstance(raised.value, error)
    named = cr.function(lambda x, out: x + out)
    assert named(1.0, 2.0) == named(1.0, out=2.0) == named(1.0, out=2.0) == 3.0


def test_what_changes_around_a_function(monkeypatch):
    g = cr.function(lambda x: np.sum(x) * SCALE + TABLE[0] + len(TABLE))
    module = sys.modules[__name__]
    assert g(X) == g(X) == 33.0
    monkeypatch.setattr(module, "SCALE", 3.0)
    assert g(X) == g(X) == 48.0
    monkeypatch.setattr(module, "TABLE", [1.0, 2.0])
    assert g(X) == g(X) == 48.0
    TABLE[0] = 5.0
    assert g(X) == g(X) == 52.0
    monkeypatch.setattr(module, "TABLE", [0.0])
    assert g(X) == g(X) == 46.0
    table = np.ones(3)
    h = cr.function(lambda x: x * table)
    assert h(2.0).tolist() == h(2.0).tolist() == [2.0] * 3
    table[:] = 5.0
    assert h(2.0).tolist() == [10.0] * 3
    table = np.ones(2)
    assert h(2.0).tolist() == [2.0] * 2


def counted(python):
    """The function, and its calls that took the general way."""
    calls = []

    class Counted(cr.Function):
        def _general(self, args, kwargs):
            calls.append(args)
            return super()._general(args, kwargs)

    return Counted(python), calls


def halves(x, n):
    return np.sum((x[1::2] - x[::2]) ** 2) * n


def test_sizes_that_are_known():
    g, calls = counted(halves)
    arrays = {n: np.random.default_rng(n).normal(size=n) for n in (12, 20, 40)}
    for _ in range(3):
        for n, x in arrays.items():
            for k in (2, 3):
                assert g(x, k) == pytest.approx(halves(x, k), rel=1e-13)
    n_known = len(calls)
    for _ in range(3):
        assert g(arrays[40], 3) == pytest.approx(halves(arrays[40], 3), rel=1e-13)
    assert len(calls) == n_known
    for wrong in (np.ones(13), np.ones(41)):
        with pytest.raises(cr.Error, match="agree"):
            g(wrong, 3)


def test_truth_values_are_read_without_a_copy_in_python():
    def masked(x, keep):
        return np.sum(np.where(keep, np.exp(x), x)), x * keep, x > 0.5, np.any(keep)

    g, calls = counted(masked)
    rng = np.random.default_rng(1)
    for n in (9, 2000, 20000):
        x, keep = rng.random(n), rng.random(n) < 0.3
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for _ in range(2):
                got = both(g, x, keep)
                assert got[0] == pytest.approx(masked(x, keep)[0], rel=1e-13) and np.array_equal(got[1], x * keep)
                assert got[2].dtype == bool and type(got[3]) is np.bool_
                keep[::2] = ~keep[::2]
    # A view of other bytes: all but 0 are true.
    odd = np.arange(9, dtype=np.uint8).view(np.bool_)
    assert g(np.ones(9), odd)[1].tolist() == [0.0] + [1.0] * 8
    n_general = len(calls)
    for _ in range(3):
        g(x, keep)
    assert len(calls) == n_general
    table = rng.random((40, 30)) < 0.5
    weights = cr.gradient(lambda w, m: np.sum(np.exp(w) * m))
    for m in (table, table.T, table[::-1], table.T.copy()):
        w = rng.random(m.shape)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore" if m.base is not None else "error")
            np.testing.assert_allclose(weights(w, m), np.exp(w) * m, rtol=1e-13)


def test_equal_numbers_are_the_same(monkeypatch):
    g, calls = counted(lambda x: x * SCALE)
    module = sys.modules[__name__]
    for value in (2.0, float("2.0"), float("2"), 2.0):
        monkeypatch.setattr(module, "SCALE", value)
        for _ in range(3):
            assert g(1.5) == 3.0
    assert g.compilations == 1 and len(calls) <= 4


def test_methods_read_their_object():
    class Model:
        def __init__(self, k):
            self.k = k

        @cr.function
        def energy(self, x):
            return self.k * x

    a, b = Model(2.0), Model(3.0)
    for _ in range(3):
        assert (a.energy(1.0), b.energy(1.0)) == (2.0, 3.0)
    a.k = 7.0
    assert (a.energy(1.0), a.energy(1.0), b.energy(1.0)) == (7.0, 7.0, 3.0)


def test_directions_and_weights():
    g = lambda x, y: np.sum(x ** 2) * y
    for derivative, extra in [(cr.jvp(g), (X,)), (cr.hvp(g, argnums=(0, 1)), (X, 1.0)), (cr.vjp(g), (2.0,)), (cr.vjp(g), (2,)),
                              (cr.jvp(g, argnums=1), (3,))]:
        for _ in range(2):
            both(derivative, X, 2.0, *extra)
            both(derivative, X[:3], 2.0, *[X[:3] if isinstance(e, np.ndarray) else e for e in extra])
            with pytest.raises(TypeError):
                derivative(X, 2.0)
    for _ in range(2):
        with pytest.raises(cr.ShapeError, match="direction"):
            cr.jvp(g)(X, 2.0, X[:3])


def test_failures_come_again():
    g = cr.function(lambda x, at: x[at[0]])
    for _ in range(3):
        assert g(X, np.array([2])) == 2.0
        with pytest.raises(cr.Error, match="index"):
            g(X, np.array([9]))


def test_calls_that_write_to_arguments():
    def relax(a, b, k):
        a[1:] = a[:-1] * k + b[1:]
        b[0] = a[-1]
        return np.sum(a)

    def only_writes(a, b, k):
        a[:] = a * k + b

    for plain in (relax, only_writes):
        f = cr.function(plain)
        for n in (5, 5, 5, 7, 5, 1, 5):
            given, expected = [[rng.normal(size=n), rng.normal(size=n), 1.5] for rng in (np.random.default_rng(n), np.random.default_rng(n))]
            got, want = f(*given), plain(*expected)
            assert (got is None) == (want is None) and (want is None or got == pytest.approx(want, rel=1e-13))
            assert all(np.allclose(a, b, rtol=1e-13) for a, b in zip(given, expected))
        # After calls that were right, too, mistakes are found, and nothing is written.
        a, b = np.arange(5.0), np.ones(5)
        a.flags.writeable = False
        for args, why in [((b, b, 1.0), "shares memory"), ((a, b, 1.0), "read-only")]:
            before = [np.copy(arg) for arg in args]
            with pytest.raises(cr.Error, match=why):
                f(*args)
            assert all(np.array_equal(x, y) for x, y in zip(before, args))
        whole = np.arange(9.0)
        with pytest.raises(cr.Error, match="shares memory"):
            f(whole[:5], whole[4:], 1.0)
        assert np.array_equal(whole, np.arange(9.0))
        c = np.arange(5.0)
        f(c[::1], b, 2.0)
        assert not np.array_equal(c, np.arange(5.0))


def test_threads_take_turns():
    @cr.function
    def slow(x, n):
        for _ in range(n):
            x = np.cos(x)
        return x

    want = {k: slow(X + k, 2000) for k in range(8)}
    got, errors = {}, []

    def work(k):
        try:
            for _ in range(30):
                got[k] = slow(X + k, 2000)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors
    for k in range(8):
        np.testing.assert_array_equal(got[k], want[k])


def test_functions_are_freed():
    class Token:
        pass

    def make():
        token, weight = Token(), np.ones(3)

        @cr.function
        def g(x):
            return np.sum(x * weight)

        g.token = token
        weight_of_g = g
        assert g(np.ones(3)) == g(np.ones(3)) == 3.0
        assert weight_of_g is g
        return weakref.ref(token)

    alive = [make() for _ in range(3)]
    gc.collect()
    assert [ref() for ref in alive] == [None] * 3
