"""Functions inside of PyTorch programs: under autograd of every order, `torch.func`, `torch.compile`, `vmap`.

A call is the custom operator `chainrule::evaluate`. Its gradient is the operator again, with the program of weights times Jacobian that Chainrule makes, so no
Jacobian is stored and gradients have gradients.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from ..code import assemble, fill
from ..errors import TypeError_
from ..function import Function
from ..function import function as as_function
from .leaves import entrance, example_of, examples

#: Programs by number. Graphs of PyTorch contain numbers only, so a program lives as long as the process.
PROGRAMS = {}


def to_torch(f, static=()):
    """A function of PyTorch that evaluates `f`.

    Arguments are tensors, numbers, and tuples, lists, dicts and dataclasses of them; those whose positions are in `static` stay as they are. The result has
    the structure of the result of `f`, of tensors: floats of the widest dtype among the tensors that are arguments, computed in float64. Tensors on other devices are
    copied to the processor and back.
    """
    f = f if isinstance(f, Function) else as_function(f)
    static = (static,) if isinstance(static, int) else tuple(static)

    def call(*args, **kwargs):
        leaves, values, unknown, tensors = [], [], [], []
        for k, value in enumerate(f._bind(args, kwargs)):
            if f._names[k] in f.static or k in static and not isinstance(value, torch.Tensor):
                values.append(value if f._names[k] in f.static else examples(value, leaves, to_known, is_tensor))
            else:
                values.append(examples(value, leaves, to_tensor, is_tensor))
            for leaf in leaves[len(unknown):]:
                tensors += [leaf] if isinstance(leaf, torch.Tensor) else []
                unknown.append(isinstance(leaf, torch.Tensor) and leaf.ndim == 0 and not leaf.is_floating_point() and leaf.dtype != torch.bool)
        floats = [tensor.dtype for tensor in tensors if tensor.is_floating_point()]
        dtype = torch.float64 if not floats else max(floats, key=lambda d: (torch.finfo(d).bits, torch.finfo(d).resolution < 1e-3))
        device = tensors[0].device if tensors else torch.device("cpu")
        at = entrance(f, values, unknown)
        arrays = [*leaves, *at.arrays]
        operands = [leaf if isinstance(leaf, torch.Tensor) else torch.tensor(leaf, device=device) for leaf in (arrays[k] for k in at.taken)]
        results = Call.apply(number_of(at.program), [n for pair in at.integers for n in pair], 0, dtype, *operands)
        return fill(assemble(at.structure, iter(range(len(results)))), results)

    call.__name__, call.__doc__ = f.__name__, f.__doc__
    return call


def is_tensor(value):
    return isinstance(value, torch.Tensor)


def to_known(value):
    return np.asarray(value), value


def to_tensor(value):
    """An argument as a tensor, or as an array where its values are known; and an example for it."""
    if not isinstance(value, torch.Tensor):
        array = np.asarray(value)
        if array.ndim == 0 and array.dtype.kind in "iu":
            return array, value
        return array, example_of(array.shape, array.dtype.kind)
    if value.is_complex() or value.layout != torch.strided or value.is_quantized:
        raise TypeError_(f"an argument is a tensor of {value.dtype}, {value.layout}", remedy="pass dense tensors of floats, integers or truth values")
    kind = "f" if value.is_floating_point() else "b" if value.dtype == torch.bool else "i"
    return value, example_of(tuple(map(int, value.shape)), kind)


def number_of(program):
    """The number by which the operator finds a program."""
    number = program.number
    PROGRAMS.setdefault(number, program)
    return number


# The operator: a program on leaves. `integers` are the known ones: an operand and its value, then the next. The first `n_axes` axes of operands count points; an
# axis of 1 there is the same for all points.

@torch.library.custom_op("chainrule::evaluate", mutates_args=())
def evaluate(operands: Sequence[torch.Tensor], program: int, integers: Sequence[int], n_axes: int, dtype: torch.dtype) -> list[torch.Tensor]:
    made = PROGRAMS[program]
    arrays = [operand.detach().to("cpu", torch.float64 if kind == "f" else torch.int64).numpy() for operand, (_, kind, _) in zip(operands, made.inputs)]
    device = operands[0].device if operands else torch.device("cpu")
    return [torch.from_numpy(result).to(device, dtype_of(kind, dtype)) for result, (_, kind, _) in zip(made.run(arrays, n_axes), made.outputs)]


def dtype_of(kind, dtype):
    return {"f": dtype, "i": torch.int64, "b": torch.bool}[kind]


@evaluate.register_fake
def shapes_of(operands, program, integers, n_axes, dtype):
    made = PROGRAMS[program]
    shapes = [tuple(map(int, operand.shape)) for operand in operands]
    points = np.broadcast_shapes(*[shape[:n_axes] for shape in shapes])
    found = made.shapes([shape[n_axes:] for shape in shapes], tuple(zip(integers[::2], integers[1::2])))
    device = operands[0].device if operands else torch.device("cpu")
    return [torch.empty((*points, *shape), dtype=dtype_of(kind, dtype), device=device) for shape, (_, kind, _) in zip(found, made.outputs)]


def pull(program, operands, wanted, gradients, integers, n_axes, dtype):
    """The gradients by the operands that are `wanted`, from those by the results; `None` for others."""
    made = [None] * len(operands)
    wanted = [k for k, is_wanted in enumerate(wanted) if is_wanted and program.inputs[k][1] == "f"]
    if wanted and program.smooth:
        by = program.whole(wanted)
        found = call_on(program.against(by), [*operands, *gradients], integers, n_axes, dtype)
        for k, result in zip(by, found):
            made[k] = reduced(result, operands[k], n_axes)
    return made


def call_on(program, operands, integers, n_axes, dtype):
    return Call.apply(number_of(program), integers, n_axes, dtype, *operands)


def reduced(result, like, n_axes):
    """The sum over points of a gradient whose operand is the same for all."""
    axes = [k for k in range(n_axes) if like.shape[k] == 1 and result.shape[k] != 1]
    return (result.sum(axes, keepdim=True) if axes else result).to(like.dtype)


class Call(torch.autograd.Function):
    """The operator with the rules of `torch.func` and of forward mode, which PyTorch takes of no custom operator."""

    @staticmethod
    def forward(program, integers, n_axes, dtype, *operands):
        return tuple(evaluate(list(operands), program, integers, n_axes, dtype))

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.program, *ctx.options = inputs[:4]
        ctx.save_for_backward(*inputs[4:])
        ctx.save_for_forward(*inputs[4:])
        ctx.mark_non_differentiable(*[result for result in output if not result.is_floating_point()])

    @staticmethod
    def backward(ctx, *gradients):
        program = PROGRAMS[ctx.program]
        weights = [gradients[k] for k in program.smooth]
        return None, None, None, None, *pull(program, ctx.saved_tensors, ctx.needs_input_grad[4:], weights, *ctx.options)

    @staticmethod
    def jvp(ctx, *tangents):
        program, operands, tangents = PROGRAMS[ctx.program], ctx.saved_tensors, tangents[4:]
        moved = [None] * len(program.outputs)
        moving = [k for k, tangent in enumerate(tangents) if tangent is not None and program.inputs[k][1] == "f"]
        if moving and program.smooth:
            by = program.whole(moving)
            directions = [torch.zeros_like(operands[k]) if tangents[k] is None else tangents[k] for k in by]
            for k, tangent in zip(program.smooth, call_on(program.along(by), [*operands, *directions], *ctx.options)):
                moved[k] = tangent
        return tuple(moved)

    @staticmethod
    def vmap(info, in_dims, program, integers, n_axes, dtype, *operands):
        moved = to_front(operands, in_dims[4:])
        results = Call.apply(program, integers, n_axes + 1, dtype, *moved)
        return results, tuple([0] * len(results))


def to_front(operands, axes):
    return [operand.unsqueeze(0) if axis is None else operand.movedim(axis, 0) for operand, axis in zip(operands, axes)]


# The rules of the operator by itself.

def remember(ctx, inputs, output):
    operands, ctx.program, *ctx.options = inputs
    ctx.save_for_backward(*operands)
    ctx.shapes = [result.shape for result in output]


def backwards(ctx, gradients):
    program, operands = PROGRAMS[ctx.program], ctx.saved_tensors
    dtype = ctx.options[-1]
    weights = [torch.zeros(ctx.shapes[k], dtype=dtype, device=operands[0].device) if gradients[k] is None else gradients[k] for k in program.smooth]
    made = pull(program, operands, ctx.needs_input_grad[0], weights, *ctx.options)
    return made, None, [None] * len(ctx.options[0]), None, None


evaluate.register_autograd(backwards, setup_context=remember)


@evaluate.register_vmap
def batched(info, in_dims, operands, program, integers, n_axes, dtype):
    results = evaluate(to_front(operands, in_dims[0]), program, integers, n_axes + 1, dtype)
    return results, [0] * len(results)


__all__ = ["to_torch"]
