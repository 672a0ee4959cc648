"""Functions for people: tables and formulas in notebooks, pictures of patterns and graphs, reports."""

from __future__ import annotations

import ast
import html
import inspect
import re
import textwrap

import numpy as np

from . import _core
from .errors import Error

#: Number of operations up to which a graph is drawn.
MAX_NODES = 200
#: Number of cells along an axis of a drawn pattern; larger ones are drawn coarser.
MAX_CELLS = 400


class Picture:
    """A picture: shown by notebooks, written by `save`."""

    def __init__(self, svg):
        self.svg = svg

    def _repr_svg_(self):
        return self.svg

    def save(self, path):
        _core.replace(path, self.svg.encode())


def pattern_picture(starts, columns, shape):
    """The pattern of a sparse matrix: a square for each entry, or for each block of entries of a large one."""
    n_rows, n_columns = shape
    step = max(1, -(-max(shape) // MAX_CELLS))
    rows = np.repeat(np.arange(n_rows), np.diff(starts)) // step
    cells = np.unique(np.stack([rows, np.asarray(columns) // step], axis=1), axis=0) if len(columns) else np.zeros((0, 2), int)
    height, width = max(1, -(-n_rows // step)), max(1, -(-n_columns // step))
    squares = "".join(f"M{c} {r}h1v1h-1z" for r, c in cells.tolist())
    scale = max(1, min(12, 480 // max(height, width)))
    label = f"{n_rows} x {n_columns}, {len(columns)} entries"
    return Picture(f'<svg xmlns="http://www.w3.org/2000/svg" width="{width * scale + 2}" height="{height * scale + 2}" '
                   f'viewBox="-0.1 -0.1 {width + 0.2} {height + 0.2}" role="img"><title>{label}</title>'
                   f'<rect width="{width}" height="{height}" fill="white" stroke="#888" stroke-width="0.1"/>'
                   f'<path d="{squares}" fill="#1f4e9c"/></svg>')


def graph_picture(dot):
    """A graph of Graphviz's language, in layers from arguments to results."""
    labels = dict(re.findall(r'^\s*(\w+) \[.*?label="((?:[^"\\]|\\.)*)"', dot, re.M))
    edges = re.findall(r"^\s*(\w+) -> (\w+)", dot, re.M)
    for a, b in edges:
        labels.setdefault(a, a)
        labels.setdefault(b, b)
    if len(labels) > MAX_NODES:
        raise Error(f"the graph has {len(labels)} nodes; {MAX_NODES} are drawn at most", remedy="`f.source('c')` is its text")
    layer = dict.fromkeys(labels, 0)
    for _ in labels:
        moved = False
        for a, b in edges:
            if layer[b] <= layer[a]:
                layer[b], moved = layer[a] + 1, True
        if not moved:
            break
    places, counts = {}, {}
    for node in labels:
        k = counts[layer[node]] = counts.get(layer[node], -1) + 1
        places[node] = (60 + 110 * k, 30 + 70 * layer[node])
    width, height = 120 + 110 * max(counts.values(), default=0), 60 + 70 * max(layer.values(), default=0)
    lines = "".join(f'<line x1="{places[a][0]}" y1="{places[a][1] + 12}" x2="{places[b][0]}" y2="{places[b][1] - 12}"/>' for a, b in edges)
    nodes = "".join(f'<ellipse cx="{x}" cy="{y}" rx="48" ry="14"/>'
                    f'<text x="{x}" y="{y + 4}">{html.escape(labels[node][:14])}</text>' for node, (x, y) in places.items())
    return Picture(f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img">'
                   f'<g stroke="#888" fill="white">{lines}</g><g stroke="#1f4e9c" fill="white" font-family="monospace" font-size="11" '
                   f'text-anchor="middle">{nodes}</g></svg>'.replace("<text ", '<text stroke="none" fill="black" '))


def table(function):
    """A function as a table: its signature, its description, the kinds of arguments it was compiled for."""
    signature = html.escape(f"{function.__name__}{function.__signature__}")
    said = html.escape((function.__doc__ or "").strip().split("\n")[0])
    rows = "".join(f"<tr><td>{html.escape(kind)}</td></tr>" for kind in kinds(function))
    compiled = f"<table><tr><th>compiled for</th></tr>{rows}</table>" if rows else "<p>not called yet</p>"
    return f"<div><code>{signature}</code><p>{said}</p>{compiled}</div>"


def kinds(function):
    """The kinds of arguments that a function was compiled for, in words."""
    base = getattr(function, "function", function)
    names = base._names
    for key in base._entries:
        specs = key if base.sizes is None else key[0]
        yield ", ".join(f"{name}: {kind(spec)}" for name, spec in zip(names, specs))


def kind(spec):
    if spec[0] == "num":
        word = {"f": "float64", "i": "int64", "b": "bool"}[spec[1]]
        return f"{word}[{', '.join(':' if extent is None else str(extent) for extent in spec[2])}]" if spec[2] else word
    if spec[0] == "row":
        return f"({', '.join(kind(part) for part in spec[1])})"
    return repr(spec[1].value) if spec[0] == "known" else str(spec[0])


SYMBOLS = {ast.Add: "{} + {}", ast.Sub: "{} - {}", ast.Mult: r"{} \, {}", ast.Div: r"\frac{{{}}}{{{}}}", ast.Pow: "{}^{{{}}}", ast.MatMult: "{} {}"}
LEVELS = {ast.Add: 1, ast.Sub: 1, ast.Mult: 2, ast.MatMult: 2, ast.Div: 4, ast.Pow: 3}
FUNCTIONS = {"sin", "cos", "tan", "exp", "log", "sinh", "cosh", "tanh", "arctan", "arcsin", "arccos", "max", "min", "det"}


def formula(function):
    """A function that is one expression in LaTeX; `None` for others."""
    try:
        from .capture.source import of_function
        _, node = of_function(function._python())
    except (Error, OSError, TypeError, SyntaxError):
        return None
    if isinstance(node, ast.FunctionDef):
        body = [s for s in node.body if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))]
        if len(body) != 1 or not isinstance(body[0], ast.Return) or body[0].value is None:
            return None
        expression = body[0].value
    elif isinstance(node, ast.Lambda):
        expression = node.body
    else:
        return None
    text = latex(expression, 0)
    if text is None:
        return None
    name = function.__name__ if function.__name__.isidentifier() else "f"
    return f"$\\displaystyle {word(name)}({', '.join(map(word, function._names))}) = {text}$"


def word(name):
    base, _, index = name.partition("_")
    base = base if len(base) == 1 else rf"\mathrm{{{base}}}"
    return rf"{base}_{{\mathrm{{{index.replace('_', ',')}}}}}" if index else base


def latex(node, level):
    """An expression in LaTeX, in parentheses where it binds less than `level`; `None` where it has no form there."""
    if isinstance(node, ast.Name):
        return word(node.id)
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        text = repr(node.value)
        return text if "e" not in text else r"{} \cdot 10^{{{}}}".format(*text.split("e"))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = latex(node.operand, 2)
        return None if inner is None else f"-{inner}" if level < 2 else f"(-{inner})"
    if isinstance(node, ast.BinOp) and type(node.op) in SYMBOLS:
        own = LEVELS[type(node.op)]
        is_fraction = isinstance(node.op, ast.Div)
        left = latex(node.left, 0 if is_fraction else 4 if isinstance(node.op, ast.Pow) else own)
        right = latex(node.right, 0 if own > 2 else own + isinstance(node.op, ast.Sub))
        if left is None or right is None:
            return None
        made = SYMBOLS[type(node.op)].format(left, right)
        return f"\\left({made}\\right)" if own < level else made
    if isinstance(node, ast.Subscript):
        array, index = latex(node.value, 4), node.slice
        parts = [latex(part, 0) for part in (index.elts if isinstance(index, ast.Tuple) else [index])]
        return None if array is None or None in parts else f"{array}_{{{', '.join(parts)}}}"
    if isinstance(node, ast.Call) and not node.keywords and node.args:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        args = [latex(arg, 0) for arg in node.args]
        if None in args or not name:
            return None
        if name == "sqrt":
            return rf"\sqrt{{{args[0]}}}"
        if name == "sum" and len(args) == 1:
            made = rf"\sum {latex(node.args[0], 2)}"
            return f"\\left({made}\\right)" if level > 1 else made
        if name in ("abs", "absolute", "norm"):
            return rf"\left\lVert {args[0]} \right\rVert" if name == "norm" else rf"\left\lvert {args[0]} \right\rvert"
        shown = rf"\{name}" if name in FUNCTIONS else rf"\operatorname{{{name}}}".replace("_", r"\_")
        return rf"{shown}\left({', '.join(args)}\right)"
    return None


def report(evaluator, path, args, kwargs):
    """Writes a page with everything about a function or derivative at these arguments, or those of the last call."""
    program, sizes = evaluator._told(args, kwargs)
    base = getattr(evaluator, "function", evaluator)
    parts = []
    python = getattr(base, "__wrapped_python__", None)
    if python is not None:
        try:
            parts.append(("Python", textwrap.dedent(inspect.getsource(python))))
        except OSError:
            pass
    counts = "\n".join(f"{name:8} {n}" for name, n in program.counts(sizes))
    parts += [("Operations", counts), ("Optimiser", program.explain() or "straight-line code"), ("Program", program.text()), ("C", program.c())]
    body = "".join(f"<details open><summary>{title}</summary><pre>{html.escape(text)}</pre></details>" if title != "C" else
                   f"<details><summary>{title}</summary><pre>{html.escape(text)}</pre></details>" for title, text in parts)
    dot = program.dot()
    if dot is not None and dot.count("->") < MAX_NODES:
        body += f"<h2>Graph</h2>{graph_picture(dot).svg}"
    title = html.escape(evaluator.__name__)
    text = (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title><style>body{{font-family:sans-serif;max-width:70em;margin:2em auto}}'
        f"pre{{background:#f4f4f4;padding:1em;overflow:auto}}summary{{font-weight:bold}}</style><h1>{title}</h1>{table(evaluator)}"
        f"<p>{html.escape(', '.join(f'{name} = {n}' for name, n in sizes))}</p>{body}</html>")
    _core.replace(path, text.encode())
