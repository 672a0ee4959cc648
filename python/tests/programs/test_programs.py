"""Statements, loops, branches, closures: programs against themselves in Python, and their derivatives."""

import math
from math import exp as exponential

import numpy as np
import pytest
from support import check, same

import chainrule as cr

rng = np.random.default_rng(3)
V, U = rng.normal(size=6), rng.normal(size=6)
M = rng.normal(size=(4, 3))
SCALE = 2.5
TABLE = np.array([1.0, -2.0, 0.5])


def horner(c, x):
    s = 0
    for k in c:
        s = s * x + k
    return s


def heat(u, n):
    u = u.copy()
    for _ in range(n):
        v = u.copy()
        for i in range(1, len(u) - 1):
            v[i] = u[i] + 0.1 * (u[i - 1] - 2 * u[i] + u[i + 1])
        u = v
    return u


def springs(x, pairs, k=1.0):
    e = 0.0
    for i, j in pairs:
        e += 0.5 * k * (np.linalg.norm(x[j] - x[i]) - 1.0) ** 2
    return e


def newton(a):
    x = a
    steps = 0
    while abs(x * x - a) > 1e-12 * a:
        x = 0.5 * (x + a / x)
        steps += 1
    return x, steps


def early(x):
    if x < 0:
        return -x * x
    elif x < 1:
        y = x ** 3
    else:
        if x > 5:
            return x
        y = math.sqrt(x)
    return y + 1.0


def breaks(v):
    s, n = 0.0, 0
    for i in range(len(v)):
        if v[i] > 1.0:
            break
        if v[i] < -1.0:
            continue
        s += v[i] ** 2
        n += 1
    return s, n


def elements(m):
    out = np.zeros((3, 4))
    for i in range(3):
        for j in range(4):
            out[i, j] = m[j, i] * (i + 1)
        out[i, 0] += 1.0
    out[:, 1] *= 2.0
    out[2] = 5.0
    out[0:2, 2:4] -= m[0, :2]
    out[0][0] = out[1][1]
    return out


def fibonacci(n):
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return a


def gauss_seidel(a, n):
    a = a.copy()
    for _ in range(n):
        for i in range(1, a.shape[0] - 1):
            for j in range(1, a.shape[1] - 1):
                a[i, j] = 0.2 * (a[i, j] + a[i - 1, j] + a[i + 1, j] + a[i, j - 1] + a[i, j + 1])
    return a


def helper(x, *, power=2):
    return x ** power


def closures(v):
    shift = v[0]

    def inner(x, by=1.5):
        return helper(x - shift) * by

    add = lambda a, b=1.0: a + b
    return sum(inner(x) for x in v) + add(v[1]) + helper(v[2], power=3) * SCALE + exponential(v[3]) + TABLE[1] * TABLE.sum()


def conditional(x, y):
    a = x if x > y else y * 2
    b = 1.0 if x > 0 and y / x > 1 else 0.0 if not x < 0 or y < 3 else 2.0
    c = 0 < x < 10
    return a * b + (3 if c else x)


def comprehensions(v):
    a = [x * i for i, x in enumerate(v)]
    b = np.array([[x * y for y in v] for x in v])
    return np.array(a), b, sum(x for x in v if x > 0), sum(1 for x in v if x > 0)


def unrolled(x):
    total = 0.0
    for name, weight in (("a", 1.0), ("b", 2.0)):
        if name == "b":
            total += weight * x ** 2
        else:
            total += weight * x
    for k in [1.0, 2.0]:
        total *= k + x
    return total


def pairs(p, q):
    (a, b), c = p, q
    return (a * b, [c, a]), b


def state(v):
    position, velocity = (0.0, 1.0), 0.5
    for f in v:
        position = (position[0] + velocity, position[1] * 1.1)
        velocity = velocity + f * 0.1
    return position[0] * position[1] + velocity


def kalman(ys, q, r):
    m, p, ll = 0.0, 1.0, 0.0
    for y in ys:
        p = p + q
        s = p + r
        k = p / s
        ll -= 0.5 * (np.log(2 * np.pi * s) + (y - m) ** 2 / s)
        m = m + k * (y - m)
        p = (1 - k) * p
    return ll


def rk4(y0, n):
    y = np.array([y0, 0.0])
    f = lambda y: np.array([y[1], -np.sin(y[0])])
    h = 0.1
    for _ in range(n):
        k1 = f(y)
        k2 = f(y + h / 2 * k1)
        k3 = f(y + h / 2 * k2)
        k4 = f(y + h * k3)
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return y


def backwards(v):
    s = 1.0
    for i in range(len(v) - 1, -1, -1):
        s = s * 0.5 + v[i] * i
    for i in range(1, 6, 2):
        s += v[i]
    return s


def masks(v, u):
    return np.where((v > 0) & ~(u > 0) | (v > 1), np.sqrt(np.abs(v)), v * u).sum()


def two_buffers(a, n):
    a, b = a.copy(), np.zeros_like(a)
    for _ in range(n):
        for i in range(len(a)):
            b[i] = a[i] * 1.5 + i
        a, b = b, a
    return a


PROGRAMS = [
    (two_buffers, (V, 3)),
    (horner, (V, 0.7)), (heat, (V, 3)), (springs, (M, np.array([[0, 1], [1, 2], [3, 1]]), 2.0)), (newton, (2.0,)),
    (early, (-0.5,)), (early, (0.5,)), (early, (2.0,)), (early, (7.0,)), (breaks, (V,)), (breaks, (V * 0.1,)),
    (elements, (M,)), (fibonacci, (10,)), (gauss_seidel, (rng.normal(size=(5, 4)), 2)), (closures, (V,)),
    (conditional, (1.0, 2.0)), (conditional, (0.5, 0.2)), (conditional, (-1.0, 5.0)), (comprehensions, (V,)), (unrolled, (1.5,)),
    (pairs, ((1.5, 2.5), 3.5)), (state, (V,)), (kalman, (V, 0.1, 0.5)), (rk4, (0.4, 5)), (backwards, (V,)), (masks, (V, U)),
]


@pytest.mark.parametrize("f, args", PROGRAMS, ids=[f"{k}-{f.__name__}" for k, (f, _) in enumerate(PROGRAMS)])
def test_programs(f, args):
    check(f, args)


def test_gradients_by_several_arguments_and_by_name():
    gradient = cr.gradient(kalman, argnums=("q", "r"))
    both = gradient(V, 0.1, 0.5)
    assert both == pytest.approx((cr.gradient(kalman, 1)(V, 0.1, 0.5), cr.gradient(kalman, argnums=-1)(V, 0.1, 0.5)), rel=1e-13)
    value, slope = cr.value_and_grad(kalman, "r")(ys=V, r=0.5, q=0.1)
    assert value == pytest.approx(kalman(V, 0.1, 0.5), rel=1e-13) and slope == pytest.approx(both[1], rel=1e-13)


def test_directions_and_weights():
    f = cr.function(lambda x, a: np.sin(a @ x) * x[0])
    a, x, d = rng.normal(size=(4, 3)), rng.normal(size=3), rng.normal(size=3)
    jac = cr.jacobian(f)(x, a)
    same(cr.jvp(f)(x, a, d), jac @ d)
    w = rng.normal(size=4)
    same(cr.vjp(f)(x, a, w), w @ jac)
    value, tangent = cr.jvp(f, with_value=True)(x, a, d)
    same((value, tangent), (f(x, a), jac @ d))
    total = cr.function(lambda x, a: np.sum(np.sin(a @ x) * x[0]))
    h = cr.hessian(total)(x, a)
    same(h, h.T, rtol=1e-9)
    same(cr.hvp(total)(x, a, d), h @ d, rtol=1e-9)
    same(cr.hessian_diagonal(total)(x, a), np.diag(h), rtol=1e-9)
    blocks = cr.hessian(total, argnums=(0, 1))(x, a)
    assert [[b.shape for b in row] for row in blocks] == [[(3, 3), (3, 4, 3)], [(4, 3, 3), (4, 3, 4, 3)]]
    with pytest.raises(cr.ShapeError, match=r"a direction has the shape \(4,\), its argument has \(3,\)"):
        cr.jvp(f)(x, a, w)


def test_methods_and_attributes_of_objects():
    class Model:
        power = 2

        def __init__(self, scale):
            self.scale = scale

        @cr.function
        def energy(self, x):
            return self.scale * np.sum(x ** self.power)

    model = Model(3.0)
    assert model.energy(V) == pytest.approx(3.0 * np.sum(V ** 2))
    model.scale = 4.0
    assert model.energy(V) == pytest.approx(4.0 * np.sum(V ** 2))


def test_functions_are_arguments():
    @cr.function
    def integrate(f, n):
        s = 0.0
        for i in range(n):
            s += f((i + 0.5) / n) / n
        return s

    assert integrate(lambda x: x * x, 1000) == pytest.approx(1 / 3, rel=1e-6)
    assert integrate(math.sin, 1000) == pytest.approx(1 - math.cos(1), rel=1e-6)


def test_functions_of_a_file(tmp_path):
    path = tmp_path / "model.ft"
    path.write_text("let energy = fun (x : [n]Double) (k : Double) -> 0.5 * k * sum n (fun i -> x[i] ** 2)\n")
    model = cr.module(path)
    assert model.energy(V, 2) == pytest.approx(V @ V)
    same(cr.gradient(model.energy)(V, 2), 2 * V)
    with pytest.raises(cr.TypeError_, match="`x` is to be an array of 1 dimension"):
        model.energy(3.0, 2)


def test_text_of_functions():
    f = cr.function(lambda x: np.sum(x ** 2))
    with pytest.raises(cr.Error, match="was not called yet"):
        f.source("c")
    assert "double" in f.source("c", V) and "fun (x : [n_x]Double)" in f.source("ft")
    assert "double" in cr.gradient(f).source("c", V)
