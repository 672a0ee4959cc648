"""Times of calls, of first gradients and of compilations, with other packages where they are installed: `python -m chainrule.bench`.

Each pair is timed in turn in one process; a time is the least of several rounds.
"""

from __future__ import annotations

import importlib.util
import time

import numpy as np

from . import function, gradient

ROUNDS = 7


def best(run, rounds=ROUNDS):
    """The least time of a call, in seconds."""
    n = 1
    while True:
        start = time.perf_counter()
        for _ in range(n):
            run()
        spent = time.perf_counter() - start
        if spent > 0.02:
            break
        n *= 4
    times = [spent / n]
    for _ in range(rounds - 1):
        start = time.perf_counter()
        for _ in range(n):
            run()
        times.append((time.perf_counter() - start) / n)
    return min(times)


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
    """A call of a small function: with and without `out=`."""
    x, out = np.linspace(0.0, 1.0, 8), np.empty(8)
    slope = gradient(function(chain))
    slope(x)
    rows = [("gradient of 8 numbers", best(lambda: slope(x))), ("gradient of 8 numbers, out=", best(lambda: slope(x, out=out)))]
    if has("jax"):
        import jax
        import jax.numpy as jnp
        jax.config.update("jax_enable_x64", True)
        other = jax.jit(jax.grad(lambda x: jnp.sum((x[1:] - x[:-1]) ** 2) + jnp.sum(jnp.cos(x))))
        rows.append(("  JAX", best(lambda: other(x).block_until_ready())))
    if has("casadi"):
        import casadi
        s = casadi.SX.sym("x", 8)
        e = casadi.sumsqr(s[1:] - s[:-1]) + casadi.sum1(casadi.cos(s))
        other = casadi.Function("g", [s], [casadi.gradient(e, s)])
        rows.append(("  CasADi", best(lambda: other(x))))
    return rows


def first_gradient():
    """From the definition of a function to its first gradient."""
    x = np.linspace(0.0, 1.0, 8)

    def once():
        gradient(function(chain))(x)

    rows = [("definition to first gradient", min(timed(once) for _ in range(ROUNDS)))]
    if has("jax"):
        import jax
        import jax.numpy as jnp

        def jax_once():
            jax.clear_caches()
            f = lambda x: jnp.sum((x[1:] - x[:-1]) ** 2) + jnp.sum(jnp.cos(x))
            jax.jit(jax.grad(f))(x).block_until_ready()

        rows.append(("  JAX", min(timed(jax_once) for _ in range(ROUNDS))))
    return rows


def timed(run):
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def shapes():
    """A hundred shapes in turn."""
    f = function(chain)
    slope = gradient(f)
    spent = timed(lambda: [slope(np.linspace(0.0, 1.0, n)) for n in range(3, 103)])
    return [(f"100 shapes, {f.compilations} compilation{'s' if f.compilations != 1 else ''}", spent)]


def main():
    for part in (calls, first_gradient, shapes):
        print((part.__doc__ or "").strip())
        for name, seconds in part():
            print(f"  {name:<40} {shown(seconds):>10}")


if __name__ == "__main__":
    main()
