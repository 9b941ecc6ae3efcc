"""Which library the tests are of, which build, and whether anything could be tested at all."""

from pathlib import Path

import pytest

SKIPPED = 77


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--lib", type=Path, help="the library to preload")
    parser.addoption("--build", type=Path, help="the build folder whose tests are meant")


@pytest.fixture(scope="session")
def library(request: pytest.FixtureRequest) -> Path:
    return _given(request, "--lib")


@pytest.fixture(scope="session")
def build(request: pytest.FixtureRequest) -> Path:
    return _given(request, "--build")


def _given(request: pytest.FixtureRequest, option: str) -> Path:
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
