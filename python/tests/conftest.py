"""Settings of all tests: where the machine runs native code, each function has to be native code."""

from chainrule import _core


def pytest_configure(config):
    if _core.Function.from_text("f", "let f = fun (x : Double) -> x * x").compile().backend == "native":
        config.addinivalue_line("filterwarnings", "error::chainrule.InterpreterWarning")
