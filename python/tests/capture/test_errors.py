"""What cannot be compiled, or does not fit: exceptions with file, line, column and remedy."""

import numpy as np
import pytest
import scipy.linalg

import chainrule as cr

V = np.arange(4.0)


def error(f, *args, kind=cr.CaptureError):
    with pytest.raises(kind) as caught:
        cr.function(f)(*args)
    return caught.value


def line_of(f, offset):
    return f.__code__.co_firstlineno + offset


def test_a_place_has_file_line_column_and_caret():
    def f(x):
        y = x + 1
        return np.fft.fft(y)

    e = error(f, V)
    assert (e.filename, e.lineno, e.offset) == (__file__, line_of(f, 2), 16)
    assert e.text.strip() == "return np.fft.fft(y)"
    lines = str(e).split("\n")
    assert lines[1] == f'  File "{__file__}", line {e.lineno}, column 16'
    assert lines[3].index("^") - lines[2].index("np") == 0 and lines[3].count("^") == len("np.fft.fft(y)")
    assert "`chainrule.supported()` lists all" in lines[-1]


def test_the_nearest_supported_call_is_named():
    assert "the nearest supported one is `np.cumsum`" in str(error(lambda x: np.nancumsum(x), V))


def unknown_name(x):
    return x + unheard_of  # noqa: F821


def a_set(x):
    return {x[0], x[1]}


def printing(x):
    print(x)
    return x


def appending(x):
    out = []
    for v in x:
        if v > 0:
            out.append(v)
    return out


def trying(x):
    try:
        return x
    except ValueError:
        return x


def writes_part_of_argument(x):
    y = x[1:]
    y[0] = 1.0
    return x


def stale_view(x):
    a = x.copy()
    b = a[1:]
    a[1] = 5.0
    return b


def helper_writes(a):
    a[0] = 1.0
    return a


def stale_view_of_the_caller(x):
    a = x.copy()
    b = a[1:]
    helper_writes(a)
    return b


def writes_while_it_is_used(x):
    a = x.copy()
    return a[1:] + helper_writes(a)[1:]


def writes_to_an_array_of_the_module(x):
    TABLE[0] = x[0]
    return TABLE


TABLE = np.ones(3)


def alias_of_a_side(x):
    a = x * 2
    b = a if x[0] > 5 else x * 3
    a[0] = 1.0
    return b.sum()


previous = 7.0


def before_it_is_assigned(x):
    s = 0.0
    for v in x:
        s += previous
        previous = v  # noqa: F841
    return s


def writes_what_it_iterates(x):
    a = x * 1
    for i, v in enumerate(a[:-1]):
        a[i + 1] += v
    return a


def stale_tuple(x):
    a = x * 2
    t = (a[1:], 1.0)
    a[0] = 5.0
    return t[0]


def one_side(x):
    if x[0] > 0:
        y = 1.0
    return y


def one_path(x):
    if x[0] > 0:
        return 1.0


def in_a_loop(x):
    for v in x[:0]:
        y = v
    return y


def size_of_a_loop_is_returned(x):
    for i in range(len(x)):
        if x[i] > 1:
            return x[: i + 1] * 2
    return x[:0]


def grows(x):
    s = 0.0
    for v in x:
        s = s + x
        if v > 2.0:
            break
    return s


def recursive(x):
    return x[0] if x[0] < 1 else recursive(x - 1)


def array_condition(x):
    if x > 0:
        return x
    return -x


def boolean_index(x):
    return x[x > 0]


def out_of_range(x):
    s = 0.0
    for i in range(len(x)):
        s += x[i + 1]
    return s


def returns_text(x):
    return "energy"


def int_array(x):
    k = np.zeros(3, dtype=int)
    k[0] = x[0]
    return k


def ragged(x):
    return sum(x[i:3] for i in range(3))


WRONG = [
    (ragged, 1, "the shapes of a loop's arrays are not known to be equal"),
    (unknown_name, 1, "name 'unheard_of' is not defined"),
    (a_set, 1, "a set cannot be compiled"),
    (printing, 1, "`print` cannot be compiled"),
    (appending, 4, "`.append` cannot be compiled here"),
    (trying, 1, "`try` cannot be compiled"),
    (writes_part_of_argument, 2, "`y` shares memory with the argument `x`, as a part of it"),
    (stale_view, 4, "`b` is a view of `a`, which was written to since"),
    (stale_view_of_the_caller, 4, "`b` is a view of `a`, which was written to since"),
    (writes_while_it_is_used, 2, "an array is used beside a call that writes to its memory"),
    (writes_to_an_array_of_the_module, 1, "`TABLE` shares memory with an array that is not an argument"),
    (alias_of_a_side, 4, "`b` is a view of `a`"),
    (before_it_is_assigned, 3, "`previous` is read before it is assigned"),
    (writes_what_it_iterates, 2, "`a` is written while it is iterated over"),
    (stale_tuple, 4, "`t` is a view of `a`"),
    (one_side, 3, "`y` is assigned on one side of an `if` only"),
    (one_path, 1, "the function returns here on one path only"),
    (in_a_loop, 3, "`y` is assigned in a loop that may take no steps"),
    (size_of_a_loop_is_returned, 1, "an array whose size is computed in a loop is returned from the loop"),
    (grows, 2, "`s` is a float before the loop and becomes an array of 1 dimension of float64"),
    (recursive, 1, "`recursive` calls itself, or calls nest more than"),
    (array_condition, 1, "an array is used as a condition"),
    (boolean_index, 1, "an array is indexed by truth values"),
    (out_of_range, 3, "index out of range"),
    (returns_text, 0, "the function returns a str"),
    (int_array, 2, "a float is written into an array of 1 dimension of int64"),
]


#: Calls with arguments that NumPy or this package refuses.
REFUSED = [
    (lambda x: np.pad(x, 1, "mean"), "`np.pad` with the mode 'mean'"),
    (lambda x: np.pad(x, -1), "index can't contain negative values"),
    (lambda x: np.pad(x, (1, 2, 3)), "`pad_width` has 3 numbers"),
    (lambda x: np.pad(x[:, None], ((1, 2), (1, 2), (3, 3))), "`pad_width` has 3 pairs for 2 axes"),
    (lambda x: np.pad(x, 1, "reflect", reflect_type="odd"), "unexpected keyword argument 'reflect_type'"),
    (lambda x: np.pad(x[:0], 1, "wrap"), "an axis without elements is extended by its elements"),
    (lambda x: np.convolve(x, x, "circular"), "a convolution of the mode 'circular'"),
    (lambda x: np.convolve(x[:, None], x), "`np.convolve` of an array of 2 dimensions"),
    (lambda x: np.correlate(x, x[:0]), "`np.correlate` of an array that has no elements"),
    (lambda x: np.gradient(x, 1.0, 2.0), "2 spacings for 1 axes"),
    (lambda x: np.gradient(x, edge_order=3), "'edge_order' greater than 2"),
    (lambda x: np.gradient(x[:1]), "too small to calculate a numerical gradient"),
    (lambda x: np.bincount(x.astype(int)), "the size of `np.bincount` depends on data"),
    (lambda x: np.bincount(x, minlength=4), "`np.bincount` of an array of 1 dimension of float64"),
    (lambda x: np.rot90(x[:, None], axes=(1, 1)), "an array is turned between two different axes"),
    (lambda x: np.moveaxis(x[:, None], (0, 1), (0,)), "must have the same number of elements"),
    (lambda x: np.moveaxis(x[:, None], (0, 0), (0, 1)), "an axis is named twice"),
    (lambda x: np.rollaxis(x[:, None], 0, 3), "axis 3 is out of bounds"),
    (lambda x: np.split(x[:3], 2), "array split does not result in an equal division"),
    (lambda x: np.vsplit(x, 2), "`np.vsplit` of an array of 1 dimension"),
    (lambda x: np.array_split(x, 0), "number sections must be larger than 0"),
    (lambda x: np.diagonal(x), "a diagonal of an array of 1 dimension"),
    (lambda x: np.take_along_axis(x, x, 0), "`np.take_along_axis` of an array of 1 dimension of float64 by an array of 1 dimension of float64"),
    (lambda x: np.nan_to_num(x, copy=False), "`np.nan_to_num` with `copy=False`"),
    (lambda x: np.nanmax(x[:0]), "`max` of an array that has no elements"),
    (lambda x: np.digitize(x, 1.0), "the bins of `np.digitize` are a float"),
    (lambda x: np.median(x > 1), "`np.median` of truth values"),
    (lambda x: np.quantile(x, 0.5, method="inverted_cdf"), "by the method 'inverted_cdf'"),
    (lambda x: np.quantile(x, x[3] / 2, method="hazen"), "lies outside of the array"),
    (lambda x: np.quantile(x, x[0] - 0.1, method="weibull"), "lies outside of the array"),
    (lambda x: np.quantile(x, x[3] / 2, method="nearest"), "lies outside of the array"),
    (lambda x: np.quantile(x, x[0] - 0.6, method="lower"), "lies outside of the array"),
    (lambda x: np.quantile(x, 1.5), "`np.quantile` of a part that is not between 0 and 1"),
    (lambda x: np.percentile(x, [-1, 50]), "`np.percentile` of a part that is not between 0 and 100"),
    (lambda x: np.quantile(x, x[3] / 2), "lies outside of the array"),
    (lambda x: np.quantile(x, x[0] - 0.5), "lies outside of the array"),
    (lambda x: np.rot90(x[:, None], 1.5), "the number of turns is 1.5"),
    (lambda x: np.split(x, 2.0), "the number of parts of `np.split` is 2.0"),
    (lambda x: np.array_split(x, x), "the number of parts of `np.array_split` is not known"),
    (lambda x: np.percentile(x[:0], 50), "`np.percentile` of an array that has no elements"),
    (lambda x: np.lib.stride_tricks.sliding_window_view(x, (2, 2)), "Must provide matching length window_shape and axis"),
    (lambda x: np.lib.stride_tricks.sliding_window_view(x[:2], 3), "window shape cannot be larger than input array shape"),
    (lambda x: scipy.linalg.solve(x[:, None] * x, x, assume_a="pos"), "unexpected keyword argument 'assume_a'"),
    (lambda x: np.ix_(x), "`np.ix_` of an array of 1 dimension of float64"),
    (lambda x: np.vander(x[:, None]), "`np.vander` of an array of 2 dimensions"),
    (lambda x: x[np.triu_indices(x.astype(int)[0])], "an argument of `np.triu_indices` is not known"),
    (lambda x: np.linalg.multi_dot([x]), "Expecting at least two arrays"),
    (lambda x: np.around(x.astype(int), -1), "an array of 1 dimension of int64 is rounded to -1 decimals"),
    (lambda x: np.block([[x], x]), "the lists of `np.block` have different depths"),
    (lambda x: np.cumulative_sum(x[:, None]), "``axis`` argument is required"),
    (lambda x: scipy.linalg.solve_triangular(x[:, None] * x, x, trans=3), "a system is solved with `trans=3`"),
    (lambda x: scipy.linalg.cho_solve(x, x), "takes a factor and whether it is lower"),
    (lambda x, k=0: np.array([x[i + j] for i in range(2) for j in range(x.astype(int)[i])]), "the size of"),
]


@pytest.mark.parametrize("f, words", REFUSED, ids=range(len(REFUSED)))
def test_calls_with_arguments_that_are_refused(f, words):
    e = error(f, V, kind=cr.Error)
    assert words in str(e) and e.filename == __file__, str(e)


@pytest.mark.parametrize("f, line, words", WRONG, ids=[f.__name__ for f, *_ in WRONG])
def test_mistakes_are_told_at_their_line(f, line, words):
    e = error(f, V)
    assert words in str(e), str(e)
    assert (e.filename, e.lineno) == (__file__, line_of(f, line)), str(e)


def test_shapes_that_do_not_agree():
    f = cr.function(lambda x, y: x + y)
    f(V, V)
    e = error(lambda x, y: np.sum(x * y), V, np.arange(3.0), kind=cr.ShapeError)
    assert e.filename == __file__ and "3" in str(e) and "4" in str(e)
    with pytest.raises(cr.ShapeError):
        f(V, np.arange(5.0))
    with pytest.raises(cr.ShapeError):
        f(np.arange(5.0), V)
    e = error(lambda x: x @ np.ones((3, 2)), np.ones((2, 4)), kind=cr.ShapeError)
    assert "must be 0" in str(e) and e.text.strip().startswith("e = error(")
    e = error(lambda x: np.zeros((2, 3)) + np.zeros((2, 4)), V)
    assert "shapes do not agree" in str(e)


def test_an_index_from_data_out_of_range():
    f = cr.function(lambda x, k: x[k])
    assert f(V, np.array([3, 0])).tolist() == [3.0, 0.0]
    with pytest.raises(cr.Error, match="lies outside of the array"):
        f(V, np.array([4]))


@pytest.mark.parametrize("value, words", [
    (np.array([1j]), "dtype complex128"), (np.array(["a"]), "dtype <U1"), (np.array([None]), "dtype object"),
    (np.ma.array([1.0], mask=[True]), "masked array"), (np.matrix([[1.0]]), "np.matrix"), ({1}, "is a set"),
    ([[1.0], [1.0, 2.0]], "ragged"), (2**70, "does not fit into 64 bits"),
])
def test_arguments_of_other_types(value, words):
    with pytest.raises(cr.TypeError_, match=words):
        cr.function(lambda x: np.sum(x))(value)


def test_arrays_of_other_dtypes_and_layouts_are_taken():
    f = cr.function(lambda x: np.sum(x * 2))
    big = np.arange(4000.0).reshape(2, 2000)
    with pytest.warns(cr.ConversionWarning, match="`x` is copied at each call"):
        assert f(big.T) == f(big)
    for made in (V.astype(np.float32), V[::-1], V.astype(">f8"), [0.0, 1.0, 2.0, 3.0], V.astype(np.int32)):
        assert f(made) == 12
    read_only = V.copy()
    read_only.flags.writeable = False
    assert f(read_only) == 12
    assert f(np.float64(3)) == 6 and f(np.array(3.0)) == 6


def test_out_is_written_or_refused():
    f = cr.function(lambda x: x * 2)
    out = np.zeros(4)
    assert f(V, out=out) is out and out.tolist() == [0, 2, 4, 6]
    gradient, slope = cr.gradient(lambda x: np.sum(x ** 2)), np.zeros(4)
    gradient(V, out=slope)
    assert slope.tolist() == [0, 2, 4, 6]
    for bad in (np.zeros(3), np.zeros(4, dtype=int), np.zeros(8)[::2], V):
        with pytest.raises((cr.ShapeError, cr.TypeError_)):
            f(V, out=bad)


def test_nothing_is_differentiated_by_what_has_no_numbers():
    with pytest.raises(cr.TypeError_, match="without numbers"):
        cr.gradient(lambda name, x: x, 0)("a", 1.0)
    with pytest.raises(cr.Error, match="has no argument `z`"):
        cr.gradient(lambda x: x, "z")
    with pytest.raises(cr.Error, match="result of type Double"):
        cr.gradient(lambda x: x * 2)(V)


def test_source_that_is_not_there():
    made = eval("lambda x: x")
    with pytest.raises(cr.CaptureError, match="the source of `<lambda>` is not there"):
        cr.function(made)(1.0)
