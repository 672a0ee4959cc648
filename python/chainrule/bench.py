"""Times of calls, of first gradients and of compilations, beside other packages where they are installed: `python -m chainrule.bench`.

All are timed in turn in one process; a time is the least of several rounds. With `--programs FOLDER`, the folder of the tests,
the programs of the kinds of NPBench follow, or those that are named, beside their forms in JAX.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import platform
import sys
import time

import numpy as np

from . import function, gradient

ROUNDS = 7


def in_turn(runs, rounds=ROUNDS):
    """The least time of a call of each function, in seconds: they run one after the other in each round."""
    counts = [repetitions(run) for run in runs]
    least = [float("inf")] * len(runs)
    for _ in range(rounds):
        for k, (run, n) in enumerate(zip(runs, counts)):
            start = time.perf_counter()
            for _ in range(n):
                run()
            least[k] = min(least[k], (time.perf_counter() - start) / n)
    return least


def repetitions(run):
    """How many calls take 20 ms."""
    n = 1
    while timed(lambda: [run() for _ in range(n)]) < 0.02:
        n *= 4
    return n


def shown(seconds):
    """A time with its unit."""
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("us", 1e6)):
        if seconds * factor >= 1.0:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def has(name):
    return importlib.util.find_spec(name) is not None


def chain(x):
    return np.sum((x[1:] - x[:-1]) ** 2) + np.sum(np.cos(x))


def calls():
    """A call of a small function and of its gradient, with and without `out=`."""
    x, out = np.linspace(0.0, 1.0, 8), np.empty(8)
    value, slope = function(chain), gradient(function(chain))
    slope(x), value(x)
    rows = [("value of 8 numbers", lambda: value(x)), ("gradient of 8 numbers", lambda: slope(x)),
            ("gradient of 8 numbers, out=", lambda: slope(x, out=out))]
    if has("jax"):
        import jax
        import jax.numpy as jnp
        jax.config.update("jax_enable_x64", True)
        other = jax.jit(jax.grad(lambda x: jnp.sum((x[1:] - x[:-1]) ** 2) + jnp.sum(jnp.cos(x))))
        rows.append(("  gradient, JAX", lambda: other(x).block_until_ready()))
    if has("casadi"):
        import casadi
        s = casadi.SX.sym("x", 8)
        e = casadi.sumsqr(s[1:] - s[:-1]) + casadi.sum1(casadi.cos(s))
        of_casadi = casadi.Function("g", [s], [casadi.gradient(e, s)])
        rows.append(("  gradient, CasADi", lambda: of_casadi(x)))
    if has("numba"):
        import numba
        of_numba = numba.njit(chain)
        of_numba(x)
        rows.append(("  value, Numba", lambda: of_numba(x)))
    if has("symbolica"):
        from symbolica import Expression
        names = [Expression.symbol(f"x{k}") for k in range(8)]
        e = sum(((b - a) ** 2 for a, b in zip(names, names[1:])), sum((a.cos() for a in names), Expression.num(0)))
        of_symbolica = Expression.evaluator_multiple([e.derivative(name) for name in names], names)
        point = x.reshape(1, 8)
        rows.append(("  gradient, Symbolica", lambda: of_symbolica.evaluate(point)))
    rows += [(f"  {name} is not installed", None) for name in ("jax", "casadi", "numba", "symbolica") if not has(name)]
    times = iter(in_turn([run for _, run in rows if run is not None]))
    return [(name, None if run is None else next(times)) for name, run in rows]


def first_gradient():
    """From the definition of a function to its first gradient."""
    x = np.linspace(0.0, 1.0, 8)

    def once():
        gradient(function(chain))(x)

    runs = [("definition to first gradient", once)]
    if has("jax"):
        import jax
        import jax.numpy as jnp

        def jax_once():
            jax.clear_caches()
            f = lambda x: jnp.sum((x[1:] - x[:-1]) ** 2) + jnp.sum(jnp.cos(x))
            jax.jit(jax.grad(f))(x).block_until_ready()

        runs.append(("  JAX", jax_once))
    times = [[timed(run) for _, run in runs] for _ in range(ROUNDS)]
    return [(name, min(column)) for (name, _), column in zip(runs, zip(*times))]


def timed(run):
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def shapes():
    """A hundred shapes in turn."""
    f = function(chain)
    slope = gradient(f)
    spent = timed(lambda: [slope(np.linspace(0.0, 1.0, n)) for n in range(9, 109)])
    return [(f"100 shapes, {f.compilations} compilation{'s' if f.compilations != 1 else ''}", spent)]


def main(args=None):
    parser = argparse.ArgumentParser(prog="python -m chainrule.bench", description="Times beside other packages")
    parser.add_argument("--programs", metavar="FOLDER", help="folder of the tests: times their programs beside JAX")
    parser.add_argument("names", nargs="*", help="programs to time (default: all)")
    chosen = parser.parse_args(args)
    load = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    print(f"Python {platform.python_version()}, NumPy {np.__version__}, {os.cpu_count()} processors{load}")
    for part in (calls, first_gradient, shapes):
        print((part.__doc__ or "").strip())
        for name, seconds in part():
            print(f"  {name:<40} {'' if seconds is None else shown(seconds):>10}".rstrip(), flush=True)
    if chosen.programs:
        sys.path.insert(0, chosen.programs)
        from npbench.compare import table
        for line in table(shown, chosen.names):
            print(line, flush=True)


if __name__ == "__main__":
    main()
