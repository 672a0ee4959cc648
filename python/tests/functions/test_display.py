"""Tables, formulas, pictures and reports."""

import xml.etree.ElementTree as tree

import numpy as np
import pytest

import chainrule as cr


@cr.function
def energy(x, k=1.0):
    """A chain of springs."""
    return 0.5 * k * np.sum((x[1:] - x[:-1]) ** 2)


def test_tables():
    f = cr.function(lambda x, k=1.0: k * np.sum(x))
    assert "not called yet" in f._repr_html_()
    f(np.ones((3, 1)))
    page = f._repr_html_()
    assert "float64[3, 1]" in page and "k: float64" in page
    f(np.ones((9, 1)))
    assert "float64[:, 1]" in f._repr_html_()
    assert "A chain of springs" in energy._repr_html_()
    assert "gradient" in cr.gradient(f)._repr_html_()


@pytest.mark.parametrize("f, text", [
    (lambda x, k: 0.5 * k * x ** 2, r"f(x, k) = 0.5 \, k \, x^{2}"),
    (lambda x, y: (x + y) * (x - (y - 1)), r"\left(x + y\right) \, \left(x - \left(y - 1\right)\right)"),
    (lambda x: np.exp(-x / 2) + np.sqrt(x), r"\exp\left(\frac{-x}{2}\right) + \sqrt{x}"),
    (lambda x_0, alpha: x_0 ** (alpha + 1), r"x_{\mathrm{0}}^{\mathrm{alpha} + 1}"),
    (lambda x: (x + 1) ** 2, r"\left(x + 1\right)^{2}"),
    (lambda x, i: np.sum(x * 2) + x[i, 0], r"\sum x \, 2 + x_{i, 0}"),
    (lambda x: np.hypot(x, 2.0), r"\operatorname{hypot}\left(x, 2.0\right)"),
])
def test_formulas(f, text):
    assert text in cr.function(f)._repr_latex_()


def test_functions_without_a_formula():
    @cr.function
    def loop(x):
        for _ in range(3):
            x = x * x
        return x

    assert loop._repr_latex_() is None
    assert cr.function(lambda x: [k for k in x])._repr_latex_() is None


def test_pictures(tmp_path):
    hessian = cr.sparse_hessian(energy)
    assert hessian._repr_svg_() is None
    picture = hessian.picture(np.arange(5.0))
    root = tree.fromstring(picture.svg)
    squares = root.find("{http://www.w3.org/2000/svg}path").get("d")
    assert squares.count("M") == 13 and "5 x 5, 13 entries" in picture.svg
    assert hessian._repr_svg_() == picture._repr_svg_()
    assert hessian.picture(np.arange(3000.0)).svg.count("M") < 2000
    picture.save(tmp_path / "h.svg")
    assert (tmp_path / "h.svg").read_text() == picture.svg
    f = cr.function(lambda x: x * np.sin(x) + x).unroll()
    drawn = f.graph(1.5)
    names = [text.text for text in tree.fromstring(drawn.svg).iter("{http://www.w3.org/2000/svg}text")]
    assert "sin" in " ".join(names) and len(names) >= 4
    with pytest.raises(cr.Error, match="keeps its loops"):
        energy.graph(np.arange(3.0))
    with pytest.raises(cr.Error, match="drawn at most"):
        energy.unroll().graph(np.arange(300.0))


def test_reports(tmp_path):
    path = tmp_path / "out.html"
    with pytest.raises(cr.Error, match="not called yet"):
        cr.function(lambda x: x).report(path)
    energy.report(path, np.arange(4.0))
    page = path.read_text()
    for words in ("def energy", "A chain of springs", "n_x = 4", "mul", "double", "let energy"):
        assert words in page
    cr.gradient(energy.unroll()).report(path, np.arange(3.0))
    assert "<svg" in path.read_text() and "straight-line code" in path.read_text()
