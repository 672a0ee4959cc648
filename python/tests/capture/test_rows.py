"""Loops whose steps write separate parts of an array: no state is carried, the numbers are NumPy's."""

import numpy as np
import pytest
from support import check, same

import chainrule as cr

rng = np.random.default_rng(3)
V, A, B = rng.normal(size=6), rng.normal(size=(5, 4)), rng.normal(size=(4, 4))


def elements(v, a):
    out = np.zeros(len(v))
    for i in range(len(v)):
        out[i] = np.sin(v[i]) * v[-1]
    return out


def inner(v, a):
    out = np.ones(6)
    for i in range(1, 5):
        out[i] = v[i - 1] + v[i + 1] - 2 * v[i]
    return out


def backwards(v, a):
    out = v.copy()
    for i in range(4, 0, -1):
        out[i] *= v[i - 1]
    return out


def rows(v, a):
    out = np.zeros_like(a)
    for i, row in enumerate(a):
        out[i] = row / np.sqrt(row @ row)
        out[i, 0] += v[i]
        out[i, 1:] *= 2.0
    return out


def whole_row_of_a_number(v, a):
    out = a * 2
    for i in range(a.shape[0]):
        out[i] = v[i]
    return out


def columns(v, a):
    out = np.empty((3, 4))
    for j in range(4):
        out[:, j] = a[:3, j] * v[j]
    return out


def nested(v, a):
    out = np.zeros((5, 4))
    for i in range(5):
        for j in range(4):
            out[i, j] = a[i, j] * v[i] if i > j else v[j]
    return out


def scan_in_each_row(v, a):
    a = a.copy()
    for i in range(a.shape[0]):
        for j in range(1, a.shape[1]):
            a[i, j] += 0.5 * a[i, j - 1]
    return a


def middle_axis(v, a):
    out = np.zeros((2, 4, 3))
    for k in range(4):
        for n in range(2):
            out[n, k, :] = v[k] * a[:3, n]
    return out, out[0]


def under_a_condition(v, a):
    out = v * 0.5
    for i in range(len(v)):
        if v[i] > 0:
            out[i] = v[i] ** 2
            continue
        out[i] -= 1.0
    return out


def above_the_diagonal(v, a):
    out = np.zeros((4, 4))
    for i in range(4):
        for j in range(i + 1, 4):
            out[i, j] = v[i] * v[j]
    return out


def no_steps(v, a):
    out = v.copy()
    for i in range(4, 2):
        out[i] = 0.0
    for i in range(len(v) - 8):
        out[i] = 1.0
    return out


def in_a_loop_of_steps(v, a):
    u = v.copy()
    for _ in range(3):
        new = np.zeros(6)
        for i in range(6):
            new[i] = 0.5 * u[i] + 0.25 * u[i - 1]
        u = new
    return u


def temporaries(v, a):
    out = np.zeros(5)
    for i in range(5):
        t = a[i] * v[:4]
        s = t.sum()
        out[i] = s * s - out[i]
    return out


ALONE = [elements, inner, rows, whole_row_of_a_number, columns, nested, middle_axis, under_a_condition, temporaries]


@pytest.mark.parametrize("f", [*ALONE, above_the_diagonal, no_steps, backwards, scan_in_each_row, in_a_loop_of_steps], ids=lambda f: f.__name__)
def test_numbers_and_gradients(f):
    check(f, (V, A))


@pytest.mark.parametrize("f", ALONE, ids=lambda f: f.__name__)
def test_no_state_is_carried(f):
    text = cr.function(f).source("ft", V, A)
    assert "ifold" not in text.replace("ifold (fun v", "")
    assert "ifold (fun (v" not in text


def reads_the_row_before(v, a):
    out = v.copy()
    for i in range(1, len(v)):
        out[i] += out[i - 1]
    return out


def reads_by_another_name(v, a):
    out = v.copy()
    seen = out
    for i in range(5):
        out[i] = seen[i + 1] * 2
    return out, seen


def reads_by_a_closure(v, a):
    out = v.copy()

    def last():
        return out[0]

    for i in range(5):
        out[i] = last() + v[i]
    return out


def writes_two(v, a):
    out, other = v.copy(), np.zeros(6)
    for i in range(6):
        out[i] = v[i] * 2
        other[i] = out[i] + 1
    return out, other


def writes_in_a_call(v, a):
    out, other = v.copy(), np.zeros(6)

    for i in range(6):
        out[i] = fill(other, i, v)
    return out, other


def fill(other, i, v):
    other[i] = v[i]
    return other[0] + i


def accumulates(v, a):
    out, total = np.zeros(6), 0.0
    for i in range(6):
        total += v[i]
        out[i] = total
    return out


def part_of_each(v, a):
    a = a.copy()
    for k in range(3):
        for j in range(a.shape[1]):
            a[k, j] = a[k, j] + a[k + 1, j]
    return a


def index_is_changed(v, a):
    out = v.copy()
    for i in range(3):
        i = i + 1
        out[i] = v[i - 1]
    return out


def array_of_indices_beside(v, a):
    a = a.copy()
    k = np.array([1, 0])
    for i in range(2):
        a[k, i] = v[i]
    return a


OTHERS = [reads_the_row_before, reads_by_another_name, reads_by_a_closure, writes_two, writes_in_a_call, accumulates, part_of_each,
          index_is_changed, array_of_indices_beside]


@pytest.mark.parametrize("f", OTHERS, ids=lambda f: f.__name__)
def test_other_loops_carry_their_arrays(f):
    check(f, (V, A))


def test_arguments_are_written():
    def scale(x, y):
        for i in range(len(x)):
            x[i] = x[i] * y[i]

    x = V.copy()
    cr.function(scale)(x, V)
    same(x, V * V)


def test_writes_of_floats_into_ints_and_of_other_shapes_are_errors():
    def f(v):
        out = np.zeros(6, dtype=int)
        for i in range(6):
            out[i] = v[i]
        return out

    with pytest.raises(cr.CaptureError, match="float"):
        cr.function(f)(V)

    def g(v):
        out = np.zeros((6, 2))
        for i in range(6):
            out[i] = v[:3]
        return out

    with pytest.raises(cr.Error):
        cr.function(g)(V)


def test_an_index_beyond_the_end_is_an_error():
    def f(v, n):
        out = np.zeros(3)
        for i in range(n):
            out[i] = v[i]
        return out

    g = cr.function(f)
    same(g(V, 3), V[:3])
    same(g(V, 2), np.array([*V[:2], 0.0]))
    same(g(V, 0), np.zeros(3))
    with pytest.raises((cr.Error, IndexError)):
        g(V, 5)
