"""Calls that captured code may make, each in a small function with arguments: the rows of `chainrule.supported()`."""

import math

import numpy as np
import scipy.special

rng = np.random.default_rng(7)
V, U = rng.normal(size=5), rng.normal(size=5)
A, B, S = rng.normal(size=(3, 4)), rng.normal(size=(4, 2)), rng.normal(size=(3, 3)) + 3 * np.eye(3)
SPD = S @ S.T
C = rng.normal(size=(2, 3, 4))
K = np.array([2, 0, 4, 2])

#: Names that a case covers, the function, its arguments.
CASES = [
    ("np.sum .sum", lambda v: (np.sum(v), v.sum()), (V,)),
    ("np.sum .sum", lambda a: (np.sum(a, axis=0), a.sum(axis=1), a.sum(-1), np.sum(a, axis=1, keepdims=True), a.sum(axis=(0, 1))), (A,)),
    ("np.sum", lambda k: (np.sum(k), np.sum(k > 1), k.sum(axis=0)), (K,)),
    ("np.prod .prod", lambda v, a: (np.prod(v), v.prod(), a.prod(axis=0)), (V, A)),
    ("np.mean .mean", lambda v, a: (np.mean(v), v.mean(), a.mean(axis=0), a.mean(axis=1, keepdims=True)), (V, A)),
    ("np.mean", lambda k: np.mean(k), (K,)),
    ("np.var .var np.std .std", lambda v, a: (np.var(v), v.std(), np.std(v, ddof=1), a.var(axis=0), np.std(a, axis=1)), (V, A)),
    ("np.max .max np.min .min", lambda v, a: (np.max(v), v.max(), np.min(v), v.min(), a.max(axis=0), a.min(axis=1)), (V, A)),
    ("np.any .any np.all .all", lambda v: (np.any(v > 0), np.all(v > 0), (v < 9).all(), (v < -9).any()), (V,)),
    ("np.dot .dot np.inner np.vdot", lambda v, u: (np.dot(v, u), v.dot(u), np.inner(v, u), np.vdot(v, u)), (V, U)),
    ("np.matmul np.dot", lambda a, b: (a @ b, np.matmul(a, b), np.dot(a, b), a @ b[:, 0], a[0] @ b, np.dot(a, 2.0)), (A, B)),
    ("np.matmul", lambda k: (k @ k, np.dot(k, k)), (K,)),
    ("np.outer", lambda v, u: np.outer(v, u[:3]), (V, U)),
    ("np.trace .trace np.diag", lambda s: (np.trace(s), s.trace(), np.diag(s), np.diag(s[0])), (S,)),
    ("np.cumsum .cumsum np.cumprod .cumprod", lambda v: (np.cumsum(v), v.cumsum(), np.cumprod(v), v.cumprod()), (V,)),
    ("np.cumsum", lambda k: np.cumsum(k), (K,)),
    ("np.linalg.norm", lambda v, a: (np.linalg.norm(v), np.linalg.norm(a)), (V, A)),
    ("np.linalg.solve np.linalg.inv np.linalg.det", lambda s, v: (np.linalg.solve(s, v[:3]), np.linalg.solve(s, s.T), np.linalg.inv(s), np.linalg.det(s)), (S, V)),
    ("np.linalg.cholesky", lambda s: np.linalg.cholesky(s @ s.T), (S,)),
    ("np.zeros np.ones np.empty np.full", lambda v: (np.zeros(3) + v[0], np.ones((2, 3)) * v[1], np.full(4, v[2]), np.full((2, 2), 3), np.empty(0), np.zeros(2, dtype=int)), (V,)),
    ("np.zeros_like np.ones_like np.empty_like np.full_like", lambda v, k: (np.zeros_like(v), np.ones_like(v) * v, np.full_like(v, 2.5), np.zeros_like(k), np.empty_like(v) * 0 + 1), (V, K)),
    ("np.arange", lambda v: (np.arange(5), np.arange(2, len(v)), np.arange(9, 1, -3), np.arange(4.0 > 3)), (V,)),
    ("np.linspace", lambda v: np.linspace(v[0], v[1], 7), (V,)),
    ("np.eye np.identity", lambda s: (np.eye(3) * s, np.identity(2), np.eye(s.shape[0])), (S,)),
    ("np.array np.asarray np.ascontiguousarray", lambda v: (np.array([v[0], 1.0, v[1] * v[2]]), np.asarray(v), np.array([[1, 2], [3, 4]]), np.ascontiguousarray(v)), (V,)),
    ("np.copy .copy .astype", lambda v, k: (np.copy(v), v.copy(), k.astype(float), k.astype(np.float64) * v[0], (v > 0).astype(int)), (V, K)),
    ("np.transpose .transpose .T", lambda a, c, v: (np.transpose(a), a.T, a.transpose(), c.T, v.T), (A, C, V)),
    ("np.ravel .ravel .flatten", lambda a, v: (np.ravel(a), a.ravel(), a.flatten(), v.ravel()), (A, V)),
    ("np.concatenate np.stack", lambda v, u, a: (np.concatenate([v, u]), np.concatenate((a, a)), np.stack([v, u]), np.concatenate([v, v[:2], u])), (V, U, A)),
    ("np.where", lambda v, u: (np.where(v > 0, v, u), np.where(v > u, v, 0.0), np.where(v[0] > 0, v, 1)), (V, U)),
    ("np.diff", lambda v: np.diff(v), (V,)),
    ("np.shape np.size np.ndim .shape .size .ndim len", lambda a, v: (a.shape, np.shape(v), a.size, v.size, np.size(a), a.ndim, np.ndim(v), len(a)), (A, V)),
    ("range enumerate zip reversed", lambda v, u: (sum(v[i] for i in range(5)), sum(i * x for i, x in enumerate(v)), sum(x * y for x, y in zip(v, u)), [x * 2 for x in reversed(v)][0]), (V, U)),
    ("sum", lambda v, a: (sum(v), sum(x * x for x in v), sum([1, 2, 3]), sum(a), sum(a[i, j] for i in range(3) for j in range(4) if i != j)), (V, A)),
    ("math.fsum", lambda v: math.fsum(v), (V,)),
    ("min max abs", lambda v: (min(v[0], v[1]), max(v[0], v[1], 0.1), abs(v[0]), max(v), min(v), abs(v), max(1, 2)), (V,)),
    ("float int bool", lambda v, k: (float(k[0]) * v[0], int(k[1]), float(3), int(2.5), bool(v[0] > 0)), (V, K)),
    ("tuple list", lambda v: (tuple((v[0], 1.0))[0], list((v[0], v[1]))[1]), (V,)),
    ("divmod pow", lambda v, k: (divmod(k[0], 3), pow(v[0], 3), divmod(v[0], 0.3)[1]), (V, K)),
    ("np.float64 np.int64", lambda v, k: (np.float64(k[0]) * v[0], np.int64(k[1]) + 1), (V, K)),
    (".item", lambda v: v[0].item(), (V,)),
    (".clip", lambda v: v.clip(-0.5, 0.5), (V,)),
    ("scipy.special.logsumexp", lambda v, a: (scipy.special.logsumexp(v), scipy.special.logsumexp(a, axis=1), scipy.special.logsumexp(a), scipy.special.logsumexp(a, axis=0, keepdims=True)), (V, A)),
]

#: Indices.
INDEXING = [
    lambda v: (v[0], v[-1], v[1:], v[:-1], v[1:3], v[-3:-1], v[::-1], v[4:1:-1], v[1:4:2], v[:], v[...]),
    lambda v, a: (a[0], a[1, 2], a[-1, -1], a[:, 1], a[1], a[1:, :2], a[:, -1], a[::-1], a[:, ::-1], a[..., 0], a[0, ...], a[0][1], a[1:][0]),
    lambda v, a, c: (c[0, 1], c[:, 1], c[..., 2], c[1, :, 2], c[:, :, 0], c[1, 1:, 0:4:2]),
    lambda v: (v[:, None] * v[None, :], v[None], v[:, None, None] + v[None, :, None], v[np.newaxis, 1:3]),
    lambda v, a, c, k: (v[k], a[:, k % 4], a[k % 3], c[0][k % 3]),
    lambda v, a, c, k: (c[:, 1, k % 4], v[[0, 2, 1]], v[k][1]),
    lambda v, a, c, k: (v[k[1] + 1], a[k[0] % 3, k[1]], v[: len(v) - 2], v[len(v) // 2 :][0]),
    lambda v: (np.sum(v[::2]), np.sum(v[1::2] * v[1::2]), v[::-2].sum(), np.sum(np.exp(v[::2]) / 2)),
    lambda v: ((v[0], v[1], v[2])[1], [v[0], v[1]][-1], (v[0], v[1], v[2])[1:][0]),
]
INDEXED = (V, A, C, K)
