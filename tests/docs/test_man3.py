"""The manual pages of hakmem.h: each function has a page, names and prototypes agree with the
header, the examples run, and the formatter of manual pages reports no error."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from tests.docs.man3 import Header, Page, pages
from tests.ran import ran

ROOT = Path(__file__).parents[2]
MAN = ROOT / "share/man"
HEADER = Header(ROOT / "include/hakmem/hakmem.h")
ALL = pages(MAN / "man3")
PAGES = [page for page in ALL if page.target is None]
OF_FUNCTIONS = [page for page in PAGES if page.name != "hakmem"]
SECTIONS = [
    *("NAME", "LIBRARY", "SYNOPSIS", "DESCRIPTION", "RETURN VALUE", "ERRORS", "ATTRIBUTES"),
    *("VERSIONS", "STANDARDS", "NOTES", "EXAMPLES", "SEE ALSO"),
]
OPTIONAL = {"NOTES", "EXAMPLES"}
# Names in italics that are no parameter or member.
OTHER_NAMES = {"errno", "sizeof", "void", "struct"}
SECONDS = 120


def each(found: list[Page]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("page", found, ids=lambda page: page.name)


def test_each_function_has_a_page() -> None:
    declared = {function.name for function in HEADER.functions}
    assert len(declared) > 20
    assert {page.name for page in ALL} == declared | {"hakmem"}
    assert Counter(f.prototype for page in PAGES for f in page.functions) == Counter(
        function.prototype for function in HEADER.functions
    )


def test_each_macro_has_a_page() -> None:
    synopses = "\n".join(page.synopsis for page in PAGES)
    assert len(HEADER.macros) == 7
    assert {name for name in HEADER.macros if f"#define {name} " not in synopses} == set()


def test_the_overview_names_all() -> None:
    overview = next(page for page in PAGES if page.name == "hakmem")
    missing = [f.name for f in HEADER.functions if f".BR {f.name} ()" not in overview.source]
    assert missing == []


@each([page for page in ALL if page.target is not None])
def test_other_names_lead_to_their_page(page: Page) -> None:
    target = next(other for other in PAGES if other.name == page.target)
    assert page.name in target.names


@each(OF_FUNCTIONS)
def test_names_are_those_of_the_header(page: Page) -> None:
    assert page.names == [page.name, *(name for name in page.names if name != page.name)]
    assert set(page.names) == {function.name for function in page.functions}
    parameters = {name for function in page.functions for name in function.parameters}
    members = {name for found in page.structs.values() for name in found}
    said = set(page.in_italics())
    assert parameters - said == set(), "parameters that are not explained"
    tags = set(HEADER.structs) | {tag.removeprefix("hakmem_") for tag in HEADER.structs}
    unknown = said - parameters - members - tags - OTHER_NAMES - set(page.names)
    assert unknown == set(), "names that are no parameters"


def test_structures_are_those_of_the_header() -> None:
    shown = {name: members for page in PAGES for name, members in page.structs.items()}
    for name, members in HEADER.structs.items():
        # That of mallinfo differs in the type alone, and its page says so.
        assert shown[name if name in shown else f"{name}2"] == members
    for page in PAGES:
        for members in page.structs.values():
            assert page.terms == members


@each(OF_FUNCTIONS)
def test_sections(page: Page) -> None:
    assert list(page.sections) == [title for title in SECTIONS if title in page.sections]
    assert set(SECTIONS) - set(page.sections) <= OPTIONAL
    assert "Thread safety\nMT\\-Safe\n" in page.sections["ATTRIBUTES"]


@each(PAGES)
def test_other_pages_exist(page: Page) -> None:
    references = page.references()
    assert references
    ours = [(name, section) for name, section in references if name.startswith("hakmem")]
    missing = [ref for ref in ours if not (MAN / f"man{ref[1]}" / f"{ref[0]}.{ref[1]}").exists()]
    assert missing == []


FORMATTERS = {
    "groff": ["groff", "-man", "-ww", "-Tutf8", "-Z"],
    "mandoc": ["mandoc", "-T", "lint", "-W", "warning"],
    "man": ["man", "--warnings", "-E", "UTF-8", "-Tutf8", "-Z", "-l"],
}


@pytest.mark.parametrize("formatter", FORMATTERS)
@pytest.mark.parametrize("section", ["man1", "man3"])
def test_no_warnings(section: str, formatter: str) -> None:
    if shutil.which(formatter) is None:
        pytest.skip(f"{formatter} is not installed")
    found = sorted((MAN / section).iterdir())
    # A link is a page of its own to man alone.
    if formatter == "mandoc":
        found = [path for path in found if not path.read_text().startswith(".so ")]
    for path in found:
        done = ran(
            *FORMATTERS[formatter],
            str(path),
            cwd=MAN,
            env=os.environ | {"MANROFFSEQ": "", "MANWIDTH": "80", "LC_ALL": "C.UTF-8"},
        )
        said = done.stderr + (done.stdout if formatter == "mandoc" else "")
        assert (done.returncode, said) == (0, ""), path.name


@each([page for page in PAGES if page.programs])
def test_examples_run(page: Page, library: Path, tmp_path: Path) -> None:
    for text in page.programs:
        (tmp_path / "example.c").write_text(text)
        compiler = ["cc", "-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-O1"]
        to = tmp_path / "example"
        subprocess.run(
            [*compiler, f"-I{ROOT / 'include'}", "-o", to, tmp_path / "example.c", library],
            check=True,
            timeout=SECONDS,
        )
        environment = os.environ | {"LD_LIBRARY_PATH": str(library.parent)}
        lines = b"a line\n" * 10_000
        subprocess.run([to], input=lines, env=environment, check=True, timeout=SECONDS)
