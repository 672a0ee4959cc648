"""Known sizes: what a function is captured with where symbolic ones do not do.

A function is captured once for all sizes. It is captured again with the sizes of a call, and its integers, where these do not
fit the program: an extent that becomes 1 and is broadcast, a slice that goes beyond the end, a result whose size is no
polynomial of the arguments'.

Likewise, indices that are data are taken to be at least 0, and slices of known length at such places to lie in the array, which
costs nothing. A function that meets another one is captured again: indices are *counted from the end* where they are negative,
and slices are cut.
"""

from __future__ import annotations

import contextlib
import threading

from .errors import CaptureError, Error, Limitation, ShapeError

STATE = threading.local()


@contextlib.contextmanager
def within(setting):
    before = getattr(STATE, setting, False)
    setattr(STATE, setting, True)
    try:
        yield
    finally:
        setattr(STATE, setting, before)


def known():
    """Within it, functions are captured with the sizes of their arguments."""
    return within("known")


def is_known():
    return getattr(STATE, "known", False)


def counted_from_end():
    """Within it, functions are captured with indices that may be negative."""
    return within("negative")


def may_be_negative():
    return getattr(STATE, "negative", False)


def may_depend_on_sizes(error):
    """Whether a failure may be gone once sizes are known."""
    if isinstance(error, CaptureError):
        titles = ("is computed while the function runs", "sizes do not agree", "before the loop", "are not known to be equal")
        return any(title in str(error) for title in titles)
    return isinstance(error, (ShapeError, Limitation))


def attempt(owner, run):
    """The result of `run()`, with indices out of range where one is met, and with known sizes where symbolic ones do not suffice;
    `owner` remembers it."""
    if owner._counts_from_end:
        with counted_from_end():
            return with_sizes_known(owner, run)
    try:
        return with_sizes_known(owner, run)
    except Error as error:
        if "the index is " not in (error.reason or ""):
            raise
        first = error
    try:
        with counted_from_end():
            result = with_sizes_known(owner, run)
    except Error:
        raise first from None
    owner._counts_from_end = True
    return result


def with_sizes_known(owner, run):
    """The result of `run()`, with known sizes where symbolic ones do not suffice; `owner` remembers that they never do."""
    if owner._needs_sizes:
        with known():
            return run()
    try:
        return run()
    except Error as error:
        if not may_depend_on_sizes(error):
            raise
        first = error
    try:
        with known():
            result = run()
    except Error as error:
        raise error if isinstance(error, ShapeError) else first from None
    owner._needs_sizes = not isinstance(first, ShapeError)
    return result


#: Stands behind the keys of arguments where indices that are data may be negative.
FROM_END = "from the end"


def with_sizes(spec, leaves):
    """What the key says of an argument, with its sizes and integers; `leaves` is an iterator over its arrays."""
    if spec[0] == "num":
        array = next(leaves)
        number = int(array.reshape(-1)[0]) if spec[1] == "i" and not spec[2] else None
        return ("exact", spec[1], array.shape if spec[2] else (), number)
    if spec[0] == "row":
        return ("row", tuple(with_sizes(part, leaves) for part in spec[1]), *spec[2:])
    return spec
