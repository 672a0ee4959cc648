"""Chainrule for Python: ordinary NumPy code in, native functions and derivatives out.

>>> import numpy as np, chainrule as cr
>>> @cr.function
... def energy(x, k=1.0):
...     return 0.5 * k * np.sum((x[1:] - x[:-1]) ** 2)
>>> cr.gradient(energy)(np.array([0.0, 1.0, 3.0]))
array([-1., -1.,  2.])
"""

from .annotations import F64, I64, Bool
from .arguments import ConversionWarning, InterpreterWarning
from .batch import Batch, vmap
from .bound import Bound
from .capture.operations.calls import supported
from .display import Picture
from .errors import Bug, CaptureError, Error, Limitation, ShapeError, TypeError_
from .derivative import (
    Derivative,
    grad,
    gradient,
    hessian,
    hessian_diagonal,
    hvp,
    jacobian,
    jvp,
    value_and_grad,
    value_and_gradient,
    vjp,
)
from .function import Function, function
from .modules import Module, module
from .saved import load
from .sparse import SparseDerivative, sparse_hessian, sparse_jacobian

__all__ = [
    "Batch", "Bool", "Bound", "Bug", "CaptureError", "ConversionWarning", "Derivative", "Error", "F64", "Function", "I64", "InterpreterWarning", "Limitation", "Module", "Picture",
    "ShapeError", "SparseDerivative", "TypeError_", "function", "grad", "gradient", "hessian", "hessian_diagonal", "hvp", "jacobian", "jvp",
    "load", "module", "sparse_hessian", "sparse_jacobian", "supported", "value_and_grad", "value_and_gradient", "vjp", "vmap",
]
