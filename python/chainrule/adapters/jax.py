"""Functions inside of JAX programs: under `jit`, `vmap`, `grad`, `jvp` and their combinations, of every order.

A call is one primitive of JAX. On the processor its lowering is a call of XLA's foreign function interface: compiled code reads and writes XLA's arrays, and
no Python code runs. Elsewhere it is a callback to the host. The derivative of a call is a call again, of the derivative that Chainrule makes: Jacobian times
direction forwards, weights times Jacobian backwards; no Jacobian is stored.
"""

from __future__ import annotations

import functools
import pathlib
import re

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir, xla

from .. import _core
from ..code import assemble, fill
from ..errors import TypeError_
from ..function import Function
from ..function import function as as_function
from .leaves import entrance, example_of, examples

TARGET = "chainrule"


def to_jax(f, static=()):
    """A function of JAX that evaluates `f`.

    Arguments are arrays, numbers, and tuples, lists, dicts and dataclasses of them; those whose positions are in `static` are Python objects, known while
    tracing. The result has the structure of the result of `f`. Numbers are float64 where JAX has them (`jax_enable_x64`), otherwise they are rounded to float32.
    """
    f = f if isinstance(f, Function) else as_function(f)
    static = (static,) if isinstance(static, int) else tuple(static)

    @functools.wraps(f)
    def call(*args, **kwargs):
        leaves, values, unknown = [], [], []
        for k, value in enumerate(f._bind(args, kwargs)):
            is_static = k in static
            values.append(value if f._names[k] in f.static else examples(value, leaves, to_static if is_static else to_array, is_array))
            unknown += [leaf.ndim == 0 and leaf.dtype.kind in "iu" and not is_static for leaf in leaves[len(unknown):]]
        at = entrance(f, values, unknown)
        operands = [*leaves, *map(jnp.asarray, at.arrays)]
        results = evaluate.bind(*[operands[k] for k in at.taken], program=at.program, integers=at.integers, n_axes=0)
        return fill(assemble(at.structure, iter(range(len(results)))), results)

    return call


def is_array(value):
    return isinstance(value, jax.Array)


def to_static(value):
    """An argument that is known, as an array, and itself."""
    return np.asarray(value), value


def to_array(value):
    """An argument as an array of JAX, and an example for it."""
    array = jnp.asarray(value)
    if jnp.issubdtype(array.dtype, jax.dtypes.extended):
        raise TypeError_(f"an argument has the dtype {array.dtype}", remedy="pass floats, integers or truth values")
    kind = "f" if jnp.issubdtype(array.dtype, jnp.floating) else array.dtype.kind
    if kind == "f" and array.dtype.itemsize < 4:
        array = array.astype(jnp.float32)
    elif kind in "iu" and array.dtype.name not in ("int32", "int64"):
        array = array.astype(jnp.result_type(int))
    return array, example_of(array.shape, kind)


# The primitive: a program on leaves. `integers` are the known ones, as pairs of an operand and its value. The first `n_axes` axes of operands count points; an
# axis of 1 there is the same for all points.

evaluate = Primitive("chainrule")
evaluate.multiple_results = True
evaluate.def_impl(functools.partial(xla.apply_primitive, evaluate))


@evaluate.def_abstract_eval
def results_of(*operands, program, integers, n_axes):
    points = np.broadcast_shapes(*[a.shape[:n_axes] for a in operands])
    dtypes = {"f": jnp.result_type(float), "i": jnp.result_type(int), "b": np.dtype(bool)}
    found = program.shapes([a.shape[n_axes:] for a in operands], integers)
    return [jax.core.ShapedArray((*points, *shape), dtypes[kind]) for shape, (_, kind, _) in zip(found, program.outputs)]


def forwards(operands, tangents, *, program, **options):
    results = evaluate.bind(*operands, program=program, **options)
    moved = [ad.Zero(jax.typeof(result).to_tangent_aval()) for result in results]
    moving = [k for k, tangent in enumerate(tangents) if not isinstance(tangent, ad.Zero) and program.inputs[k][1] == "f"]
    if moving and program.smooth:
        by = program.whole(moving)
        directions = [ad.instantiate_zeros(tangents[k]) for k in by]
        found = evaluate.bind(*operands, *directions, program=program.along(by), **options)
        for k, tangent in zip(program.smooth, found):
            moved[k] = tangent
    return results, moved


def backwards(cotangents, *operands, program, integers, n_axes):
    """The transpose of a derivative, which is linear in its directions or weights."""
    function, by, takes_weights = program.transposed
    n = len(function.inputs)
    weights = [ad.instantiate_zeros(weight) for weight in cotangents]
    transpose = function.along(by) if takes_weights else function.against(by)
    found = evaluate.bind(*operands[:n], *weights, program=transpose, integers=integers, n_axes=n_axes)
    made = [None] * len(operands)
    for k, result in enumerate(found, n):
        if ad.is_undefined_primal(operands[k]):
            made[k] = reduced(result, operands[k].aval, n_axes)
    return made


def reduced(result, like, n_axes):
    """The sum over points of a cotangent whose operand is the same for all."""
    axes = [k for k in range(n_axes) if like.shape[k] == 1 and result.shape[k] != 1]
    return (jnp.sum(result, axis=tuple(axes), keepdims=True) if axes else result).astype(like.dtype)


def batched(operands, axes, *, n_axes, **options):
    moved = [jnp.expand_dims(a, 0) if axis is None else jnp.moveaxis(a, axis, 0) for a, axis in zip(operands, axes)]
    results = evaluate.bind(*moved, n_axes=n_axes + 1, **options)
    return results, [0] * len(results)


ad.primitive_jvps[evaluate] = forwards
ad.primitive_transposes[evaluate] = backwards
batching.primitive_batchers[evaluate] = batched


# Lowering.

def on_host(*operands, program, integers, n_axes):
    """Evaluation by a callback to the host: on other devices, and for versions of XLA with another interface."""
    found = results_of(*map(jax.typeof, operands), program=program, integers=integers, n_axes=n_axes)
    shapes = [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in found]

    def host(*arrays):
        return [np.asarray(r, a.dtype) for r, a in zip(program.run([np.asarray(a) for a in arrays], n_axes), shapes)]

    return jax.pure_callback(host, shapes, *operands)


def registered():
    """Whether XLA takes the handler: its interface has the major version 0."""
    try:
        header = pathlib.Path(jax.ffi.include_dir(), "xla", "ffi", "api", "c_api.h").read_text()
    except OSError:
        return False
    found = [re.search(rf"#define XLA_FFI_API_{part} (\d+)", header) for part in ("MAJOR", "MINOR")]
    if None in found or int(found[0][1]) != 0:
        return False
    minor = int(found[1][1])
    jax.ffi.register_ffi_target(TARGET, _core.xla_handler(minor), platform="cpu")
    return True


def lower(context, *operands, program, integers, n_axes):
    _core.xla_register(program.number, program.compiled)
    return jax.ffi.ffi_lowering(TARGET)(context, *operands, program=np.int64(program.number))


mlir.register_lowering(evaluate, mlir.lower_fun(on_host, multiple_results=True))
if registered():
    mlir.register_lowering(evaluate, lower, platform="cpu")

__all__ = ["to_jax"]
