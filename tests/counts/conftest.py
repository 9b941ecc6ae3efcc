"""Which driver and library the counts are of; exit status 77 when nothing could be counted."""

from pathlib import Path

import pytest

SKIPPED = 77


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--driver", type=Path, help="the built tests/counts/driver.c")
    parser.addoption("--lib", type=Path, help="the library to preload")


@pytest.fixture(scope="session")
def driver(request: pytest.FixtureRequest) -> Path:
    return _built(request, "--driver")


@pytest.fixture(scope="session")
def library(request: pytest.FixtureRequest) -> Path:
    return _built(request, "--lib")


def _built(request: pytest.FixtureRequest, option: str) -> Path:
    path: Path | None = request.config.getoption(option)
    if path is None:
        pytest.skip(f"needs {option} PATH")
    return path.resolve(strict=True)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """To pytest a run of skipped tests alone is a good one; ctest shall say that it was skipped."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None and session.exitstatus == pytest.ExitCode.OK:
        ran = any(reporter.stats.get(outcome) for outcome in ("passed", "xfailed", "xpassed"))
        if reporter.stats.get("skipped") and not ran:
            session.exitstatus = SKIPPED
