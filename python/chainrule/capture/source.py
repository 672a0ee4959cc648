"""Source of Python functions: syntax trees with places in the user's file."""

from __future__ import annotations

import ast
import functools
import inspect
import linecache
import types

from ..errors import CaptureError


class Source:
    """One file: its name and text, and the byte at which each line starts."""

    def __init__(self, name, text):
        self.name = name
        self.text = text
        self.lines = text.splitlines(keepends=True)
        self.starts = [0]
        for line in self.lines:
            self.starts.append(self.starts[-1] + len(line.encode()))

    def span(self, node):
        """First byte and one past the last byte of a node."""
        start = self.starts[node.lineno - 1] + node.col_offset
        end_line = node.end_lineno if node.end_lineno is not None else node.lineno
        end = self.starts[end_line - 1] + (node.end_col_offset or 0)
        return start, max(start, end)

    def place(self, node):
        """What an exception says of a node: file, line, column, the line's text, the width."""
        line = self.lines[node.lineno - 1] if node.lineno <= len(self.lines) else ""
        column = len(line.encode()[: node.col_offset].decode(errors="replace"))
        width = 1
        if node.end_lineno == node.lineno and node.end_col_offset is not None:
            width = node.end_col_offset - node.col_offset
        return self.name, node.lineno, column + 1, line, width


@functools.lru_cache(maxsize=256)
def _parse(name, text):
    """The source and the syntax trees of its functions by their names."""
    functions = {}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.Lambda)):
            functions.setdefault(getattr(node, "name", "<lambda>"), []).append(node)
    return Source(name, text), functions


def of_function(function):
    """The source and the syntax tree of a Python function, a lambda included."""
    code = function.__code__
    if code.co_flags & (inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
        raise CaptureError(f"`{function.__qualname__}` is an `async def`, which cannot be compiled", place=first_line(code), remedy="write a `def`")
    name = inspect.getsourcefile(function) or code.co_filename
    linecache.checkcache(name)
    lines = linecache.getlines(name, getattr(function, "__globals__", None))
    if not lines:
        raise CaptureError(
            f"the source of `{function.__qualname__}` is not there",
            reason=f"it was made by {code.co_filename}, which is no file",
            remedy="define the function in a file or a notebook cell",
        )
    try:
        source, functions = _parse(name, "".join(lines))
    except SyntaxError:
        # A notebook cell or a file that has changed since: the function's own lines.
        raise CaptureError(f"the source of `{function.__qualname__}` in {name} cannot be read") from None
    found = [node for node in functions.get(code.co_name, ()) if _begins(node, code)]
    if len(found) > 1:
        found = [_of_instructions(found, code)] if isinstance(found[0], ast.Lambda) else found
    if not found:
        raise CaptureError(
            f"the source of `{function.__qualname__}` is not in {name} any more",
            remedy="import the module again: the file has changed",
        )
    return source, found[0]


def first_line(code):
    """The place of a function whose syntax tree is not read."""
    line = linecache.getline(code.co_filename, code.co_firstlineno)
    return code.co_filename, code.co_firstlineno, len(line) - len(line.lstrip()) + 1, line, 1


def _begins(node, code):
    decorators = getattr(node, "decorator_list", ())
    return code.co_firstlineno in (min([node.lineno, *(decorator.lineno for decorator in decorators)]), node.lineno)


def _of_instructions(lambdas, code):
    """The lambda, of several on one line, that has the instructions of the code: the innermost one around all of them."""
    places = [
        ((line, column), (end_line, end_column))
        for line, end_line, column, end_column in code.co_positions()
        if None not in (line, end_line, column, end_column) and (line, column) != (code.co_firstlineno, 0)
    ]
    first, last = min((start for start, _ in places), default=None), max((end for _, end in places), default=None)
    start_of, end_of = lambda node: (node.body.lineno, node.body.col_offset), lambda node: (node.body.end_lineno, node.body.end_col_offset)
    around = [node for node in lambdas if places and start_of(node) <= first and last <= end_of(node)]
    if not around:
        raise CaptureError("a lambda is not told apart from others on its line", place=first_line(code), remedy="give each a line of its own")
    return max(around, key=start_of)


def is_python_function(value):
    return isinstance(value, types.FunctionType)
