"""The sum of a program's outputs, as a number and as a function to differentiate."""

import linecache

import numpy as np


def outputs(function, args):
    """What a program returns, the numbers of the arrays that it changes and does not return, and all of these arrays."""
    args = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
    before = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
    result = function(*args)
    returned = [] if result is None else list(result) if isinstance(result, tuple) else [result]
    changed = [k for k, (a, b) in enumerate(zip(args, before))
               if isinstance(a, np.ndarray) and not np.array_equal(a, b) and not any(r is a for r in returned)]
    return returned, changed, [*returned, *(args[k] for k in changed)]


def sum_of(p):
    """A function of the program's arguments: the sum of the floats among its outputs. The program writes to copies."""
    arguments = p.arguments(np.random.default_rng(0), *p.test)
    returned, changed, _ = outputs(p.function, arguments)
    written = [k for k, a in enumerate(arguments) if isinstance(a, np.ndarray)] if changed or not returned else []
    names = ", ".join(f"a{k}" for k in range(len(arguments)))
    text = f"def sum_of_outputs({names}):\n"
    text += "".join(f"    a{k} = a{k}.copy()\n" for k in written)
    text += f"    result = f({names})\n    total = 0.0\n"
    for k, leaf in enumerate(returned):
        if np.asarray(leaf).dtype.kind == "f":
            text += f"    total += np.sum(result{f'[{k}]' if len(returned) > 1 else ''})\n"
    text += "".join(f"    total += np.sum(a{k})\n" for k in changed if arguments[k].dtype.kind == "f") + "    return total\n"
    name = f"<sum of {p.name}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    found = {"np": np, "f": p.function}
    exec(compile(text, name, "exec"), found)
    return found["sum_of_outputs"]
