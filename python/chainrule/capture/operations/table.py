"""The tables of what captured code may call, by the objects that they are, besides the elementwise functions."""

from __future__ import annotations

import math

import numpy as np

from ...errors import Limitation
from .. import loops
from . import (arrays, assembly, builtins, distributions, elementwise, factors, histograms, norms, options, padding, polynomials, products, properties, quantiles,
               reductions, shaping, sorting, tolerant, triangular)
from .folding import MISSING, python_value
from .ufuncs import special
from ..values import Known


def _copy(w, a):
    return arrays.array(w, a)


def _where(w, condition, x=None, y=None):
    if x is None or y is None:
        w.fail("`np.where` with one argument", "its result's size depends on data: use `np.where(c, a, b)`")
    return arrays.where(w, condition, x, y)


def _fromiter(w, iter, dtype, count=Known(-1)):
    """`np.fromiter`: the array of what is iterated over."""
    inner = loops.loop_of(w, iter)
    made = w.stack([w.num(item) for item in inner]) if isinstance(inner, list) else w.build((inner.count,), lambda i: w.num(inner.element(i[0])))
    return arrays.astype(w, made, dtype)


def _when_known(name):
    """A function that is called while code is captured, once its arguments are known: `None` leaves the call to `folding`."""
    def call_later(w, *args, **kwargs):
        if any(python_value(value) is MISSING for value in (*args, *kwargs.values())):
            w.fail(f"an argument of `{name}` is not known", "pass numbers, or sizes of arrays", error=Limitation)
    return call_later


TABLE = {
    len: builtins.len_, float: builtins.float_, int: builtins.int_,
    math.floor: builtins.rounded("floor"), math.ceil: builtins.rounded("ceil"), math.trunc: builtins.rounded("trunc"), bool: builtins.bool_, abs: builtins.abs_, sum: builtins.sum_, tuple: builtins.tuple_, list: builtins.list_, divmod: builtins.divmod_,
    pow: builtins.pow_, round: builtins.round_, range: loops.range_, enumerate: loops.enumerate_, zip: loops.zip_, reversed: loops.reversed_,
    min: builtins.extreme("min", reductions.extreme("min")), max: builtins.extreme("max", reductions.extreme("max")), math.fsum: lambda w, seq: builtins.sum_(w, seq),
    math.prod: reductions.prod, math.dist: builtins.dist, math.sumprod if hasattr(math, "sumprod") else None: products.matmul,
    np.shape: properties.shape, np.size: properties.size, np.ndim: properties.ndim, np.float64: builtins.float_, np.int64: builtins.int_,
    np.sum: options.sum_, np.prod: options.prod, np.mean: options.mean, np.var: options.var, np.std: options.std,
    np.average: reductions.average, np.ptp: reductions.ptp, np.cov: reductions.covariance, np.corrcoef: reductions.corrcoef,
    np.count_nonzero: reductions.count_nonzero, np.argmax: reductions.arg_extreme("argmax", ">"), np.argmin: reductions.arg_extreme("argmin", "<"),
    np.max: options.largest, np.min: options.smallest, np.amax: options.largest, np.amin: options.smallest, np.any: options.any_,
    np.all: options.all_, np.cumsum: options.cumsum, np.cumprod: options.cumprod,
    np.dot: products.dot, np.matmul: products.matmul, np.vdot: products.vdot, np.inner: products.inner,
    np.outer: products.outer, np.trace: products.trace, np.einsum: products.einsum, np.tensordot: products.tensordot,
    np.kron: products.kron, np.cross: products.cross,
    np.linalg.norm: norms.norm, np.linalg.solve: products.solve, np.linalg.slogdet: products.slogdet,
    np.linalg.matrix_power: products.matrix_power,
    np.linalg.inv: products.of_matrix("np.linalg.inv", "inverse", False),
    np.linalg.det: products.of_matrix("np.linalg.det", "det", True),
    np.linalg.cholesky: products.cholesky,
    np.zeros: arrays.filled(0), np.ones: arrays.filled(1), np.empty: arrays.filled(0), np.full: arrays.full,
    np.ndarray: arrays.filled(0),
    np.zeros_like: arrays.filled_like(0), np.ones_like: arrays.filled_like(1), np.empty_like: arrays.filled_like(0),
    np.full_like: arrays.full_like, np.arange: arrays.arange, np.linspace: arrays.linspace, np.eye: arrays.eye,
    np.identity: arrays.identity, np.tri: arrays.tri, np.array: arrays.array, np.asarray: arrays.asarray,
    np.ascontiguousarray: arrays.asarray, np.copy: _copy, np.diag: arrays.diag, np.where: _where, np.select: arrays.select,
    np.diff: arrays.diff, np.polyval: polynomials.polyval, np.trapezoid: polynomials.trapezoid, np.interp: polynomials.interp,
    getattr(np, "trapz", None): polynomials.trapezoid, np.polyder: polynomials.polyder, np.polyint: polynomials.polyint,
    np.polyadd: polynomials.aligned("np.polyadd", "+"), np.polysub: polynomials.aligned("np.polysub", "-"), np.polymul: polynomials.polymul,
    np.polyfit: polynomials.polyfit,
    np.transpose: shaping.transpose, np.swapaxes: shaping.swapaxes, np.moveaxis: shaping.moveaxis, np.reshape: shaping.reshape,
    np.ravel: shaping.ravel, np.expand_dims: shaping.expand_dims, np.squeeze: shaping.squeeze, np.flip: shaping.flip,
    np.fliplr: shaping.flipped(1), np.flipud: shaping.flipped(0), np.roll: shaping.roll, np.tril: shaping.triangle("<="),
    np.triu: shaping.triangle(">="), np.concatenate: shaping.concatenate, np.stack: shaping.stack, np.hstack: shaping.hstack,
    np.vstack: shaping.vstack, np.column_stack: shaping.column_stack, np.atleast_1d: shaping.atleast(shaping.atleast_1d),
    np.atleast_2d: shaping.atleast(shaping.atleast_2d), np.atleast_3d: shaping.atleast(shaping.atleast_3d), np.repeat: shaping.repeat,
    np.tile: shaping.tile, np.broadcast_to: shaping.broadcast_to, np.meshgrid: shaping.meshgrid,
    np.sort: sorting.sort, np.argsort: sorting.argsort, np.searchsorted: sorting.searchsorted, np.take: sorting.take,
    np.pad: padding.pad, np.convolve: padding.convolve, np.correlate: padding.correlate, np.gradient: padding.gradient,
    np.ediff1d: padding.ediff1d, np.bincount: histograms.bincount, np.histogram: histograms.histogram,
    np.histogram_bin_edges: histograms.histogram_bin_edges, np.fromiter: _fromiter,
    np.rot90: shaping.rot90, np.rollaxis: shaping.rollaxis, np.diagonal: shaping.diagonal, np.broadcast_arrays: shaping.broadcast_arrays,
    np.append: assembly.append, np.dstack: assembly.dstack, np.block: assembly.block, np.split: assembly.cut("np.split"),
    np.array_split: assembly.cut("np.array_split", is_even=False), np.hsplit: assembly.cut("np.hsplit", default=1),
    np.vsplit: assembly.cut("np.vsplit", least=2), np.dsplit: assembly.cut("np.dsplit", default=2, least=3),
    getattr(np, "unstack", None): assembly.unstack, np.lib.stride_tricks.sliding_window_view: padding.sliding_window_view,
    np.indices: arrays.indices, np.ix_: arrays.ix_, np.vander: arrays.vander, np.logspace: arrays.logspace, np.geomspace: arrays.geomspace,
    np.triu_indices: _when_known("np.triu_indices"), np.tril_indices: _when_known("np.tril_indices"), np.diag_indices: _when_known("np.diag_indices"),
    np.digitize: sorting.digitize, np.take_along_axis: sorting.take_along_axis,
    np.median: quantiles.median, np.quantile: quantiles.quantile, np.percentile: quantiles.percentile,
    np.nansum: reductions.without_nan(reductions.sum_, 0.0), np.nanprod: reductions.without_nan(reductions.prod, 1.0),
    np.nanmean: reductions.nanmean, np.nanvar: reductions.nanvar, np.nanstd: reductions.nanstd,
    np.nanmax: reductions.nan_extreme("max"), np.nanmin: reductions.nan_extreme("min"),
    getattr(np, "cumulative_sum", None): reductions.cumulative_along("+"), getattr(np, "cumulative_prod", None): reductions.cumulative_along("*"),
    np.isclose: tolerant.isclose, np.allclose: tolerant.allclose, np.array_equal: tolerant.array_equal, np.round: tolerant.around,
    np.around: tolerant.around, np.nan_to_num: tolerant.nan_to_num, np.real: tolerant.real, np.imag: tolerant.imag,
    np.linalg.multi_dot: products.multi_dot, np.linalg.qr: factors.qr, np.linalg.lstsq: factors.lstsq, np.linalg.pinv: factors.pinv,
    np.linalg.cond: factors.cond, np.linalg.vector_norm: norms.vector_norm, np.linalg.matrix_norm: norms.matrix_norm,
    np.linalg.trace: products.trace_of_last, np.linalg.cross: products.cross_of_three, np.linalg.outer: products.outer,
    np.linalg.matmul: products.matmul, np.linalg.tensordot: products.tensordot, np.linalg.diagonal: shaping.diagonal_of_last,
    np.linalg.matrix_transpose: shaping.matrix_transpose, np.matrix_transpose: shaping.matrix_transpose,
    getattr(np, "vecdot", None): products.vecdot, getattr(np.linalg, "vecdot", None): products.vecdot, np.diagflat: arrays.diagflat,
    any: sorting.quantified("any"), all: sorting.quantified("all"),
}
#: Functions of modules, and methods of their objects, that are not imported here, because that takes time: who calls them has
#: imported them.
LATER = {"scipy.stats:norm": distributions.NORMAL, "scipy.integrate": {"trapezoid": polynomials.trapezoid}, "scipy.linalg": {
    "solve_triangular": triangular.solve_triangular, "cho_factor": triangular.cho_factor, "cho_solve": triangular.cho_solve,
    "cholesky": triangular.upper_or_lower, "solve": products.solve, "inv": products.of_matrix("scipy.linalg.inv", "inverse", False),
    "det": products.of_matrix("scipy.linalg.det", "det", True), "norm": norms.norm, "lstsq": factors.lstsq, "pinv": factors.pinv,
    "block_diag": assembly.block_diag, "toeplitz": assembly.toeplitz, "circulant": assembly.circulant,
}}
TABLE.pop(None, None)
if special is not None:
    TABLE |= {special.logsumexp: reductions.logsumexp, special.softmax: reductions.softmax, special.log_softmax: reductions.log_softmax}

METHODS = {
    "sum": options.sum_, "prod": options.prod, "mean": options.mean, "var": options.var, "std": options.std,
    "max": options.largest, "min": options.smallest, "any": options.any_, "all": options.all_, "argmax": reductions.arg_extreme("argmax", ">"), "argmin": reductions.arg_extreme("argmin", "<"),
    "dot": products.dot, "copy": _copy, "transpose": shaping.transpose_method, "reshape": shaping.reshape_method,
    "ravel": shaping.ravel, "flatten": lambda w, a, order=None: arrays.array(w, shaping.ravel(w, a, order)), "astype": arrays.astype,
    "squeeze": shaping.squeeze, "swapaxes": shaping.swapaxes, "repeat": shaping.repeat,
    "cumsum": options.cumsum, "cumprod": options.cumprod, "trace": products.trace,
    "diagonal": shaping.diagonal, "take": sorting.take, "argsort": sorting.argsort, "searchsorted": sorting.searchsorted,
    "round": tolerant.around, "conj": lambda w, a: arrays.array(w, a),
    "item": properties.item, "tolist": properties.tolist, "clip": elementwise.clip,
}

ATTRIBUTES = {"T": shaping.transpose, "mT": shaping.matrix_transpose, "shape": properties.shape, "size": properties.size, "ndim": properties.ndim, "dtype": properties.dtype, "real": tolerant.real, "imag": tolerant.imag}
#: What is there of the elements under a mask.
OF_MASKED = {"sum", "prod", "mean", "var", "std", "any", "all", "max", "min"}
