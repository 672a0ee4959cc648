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
    ("np.reshape .reshape", lambda a, c, v: (np.reshape(a, (4, 3)), a.reshape(2, 6), a.reshape(-1), np.reshape(c, (6, -1)), c.reshape((2, 12)), a.reshape(3, 1, 4), np.reshape(v, (1, 5, 1)), c.reshape(-1, 4)), (A, C, V)),
    ("np.reshape", lambda k: k.reshape(2, 2), (K,)),
    ("np.swapaxes np.moveaxis np.transpose .swapaxes", lambda c, a: (np.swapaxes(c, 0, 2), np.moveaxis(c, 0, -1), np.transpose(c, (1, 2, 0)), c.transpose(2, 0, 1), c.transpose((0, 2, 1)), a.swapaxes(0, 1)), (C, A)),
    ("np.expand_dims np.squeeze .squeeze", lambda v, a: (np.expand_dims(v, 0), np.expand_dims(a, 1), np.expand_dims(a, -1), np.squeeze(v[None]), np.squeeze(a[:, None], axis=1), v[None, :, None].squeeze()), (V, A)),
    ("np.flip np.fliplr np.flipud", lambda v, a: (np.flip(v), np.flip(a), np.flip(a, axis=1), np.fliplr(a), np.flipud(a)), (V, A)),
    ("np.roll", lambda v, a: (np.roll(v, 2), np.roll(v, -1), np.roll(a, 1, axis=1), np.roll(a, 5), np.roll(a, -2, axis=0)), (V, A)),
    ("np.tril np.triu np.tri", lambda s, a: (np.tril(s), np.triu(s), np.tril(a, -1), np.triu(a, k=1), np.tri(3), np.tri(2, 3, 1)), (S, A)),
    ("np.hstack np.vstack np.column_stack", lambda v, u, a: (np.hstack([v, u]), np.vstack([v, u]), np.column_stack([v, u]), np.hstack((a, a[:, :2])), np.vstack([a, a[:1]]), np.hstack([v[0], v[1]])), (V, U, A)),
    ("np.concatenate np.stack", lambda a, v, u: (np.concatenate([a, a], axis=1), np.concatenate([a, a[:, 1:]], axis=-1), np.concatenate([a, v[None, :4]], axis=None), np.stack([v, u], axis=1), np.stack([v, u], axis=-1)), (A, V, U)),
    ("np.atleast_1d np.atleast_2d", lambda v: (np.atleast_1d(v[0]), np.atleast_1d(v), np.atleast_2d(v), np.atleast_2d(v[1])), (V,)),
    ("np.repeat .repeat np.tile", lambda v, a: (np.repeat(v, 3), v.repeat(2), np.repeat(a, 2, axis=1), np.tile(v, 2), np.tile(a, (2, 1)), np.tile(v, (2, 2))), (V, A)),
    ("np.broadcast_to", lambda v, a: (np.broadcast_to(v, (3, 5)), np.broadcast_to(a[:1], (2, 4)), np.broadcast_to(v[0], (2,))), (V, A)),
    ("np.meshgrid", lambda v, u: (*np.meshgrid(v, u[:3]), *np.meshgrid(v[:2], u, indexing="ij")), (V, U)),
    ("np.einsum", lambda a, b, s, v: (np.einsum("ij,jk->ik", a, b), np.einsum("ij->ji", a), np.einsum("ii", s), np.einsum("ij,ij", a, a), np.einsum("i,j->ij", v, v), np.einsum("ij->", a), np.einsum("ij,kj->ik", a, a), np.einsum("ii->i", s)), (A, B, S, V)),
    ("np.tensordot", lambda a, b, c: (np.tensordot(a, b, 1), np.tensordot(a, c, axes=([0, 1], [1, 2])), np.tensordot(c, c, axes=3), np.tensordot(a, a, axes=(1, 1)), np.tensordot(a[0], a[1], 0)), (A, B, C)),
    ("np.kron np.cross", lambda v, u, s, a: (np.kron(v, u), np.kron(s, a[:2]), np.cross(v[:3], u[:3]), np.cross(s, u[:3])), (V, U, S, A)),
    ("np.matmul", lambda c, b, v: (c @ b, c @ c.transpose(0, 2, 1), c[None] @ b, v[:3] @ c, c @ v[:4], np.matmul(c[:, None], b)), (C, B, V)),
    ("np.dot np.inner np.vdot np.outer", lambda c, b, a, v: (np.dot(c, b), np.dot(a, c[0].T), np.inner(a, a), np.vdot(a, a), np.outer(a, v), np.inner(c, v[:4]), np.dot(c, v[:4])), (C, B, A, V)),
    ("np.average np.ptp", lambda v, u, a: (np.average(v), np.average(v, weights=u * u), np.average(a, axis=0), np.average(a, axis=1, weights=u[:4] ** 2), np.ptp(v), np.ptp(a, axis=0)), (V, U, A)),
    ("np.cov np.corrcoef", lambda a, v: (np.cov(a), np.cov(a, rowvar=False), np.cov(a, bias=True), np.cov(a, ddof=0), np.corrcoef(a), np.cov(v)), (A, V)),
    ("np.argmax np.argmin .argmax .argmin np.count_nonzero", lambda v, a, k: (np.argmax(v), np.argmin(v), a.argmax(axis=0), a.argmin(axis=1), np.argmax(a), v.argmax(), np.count_nonzero(v > 0), np.count_nonzero(k), v[np.argmax(v)]), (V, A, K)),
    ("np.cumsum np.cumprod .cumsum", lambda a, c: (np.cumsum(a), np.cumsum(a, axis=0), np.cumsum(a, axis=1), np.cumprod(a, axis=-1), c.cumsum(axis=1)), (A, C)),
    ("np.diff", lambda v, a: (np.diff(v, n=2), np.diff(a), np.diff(a, axis=0)), (V, A)),
    ("np.linalg.norm", lambda v, a: (np.linalg.norm(a, axis=1), np.linalg.norm(a, axis=0, keepdims=True), np.linalg.norm(v, 1), np.linalg.norm(v, np.inf), np.linalg.norm(v, 3), np.linalg.norm(a, "fro"), np.linalg.norm(v, ord=2)), (V, A)),
    ("np.linalg.slogdet np.linalg.matrix_power", lambda s: (*np.linalg.slogdet(s), np.linalg.matrix_power(s, 3), np.linalg.matrix_power(s, -2), np.linalg.matrix_power(s, 0), np.linalg.matrix_power(s, 1)), (S,)),
    ("np.linspace np.eye", lambda v: (np.linspace(v[0], v[1], 5, endpoint=False), np.linspace(0, 1, 4, dtype=float), np.eye(2, 3), np.eye(3, k=1), np.eye(3, 4, -1)), (V,)),
    ("np.ndarray .dtype", lambda v, k: (np.ndarray(3, dtype=float) * 0 + v[0], np.zeros(2, dtype=v.dtype), np.ones(2, dtype=k.dtype), np.zeros_like(v, dtype=k.dtype)), (V, K)),
    ("np.select", lambda v: np.select([v > 0.5, v > 0], [v * 2, v * v], default=-1.0), (V,)),
    ("np.polyval np.trapezoid np.interp", lambda v, u: (np.polyval(v, 0.7), np.polyval(v, u), np.trapezoid(v), np.trapezoid(v, np.cumsum(u * u)), np.trapezoid(v, dx=0.5), np.interp(0.3, np.arange(5.0), v), np.interp(u, np.arange(5.0), v)), (V, U)),
    ("math.prod math.dist math.sumprod", lambda v, u: (math.prod(v), math.dist(v, u), math.log(v[0] ** 2 + 1, 3)), (V, U)),
    ("scipy.special.softmax scipy.special.log_softmax", lambda v, a: (scipy.special.softmax(v), scipy.special.softmax(a, axis=1), scipy.special.log_softmax(v), scipy.special.log_softmax(a, axis=0)), (V, A)),
    ("np.outer", lambda v, u, a: (np.add.outer(v, u), np.maximum.outer(v, u[:2]), np.multiply.outer(a, v), np.add.reduce(a), np.multiply.reduce(v), np.maximum.reduce(a, axis=1), np.add.accumulate(v), np.multiply.accumulate(a)), (V, U, A)),
    ("np.where", lambda v, a: (v[v > 0].sum(), np.sum(np.exp(v[v > 0])), a[a > 0].mean(), np.mean(v[v < 0] ** 2), v[v > 0].size, np.std(v[v > -1]), (v[v > 0] * v[v > 0]).sum(), len(v[v < 0]), np.prod(v[v > 0])), (V, A)),
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
    ("math.floor math.ceil math.trunc round int .astype np.int64", lambda v, k: (
        math.floor(3 * v[0]), math.ceil(3 * v[0]), math.trunc(-2.5 * v[1]), round(10 * v[2]), round(2.5), int(-3 * v[3]), (5 * v).astype(int),
        np.floor(v).astype(np.int64), int(1e15 + v[0]), np.int64(7.9 * v[4]), math.floor(k[0]), round(k[1])), (V, K)),
    ("np.sort np.argsort", lambda v, a, k: (np.sort(v), np.argsort(v), v[np.argsort(v)] * v, np.sort(a), np.argsort(-a, axis=1), np.sort(k), np.argsort(k, axis=-1),
                                            np.sort(v)[::-1]), (V, A, K)),
    ("np.searchsorted np.take", lambda v, a, k: (np.searchsorted(np.sort(v), v), np.searchsorted(np.arange(4.0), 1.0), np.searchsorted(k[:2] * 0 + 1, 1, side="right"),
                                                 np.take(v, k), np.take(a, k % 3, axis=0), np.take(a, k % 4, axis=1), np.take(a, 5), np.take(a, 1, axis=1)), (V, A, K)),
    ("any all", lambda v: (any(x > 1 for x in v), all(x > -9 for x in v), any([v[0] > 9, v[1] > 9]), all((v > 9)), v * any((True, False))), (V,)),
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
    lambda v, a, c, k: (v[k[:, None]], v[k.reshape(2, 2)], a[k % 3, k % 4], a[k[:, None] % 3, k % 4], c[k % 2, :, k % 4], c[:, k % 3, k % 4], c[1, :, k % 4], c[k % 2, 1], c[0, k % 3, 2]),
    lambda v: (v[3:100], v[-100:2], v[7:9], v[4:1], v[::-1][1:], v[-2::-1], v[1:-1:2], v[5:0:-2], v[:-6:-1]),
    lambda v, a: (v[0:1] * v, a[:, 0:1] + v[:4], a[1:2] * a, a[:1, :1] - a),
    lambda v: ((v[0], v[1], v[2])[1], [v[0], v[1]][-1], (v[0], v[1], v[2])[1:][0]),
]
INDEXED = (V, A, C, K)
