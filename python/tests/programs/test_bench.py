"""The benchmark runs; its times are read by people."""

from npbench import compare, programs

from chainrule import bench


def test_a_hundred_shapes_are_one_compilation():
    ((name, seconds),) = bench.shapes()
    assert name == "100 shapes, 1 compilation" and seconds > 0


def test_times_are_shown_with_units():
    assert [bench.shown(t) for t in (2.0, 0.0031, 4.5e-6, 8e-8)] == ["2 s", "3.1 ms", "4.5 us", "80 ns"]
    rows = bench.first_gradient()
    assert rows[0][0] == "definition to first gradient" and 0 < rows[0][1] < 5


def test_times_are_taken_in_turn():
    order = []
    first, second = bench.in_turn([lambda: order.append(0), lambda: order.append(1)], rounds=2)
    assert first > 0 and second > 0 and order[0] == 0 and order[-1] == 1


def test_a_program_is_timed_beside_its_form_in_jax():
    p = next(p for p in programs() if p.name == "gemver")
    row = compare.Row(p, p.test)
    assert row.agrees and all(t > 0 for times in row.times for column in times for t in column)
    if compare.jax_form(p) is not None:
        assert row.lines == 4 and row.ratio(0) > 0 and row.ratio(1) > 0


def test_rows_of_the_table():
    lines = list(compare.table(bench.shown, ["spmv"]))
    assert [line.split()[0] for line in lines[1:3]] == ["program", "spmv"]
