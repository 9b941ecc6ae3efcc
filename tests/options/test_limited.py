"""Limits of the heap that options set, and the report when there is no memory."""

import re
from pathlib import Path

import pytest

from tests.ran import clean_environment, ran

NO_MEMORY = re.compile(
    r"hakmem: no memory for a block of (\d+) bytes\. Of the heap, bytes in use (\d+), "
    r"free and kept (\d+), hard_limit_bytes (\d+)"
)


def run(limited: Path, size: int, times: int, *limit: str, **options: str) -> tuple[list[str], str]:
    done = ran(*limit, str(limited), str(size), str(times), env=clean_environment() | options)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines(), done.stderr


@pytest.mark.parametrize("size", [100, 10000, 1 << 20, 5 << 20])
def test_a_hard_limit_holds_again_and_again(size: int, limited: Path) -> None:
    lines, errors = run(limited, size, 3, HAKMEM_HARD_LIMIT_BYTES="64M")
    assert errors == ""
    assert len(lines) == 3
    for line in lines:
        mib, error = line.split()
        assert 48 <= int(mib) <= 64 and error == "ENOMEM"


def test_without_a_limit_nothing_fails(limited: Path) -> None:
    assert run(limited, 10000, 1) == (["256 none"], "")
    assert run(limited, 10000, 1, HAKMEM_SOFT_LIMIT_BYTES="16M") == (["256 none"], "")


def test_the_report_comes_once_a_minute(limited: Path) -> None:
    options = {"HAKMEM_HARD_LIMIT_BYTES": "64M", "HAKMEM_SOFT_LIMIT_BYTES": "32M"}
    lines, report = run(limited, 10000, 3, HAKMEM_REPORT_NO_MEMORY="on", **options)
    assert [line.split()[1] for line in lines] == ["ENOMEM"] * 3
    found = NO_MEMORY.findall(report)
    assert len(found) == 1
    size, used, kept, limit = map(int, found[0])
    assert size == 10000 and limit == 64 << 20
    assert 48 << 20 <= used + kept <= limit and kept == 0
    assert ", soft_limit_bytes 33554432" in report
    if "can't read itself" not in report:
        assert "size classes with the most memory in use" in report
        assert re.search(r"^ +10240 +\d+", report, re.MULTILINE)


def test_the_report_without_address_space(limited: Path) -> None:
    lines, report = run(
        limited, 10000, 1, "prlimit", "--as=134217728", HAKMEM_REPORT_NO_MEMORY="on"
    )
    assert lines[0].split()[1] == "ENOMEM"
    assert report.startswith("hakmem: no memory for a block of 10000 bytes.")
