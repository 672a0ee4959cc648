"""One evaluation on threads: the same bits for any number, close to those without; in derivatives, copies, files, forks."""

import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

import chainrule as cr

RNG = np.random.default_rng(5)


def pairs(x, m):
    d = x[:, None, :] - x[None, :, :]
    return np.sum(m[:, None] * m[None, :] / np.sqrt(np.sum(d * d, axis=2) + 0.1))


def near(x, radius):
    d = x[:, None, :] - x[None, :, :]
    square = np.sum(d * d, axis=2)
    return np.sum(np.where(square < radius ** 2, (radius ** 2 - square) ** 3, 0.0))


def histogram(x, at, w):
    h = np.zeros(w.shape[0])
    np.add.at(h, at, np.sin(x))
    return np.sum(h * h * w), np.sum(x)


def scores(w, x, y):
    s = x @ w
    most = np.max(s, axis=1, keepdims=True)
    return np.sum(np.log(np.sum(np.exp(s - most), axis=1)) + most[:, 0] - np.sum(s * y, axis=1))


def attention(q, k, v):
    s = q @ k.T
    e = np.exp(s - np.max(s, axis=1, keepdims=True))
    return np.sum((e / np.sum(e, axis=1, keepdims=True) @ v) ** 2)


def normal(*shape):
    return RNG.normal(size=shape)


CASES = {
    "pairs": (pairs, (normal(150, 3), normal(150))),
    "near": (near, (normal(150, 3), 1.0)),
    "few bins": (histogram, (normal(20_000), RNG.integers(0, 7, 20_000), normal(7))),
    "many bins": (histogram, (normal(2_000), RNG.integers(0, 2_000, 2_000), normal(2_000))),
    "scores": (scores, (normal(20, 10), normal(1_000, 20), normal(1_000, 10))),
    "attention": (attention, (normal(70, 12), normal(65, 12), normal(65, 11))),
}


def flat(results):
    return np.concatenate([np.ravel(r) for r in (results if isinstance(results, tuple) else (results,))])


@pytest.mark.parametrize("name", CASES)
def test_any_number_of_threads_gives_the_same_bits(name):
    f, arguments = CASES[name]
    scalar = (lambda x, at, w: histogram(x, at, w)[0]) if f is histogram else f
    for what in (lambda **options: cr.function(f, **options), lambda **options: cr.value_and_gradient(cr.function(scalar, **options))):
        alone = flat(what()(*arguments))
        one = flat(what(threads=1)(*arguments))
        np.testing.assert_allclose(one, alone, rtol=1e-10, atol=1e-10 * np.max(np.abs(alone)))
        for threads in (2, 3, 0):
            assert flat(what(threads=threads)(*arguments)).tobytes() == one.tobytes()


def test_copies_keep_the_number():
    f = cr.function(pairs, threads=2)
    arguments = CASES["pairs"][1]
    want = f(*arguments)
    assert f.threads == 2 and cr.function(f) is f and f.unroll(x=(3, 3), m=3).threads == 2
    other = cr.function(f, threads=3)
    assert other.threads == 3 and other(*arguments) == want
    loaded = pickle.loads(pickle.dumps(f))
    assert loaded.threads == 2 and loaded(*arguments) == want


def test_files_keep_the_number(tmp_path):
    f = cr.function(pairs, threads=2)
    arguments = CASES["pairs"][1]
    want = cr.gradient(f)(*arguments)
    f.save(tmp_path / "pairs")
    loaded = cr.load(tmp_path / "pairs")
    assert loaded.threads == 2
    assert cr.gradient(loaded)(*arguments).tobytes() == want.tobytes()


def test_functions_of_modules(tmp_path):
    path = tmp_path / "all.ft"
    path.write_text("let f = fun (x : [n]Double) -> sum n (fun i -> sum n (fun j -> sin (x[i] - 2 * x[j])))")
    x = normal(300)
    assert cr.module(path, threads=2).f(x) == cr.module(path, threads=1).f(x)


@pytest.mark.parametrize("threads", [-1, 1.5, True, "two"])
def test_what_is_no_number_of_threads(threads):
    with pytest.raises(cr.TypeError_, match="is not a number of threads"):
        cr.function(pairs, threads=threads)


FORK = """
import os
import numpy as np
import chainrule as cr

@cr.function(threads=2)
def near(x):
    d = x[:, None] - x[None, :]
    return np.sum(np.where(d * d < 1.0, (1.0 - d * d) ** 3, 0.0))

f, x = cr.gradient(near), np.linspace(0.0, 9.0, 300)
want = f(x).tobytes()
child = os.fork()
same = f(x).tobytes() == want
if child == 0:
    os._exit(0 if same else 1)
print(same, os.waitpid(child, 0)[1])
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="fork")
def test_forked_processes_run_on_one_thread(tmp_path):
    path = tmp_path / "forks.py"
    path.write_text(FORK)
    done = subprocess.run([sys.executable, "-P", path], capture_output=True, text=True, timeout=120)
    assert done.stdout == "True 0\n", done.stderr


def test_options_of_functions_without_source(tmp_path):
    path = tmp_path / "all.ft"
    path.write_text("let f = fun (x : Double) -> x * x")
    with pytest.raises(cr.Error, match="no Python source"):
        cr.function(cr.module(path).f, threads=2)
    with pytest.raises(cr.TypeError_, match="is not a number of threads"):
        cr.module(path, threads=-1)
