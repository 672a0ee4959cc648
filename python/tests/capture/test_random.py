"""Random programs with arrays, aliases, loops and branches: the numbers of Python, or an error; never other numbers."""

import linecache
import os
import random

import numpy as np
import pytest

import chainrule as cr

ARRAYS, NUMBERS = ["x", "y", "a", "b", "c"], ["s", "t"]


class Writer:
    """Writes one program of a seed."""

    def __init__(self, seed):
        self.r = random.Random(seed)

    def text(self):
        lines = ["def f(x, y):", "    a = x * 2; b = y.copy(); c = x + y; s = 0.5; t = 1.0"]
        return "\n".join([*lines, *self.block(4, 0), *self.block(4, 0), "    return a, b, c, s, t"]) + "\n"

    def number(self, depth=0):
        choice, r = self.r.choice, self.r
        forms = [
            lambda: choice(NUMBERS), lambda: f"{choice(ARRAYS[2:])}[{r.randrange(4)}]", lambda: choice(["0.5", "2", "1.5", "-1"]),
            lambda: f"np.sum({choice(ARRAYS)})", lambda: f"x[{r.randrange(-4, 4)}]",
        ]
        if depth < 2:
            forms.append(lambda: f"({self.number(depth + 1)} {choice('+-*')} {self.number(depth + 1)})")
            forms.append(lambda: f"np.sin({self.number(depth + 1)})")
        return choice(forms)()

    def array(self, depth=0):
        choice = self.r.choice
        forms = [
            lambda: choice(ARRAYS), lambda: choice(ARRAYS), lambda: f"{choice(ARRAYS)}.copy()", lambda: f"{choice(ARRAYS)}[::-1]",
            lambda: f"{choice(ARRAYS)} * {self.number(1)}",
        ]
        if depth < 2:
            forms.append(lambda: f"({self.array(depth + 1)} {choice('+-*')} {self.array(depth + 1)})")
            forms.append(lambda: f"np.where({self.array(depth + 1)} > {self.number()}, {self.array(depth + 1)}, {self.array(depth + 1)})")
            forms.append(lambda: f"np.cos({self.array(depth + 1)})")
            forms.append(lambda: f"np.cumsum({self.array(depth + 1)})")
            forms.append(lambda: f"np.roll({self.array(depth + 1)}, {self.r.randrange(-3, 4)})")
            forms.append(lambda: f"np.array([v * {self.number(2)} + k for k, v in enumerate({self.array(depth + 1)})])")
            forms.append(lambda: f"({self.array(depth + 1)})[np.array([{', '.join(str(self.r.randrange(4)) for _ in range(4))}])]")
            forms.append(lambda: f"np.clip({self.array(depth + 1)}, {self.number(2)} - 1, 2.0)")
        return choice(forms)()

    def step(self, local, name):
        """What a step of a loop over the elements of an array writes."""
        others = [array for array in ARRAYS if array != local]
        return self.r.choice([f"{self.r.choice(others)}[{name}] * {self.number(1)}", f"{local}[{name}] + {self.number(1)}", f"{local}[{name} - 1] * 0.5",
                              f"{self.number(1)} if {local}[{name}] > 0 else {self.r.choice(others)}[{name}]"])

    def block(self, indent, depth, index=None):
        """A few statements; `index` is the variable of the loop around them."""
        r, choice, pad, lines = self.r, self.r.choice, " " * indent, []
        for _ in range(r.randrange(1, 4)):
            local, kind = choice(ARRAYS[2:]), r.randrange(13)
            if kind == 7 and depth < 3:
                name = "ijk"[depth]
                lines += [f"{pad}for {name} in range({r.randrange(1, 4)}):", *self.block(indent + 4, depth + 1, name)]
                if r.random() < 0.3:
                    lines.append(f"{pad}    if {self.number()} > 1: {choice(['break', 'continue'])}")
                    lines += self.block(indent + 4, 3, name)
            elif kind == 8 and depth < 3:
                lines += [f"{pad}if {self.number()} > {self.number()}:", *self.block(indent + 4, depth + 1, index)]
                if r.random() < 0.6:
                    lines += [f"{pad}else:", *self.block(indent + 4, depth + 1, index)]
            elif kind == 10:
                name = "pqr"[min(depth, 2)]
                lines.append(f"{pad}for {name} in range({choice(['4', '1, 4', '3, -1, -1', '0, 4, 2'])}): {local}[{name}] {choice(['=', '+='])} {self.step(local, name)}")
            elif kind == 11:
                lines += [f"{pad}grown = []", f"{pad}for v in {self.array(1)}: grown.append(v * {self.number(1)})", f"{pad}{local} = np.array(grown)"]
            elif kind == 12:
                lines.append(f"{pad}np.add.at({local}, np.array([{r.randrange(4)}, {r.randrange(4)}]), {self.number(1)})")
            else:
                lines.append(pad + [
                    f"{local} = {self.array()}", f"{choice(NUMBERS)} = {self.number()}",
                    f"{local}[{index or r.randrange(4)}] {choice(['=', '+=', '*='])} {self.number()}",
                    f"{local} {choice(['+=', '*='])} {self.array()}", f"{choice(NUMBERS)} += {self.number()}",
                    f"{local}[{choice(['1:3', ':2', '2:'])}] = {self.number()}",
                    f"{local}, {choice(NUMBERS)} = {self.array()}, {self.number()}", "a, b = b, a", "b = a", "c = b[::-1]",
                ][kind])
        return lines


POINT = (np.array([0.3, -0.7, 1.1, 0.2]), np.array([-0.5, 0.9, 0.4, -1.3]))


def effects(f, x, y):
    """The results of a program, and what its arguments become."""
    arguments = x.copy(), y.copy()
    with np.errstate(all="ignore"):
        return [*f(*arguments), *arguments]


def weighted(f, x, y):
    """A sum of all results, each with its own weight."""
    return sum(np.sum(value * np.cos(np.arange(np.size(value)).reshape(np.shape(value)) + k)) for k, value in enumerate(effects(f, x, y)))


SUM = """
def total(x, y):
    x, y = x.copy(), y.copy()
    s = 0.0
    for k, value in enumerate((*f(x, y), x, y)):
        s += np.sum(value * np.cos(np.arange(np.size(value)) + k))
    return s
"""


def compiled(text, name, names):
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    exec(compile(text, name, "exec"), names)


def run(seed):
    """Whether program `seed` was compiled, after a comparison; `None` where Python's numbers are too large to compare."""
    text, names = Writer(seed).text(), {"np": np}
    compiled(text, f"<random program {seed}>", names)
    compiled(SUM, f"<sum of random program {seed}>", names)
    f = names["f"]
    want = effects(f, *POINT)
    if not all(np.all(np.isfinite(w)) and np.max(np.abs(w)) < 1e6 for w in want):
        return None
    if jumps(f):
        # A comparison of equal numbers: another order of a sum decides it.
        return None
    try:
        got = effects(cr.function(f), *POINT)
        slopes = cr.gradient(names["total"], argnums=(0, 1))(*POINT)
    except cr.CaptureError as error:
        assert "view of" in str(error) or "shares memory" in str(error), f"{error}\n{text}"
        return False
    for g, w in zip(got, want):
        np.testing.assert_allclose(g, w, rtol=1e-9, atol=1e-9, err_msg=text)
    check_slope(f, slopes, text)
    return True


def jumps(f):
    """Whether a program is at a jump: changes of the arguments by rounding change its results by more."""
    rng = np.random.default_rng(1)
    middle = weighted(f, *POINT)
    for _ in range(4):
        d, e = 1e-10 * rng.normal(size=4), 1e-10 * rng.normal(size=4)
        if abs(weighted(f, POINT[0] + d, POINT[1] + e) - middle) > 1e-6 * max(1.0, abs(middle)):
            return True
    return False


def check_slope(f, slopes, text):
    """The gradient along two directions against differences of NumPy, on one side where the program has a kink."""
    rng = np.random.default_rng(0)
    for _ in range(2):
        d, e = rng.normal(size=4), rng.normal(size=4)
        got = float(slopes[0] @ d + slopes[1] @ e)
        at = lambda h: weighted(f, POINT[0] + h * d, POINT[1] + h * e)
        middle = at(0.0)
        steps = {1e-4: 1e-5, 1e-6: 1e-3}
        found = [((8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h), tolerance) for h, tolerance in steps.items()]
        found += [((at(h) - middle) / h, 1e-3) for h in (1e-6, -1e-6)]
        close = any(abs(got - slope) <= tolerance * max(1.0, abs(got)) for slope, tolerance in found)
        assert close or not np.all(np.isfinite([slope for slope, _ in found])), f"{got} {found}\n{text}"


@pytest.mark.parametrize("start", range(0, int(os.environ.get("CHAINRULE_RANDOM_PROGRAMS", 80)), 80))
def test_random_programs_give_the_numbers_and_slopes_of_python(start):
    done = [run(seed) for seed in range(start, start + 80)]
    assert done.count(True) >= 40, done
