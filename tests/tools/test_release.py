"""A version and its date stand in many files; one command writes them all."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from tools import release

ROOT = Path(__file__).parents[2]


def test_every_place_gets_it() -> None:
    texts = release.written(ROOT, "7.8.9", date(2031, 2, 3))
    for name in release.PLACES:
        assert texts[name].count("7.8.9") == 1
        assert texts[name].replace("7.8.9", "") != texts[name]
    assert "HAKMEM_VERSION_MAJOR 7\n#define HAKMEM_VERSION_MINOR 8\n" in texts[release.HEADER]
    assert "HAKMEM_VERSION_PATCH 9\n" in texts[release.HEADER]
    assert "## Unreleased\n\n## 7.8.9 - 2031-02-03\n" in texts[release.CHANGES]
    debian = texts[release.DEBIAN]
    assert debian.startswith("hakmem (7.8.9) unstable; urgency=medium\n")
    assert "Mon, 03 Feb 2031 12:00:00 +0000" in debian.split("hakmem (", 2)[1]
    assert debian.endswith((ROOT / release.DEBIAN).read_text())


def test_a_version_that_has_an_entry_gets_its_day() -> None:
    debian = (ROOT / release.DEBIAN).read_text()
    version = debian.split("(")[1].split(")")[0]
    text = release.written(ROOT, version, date(2031, 2, 3))[release.DEBIAN]
    assert text.count("hakmem (") == debian.count("hakmem (")
    assert "Mon, 03 Feb 2031" in text


def test_a_file_that_is_not_as_expected(tmp_path: Path) -> None:
    for name in (*release.PLACES, release.HEADER, release.DEBIAN, release.CHANGES):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text((ROOT / name).read_text())
    (tmp_path / release.CHANGES).write_text("# Changes\n")
    with pytest.raises(SystemExit, match=r"CHANGELOG.md: .* is there 0 times"):
        release.written(tmp_path, "7.8.9", date(2031, 2, 3))
