"""Functions inside of CasADi's expressions, with Jacobians, and Hessians of scalars."""

from __future__ import annotations

import casadi
import numpy as np

from ..code import fill
from ..derivative import hessian, jacobian
from ..errors import Limitation, TypeError_
from ..fit import Fit
from ..function import Function
from ..function import function as as_function


class Callback(casadi.Callback):
    """A function of CasADi. It has to live as long as expressions with it: CasADi keeps no reference to it."""

    def __init__(self, name, shapes_in, shapes_out, evaluate, derive=None, options=None):
        casadi.Callback.__init__(self)
        self._in, self._out, self._evaluate, self._derive = shapes_in, shapes_out, evaluate, derive
        self._kept = []
        self.construct(name, options or {})

    def get_n_in(self):
        return len(self._in)

    def get_n_out(self):
        return len(self._out)

    def get_sparsity_in(self, i):
        return casadi.Sparsity.dense(*self._in[i])

    def get_sparsity_out(self, i):
        return casadi.Sparsity.dense(*self._out[i])

    def eval(self, arg):
        return [casadi.DM(np.asarray(m)) for m in self._evaluate([np.array(casadi.DM.full(casadi.DM(a))) for a in arg])]

    def has_jacobian(self):
        return self._derive is not None

    def get_jacobian(self, name, inames, onames, options):
        made = self._derive(name, options)
        self._kept.append(made)
        return made


def matrix_shape(array):
    if array.ndim > 2:
        raise Limitation(f"an array of {array.ndim} dimensions has no place in CasADi", remedy="pass vectors and matrices")
    return (*array.shape, 1, 1)[:2] if array.ndim < 2 else array.shape


def to_casadi(f, *args, name=None):
    """A function of CasADi that evaluates `f`, for numbers, vectors and matrices of the shapes of the example arguments.

    Float arguments become its inputs; everything else stays as it is in the example. Vectors are columns.
    """
    f = f if isinstance(f, Function) else as_function(f)
    values = list(f._bind(args, {}))
    free = [k for k, v in enumerate(values) if isinstance(v, float) or isinstance(v, np.ndarray) and v.dtype.kind == "f"]
    if not free:
        raise TypeError_("no argument is a float or an array of floats", remedy="pass floats for what CasADi varies")
    shapes = [np.shape(values[k]) for k in free]
    matrices = [matrix_shape(np.empty(shape)) for shape in shapes]
    call = f._prepare(tuple(values), {}, Fit.SHORT)
    sample = call.code.leaves(call.code.run(call.leaves))
    outputs = [matrix_shape(np.asarray(r)) for r in sample]

    def arguments(given):
        made = list(values)
        for k, shape, array in zip(free, shapes, given):
            made[k] = np.ascontiguousarray(array).reshape(shape) if shape else float(array.reshape(-1)[0])
        return made

    def leaves(evaluator, given):
        made = evaluator._prepare(tuple(arguments(given)), {}, Fit.SHORT)
        return made, made.code.leaves(made.code.run(made.leaves))

    def evaluate(given):
        return [np.reshape(r, shape) for r, shape in zip(leaves(f, given)[1], outputs)]

    def columns(block, rows, shape):
        """A block of derivatives as a matrix in CasADi's order: columns first, of the result and of the argument."""
        block = np.asarray(block).reshape(*rows, *shape)
        order = [*reversed(range(len(rows))), *[len(rows) + k for k in reversed(range(len(shape)))]]
        return block.transpose(order).reshape(int(np.prod(rows)), int(np.prod(shape)))

    made = jacobian(f, argnums=tuple(free))
    is_scalar = len(outputs) == 1 and not np.ndim(sample[0])
    sizes_in, sizes_out = [r * c for r, c in matrices], [r * c for r, c in outputs]

    def first(given):
        call, found = leaves(made, given[:len(free)])
        blocks = fill(call.template, found)
        rows = blocks if len(outputs) > 1 else [blocks]
        result = []
        for shape_out, row, sample_leaf in zip(outputs, rows, sample):
            for k, shape_in in enumerate(shapes):
                zero = row is None
                size = (int(np.prod(shape_out)), int(np.prod(shape_in)))
                result.append(np.zeros(size) if zero else columns(row[k], np.shape(sample_leaf), shape_in))
        return result

    def derive(name, options):
        of = [(n, m) for n in sizes_out for m in sizes_in]
        return Callback(name, matrices + outputs, of, first, derive_again if is_scalar else None, options)

    second = hessian(f, argnums=tuple(free))

    def derive_again(name, options):
        inputs = matrices + outputs + [(1, n) for n in sizes_in]
        of = [(n, m) for n in sizes_in for m in [*sizes_in, *sizes_out]]

        def evaluate_again(given):
            call, found = leaves(second, given[:len(free)])
            blocks, result = fill(call.template, found), []
            for k, n in enumerate(sizes_in):
                result += [columns(blocks[k][j], shapes[k], shapes[j]) for j in range(len(free))]
                result += [np.zeros((n, m)) for m in sizes_out]
            return result

        return Callback(name, inputs, of, evaluate_again, None, options)

    return Callback(name or f.__name__.strip("<>"), matrices, outputs, evaluate, derive)


__all__ = ["to_casadi"]
