"""Functions inside of JAX programs: under `jit`, `vmap`, `grad` and `jvp`.

A call is a host callback (`jax.pure_callback`): compiled code of Chainrule runs on JAX's arrays, many points at once under `vmap`. Its derivative is
the Jacobian that Chainrule derives, applied by JAX; of a function with a scalar result, second derivatives are Chainrule's, too.
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np

from ..batch import Batch
from ..derivative import gradient, hessian, jacobian
from ..errors import TypeError_
from ..function import Evaluator, Function
from ..function import function as as_function


def to_jax(f, static=()):
    """A function of JAX that evaluates `f`.

    Arguments are arrays and numbers; those whose numbers (of the position) are in `static` are Python objects, known while tracing. The result is an array or a
    tuple of arrays. Numbers are float64 where JAX has them (`jax_enable_x64`), otherwise converted to float32.
    """
    f = f if isinstance(f, Function) else as_function(f)

    def call(*args):
        fixed = {k: args[k] for k in static}
        free = [k for k in range(len(args)) if k not in fixed]
        smooth = [k for k in free if jnp.issubdtype(jnp.result_type(args[k]), jnp.floating)]
        return differentiable(f, fixed, free, smooth)(*[jnp.asarray(args[k]) for k in free])

    call.__name__ = f.__name__
    call.__doc__ = f.__doc__
    return call


def differentiable(f, fixed, free, smooth):
    """`f` as a function of its free arguments, with its derivative by those that are smooth."""

    @jax.custom_jvp
    def value(*args):
        return evaluate(f, fixed, free, args)

    @value.defjvp
    def along(args, directions):
        result = value(*args)
        wanted = [free.index(k) for k in smooth]
        is_scalar = not isinstance(result, (tuple, list)) and result.ndim == 0
        blocks = slopes(f, fixed, free, smooth, is_scalar)(*args)
        directions = [directions[k] for k in wanted]
        if not isinstance(result, (tuple, list)):
            return result, along_all(blocks, directions, result)
        tangents = [zero(r) if not jnp.issubdtype(r.dtype, jnp.floating) else along_all(b, directions, r)
                    for r, b in zip(result, blocks)]
        return result, type(result)(tangents)

    return value


def slopes(f, fixed, free, smooth, is_scalar):
    """The derivatives by the smooth arguments; of scalars with derivatives of their own."""
    if not is_scalar:
        made = jacobian(f, argnums=tuple(smooth))
        return lambda *args: evaluate(made, fixed, free, args)
    first, second = gradient(f, argnums=tuple(smooth)), hessian(f, argnums=tuple(smooth))

    @jax.custom_jvp
    def value(*args):
        return evaluate(first, fixed, free, args)

    @value.defjvp
    def along(args, directions):
        result = value(*args)
        rows = evaluate(second, fixed, free, args)
        directions = [directions[free.index(k)] for k in smooth]
        return result, tuple([along_all(row, directions, r) for row, r in zip(rows, result)])

    return value


def zero(result):
    return np.zeros(result.shape, dtype=jax.dtypes.float0)


def along_all(blocks, directions, result):
    """The sum of the blocks, each with the axes of the result and of an argument, times its direction."""
    total = jnp.zeros(result.shape, result.dtype)
    for block, direction in zip(blocks, directions):
        total = total + jnp.tensordot(block, direction, axes=direction.ndim)
    return total


def evaluate(evaluator: Evaluator, fixed, free, args):
    """A call of the host."""
    def merged(arrays):
        values = dict(fixed)
        values.update(zip(free, arrays))
        return [values[k] for k in range(len(values))]

    wide = jnp.result_type(float)
    ranks = [a.ndim for a in args]
    # Shapes and dtypes of the results follow from those of the arguments: indices are 0 here.
    example = merged([convert(np.zeros(a.shape, a.dtype)) for a in args])
    call = evaluator._prepare(tuple(example), {})
    leaves = [a if a.ndim else a.reshape(1) for a in call.leaves]
    workspace = call.code.compiled.workspace(leaves)
    dtypes = {"f": wide, "i": jnp.result_type(int), "b": np.dtype(bool)}
    shapes = [jax.ShapeDtypeStruct(tuple(workspace.shape(k)), dtypes[kind]) for k, (_, kind, _) in enumerate(call.code.outputs)]

    def host(*arrays):
        arrays = [convert(np.asarray(a)) for a in arrays]
        lead = arrays[0].shape[: arrays[0].ndim - ranks[0]] if arrays else ()
        if not lead:
            results = flat(evaluator(*merged(arrays)))
        else:
            n = math.prod(lead)
            axes = [None] * (len(fixed) + len(free))
            for k in free:
                axes[k] = 0
            points = [np.ascontiguousarray(a).reshape(n, *a.shape[len(lead):]) for a in arrays]
            results = flat(Batch(evaluator, tuple(axes))(*merged(points)))
            results = [np.asarray(r).reshape(*lead, *np.shape(r)[1:]) for r in results]
        # Results come in the order of the structure that they are put together to.
        found = dict(zip(flat(call.template), results))
        return tuple([np.asarray(found[k], dtype=s.dtype) for k, s in enumerate(shapes)])

    results = list(jax.pure_callback(host, tuple(shapes), *args, vmap_method="broadcast_all"))
    return fill_all(call.template, results)


def convert(array):
    """An array of JAX as Chainrule takes it."""
    if array.dtype.kind == "f" or array.dtype == jnp.bfloat16:
        return np.ascontiguousarray(array, dtype=np.float64).reshape(array.shape)
    if array.dtype.kind in "iu":
        return np.ascontiguousarray(array, dtype=np.int64).reshape(array.shape)
    if array.dtype.kind == "b":
        return array
    raise TypeError_(f"an argument has the dtype {array.dtype}", remedy="pass floats, integers or truth values")


def flat(value):
    """The leaves of a result that are there."""
    if isinstance(value, (tuple, list)):
        return [leaf for part in value for leaf in flat(part)]
    return [] if value is None else [value]


def fill_all(template, leaves):
    if isinstance(template, (tuple, list)):
        return type(template)([fill_all(part, leaves) for part in template])
    return None if template is None else leaves[template]


__all__ = ["to_jax"]
