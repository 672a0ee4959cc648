"""Many points at once: in vector lanes, on threads, with the interpreter's lock released."""

from __future__ import annotations

import re
import sys
import time

import numpy as np

from .arguments import like_array, kind_of_array, n_threads, spec_of, to_floats
from .code import DTYPES, check_out, fill
from .derivative import Derivative
from .errors import Error, ShapeError, TypeError_
from .fit import Fit
from .evaluator import Evaluator
from .function import Function
from .trees import name_of_part, parts_of, put_together


class Batch:
    """A function of many points: `vmap(f)(X)` is `f` of each row of `X`, with the results behind each other."""

    def __init__(self, function, in_axes=0, out_axes=0, threads=1, progress=None):
        self.function = function if isinstance(function, Evaluator) else Function(function)
        self.in_axes = in_axes
        self.out_axes = out_axes
        self.threads = threads
        self.progress = progress
        self.__name__ = f"batch_of_{self.function.__name__}"
        self.__doc__ = f"{self.function.__name__} of many points."
        if out_axes != 0 and not isinstance(out_axes, int):
            raise TypeError_("`out_axes` is one axis for all results")

    def __reduce__(self):
        return (Batch, (self.function, self.in_axes, self.out_axes, self.threads, self.progress))

    def __repr__(self):
        return f"<chainrule batch of {self.function.__name__}>"

    def __call__(self, *args, out=None, threads=None, progress=None, **kwargs):
        f = self.function
        values = arguments(f, args, kwargs)
        n_own = len(values) - getattr(f, "n_extra", 0)
        axes = self._axes(len(values), values)
        by = f.argnums if isinstance(f, Derivative) else ()
        values = [to_floats(v) if k in by or k >= n_own else v for k, v in enumerate(values)]
        lengths, full, marks = {}, [], []
        points = [split(v, axis, f"argument {k}", lengths, full, marks, k) for k, (v, axis) in enumerate(zip(values, axes))]
        if not lengths:
            raise TypeError_("no argument has an element for each point", remedy="pass arrays, and `in_axes` for those that are shared")
        if len(set(lengths.values())) > 1:
            said = ", ".join(f"{name} has {n}" for name, n in lengths.items())
            raise ShapeError(f"arguments of a batch have different numbers of points: {said}")
        n = next(iter(lengths.values()))
        call = f._prepare(tuple(points), {}, Fit.SHORT)
        # Arrays that the function reads of its surroundings come between its arguments and the directions.
        n_constants = len(call.entry.constants.arrays)
        at = sum(1 for _, k in marks if k < n_own)
        constants = call.leaves[at:at + n_constants]
        inputs = [*zip(full[:at], [m for m, _ in marks[:at]]), *[(c, False) for c in constants],
                  *zip(full[at:], [m for m, _ in marks[at:]])]
        if len(inputs) != len(call.leaves):
            raise TypeError_("a batch takes numbers and arrays", remedy="other arguments are the same for all points")
        inputs = [(a if a.ndim else a.reshape(1), mark) for a, mark in inputs]
        return self._run(call, n, inputs, out, self.threads if threads is None else threads,
                         self.progress if progress is None else progress)

    def _axes(self, n, values):
        axes = self.in_axes
        if isinstance(axes, (tuple, list)):
            if len(axes) > n:
                raise TypeError_(f"`in_axes` has {len(axes)} axes for {n} arguments")
            return [*axes, *[None] * (n - len(axes))]
        shared = lambda v: isinstance(v, (bool, int, float, str)) or v is None or callable(v)
        return [None if shared(value) else axes for value in values]

    def _run(self, call, n, inputs, out, threads, progress):
        outputs, code, threads = call.code.outputs, call.code, n_threads(threads)
        groups = sizes_of_points(code, n, inputs)
        example = [array if array.ndim else array.reshape(1) for array in call.leaves]
        workspace = code.compiled.workspace(example)
        shapes = [(n, *workspace.shape(k)) for k in range(len(outputs))]
        kinds = [kind for _, kind, _ in outputs]
        if out is None:
            results = [np.empty(shape, DTYPES[kind]) for shape, kind in zip(shapes, kinds)]
        else:
            if self.out_axes:
                raise TypeError_("`out` is for `out_axes=0`")
            results = check_out(out, shapes, kinds, [array for array, _ in inputs])
        bar = Bar(n, progress)
        try:
            progress = bar.update if bar.is_wanted else None
            if groups is None:
                code.compiled.batch(n, inputs, results, threads, progress)
            else:
                self._run_groups(code, groups, inputs, results, threads, progress)
        finally:
            bar.close()
        if out is not None:
            return out
        leaves = [r.astype(np.bool_) if kind == "b" else r for r, kind in zip(results, kinds)]
        if self.out_axes:
            leaves = [np.moveaxis(r, 0, self.out_axes) for r in leaves]
        return fill(call.template, leaves)


    @staticmethod
    def _run_groups(code, groups, inputs, results, threads, progress):
        """Points with the same integers that decide sizes at once: a workspace is for one value of them."""
        done = 0
        for points in groups:
            chosen = [(np.ascontiguousarray(a[points]) if mark else a, mark) for a, mark in inputs]
            first = [(a[0] if a.ndim > 1 else a[:1]) if mark else a for a, mark in chosen]
            shapes = [tuple(code.compiled.workspace(first).shape(k)) for k in range(len(results))]
            if any(r.shape[1:] != shape for r, shape in zip(results, shapes)):
                raise ShapeError("results have different shapes at different points",
                                 remedy="an integer that decides the shape of the result is the same for all points: `in_axes=None`")
            parts = [np.empty((len(points), *r.shape[1:]), r.dtype) for r in results]
            try:
                code.compiled.batch(len(points), chosen, parts, threads, None)
            except Error as error:
                if found := re.search(r"at point (\d+) of the batch", error.reason or ""):
                    reason = error.reason.replace(found.group(), f"at point {points[int(found.group(1))]} of the batch")
                    place = error.filename and (error.filename, error.lineno, error.offset, error.text, error.width)
                    raise type(error)(error.title, place=place, reason=reason, remedy=error.remedy) from None
                raise
            for r, part in zip(results, parts):
                r[points] = part
            done += len(points)
            if progress is not None:
                progress(done)


def sizes_of_points(code, n, inputs):
    """The numbers of the points that have the same integers where sizes depend on them; `None` where all have."""
    deciding = [inputs[k][0] for k in code.compiled.size_arguments if inputs[k][1]]
    if not deciding or n == 0 or all(np.all(a == a[0]) for a in deciding):
        return None
    _, group = np.unique(np.stack(deciding, axis=1), axis=0, return_inverse=True)
    order = np.argsort(group.ravel(), kind="stable")
    return np.split(order, np.cumsum(np.bincount(group.ravel()))[:-1])


def arguments(f, args, kwargs):
    """The arguments of a function or derivative in order, defaults included, then its directions."""
    if isinstance(f, Derivative):
        args, directions = f._split(args)
        return [*f.function._bind(args, kwargs), *directions]
    return list(f._bind(args, kwargs))


def split(value, axis, name, lengths, full, marks, k):
    """The first point of an argument; its arrays, with one axis for the points in front, are added to `full`."""
    found = parts_of(value)
    if found is not None:
        own, form = found
        axes = parts_of(axis) if isinstance(axis, (tuple, dict)) else ([axis] * len(own), None)
        if len(axes[0]) != len(own) or isinstance(axis, dict) and axes[1] != form:
            raise TypeError_(f"`in_axes` has {len(axes[0])} axes for the {len(own)} parts of {name}")
        parts = [split(v, a, name_of_part(name, form, i), lengths, full, marks, k) for i, (v, a) in enumerate(zip(own, axes[0]))]
        return put_together(form, parts)
    if axis is None:
        spec_of(value, name, full)
        marks += [(False, k)] * (len(full) - len(marks))
        return value
    if isinstance(axis, bool) or not isinstance(axis, int):
        raise TypeError_(f"the axis of {name} is {axis!r}", remedy="pass a number, or None where it is the same for all points")
    array = value if isinstance(value, np.ndarray) else like_array(value, name)
    if array is None:
        raise TypeError_(f"{name} is a {type(value).__name__}", remedy="pass an array with an axis of points, or None as its axis")
    kind_of_array(array, name)
    array = np.asarray(array)
    if not -array.ndim <= axis < array.ndim:
        raise ShapeError(f"{name} has the shape {array.shape}, and so no axis {axis} of points",
                         remedy="`in_axes=None` for what is the same for all points")
    array = np.moveaxis(array, axis, 0)
    lengths[name] = array.shape[0]
    spec_of(array if isinstance(value, np.ndarray) else np.array(array), name, full)
    marks.append((True, k))
    return array[0] if len(array) else np.zeros(array.shape[1:], array.dtype)


class Bar:
    """A bar of progress where `tqdm` is installed and errors go to a terminal, of batches of more than a second."""

    def __init__(self, n, wanted):
        self.n, self.start, self.bar, self.tqdm = n, time.monotonic(), None, None
        self.is_wanted = bool(wanted) or wanted is None and sys.stderr is not None and sys.stderr.isatty()
        if self.is_wanted:
            try:
                from tqdm import tqdm
            except ImportError:
                if wanted:
                    raise Error("`progress` needs tqdm, which is not installed", remedy="`pip install tqdm`") from None
                self.is_wanted = False
            else:
                self.tqdm, self.delay = tqdm, 0.0 if wanted else 1.0

    def update(self, done):
        if self.bar is None:
            if time.monotonic() - self.start < self.delay:
                return
            self.bar = self.tqdm(total=self.n, unit=" points", unit_scale=True)
        self.bar.update(done - self.bar.n)

    def close(self):
        if self.bar is not None:
            self.bar.close()


def vmap(function, in_axes=0, out_axes=0, threads=1, progress=None):
    """A function of many points at once.

    `in_axes` says of each argument which axis counts the points; `None` where the argument is the same for all. A number is for
    all arguments but Python numbers, strings and the like, which are shared. Results are those of single calls, bit for bit,
    whatever the number of `threads` (0: all of the machine).
    """
    return Batch(function, in_axes, out_axes, threads, progress)
