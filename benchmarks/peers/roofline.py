"""Times of NumPy and JAX on the problems of `chainrule-bench roofline`, one JSON object a line.

Arguments are the beginnings of the problems' names; all without. Pin it to one core with taskset. NumPy's gradients are written
by hand where that is a few lines; JAX's are its own.
"""
import json
import os
import sys
import time

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")
try:
    import numpy as np
except ImportError:
    sys.exit(0)
try:
    import jax
    import jax.numpy as jnp
    from jax import lax
    jax.config.update("jax_enable_x64", True)
except ImportError:
    jax = None

r = np.random.default_rng(1)
N = lambda *s: r.standard_normal(s)


def softplus(np_, t):
    return np_.maximum(t, 0) + np_.log1p(np_.exp(-np_.abs(t)))


def linear(m, b, x, y): e = x @ b - y; return m.sum(e * e)
def logistic(m, b, x, y): e = x @ b; return m.sum(softplus(m, e) - y * e)
def poisson(m, b, x, y): e = x @ b; return m.sum(m.exp(e) - y * e)
def linear_g(b, x, y): return x.T @ (2 * (x @ b - y))
def logistic_g(b, x, y): return x.T @ (1 / (1 + np.exp(-(x @ b))) - y)
def poisson_g(b, x, y): return x.T @ (np.exp(x @ b) - y)


def log_sum_exp(m, e):
    top = m.max(e, axis=1, keepdims=True)
    return m.log(m.sum(m.exp(e - top), axis=1)) + top[:, 0]


def network(m, w1, b1, w2, b2, x, y):
    e = m.tanh(x @ w1.T + b1) @ w2.T + b2
    return m.sum(log_sum_exp(m, e) - m.take_along_axis(e, y[:, None], 1)[:, 0])


def network_g(w1, b1, w2, b2, x, y):
    a = np.tanh(x @ w1.T + b1)
    e = a @ w2.T + b2
    p = np.exp(e - e.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    p[np.arange(len(y)), y] -= 1
    h = (p @ w2) * (1 - a * a)
    return h.T @ x, h.sum(axis=0), p.T @ a, p.sum(axis=0)


def steps(m, step, v, n):
    if m is np:
        for _ in range(n):
            v = step(v)
        return v
    return lax.scan(lambda v, _: (step(v), None), v, None, length=n)[0]


def heat_ring(m, u, n): return m.sum(steps(m, lambda v: v + 0.2 * (m.roll(v, 1) - 2 * v + m.roll(v, -1)), u, n) ** 2)
def clamp(m, v): return v + 0.2 * (m.concatenate([v[:1], v[:-1]]) - 2 * v + m.concatenate([v[1:], v[-1:]]))
def heat_clamped(m, u, n): return m.sum(steps(m, lambda v: clamp(m, v), u, n) ** 2)
def torus(m, v): return v + 0.1 * (m.roll(v, 1, 0) + m.roll(v, -1, 0) + m.roll(v, 1, 1) + m.roll(v, -1, 1) - 4 * v)
def heat_torus(m, u, n): return m.sum(steps(m, lambda v: torus(m, v), u, n) ** 2)


def gaussian_process(m, logls, logs, x, y):
    k = m.exp(-0.5 * ((x[:, None] - x[None, :]) / m.exp(logls)) ** 2) + m.exp(logs) * m.eye(x.shape[0])
    l = m.linalg.cholesky(k)
    if m is np:
        a = np.linalg.solve(k, y)
    else:
        a = jax.scipy.linalg.cho_solve((l, True), y)
    return 0.5 * y @ a + m.sum(m.log(m.diag(l)))


def convolution(m, w, x):
    if m is np:
        y = np.einsum("ijkl,kl->ij", np.lib.stride_tricks.sliding_window_view(x, w.shape), w)
    else:
        y = lax.conv_general_dilated(x[None, None], w[None, None], (1, 1), "VALID")[0, 0]
    return m.sum(m.tanh(y) ** 2)


def product(m, a, b): return m.sum((a @ b) ** 2)
def product_g(a, b): c = 2 * (a @ b); return c @ b.T, a.T @ c
def batch_g(a, b): c = 2 * (a @ b); return c @ b.transpose(0, 2, 1), a.transpose(0, 2, 1) @ c
def softmax(m, x, y): return m.sum(log_sum_exp(m, x) - m.take_along_axis(x, y[:, None], 1)[:, 0])


def softmax_g(x, y):
    p = np.exp(x - x.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    p[np.arange(len(y)), y] -= 1
    return p


def pairs(m, x): return m.sum(m.exp(-((x[:, None] - x[None, :]) ** 2)))
def recurrence(m, x):
    if m is np:
        s = np.zeros(x.shape[1])
        for row in x:
            s = 0.9 * s + row
    else:
        s = lax.scan(lambda s, row: (0.9 * s + row, None), jnp.zeros(x.shape[1]), x)[0]
    return m.sum(s ** 2)
def columns(m, x): return m.sum(m.sum(x, axis=0) ** 2)
def columns_g(x): return np.broadcast_to(2 * x.sum(axis=0), x.shape).copy()
def gathered(m, x, at): return m.sum(x[at] ** 2)
def gathered_g(x, at): return 2 * x * np.bincount(at, minlength=len(x))
def chain(m, x): t = x * x + 1; return m.sum(m.sqrt(t) * m.exp(-t) + 1 / t)
def contraction(m, a, b, c): return m.einsum("ij,jl,li->", a, b, c, optimize=True)


n, d = 5000, 12
x, y, yb = N(n, d) * .3, N(n), (r.random(n) > .5).astype(float)
JOBS = [
    ("linear", linear, linear_g, [N(d), x, y], (0,)),
    ("logistic", logistic, logistic_g, [N(d), x, yb], (0,)),
    ("poisson", poisson, poisson_g, [N(d) * .3, x, yb], (0,)),
    ("network", network, network_g,
     [N(64, 30) * .3, N(64) * .1, N(10, 64) * .3, N(10) * .1, N(256, 30), r.integers(0, 10, 256)], (0, 1, 2, 3)),
    ("heat_ring", heat_ring, None, [N(1000), 500], (0,)),
    ("heat_clamped", heat_clamped, None, [N(1000), 500], (0,)),
    ("heat_torus", heat_torus, None, [N(128, 128), 50], (0,)),
    ("gaussian_process", gaussian_process, None, [0.1, -1.0, np.sort(N(200)), N(200)], (0, 1)),
    ("convolution", convolution, None, [N(5, 5) * .2, N(128, 128)], (0,)),
    ("product_64", product, product_g, [N(64, 64), N(64, 64)], (0, 1)),
    ("product_256", product, product_g, [N(256, 256), N(256, 256)], (0, 1)),
    ("batch", product, batch_g, [N(200, 8, 8), N(200, 8, 8)], (0, 1)),
    ("softmax", softmax, softmax_g, [N(1000, 50), r.integers(0, 50, 1000)], (0,)),
    ("pairs", pairs, None, [N(500)], (0,)),
    ("recurrence", recurrence, None, [N(1000, 64)], (0,)),
    ("columns", columns, columns_g, [N(1000, 64)], (0,)),
    ("gathered", gathered, gathered_g, [N(1000), r.integers(0, 1000, 20000)], (0,)),
    ("chain", chain, None, [N(20000)], (0,)),
    ("contraction", contraction, None, [N(64, 64), N(64, 64), N(64, 64)], (0, 1, 2)),
]


def microseconds(run):
    """The best of the samples of a quarter of a second."""
    run()
    t = time.perf_counter()
    run()
    calls = max(1, min(10000, int(0.005 / max(time.perf_counter() - t, 1e-7))))
    best, start = float("inf"), time.perf_counter()
    while time.perf_counter() - start < 0.25:
        t = time.perf_counter()
        for _ in range(calls):
            run()
        best = min(best, (time.perf_counter() - t) / calls)
    return best * 1e6


for name, f, g, args, by in JOBS:
    if sys.argv[1:] and not any(name.startswith(p) for p in sys.argv[1:]):
        continue
    row = {"problem": name, "engine": "numpy", "value": microseconds(lambda: f(np, *args))}
    if g:
        row["gradient"] = microseconds(lambda: g(*args))
        row["both"] = row["value"] + row["gradient"]
    print(json.dumps(row), flush=True)
    if jax:
        fixed = tuple(i for i, a in enumerate(args) if isinstance(a, int))
        given = [a if i in fixed else jnp.asarray(a) for i, a in enumerate(args)]
        row = {"problem": name, "engine": "jax"}
        of = lambda *a: f(jnp, *a)
        for part, q in (("value", of), ("gradient", jax.grad(of, by)), ("both", jax.value_and_grad(of, by))):
            run = jax.jit(q, static_argnums=fixed)
            row[part] = microseconds(lambda: jax.block_until_ready(run(*given)))
        print(json.dumps(row), flush=True)
