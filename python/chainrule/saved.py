"""Functions and derivatives as bytes: files, and pickles. Machine code is made again where they are loaded.

What is saved is what a function was called with: for each kind of arguments its program, its compiled form, and those of its derivatives. Loading
runs no code of the file.
"""

from __future__ import annotations

import base64
import inspect
import io
import json
import pathlib
import sys
import threading

import numpy as np

from . import _core, trees
from .arguments import Static, for_all_sizes, n_threads
from .code import Code
from .entry import Entry
from .errors import Error
from .function import Function
from .modules import Nothing

MAGIC = b"chainrule for Python 1\n"


class SavedCode(Code):
    """A derivative made from the program of a loaded function: the conditions on the arguments are those of the function."""

    def __init__(self, compiled, function, value):
        super().__init__(compiled, function)
        self.value = value

    def run(self, inputs, out=None):
        arrays = [array if array.ndim else array.reshape(1) for array in inputs]
        self.value.workspace(arrays[:len(self.value.inputs)])
        return super().run(inputs, out)


class SavedEntry(Entry):
    """What a loaded function has for one kind of arguments."""

    def __init__(self, parts, threads):
        self.threads = threads
        self.name, self.text, self.strict = parts["program"], parts["text"], parts["strict"]
        self.names = [name for name in parts["names"]]
        self.structure, self.smooth = structure(parts["structure"]), structure(parts["smooth"])
        self.constants = Nothing()
        self.constants.arrays = tuple(array(text) for text in parts["constants"])
        self.lock = threading.RLock()
        self.derived = {}
        for key, data in parts["codes"]:
            self.derived[key_of(key)] = Code(_core.Compiled.from_bytes(base64.b64decode(data), threads))
        self._function = None
        self.kept, self.check = parts["kept"], None
        self.deciding, self.base, self.widen = parts.get("deciding", ()), self, None

    @property
    def function(self):
        with self.lock:
            if self._function is None:
                if self.text is None and self.general is not self:
                    return self.general.function
                if self.text is None:
                    raise Error("the program of this function was not saved", remedy="save the derivative after calling it once")
                function = _core.Function.from_text(self.name, self.text)
                self._function = function.strict() if self.strict else function
            return self._function

    def compiled(self, function):
        return SavedCode(function.compile(self.threads), function, self.derived[None].compiled)


class SavedFunction(Function):
    """A function that was loaded."""

    def __init__(self, parts):
        self.__name__ = self.__qualname__ = parts["name"]
        self.__doc__ = parts["doc"]
        self.__module__ = "chainrule.saved"
        make = lambda name, kind, default: inspect.Parameter(
            name, getattr(inspect.Parameter, kind), default=inspect.Parameter.empty if default is None else default[0])
        self.__signature__ = inspect.Signature([make(*parameter) for parameter in parts["parameters"]])
        self._parameters = list(self.__signature__.parameters.values())
        self.static, self.sizes, self.strict = tuple(parts["static"]), parts["sizes"], False
        threads = parts.get("threads")
        self.threads = None if threads is None else n_threads(threads)
        self._setup()
        for key, entry in parts["entries"]:
            self._entries[specs(key)] = SavedEntry(entry, self.threads)
        for key, entry in self._entries.items():
            is_of_sizes = len(key) == 2 and isinstance(key[0][0], tuple)
            entry.base = self._entries.get(key[0], entry) if is_of_sizes else entry
            wide = for_all_sizes(key[0] if is_of_sizes else key)
            entry.widen = (lambda wide=wide: self._entries[wide]) if wide in self._entries else None

    def _captured_alike(self, base, specs, alike):
        return base

    def _capture(self, specs, leaves, values):
        wide = for_all_sizes(specs)
        if wide in self._entries:
            return self._entries[wide]
        raise Error(f"`{self.__name__}` was saved for other kinds of arguments",
                    remedy="call it with such arguments before it is saved: ranks, dtypes and extents of 0 and 1 count")


def dumps(function):
    """A function with what it was called with, as bytes."""
    entries = []
    for entry in list(function._entries.values()):
        entry.general  # Made where it is not there, and saved, too.
    for key, entry in list(function._entries.items()):
        if not isinstance(entry, SavedEntry) and not entry.holds():
            continue
        entry.code(None, lambda entry=entry: entry.function)
        codes = [(k, base64.b64encode(code.compiled.to_bytes()).decode())
                 for k, code in entry.derived.items() if isinstance(code, Code)]
        is_told = entry.kept is None and entry.general is entry  # Others are derived from the program for all sizes.
        text = entry.text if isinstance(entry, SavedEntry) else entry.function.text() if is_told else None
        name = entry.name if isinstance(entry, SavedEntry) else entry.function.name
        strict = entry.strict if isinstance(entry, SavedEntry) else function.strict
        entries.append((specs_json(function, key), {
            "program": name, "text": text, "strict": strict, "names": entry.names, "structure": specs_json(function, entry.structure),
            "smooth": specs_json(function, entry.smooth), "constants": [array_text(a) for a in entry.constants.arrays], "codes": codes, "kept": entry.kept, "deciding": entry.deciding}))
    if not entries:
        raise Error(f"`{function.__name__}` was not called yet", remedy="call it, or the derivative, once before it is saved")
    parameters = [(p.name, p.kind.name, None if p.default is p.empty else [plain(function, p.name, p.default)])
                  for p in function._parameters]
    parts = {"name": function.__name__, "doc": function.__doc__, "parameters": parameters, "entries": entries,
             "static": function.static, "sizes": function.sizes, "threads": function.threads}
    return MAGIC + json.dumps(parts).encode()


def loads(data):
    """The function that :func:`dumps` made bytes of."""
    if not bytes(data[:len(MAGIC)]) == MAGIC:
        raise Error("these are not the bytes of a saved function", remedy="files of `f.save(path)` can be loaded")
    try:
        return SavedFunction(json.loads(bytes(data[len(MAGIC):])))
    except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        if isinstance(error, Error):
            raise
        raise Error("the bytes of a saved function are damaged", reason=str(error)) from None


def save(function, path):
    """Writes a function to a file."""
    _core.replace(path, dumps(function))


def load(path):
    """The function of a file that `f.save(path)` wrote: it has its derivatives, too."""
    return loads(pathlib.Path(path).read_bytes())


def importable(function):
    """Whether other processes find a function by the name of its module."""
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", "")
    if module in (None, "__main__", "__mp_main__") or "<" in name:
        return False
    found = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found is function


# Keys, structures and arrays as JSON.

def plain(function, name, value):
    if value is None or type(value) in (bool, int, float, str):
        return value
    raise Error(f"`{function.__name__}` cannot be saved: `{name}` is a {type(value).__name__}",
                remedy="save functions of numbers, arrays, strings and truth values; functions of modules are pickled by name")


def specs_json(function, key):
    def one(spec):
        if isinstance(spec, trees.Record):
            return trees.to_json(spec)
        if not isinstance(spec, tuple):
            return spec
        if spec and spec[0] == "known":
            return ["known", plain(function, "an argument", spec[1].value)]
        return [one(part) for part in spec]
    return one(key)


def specs(key):
    if isinstance(key, dict):
        return trees.from_json(key)
    if not isinstance(key, list):
        return key
    if key and key[0] == "known":
        return ("known", Static(key[1]))
    if key and key[0] == "num":
        # Earlier files say of each extent whether it is 1.
        return (*key[:2], tuple([{True: 1, False: None}[extent] if isinstance(extent, bool) else extent for extent in key[2]]))
    return tuple([specs(part) for part in key])


def key_of(key):
    if isinstance(key, dict):
        return trees.from_json(key)
    return tuple([key_of(part) for part in key]) if isinstance(key, list) else key


structure = key_of


def array_text(value):
    file = io.BytesIO()
    np.save(file, value, allow_pickle=False)
    return base64.b64encode(file.getvalue()).decode()


def array(text):
    return np.load(io.BytesIO(base64.b64decode(text)), allow_pickle=False)
