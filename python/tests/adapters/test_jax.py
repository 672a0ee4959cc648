"""Functions in JAX programs, against the same mathematics in JAX."""

import threading

import numpy as np
import pytest

import chainrule as cr

jax = pytest.importorskip("jax", reason="JAX is not installed")
jnp = jax.numpy
jax.config.update("jax_enable_x64", True)

from jax.test_util import check_grads  # noqa: E402

from chainrule.adapters import jax as adapter  # noqa: E402
from chainrule.adapters.leaves import entrance  # noqa: E402

to_jax = adapter.to_jax
RNG = np.random.default_rng(0)
X = jnp.asarray(RNG.normal(size=6))
#: Functions of a function, in JAX.
TRANSFORMS = {
    "value": lambda f: f, "jit": jax.jit, "grad": jax.grad, "jit of grad": lambda f: jax.jit(jax.grad(f)), "hessian": jax.hessian,
    "reverse twice": lambda f: jax.jacrev(jax.jacrev(f)), "forward twice": lambda f: jax.jacfwd(jax.jacfwd(f)), "jit of hessian": lambda f: jax.jit(jax.hessian(f)),
    "third order": lambda f: jax.jacfwd(jax.hessian(f)), "reverse three times": lambda f: jax.jacrev(jax.jacrev(jax.jacrev(f))),
    "linearized": lambda f: lambda x: jax.linearize(f, x)[1](jnp.cos(x)), "checkpoint": lambda f: jax.grad(jax.checkpoint(f)),
}


def rosenbrock(x):
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def rosenbrock_in_jax(x):
    return jnp.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def same(f, g, *args, rtol=1e-10):
    got, want = jax.tree.leaves(f(*args)), jax.tree.leaves(g(*args))
    assert [a.shape for a in got] == [a.shape for a in want] and [a.dtype for a in got] == [a.dtype for a in want]
    for a, b in zip(got, want):
        np.testing.assert_allclose(a, b, rtol=rtol, atol=1e-9)


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms(name):
    transform = TRANSFORMS[name]
    same(transform(to_jax(rosenbrock)), transform(rosenbrock_in_jax), X)


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms_of_points(name):
    transform, points = TRANSFORMS[name], jnp.asarray(RNG.normal(size=(2, 3, 6)))
    same(jax.vmap(transform(to_jax(rosenbrock))), jax.vmap(transform(rosenbrock_in_jax)), points[0])
    twice = lambda f: jax.jit(jax.vmap(jax.vmap(transform(f))))
    same(twice(to_jax(rosenbrock)), twice(rosenbrock_in_jax), points)


def test_check_grads():
    check_grads(to_jax(rosenbrock), (0.3 * X,), order=3, modes=("fwd", "rev"), rtol=2e-2, atol=2e-2)


def test_numbers():
    f, g = to_jax(lambda x, k: np.sin(x) * x ** k), lambda x, k: jnp.sin(x) * x ** k
    order = lambda q: jax.grad(jax.grad(jax.grad(jax.grad(q))))
    same(jax.jit(order(f)), order(g), 0.7, 3.0)
    check_grads(f, (0.7, 2.5), order=2)


def test_arguments_and_results_of_several_parts():
    def f(p, k):
        return {"a": np.sin(p["u"]) * k, "b": [np.outer(p["u"], p["v"]), k * k]}, p["u"][0]

    def g(p, k):
        return {"a": jnp.sin(p["u"]) * k, "b": [jnp.outer(p["u"], p["v"]), k * k]}, p["u"][0]

    p = {"u": jnp.arange(3.0) + 0.5, "v": jnp.arange(2.0) + 0.2}
    total = lambda h: lambda p, k: sum(jnp.sum(jnp.cos(leaf)) for leaf in jax.tree.leaves(h(p, k)))
    same(to_jax(f), g, p, jnp.asarray(2.0))
    for transform in (jax.grad, lambda q: jax.jacfwd(q, (0, 1)), lambda q: jax.hessian(q, (0, 1)), lambda q: jax.jit(jax.hessian(q, (0, 1)))):
        same(transform(total(to_jax(f))), transform(total(g)), p, 2.0)
    check_grads(to_jax(f), (p, 2.0), order=2)
    assert jax.tree.structure(to_jax(f)(p, 2.0)) == jax.tree.structure(g(p, 2.0))


def test_points_of_some_arguments():
    f, g = to_jax(lambda x, k: np.sum(np.sin(x) * k) * x), lambda x, k: jnp.sum(jnp.sin(x) * k) * x
    points, factors = jnp.asarray(RNG.normal(size=(3, 6))), jnp.arange(4.0)
    for axes in (((0, None), (None, 0)), ((None, 0), (0, None)), ((0, None), (None, None)), ((0, None), (1, 0))):
        nested = lambda q: jax.vmap(jax.vmap(q, axes[0]), axes[1])  # noqa: B023
        x, k = (points, factors) if axes[1] != (1, 0) else (jnp.asarray(RNG.normal(size=(2, 4, 6))), factors)
        if axes[1] == (None, None):
            same(jax.vmap(f, axes[0]), jax.vmap(g, axes[0]), x, 2.0)
            continue
        same(nested(f), nested(g), x, k)
        total = lambda q: lambda x, k: jnp.sum(nested(q)(x, k) ** 2)  # noqa: B023
        same(jax.grad(total(f), (0, 1)), jax.grad(total(g), (0, 1)), x, k)
    same(jax.vmap(f, (1, None), out_axes=1), jax.vmap(g, (1, None), out_axes=1), points, 2.0)


def test_integers_and_truth_values():
    f = to_jax(lambda x, k, at: (x[at] * k, x > 0.0, at + 1, np.sum(np.sin(x)) * k))
    g = lambda x, k, at: (x[at] * k, x > 0.0, at + 1, jnp.sum(jnp.sin(x)) * k)
    at = jnp.array([0, 2, 2])
    same(f, g, X, 2.0, at)
    same(jax.jit(jax.vmap(f, (None, None, 0))), jax.vmap(g, (None, None, 0)), X, 2.0, jnp.array([[0, 1], [2, 2]]))
    same(jax.grad(lambda x, k: f(x, k, at)[0].sum(), (0, 1)), jax.grad(lambda x, k: g(x, k, at)[0].sum(), (0, 1)), X, 2.0)
    steps = to_jax(lambda x, n: sum(x ** i for i in range(n)))
    assert jax.vmap(steps, (None, 0))(2.0, jnp.arange(4)).tolist() == [0.0, 1.0, 3.0, 7.0] and jax.grad(steps)(2.0, 4) == 17.0


def test_static_arguments():
    power = to_jax(lambda x, n: x ** n * np.ones(n), static=1)
    assert jax.jit(power, static_argnums=1)(2.0, 3).tolist() == [8.0] * 3 and power(2.0, 2).tolist() == [4.0] * 2
    mode = to_jax(lambda x, how: np.sum(x) if how == "sum" else np.prod(x))
    assert mode(jnp.array([2.0, 3.0]), "sum") == 5.0 and mode(jnp.array([2.0, 3.0]), "prod") == 6.0
    for values in ((2.0, 3), (2.0, jnp.asarray(3))):
        with pytest.raises(cr.Limitation, match="static"):
            to_jax(lambda x, n: x * np.ones(n))(*values)


def test_loops_of_jax():
    f, g = to_jax(lambda c: np.tanh(c) * np.sum(c)), lambda c: jnp.tanh(c) * jnp.sum(c)
    run = lambda q: lambda x: jax.lax.scan(lambda c, _: (0.1 * q(c), c[0]), x, None, length=5)[0].sum()
    same(jax.grad(run(f)), jax.grad(run(g)), X)
    loop = lambda q: jax.jit(lambda x: jax.lax.fori_loop(0, 4, lambda _, c: q(c), x))
    same(loop(f), loop(g), X)


def test_dtypes():
    f, g = to_jax(rosenbrock), rosenbrock_in_jax
    for dtype in (jnp.float32, jnp.float16, jnp.bfloat16):
        x = X.astype(dtype)
        np.testing.assert_allclose(f(x), g(x.astype(float)), rtol=1e-12)
        assert jax.grad(f)(x).dtype == dtype
    counted = to_jax(lambda n, b: (n + 1, n * 0.5, b))
    for dtype in (jnp.int8, jnp.uint8, jnp.int32, jnp.int64):
        a, b, c = counted(jnp.arange(3, dtype=dtype), jnp.array([True, False]))
        assert a.tolist() == [1, 2, 3] and b.tolist() == [0.0, 0.5, 1.0] and c.dtype == bool


def test_numbers_of_32_bits():
    with jax.enable_x64(False):
        f, x = to_jax(lambda x, n: (np.sin(x) * n, n + 1, x > 0)), jnp.asarray(RNG.normal(size=3), jnp.float32)
        a, b, c = jax.jit(f)(x, 2)
        assert (a.dtype, b.dtype, c.dtype) == (jnp.float32, jnp.int32, bool) and b == 3
        np.testing.assert_allclose(a, 2.0 * np.sin(x), rtol=1e-6)
        np.testing.assert_allclose(jax.jit(jax.grad(lambda x: f(x, 2)[0].sum()))(x), 2.0 * np.cos(x), rtol=1e-6)


def test_empty_arrays():
    assert jax.vmap(to_jax(rosenbrock))(jnp.zeros((0, 6))).shape == (0,)
    assert to_jax(lambda x: np.sum(x))(jnp.zeros(0)) == 0.0
    assert to_jax(lambda x: x * 2.0)(jnp.zeros((0, 3))).shape == (0, 3)


def test_arrays_of_closures():
    weights = np.arange(6.0)
    f = to_jax(lambda x: np.sum(weights * x))
    assert f(jnp.ones(6)) == 15.0 and jax.jit(jax.grad(f))(X).tolist() == weights.tolist()


def test_failures():
    f = to_jax(lambda x, at: x[at])
    for call in (f, jax.jit(f)):
        with pytest.raises(Exception, match="elements"):
            jax.block_until_ready(call(X, jnp.asarray(99)))
        assert call(X, jnp.asarray(1)) == X[1]
    for value in (jnp.array([1j]), jax.random.key(0), "text", {1.0}):
        with pytest.raises((cr.Error, TypeError)):
            to_jax(rosenbrock)(value)
    with pytest.raises(cr.CaptureError):
        jax.jit(to_jax(lambda x: np.fft.fft(x)))(X)


def test_the_callback_of_other_devices_gives_the_same():
    program = entrance(cr.function(rosenbrock), [np.zeros(6)], [False]).program
    options = {"program": program, "integers": (), "n_axes": 0}
    assert adapter.on_host(X, **options)[0] == to_jax(rosenbrock)(X)
    points = jnp.asarray(RNG.normal(size=(2, 3, 6)))
    same(lambda x: adapter.on_host(x, **{**options, "n_axes": 2})[0], jax.vmap(jax.vmap(rosenbrock_in_jax)), points)
    against = {**options, "program": program.against((0,)), "n_axes": 1}
    slopes = adapter.on_host(points[0], jnp.ones(1), **against)[0]
    same(lambda x: slopes, jax.vmap(jax.grad(rosenbrock_in_jax)), points[0])
    repeated = entrance(cr.function(lambda x, n: np.sum(np.ones(n)) * x), [np.zeros(2), 0], [False, True]).program
    got = jax.jit(lambda x, n: adapter.on_host(x, n, **{**options, "program": repeated, "n_axes": 1})[0])(jnp.ones((1, 2)), jnp.arange(3))
    assert got.tolist() == [[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]]


def test_sizes_that_differ_between_points():
    f = to_jax(lambda x, n: np.sum(np.cumsum(np.ones(n))) * x)
    assert jax.jit(jax.vmap(f, (None, 0)))(2.0, jnp.arange(4)).tolist() == [0.0, 2.0, 6.0, 12.0]


def test_one_program_in_many_threads():
    f = jax.jit(jax.vmap(jax.value_and_grad(to_jax(rosenbrock))))
    points = [jnp.asarray(RNG.normal(size=(50, 6))) for _ in range(4)]
    want, wrong = [f(x) for x in points], []

    def work(k):
        for _ in range(50):
            value, slope = f(points[k])
            if not (np.array_equal(value, want[k][0]) and np.array_equal(slope, want[k][1])):
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_results_equal_those_of_the_function_bit_for_bit():
    f, points = cr.function(rosenbrock), RNG.normal(size=(40, 6))
    assert np.array_equal(jax.jit(jax.vmap(to_jax(f)))(points), f.batch(points))
    assert np.array_equal(jax.jit(jax.grad(to_jax(f)))(points[0]), cr.vjp(f)(points[0], 1.0))
