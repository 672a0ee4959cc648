"""Arguments of every kind: the right result or a clear error, with and without an earlier call that was like it."""

import array
import ctypes
import decimal
import enum
import threading
import warnings

import numpy as np
import pytest

import chainrule as cr


def f(x, k=2.0):
    return np.sum(x) * k


def at(x, i):
    return x[i]


class Sub(np.ndarray):
    pass


BASE = np.arange(12.0)
READ_ONLY = BASE.copy()
READ_ONLY.flags.writeable = False
RECORDS = np.zeros(3, dtype=[("a", float), ("b", int)])
UNALIGNED = np.zeros(8 * 4 + 1, np.uint8)[1:].view(np.float64)


class Real(float):
    pass


class Mode(enum.IntEnum):
    THIRD = 3


class Lent:
    """Memory that is handed over by DLPack."""

    def __dlpack__(self, **options):
        return BASE.__dlpack__(**options)

    def __dlpack_device__(self):
        return BASE.__dlpack_device__()


RIGHT = {
    "float64": BASE, "float32": BASE.astype(np.float32), "float16": BASE.astype(np.float16), "int64": np.arange(12), "int8": np.arange(12, dtype=np.int8),
    "uint32": np.arange(12, dtype=np.uint32), "bool": BASE > 3, "big endian": BASE.astype(">f8"), "strided": BASE[::3], "reversed": BASE[::-1],
    "transposed": BASE.reshape(3, 4).T, "fortran": np.asfortranarray(BASE.reshape(3, 4)), "read-only": READ_ONLY, "empty": np.zeros(0),
    "empty matrix": np.zeros((0, 3)), "0-d": np.array(2.5), "0-d int": np.array(3), "np.float64": np.float64(1.5), "np.float32": np.float32(1.5),
    "np.int32": np.int32(4), "float": 1.5, "int": 3, "list": [1.0, 2.0], "list of ints": [1, 2], "nested list": [[1.0], [2.0]],
    "subclass": BASE.view(Sub), "unaligned": UNALIGNED, "broadcast": np.broadcast_to(1.0, (3, 4)), "nan": np.array([np.nan, 1.0]),
    "inf": np.array([np.inf, 1.0]), "memory map": np.lib.stride_tricks.as_strided(BASE, (3, 3), (8, 8)), "range": np.asarray(range(5)),
    "array.array": array.array("d", [1.0, 2.0]), "array of ints": array.array("i", [1, 2]), "memoryview": memoryview(BASE), "ctypes": (ctypes.c_double * 3)(1, 2, 3),
    "Python's range": range(5), "float subclass": Real(2.5), "enum": Mode.THIRD, "DLPack": Lent(),
    "tiny": np.array([5e-324]), "many axes": np.ones((1, 2, 1, 3, 1)), "masked without mask": np.asarray(np.ma.array([1.0, 2.0])),
}
WRONG = {
    "object": np.array([1.0, "a"], dtype=object), "object of floats": np.array([1.0, 2.0], dtype=object), "string": "abc", "strings": np.array(["a", "b"]),
    "bytes": b"abc", "complex": np.array([1j]), "complex number": 1j, "longdouble": np.array([1.0], dtype=np.longdouble), "dates": np.array(["2020-01-01"], dtype="M8[D]"),
    "durations": np.array([1], dtype="m8[s]"), "records": RECORDS, "masked": np.ma.array([1.0, 2.0], mask=[False, True]), "none": None,
    "dict as a number": {"a": 1.0}, "bytearray": bytearray(b"abc"), "decimal": decimal.Decimal(1), "set": {1.0}, "dict of strings": {"a": "b"}, "ragged": [[1.0], [1.0, 2.0]], "uint64": np.arange(3, dtype=np.uint64), "huge int": 2**70, "type": float,
    "generator": (x for x in [1.0]), "list of strings": ["a"], "list of None": [None],
}


@pytest.mark.parametrize("name", RIGHT)
@pytest.mark.parametrize("warm", [False, True])
def test_right_arguments(name, warm):
    function, value = cr.function(f), RIGHT[name]
    want = f(np.asarray(value, dtype=np.float64) if name == "float16" else BASE if name == "DLPack" else np.asarray(value) if name != "bool" else value)
    if warm:
        function(BASE), function(1.0), function(np.ones((2, 2)))
    for _ in range(3):
        np.testing.assert_allclose(function(value), want, rtol=1e-6 if "32" in name or "16" in name else 1e-14)
    if name != "DLPack" and np.asarray(value).dtype.kind == "f":
        slope = cr.gradient(f)
        for _ in range(2):
            got = slope(value)
            assert np.shape(got) == np.shape(value) and np.all(np.asarray(got) == 2.0)


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.parametrize("warm", [False, True])
def test_wrong_arguments(name, warm):
    function = cr.function(f)
    if warm:
        function(BASE), function(1.0)
    # Derivatives are by floats, which large integers become.
    derivatives = [] if name in ("uint64", "huge int") else [cr.gradient(function), cr.hessian(function), cr.sparse_hessian(function)]
    for call in (function, function.batch, function.bound, *derivatives):
        with pytest.raises((cr.Error, TypeError)) as raised:
            call(WRONG[name])
        assert str(raised.value) and "PanicException" not in type(raised.value).__name__
    assert function(BASE) == f(BASE)


def test_integers_that_are_nan_or_out_of_range():
    function = cr.function(at)
    assert function(BASE, 3) == 3.0
    with pytest.raises((cr.Error, TypeError, IndexError)):
        function(BASE, np.nan)
    with pytest.raises((cr.Error, TypeError, IndexError)):
        function(BASE, np.array([np.nan, 1.0]))
    with pytest.raises(cr.Error):
        function(BASE, 12)
    with pytest.raises(cr.Error):
        cr.function(at)(BASE, np.array([0, 12]))
    assert function(BASE, np.array([0, 11])).tolist() == [0.0, 11.0]


def test_large_arrays_are_never_copied_silently():
    x = np.ones(2000)
    function = cr.function(f)
    for value in (x.astype(np.float32), x[::-1], np.asfortranarray(x.reshape(40, 50))):
        for _ in range(2):
            with pytest.warns(cr.ConversionWarning, match="copied at each call") as seen:
                function(value)
            assert seen[0].filename == __file__
            with pytest.warns(cr.ConversionWarning) as seen:
                cr.gradient(function)(value)
            assert seen[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(3):
            function(x), cr.gradient(function)(x)


def test_huge_sizes():
    wide = np.broadcast_to(np.float64(1.0), (2**40,))
    function = cr.function(lambda n: np.zeros(n))
    square = cr.function(lambda x: np.outer(x, x))
    assert function(10).shape == (10,) and square(np.ones(3)).shape == (3, 3)
    for call in (lambda: square(np.ones(2**20)), lambda: function(2**62), lambda: cr.hessian(lambda x: np.sum(x) ** 2)(np.ones(2**21)),
                 lambda: cr.function(f)(wide)):
        with pytest.raises((cr.Error, MemoryError)):
            call()
    assert function(10).shape == (10,) and square(np.ones(3)).shape == (3, 3)


def test_results_share_no_memory_with_arguments():
    for function in (cr.function(lambda x: x), cr.function(lambda x: x.reshape(2, 2)) if ".reshape" in cr.supported() else cr.function(lambda x: x.T)):
        x = np.ones(4)
        for _ in range(3):
            got = function(x)
            assert not np.shares_memory(got, x)
            got[...] = 5.0
            assert x.tolist() == [1.0] * 4


def test_dtypes_that_name_their_byte_order():
    lent = np.asarray(memoryview((ctypes.c_double * 3)(1, 2, 3)))
    function, twice = cr.function(f), cr.function(lambda x: x * 2.0)
    assert function(lent) == 12.0 and function.batch(lent.reshape(3, 1)).tolist() == [2.0, 4.0, 6.0]
    for x in (np.ones(3), lent.copy()):
        assert twice(x, out=lent) is lent and lent.tolist() == (2.0 * x).tolist()


def test_results_of_two_calls_are_two_arrays():
    function = cr.value_and_gradient(f)
    (_, a), (_, b) = function(BASE), function(BASE + 1)
    assert not np.shares_memory(a, b)


def test_arrays_that_share_memory_with_each_other():
    function = cr.function(lambda x, y: np.sum(x * y))
    for _ in range(2):
        assert function(BASE, BASE) == np.sum(BASE * BASE)
        assert function(BASE[:6], BASE[3:9]) == np.sum(BASE[:6] * BASE[3:9])


def test_conversion_that_fails_tells_why():
    class Odd:
        def __array__(self, dtype=None, copy=None):
            raise ValueError("no array today")

    class Huge:
        def __array__(self, dtype=None, copy=None):
            return np.ones(3)

    function = cr.function(f)
    with pytest.raises((cr.TypeError_, ValueError)):
        function(Odd())
    assert function(Huge()) == 6.0


def test_one_function_and_many_threads_with_many_kinds():
    function = cr.value_and_gradient(f)
    kinds = [BASE, BASE.reshape(3, 4), 1.5, BASE[:1], np.ones((1, 4)), BASE[::2]]
    want = [function(x) for x in kinds]
    errors = []

    def work(seed):
        order = np.random.default_rng(seed).integers(0, len(kinds), 200)
        for k in order:
            value, slope = function(kinds[k])
            if value != want[k][0] or not np.array_equal(slope, want[k][1]):
                errors.append(k)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors
