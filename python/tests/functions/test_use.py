"""Functions in use: a regression by SciPy, caches, threads, the demonstration."""

import importlib
import subprocess
import sys
import threading

import numpy as np
import pytest
from scipy.optimize import minimize

import chainrule as cr

WEIGHT = 2.0


def test_logistic_regression_by_scipy():
    rng = np.random.default_rng(0)
    x = np.column_stack([np.ones(5000), rng.normal(size=(5000, 11))])
    true = rng.normal(size=12)
    y = (rng.random(5000) < 1 / (1 + np.exp(-x @ true))).astype(float)

    def loss(w, x, y):
        z = x @ w
        return np.sum(np.logaddexp(0.0, z) - y * z) + 0.5 * np.sum(w ** 2)

    def by_hand(w):
        z = x @ w
        p = 1 / (1 + np.exp(-z))
        return np.sum(np.logaddexp(0.0, z) - y * z) + 0.5 * np.sum(w ** 2), x.T @ (p - y) + w

    both, start = cr.value_and_gradient(loss), np.zeros(12)
    value, slope = both(start, x, y)
    assert value == pytest.approx(by_hand(start)[0], rel=1e-12)
    np.testing.assert_allclose(slope, by_hand(start)[1], rtol=1e-9)
    fitted = minimize(both, start, args=(x, y), jac=True, method="BFGS")
    wanted = minimize(by_hand, start, jac=True, method="BFGS")
    np.testing.assert_allclose(fitted.x, wanted.x, atol=1e-5)
    newton = minimize(both, start, args=(x, y), jac=True, method="Newton-CG", hess=cr.hessian(loss))
    np.testing.assert_allclose(newton.x, wanted.x, atol=1e-4)
    np.testing.assert_allclose(fitted.x, true, atol=0.3)


def test_globals_that_change_are_seen(monkeypatch):
    f = cr.function(lambda x: x * WEIGHT)
    assert f(3.0) == 6.0 and f(4.0) == 8.0 and f.compilations == 1
    monkeypatch.setattr(sys.modules[__name__], "WEIGHT", 5.0)
    assert f(3.0) == 15.0 and f.compilations == 2


def test_arrays_of_closures_are_read_at_each_call():
    table = np.array([1.0, 2.0])
    f = cr.function(lambda x: np.sum(x * table))
    assert f(np.ones(2)) == 3.0
    table[0] = 10.0
    assert f(np.ones(2)) == 12.0 and f.compilations == 1
    assert cr.gradient(f)(np.ones(2)).tolist() == [10.0, 2.0]
    table = np.array([[5.0], [6.0], [7.0]])
    assert f(np.ones(2)) == 36.0 and f.compilations == 2


def test_keys_are_ranks_dtypes_and_known_arguments():
    @cr.function
    def f(x, scale=1.0, mode="sum"):
        return np.sum(x) * scale if mode == "sum" else np.max(x) * scale

    x = np.arange(5.0)
    assert (f(x), f(x, 2.0), f(x, mode="max"), f(x=x, scale=3.0)) == (10.0, 20.0, 4.0, 30.0)
    assert f.compilations == 2
    f(x.reshape(1, 5))
    f(np.arange(5))
    f(x[:1])
    assert f.compilations == 5


def test_threads_share_a_function():
    f = cr.value_and_gradient(lambda x: np.sum(np.sin(x) * x))
    results, errors = {}, []

    def work(k):
        try:
            x = np.full(1000 + k % 3, float(k))
            for _ in range(20):
                results[k] = f(x)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors and f.function.compilations == 1
    for k, (value, slope) in results.items():
        assert value == pytest.approx(np.sin(k) * k * len(slope)) and np.allclose(slope, np.cos(k) * k + np.sin(k))


def test_the_demonstration_runs():
    done = subprocess.run([sys.executable, "-m", "chainrule.demo"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    for word in ("def ", "gradient", "Hessian", "NumPy"):
        assert word in done.stdout


def test_the_package_says_what_is_supported():
    names = cr.supported()
    assert {"np.sin", "np.linalg.solve", "scipy.special.expit", ".sum", "len", "math.exp"} <= set(names)
    assert importlib.import_module("chainrule._core").Program
