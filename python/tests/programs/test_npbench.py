"""Programs of the kinds of NPBench: values and writes against NumPy, derivatives along directions against central differences."""

import copy

import numpy as np
import pytest
from npbench import programs
from npbench.sums import outputs, sum_of
from support import leaves

import chainrule as cr

PROGRAMS = programs()


def effects(f, args):
    """The results and what the arguments become."""
    args = copy.deepcopy(args)
    result = f(*args)
    return [np.asarray(x) for x in [*([] if result is None else leaves(result)), *(a for a in args if isinstance(a, np.ndarray))]]


def total(f, args, written):
    """The sum of what is returned, and of the arrays of these numbers."""
    args = copy.deepcopy(args)
    result = f(*args)
    found = [*([] if result is None else leaves(result)), *(args[k] for k in written)]
    return sum(float(np.sum(x)) for x in found if np.asarray(x).dtype.kind == "f")


@pytest.mark.parametrize("p", PROGRAMS, ids=[p.name for p in PROGRAMS])
def test_program(p):
    args = p.arguments(np.random.default_rng(5), *p.test)
    if p.refused is not None:
        with pytest.raises(cr.CaptureError, match=p.refused):
            cr.function(p.function)(*args)
        return
    compiled = cr.function(p.function)
    for got, want in zip(effects(compiled, args), effects(p.function, args), strict=True):
        assert got.shape == want.shape and got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-12)
    by = [k for k, a in enumerate(args) if k not in p.fixed and (isinstance(a, float) or isinstance(a, np.ndarray) and a.dtype.kind == "f")]
    if not by:
        return
    gradients = cr.gradient(sum_of(p), argnums=tuple(by))(*args)
    _, written, _ = outputs(p.function, args)
    rng = np.random.default_rng(6)
    for k, gradient in zip(by, gradients):
        for _ in range(2):
            d = rng.normal(size=np.shape(args[k])) * np.maximum(np.abs(args[k]), 0.1)
            at = lambda h: total(p.function, [*args[:k], args[k] + h * d, *args[k + 1:]], written)
            # A program in pieces has a difference of its own piece with small steps only.
            steps = {2e-4: 3e-7, 1e-5: 3e-6}
            got = float(np.sum(gradient * d))
            found = {h: (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h) for h in steps}
            assert any(abs(got - found[h]) <= tolerance * max(1.0, abs(got)) for h, tolerance in steps.items()), (p.name, k, got, found)


def test_at_least_45_run():
    assert sum(p.refused is None for p in PROGRAMS) >= 45
