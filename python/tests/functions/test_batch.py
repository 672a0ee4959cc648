"""Batches against loops of calls, bit for bit; threads, progress, an end by Ctrl-C."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

import chainrule as cr


def price(s, k, path):
    for z in path:
        s = s * np.exp(0.01 * z - 0.0001)
    return np.maximum(s - k, 0.0)


def model(p, t):
    return p[0] * np.exp(-p[1] * t), np.sum(p), p[0] > p[1]


def same(got, want):
    if isinstance(got, (tuple, list)):
        assert type(got) is type(want) and len(got) == len(want)
        for g, w in zip(got, want):
            same(g, w)
        return
    got, want = np.asarray(got), np.asarray(want)
    assert (got.dtype, got.shape) == (want.dtype, want.shape)
    assert got.tobytes() == want.tobytes()


def stacked(results):
    if isinstance(results[0], tuple):
        return tuple(stacked([r[k] for r in results]) for k in range(len(results[0])))
    return np.stack([np.asarray(r) for r in results])


@pytest.mark.parametrize("threads", [1, 2, 0])
@pytest.mark.parametrize("n", [1, 3, 8, 1001])
def test_a_batch_is_a_loop_of_calls(n, threads):
    rng = np.random.default_rng(n)
    s, path, p = rng.uniform(80, 120, n), rng.normal(size=(n, 12)), rng.uniform(0.1, 2.0, (n, 2))
    t = np.linspace(0.0, 3.0, 7)
    f = cr.function(price)
    same(f.batch(s, 100.0, path, threads=threads), stacked([f(s[k], 100.0, path[k]) for k in range(n)]))
    same(f.batch(s, 100.0, path[0], in_axes=(0, None, None), threads=threads), stacked([f(x, 100.0, path[0]) for x in s]))
    g = cr.gradient(price, argnums=("s", "k"))
    same(g.batch(s, 100.0, path, threads=threads), stacked([g(s[k], 100.0, path[k]) for k in range(n)]))
    m = cr.function(model)
    same(cr.vmap(m, in_axes=(0, None), threads=threads)(p, t), stacked([m(row, t) for row in p]))
    d = rng.normal(size=(n, 2))
    j = cr.jvp(model)
    want = [j(p[k], t, d[k]) for k in range(n)]
    got = cr.vmap(j, in_axes=(0, None, 0), threads=threads)(p, t, d)
    same(got[:2], stacked([w[:2] for w in want]))
    assert got[2] is None


def test_axes_and_structures():
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(3, 5)), rng.normal(size=(5, 3))
    f = cr.function(lambda pair, c: np.sum(pair[0] * pair[1]) + c)
    want = [f((a[:, k], b[k]), 2.0) for k in range(5)]
    same(cr.vmap(f, in_axes=((1, 0), None))((a, b), 2.0), stacked(want))
    g = cr.function(lambda x: np.outer(x, x))
    want = np.moveaxis(stacked([g(a[:, k]) for k in range(5)]), 0, 2)
    same(cr.vmap(g, in_axes=1, out_axes=2)(a), want)
    table = rng.normal(size=3)
    h = cr.function(lambda x: np.sum(x * table))
    same(h.batch(b), stacked([h(row) for row in b]))
    whole = cr.function(lambda x, k: np.sum(x[:2]) * k)
    same(whole.batch(b, np.arange(5)), stacked([whole(b[k], k) for k in range(5)]))


def test_out_and_empty_batches():
    x = np.arange(12.0).reshape(4, 3)
    f = cr.function(lambda x: np.sin(x))
    out = np.empty((4, 3))
    assert f.batch(x, out=out) is out
    same(out, f.batch(x))
    assert f.batch(x[:0]).shape == (0, 3)
    with pytest.raises(cr.ShapeError, match="shape"):
        f.batch(x, out=np.empty((3, 3)))


@pytest.mark.parametrize("call, error, words", [
    (lambda f: f.batch(np.ones((3, 2)), np.ones((4, 2))), cr.ShapeError, "different numbers of points"),
    (lambda f: f.batch(1.0, 2.0), cr.TypeError_, "no argument has an element for each point"),
    (lambda f: f.batch(np.ones((3, 2)), np.ones(2), in_axes=(0, 5)), cr.ShapeError, "no axis 5"),
    (lambda f: f.batch(np.ones((3, 2)), np.array(["a", "b", "c"])), cr.TypeError_, "dtype"),
    (lambda f: f.batch(np.ones((3, 2)), 1.0, threads=-1), cr.TypeError_, "threads"),
    (lambda f: f.batch(np.ones((3, 2)), 1.0, in_axes=(0, None, None)), cr.TypeError_, "3 axes for 2 arguments"),
    (lambda f: f.batch(np.ones((3, 2)), 1.0, in_axes=("a", None)), cr.TypeError_, "axis"),
])
def test_what_does_not_fit(call, error, words):
    with pytest.raises(error, match=words):
        call(cr.function(lambda x, y: x * y))


def test_failures_tell_the_point():
    f = cr.function(lambda x, at: x[at[0]])
    at = np.zeros((1000, 1), np.int64)
    at[777] = 9
    with pytest.raises(cr.Error, match="point 777"):
        f.batch(np.ones(4), at, in_axes=(None, 0))


def test_integers_that_decide_sizes_may_differ():
    @cr.function
    def f(x, n):
        s = 0.0
        for i in range(n):
            s += x[i] ** (i + 1)
        return s

    rng = np.random.default_rng(2)
    x, n = rng.normal(size=(30, 5)), rng.integers(1, 6, size=30)
    same(f.batch(x, n), stacked([f(x[k], int(n[k])) for k in range(30)]))
    g = cr.function(lambda n, x: np.arange(n) * x)
    with pytest.raises(cr.ShapeError, match="different shapes at different points"):
        g.batch(np.array([2, 3]), np.array([1.0, 2.0]))


def test_progress_is_called(monkeypatch):
    import chainrule.batch as module
    seen = []

    class Bar:
        def __init__(self, n, wanted):
            self.is_wanted, self.update = True, seen.append

        def close(self):
            seen.append("closed")

    monkeypatch.setattr(module, "Bar", Bar)
    cr.function(lambda x: x * 2.0).batch(np.arange(5000.0))
    assert seen[-2:] == [5000, "closed"] and seen[:-1] == sorted(seen[:-1])


def test_exceptions_of_progress_come_through(monkeypatch):
    import chainrule.batch as module

    class Bar(module.Bar):
        def __init__(self, n, wanted):
            self.is_wanted, self.bar = True, None

        def update(self, done):
            raise ValueError(f"after {done}")

    monkeypatch.setattr(module, "Bar", Bar)
    with pytest.raises(ValueError, match="after 1"):
        cr.function(lambda x: x * 2.0).batch(np.arange(5000.0))


SLOW = """
    import numpy as np, chainrule as cr
    def slow(x, n):
        for _ in range(n):
            x = np.sin(x) + 0.5
        return x
    f = cr.function(slow)
    f.batch(np.ones(2), 10)
"""


def run(text, **options):
    path = options.pop("folder") / "program.py"
    path.write_text(textwrap.dedent(SLOW) + textwrap.dedent(text))
    return subprocess.Popen([sys.executable, "-P", str(path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.parametrize("threads", [1, 2])
def test_ctrl_c_ends_a_batch(tmp_path, threads):
    process = run(f"""
        import signal, time
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a parent may have it ignored
        print("ready", flush=True)
        try:
            f.batch(np.ones(20_000_000), 2000, threads={threads})
        except KeyboardInterrupt:
            print(time.time(), flush=True)
    """, folder=tmp_path)
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.5)
    sent = time.time()
    process.send_signal(signal.SIGINT)
    ended, _ = process.communicate(timeout=60)
    # A machine that has nothing else to do takes less than a fifth of a second.
    assert float(ended) - sent < 5.0
    assert process.returncode == 0


def test_the_interpreter_ends_while_a_batch_runs(tmp_path):
    process = run("""
        import threading, time
        threading.Thread(target=lambda: f.batch(np.ones(20_000_000), 2000), daemon=True).start()
        time.sleep(0.3)
        print("end", flush=True)
    """, folder=tmp_path)
    said, errors = process.communicate(timeout=60)
    assert said == "end\n" and process.returncode == 0 and not errors


@pytest.mark.skipif(not hasattr(os, "fork"), reason="fork")
def test_fork_after_use(tmp_path):
    process = run("""
        import os
        want = f.batch(np.linspace(0, 1, 1000), 20, threads=2)
        child = os.fork()
        got = f.batch(np.linspace(0, 1, 1000), 20, threads=2)
        same = bool(np.all(got == want)) and f(0.5, 7) == f(0.5, 7)
        if child == 0:
            os._exit(0 if same else 1)
        _, status = os.waitpid(child, 0)
        print(same, status)
    """, folder=tmp_path)
    said, errors = process.communicate(timeout=60)
    assert said == "True 0\n", errors


def test_the_lock_is_released():
    f = cr.function(price)
    s, path = np.full(200_000, 100.0), np.ones((200_000, 12))
    f.batch(s[:1], 100.0, path[:1])
    ticks = []
    thread = threading.Thread(target=lambda: f.batch(s, 100.0, path))
    thread.start()
    while thread.is_alive():
        ticks.append(time.perf_counter())
    thread.join()
    assert len(ticks) > 3
