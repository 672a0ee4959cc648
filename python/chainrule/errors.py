"""Exceptions: one hierarchy, with the user's file, line, column and a caret, the reason and the remedy."""

from __future__ import annotations


class Error(Exception):
    """Base of all exceptions of Chainrule.

    ``filename``, ``lineno``, ``offset`` (both from 1) and ``text`` say where in the user's source, as those of
    ``SyntaxError`` do; they are ``None`` where there is no place.
    """

    def __init__(self, title, *, place=None, reason=None, remedy=None):
        self.title = title
        self.reason = reason
        self.remedy = remedy
        self.filename, self.lineno, self.offset, self.text, self.width = place or (None, None, None, None, 0)
        super().__init__(self._message())

    def _message(self):
        lines = [self.title]
        if self.filename is not None:
            lines.append(f'  File "{self.filename}", line {self.lineno}, column {self.offset}')
            text = (self.text or "").rstrip("\n")
            bare = text.lstrip()
            start = max(self.offset - 1 - (len(text) - len(bare)), 0)
            width = max(1, min(self.width or 1, len(bare) - start))
            lines += [f"    {bare}", f"    {' ' * start}{'^' * width}"]
        lines += [part for part in (self.reason, self.remedy) if part]
        return "\n".join(lines)


class CaptureError(Error):
    """A function uses something that cannot be compiled; the place is in its source."""


class ShapeError(Error, ValueError):
    """Shapes of arguments do not agree with each other or with the function."""


class TypeError_(Error, TypeError):
    """An argument has a type or a dtype that the function does not take."""


class Limitation(Error):
    """Nothing is wrong but that Chainrule cannot do it."""


class Bug(Error):
    """Chainrule is wrong. Please report it with the program that shows it."""


def from_core(parts):
    """The exception for a failure of the library, whose parts the extension module gives."""
    kind = parts["kind"]
    file = parts.get("file")
    place = None
    if file is not None and not file.startswith("<type of"):
        place = (file, parts["line"], parts["column"], parts["text"], parts["width"])
    reason = "; ".join(part for part in (parts.get("label"), parts.get("reason")) if part)
    made = {"limitation": Limitation, "bug": Bug}.get(kind)
    if made is None:
        made = {"program": CaptureError, "entry": ShapeError, "run": Error}[parts["stage"]]
        if kind == "request" and made is CaptureError:
            made = Error
    title = parts.get("title") or "the program is wrong"
    if kind == "bug":
        title = f"a bug in Chainrule: {title}"
    return made(title, place=place, reason=reason or None, remedy=parts.get("help"))
