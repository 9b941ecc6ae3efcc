"""The programs that the tests run; exit status 77 when all tests were skipped."""

from pathlib import Path

import pytest

SKIPPED = 77
PROGRAMS = {
    "show": "the built tests/options/show.c",
    "kept": "the built tests/options/kept.c",
    "once": "the built tests/options/once.c",
    "lib": "the library to preload",
    "nothing": "the built tests/options/nothing.c",
}


def pytest_addoption(parser: pytest.Parser) -> None:
    for name, help in PROGRAMS.items():
        parser.addoption(f"--{name}", type=Path, help=help)


def built(request: pytest.FixtureRequest, name: str) -> Path:
    path: Path | None = request.config.getoption(f"--{name}")
    if path is None:
        pytest.skip(f"needs --{name} PATH")
    return path.resolve(strict=True)


@pytest.fixture
def show(request: pytest.FixtureRequest) -> Path:
    return built(request, "show")


@pytest.fixture
def kept(request: pytest.FixtureRequest) -> Path:
    return built(request, "kept")


@pytest.fixture
def once(request: pytest.FixtureRequest) -> Path:
    return built(request, "once")


@pytest.fixture
def lib(request: pytest.FixtureRequest) -> Path:
    return built(request, "lib")


@pytest.fixture
def nothing(request: pytest.FixtureRequest) -> Path:
    return built(request, "nothing")


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """To pytest a run of skipped tests alone is a good one; ctest shall say that it was skipped."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None and session.exitstatus == pytest.ExitCode.OK:
        ran = any(reporter.stats.get(outcome) for outcome in ("passed", "xfailed", "xpassed"))
        if reporter.stats.get("skipped") and not ran:
            session.exitstatus = SKIPPED
