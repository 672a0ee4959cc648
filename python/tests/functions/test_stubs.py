"""The stubs have the names and the signatures of the package, and type checkers take ordinary programs."""

import ast
import importlib.util
import os
import pathlib
import subprocess
import sys
import textwrap

import pytest

import chainrule as cr

FOLDER = pathlib.Path(cr.__file__).parent


def defined(path):
    """Names of classes and functions of a stub, with the names of the methods."""
    found = {}
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ClassDef):
            found[node.name] = [part.name for part in node.body if isinstance(part, ast.FunctionDef)]
        elif isinstance(node, ast.FunctionDef):
            found[node.name] = []
        elif isinstance(node, ast.Assign):
            found[node.targets[0].id] = []
        elif isinstance(node, ast.AnnAssign):
            found[node.target.id] = []
        elif isinstance(node, ast.ImportFrom):
            found.update({part.asname: [] for part in node.names if part.asname})
    return found


def test_stubs_have_the_names_of_the_package():
    assert (FOLDER / "py.typed").exists()
    names = defined(FOLDER / "__init__.pyi")
    assert set(cr.__all__) <= set(names)
    for name in cr.__all__:
        assert hasattr(cr, name)
        for method in names[name]:
            assert method == "__getattr__" or hasattr(getattr(cr, name), method), f"{name}.{method}"
    public = {n for n in dir(cr.Function) if not n.startswith("_")} - set(names["Function"]) - set(names["_Evaluator"])
    assert public <= {"static", "sizes", "strict", "threads"}


def test_stubs_have_the_names_of_the_extension_module():
    names = defined(FOLDER / "_core.pyi")
    names.pop("Leaves")
    own = {name for name in dir(cr._core) if not name.startswith("_")}
    assert own == set(names)
    for name, methods in names.items():
        if isinstance(getattr(cr._core, name), type) and "__getattr__" not in methods:
            public = {m for m in dir(getattr(cr._core, name)) if not m.startswith("_")}
            assert public <= set(methods) | {"name"}, name


#: A program that type checkers take.
PROGRAM = """
    import numpy as np
    import chainrule as cr

    @cr.function
    def energy(x: np.ndarray, k: float = 1.0) -> float:
        return float(k) * float(np.sum(x ** 2))

    @cr.function(static=("n",), strict=True)
    def power(x: float, n: int) -> float:
        return x ** n

    @cr.function
    def product(a: cr.F64[np.ndarray, "n", 3], at: cr.I64[np.ndarray, "n"], k: float = 1.0) -> float:
        return float(np.sum(a[:, 0] * at + a.mean())) * k

    total: float = product(np.ones((2, 3)), np.array([0, 1]))
    value: float = energy(np.ones(3), out=None)
    slope = cr.gradient(energy, argnums=("x", "k"), strategy="reverse")(np.ones(3))
    names: tuple[str, ...] = power.static
    text: str = energy.source("c")
    counts: dict[str, int] = energy.counts
    H = cr.sparse_hessian(energy, form="csc")
    H.picture(np.ones(3)).save("h.svg")
    both = cr.vmap(cr.value_and_grad(energy), in_axes=(0, None), threads=2)(np.ones((4, 3)), 1.0)
    bound = energy.unroll(x=3).bound(np.ones(3))
    address: int = bound.address
    try:
        cr.load("f")
    except cr.Error as error:
        line: int | None = error.lineno
"""


def test_mypy_takes_programs(tmp_path):
    if importlib.util.find_spec("mypy") is None:
        pytest.skip("mypy is not installed")
    (tmp_path / "user.py").write_text(textwrap.dedent(PROGRAM))
    (tmp_path / "wrong.py").write_text('import chainrule as cr\ncr.load(3)\ncr.sparse_hessian(abs, form="dia")\ncr.gradien(abs)\n')
    # A package that is not installed is found by this path; one that is, by itself.
    env = dict(os.environ) if "site-packages" in str(FOLDER) else {**os.environ, "MYPYPATH": str(FOLDER.parent)}
    command = [sys.executable, "-P", "-m", "mypy", "--strict"]
    check = lambda file: subprocess.run([*command, str(tmp_path / file)], capture_output=True, text=True, cwd=tmp_path, env=env)
    good = check("user.py")
    assert good.returncode == 0, good.stdout
    bad = check("wrong.py")
    assert [line.split(":")[1] for line in bad.stdout.splitlines() if "error" in line and line.startswith("wrong")] == ["2", "3", "4"], bad.stdout


def test_pyright_takes_programs(tmp_path):
    if importlib.util.find_spec("basedpyright") is None:
        pytest.skip("basedpyright is not installed")
    if "site-packages" not in str(FOLDER):
        pytest.skip("the package is not installed")
    (tmp_path / "user.py").write_text(textwrap.dedent(PROGRAM))
    (tmp_path / "wrong.py").write_text("import chainrule as cr\ncr.load(3)\ncr.gradien(abs)\n")
    command = [sys.executable, "-P", "-m", "basedpyright", "--level", "error", "--pythonpath", sys.executable]
    check = lambda file: subprocess.run([*command, str(tmp_path / file)], capture_output=True, text=True, cwd=tmp_path)
    good = check("user.py")
    assert good.returncode == 0, good.stdout
    assert "2 errors" in check("wrong.py").stdout
