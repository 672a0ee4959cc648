"""Counts the operations of derivatives made by CasADi and SymEngine, the way `chainrule-bench counts` counts ours.

    python -m venv peers && peers/bin/pip install casadi symengine
    peers/bin/python benchmarks/peers/count.py FOLDER sh10 idf6_gen ba

FOLDER holds `spec.py`, the problems written for any type with + - * / and sin, cos, sqrt. Nothing in the project
needs this script; it is there so that what the peers are said to take can be counted again.

What counts: + and - as add, * as mul, / as div, a negation that is an operation of its own as neg; calls (sin,
cos, sqrt) apart. x*x is a mul, 2*x in CasADi's x+x form an add, an integer power as many mul as squaring and
multiplying takes, a reciprocal a div. Inputs, outputs and constants are free.
"""

import importlib.util
import pathlib
import sys
from collections import Counter

import casadi
import symengine


def casadi_counts(spec, problem, cse):
    """Instructions of the SX function that computes all entries asked for."""
    p = spec.parse(problem)
    x = casadi.SX.sym("x", p["n_in"])
    f = casadi.vertcat(*spec.func(problem, casadi.vertsplit(x), casadi))
    if cse:
        f = casadi.cse(f)
    asked = f if p["kind"] == "idf" else casadi.jacobian(f, x)[:, : p["n_d"]]
    if cse:
        asked = casadi.cse(asked)
    code = casadi.Function("f", [x], [asked])
    kinds = {
        casadi.OP_ADD: "add", casadi.OP_SUB: "add", casadi.OP_TWICE: "add",
        casadi.OP_MUL: "mul", casadi.OP_SQ: "mul", casadi.OP_DIV: "div", casadi.OP_INV: "div",
        casadi.OP_NEG: "neg", casadi.OP_INPUT: None, casadi.OP_OUTPUT: None, casadi.OP_CONST: None,
    }
    ids = (code.instruction_id(k) for k in range(code.n_instructions()))
    return Counter(kind for kind in (kinds.get(i, "call") for i in ids) if kind)


class SymEngineNames:
    sin, cos, sqrt = symengine.sin, symengine.cos, symengine.sqrt


def symengine_counts(spec, problem):
    """The replacements and the reduced expressions of `cse` over all entries asked for."""
    p = spec.parse(problem)
    x = symengine.symbols(f"x:{p['n_in']}")
    f = [symengine.sympify(e) for e in spec.func(problem, list(x), SymEngineNames)]
    asked = f if p["kind"] == "idf" else [e.diff(v) for e in f for v in x[: p["n_d"]]]
    replacements, reduced = symengine.cse(asked)
    counts = Counter()
    seen = set()
    for e in [e for _, e in replacements] + list(reduced):
        if e not in seen:
            seen.add(e)
            count_expression(e, counts)
    return counts


def count_power(exponent, counts):
    n = abs(int(exponent))
    counts["mul"] += n.bit_length() - 1 + bin(n).count("1") - 1


def count_expression(root, counts):
    """Sums of n terms are n - 1 add, a term -1 * t among others is subtracted; products likewise."""
    stack = [root]
    while stack:
        e = stack.pop()
        stack.extend(e.args)
        if e.is_Add:
            counts["add"] += len(e.args) - 1
        elif e.is_Mul:
            above = [a for a in e.args if not is_reciprocal(a)]
            counts["div"] += len(e.args) - len(above)
            if above and above[0] == -1:
                above = above[1:]
                counts["neg"] += 0 if stands_in_sum(root, e) else 1
            counts["mul"] += max(len(above) - 1, 0)
        elif e.is_Pow:
            base, exponent = e.args
            if exponent.is_Integer:
                count_power(exponent, counts)
                counts["div"] += 1 if e == root and exponent < 0 else 0
            elif 2 * exponent in (1, -1):
                counts["call"] += 1
                counts["div"] += 1 if e == root and exponent < 0 else 0
            else:
                counts["call"] += 1
        elif e.is_Function:
            counts["call"] += 1


def is_reciprocal(e):
    return e.is_Pow and e.args[1].is_Number and e.args[1] < 0


def stands_in_sum(root, e):
    return root.is_Add and any(a == e for a in root.args)


def main():
    folder, problems = pathlib.Path(sys.argv[1]), sys.argv[2:]
    file = importlib.util.spec_from_file_location("spec", folder / "spec.py")
    spec = importlib.util.module_from_spec(file)
    file.loader.exec_module(spec)
    engines = {
        "CasADi": lambda problem: casadi_counts(spec, problem, False),
        "CasADi, cse": lambda problem: casadi_counts(spec, problem, True),
        "SymEngine, cse": lambda problem: symengine_counts(spec, problem),
    }
    columns = ["add", "mul", "div", "neg"]
    print(f"{'problem':10} {'engine':16}" + "".join(f"{c:>7}" for c in columns) + f"{'ops':>8}{'calls':>7}")
    for problem in problems:
        for name, count in engines.items():
            counts = count(problem)
            row = [counts[c] for c in columns]
            print(f"{problem:10} {name:16}" + "".join(f"{c:7}" for c in row) + f"{sum(row):8}{counts['call']:7}", flush=True)


if __name__ == "__main__":
    main()
