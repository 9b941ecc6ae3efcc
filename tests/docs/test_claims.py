"""docs/claims.md: each line has words of README.md and commands that are there."""

import re
from pathlib import Path

import pytest

from tests.docs.options_named import ROOT
from tests.ran import ran

README = (ROOT / "README.md").read_text()
ROW = re.compile(r"^\| (?!---|the README says)(.+?) \| (.+?) \| (.*?) ?\|$", re.MULTILINE)
CLAIMS = {row[0]: row[1] for row in ROW.findall((ROOT / "docs/claims.md").read_text())}
COMMANDS = [found for cell in CLAIMS.values() for found in re.findall(r"`([^`]+)`", cell)]


def plain(markdown: str) -> str:
    """Words alone, each one space apart."""
    words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", re.sub(r"```sh|[*`#]", "", markdown))
    return re.sub(r"\s+", " ", words)


@pytest.mark.parametrize("claim", CLAIMS)
def test_the_readme_says_so(claim: str) -> None:
    assert claim in plain(README)


def test_no_feature_is_left_out() -> None:
    features = README.split("## How do I see")[1].split("\nWhat it can't do:")[0]
    leads = re.findall(r"^(?:- )?\*\*(.+?)\.?\*\*", features, re.MULTILINE)
    assert len(leads) > 5
    assert [lead for lead in leads if plain(lead) not in CLAIMS] == []


@pytest.fixture(scope="session")
def build(library: Path) -> Path:
    return library.parent


@pytest.mark.parametrize("command", COMMANDS)
def test_the_command_is_there(command: str, build: Path) -> None:
    words = command.split()
    if words[0] == "make":
        assert re.search(rf"^{words[1]}:", (ROOT / "Makefile").read_text(), re.MULTILINE)
    elif words[:3] == ["ctest", "--preset", "release"]:
        which = [word.strip("'") for word in words[3:]]
        listed = ran("ctest", "--test-dir", build, "-N", *which)
        assert int(listed.stdout.rpartition("Total Tests: ")[2]) > 0
    else:
        assert words[0] == ".venv/bin/python"
        assert (ROOT / words[1]).is_file()
