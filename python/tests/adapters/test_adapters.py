"""Adapters against the real packages; those that are not installed are skipped: `cargo xtask adapters` installs them."""

import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from importable import energy

import chainrule as cr
from chainrule.adapters import scipy as solvers

RNG = np.random.default_rng(0)
X = RNG.normal(size=6)


def rosenbrock(x):
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


# SciPy.

@pytest.mark.parametrize("method", [None, "BFGS", "L-BFGS-B", "CG", "Newton-CG", "trust-ncg", "trust-krylov", "trust-exact", "SLSQP", "TNC",
                                    "trust-constr", "dogleg", "Nelder-Mead"])
def test_minimize(method):
    found = solvers.minimize(lambda x: np.sum((x - 1.0) ** 2 + 0.1 * (x - 1.0) ** 4) + (x[0] - x[1]) ** 2, [-1.0, 0.5, 0.8], method=method)
    np.testing.assert_allclose(found.x, 1.0, atol=1e-3)


def test_minimize_with_products_and_sparse_hessians():
    for options in ({"method": "trust-ncg", "products": True}, {"method": "trust-constr", "sparse": True}):
        found = solvers.minimize(lambda x, k: rosenbrock(x) * k, np.full(20, 0.5), args=(2.0,), **options)
        assert found.fun < 1e-6


def test_constraints_with_curvature():
    circle = solvers.constraint(lambda x: x[0] ** 2 + x[1] ** 2, 1.0, 1.0)
    found = solvers.minimize(lambda x: x[0] + 2.0 * x[1], np.array([-0.5, -0.5]), method="trust-constr", constraints=[circle])
    np.testing.assert_allclose(found.x, -np.array([1.0, 2.0]) / np.sqrt(5.0), atol=1e-5)
    both = solvers.constraint(lambda x: np.stack([x[0] * x[1], x[0] - x[1]]), [1.0, -np.inf], [np.inf, -1.0])
    found = solvers.minimize(lambda x: x[0] ** 2 + x[1] ** 2, np.array([2.0, 3.0]), method="trust-constr", constraints=[both])
    np.testing.assert_allclose(found.x, [(np.sqrt(5.0) - 1.0) / 2.0, (np.sqrt(5.0) + 1.0) / 2.0], atol=1e-3)


@pytest.mark.parametrize("sparse", [False, True])
def test_least_squares(sparse):
    def residuals(x, y):
        return np.concatenate([10.0 * (x[1:] - x[:-1] ** 2), 1.0 - x[:-1], y])

    found = solvers.least_squares(residuals, np.full(10, 0.3), args=(np.zeros(2),), sparse=sparse, method="trf")
    assert found.success
    np.testing.assert_allclose(found.x, 1.0, atol=1e-6)


def test_root():
    def f(x, a):
        return np.stack([x[0] + a * np.sin(x[1]) - 1.0, x[0] ** 2 - x[1]])

    for method in ("hybr", "lm", "krylov"):
        found = solvers.root(f, np.array([0.5, 0.5]), args=(0.5,), method=method)
        assert found.success and np.max(np.abs(f(found.x, 0.5))) < 1e-5


@pytest.mark.parametrize("method, sparse", [("RK45", False), ("Radau", False), ("BDF", True), ("LSODA", False), ("Radau", True)])
def test_solve_ivp(method, sparse):
    def robertson(t, y, k):
        a = -k * y[0] + 1e2 * y[1] * y[2]
        c = 3e3 * y[1] ** 2
        return np.stack([a, -a - c, c])

    found = solvers.solve_ivp(robertson, (0.0, 1.0), [1.0, 0.0, 0.0], method, args=(0.04,), sparse=sparse, rtol=1e-8, atol=1e-10)
    assert found.success
    np.testing.assert_allclose(np.sum(found.y[:, -1]), 1.0, rtol=1e-8)


# Numba.

def test_numba():
    numba = pytest.importorskip("numba", reason="Numba is not installed")
    from chainrule.adapters.numba import to_numba

    both = to_numba(cr.value_and_gradient(rosenbrock), X)

    @numba.njit
    def descend(x, steps):
        y = np.zeros(x.size + 1)
        for _ in range(steps):
            both(x, y)
            x = x - 1e-3 * y[1:]
        return x, y[0]

    found, value = descend(np.zeros(6), 200)
    x, slope = np.zeros(6), cr.gradient(rosenbrock)
    for _ in range(200):
        x = x - 1e-3 * slope(x)
    np.testing.assert_allclose(found, x, rtol=1e-12)
    assert 0.0 < value < rosenbrock(np.zeros(6))
    with pytest.raises(ValueError, match="length"):
        both(np.zeros(3), np.zeros(7))
    failing = to_numba(lambda x, at: x[at[0]] * np.ones(2), X, np.array([0]))
    failing.bound.inputs[1][0] = 99
    with pytest.raises(RuntimeError, match="failed"):
        failing(X, np.zeros(2))


# CasADi.

def test_casadi():
    casadi = pytest.importorskip("casadi", reason="CasADi is not installed")
    from chainrule.adapters.casadi import to_casadi

    f = to_casadi(rosenbrock, X)
    x = casadi.MX.sym("x", 6)
    gradient = casadi.Function("g", [x], [casadi.gradient(f(x), x)])
    curved = casadi.Function("h", [x], [casadi.hessian(f(x), x)[0]])
    assert float(f(X)) == pytest.approx(rosenbrock(X))
    np.testing.assert_allclose(np.array(gradient(X)).ravel(), cr.gradient(rosenbrock)(X), rtol=1e-10)
    np.testing.assert_allclose(np.array(curved(X)), cr.hessian(rosenbrock)(X), rtol=1e-10, atol=1e-10)
    A = RNG.normal(size=(3, 2))
    g = to_casadi(lambda a, k, n: (a.T @ a * k, np.sum(a, axis=1)), A, 2.0, 3)
    a, k = casadi.MX.sym("a", 3, 2), casadi.MX.sym("k")
    first, second = g(a, k)
    outer = casadi.Function("o", [a, k], [first, second, casadi.jacobian(first, a), casadi.jacobian(first, k), casadi.jacobian(second, a)])
    ours = [np.array(m) for m in outer(A, 2.0)]
    exact_first, exact_second = a.T @ a * k, casadi.sum2(a)
    exact = casadi.Function("e", [a, k], [exact_first, exact_second, casadi.jacobian(exact_first, a), casadi.jacobian(exact_first, k),
                                          casadi.jacobian(exact_second, a)])
    for got, want in zip(ours, exact(A, 2.0)):
        np.testing.assert_allclose(got, np.array(want), rtol=1e-12, atol=1e-12)
    with pytest.raises(cr.Limitation):
        to_casadi(lambda a: a * 2.0, np.ones((2, 2, 2)))


# Functions that travel.

def refit(seed, step, x):
    rng = np.random.default_rng(seed)
    x = x + 0.1 * rng.normal(size=x.size)
    for _ in range(20):
        x = x - 0.01 * step(x)
    return x


def test_joblib():
    joblib = pytest.importorskip("joblib", reason="joblib is not installed")
    step = cr.gradient(cr.function(lambda x: np.sum(np.cos(x) ** 2) + rosenbrock(x)))
    step(X)
    want = [refit(k, step, X) for k in range(20)]
    for backend in ("loky", "threading", "multiprocessing"):
        got = joblib.Parallel(n_jobs=2, backend=backend)(joblib.delayed(refit)(k, step, X) for k in range(20))
        assert all(g.tobytes() == w.tobytes() for g, w in zip(got, want)), backend


def test_cloudpickle():
    cloudpickle = pytest.importorskip("cloudpickle", reason="cloudpickle is not installed")
    f = cr.function(lambda x: np.sum(x ** 2))
    slope = cr.gradient(f)
    slope(X)
    code = "import pickle, sys, numpy as np; f = pickle.load(sys.stdin.buffer); print(f(np.arange(6.0)).tolist())"
    data = cloudpickle.dumps(lambda x: slope(x))
    done = subprocess.run([sys.executable, "-P", "-c", code], input=data, capture_output=True, check=True)
    assert done.stdout.decode().strip() == str((2 * np.arange(6.0)).tolist())


#: A bootstrap of a logistic regression; `run(refit, both, hess, X, y)` gives the refits of 1,000 samples in two processes.
BOOTSTRAP = """
    import numpy as np, chainrule as cr

    def loss(w, X, y):
        z = X @ w
        return np.sum(np.logaddexp(0.0, z) - y * z) + 0.5 * np.sum(w ** 2)

    def refit(seed, both, hess, X, y):
        at = np.random.default_rng(seed).integers(0, len(y), len(y))
        w = np.zeros(X.shape[1])
        for _ in range(6):
            w = w - np.linalg.solve(hess(w, X[at], y[at]), both(w, X[at], y[at])[1])
        return w

    if __name__ == "__main__":
        rng = np.random.default_rng(0)
        X = rng.normal(size=(200, 4))
        y = (rng.random(200) < 1 / (1 + np.exp(-X @ np.ones(4)))).astype(float)
        both, hess = cr.value_and_gradient(loss), cr.hessian(loss)
        want = [refit(k, both, hess, X, y) for k in range(1000)]
        got = run(refit, both, hess, X, y)
        print(all(g.tobytes() == w.tobytes() for g, w in zip(got, want)), len(got))
"""
CLUSTERS = {
    "distributed": """
    def run(refit, both, hess, X, y):
        from distributed import Client, LocalCluster
        with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
            return client.gather(client.map(refit, range(1000), both=both, hess=hess, X=X, y=y, batch_size=100))
""",
    "ray": """
    def run(refit, both, hess, X, y):
        import ray
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
        both, hess, X, y = map(ray.put, (both, hess, X, y))
        many = ray.remote(lambda seeds, *rest: [refit(seed, *rest) for seed in seeds])
        parts = ray.get([many.remote(range(k, k + 100), both, hess, X, y) for k in range(0, 1000, 100)])
        return [w for part in parts for w in part]
""",
}


@pytest.mark.parametrize("package", CLUSTERS)
def test_clusters(package, tmp_path):
    pytest.importorskip(package, reason=f"{package} is not installed")
    program = tmp_path / "bootstrap.py"
    program.write_text(textwrap.dedent(CLUSTERS[package]) + textwrap.dedent(BOOTSTRAP))
    env = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "RAY_USAGE_STATS_ENABLED": "0"}
    done = subprocess.run([sys.executable, "-P", str(program)], capture_output=True, text=True, timeout=300, env=env)
    assert done.stdout.strip().split("\n")[-1] == "True 1000", done.stdout[-1000:] + done.stderr[-3000:]


def test_pandas():
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    frame = pandas.DataFrame({"a": [1.0, 2.0, 4.0], "b": [0.5, 0.0, 1.0], "n": [1, 2, 3]})
    f = cr.function(lambda m, v: np.sum(m @ v))
    want = np.sum(frame[["a", "b"]].to_numpy() @ np.array([1.0, 2.0]))
    assert f(frame[["a", "b"]], np.array([1.0, 2.0])) == want
    assert energy(frame["a"]) == energy(frame["a"].to_numpy())
    assert cr.gradient(energy)(frame["a"]).tolist() == cr.gradient(energy)(frame["a"].to_numpy()).tolist()
    mixed = pandas.DataFrame({"a": [1.0], "s": ["x"]})
    with pytest.raises(cr.TypeError_, match="dtype object"):
        f(mixed, np.ones(2))
