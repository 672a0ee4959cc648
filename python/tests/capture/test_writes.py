"""Writes to arrays: seen by all their names, by callers and by the caller of the compiled function."""

import numpy as np
import pytest
from support import differences, leaves, same

import chainrule as cr

rng = np.random.default_rng(11)
V, M = rng.normal(size=6), rng.normal(size=(4, 5))


def add_one(a, k=0):
    a[k] += 1.0


def by_name(v):
    a = v * 2
    b, t = a, (a, 3.0)
    a[0] = 7.0
    b[1] += v[2]
    return a, b, t


def by_helper(v):
    a = v.copy()
    add_one(a)
    for i in range(1, 4):
        add_one(a, i)
        a[i] *= a[i - 1]
    return a


def by_helper_in_a_tuple(v):
    t = (v.copy(), v * 3)
    for i in range(len(v)):
        add_one(t[0], i)
        add_one(t[1], i)
    return t[0] * t[1]


def by_inner_function(v):
    a = np.zeros_like(v)

    def put(i):
        a[i] = v[i] ** 2

    for i in range(len(v)):
        put(i)
    return a


def on_one_side(v):
    a = v.copy()
    b = a
    if v[0] > 0:
        add_one(a)
    else:
        a[1] = v[0]
    return b * a


def in_a_choice(v):
    a = v.copy()
    x = bump(a) if v[0] > 0 else bump(a) * 2
    return x + a.sum()


def bump(a):
    a[2] = a[2] * 3
    return a[2]


def in_place(v):
    v[1:-1] = v[:-2] + v[2:]
    v += 1
    v[::2] *= 2


def in_place_and_returned(m, v):
    m[0] = v[:5]
    v *= m[1, 0]
    return m.sum(), v


def through_a_loop(m, v, n):
    for _ in range(n):
        in_place(v)
        m[1:, 1:] -= 0.1 * m[:-1, :-1]
        v[0] += m[3, 3]


def other_name(v):
    w = v
    v = v * 2
    w[0] = v[1]
    return v


def ping_pong(u, n):
    u, v = u.copy(), np.zeros_like(u)
    for _ in range(n):
        v[1:-1] = u[:-2] + u[2:]
        u, v = v, u
    return u, v


def rebound_to_a_part(v, n):
    c = v * 2
    b = c
    a = v.copy()
    for _ in range(n):
        c = b[::-1]
        a[:2] = 1.5
    return a, b, c


def first_above(v, bound):
    for i in range(len(v)):
        for j in range(i):
            if v[i] * v[j] > bound:
                return v[i] * v[j], i
        if v[i] < -2:
            return v[i], -1
    return v[0] * 2, len(v)


def root(a):
    x = a
    while True:
        y = 0.5 * (x + a / x)
        if abs(y - x) < 1e-13:
            return y
        x = y


def part(v):
    for x in v:
        if x > 0.5:
            w = v * x
            return w[1:]
        if x > 0.4:
            continue
    return v[1:]


PROGRAMS = [
    (by_name, V), (by_helper, V), (by_helper_in_a_tuple, V), (by_inner_function, V), (on_one_side, V), (on_one_side, -V),
    (in_a_choice, V), (in_a_choice, -V), (in_place, V), (in_place_and_returned, M, V), (through_a_loop, M, V, 0),
    (through_a_loop, M, V, 3), (other_name, V), (ping_pong, V, 3), (rebound_to_a_part, V, 0), (rebound_to_a_part, V, 1), (rebound_to_a_part, V, 2), (first_above, V, 0.1), (first_above, V, 50.0),
    (first_above, V - 3, 50.0), (part, V), (part, V * 0), (root, 2.0),
]


def copies(args):
    return [a.copy() if isinstance(a, np.ndarray) else a for a in args]


def effects(f, args):
    """The results and what the arguments become."""
    args = copies(args)
    result = f(*args)
    return [*([] if result is None else leaves(result)), *(a for a in args if isinstance(a, np.ndarray))]


@pytest.mark.parametrize("f, args", [(f, args) for f, *args in PROGRAMS], ids=[f"{k}-{p[0].__name__}" for k, p in enumerate(PROGRAMS)])
def test_writes_are_those_of_numpy(f, args):
    compiled = cr.function(f)
    same(effects(compiled, args), effects(f, args))

    def weighted(*given):
        made = [a.copy() if np.ndim(a) else a for a in given]
        result = f(*made)
        return result, made

    total = lambda *given: [leaf for leaf in effects(f, given) if np.asarray(leaf).dtype.kind == "f"]
    wrapped = {1: lambda a: weighted(a), 2: lambda a, b: weighted(a, b), 3: lambda a, b, c: weighted(a, b, c)}[len(args)]
    if f(*copies(args)) is None:
        wrapped = {1: lambda a: weighted(a)[1], 2: lambda a, b: weighted(a, b)[1], 3: lambda a, b, c: weighted(a, b, c)[1]}[len(args)]
    for k, arg in enumerate(args):
        if not isinstance(arg, (float, np.ndarray)):
            continue
        blocks = [block for block in leaves(cr.jacobian(wrapped, argnums=k)(*args)) if block is not None]
        floats = total(*args)
        sums = sum(np.tensordot(np.cos(np.arange(np.size(x)).reshape(np.shape(x)) + j), block, axes=np.ndim(x))
                   for j, (x, block) in enumerate(zip(floats, blocks)))
        np.testing.assert_allclose(sums, differences(total, args, k), rtol=1e-7, atol=1e-7)


def test_arguments_that_are_written_have_to_be_arrays_of_their_own():
    f = cr.function(in_place_and_returned)
    frozen = V.copy()
    frozen.flags.writeable = False
    with pytest.raises(cr.TypeError_, match="read-only"):
        f(M.copy(), frozen)
    with pytest.raises(cr.TypeError_, match="is a list"):
        f(M.copy(), list(V))
    both = rng.normal(size=(5, 5))
    with pytest.raises(cr.TypeError_, match="shares memory"):
        cr.function(in_place_and_returned)(both, both[2])
    column = np.asfortranarray(rng.normal(size=(6, 3)))[:, 1]
    want = column.copy()
    in_place(want)
    cr.function(in_place)(column)
    same(column, want)


def test_derivatives_leave_arguments_as_they_are():
    v = V.copy()
    jac = cr.jacobian(in_place)(v)
    assert np.array_equal(v, V) and jac.shape == (6, 6) and jac[1, 0] == 1 and jac[1, 1] == 0
