"""Other programs open what `hakmem profile` writes, where they are installed: speedscope (npm
install --global speedscope), in Chromium; flamegraph.pl, or inferno's reader of its format (cargo
install inferno). test_formats.py has pprof."""

from __future__ import annotations

import base64
import json
import re
import shutil
from pathlib import Path

import pytest

from hakmem import heap_profile
from tests.profile import browser
from tests.profile.planted import KEPT, Planted, near
from tests.ran import ran
from tests.watch.watched import Command

WAIT = """
new Promise(done => {
  const there = () => document.body.innerText.includes(WORDS);
  const look = () => there() ? done(true) : setTimeout(look, 100);
  look();
})
"""


@pytest.fixture
def speedscope() -> Path:
    """Its page."""
    found = shutil.which("speedscope")
    if found is None or browser.found() is None:
        pytest.skip("needs speedscope and chromium")
    return Path(found).resolve().parents[1] / "dist/release/index.html"


@pytest.fixture
def flamegraph() -> str:
    found = shutil.which("flamegraph.pl") or shutil.which("inferno-flamegraph")
    if found is None:
        pytest.skip("needs flamegraph.pl or inferno-flamegraph")
    return found


def written(command: Command, path: Path, *words: str | Path) -> Path:
    done = command("profile", "-o", str(path), *map(str, words))
    assert done.returncode == 0, done.stderr
    return path


def opened(page: browser.Browser, index: Path, profile: Path, folder: Path) -> str:
    """What speedscope shows as text; it takes a file as its own command hands it over."""
    content = base64.b64encode(profile.read_bytes()).decode()
    script = folder / f"{profile.name}.js"
    script.write_text(f"speedscope.loadFileFromBase64({json.dumps(profile.name)}, '{content}')")
    page.open(index, 1200, 800, "light", f"localProfilePath={script}")
    page.run(WAIT.replace("WORDS", "'/6)'"))
    # The table of functions.
    page.run("window.dispatchEvent(new KeyboardEvent('keypress', {key: '3', bubbles: true}))")
    page.run(WAIT.replace("WORDS", "'Symbol Name'"))
    return str(page.run("document.body.innerText"))


def test_speedscope(command: Command, planted: Planted, speedscope: Path, tmp_path: Path) -> None:
    heap, other = planted.profile("profile_plant"), planted.profile("profile_plant_fixed")
    nothing = tmp_path / "nothing.heap"
    nothing.write_text(heap_profile_without_sites(heap))
    with browser.browser(tmp_path, "--enable-unsafe-swiftshader") as page:
        text = opened(
            page, speedscope, written(command, tmp_path / "a.speedscope.json", heap), tmp_path
        )
        assert "in use, bytes (1/6)" in text
        found = re.search(r"([\d.]+) MB \(\d+%\)\s+0 B .*\s+leak\n", text)
        assert found is not None and near(float(found[1]) * 2**20, KEPT), text
        for name, words in (("b", ("--diff", other, heap)), ("c", (nothing,))):
            file = written(command, tmp_path / f"{name}.speedscope.json", *words)
            assert "/6)" in opened(page, speedscope, file, tmp_path)


def heap_profile_without_sites(heap: Path) -> str:
    head, own, *rest = heap.read_text().split("\n")
    at = rest.index(heap_profile.MAPPED)
    return "\n".join((head, own, "# sites 0", "", *rest[at:]))


def test_speedscope_schema(command: Command, planted: Planted, tmp_path: Path) -> None:
    """As its authors publish it."""
    jsonschema = pytest.importorskip("jsonschema", reason="needs the Python module jsonschema")
    found = shutil.which("speedscope")
    if found is None:
        pytest.skip("needs speedscope")
    schema = Path(found).resolve().parents[1] / "dist/release/file-format-schema.json"
    path = written(command, tmp_path / "a.speedscope.json", planted.profile("profile_plant"))
    jsonschema.validate(json.loads(path.read_text()), json.loads(schema.read_text()))


def test_flamegraph(command: Command, planted: Planted, flamegraph: str, tmp_path: Path) -> None:
    heap, other = planted.profile("profile_plant"), planted.profile("profile_plant_fixed")
    for words in ((heap,), ("--diff", other, heap)):
        path = written(command, tmp_path / "a.collapsed", *words)
        done = ran(flamegraph, path)
        assert done.returncode == 0 and "leak_in_library (" in done.stdout, done.stderr
        assert "gnored" not in done.stderr
