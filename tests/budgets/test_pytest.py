"""The plug-in of pytest: tests with limits, in a process on hakmem and in one that is not."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

from tests.budgets.conftest import Hakmem
from tests.ran import ran

PYTHON = Path(__file__).parents[2] / "python"
TESTS = """
import pytest

kept, once = [], []

def take(size):
    return bytearray(size)

@pytest.mark.limit_memory("24 MB")
def test_within():
    take(20 << 20)
    take(20 << 20)

@pytest.mark.limit_memory("24 MB")
def test_too_much():
    take(30 << 20)

@pytest.mark.limit_leaks("1 KB")
def test_keeps_nothing():
    take(100000)

@pytest.mark.limit_leaks("1 KB")
def test_keeps():
    kept.append(take(100000))

@pytest.mark.limit_leaks("1 KB", warmups=1)
def test_keeps_once():
    if not once:
        once.append(take(100000))

@pytest.mark.xfail
@pytest.mark.limit_memory("1 MB")
def test_is_expected_to():
    take(2 << 20)

def test_without_a_limit():
    take(30 << 20)
"""
PYTEST = (sys.executable, "-m", "pytest", "-p", "hakmem.pytest_plugin", "-rA", "-q")


@pytest.fixture
def tests(tmp_path: Path) -> Path:
    (tmp_path / "test_limits.py").write_text(TESTS)
    return tmp_path / "test_limits.py"


def test_on_hakmem(hakmem: Hakmem, tests: Path) -> None:
    done = hakmem("run", *PYTEST, tests, PYTHONPATH=str(PYTHON))
    assert "2 failed, 4 passed, 1 xfailed" in done.stdout, done
    much = done.stdout.index(
        "30.0 MiB in use at once: 6.0 MiB more than limit_memory permits (24.0 MiB)\n  30.0 MiB by "
    )
    kept = done.stdout.index("KiB more than limit_leaks permits (1.0 KiB)\n  97.7 KiB by ")
    assert (
        done.stdout.index("_ test_too_much _") < much < done.stdout.index("_ test_keeps _") < kept
    )
    assert "not checked" not in done.stdout


def test_with_objects_of_python(hakmem: Hakmem, tests: Path) -> None:
    """Where Python's small objects are hakmem's, too, and pytest makes some around each test."""
    done = hakmem("run", *PYTEST, tests, PYTHONPATH=str(PYTHON), PYTHONMALLOC="malloc")
    assert "2 failed, 4 passed, 1 xfailed" in done.stdout, done


@pytest.mark.skipif(importlib.util.find_spec("xdist") is None, reason="needs pytest-xdist")
def test_in_several_processes(hakmem: Hakmem, tests: Path) -> None:
    """Each test is measured in its worker, and what is wrong is said by the first process."""
    words = (*PYTEST, "-n", "2", tests)
    done = hakmem("run", *words, PYTHONPATH=str(PYTHON))
    assert "[gw" in done.stdout and "2 failed, 4 passed, 1 xfailed" in done.stdout, done
    for said in (
        "30.0 MiB in use at once: 6.0 MiB more than limit_memory permits (24.0 MiB)\n  30.0 MiB by "
        "take (test_limits.py:",
        "KiB more than limit_leaks permits (1.0 KiB)\n  97.7 KiB by take (test_limits.py:",
    ):
        assert said in done.stdout, done  # where CI is set, in the summary, too
    assert "not checked" not in done.stdout
    plain = {"PYTHONPATH": str(PYTHON)}
    done = ran(*words, env=plain)
    assert "6 passed, 1 xpassed" in done.stdout, done
    assert done.stdout.count("hakmem: limits of 6 tests not checked: ") == 1


def test_beside_a_budget_of_the_process(hakmem: Hakmem, tests: Path) -> None:
    """Which has its own peak."""
    words = ("--max-peak=31M", *PYTEST, tests, "-k")
    done = hakmem("run", *words, "without or keeps_nothing", PYTHONPATH=str(PYTHON))
    assert done.returncode == 122 and "MiB in use at once" in done.stderr, done


def test_elsewhere(tests: Path) -> None:
    plain = {"PYTHONPATH": str(PYTHON)}
    done = ran(*PYTEST, tests, env=plain)
    assert "6 passed, 1 xpassed" in done.stdout, done
    (line,) = (one for one in done.stdout.splitlines() if one.startswith("hakmem:"))
    assert line == (
        "hakmem: limits of 6 tests not checked: it does not run on hakmem: start it with "
        "'hakmem run'"
    )


def test_while_a_profile_takes_samples(hakmem: Hakmem, tests: Path) -> None:
    done = hakmem("run", "--profile", *PYTEST, tests, "-k", "within", PYTHONPATH=str(PYTHON))
    assert "limits of 1 test not checked: a heap profile is on" in done.stdout, done


@pytest.mark.parametrize(
    ("marker", "line"),
    [
        ('limit_memory("24 X")', "limit_memory: '24 X': expected a size, such as '24 MB'"),
        ("limit_memory()", 'limit_memory: expected one size, as in limit_memory("24 MB")'),
        ('limit_leaks("1 B", warmups="2")', "limit_leaks: warmups='2': expected a whole number"),
        ('limit_leaks("1 B", filter_fn=print)', "limit_leaks: expected one size, warmups=N"),
    ],
)
def test_wrong_markers(marker: str, line: str, hakmem: Hakmem, tests: Path) -> None:
    tests.write_text(f"import pytest\n@pytest.mark.{marker}\ndef test_it():\n    pass\n")
    done = hakmem("run", *PYTEST, tests, PYTHONPATH=str(PYTHON))
    assert done.returncode == 1 and line in done.stdout


def test_a_limit_that_is_expected_to_be_exceeded(hakmem: Hakmem, tests: Path) -> None:
    """That is no pass, which a strict xfail would make an error of."""
    marks = '@pytest.mark.xfail(strict=True)\n@pytest.mark.limit_memory("1 MB")'
    tests.write_text(f"import pytest\n{marks}\ndef test_it():\n    bytearray(5 << 20)\n")
    done = hakmem("run", *PYTEST, tests, PYTHONPATH=str(PYTHON))
    assert done.returncode == 0 and "1 xfailed" in done.stdout, done
