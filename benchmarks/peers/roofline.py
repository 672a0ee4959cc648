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
def layer_product(m, a, b): return m.sum(m.maximum(a @ b, 0))
def layer_product_g(a, b): c = (a @ b > 0) * 1.0; return c @ b.T, a.T @ c

def by_transposed(m, a, b): return m.sum((a @ b.T) ** 2)
def by_transposed_g(a, b): c = 2 * (a @ b.T); return c @ b, c.T @ a
def transposed_by(m, a, b): return m.sum((a.T @ b) ** 2)
def transposed_by_g(a, b): c = 2 * (a.T @ b); return b @ c.T, a @ c
def fitted(m, x, w, y): e = x @ w - y; return m.sum(e * e)
def fitted_gw(x, w, y): return x.T @ (2 * (x @ w - y))
def fitted_gx(x, w, y): return 2 * (x @ w - y) @ w.T


def diffusion_step(m, v):
    inside = v[1:-1, 1:-1, 1:-1]
    near = (v[:-2, 1:-1, 1:-1] + v[2:, 1:-1, 1:-1] + v[1:-1, :-2, 1:-1] + v[1:-1, 2:, 1:-1]
            + v[1:-1, 1:-1, :-2] + v[1:-1, 1:-1, 2:])
    inside = inside + 0.1 * (near - 6 * inside)
    if m is np:
        v = v.copy()
        v[1:-1, 1:-1, 1:-1] = inside
        return v
    return v.at[1:-1, 1:-1, 1:-1].set(inside)


def diffusion(m, u, n): return m.sum(steps(m, lambda v: diffusion_step(m, v), u, n) ** 2)


def jacobi_step(m, v):
    inside = 0.2 * (v[1:-1, 1:-1] + v[:-2, 1:-1] + v[2:, 1:-1] + v[1:-1, :-2] + v[1:-1, 2:])
    if m is np:
        v = v.copy()
        v[1:-1, 1:-1] = inside
        return v
    return v.at[1:-1, 1:-1].set(inside)


def jacobi(m, u, n): return m.sum(steps(m, lambda v: jacobi_step(m, v), u, n) ** 2)


def reflecting_step(m, v):
    p = m.pad(v, 1, mode="reflect")
    return v + 0.1 * (p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:] - 4 * v) * (1 - v ** 2)


def reflecting(m, u, n): return m.sum(steps(m, lambda v: reflecting_step(m, v), u, n) ** 2)
def middle(m, x): return m.sum(m.sum(x, axis=1) ** 2)
def middle_g(x): return np.broadcast_to(2 * x.sum(axis=1)[:, None, :], x.shape).copy()


def scattered(m, w, at, k):
    if m is np:
        return np.sum(np.bincount(at, w, k) ** 2)
    return m.sum(m.zeros(k).at[at].add(w) ** 2)


def scattered_g(w, at, k): return 2 * np.bincount(at, w, k)[at]


def triangular(m, l, b):
    if m is np:
        import scipy.linalg as sp
    else:
        import jax.scipy.linalg as sp
    x = sp.solve_triangular(l, b, lower=True)
    return x @ x


def likelihood(m, a, b):
    if m is np:
        import scipy.linalg as sp
    else:
        import jax.scipy.linalg as sp
    l = m.linalg.cholesky((a + a.T) / 2)
    return b @ sp.cho_solve((l, True), b) + m.sum(m.log(m.diag(l)))


def solution(m, a, b): x = m.linalg.solve(a, b); return x @ x


def filtered(m, w, x):
    return m.sum(m.correlate(x, w, "valid") ** 2)


def masked(m, x, y): return m.sum(m.where(y > 0.3, x * x * y, 0))
def masked_g(x, y): return np.where(y > 0.3, 2 * x * y, 0)
def table(m, t, f, at): a = t[at]; return m.sum((a + f * (t[at + 1] - a)) ** 2)
def row_max(m, x): return m.sum(m.max(x, axis=1) ** 2)
def row_argmax(m, x, y): return m.sum(x[m.arange(x.shape[0]), m.argmax(y, axis=1)] ** 2)


def spectral(m, x, w):
    t = w[:, None] * m.arange(x.shape[0])
    return m.sum((m.cos(t) @ x) ** 2 + (m.sin(t) @ x) ** 2)


def einsum(m, a, b): return m.sum(m.einsum("ijp,pq->ijq", a, b, optimize=True) ** 2)


def einsum_g(a, b):
    c = 2 * np.einsum("ijp,pq->ijq", a, b, optimize=True)
    return np.einsum("ijq,pq->ijp", c, b, optimize=True), np.einsum("ijp,ijq->pq", a, c, optimize=True)


def embedded(m, e, w, at): return m.sum((e[at] @ w) ** 2)


def deep(m, x):
    a = m.tanh(0.5 * x)
    b = m.exp(-(a * a)) + x
    c = m.sin(b) * m.cos(a)
    d = m.sqrt(c * c + b * b + 1)
    return m.sum(m.log(d) * a / (1 + d * d))


def molecule(m, p):
    d = m.sum((p[:, None, :] - p[None, :, :]) ** 2, axis=2) + 0.5
    s = 1 / (d * d * d)
    return m.sum(s * s - s)


def attention(m, q, k, v):
    e = q @ k.T / q.shape[1] ** 0.5
    p = m.exp(e - m.max(e, axis=1, keepdims=True))
    return m.sum(((p / m.sum(p, axis=1, keepdims=True)) @ v) ** 2)


def variances(m, x): return m.sum(m.log(m.mean((x - m.mean(x, axis=0)) ** 2, axis=0)))


def variances_g(x):
    e = x - x.mean(axis=0)
    return 2 * e / (e * e).sum(axis=0)


def mixture(m, w, mu, s, x):
    z = m.exp(s) * (x[:, None, :] - mu)
    return m.sum(log_sum_exp(m, w - 0.5 * m.sum(z * z, axis=2) + m.sum(s, axis=1)))


def prefix(m, x): return m.sum(m.cumsum(x) ** 2)
def prefix_g(x): return 2 * np.cumsum(np.cumsum(x)[::-1])[::-1]


def tridiagonal(m, a, b, c, y):
    def forward(at, row):
        g, h = at
        a, b, c, y = row
        d = b - a * g
        at = (c / d, (y - a * h) / d)
        return at, at

    def backward(x, row):
        x = row[1] - row[0] * x
        return x, x

    _, rows = lax.scan(forward, (0.0, 0.0), (a, b, c, y))
    x = lax.scan(backward, 0.0, rows, reverse=True)[1]
    return x @ x


def dominant(n): return r.uniform(-1, 1, (n, n)) + 2 * n * np.eye(n)
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
    *((f"linear.{d}", linear, linear_g, [N(d), N(n, d) * .3, N(n)], (0,)) for n, d in ((20000, 2), (2000, 64), (500, 512))),
    *((f"layer_product.{n}", layer_product, layer_product_g, [N(n, n), N(n, n)], (0, 1)) for n in (512, 20)),
    *(job for n, k, m in ((64, 64, 64), (200, 200, 200), (1000, 1100, 1200)) for job in (
        (f"by_transposed.{n}", by_transposed, by_transposed_g, [N(n, k), N(m, k)], (0, 1)),
        (f"transposed_by.{n}", transposed_by, transposed_by_g, [N(k, n), N(k, m)], (0, 1)),
        (f"fitted.{n}.w", fitted, fitted_gw, [N(n, k), N(k, m), N(n, m)], (1,)),
        (f"fitted.{n}.x", fitted, fitted_gx, [N(n, k), N(k, m), N(n, m)], (0,)))),
    ("einsum", einsum, einsum_g, [N(16, 24, 32), N(32, 48)], (0, 1)),
    ("attention", attention, None, [N(128, 32), N(128, 32), N(128, 32)], (0, 1, 2)),
    ("spectral", spectral, None, [N(256), N(100)], (0,)),
    ("filtered", filtered, None, [N(32), N(8192)], (0, 1)),
    ("diffusion", diffusion, None, [N(32, 32, 32), 20], (0,)),
    ("reflecting", reflecting, None, [N(128, 128) * .2, 20], (0,)),
    ("jacobi.150", jacobi, None, [N(150, 150), 40], (0,)),
    ("jacobi.500", jacobi, None, [N(500, 500), 40], (0,)),
    ("jacobi.1300", jacobi, None, [N(1300, 1300), 40], (0,)),
    ("middle", middle, middle_g, [N(40, 50, 60)], (0,)),
    ("row_max", row_max, None, [N(1000, 50)], (0,)),
    ("row_argmax", row_argmax, None, [N(1000, 50), N(1000, 50)], (0,)),
    ("variances", variances, variances_g, [N(5000, 12)], (0,)),
    ("mixture", mixture, None, [N(16), N(16, 4), N(16, 4) * .3, N(2000, 4)], (0, 1, 2)),
    ("masked", masked, masked_g, [N(50000), N(50000)], (0,)),
    ("scattered.many", scattered, scattered_g, [N(20000), r.integers(0, 16, 20000), 16], (0,)),
    ("scattered.few", scattered, scattered_g, [N(20000), r.integers(0, 20000, 20000), 20000], (0,)),
    ("table", table, None, [N(100), N(20000), r.integers(0, 99, 20000)], (0, 1)),
    ("embedded", embedded, None, [N(1000, 32), N(32), r.integers(0, 1000, 5000)], (0, 1)),
    ("prefix", prefix, prefix_g, [N(20000) * .1], (0,)),
    *((f"{f.__name__}.{n}", f, None, [dominant(n), N(n)], (0, 1))
      for n in (64, 500, 8, 1000) for f in (triangular, likelihood, solution)),
    ("tridiagonal", tridiagonal, None, [N(10000) * .05, 2 + N(10000) * .1, N(10000) * .05, N(10000)], (0, 1, 2, 3)),
    ("deep", deep, None, [N(20000)], (0,)),
    ("molecule", molecule, None, [N(400, 3) * 2], (0,)),
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
    if f is not tridiagonal:
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
