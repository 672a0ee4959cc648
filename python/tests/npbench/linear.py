"""Products of matrices and vectors."""

import numpy as np

from . import Program


def gemm(alpha, beta, C, A, B):
    C[:] = alpha * A @ B + beta * C


def k2mm(alpha, beta, A, B, C, D):
    D[:] = alpha * A @ B @ C + beta * D


def k3mm(A, B, C, D):
    return A @ B @ C @ D


def atax(A, x):
    return (A @ x) @ A


def bicg(A, p, r):
    return r @ A, A @ p


def mvt(x1, x2, y_1, y_2, A):
    x1 += A @ y_1
    x2 += y_2 @ A


def gesummv(alpha, beta, A, B, x):
    return alpha * A @ x + beta * B @ x


def gemver(alpha, beta, A, u1, v1, u2, v2, w, x, y, z):
    A += np.outer(u1, v1) + np.outer(u2, v2)
    x += beta * y @ A + z
    w += alpha * A @ x


def doitgen(NR, NQ, NP, A, C4):
    A[:] = np.reshape(np.reshape(A, (NR, NQ, 1, NP)) @ C4, (NR, NQ, NP))


def symm(alpha, beta, C, A, B):
    temp2 = np.empty((C.shape[1],), dtype=C.dtype)
    C *= beta
    for i in range(C.shape[0]):
        for j in range(C.shape[1]):
            C[:i, j] += alpha * B[i, j] * A[i, :i]
            temp2[j] = B[:i, j] @ A[i, :i]
        C[i, :] += alpha * B[i, :] * A[i, i] + alpha * temp2


def syrk(alpha, beta, C, A):
    for i in range(A.shape[0]):
        C[i, :i + 1] *= beta
        for k in range(A.shape[1]):
            C[i, :i + 1] += alpha * A[i, k] * A[:i + 1, k]


def syr2k(alpha, beta, C, A, B):
    for i in range(A.shape[0]):
        C[i, :i + 1] *= beta
        for k in range(A.shape[1]):
            C[i, :i + 1] += A[:i + 1, k] * alpha * B[i, k] + B[:i + 1, k] * alpha * A[i, k]


def trmm(alpha, A, B):
    for i in range(B.shape[0]):
        for j in range(B.shape[1]):
            B[i, j] += np.dot(A[i + 1:, i], B[i + 1:, j])
    B *= alpha


def spmv(A_row, A_col, A_val, x):
    y = np.empty(A_row.size - 1, A_val.dtype)
    for i in range(A_row.size - 1):
        cols = A_col[A_row[i]:A_row[i + 1]]
        vals = A_val[A_row[i]:A_row[i + 1]]
        y[i] = vals @ x[cols]
    return y


def sparse_arguments(r, rows, columns, each):
    index = np.sort(np.array([r.choice(columns, each, replace=False) for _ in range(rows)]), axis=1)
    return np.arange(0, rows * each + 1, each), index.ravel(), r.random(rows * each), r.random(columns)


PROGRAMS = [
    Program(gemm, lambda r, i, j, k: (1.5, 1.2, r.random((i, j)), r.random((i, k)), r.random((k, j))), (3, 4, 5), (1000, 1100, 1200)),
    Program(k2mm, lambda r, i, j, k, m: (1.5, 1.2, r.random((i, k)), r.random((k, j)), r.random((j, m)), r.random((i, m))),
            (3, 4, 5, 2), (800, 850, 900, 950)),
    Program(k3mm, lambda r, i, j, k, m, n: (r.random((i, j)), r.random((j, k)), r.random((k, m)), r.random((m, n))),
            (3, 4, 5, 2, 3), (800, 850, 900, 950, 1000)),
    Program(atax, lambda r, m, n: (r.random((m, n)), r.random(n)), (4, 3), (4000, 5000)),
    Program(bicg, lambda r, m, n: (r.random((n, m)), r.random(m), r.random(n)), (4, 3), (5000, 6000)),
    Program(mvt, lambda r, n: (r.random(n), r.random(n), r.random(n), r.random(n), r.random((n, n))), (4,), (5500,)),
    Program(gesummv, lambda r, n: (1.5, 1.2, r.random((n, n)), r.random((n, n)), r.random(n)), (4,), (2000,)),
    Program(gemver, lambda r, n: (1.5, 1.2, r.random((n, n)), *(r.random(n) for _ in range(8))), (4,), (1000,)),
    Program(doitgen, lambda r, a, b, c: (a, b, c, r.random((a, b, c)), r.random((c, c))), (3, 4, 5), (60, 60, 128)),
    Program(symm, lambda r, m, n: (1.5, 1.2, r.random((m, n)), r.random((m, m)), r.random((m, n))), (4, 5), (40, 50)),
    Program(syrk, lambda r, m, n: (1.5, 1.2, r.random((n, n)), r.random((n, m))), (3, 5), (50, 70)),
    Program(syr2k, lambda r, m, n: (1.5, 1.2, r.random((n, n)), r.random((n, m)), r.random((n, m))), (3, 5), (35, 50)),
    Program(trmm, lambda r, m, n: (1.5, r.random((m, m)), r.random((m, n))), (4, 3), (65, 80)),
    Program(spmv, sparse_arguments, (5, 6, 3), (4096, 4096, 2)),
]
