"""No page and no message has a reader install hakmem by name from a registry of packages: the
project publishes on none, so a registry has nothing by that name, or something else. A file of a
release, a folder or a repository is named instead."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.options_named import ROOT, tracked

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
CRATE = tomllib.loads((ROOT / "bindings/rust/Cargo.toml").read_text())
EXTRAS = "|".join(PROJECT["optional-dependencies"])

# In Cargo.toml, in a shell, and as an address.
BY_VERSION = re.compile(r'\bhakmem[\w-]* = (?:"[\d^~=<>*]|\{ *version\b)')
INSTALLER = re.compile(
    r"\b(?:(?:pip3?|pipx|uv tool|uv pip|cargo|apt|apt-get) (?:install|wheel|download)"
    r"|(?:cargo|uv) add)\b"
    r"(?P<words>[^\n;|&`]*)"
)
NAME = re.compile(r"(?:lib)?hakmem[a-z0-9-]*(?:\[[\w,]*\])?(?:[=<>~@]+.*)?")
EXTRA = re.compile(rf"(?<![\w/.*-])hakmem\[(?:{EXTRAS})[\],]")
ADDRESS = re.compile(r"(?:docs\.rs|crates\.io/crates|pypi\.org/project)/hakmem")


def of_a_registry(text: str) -> Iterator[str]:
    """What a registry would answer."""
    for pattern in (BY_VERSION, EXTRA, ADDRESS):
        yield from (found[0] for found in pattern.finditer(text))
    for line in INSTALLER.finditer(text):
        words = re.split(r"[\s'\"]+", line["words"])
        if "--no-index" not in words and any(NAME.fullmatch(word) for word in words):
            yield line[0]


@pytest.mark.parametrize(
    "text",
    [
        'hakmem = "0.1"',
        'hakmem-malloc = { version = "0.1" }',
        "run `cargo add hakmem`",
        "cargo install --locked hakmem-malloc",
        "pip install hakmem",
        "env/bin/pip install -q 'hakmem[bench]'",
        "python3 -m pip install hakmem==0.1.0",
        "or 'pip install hakmem[bench]'",
        "pip: `hakmem[record]`",
        "sudo apt-get install -y gcc libhakmem0",
        "https://docs.rs/hakmem",
    ],
)
def test_finds(text: str) -> None:
    assert list(of_a_registry(text))


@pytest.mark.parametrize(
    "text",
    [
        'hakmem-malloc = { path = "hakmem-malloc-0.1.0" }',
        'hakmem-malloc = { git = "https://example.org/hakmem" }',
        "pip install .",
        "pip install '.[bench]'",
        "pip install './hakmem-0.1.0-py3-none-linux_x86_64.whl[prometheus]'",
        "pip install --no-index --find-links /tmp/dist hakmem",
        "pip uninstall hakmem",
        "sudo apt-get install ./build/deb/hakmem_*.deb",
        'name = "hakmem"',
    ],
)
def test_lets_pass(text: str) -> None:
    assert list(of_a_registry(text)) == []


def texts() -> Iterator[Path]:
    """What users read or are shown: everything but the tests."""
    for file in tracked():
        if file.relative_to(ROOT).parts[0] != "tests" and not file.is_symlink():
            yield file


def test_no_page_and_no_message() -> None:
    found, seen = [], 0
    for file in texts():
        try:
            text = file.read_text()
        except UnicodeDecodeError:
            continue
        seen += 1
        found += [f"{file.relative_to(ROOT)}: {words}" for words in of_a_registry(text)]
    assert found == []
    assert seen > 500


def test_the_crate_has_another_name_than_the_one_that_is_taken() -> None:
    assert CRATE["package"]["name"] != "hakmem"
    assert CRATE["lib"]["name"] == CRATE["package"]["links"] == "hakmem"
