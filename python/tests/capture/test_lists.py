"""Lists that grow."""

import numpy as np
import pytest
from support import check

import chainrule as cr

V, A = np.array([0.3, -1.2, 0.8, 2.0, -0.5]), np.arange(12.0).reshape(4, 3) / 5


def each_element(v, a):
    out = []
    for x in v:
        out.append(x ** 2)
    return np.array(out)


def trajectory(v, a):
    x, path = v[0], [v[0]]
    for k in range(6):
        x = x - 0.1 * x ** 3 + 0.01 * k
        path.append(x)
    return np.array(path)


def recurrence(v, a):
    xs = [v[0], v[1]]
    for t in range(2, 7):
        xs.append(0.5 * xs[-1] + np.sin(v[2]) * t)
    return np.stack(xs) * 2, len(xs), xs[-1], xs[0], sum(xs)


def states(v, a):
    u, history, energy = a[0].copy(), [], []
    for row in a:
        u = 0.5 * u + row
        history.append(u)
        energy.append(u @ u)
    return np.array(history), np.array(energy)


def rows_of_rows(v, a):
    table = []
    for i in range(4):
        row = []
        for j in range(3):
            row.append(v[i] * a[i, j])
        table.append(row)
    return np.array(table)


def straight(v, a):
    parts = []
    parts.append(v[:2])
    parts.append(v[2:] * 2)
    parts.extend([v, v[1:]])
    for k in (1, 2):
        parts.append(k * v)
    return np.concatenate(parts)


def after_a_loop(v, a):
    out = []
    for k in range(len(v)):
        out.append(v[k] + k)
    out.append(10.0)
    for x in v:
        out.append(x)
    other = out
    return np.array(out), np.array(other)


def concatenated(v, a):
    parts = []
    for row in a:
        parts.append(np.cumsum(row))
    return np.concatenate(parts), np.vstack(parts), np.stack(parts, axis=1)


def with_enumerate_and_zip(v, a):
    out = []
    for i, (x, y) in enumerate(zip(v, a[:, 0])):
        t = x * y
        out.append(t + i)
    return np.asarray(out)


def in_a_helper(v, a):
    return layers(v)[-1], np.array(layers(2 * v))


def layers(h):
    out = [h]
    for k in range(3):
        h = np.tanh(h)
        out.append(h)
    return out


def aliases(v, a):
    a1 = b1 = []
    a1.append(v[0])
    b1.append(v[1])
    c1 = [a1[0]]
    c1.append(v[2])
    return np.array(a1), np.array(b1), np.array(c1)


@pytest.mark.parametrize("f", [each_element, trajectory, recurrence, states, rows_of_rows, straight, after_a_loop, concatenated,
                               with_enumerate_and_zip, in_a_helper, aliases], ids=lambda f: f.__name__)
def test_numbers_and_gradients(f):
    check(f, (V, A))


SHARED = []


def to_a_global(v):
    SHARED.append(v[0])
    return v


def under_a_condition(v):
    out = []
    for x in v:
        if x > 0:
            out.append(x)
    return np.array(out)


def in_a_while(v):
    out, x = [], v[0]
    while x < 2:
        x = x + 1
        out.append(x)
    return np.array(out)


def twice_in_a_step(v):
    out = []
    for x in v:
        out.append(x)
        out.append(2 * x)
    return np.array(out)


def read_in_the_loop(v):
    out = [v[0]]
    for x in v:
        out.append(x * out[0])
    return np.array(out)


def in_the_loop_of_another(v):
    out = []
    for x in v:
        for k in range(2):
            out.append(x * k)
    return np.sum(v) * len(out)


def in_a_loop_of_a_function(v):
    def add(x):
        for k in range(2):
            out.append(x * k)

    out = [0.0]
    for x in v:
        add(x)
    return np.array(out)


@pytest.mark.parametrize("f", [to_a_global, under_a_condition, in_a_while, twice_in_a_step, read_in_the_loop, in_the_loop_of_another,
                               in_a_loop_of_a_function], ids=lambda f: f.__name__)
def test_lengths_that_depend_on_data_are_errors(f):
    with pytest.raises(cr.CaptureError) as caught:
        cr.function(f)(np.ones(70))
    assert "list" in str(caught.value) or "append" in str(caught.value) or "out" in str(caught.value)


def test_lists_of_the_caller_are_not_changed():
    def f(ws):
        ws.append(ws[0])
        return np.sum(ws[-1])

    with pytest.raises(cr.CaptureError, match="not local"):
        cr.function(f)([np.ones(2), np.ones(3)])
