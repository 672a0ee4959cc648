"""Programs as people write them, of many kinds; each with arguments at which it is compared with NumPy."""

import math
from collections import namedtuple
from dataclasses import dataclass, field
from functools import partial, reduce

import numpy as np

rng = np.random.default_rng(11)
V, U, W = rng.normal(size=6), rng.normal(size=6), rng.random(6) + 0.5
A, B, S = rng.normal(size=(4, 3)), rng.normal(size=(3, 5)), rng.normal(size=(4, 4)) + 4 * np.eye(4)
X = rng.normal(size=(7, 3))
LABELS = np.array([0, 2, 1, 1, 0, 2, 1])
EDGES = np.array([[0, 1], [1, 2], [2, 3], [3, 0], [0, 2]])

GRAVITY = 9.81
COEFFICIENTS = (1.0, -0.5, 0.25)
SETTINGS = {"rate": 0.1, "steps": 4}
STENCIL = [(-1, 1.0), (0, -2.0), (1, 1.0)]


def attention(x, y):
    """Scaled dot products with a causal mask."""
    scores = x @ y / np.sqrt(x.shape[-1])
    mask = np.tril(np.ones((x.shape[0], y.shape[1])))
    scores = np.where(mask == 0, -1e9, scores)
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def cross_entropy(x, w, labels):
    """Logits gathered at labels."""
    logits = x @ w
    logits = logits - np.max(logits, axis=1, keepdims=True)
    log_p = logits - np.log(np.sum(np.exp(logits), axis=1, keepdims=True))
    return -np.mean(log_p[np.arange(len(labels)), labels])


def pairwise_distances(x):
    diff = x[:, None, :] - x[None, :, :]
    return np.sqrt(np.sum(diff ** 2, axis=-1) + 1e-3)


def gaussian_kernel(x, y, length=1.3, *, noise=1e-2):
    sq = np.sum(x ** 2, 1)[:, None] + np.sum(y ** 2, 1)[None, :] - 2 * x @ y.T
    k = np.exp(-0.5 * sq / length ** 2)
    if x.shape[0] == y.shape[0]:
        k = k + noise * np.eye(x.shape[0])
    return k


def gp_likelihood(x, y, length):
    """Log marginal likelihood of a Gaussian process."""
    k = gaussian_kernel(x, x, length, noise=0.1)
    chol = np.linalg.cholesky(k)
    alpha = np.linalg.solve(k, y)
    return -0.5 * y @ alpha - np.log(np.diag(chol)).sum() - 0.5 * len(y) * np.log(2 * np.pi)


def piecewise(x):
    return np.where(x < -1, -x - 0.5, np.where(x < 1, 0.5 * x ** 2, x - 0.5))


def huber_with_masks(x):
    out = np.empty_like(x)
    small = np.abs(x) <= 0.5
    out[small] = 0.5 * x[small] ** 2
    out[~small] = 0.5 * (np.abs(x[~small]) - 0.25)
    return out.sum()


def scatter(x, edges):
    """Forces added to both ends of springs."""
    force = np.zeros_like(x)
    d = x[edges[:, 1]] - x[edges[:, 0]]
    np.add.at(force, edges[:, 0], d)
    np.add.at(force, edges[:, 1], -d)
    return force


def segment_sum(v, labels):
    totals = np.zeros(3)
    for value, label in zip(v, labels):
        totals[label] += value ** 2
    return totals


def horner(x):
    result = 0.0
    for c in reversed(COEFFICIENTS):
        result = result * x + c
    return result


def newton_sqrt(a, tol=1e-10):
    x = a
    n = 0
    while True:
        new = 0.5 * (x + a / x)
        if abs(new - x) < tol or n > 50:
            break
        x, n = new, n + 1
    return x


def bisect(lo, hi, target):
    for _ in range(60):
        mid = (lo + hi) / 2
        if mid ** 3 + mid < target:
            lo = mid
            continue
        hi = mid
    return (lo + hi) / 2


def first_above(v, limit):
    """Early return out of a loop."""
    for i in range(len(v)):
        if v[i] > limit:
            return v[i] * i
    return v[0] - limit


def runge_kutta(y0, t1, n=8):
    def f(t, y):
        return np.array([y[1], -np.sin(y[0]) - 0.1 * y[1] + 0.05 * t])

    h = t1 / n
    y = np.array(y0)
    for k in range(n):
        t = k * h
        k1 = f(t, y)
        k2 = f(t + h / 2, y + h / 2 * k1)
        k3 = f(t + h / 2, y + h / 2 * k2)
        k4 = f(t + h, y + h * k3)
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return y


def verlet(q, p):
    trajectory = np.zeros((5, q.shape[0]))
    for k in range(5):
        p = p - 0.05 * q ** 3
        q = q + 0.1 * p
        p -= 0.05 * q ** 3
        trajectory[k] = q
    return trajectory, p


def elu(x, alpha=1.0):
    return np.where(x > 0, x, alpha * (np.exp(np.minimum(x, 0)) - 1))


def layers(x, weights, biases):
    h = x
    for w, b in zip(weights, biases):
        h = np.tanh(h @ w + b)
    return h.sum()


def layer_norm(x, gain, bias, eps=1e-5):
    mu = x.mean(axis=-1, keepdims=True)
    sigma = np.sqrt(x.var(axis=-1, keepdims=True) + eps)
    return gain * (x - mu) / sigma + bias


def moving_average(v, n=3):
    c = np.cumsum(v)
    c[n:] = c[n:] - c[:-n].copy()
    return c[n - 1:] / n


def ar1(v, phi):
    e = np.zeros(len(v))
    e[0] = v[0]
    for t in range(1, len(v)):
        e[t] = v[t] - phi * v[t - 1]
    return -0.5 * np.sum(e[1:] ** 2) + 0.5 * np.log(1 - phi ** 2 + 1)


def garch(returns, omega, alpha, beta):
    sigma2 = np.var(returns)
    ll = 0.0
    for r in returns:
        sigma2 = omega + alpha * r ** 2 + beta * sigma2
        ll += -0.5 * (np.log(sigma2) + r ** 2 / sigma2)
    return ll


def hmm_forward(log_start, log_move, log_emit):
    alpha = log_start + log_emit[0]
    for t in range(1, log_emit.shape[0]):
        m = alpha.max()
        alpha = np.log(np.exp(alpha - m) @ np.exp(log_move)) + m + log_emit[t]
    top = alpha.max()
    return top + np.log(np.sum(np.exp(alpha - top)))


def viterbi(score, move):
    best = score[0]
    for row in score[1:]:
        best = np.max(best[:, None] + move, axis=0) + row
    return np.max(best)


def argmax_gather(x):
    k = np.argmax(x, axis=1)
    return x[np.arange(x.shape[0]), k] * 2 + k


def even_and_odd(v):
    return np.sum(v[::2] ** 2) - np.sum(v[1::2]), v[::-1] - v, v[-2:] * v[:2]


def reversed_loop(v):
    total = 0.0
    for i in range(len(v) - 1, 0, -2):
        total = 0.5 * total + v[i] * v[i - 1]
    return total


def comprehension(v, w):
    squares = np.array([x ** 2 for x in v])
    products = [a * b for a, b in zip(v, w)]
    return squares + np.array(products) + np.array([np.sin(k) for k in range(len(v))])


def total_of_pairs(v):
    n = len(v)
    return sum(abs(v[i] - v[j]) for i in range(n) for j in range(i + 1, n))


def list_of_lists(a, b):
    rotation = np.array([[np.cos(a), -np.sin(a)], [np.sin(a), np.cos(a)]])
    return rotation @ np.array([b, 1.0])


def rodrigues(r, p):
    theta = np.sqrt(r @ r)
    k = r / theta
    return p * np.cos(theta) + np.cross(k, p) * np.sin(theta) + k * (k @ p) * (1 - np.cos(theta))


def skew_product(w, v):
    K = np.zeros((3, 3))
    K[0, 1], K[0, 2] = -w[2], w[1]
    K[1, 0], K[1, 2] = w[2], -w[0]
    K[2, 0], K[2, 1] = -w[1], w[0]
    return K @ v + (np.eye(3) + K + K @ K / 2) @ v


Pose = namedtuple("Pose", "x y angle")


@dataclass
class Arm:
    length: float
    angle: float = 0.3
    gain: float = field(default=2.0)

    def tip(self):
        return self.length * np.cos(self.angle), self.length * np.sin(self.angle)

    @property
    def energy(self):
        return self.gain * self.length ** 2


def with_records(a, b):
    arm = Arm(a, angle=b)
    pose = Pose(*arm.tip(), angle=b)
    pose = pose._replace(x=pose.x + 1)
    x, y, angle = pose
    return x * y + angle * arm.energy


def with_dict(v):
    state = {"x": v, "n": 0}
    for _ in range(SETTINGS["steps"]):
        state["x"] = state["x"] - SETTINGS["rate"] * state["x"] ** 2
        state["n"] += 1
    return state["x"] * state["n"]


def stencil_from_constants(v):
    out = np.zeros_like(v)
    for shift, weight in STENCIL:
        out += weight * np.roll(v, shift)
    return out


def many_operations(x, y):
    def apply(f, *args, scale=1.0):
        return scale * f(*args)

    add = lambda a, b: a + b
    return apply(add, x, y) + apply(np.sin, x, scale=2) - apply(lambda a: a ** 2, y)


def make_adder(k):
    def adder(x):
        return x + k

    return adder


add_gravity = make_adder(GRAVITY)


def closures(x):
    double = partial(np.multiply, 2.0)
    return add_gravity(x) * double(x)


def einsum_chain(a, b):
    return np.einsum("ij,jk,lk->il", a, b, b.T @ b @ b.T if False else a @ b), np.einsum("ij,ij->i", a, a), np.einsum("ij->j", a)


def determinant_and_inverse(s):
    sign, logdet = np.linalg.slogdet(s)
    return logdet * sign + np.trace(np.linalg.inv(s)) + np.linalg.det(s) ** 0.5


def least_squares(a, y):
    return np.linalg.solve(a.T @ a + 0.1 * np.eye(a.shape[1]), a.T @ y)


def power_iteration(s):
    v = np.ones(s.shape[0])
    for _ in range(20):
        v = s @ v
        v /= np.linalg.norm(v)
    return v @ s @ v


def clip_and_sign(v):
    return np.clip(v, -0.5, 0.5) * np.sign(v) + np.maximum(v, 0) - np.minimum(v, 0) ** 2 + np.abs(v) ** 1.5


def nested_ifs(x, y):
    if x > y:
        if x > 2 * y:
            z = x * y
        else:
            z = x + y
    elif x == y:
        z = x
    else:
        z = x - y
    return z ** 2 if z > 0 else -z


def chained_comparison(v, a):
    return sum(x if -a < x < a else a * x / abs(x) for x in v)


def triangle_loops(s):
    n = s.shape[0]
    total = 0.0
    for i in range(n):
        for j in range(i):
            total += s[i, j] * s[j, i]
        for j in range(i + 1, n):
            if (i + j) % 2 == 0:
                continue
            total -= s[i, j]
    return total


def swap_rows(s):
    s = s.copy()
    s[[0, 1]] = s[[1, 0]]
    s[:, 2] *= 2.0
    s[1:3, 1:3] += s[0, 0]
    s[-1, ...] = s[0]
    return s


def collatz_scaled(x, n):
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        x = x * 0.9 + 0.01
        steps += 1
    return x * steps


def trapezoid_by_hand(f0, f1, n):
    x = np.linspace(f0, f1, n)
    y = np.exp(-x ** 2)
    return np.sum((y[1:] + y[:-1]) / 2 * np.diff(x))


def fold_with_reduce(v):
    return reduce(lambda a, b: a * 0.5 + b, v)


def convolution(v, kernel):
    n, k = len(v), len(kernel)
    out = np.zeros(n - k + 1)
    for i in range(n - k + 1):
        out[i] = np.dot(v[i:i + k], kernel[::-1])
    return out


def matrix_in_blocks(a, b):
    top = np.hstack([a, a * 2])
    bottom = np.concatenate([a - 1, a * a], axis=1)
    return np.vstack((top, bottom)) @ b


def stacked_and_split(x):
    a, b, c = x.T
    first, *rest = a
    return np.stack([a * b, b * c, c * a], axis=-1), first + sum(rest)


def math_functions(x, y):
    return math.hypot(x, y) + math.atan2(y, x) * math.exp(-x) + math.log1p(y * y) + math.pi * math.floor(x)


def any_all(v):
    if np.any(v > 10) or not np.all(v < 10):
        return v * 2
    return np.where((v > 0) & ~(v > 1) | (v < -1), v ** 2, 1.0 + v)


def sorted_by_hand(v):
    """An insertion sort by swaps."""
    v = v.copy()
    for i in range(1, len(v)):
        j = i
        while j > 0 and v[j - 1] > v[j]:
            v[j - 1], v[j] = v[j], v[j - 1]
            j -= 1
    return v * np.arange(len(v))


def string_option(v, mode="sum"):
    if mode == "sum":
        return v.sum()
    elif mode in ("mean", "average"):
        return v.mean()
    raise ValueError(f"unknown mode {mode}")


def none_default(x, w=None):
    if w is None:
        w = np.ones(x.shape[0]) / x.shape[0]
    return w @ x


def repeated_assignment(x):
    a = b = x ** 2
    (c, d), e = (a, b + 1), a
    c += 1
    return c + d * e


def global_minimum_of_grid(x, y):
    gx, gy = np.meshgrid(x, y)
    z = gx ** 2 + 0.5 * gy ** 2 - gx * gy
    return z.min(), np.unravel_index(0, (2, 3))[0] + z[0, 0]


def outer_ops(v, w):
    return np.outer(v, w) - np.subtract.outer(v, w) + np.tensordot(v, w, axes=0)


def axis_sums(x):
    centred = x - x.mean(axis=0)
    cov = centred.T @ centred / (len(x) - 1)
    scale = np.sqrt(np.diag(cov))
    return cov / scale[:, None] / scale[None, :], x.sum(axis=1), x.max(axis=0)


def black_scholes(s, k, t, r, sigma):
    d1 = (np.log(s / k) + (r + 0.5 * sigma ** 2) * t) / (sigma * np.sqrt(t))
    d2 = d1 - sigma * np.sqrt(t)
    cdf = lambda z: 0.5 * (1.0 + math.erf(z / math.sqrt(2.0)))
    return s * cdf(d1) - k * math.exp(-r * t) * cdf(d2)


def lennard_jones(x):
    n, e = x.shape[0], 0.0
    for i in range(n - 1):
        d = x[i + 1:] - x[i]
        r2 = (d * d).sum(axis=1) + 0.5
        inv6 = r2 ** -3
        e += np.sum(4 * (inv6 ** 2 - inv6))
    return e


def upwind(u, c):
    for _ in range(3):
        left = np.concatenate(([u[-1]], u[:-1]))
        u = u - c * (u - left)
    return u


def thomas(a, b, c, d):
    """A tridiagonal system."""
    n = len(d)
    cp, dp = np.zeros(n), np.zeros(n)
    cp[0], dp[0] = c[0] / b[0], d[0] / b[0]
    for i in range(1, n):
        m = b[i] - a[i] * cp[i - 1]
        cp[i] = c[i] / m
        dp[i] = (d[i] - a[i] * dp[i - 1]) / m
    x = np.empty(n)
    x[-1] = dp[-1]
    for i in reversed(range(n - 1)):
        x[i] = dp[i] - cp[i] * x[i + 1]
    return x


def k_means_step(x, labels):
    centers = np.zeros((3, x.shape[1]))
    for k in range(3):
        centers[k] = x[labels == k].mean(axis=0)
    return centers, np.argmin(((x[:, None] - centers) ** 2).sum(-1), axis=1)


def masked_rows(x, v, labels):
    first = x[labels == 1]
    x = x.copy()
    x[labels == 2] = v
    x[labels == 0] *= 2.0
    return first.sum(), first.mean(), np.sum(first ** 2, axis=0), first.std(axis=0), (first - v).sum(axis=0), len(first), first.size, x, x[x > 0].sum(axis=0)


def interpolate(table, t):
    """Linear interpolation at an index that is computed from a float."""
    i = int(np.floor(t))
    i = min(max(i, 0), len(table) - 2)
    f = t - i
    return (1 - f) * table[i] + f * table[i + 1]


def bilinear(image, px, py):
    x0, y0 = np.floor(px).astype(int), np.floor(py).astype(int)
    fx, fy = px - x0, py - y0
    top = (1 - fx) * image[y0, x0] + fx * image[y0, x0 + 1]
    bottom = (1 - fx) * image[y0 + 1, x0] + fx * image[y0 + 1, x0 + 1]
    return (1 - fy) * top + fy * bottom


def bit_tricks(x, n):
    odd = n & 1
    mask = (n >> 2) & 0b11
    parity = 0
    while n:
        parity ^= n & 1
        n >>= 1
    return x * (odd + 2 * mask) + x ** 2 * (parity | 4) + (~odd << 3)


def legendre_quadrature(a, b):
    nodes, weights = np.polynomial.legendre.leggauss(5)
    x = 0.5 * (b - a) * nodes + 0.5 * (a + b)
    return 0.5 * (b - a) * np.sum(weights * np.exp(-x * x)) + math.comb(5, 2) / math.factorial(4)


#: Programs with their arguments.
PROGRAMS = [
    (attention, (A, B)), (cross_entropy, (X, rng.normal(size=(3, 3)), LABELS)), (pairwise_distances, (X,)),
    (gaussian_kernel, (X, X[:5])), (gp_likelihood, (X, X[:, 0].copy(), 1.5)), (piecewise, (3 * V,)), (huber_with_masks, (V,)),
    (scatter, (A, EDGES)), (segment_sum, (X[:, 1].copy(), LABELS)), (horner, (0.7,)), (newton_sqrt, (2.5,)), (bisect, (0, 4, 7)),
    (first_above, (V, 0.3)), (runge_kutta, (np.array([0.5, 0.1]), 1.5)), (verlet, (V, U)), (elu, (V,)),
    (layers, (X, (rng.normal(size=(3, 4)), rng.normal(size=(4, 4))), (rng.normal(size=4), rng.normal(size=4)))),
    (layer_norm, (X, V[:3].copy(), U[:3].copy())), (moving_average, (V,)), (ar1, (V, 0.6)), (garch, (V, 0.1, 0.1, 0.8)),
    (hmm_forward, (V[:3].copy(), rng.normal(size=(3, 3)), rng.normal(size=(5, 3)))), (viterbi, (X, rng.normal(size=(3, 3)))),
    (argmax_gather, (X,)), (even_and_odd, (V,)), (reversed_loop, (V,)), (comprehension, (V, U)), (total_of_pairs, (V,)),
    (list_of_lists, (0.4, 1.2)), (rodrigues, (V[:3].copy(), U[:3].copy())), (skew_product, (V[:3].copy(), U[:3].copy())),
    (with_records, (1.2, 0.4)), (with_dict, (V,)), (stencil_from_constants, (V,)), (many_operations, (0.3, 1.4)), (closures, (V,)),
    (einsum_chain, (A, B)), (determinant_and_inverse, (S,)), (least_squares, (X, X[:, 0] ** 2)), (power_iteration, (S,)),
    (clip_and_sign, (V,)), (nested_ifs, (0.7, 0.2)), (nested_ifs, (0.3, 0.2)), (nested_ifs, (0.1, 0.2)), (chained_comparison, (V, 0.6)),
    (triangle_loops, (S,)), (swap_rows, (S,)), (collatz_scaled, (0.4, 6)), (trapezoid_by_hand, (-0.5, 1.5, 9)), (fold_with_reduce, (V,)),
    (convolution, (V, W[:3].copy())), (matrix_in_blocks, (A, rng.normal(size=(6, 2)))), (stacked_and_split, (X,)), (math_functions, (0.7, 1.1)),
    (any_all, (V,)), (sorted_by_hand, (V,)), (string_option, (V,)), (string_option, (V, "mean")), (none_default, (A,)), (none_default, (A, W[:4].copy())),
    (repeated_assignment, (1.3,)), (global_minimum_of_grid, (V, U[:4].copy())), (outer_ops, (V, U[:4].copy())), (axis_sums, (X,)),
    (k_means_step, (X, LABELS)), (masked_rows, (X, V[:3].copy(), LABELS)), (interpolate, (V, 2.3)), (interpolate, (V, -0.7)), (bilinear, (A, 1.5 * W[:3] / 2, 1.5 * W[3:])),
    (bit_tricks, (0.7, 45)), (bit_tricks, (0.7, 2)), (legendre_quadrature, (-0.3, 1.2)),
    (black_scholes, (100.0, 95.0, 0.5, 0.02, 0.3)), (lennard_jones, (X,)), (upwind, (V, 0.4)), (thomas, (V / 9, W + 2, U / 9, V)),
]
