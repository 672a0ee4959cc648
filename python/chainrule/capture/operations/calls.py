"""Functions and methods that captured code may call, by the objects that they are.

`NAMES` is the table of supported calls besides the elementwise ones: what a reader of the guide sees.
"""

from __future__ import annotations

import functools
import inspect
import math
import re
import sys

import numpy as np

from ...errors import Error, Limitation
from .. import loops
from . import arrays, assembly, factors, histograms, mapped, norms, options, padding, polynomials, products, quantiles, reductions, shaping, sorting, tolerant, triangular, whole
from .folding import MISSING, python_value
from .operators import binary, call, named, scalar
from .ufuncs import BY_OBJECT, ROWS, nearest, special
from ..values import Known, Masked, Num, Row, describe, is_number


def _len(w, obj):
    if isinstance(obj, Row):
        return Known(len(obj.items))
    if isinstance(obj, Known):
        return Known(len(obj.value))
    if isinstance(obj, Masked):
        return reductions.sum_(w, obj.mask)
    if isinstance(obj, Num) and obj.rank:
        return size_value(w, obj.dims[0])
    return w.fail(f"{describe(obj)} has no len()")


def size_value(w, dim):
    return Known(dim.known) if dim.known is not None else w.size(dim)


def shape(w, a):
    return Row([size_value(w, dim) for dim in w.num(a).dims])


def size(w, a):
    total = Known(1)
    for dim in w.num(a).dims:
        total = binary(w, "*", total, size_value(w, dim))
    return total


def ndim(w, a):
    return Known(w.num(a).rank)


def _of_text(w, kind, x):
    """A number that is written as a string."""
    try:
        return Known(kind(x.value))
    except ValueError as error:
        return w.fail(f"`{kind.__name__}`: {error}")


def _float(w, x=Known(0.0)):
    if isinstance(x, Known) and isinstance(x.value, str):
        return _of_text(w, float, x)
    return Known(float(x.value)) if isinstance(x, Known) and is_number(x.value) else w.cast(w.scalar(x), "f")


def _int(w, x=Known(0)):
    if isinstance(x, Known) and isinstance(x.value, str):
        return _of_text(w, int, x)
    if isinstance(x, Known) and is_number(x.value):
        return Known(int(x.value))
    return whole.as_int(w, w.scalar(x))


def _rounded(name):
    """`math.floor` and its relatives: an int."""
    def compute(w, x):
        if isinstance(x, Known) and is_number(x.value):
            return Known(getattr(math, name)(x.value))
        x = w.scalar(x)
        return whole.as_int(w, x if name == "trunc" or x.kind != "f" else call(w, name, x))
    return compute


def _bool(w, x=Known(False)):
    from .operators import truth
    value = truth(w, x)
    return Known(value) if isinstance(value, bool) else value


def _abs(w, x):
    return elementwise(w, BY_OBJECT[np.absolute], [x])


def _extreme(name, by_axis):
    def compute(w, *values, default=None):
        if len(values) == 1:
            inner = loops.loop_of(w, values[0])
            if not isinstance(inner, list):
                is_loop = not isinstance(values[0], Num)
                return by_axis(w, w.build((inner.count,), lambda i: w.num(inner.element(i[0]))) if is_loop else values[0])
            if not inner and default is not None:
                return default
            values = inner
        if all(isinstance(v, Known) for v in values):
            return Known((min if name == "min" else max)(v.value for v in values))
        # Python keeps the first of equals, as the operators do.
        numbers = [w.scalar(v) for v in values]
        result = numbers[0]
        for number in numbers[1:]:
            kind = w.common(result, number)
            a, b = w.cast(result, kind), w.cast(number, kind)
            result = Num(w.program.apply(name, [a.term, b.term]), kind)
        return result
    return compute


def _sum(w, iterable, start=Known(0)):
    inner = loops.loop_of(w, iterable)
    if isinstance(inner, list):
        total = start
        for item in inner:
            total = binary(w, "+", total, item)
        return total
    # One element is written to see what it is; what is not used of it goes.
    required = set(w.required)
    w.index(inner.count)
    probe = w.num(inner.element(w.index(inner.count)))
    for _ in range(2):
        w.program.close(w.program.integer(0))
    w.required = required
    if probe.rank:
        made = w.build((inner.count,), lambda i: w.num(inner.element(i[0])))
        total = reductions.sum_(w, made, Known(0))
    elif probe.kind == "f":
        total = w.total([inner.count], lambda i: w.num(inner.element(i[0])))
    else:
        total = w.reduce(inner.count, w.constant(0), lambda s, i: scalar(w, "+", s, w.cast(w.num(inner.element(i)), "i")))
    return total if isinstance(start, Known) and is_number(start.value) and start.value == 0 else binary(w, "+", start, total)


def _tuple(w, iterable=None):
    if iterable is None:
        return Row([])
    inner = loops.loop_of(w, iterable)
    if isinstance(inner, list):
        return Row(inner)
    if inner.count.known is not None:
        return Row([inner.element(w.constant(k)) for k in range(inner.count.known)])
    return w.fail("a tuple of unknown length is made", "use an array")


def _list(w, iterable=None):
    made = _tuple(w, iterable)
    return Row(made.items, is_list=True)


def _divmod(w, x, y):
    return Row([binary(w, "//", x, y), binary(w, "%", x, y)])


def _pow(w, base, exp):
    return binary(w, "**", base, exp)


def _round(w, number, ndigits=Known(None)):
    if isinstance(number, Known) and isinstance(ndigits, Known):
        return Known(round(number.value, ndigits.value))
    if not isinstance(ndigits, Known) or ndigits.value is not None:
        w.fail("`round` is called with digits", "its derivative is 0: leave it out")
    x = w.scalar(number)
    return whole.as_int(w, nearest(w, x) if x.kind == "f" else x)


def _copy(w, a):
    return arrays.array(w, a)


def _where(w, condition, x=None, y=None):
    if x is None or y is None:
        w.fail("`np.where` with one argument", "its result's size depends on data: use `np.where(c, a, b)`")
    return arrays.where(w, condition, x, y)


def _fsum(w, iterable):
    return _sum(w, iterable)


def _dtype(w, a):
    return Known(np.dtype({"f": np.float64, "i": np.int64, "b": np.bool_}[w.num(a).kind]))


def size_of_masked(w, a):
    total = reductions.sum_(w, a.mask)
    for dim in a.array.dims[a.mask.rank:]:
        total = binary(w, "*", total, size_value(w, dim))
    return total


def _dist(w, p, q):
    return norms.norm(w, binary(w, "-", w.num(p), w.num(q)))


def _softmax(w, x, axis=None):
    x = w.cast(w.num(x), "f")
    e = w.map(lambda v: call(w, "exp", v), binary(w, "-", x, reductions.extreme("max")(w, x, axis, Known(True))))
    return binary(w, "/", e, reductions.sum_(w, e, axis, Known(True)))


def _log_softmax(w, x, axis=None):
    return binary(w, "-", w.num(x), reductions.logsumexp(w, x, axis, keepdims=Known(True)))


def _clip(w, a, a_min=None, a_max=None, out=None, *, min=None, max=None):
    """`np.clip`, with both bounds or one of them."""
    options.no_out(w, "np.clip", out)
    low, high = (first if options.is_given(first) else second for first, second in ((a_min, min), (a_max, max)))
    if options.is_given(low) and options.is_given(high):
        return elementwise(w, BY_OBJECT[np.clip], [a, low, high])
    for bound, ufunc in ((low, np.maximum), (high, np.minimum)):
        if options.is_given(bound):
            return elementwise(w, BY_OBJECT[ufunc], [a, bound])
    return arrays.array(w, a)


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
    len: _len, float: _float, int: _int,
    math.floor: _rounded("floor"), math.ceil: _rounded("ceil"), math.trunc: _rounded("trunc"), bool: _bool, abs: _abs, sum: _sum, tuple: _tuple, list: _list, divmod: _divmod,
    pow: _pow, round: _round, range: loops.range_, enumerate: loops.enumerate_, zip: loops.zip_, reversed: loops.reversed_,
    min: _extreme("min", reductions.extreme("min")), max: _extreme("max", reductions.extreme("max")), math.fsum: _fsum,
    math.prod: reductions.prod, math.dist: _dist, math.sumprod if hasattr(math, "sumprod") else None: products.matmul,
    np.shape: shape, np.size: size, np.ndim: ndim, np.float64: _float, np.int64: _int,
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
#: Functions of modules that are not imported here, because that takes time: who calls them has imported them.
LATER = {"scipy.linalg": {
    "solve_triangular": triangular.solve_triangular, "cho_factor": triangular.cho_factor, "cho_solve": triangular.cho_solve,
    "cholesky": triangular.upper_or_lower, "solve": products.solve, "inv": products.of_matrix("scipy.linalg.inv", "inverse", False),
    "det": products.of_matrix("scipy.linalg.det", "det", True), "norm": norms.norm, "lstsq": factors.lstsq, "pinv": factors.pinv,
    "block_diag": assembly.block_diag, "toeplitz": assembly.toeplitz, "circulant": assembly.circulant,
}}
TABLE.pop(None, None)
if special is not None:
    TABLE |= {special.logsumexp: reductions.logsumexp, special.softmax: _softmax, special.log_softmax: _log_softmax}

METHODS = {
    "sum": options.sum_, "prod": options.prod, "mean": options.mean, "var": options.var, "std": options.std,
    "max": options.largest, "min": options.smallest, "any": options.any_, "all": options.all_, "argmax": reductions.arg_extreme("argmax", ">"), "argmin": reductions.arg_extreme("argmin", "<"),
    "dot": products.dot, "copy": _copy, "transpose": shaping.transpose_method, "reshape": shaping.reshape_method,
    "ravel": shaping.ravel, "flatten": lambda w, a, order=None: arrays.array(w, shaping.ravel(w, a, order)), "astype": arrays.astype,
    "squeeze": shaping.squeeze, "swapaxes": shaping.swapaxes, "repeat": shaping.repeat,
    "cumsum": options.cumsum, "cumprod": options.cumprod, "trace": products.trace,
    "diagonal": shaping.diagonal, "take": sorting.take, "argsort": sorting.argsort, "searchsorted": sorting.searchsorted,
    "round": tolerant.around, "conj": lambda w, a: arrays.array(w, a),
    "item": lambda w, a: w.scalar(a), "clip": _clip,
}

ATTRIBUTES = {"T": shaping.transpose, "mT": shaping.matrix_transpose, "shape": shape, "size": size, "ndim": ndim, "dtype": _dtype, "real": tolerant.real, "imag": tolerant.imag}
#: What is there of the elements under a mask.
OF_MASKED = {"sum", "prod", "mean", "var", "std", "any", "all", "max", "min"}


def of_ufunc(w, ufunc, name, args, kwargs):
    """`np.add.outer`, `np.add.reduce`: what every elementwise function of two numbers has."""
    row = BY_OBJECT.get(ufunc)
    if row is None or len(row.samples) != 2:
        return None
    compute = lambda x, y: row.compute(w, x, y)
    if name == "outer" and len(args) == 2 and not kwargs:
        a, b = (w.num(arg) for arg in args)
        return w.build((*a.dims, *b.dims), lambda i: compute(w.element(a, i[:a.rank]), w.element(b, i[a.rank:])))
    reductions_of = {np.add: np.sum, np.multiply: np.prod, np.maximum: np.max, np.minimum: np.min, np.logical_and: np.all, np.logical_or: np.any}
    scans = {np.add: np.cumsum, np.multiply: np.cumprod}
    if name == "reduce" and ufunc in reductions_of:
        kwargs.setdefault("axis", Known(0))
        return apply(w, TABLE[reductions_of[ufunc]], f"np.{ufunc.__name__}.reduce", args, kwargs)
    if name == "accumulate" and ufunc in scans:
        kwargs.setdefault("axis", Known(0))
        return apply(w, TABLE[scans[ufunc]], f"np.{ufunc.__name__}.accumulate", args, kwargs)
    return None


def elementwise(w, row, args):
    wanted = len(row.samples)
    if len(args) != wanted:
        if row.names[-1] == "math.log" and len(args) == 2:
            return binary(w, "/", elementwise(w, row, args[:1]), elementwise(w, row, args[1:]))
        w.fail(f"`{row.names[0]}` takes {wanted} argument{'s' if wanted > 1 else ''}, not {len(args)}")
    numbers = [arg if isinstance(arg, Masked) else w.num(arg) for arg in args]
    made = lambda: w.map(lambda *xs: row.compute(w, *xs), *numbers)
    if not row.is_mask or not any(isinstance(x, Num) and x.rank for x in numbers):
        return made()
    key = (row.names[0], *map(named, args))
    return made() if None in key else w.mask(key, made)


def known_call(w, function, args, kwargs):
    """Calls a supported function of known objects: `None` where it is not supported."""
    row = _find(BY_OBJECT, function)
    if function is np.clip:
        return apply(w, _clip, "np.clip", args, kwargs)
    if function is math.hypot and len(args) > 2:
        return norms.norm(w, Row(args))
    if row is not None:
        if kwargs:
            w.fail(f"`{row.names[0]}` is called with `{next(iter(kwargs))}=`", "leave it out")
        return elementwise(w, row, args)
    if isinstance(getattr(function, "__self__", None), np.ufunc):
        return of_ufunc(w, function.__self__, function.__name__, args, kwargs)
    handler = _find(TABLE, function) or _later(function)
    if handler is None:
        return None
    return apply(w, handler, name_of(function), args, kwargs, function)


@functools.cache
def positions(function):
    """The names of the parameters of a function of NumPy or SciPy in order; none where Python does not know them."""
    try:
        return tuple(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return ()


def check_positions(w, handler, name, n_args, function):
    """Optional arguments that are given by position have to be those of the function itself: `np.sum(x, 0, float)` names a dtype."""
    names = positions(function)
    own = list(inspect.signature(handler).parameters.values())[1:]
    for k, (parameter, wanted) in enumerate(zip(own[:n_args], names)):
        if parameter.kind is parameter.POSITIONAL_OR_KEYWORD and parameter.default is not parameter.empty and parameter.name != wanted and k:
            w.fail(f"`{name}` is called with `{wanted}`, its argument number {k + 1}", "leave it out, and name the arguments behind it")


def apply(w, handler, name, args, kwargs, function=None):
    """Calls a handler with the arguments of `function`, or of a method of arrays that NumPy has as this function, too."""
    if function is not None and len(args) > 1:
        check_positions(w, handler, name, len(args), function)
    try:
        inspect.signature(handler).bind(w, *args, **kwargs)
    except TypeError as error:
        w.fail(f"`{name}`: {error}", "leave out what is not supported here")
    try:
        return handler(w, *args, **kwargs)
    except Error:
        raise
    except (TypeError, ValueError, LookupError, ArithmeticError, AttributeError) as error:  # What Python says of known arguments.
        return w.fail(f"`{name}`: {error}", "pass what NumPy or Python takes")


def _find(table, function):
    try:
        return table.get(function)
    except TypeError:  # Not hashable.
        return None


def _later(function):
    """The handler of a function of a module that is not imported here."""
    for module, handlers in LATER.items():
        handler = handlers.get(getattr(function, "__name__", None))
        if handler is not None and function is getattr(sys.modules.get(module), function.__name__, None):
            return handler
    return None


def name_of(function):
    module = getattr(function, "__module__", None) or ""
    name = getattr(function, "__name__", repr(function))
    module = ".".join(part for part in module.split(".") if not part.startswith("_"))  # Where it is defined, in SciPy.
    short = "" if module == "builtins" else re.sub(r"^numpy\b", "np", module)
    return f"{short}.{name}" if short else name


def supported():
    """Names of everything that captured code may call, sorted."""
    names = {name_of(function) for function in TABLE} | {f".{name}" for name in METHODS | ATTRIBUTES}
    names |= {f"{module}.{name}" for module, handlers in LATER.items() for name in handlers}
    names |= set(mapped.NAMES)
    for row in ROWS:
        names |= {name.replace("special.", "scipy.special.") for name in row.names}
    return sorted(names)
