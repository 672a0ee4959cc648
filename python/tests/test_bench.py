"""The benchmark runs; its times are read by people."""

from chainrule import bench


def test_a_hundred_shapes_are_one_compilation():
    ((name, seconds),) = bench.shapes()
    assert name == "100 shapes, 1 compilation" and seconds > 0


def test_times_are_shown_with_units():
    assert [bench.shown(t) for t in (2.0, 0.0031, 4.5e-6, 8e-8)] == ["2 s", "3.1 ms", "4.5 us", "80 ns"]
    rows = bench.first_gradient()
    assert rows[0][0] == "definition to first gradient" and 0 < rows[0][1] < 5
