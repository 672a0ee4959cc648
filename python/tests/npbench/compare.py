"""The programs beside their forms in JAX: lines changed, first call, run time of values and gradients, in turn in one process."""

import difflib
import inspect
import statistics
import time

import numpy as np

import chainrule as cr

from . import programs
from .sums import sum_of

#: Sizes for timing where those of NPBench take minutes or gigabytes.
SMALLER = {
    "mlp": (3, 8, 3000, 200, 200), "azimint_naive": (40_000, 100), "atax": (1600, 2000), "bicg": (1600, 2000), "mvt": (2000,),
    "gemm": (400, 440, 480), "k2mm": (320, 340, 360, 380), "k3mm": (320, 340, 360, 380, 400),
}
#: Sizes beyond those: the larger problems of NPBench, scaled to fit a minute.
LARGER = {
    "jacobi_1d": (2000, 16000), "jacobi_2d": (100, 500), "heat_3d": (25, 60), "fdtd_2d": (50, 500, 550), "hdiff": (128, 128, 80),
    "gemm": (1000, 1100, 1200), "atax": (4000, 5000), "softmax": (16, 16, 256), "go_fast": (4000,), "compute": (4000, 4000),
    "arc_distance": (1_000_000,), "floyd_warshall": (300,), "trisolv": (4000,), "cholesky2": (1500,),
    "gesummv": (5000,), "spmv": (65536, 65536, 4), "covariance": (1000, 1200),
}
#: Time that the rounds of one program may take.
BUDGET = 6.0
ROUNDS = 9


def lines_changed(function, other):
    """How many lines of `function` and of what it calls differ in `other`'s module."""
    ours, theirs = (source_with_helpers(f).splitlines() for f in (function, other))
    return sum(line[:1] == "+" for line in difflib.ndiff(ours, theirs))


def source_with_helpers(function):
    """The source of a function and of the functions of its module that it calls."""
    found, wanted = [], [function]
    while wanted:
        one = wanted.pop()
        if one in found:
            continue
        found.append(one)
        names = (one.__globals__.get(name) for name in one.__code__.co_names)
        wanted += [g for g in names if inspect.isfunction(g) and g.__module__ == function.__module__]
    return "\n".join(inspect.getsource(one) for one in sorted(found, key=lambda f: f.__name__))


def in_turn(runs, budget=BUDGET):
    """For each of the functions its times, one after the other in each round."""
    times = [[] for _ in runs]
    start = time.perf_counter()
    while len(times[0]) < 3 or len(times[0]) < ROUNDS and time.perf_counter() - start < budget:
        for run, found in zip(runs, times):
            found.append(once(run))
    return times


def once(run):
    """The time of a call; short ones are repeated."""
    start = time.perf_counter()
    run()
    spent = time.perf_counter() - start
    if spent > 2e-3:
        return spent
    n = min(int(4e-3 / max(spent, 1e-7)) + 1, 2000)
    start = time.perf_counter()
    for _ in range(n):
        run()
    return (time.perf_counter() - start) / n


class Row:
    """A program at one size: first calls and times of values and gradients, by Chainrule, and by JAX where it is there."""

    def __init__(self, p, sizes):
        self.name, self.sizes = p.name, sizes
        args = p.arguments(np.random.default_rng(5), *sizes)
        by = floats(p, args)
        plain = cr.function(p.function)
        slope = cr.gradient(sum_of(p), argnums=tuple(by))
        copies = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
        self.first = [first(lambda: plain(*copies)), first(lambda: slope(*args))]
        runs = [[lambda: plain(*copies)], [lambda: slope(*args)]]
        self.lines = None
        self.agrees = True
        other = jax_form(p)
        if other is not None:
            self.lines = lines_changed(p.function, other)
            values, gradients = in_jax(other, args, by)
            self.other_first = [first(values), first(gradients)]
            runs[0].append(values)
            runs[1].append(gradients)
            self.agrees = all(np.allclose(a, b, rtol=1e-6, atol=1e-8 * (1 + np.max(np.abs(a), initial=0))) for a, b in zip(slope(*args), gradients()))
        self.times = [in_turn(one) for one in runs]

    def ratio(self, what):
        """The time of Chainrule by that of JAX, the median of the rounds."""
        mine, other = self.times[what]
        return statistics.median(a / b for a, b in zip(mine, other))


def floats(p, args):
    """The numbers of the arguments to differentiate by."""
    return [k for k, a in enumerate(args) if k not in p.fixed and (isinstance(a, float) or isinstance(a, np.ndarray) and a.dtype.kind == "f")]


def first(run):
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def jax_form(p):
    """The program in JAX, if there is one, and if JAX is installed."""
    try:
        import jax
    except ImportError:
        return None
    jax.config.update("jax_enable_x64", True)
    from . import jax_forms
    return getattr(jax_forms, p.name, None)


def in_jax(function, args, by):
    """Calls of the values and of the gradient of the sum of all outputs."""
    import jax
    import jax.numpy as jnp
    static = tuple(k for k, a in enumerate(args) if isinstance(a, int))
    total = lambda *args: sum(jnp.sum(leaf) for leaf in jax.tree.leaves(function(*args)))
    values, gradient = jax.jit(function, static_argnums=static), jax.jit(jax.grad(total, argnums=tuple(by)), static_argnums=static)
    there = [jnp.asarray(a) if isinstance(a, np.ndarray) else a for a in args]
    return lambda: jax.block_until_ready(values(*there)), lambda: jax.block_until_ready(gradient(*there))


def geometric_mean(numbers):
    return float(np.exp(np.mean(np.log(numbers)))) if numbers else float("nan")


def table(shown, only=()):
    """Lines of the table, as they are done; `shown` writes a time with its unit."""
    yield "Programs of the kinds of NPBench: medians of times in turn; ratios are Chainrule's time by JAX's, below 1 where Chainrule is faster."
    yield (f"{'program':<26}{'sizes':<26}{'lines':>6} | {'first value':>11}{'JAX':>9} {'first grad.':>11}{'JAX':>9} | {'value':>8}{'JAX':>9}{'ratio':>7} |"
           f" {'gradient':>8}{'JAX':>9}{'ratio':>7}")
    rows = []
    for p in programs():
        if p.refused is not None or only and p.name not in only:
            continue
        if not floats(p, p.arguments(np.random.default_rng(0), *p.test)):
            continue
        for sizes in [SMALLER.get(p.name, p.S)] + ([LARGER[p.name]] if p.name in LARGER else []):
            compact = "x".join(map(str, sizes))
            try:
                row = Row(p, sizes)
            except cr.Error as error:
                yield f"{p.name:<26}{compact:<26}{'-':>6} | {error.title}"
                continue
            middle = lambda what, k, row=row: shown(statistics.median(row.times[what][k]))
            if row.lines is None:
                yield (f"{row.name:<26}{compact:<26}{'-':>6} | {shown(row.first[0]):>11}{'-':>9} {shown(row.first[1]):>11}{'-':>9} | "
                       f"{middle(0, 0):>8}{'-':>9}{'-':>7} | {middle(1, 0):>8}{'-':>9}{'-':>7}")
                continue
            rows.append(row)
            yield (f"{row.name:<26}{compact:<26}{row.lines:>6} | {shown(row.first[0]):>11}{shown(row.other_first[0]):>9} {shown(row.first[1]):>11}"
                   f"{shown(row.other_first[1]):>9} | {middle(0, 0):>8}{middle(0, 1):>9}{row.ratio(0):>7.2f} | {middle(1, 0):>8}{middle(1, 1):>9}"
                   f"{row.ratio(1):>7.2f}{'' if row.agrees else '  gradients differ'}")
    if not rows:
        yield "JAX is not installed: no ratios."
        return
    values, gradients = [row.ratio(0) for row in rows], [row.ratio(1) for row in rows]
    firsts = [row.first[1] / row.other_first[1] for row in rows]
    yield (f"geometric means of {len(rows)} ratios: values {geometric_mean(values):.2f}, gradients {geometric_mean(gradients):.2f} "
           f"(largest {max(gradients):.2f}; {sum(r > 1 for r in gradients)} above 1), first gradient {geometric_mean(firsts):.3f} (largest {max(firsts):.3f})")
    for word, found in (("gradients", gradients), ("values", values)):
        slower = [f"{row.name} {'x'.join(map(str, row.sizes))} {r:.2f}" for row, r in sorted(zip(rows, found), key=lambda pair: -pair[1]) if r > 1]
        yield f"{word} that JAX computes faster: {', '.join(slower) or 'none'}"
