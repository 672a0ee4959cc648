"""Entries: what a function is for arguments of one key, with code where it has run."""

from __future__ import annotations

import threading

from .code import Code, smooth
from .errors import Error


class Entry:
    """A function of the library for arguments of one key, with code where it has run."""

    def __init__(self, function, names, structure, constants):
        self.function = function
        self.names = names  # of the leaves of each parameter
        self.structure = structure  # of the result
        self.constants = constants
        floats = iter([kind == "f" for _, kind, _ in function.outputs])
        self.smooth = smooth(structure, floats)  # the structure with `False` for results without derivatives
        self.lock = threading.Lock()
        self.derived = {}
        self.check = None  # of the shapes of arguments, where these are annotated
        self.deciding = constants.deciding  # see :mod:`chainrule.fit`
        self.base = self  # the entry whose deciding sizes this one is for
        self.widen = None  # makes the entry for all sizes, where this one is for short extents
        self.threads = None  # on which one evaluation runs; `None` for the calling one, without chunks
        self.kept = None  # the numbers of the leaves that code takes, where it does not take all: integers of unrolled code

    @property
    def general(self):
        """The entry for all sizes; that for the short extents where a function cannot be captured so."""
        try:
            return self.base if self.base.widen is None else self.base.widen()
        except Error:
            return self.base

    def taken(self, leaves):
        """The leaves that code takes."""
        return leaves if self.kept is None else [leaves[k] for k in self.kept] + leaves[self.n_leaves:]

    def holds(self):
        return all(dependency.holds() for dependency in self.constants.dependencies)

    def code(self, key, derive):
        """The code of a derivative, made once; that of the function for the key `None`."""
        code = self.derived.get(key)
        if code is None:
            with self.lock:
                code = self.derived.get(key)
                if code is None:
                    code = self.derived[key] = self.compiled(derive())
        return code

    def compiled(self, function):
        return Code(function.compile(self.threads), function)
