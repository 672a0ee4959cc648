"""Loops that are captured step by step, where they cannot be as a whole.

A loop is captured as one: each step does the same with another index. Where Python does something else in each step (an
axis, a shape, a list that grows and is read), or a variable is used behind the only loop that assigns it, this fails. The
function is captured again then, with the loop in question *opened*: one of few steps has all of them written one after the
other, another one its first step.
"""

from __future__ import annotations

from ..errors import Bug, Error
from .values import Row, known_number

#: Maximum number of steps that are written one after the other.
MAX_STEPS = 64
#: Maximum number of loops that are opened; each costs another attempt.
MAX_LOOPS = 6


class Opened:
    """The loops to open in one attempt, and what the attempt shows. A loop is known by its place."""

    def __init__(self, loops=frozenset()):
        self.loops = loops
        self.failed = []  # loops that an error has left, inner ones first
        self.seen = {}  # loops with the range of their lines
        self.gone = {}  # what is said of variables that only a loop assigns, and the loop

    def more(self, error):
        """For another attempt; `None` where no loop is to be opened."""
        around = [loop for loop, (first, last) in self.seen.items() if loop[0] == error.filename and first <= error.lineno <= last]
        by_name = [self.gone[error.title]] if error.title in self.gone else []
        found = next((loop for loop in [*by_name, *self.failed, *around[::-1]] if loop not in self.loops), None)
        return None if found is None or len(self.loops) == MAX_LOOPS else Opened(self.loops | {found})

    def enter(self, source, node):
        """Records a loop; returns its place, and whether it is opened."""
        loop = (source.name, node.lineno, node.col_offset)
        self.seen[loop] = (node.lineno, node.end_lineno)
        return loop, loop in self.loops


def has_few_steps(loop):
    return loop.count.known is not None and loop.count.known <= MAX_STEPS


def steps(w, loop):
    """The items of a loop of few steps, one at a time; integers are known."""
    for k in range(loop.count.known):
        yield known(loop.element(w.constant(k)))


def known(value):
    """An item whose integers are known where their number is."""
    if isinstance(value, Row):
        return Row([known(item) for item in value.items], value.is_list)
    return known_number(value)


def attempts(run):
    """The result of `run(opened)`, with more and more loops opened; the first error where none helps."""
    opened, first = Opened(), None
    while True:
        try:
            return run(opened)
        except Bug:
            raise
        except Error as error:
            first = first or error
            opened = opened.more(error)
        if opened is None:
            raise first
