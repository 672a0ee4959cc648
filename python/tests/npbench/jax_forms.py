"""The programs in JAX, as its users write them: what a call returns or writes is returned, loops are `fori_loop` or `scan`.

Integers are static. Programs without a form here are those that JAX cannot differentiate in reverse, or that have no floats.
"""

import jax
import jax.numpy as jnp
from jax.lax import fori_loop, scan


def jacobi_1d(steps, A, B):
    def step(t, s):
        A, B = s
        B = B.at[1:-1].set(0.33333 * (A[:-2] + A[1:-1] + A[2:]))
        A = A.at[1:-1].set(0.33333 * (B[:-2] + B[1:-1] + B[2:]))
        return A, B
    return fori_loop(1, steps, step, (A, B))


def jacobi_2d(steps, A, B):
    def step(t, s):
        A, B = s
        B = B.at[1:-1, 1:-1].set(0.2 * (A[1:-1, 1:-1] + A[1:-1, :-2] + A[1:-1, 2:] + A[2:, 1:-1] + A[:-2, 1:-1]))
        A = A.at[1:-1, 1:-1].set(0.2 * (B[1:-1, 1:-1] + B[1:-1, :-2] + B[1:-1, 2:] + B[2:, 1:-1] + B[:-2, 1:-1]))
        return A, B
    return fori_loop(1, steps, step, (A, B))


def heat_3d(steps, A, B):
    def half(A, B):
        return B.at[1:-1, 1:-1, 1:-1].set(
            0.125 * (A[2:, 1:-1, 1:-1] - 2.0 * A[1:-1, 1:-1, 1:-1] + A[:-2, 1:-1, 1:-1])
            + 0.125 * (A[1:-1, 2:, 1:-1] - 2.0 * A[1:-1, 1:-1, 1:-1] + A[1:-1, :-2, 1:-1])
            + 0.125 * (A[1:-1, 1:-1, 2:] - 2.0 * A[1:-1, 1:-1, 1:-1] + A[1:-1, 1:-1, 0:-2])
            + A[1:-1, 1:-1, 1:-1])
    def step(t, s):
        A, B = s
        B = half(A, B)
        A = half(B, A)
        return A, B
    return fori_loop(1, steps, step, (A, B))


def seidel_2d(steps, N, A):
    def row(i, A):
        new = A[i, 1:-1] + (A[i - 1, :-2] + A[i - 1, 1:-1] + A[i - 1, 2:] + A[i, 2:]
                            + A[i + 1, :-2] + A[i + 1, 1:-1] + A[i + 1, 2:])
        def column(left, x):
            y = (x + left) / 9.0
            return y, y
        _, new = scan(column, A[i, 0], new)
        return A.at[i, 1:-1].set(new)
    return fori_loop(0, steps - 1, lambda t, A: fori_loop(1, N - 1, row, A), A)


def fdtd_2d(steps, ex, ey, hz, source):
    def step(t, s):
        ex, ey, hz = s
        ey = ey.at[0, :].set(source[t])
        ey = ey.at[1:, :].add(-0.5 * (hz[1:, :] - hz[:-1, :]))
        ex = ex.at[:, 1:].add(-0.5 * (hz[:, 1:] - hz[:, :-1]))
        hz = hz.at[:-1, :-1].add(-0.7 * (ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1]))
        return ex, ey, hz
    return fori_loop(0, steps, step, (ex, ey, hz))


def adi(steps, N, u):
    dx, dt = 1.0 / N, 1.0 / steps
    mul1, mul2 = 2.0 * dt / (dx * dx), 1.0 * dt / (dx * dx)
    a = c = -mul1 / 2.0
    b = e = 1.0 + mul2
    d = f = -mul2 / 2.0
    def sweep(a, b, c, rows):
        def forward(s, row):
            p, q = s
            divisor = a * p + b
            new = (jnp.full(N - 2, -c) / divisor, (row - a * q) / divisor)
            return new, new
        start = jnp.zeros(N - 2), jnp.ones(N - 2)
        _, (p, q) = scan(forward, start, rows)
        def backward(v, pq):
            v = pq[0] * v + pq[1]
            return v, v
        _, v = scan(backward, jnp.ones(N - 2), (p, q), reverse=True)
        return v
    def step(t, s):
        u, v = s
        rows = -d * u[1:-1, 0:N - 2] + (1.0 + 2.0 * d) * u[1:-1, 1:N - 1] - f * u[1:-1, 2:N]
        v = v.at[0, 1:N - 1].set(1.0).at[N - 1, 1:N - 1].set(1.0).at[1:-1, 1:-1].set(sweep(a, b, c, rows))
        rows = (-a * v[0:N - 2, 1:-1] + (1.0 + 2.0 * a) * v[1:N - 1, 1:-1] - c * v[2:N, 1:-1]).T
        u = u.at[1:-1, 0].set(1.0).at[1:-1, N - 1].set(1.0).at[1:-1, 1:-1].set(sweep(d, e, f, rows).T)
        return u, v
    return fori_loop(1, steps + 1, step, (u, jnp.zeros_like(u)))[0]


def hdiff(in_field, out_field, coeff):
    I, J, K = out_field.shape[0], out_field.shape[1], out_field.shape[2]
    lap = 4.0 * in_field[1:I + 3, 1:J + 3, :] - (
        in_field[2:I + 4, 1:J + 3, :] + in_field[0:I + 2, 1:J + 3, :]
        + in_field[1:I + 3, 2:J + 4, :] + in_field[1:I + 3, 0:J + 2, :])
    res = lap[1:, 1:J + 1, :] - lap[:-1, 1:J + 1, :]
    flx = jnp.where((res * (in_field[2:I + 3, 2:J + 2, :] - in_field[1:I + 2, 2:J + 2, :])) > 0, 0, res)
    res = lap[1:I + 1, 1:, :] - lap[1:I + 1, :-1, :]
    fly = jnp.where((res * (in_field[2:I + 2, 2:J + 3, :] - in_field[2:I + 2, 1:J + 2, :])) > 0, 0, res)
    return in_field[2:I + 2, 2:J + 2, :] - coeff[:, :, :] * (
        flx[1:, :, :] - flx[:-1, :, :] + fly[:, 1:, :] - fly[:, :-1, :])


def gemm(alpha, beta, C, A, B):
    return alpha * A @ B + beta * C


def k2mm(alpha, beta, A, B, C, D):
    return alpha * A @ B @ C + beta * D


def k3mm(A, B, C, D):
    return A @ B @ C @ D


def atax(A, x):
    return (A @ x) @ A


def bicg(A, p, r):
    return r @ A, A @ p


def mvt(x1, x2, y_1, y_2, A):
    return x1 + A @ y_1, x2 + y_2 @ A


def gesummv(alpha, beta, A, B, x):
    return alpha * A @ x + beta * B @ x


def gemver(alpha, beta, A, u1, v1, u2, v2, w, x, y, z):
    A = A + jnp.outer(u1, v1) + jnp.outer(u2, v2)
    x = x + beta * y @ A + z
    w = w + alpha * A @ x
    return A, w, x


def doitgen(NR, NQ, NP, A, C4):
    return jnp.reshape(jnp.reshape(A, (NR, NQ, 1, NP)) @ C4, (NR, NQ, NP))


def symm(alpha, beta, C, A, B):
    below = jnp.tril(A, -1)
    def row(i, C):
        C = C + alpha * below[i, :, None] * B[i, None, :]
        temp2 = below[i] @ B
        return C.at[i, :].add(alpha * B[i, :] * A[i, i] + alpha * temp2)
    return fori_loop(0, C.shape[0], row, C * beta)


def syrk(alpha, beta, C, A):
    new = beta * C + alpha * A @ A.T
    return jnp.where(jnp.tri(C.shape[0], dtype=bool), new, C)


def syr2k(alpha, beta, C, A, B):
    new = beta * C + alpha * (B @ A.T + A @ B.T)
    return jnp.where(jnp.tri(C.shape[0], dtype=bool), new, C)


def trmm(alpha, A, B):
    return alpha * (B + jnp.tril(A, -1).T @ B)


def spmv(A_row, A_col, A_val, x):
    rows = jnp.repeat(jnp.arange(A_row.size - 1), jnp.diff(A_row), total_repeat_length=A_val.size)
    return jax.ops.segment_sum(A_val * x[A_col], rows, num_segments=A_row.size - 1)


def cholesky(A):
    n = A.shape[0]
    places = jnp.arange(n)
    def column(j, L):
        rest = jnp.where(places < j, L[j], 0.0)
        new = (A[:, j] - L @ rest)
        diagonal = jnp.sqrt(new[j])
        return L.at[:, j].set(jnp.where(places > j, new / diagonal, jnp.where(places == j, diagonal, 0.0)))
    return fori_loop(0, n, column, jnp.zeros_like(A)) + jnp.triu(A, 1)


def cholesky2(A):
    below = jnp.tril(A)
    return jnp.linalg.cholesky(below + jnp.tril(A, -1).T, symmetrize_input=False) + jnp.triu(A, k=1)


def durbin(r):
    n = r.shape[0]
    places = jnp.arange(n)
    def step(k, s):
        y, alpha, beta = s
        beta = beta * (1.0 - alpha * alpha)
        back = jnp.where(places < k, y[jnp.maximum(k - 1 - places, 0)], 0.0)
        alpha = -(r[k] + jnp.dot(jnp.where(places < k, r, 0.0), back)) / beta
        y = (y + alpha * back).at[k].set(alpha)
        return y, alpha, beta
    y = jnp.zeros_like(r).at[0].set(-r[0])
    return fori_loop(1, n, step, (y, -r[0], 1.0))[0]


def gramschmidt(A):
    n = A.shape[1]
    places = jnp.arange(n)
    def step(k, s):
        A, Q, R = s
        norm = jnp.sqrt(jnp.dot(A[:, k], A[:, k]))
        q = A[:, k] / norm
        row = jnp.where(places > k, q @ A, 0.0)
        return A - jnp.outer(q, row), Q.at[:, k].set(q), R.at[k].set(row.at[k].set(norm))
    return fori_loop(0, n, step, (A, jnp.zeros_like(A), jnp.zeros((n, n))))


def lu_of(A):
    n = A.shape[0]
    places = jnp.arange(n)
    def step(k, A):
        factors = jnp.where(places > k, A[:, k] / A[k, k], 0.0)
        row = jnp.where(places > k, A[k], 0.0)
        A = A - jnp.outer(factors, row)
        return A.at[:, k].set(jnp.where(places > k, factors, A[:, k]))
    return fori_loop(0, n, step, A)


def lu(A):
    return lu_of(A)


def ludcmp(A, b):
    A = lu_of(A)
    y = jax.scipy.linalg.solve_triangular(A, b, lower=True, unit_diagonal=True)
    return A, jax.scipy.linalg.solve_triangular(A, y), y


def trisolv(L, x, b):
    return jax.scipy.linalg.solve_triangular(L, b, lower=True)


def covariance(M, float_n, data):
    data = data - jnp.mean(data, axis=0)
    return data.T @ data / (float_n - 1.0), data


def covariance2(M, float_n, data):
    return jnp.cov(jnp.transpose(data))


def correlation(M, float_n, data):
    mean = jnp.mean(data, axis=0)
    stddev = jnp.std(data, axis=0)
    stddev = jnp.where(stddev <= 0.1, 1.0, stddev)
    data = data - mean
    data = data / (jnp.sqrt(float_n) * stddev)
    corr = data.T @ data
    return jnp.where(jnp.eye(M, dtype=bool), 1.0, corr), data


def azimint_naive(data, radius, npt):
    rmax = radius.max()
    def one(i):
        r1 = rmax * i / npt
        r2 = rmax * (i + 1) / npt
        mask = jnp.logical_and((r1 <= radius), (radius < r2))
        return jnp.where(mask, data, 0.0).sum() / mask.sum()
    return jax.lax.map(one, jnp.arange(npt))


def relu(x):
    return jnp.maximum(x, 0)


def softmax(x):
    top = jnp.max(x, axis=-1, keepdims=True)
    out = jnp.exp(x - top)
    total = jnp.sum(out, axis=-1, keepdims=True)
    return out / total


def mlp(input, w1, b1, w2, b2, w3, b3):
    x = relu(input @ w1 + b1)
    x = relu(x @ w2 + b2)
    x = softmax(x @ w3 + b3)
    return x


def conv2d(input, weights):
    return jax.lax.conv_general_dilated(input, weights, (1, 1), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def conv2d_bias(input, weights, bias):
    return conv2d(input, weights) + bias


def maxpool2d(x):
    return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


def lenet(input, conv1, conv1bias, conv2, conv2bias, fc1w, fc1b, fc2w, fc2b, fc3w, fc3b, N, C_before_fc1):
    x = relu(conv2d(input, conv1) + conv1bias)
    x = maxpool2d(x)
    x = relu(conv2d(x, conv2) + conv2bias)
    x = maxpool2d(x)
    x = jnp.reshape(x, (N, C_before_fc1))
    x = relu(x @ fc1w + fc1b)
    x = relu(x @ fc2w + fc2b)
    return x @ fc3w + fc3b


def batchnorm2d(x, eps=1e-5):
    mean = jnp.mean(x, axis=0, keepdims=True)
    std = jnp.std(x, axis=0, keepdims=True)
    return (x - mean) / jnp.sqrt(std + eps)


def resnet(input, conv1, conv2, conv3):
    padded = jnp.pad(conv2d(input, conv1), ((0, 0), (1, 1), (1, 1), (0, 0)))
    x = batchnorm2d(padded)
    x = relu(x)
    x = conv2d(x, conv2)
    x = batchnorm2d(x)
    x = relu(x)
    x = conv2d(x, conv3)
    x = batchnorm2d(x)
    return relu(x + input)


def vadv(utens_stage, u_stage, wcon, u_pos, utens, dtr_stage):
    K = utens_stage.shape[2]
    w = 0.25 * (wcon[1:] + wcon[:-1])
    zero = jnp.zeros_like(w[:, :, 0])
    def forward(s, k):
        c, d = s
        gav = jnp.where(k > 0, -w[:, :, k], 0.0)
        gcv = jnp.where(k < K - 1, w[:, :, jnp.minimum(k + 1, K - 1)], 0.0)
        acol, ccol = 0.5 * gav, 0.5 * gcv
        bcol = dtr_stage - acol - ccol
        correction = (-0.5 * gav * (u_stage[:, :, k - 1] - u_stage[:, :, k])
                      - 0.5 * gcv * (u_stage[:, :, jnp.minimum(k + 1, K - 1)] - u_stage[:, :, k]))
        dcol = dtr_stage * u_pos[:, :, k] + utens[:, :, k] + utens_stage[:, :, k] + correction
        divided = 1.0 / (bcol - c * acol)
        new = ccol * divided, (dcol - d * acol) * divided
        return new, new
    _, (ccol, dcol) = scan(forward, (zero, zero), jnp.arange(K))
    def backward(x, cd):
        x = cd[1] - cd[0] * x
        return x, x
    _, data = scan(backward, zero, (ccol, dcol), reverse=True)
    return dtr_stage * (jnp.moveaxis(data, 0, 2) - u_pos)


def build_up_b(rho, dt, u, v, dx, dy):
    return (rho * (
        1 / dt * ((u[1:-1, 2:] - u[1:-1, 0:-2]) / (2 * dx) + (v[2:, 1:-1] - v[0:-2, 1:-1]) / (2 * dy))
        - ((u[1:-1, 2:] - u[1:-1, 0:-2]) / (2 * dx)) ** 2
        - 2 * ((u[2:, 1:-1] - u[0:-2, 1:-1]) / (2 * dy) * (v[1:-1, 2:] - v[1:-1, 0:-2]) / (2 * dx))
        - ((v[2:, 1:-1] - v[0:-2, 1:-1]) / (2 * dy)) ** 2))


def pressure(nit, p, dx, dy, b):
    def step(q, pn):
        p = pn.at[1:-1, 1:-1].set(((pn[1:-1, 2:] + pn[1:-1, 0:-2]) * dy ** 2 + (pn[2:, 1:-1] + pn[0:-2, 1:-1]) * dx ** 2)
                                  / (2 * (dx ** 2 + dy ** 2)) - dx ** 2 * dy ** 2 / (2 * (dx ** 2 + dy ** 2)) * b)
        p = p.at[:, -1].set(p[:, -2])
        p = p.at[0, :].set(p[1, :])
        p = p.at[:, 0].set(p[:, 1])
        return p.at[-1, :].set(0)
    return fori_loop(0, nit, step, p)


def cavity_flow(nx, ny, nt, nit, u, v, dt, dx, dy, p, rho, nu):
    def step(n, s):
        un, vn, p = s
        p = pressure(nit, p, dx, dy, build_up_b(rho, dt, un, vn, dx, dy))
        u = un.at[1:-1, 1:-1].set(
            un[1:-1, 1:-1] - un[1:-1, 1:-1] * dt / dx * (un[1:-1, 1:-1] - un[1:-1, 0:-2])
            - vn[1:-1, 1:-1] * dt / dy * (un[1:-1, 1:-1] - un[0:-2, 1:-1])
            - dt / (2 * rho * dx) * (p[1:-1, 2:] - p[1:-1, 0:-2])
            + nu * (dt / dx ** 2 * (un[1:-1, 2:] - 2 * un[1:-1, 1:-1] + un[1:-1, 0:-2])
                    + dt / dy ** 2 * (un[2:, 1:-1] - 2 * un[1:-1, 1:-1] + un[0:-2, 1:-1])))
        v = vn.at[1:-1, 1:-1].set(
            vn[1:-1, 1:-1] - un[1:-1, 1:-1] * dt / dx * (vn[1:-1, 1:-1] - vn[1:-1, 0:-2])
            - vn[1:-1, 1:-1] * dt / dy * (vn[1:-1, 1:-1] - vn[0:-2, 1:-1])
            - dt / (2 * rho * dy) * (p[2:, 1:-1] - p[0:-2, 1:-1])
            + nu * (dt / dx ** 2 * (vn[1:-1, 2:] - 2 * vn[1:-1, 1:-1] + vn[1:-1, 0:-2])
                    + dt / dy ** 2 * (vn[2:, 1:-1] - 2 * vn[1:-1, 1:-1] + vn[0:-2, 1:-1])))
        u = u.at[0, :].set(0).at[:, 0].set(0).at[:, -1].set(0).at[-1, :].set(1)
        v = v.at[0, :].set(0).at[-1, :].set(0).at[:, 0].set(0).at[:, -1].set(0)
        return u, v, p
    return fori_loop(0, nt, step, (u, v, p))


def scattering_self_energies(neigh_idx, dH, G, D, Sigma):
    E = jnp.arange(G.shape[1])
    def omega(w, Sigma):
        shifted = jnp.where((E - w >= 0)[None, :, None, None, None], jnp.roll(G, w, axis=1), 0.0)
        near = shifted[:, :, neigh_idx]
        dHG = jnp.einsum("keabmn,abinl->keabiml", near, dH)
        dHD = jnp.einsum("abjlp,qabij->abilp", dH, D[:, w])
        return Sigma + jnp.einsum("keabiml,abilp->keamp", dHG, dHD)
    return fori_loop(0, D.shape[1], omega, Sigma)


def go_fast(a):
    return a + jnp.sum(jnp.tanh(jnp.diag(a)))


def compute(array_1, array_2, a, b, c):
    return jnp.clip(array_1, 2, 10) * a + array_2 * b + c


def arc_distance(theta_1, phi_1, theta_2, phi_2):
    temp = jnp.sin((theta_2 - theta_1) / 2) ** 2 + jnp.cos(theta_1) * jnp.cos(theta_2) * jnp.sin((phi_2 - phi_1) / 2) ** 2
    return 2 * (jnp.arctan2(jnp.sqrt(temp), jnp.sqrt(1 - temp)))


def floyd_warshall(path):
    return fori_loop(0, path.shape[0], lambda k, path: jnp.minimum(path, path[:, k, None] + path[None, k, :]), path)


def deriche(alpha, imgIn):
    k = (1.0 - jnp.exp(-alpha)) * (1.0 - jnp.exp(-alpha)) / (1.0 + alpha * jnp.exp(-alpha) - jnp.exp(2.0 * alpha))
    a1 = a5 = k
    a2 = a6 = k * jnp.exp(-alpha) * (alpha - 1.0)
    a3 = a7 = k * jnp.exp(-alpha) * (alpha + 1.0)
    a4 = a8 = -k * jnp.exp(-2.0 * alpha)
    b1 = 2.0 ** (-alpha)
    b2 = -jnp.exp(-2.0 * alpha)
    def both(rows, p0, p1, p2, p3):
        zero = jnp.zeros_like(rows[0])
        def down(s, x):
            x1, y1, y2 = s
            y = p0 * x + p1 * x1 + b1 * y1 + b2 * y2
            return (x, y, y1), y
        _, first = scan(down, (zero, zero, zero), rows)
        def up(s, x):
            x1, x2, y1, y2 = s
            y = p2 * x1 + p3 * x2 + b1 * y1 + b2 * y2
            return (x, x1, y, y1), y
        _, second = scan(up, (zero, zero, zero, zero), rows, reverse=True)
        return first + second
    out = both(imgIn.T, a1, a2, a3, a4).T
    return both(out, a5, a6, a7, a8)
