"""Functions as files and pickles: the same numbers, bit for bit, in this process and in others."""

import multiprocessing
import pickle
import subprocess
import sys

import numpy as np
import pytest
from importable import energy, slope

import chainrule as cr

WEIGHTS = np.linspace(0.0, 1.0, 5)


def model(p, t, mode="full"):
    scale = 2.0 if mode == "full" else 1.0
    return scale * p[0] * np.exp(-p[1] * t) * WEIGHTS, np.sum(p)


def loss(x, at, pair):
    s = 0.0
    for i in at:
        if x[i] > 0.0:
            s += np.sin(x[i]) * pair[0]
    return s + pair[1] ** 3


P, T = np.array([2.0, 0.5]), np.linspace(0.0, 2.0, 5)


def same(got, want):
    if isinstance(got, (tuple, list)):
        assert type(got) is type(want) and len(got) == len(want)
        return [same(g, w) for g, w in zip(got, want)]
    assert type(got) is type(want) and np.asarray(got).tobytes() == np.asarray(want).tobytes()
    return None


def test_saved_functions_are_the_same(tmp_path):
    f = cr.function(model)
    want = f(P, T), f(P, T, mode="half"), f(P, 1.0)
    g = cr.jacobian(f, argnums=(0, 1))
    slopes = g(P, T)
    f.save(tmp_path / "model")
    back = cr.load(tmp_path / "model")
    same((back(P, T), back(P, T, mode="half"), back(p=P, t=1.0)), want)
    same(cr.jacobian(back, argnums=(0, 1))(P, T), slopes)
    # Derivatives that were not called before are made of the program.
    np.testing.assert_allclose(cr.jacobian(back)(P, T[:5], "half")[0], cr.jacobian(f)(P, T, "half")[0], rtol=1e-14)
    with pytest.raises(cr.Error, match="other kinds of arguments"):
        back(P, 1)
    assert "P" not in repr(back) and back.__name__ == "model"
    back.save(tmp_path / "again")
    same(cr.load(tmp_path / "again")(P, T), want[0])


def test_conditions_hold_in_loaded_functions(tmp_path):
    f = cr.function(lambda x, y: np.sum(x * y))
    f(T, T)
    back = pickle.loads(pickle.dumps(f))
    for call in (back, cr.gradient(back)):
        call(T, T)
        for _ in range(2):
            with pytest.raises(cr.ShapeError):
                call(T, T[:3])


def test_structures_and_indices():
    f = cr.function(loss)
    args = (np.array([0.5, -1.0, 2.0]), np.array([0, 2, 2, 1]), (1.5, 2.0))
    g = cr.value_and_gradient(f, argnums=("x", "pair"))
    h = cr.hessian(f)
    want = f(*args), g(*args), h(*args)
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        same(tuple(pickle.loads(pickle.dumps(one, protocol))(*args) for one in (f, g, h)), want)
    sparse = pickle.loads(pickle.dumps(cr.sparse_hessian(f)))
    np.testing.assert_allclose(sparse(*args).toarray(), want[2], rtol=1e-13)
    batch = pickle.loads(pickle.dumps(cr.vmap(f, in_axes=(0, None, None))))
    same(batch(args[0][None], *args[1:]), np.array([want[0]]))


def test_functions_of_modules_are_pickled_by_name():
    assert len(pickle.dumps(energy)) < 100
    assert pickle.loads(pickle.dumps(energy)) is energy
    again = pickle.loads(pickle.dumps(slope))
    assert again.function is energy
    same(again(P), slope(P))


def work(task):
    function, x = task
    return function(x)


def test_other_processes_get_functions():
    f = cr.gradient(cr.function(lambda x: np.sum(np.sin(x) * WEIGHTS)))
    tasks = [(f, T + k) for k in range(8)] + [(slope, T + k) for k in range(4)]
    want = [work(task) for task in tasks]
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        same(pool.map(work, tasks), want)


@pytest.mark.parametrize("make, words", [
    (lambda: cr.function(lambda x: x), "not called yet"),
    (lambda: called(cr.function(lambda x, f: f(x)), 1.0, np.sin), "is a ufunc"),
])
def test_what_cannot_be_saved(make, words):
    with pytest.raises(cr.Error, match=words):
        pickle.dumps(make())


def called(f, *args):
    f(*args)
    return f


def test_files_that_are_something_else(tmp_path):
    good = called(cr.function(lambda x: x * 2.0), 1.0)
    good.save(tmp_path / "good")
    data = (tmp_path / "good").read_bytes()
    rng = np.random.default_rng(0)
    bad = [b"", b"hello", data[:-1], data[:len(data) // 2], data + b"x", data.replace(b'"codes"', b'"coda"')]
    for _ in range(60):
        at = int(rng.integers(len(data)))
        bad.append(data[:at] + bytes([rng.integers(256)]) + data[at + 1:])
    for damaged in bad:
        (tmp_path / "bad").write_bytes(damaged)
        try:
            found = cr.load(tmp_path / "bad")
            found(1.0)
        except (cr.Error, TypeError):
            pass
    with pytest.raises(FileNotFoundError):
        cr.load(tmp_path / "none")


def test_a_file_is_read_by_another_interpreter(tmp_path):
    g = cr.gradient(cr.function(model), argnums=0)
    f = cr.function(lambda x: np.sum(x ** 3))
    g = cr.gradient(f)
    want = g(T)
    f.save(tmp_path / "f")
    code = f"import chainrule as cr, numpy as np; print(cr.gradient(cr.load({str(tmp_path / 'f')!r}))(np.linspace(0.0, 2.0, 5)).tobytes().hex())"
    said = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.strip() == want.tobytes().hex()


def test_functions_of_files(tmp_path):
    (tmp_path / "m.ft").write_text("let energy = fun (x : [n]Double) (k : Double) -> sum n (fun i -> k * x[i] * x[i])")
    f = cr.module(tmp_path / "m.ft").energy
    want = f(T, 2.0), cr.gradient(f)(T, 2.0)
    back = pickle.loads(pickle.dumps(f))
    same((back(T, 2.0), cr.gradient(back)(T, 2.0)), want)
