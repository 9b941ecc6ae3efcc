"""The page in Chromium: what it shows, by mouse and by keys, in a wide and in a narrow window."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from hakmem import profile_difference, profile_html, symbols
from hakmem.symbols import Frame, Line, Named, Stack
from tests.nightly import points
from tests.profile.browser import Browser
from tests.profile.planted import Planted, named

SIZES = [(1280, 900), (400, 800)]
# Each width and each scheme once.
WINDOWS = points(
    itertools.product(SIZES, ["dark", "light"]),
    lambda size, scheme: (size == SIZES[0]) == (scheme == "light"),
)
FRAMES = "flame.boxes"
ACTIVE = "document.activeElement"
TEXT = f"{ACTIVE} === at('flame') ? label(current) : {ACTIVE}.textContent"

# The lowest ratio of contrast between letters and what is behind them, as WCAG defines it.
CONTRAST = """
(() => {
  const light = color => {
    const [r, g, b] = color.match(/[\\d.]+/g).map(part => part / 255)
      .map(part => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ratio = one => {
    const style = getComputedStyle(one);
    const [a, b] = [light(style.color), light(style.backgroundColor)];
    return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  };
  const one = document.body.appendChild(document.createElement('p'));
  one.style.color = 'var(--text)';
  const boxes = flame.boxes.filter(box => box.node.lines.length).map(box => {
    one.style.backgroundColor = color(box.node, 'var(--light)');
    return ratio(one);
  });
  one.remove();
  const buttons = document.querySelectorAll('#controls button:enabled');
  return Math.min(...boxes, ...[...buttons].map(ratio));
})()
"""


def deep() -> Named:
    """Stacks of a thousand functions with long names, and one with nothing in use."""
    stacks = []
    for which in range(3):
        name = f"std::map<std::string, {'std::vector<int>, ' * 30}int>::operator[](int const&)"
        frames = tuple(
            Frame(n, None, n, (Line(f"{name}::{n}_{which if n < 990 else 0}", "f.cc", n),))
            for n in range(1000)
        )
        figures = (3.0, 3000.0, 6.0, 6000.0, 3.0, 3000.0) if which else (0.0, 0.0, 9.0, 9e3, 0, 0)
        stacks.append(Stack(frames, figures, figures))
    return Named(1, tuple(stacks), {})


@pytest.fixture(scope="module")
def pages(planted: Planted, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    plant = named(planted.profile("profile_plant"))
    empty = Named(1, (), {})
    made = {
        "plant": plant,
        "difference": profile_difference.difference(
            Named(1, plant.stacks[1:], {}), Named(1, plant.stacks[:1], {})
        ),
        "empty": empty,
        "same": profile_difference.difference(empty, empty),
        "deep": deep(),
    }
    folder = tmp_path_factory.mktemp("pages")
    for name, profile in made.items():
        (folder / f"{name}.html").write_text(profile_html.page(profile, name))
    return {name: folder / f"{name}.html" for name in made}


def frame(name: str) -> str:
    return f"{FRAMES}.find(one => label(one) === {name!r})"


def middle(name: str) -> str:
    """Of a frame that is in the window then."""
    return f"""(() => {{
        const box = {frame(name)}, part = at('flame');
        part.scrollIntoView({{block: 'nearest'}});
        part.scrollTop = box.depth * ROW - 100;
        const edge = part.getBoundingClientRect();
        return [edge.left + part.clientLeft + (box.x + box.width / 2) * part.clientWidth,
            edge.top + part.clientTop + (box.depth + 0.5) * ROW - part.scrollTop];
    }})()"""


def widths(page: Browser) -> Any:
    return page.run(f"{FRAMES}.map(one => one.width)")


@pytest.mark.parametrize(("size", "scheme"), WINDOWS)
@pytest.mark.parametrize("name", ["plant", "difference", "empty", "same", "deep"])
def test_drawn(
    shown: Browser, pages: dict[str, Path], name: str, size: tuple[int, int], scheme: str
) -> None:
    shown.open(pages[name], *size, scheme)
    assert shown.complaints == []
    many = {"plant": 5, "difference": 5, "deep": 1000}.get(name, 1)
    assert shown.run(f"{FRAMES}.length") >= many
    dark = shown.run("getComputedStyle(document.body).backgroundColor") == "rgb(20, 23, 27)"
    assert dark == (scheme == "dark")
    assert shown.run(CONTRAST) >= 4.5
    assert shown.run("document.documentElement.scrollWidth <= innerWidth"), "cut off on the right"
    cut = "[...document.querySelectorAll('th, td')].filter(one => one.scrollWidth > innerWidth)"
    assert shown.run(f"{cut}.length") == 0
    if many == 1:
        assert shown.run("document.getElementById('more').textContent")


@pytest.mark.parametrize(("size", "scheme"), WINDOWS)
def test_mouse(shown: Browser, pages: dict[str, Path], size: tuple[int, int], scheme: str) -> None:
    shown.open(pages["plant"], *size, scheme)
    whole = widths(shown)
    shown.drag(middle("leak_in_library"))
    assert all(width == 1 for width in widths(shown)), "zoomed"
    assert "leak_in_library" in shown.run("document.getElementById('detail').textContent")
    shown.click("document.getElementById('all')")
    assert widths(shown) == whole
    shown.click("document.querySelectorAll('#kinds button')[1]")
    assert shown.run(f"!!{frame('pass')}"), "what is allocated"
    shown.click("document.querySelector('#kinds button')")
    assert not shown.run(f"!!{frame('pass')}")
    shown.click("document.getElementById('search')")
    shown.write("leak_in_lib")
    found = shown.run(f"{FRAMES}.filter(one => one.found).map(one => label(one))")
    assert found == ["leak_in_library"]
    assert shown.run("document.querySelectorAll('#rows tr').length") == 1
    shown.click("document.querySelector('#rows .name')")
    around = shown.run("document.getElementById('around').innerText")
    assert "Callers of leak_in_library" in around and "main" in around
    shown.click("document.querySelectorAll('#views button')[1]")
    assert shown.run("document.querySelectorAll('#rows tr').length") == 1
    shown.click("document.querySelector('summary')")
    assert shown.run("document.querySelector('details').innerText.includes('main')")
    assert shown.complaints == []


def test_keys(shown: Browser, pages: dict[str, Path]) -> None:
    """All frames are one stop of the Tab key; the arrow keys go from one to another."""
    shown.open(pages["plant"], *SIZES[0], "light")
    whole = widths(shown)
    shown.click("document.getElementById('search')")
    shown.key("Tab")
    assert shown.run(TEXT) == "all stacks"
    for _ in range(20):
        shown.key("ArrowDown")
    inner = shown.run(TEXT)
    shown.key("ArrowUp")
    outer = shown.run(TEXT)
    assert inner != outer
    for _ in range(20):
        if shown.run(TEXT) != "main":
            shown.key("ArrowUp")
    shown.key("ArrowDown")
    first = shown.run(TEXT)
    shown.key("ArrowRight")
    second = shown.run(TEXT)
    assert first != second
    shown.key("ArrowLeft")
    assert shown.run(TEXT) == first
    shown.key("Enter")
    assert shown.run(TEXT) == first and widths(shown) != whole
    shown.key("Escape")
    assert shown.run(TEXT) == "all stacks" and widths(shown) == whole
    shown.key("Tab")
    assert shown.run(TEXT) == "functions"
    assert shown.complaints == []


def test_wrappers(shown: Browser, tmp_path: Path) -> None:
    """They name no row, and are in the stack."""
    names = ["xmalloc", "read_line", "xmalloc", "main"]
    lines = [Line(name, is_wrapper=name == "xmalloc") for name in names]
    frames = tuple(Frame(n, None, n, (line,)) for n, line in enumerate(lines))
    page = tmp_path / "page.html"
    stack = Stack(frames, (1, 1000, 1, 1000, 1, 1000), (0,) * 6)
    page.write_text(profile_html.page(Named(1, (stack,), {}), "wrapped"))
    shown.open(page, *SIZES[0], "light")
    self = "functions().map(one => [name(one.line), one.self[1]])"
    assert dict(shown.run(self)) == {"xmalloc": 0, "read_line": 1000, "main": 0}
    shown.click("document.querySelectorAll('#views button')[1]")
    assert shown.run("document.querySelector('summary').textContent").strip() == "read_line"
    shown.click("document.querySelector('summary')")
    words = shown.run("document.querySelector('details').innerText").split()
    assert words == ["read_line", *names]


def test_several(shown: Browser, planted: Planted, tmp_path: Path) -> None:
    """Each profile can be switched off."""
    plants = [named(planted.profile(name)) for name in ("profile_plant", "profile_plant_fixed")]
    page = tmp_path / "page.html"
    parts = [(f"part {n}", one) for n, one in enumerate(plants)]
    page.write_text(profile_html.page(symbols.merged(plants), "both", parts))
    shown.open(page, *SIZES[0], "light")
    used = "sum(profile.stacks, 1)"
    sums = [sum(round(stack.figures[1]) for stack in one.stacks) for one in plants]
    assert shown.run(used) == sum(sums)
    shown.click("document.querySelectorAll('#processes input')[0]")
    assert shown.run(used) == shown.run("flame.boxes[0].node.sum") == sums[1]
    shown.click("document.querySelectorAll('#processes input')[1]")
    assert shown.run(used) == sums[1], "one stays on"
    assert shown.complaints == []


def test_nothing_in_use(shown: Browser, pages: dict[str, Path], tmp_path: Path) -> None:
    """A program that frees all at its end: the page opens with the peak, and says so."""
    (stack, *_) = deep().stacks[1:]
    gone = Stack(stack.frames, (0, 0, *stack.figures[2:]), stack.errors)
    page = tmp_path / "page.html"
    page.write_text(profile_html.page(Named(1, (gone,), {}), "gone"))
    shown.open(page, *SIZES[0], "light")
    pressed = "document.querySelector('#kinds [aria-pressed=true]').textContent"
    assert shown.run(pressed) == "peak" and shown.run(f"{FRAMES}.length") > 1000
    assert "Nothing is in use" in shown.run("document.getElementById('notes').textContent")
    shown.click("document.querySelector('#kinds button')")
    assert shown.run("document.getElementById('more').textContent") == "Nothing is in use."
