"""What tests share: comparison with NumPy, values, dtypes and shapes; gradients by central differences."""

import numpy as np

import chainrule as cr


def leaves(value):
    """The numbers and arrays in tuples and lists."""
    return [leaf for part in value for leaf in leaves(part)] if isinstance(value, (tuple, list)) else [value]


def same(got, want, rtol=1e-12):
    got, want = leaves(got), leaves(want)
    assert len(got) == len(want)
    for k, (g, w) in enumerate(zip(got, want)):
        g, w = np.asarray(g), np.asarray(w)
        assert g.shape == w.shape, f"result {k} has the shape {g.shape}, not {w.shape}"
        assert g.dtype == w.dtype, f"result {k} has the dtype {g.dtype}, not {w.dtype}"
        np.testing.assert_allclose(g, w, rtol=rtol, atol=1e-13, err_msg=f"result {k}")


def total(value):
    """A sum of all floats, each with a weight of its own."""
    sums = [np.sum(np.asarray(leaf) * np.cos(np.arange(np.size(leaf)).reshape(np.shape(leaf)) + k))
            for k, leaf in enumerate(leaves(value)) if np.asarray(leaf).dtype.kind == "f"]
    return float(sum(sums))


def weights(value):
    """The weights of `total`, for the leaves of floats; zeros for the others."""
    return [np.cos(np.arange(np.size(leaf)).reshape(np.shape(leaf)) + k) * (np.asarray(leaf).dtype.kind == "f")
            for k, leaf in enumerate(leaves(value))]


def differences(f, args, k, h=1e-4):
    """The gradient of `total` of f by argument k, by central differences of order four."""
    x = np.asarray(args[k], dtype=float)
    gradient = np.zeros(x.shape)
    for index in np.ndindex(x.shape):
        def at(step):
            moved = x.copy()
            moved[index] += step
            given = moved if isinstance(args[k], np.ndarray) else float(moved)
            return total(f(*args[:k], given, *args[k + 1:]))
        gradient[index] = (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h)
    return gradient


def check(f, args, gradient=True, rtol=1e-12, tolerance=1e-7):
    """f compiled is f: its values, and the derivative of a weighted sum of its floats by each float argument."""
    compiled = cr.function(f)
    want = f(*args)
    got = compiled(*args)
    same(got, want, rtol)
    if not gradient or not any(np.asarray(leaf).dtype.kind == "f" for leaf in leaves(want)):
        return
    by = [k for k, arg in enumerate(args) if isinstance(arg, float) or isinstance(arg, np.ndarray) and arg.dtype.kind == "f"]
    for k in by:
        jac = cr.jacobian(compiled, argnums=k)(*args)
        blocks = [block for block in leaves(jac) if block is not None]
        sums = np.zeros(np.shape(args[k]))
        floats = [w for w, leaf in zip(weights(want), leaves(want)) if np.asarray(leaf).dtype.kind == "f"]
        assert len(blocks) == len(floats)
        for weight, block in zip(floats, blocks):
            sums = sums + np.tensordot(weight, block, axes=np.ndim(weight))
        np.testing.assert_allclose(sums, differences(f, args, k), rtol=tolerance, atol=tolerance)
