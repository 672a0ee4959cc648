"""Loops whose steps are captured one by one, where they cannot be captured as one."""

import numpy as np
import pytest

import chainrule as cr
from support import check

RNG = np.random.default_rng(7)
V, M, T = RNG.normal(size=12), RNG.normal(size=(4, 4)), RNG.normal(size=(3, 4, 5))
SQUARES = [RNG.normal(size=(4, 4)) for _ in range(3)]


def axes(t):
    total = 0.0
    for axis in range(t.ndim):
        total += np.sum(np.sum(t, axis=axis) ** 2) + np.sum(np.roll(t, -1, axis=axis) * t) + np.sum(np.diff(t, axis=axis) ** 2)
    return total


def powers(v):
    total = 0.0
    for k in range(6):
        total += 2**k * np.sum(np.sin(v)) + (-1) ** k * np.sum(v**k)
    return total


def encoding(v):
    parts = []
    for k in range(4):
        parts.append(np.sin(2**k * np.pi * v))
        parts.append(np.cos(2**k * np.pi * v))
    return np.sum(np.stack(parts) ** 3)


def strides(v):
    total = 0.0
    for k in range(1, 4):
        total += np.sum(v[::k] ** 2)
    return total


def matrices(m):
    total = 0.0
    for k in range(1, 4):
        total += np.sum(np.linalg.matrix_power(m, k)) + np.sum(np.diag(m, k))
    return total


def dilated(v):
    total = 0.0
    for k in range(3):
        total += np.sum(v[1 << k:] * v[:-(1 << k)])
    return total


def shorter(v):
    for _ in range(4):
        v = 0.5 * (v[1:] + v[:-1])
    return v


def longer(v):
    for _ in range(3):
        v = np.concatenate([v, np.sin(v)])
    return v


def halved(m):
    total = 0.0
    while_there = m
    for _ in range(2):
        total += np.sum(while_there ** 2)
        while_there = while_there[::2, ::2] + while_there[1::2, 1::2]
    return total, while_there


def layers(a, b, c):
    weights, x = [a, b, c], np.ones(4)
    for i in range(len(weights)):
        x = np.tanh(x @ weights[i])
    return x


def used_behind(v):
    for k in range(15):
        s = np.sum(v) * k
        u = s * 2
    return s + u + k


def used_behind_many_steps(v):
    for k in range(1000):
        s = np.sum(v) * k * 1e-3
    return s + k


def used_behind_unknown_steps(v):
    for i in range(len(v)):
        if i % 2 == 0:
            u = v[i] * i
        else:
            u = v[i] ** 2
    return u * 2 + i


def reads_its_list(v):
    out = [v[0]]
    for k in range(1, 6):
        out.append(out[k - 1] * 0.5 + v[k])
    return out[-1] * out[2]


def two_before(v):
    out = [np.ones_like(v), v]
    for _ in range(2, 6):
        out.append(2 * v * out[-1] - out[-2])
    return np.stack(out)


def orthogonal(m):
    rows = []
    for i in range(4):
        x = m[:, i]
        for row in rows:
            x = x - (row @ x) * row
        rows.append(x / np.sqrt(x @ x))
    return np.array(rows)


def assigned_elements(v):
    out = [0.0] * 5
    other = out
    for i in range(5):
        out[i] = v[i] ** 2
    other[-1] += v[7]
    return sum(out), other[4]


def twice_in_a_step(v):
    out = []
    for x in v[:5]:
        out.append(x)
        out.append(2 * x)
    return np.array(out)


def in_a_function(v):
    def inner(v, n):
        for k in range(n):
            v = np.diff(v)
            last = np.sum(v ** 2)
        return last

    return inner(v, 2) + inner(v, 3)


def in_a_long_loop(v):
    total = 0.0
    for i in range(len(v) - 4):
        part = v[i:i + 4]
        for _ in range(3):
            part = part[1:] * part[:-1]
        total += part[0]
    return total


def other_memory(v):
    u, w, total = v * 1, v * 2, 0.0
    for _ in range(300):
        u[0] = u[0] + 1
        total += w[0]
        w = u
    x, y = v * 1, v * 2
    for _ in range(300):
        y[0] = y[0] + 1
        y = x
    p, q = v * 3, v * 4
    for _ in range(3):
        q[0] = q[0] + 1
        q = p
    return total, x.sum(), p, q


def kept_items(v):
    odd = [v[i] ** 2 for i in range(8) if i % 2]
    pairs = [v[i] * v[j] for i in range(4) for j in range(4) if i < j]
    named = [x * k for k, x in enumerate((v[0], v[1], v[2])) if k != 1]
    return sum(odd), np.array(pairs), named[1]


def in_nested_loops(v):
    out, other = [], [0.0]
    for a in range(3):
        for b in range(2):
            out.append(v[a] * b)
    for x in v[:4]:
        for b in range(2):
            other.append(x * b)
    return np.array(out) * len(out), np.array(other) * len(other)


def patches(m):
    n, k = m.shape
    known = np.stack([m[a:a + 3, b:b + 2] for a in range(2) for b in range(2)], axis=-1)
    return known, np.stack([m[a:n - 1 + a, b:k - 1 + b] for a in range(2) for b in range(2)]).reshape(4, -1)


@pytest.mark.parametrize("f, args", [
    (axes, (T,)), (powers, (V,)), (encoding, (V,)), (strides, (V,)), (matrices, (M,)), (dilated, (V,)), (shorter, (V,)), (longer, (V,)),
    (halved, (M,)), (layers, SQUARES), (used_behind, (V,)), (used_behind_many_steps, (V,)), (used_behind_unknown_steps, (V,)),
    (reads_its_list, (V,)), (two_before, (V,)), (orthogonal, (M,)), (assigned_elements, (V,)), (twice_in_a_step, (V,)),
    (in_a_function, (V,)), (in_a_long_loop, (V,)), (other_memory, (V,)), (kept_items, (V,)),
    (in_nested_loops, (V,)), (patches, (M,)),
], ids=lambda value: getattr(value, "__name__", ""))
def test_steps(f, args):
    check(f, args, rtol=1e-11)


def not_there(v):
    for k in range(3):
        v = np.diff(v) + unheard_of[k]  # noqa: F821
    return v


def too_many(v):
    for k in range(100):
        v = v[1:]
    return v


def writes_what_it_iterates(v):
    a = v * 1
    for i, x in enumerate(a[:3]):
        a = a[:-1]
        a[i + 1] += x
    return a


@pytest.mark.parametrize("f, args, line, why", [
    (not_there, (V,), 2, "name 'unheard_of' is not defined"), (too_many, (np.ones(200),), 1, "sizes do not agree"),
    (writes_what_it_iterates, (V,), 2, "written while it is iterated"),
])
def test_the_first_error_is_told(f, args, line, why):
    with pytest.raises(cr.Error, match=why) as caught:
        cr.function(f)(*args)
    assert caught.value.lineno == f.__code__.co_firstlineno + line


def statements(v):
    import math
    from math import sin as s

    import numpy.linalg as la
    with np.errstate(divide="ignore"):
        y = np.sin(v) * math.pi + s(1.0)
        if len(v) > 3:
            return la.norm(y)
    del y
    return v[0]


def test_imports_and_contexts():
    check(statements, (V,))
    check(statements, (V[:2],))

    def opens(v):
        with open("a") as file:
            return v

    def reads_deleted(v):
        x = v
        del x
        return x

    for f, why in ((opens, "`with` statement"), (reads_deleted, "`x` was deleted")):
        with pytest.raises(cr.CaptureError, match=why):
            cr.function(f)(V)
