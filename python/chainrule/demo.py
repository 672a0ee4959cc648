"""A function, its gradient, the pattern of its Hessian, and times beside NumPy: `python -m chainrule.demo`."""

from __future__ import annotations

import inspect
import time

import numpy as np

import chainrule as cr


def energy(x, k=1.0):
    """A chain of springs with a cubic part."""
    stretch = x[1:] - x[:-1] - 1.0
    return np.sum(0.5 * k * stretch**2 + 0.1 * stretch**3)


def gradient_by_hand(x, k=1.0):
    stretch = x[1:] - x[:-1] - 1.0
    pull = k * stretch + 0.3 * stretch**2
    return np.concatenate([[0.0], pull]) - np.concatenate([pull, [0.0]])


def best(call, seconds=0.05):
    """The shortest time of a call."""
    shortest, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        call()
        shortest = min(shortest, time.perf_counter() - start)
    return shortest


def main():
    print(inspect.getsource(energy))
    start = time.perf_counter()
    gradient, x = cr.gradient(energy), np.linspace(0.0, 11.0, 10)
    slope = gradient(x)
    print(f"gradient, captured and compiled in {(time.perf_counter() - start) * 1e3:.1f} ms:\n{np.round(slope, 3)}\n")
    pattern = cr.hessian(energy)(x) != 0
    print("pattern of the Hessian:")
    print("\n".join("".join(" x"[int(hit)] for hit in row) for row in pattern), "\n")
    x = np.linspace(0.0, 1e5, 100_000)
    value(x)
    difference = np.max(np.abs(gradient(x) - gradient_by_hand(x)))
    print(f"at 100,000 numbers, the same code: {difference:.1e} from the gradient by hand")
    print(f"  value:    NumPy {best(lambda: energy(x)) * 1e6:7.0f} us, Chainrule {best(lambda: value(x)) * 1e6:7.0f} us")
    by_hand, derived = best(lambda: gradient_by_hand(x)), best(lambda: gradient(x))
    print(f"  gradient: NumPy {by_hand * 1e6:7.0f} us, Chainrule {derived * 1e6:7.0f} us (NumPy's was written by hand)")


value = cr.function(energy)

if __name__ == "__main__":
    main()
