"""The Python of the guide and of the README runs, and the guide's table of calls is that of the package."""

import linecache
import os
import pathlib
import re
import textwrap

import pytest
from picture import svg

import chainrule as cr

ROOT = pathlib.Path(__file__).parents[3]
#: Pages whose blocks stand by themselves, each for the packages that it imports.
ADAPTERS = ROOT / "docs/guide/python/adapters.md"
#: Pages of the guide with a picture of their `curves`.
MODELS = sorted(page for page in ADAPTERS.parent.glob("*.md") if page != ADAPTERS)
PAGES = [ROOT / "docs/guide/python.md", ROOT / "README.md", *MODELS]


def blocks(page):
    """The Python blocks of a page, each with the line where it starts."""
    text = page.read_text()
    return [(text[: found.start(1)].count("\n"), found.group(1)) for found in re.finditer(r"^```python\n(.*?)^```", text, re.M | re.S)]


def run(page, line, code, names):
    # Captured functions are read from their file: here the page with everything but the block left out.
    name = f"<{page.name}:{line}>"
    source = "\n" * line + code
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    exec(compile(source, name, "exec"), names)


@pytest.mark.parametrize("line, code", blocks(ADAPTERS), ids=[str(line) for line, _ in blocks(ADAPTERS)])
def test_adapters_run(line, code):
    for package in re.findall(r"^import (\w+)", code, re.M):
        pytest.importorskip(package, reason=f"{package} is not installed")
    run(ADAPTERS, line, code, {"__name__": "__main__"})


@pytest.mark.parametrize("page", PAGES, ids=[page.name for page in PAGES])
def test_blocks_run(page):
    found, names = blocks(page), {}
    assert found
    for line, code in found:
        run(page, line, code, names)
    if page in MODELS:
        picture = page.parent / "pictures" / f"{page.stem}.svg"
        if os.environ.get("UPDATE_GUIDE"):
            picture.write_text(svg(names["curves"]))
        assert f"(pictures/{picture.name})" in page.read_text()
        assert all(name in picture.read_text() for name in names["curves"])


def test_the_table_of_calls_is_that_of_the_package():
    page = PAGES[0]
    table = textwrap.fill(" ".join(f"`{name}`" for name in cr.supported()), 120, break_on_hyphens=False)
    text = page.read_text()
    made = re.sub(r"<!-- supported -->.*?<!-- end -->", lambda _: f"<!-- supported -->\n{table}\n<!-- end -->", text, flags=re.S)
    if os.environ.get("UPDATE_GUIDE"):
        page.write_text(made)
    assert made == text or os.environ.get("UPDATE_GUIDE"), "run with UPDATE_GUIDE=1"
