"""Sparse Jacobians and Hessians as arrays of SciPy, or as their parts."""

from __future__ import annotations

import threading
from collections import OrderedDict

import numpy as np

from . import sizes
from .derivative import Derivative
from .errors import Error, TypeError_

FORMS = ("csr", "csc", "coo", "parts")
#: How many patterns a derivative has at once: those of the extents and integers that were used last.
MAX_PATTERNS = 8


class Pattern:
    """Where the entries are, for the extents and integers of one call."""

    def __init__(self, at):
        self.at = at
        n_rows, n_columns, n = at.shape
        self.shape, self.n = (n_rows, n_columns), n
        starts, columns = np.empty(n_rows + 1, np.int64), np.empty(max(n, 1), np.int64)
        at.pattern(starts, columns)
        # SciPy takes 32 bits where they are enough, and would convert at each call.
        dtype = np.int32 if max(n, n_columns) < 2**31 else np.int64
        self.starts, self.columns = starts.astype(dtype), columns[:n].astype(dtype)


class SparseDerivative(Derivative):
    """A sparse Jacobian or Hessian. The pattern is found once for extents and integers of the arguments.

    A row is a number of the result, a column a number of the arguments that it is by: leaf after leaf, each in row-major
    order, leaves in the order of the arguments of the function, whatever the order in `argnums`.
    """

    def __init__(self, function, what, argnums=0, form="csr"):
        if form not in FORMS:
            raise Error(f"there is no form `{form}`", remedy=f"it is one of {', '.join(FORMS)}")
        super().__init__(function, what, argnums)
        self.argnums = tuple(sorted(self.argnums))
        self.form = form
        self.traced = self.function._in_steps()
        self._patterns = OrderedDict()
        self._guard = threading.Lock()

    def __reduce__(self):
        return (type(self), (self.function, self.what, self.argnums, self.form))

    @property
    def compilations(self):
        """How many times the function was captured for this derivative."""
        return self.traced.compilations

    def _at(self, args, kwargs):
        """The derivative with its pattern, and the arrays that it takes."""
        values = self._values(args, kwargs)
        entry, leaves, _ = self.traced._entry(values)
        key = (self.what, self.argnums)
        sparse = entry.derived.get(key)
        if sparse is None:
            with entry.lock:
                sparse = entry.derived.get(key)
                if sparse is None:
                    by = self.leaf_names(entry, values)
                    sparse = entry.derived[key] = entry.function.sparse(self.what, by)
        leaves = [array if array.ndim else array.reshape(1) for array in leaves]
        key = (id(sparse), *[(a.shape, a.tobytes() if a.dtype.kind == "i" else None) for a in leaves])
        with self._guard:
            found = self._patterns.get(key)
            if found is not None:
                self._patterns.move_to_end(key)
                return found, leaves
        found = Pattern(sparse.at(leaves))
        with self._guard:
            self._patterns[key] = found
            while len(self._patterns) > MAX_PATTERNS:
                self._patterns.popitem(last=False)
        return found, leaves

    def _general(self, args, kwargs):
        kwargs = dict(kwargs or {})
        if "out" in kwargs and "out" not in self.__signature__.parameters:
            raise TypeError_("sparse derivatives take no `out`", remedy="the array's `data` is new at each call")
        found, leaves = sizes.attempt(self, lambda: self._at(args, kwargs))
        values = np.empty(max(found.n, 1))[:found.n]
        found.at.run(leaves, values if found.n else np.empty(0))
        return made(self.form, found, values)

    def pattern(self, *args, **kwargs):
        """Where the entries are: an array with `True` for each."""
        found, _ = sizes.attempt(self, lambda: self._at(args, kwargs))
        return made(self.form, found, np.ones(found.n, np.bool_))

    def picture(self, *args, **kwargs):
        """A picture of the pattern."""
        from .display import pattern_picture
        found, _ = sizes.attempt(self, lambda: self._at(args, kwargs))
        return pattern_picture(found.starts, found.columns, found.shape)

    def _repr_svg_(self):
        """The pattern of the last call."""
        from .display import pattern_picture
        with self._guard:
            found = next(reversed(self._patterns.values()), None)
        return None if found is None else pattern_picture(found.starts, found.columns, found.shape).svg

    def notes(self, *args, **kwargs):
        """Arguments that are used as a whole, so that their columns are dense, and why."""
        entry = self.traced._entry(self._values(args, kwargs))[0]
        self._at(args, kwargs)
        return entry.derived[self.what, self.argnums].notes

    def source(self, language="c", *args, **kwargs):
        """The program that computes the entries as text: `c`, or `ft` for F~."""
        if not args and not kwargs:
            raise Error("a derivative's text needs example arguments", remedy="f.source('c', x)")
        entry = self.traced._entry(self._values(args, kwargs))[0]
        self._at(args, kwargs)
        sparse = entry.derived[self.what, self.argnums]
        if language not in ("c", "ft"):
            raise Error(f"there is no language `{language}`", remedy="'c' or 'ft'")
        return sparse.c() if language == "c" else sparse.text()


def made(form, found, values):
    """The matrix in the form that was asked for."""
    if form == "parts":
        return found.starts.copy(), found.columns.copy(), values
    try:
        from scipy.sparse import csr_array
    except ImportError:
        raise Error("sparse arrays need SciPy, which is not installed",
                    remedy="`pip install scipy`, or form='parts' for (indptr, indices, data)") from None
    # Arrays of SciPy may change in place: each has a pattern of its own.
    array = csr_array((values, found.columns.copy(), found.starts.copy()), shape=found.shape)
    array.has_sorted_indices = array.has_canonical_format = True
    return array if form == "csr" else array.asformat(form)


def sparse_jacobian(function, argnums=0, argnames=None, form="csr"):
    """The Jacobian as `scipy.sparse.csr_array`, of the entries that the function's indices show.

    `form` is "csr", "csc", "coo", or "parts" for a tuple (indptr, indices, data) without SciPy. A row is a number of the
    result, a column a number of the arguments `argnums`: leaf after leaf, each row-major, in the order of the function's arguments.
    """
    return SparseDerivative(function, "sparse_jacobian", argnums if argnames is None else argnames, form)


def sparse_hessian(function, argnums=0, argnames=None, form="csr"):
    """The Hessian of a function with a scalar result, all of it, as :func:`sparse_jacobian`."""
    return SparseDerivative(function, "sparse_hessian", argnums if argnames is None else argnames, form)
