"""Programs of the kinds of NPBench (github.com/spcl/npbench): their mathematics, written anew for arrays of doubles and integers.

A program is an ordinary NumPy function, what makes its arguments from sizes, sizes for tests, and the sizes that NPBench
calls S. `refused` is part of the message for a program that cannot be compiled.
"""

from dataclasses import dataclass, field
from typing import Callable


@dataclass
class Program:
    function: Callable
    arguments: Callable  # of a random generator and sizes
    test: tuple
    S: tuple
    refused: str | None = None
    fixed: tuple = field(default=())  # numbers of float arguments by which it is not differentiated

    @property
    def name(self):
        return self.function.__name__


def programs():
    """All of them, by the modules that they are in."""
    from . import learning, linear, medley, physics, solvers, statistics, stencils

    return [p for module in (stencils, linear, solvers, statistics, learning, physics, medley) for p in module.PROGRAMS]
