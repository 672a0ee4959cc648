"""Means, covariances, histograms."""

import numpy as np

from . import Program


def covariance(M, float_n, data):
    mean = np.mean(data, axis=0)
    data -= mean
    cov = np.zeros((M, M), dtype=data.dtype)
    for i in range(M):
        cov[i:M, i] = cov[i, i:M] = data[:, i] @ data[:, i:M] / (float_n - 1.0)
    return cov


def covariance2(M, float_n, data):
    return np.cov(np.transpose(data))


def correlation(M, float_n, data):
    mean = np.mean(data, axis=0)
    stddev = np.std(data, axis=0)
    stddev[stddev <= 0.1] = 1.0
    data -= mean
    data /= np.sqrt(float_n) * stddev
    corr = np.eye(M, dtype=data.dtype)
    for i in range(M - 1):
        corr[i + 1:M, i] = corr[i, i + 1:M] = data[:, i] @ data[:, i + 1:M]
    return corr


def azimint_naive(data, radius, npt):
    rmax = radius.max()
    res = np.zeros(npt, dtype=np.float64)
    for i in range(npt):
        r1 = rmax * i / npt
        r2 = rmax * (i + 1) / npt
        mask = np.logical_and((r1 <= radius), (radius < r2))
        res[i] = data[mask].mean()
    return res


def azimint_hist(data, radius, npt):
    histu = np.histogram(radius, npt)[0]
    histw = np.histogram(radius, npt, weights=data)[0]
    return histw / histu


def radii(r, n, npt):
    return r.random(n), r.permutation(np.linspace(0.01, 1.0, n) + 0.003 * r.random(n)), npt


PROGRAMS = [
    Program(covariance, lambda r, m, n: (m, float(n), r.random((n, m))), (4, 6), (500, 600)),
    Program(covariance2, lambda r, m, n: (m, float(n), r.random((n, m))), (4, 6), (500, 600)),
    Program(correlation, lambda r, m, n: (m, float(n), r.random((n, m)) * np.array([0.1] + [1.0] * (m - 1))), (4, 6), (500, 600)),
    Program(azimint_naive, radii, (37, 5), (400_000, 1000), fixed=(1,)),
    Program(azimint_hist, radii, (37, 5), (400_000, 1000), fixed=(1,)),
]
