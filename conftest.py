"""What the folders' tests share: built files named on the command line, and when a run was none."""

import os
import pwd
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.nightly import NIGHTLY
from tests.profile import browser
from tests.profile.browser import Browser
from tests.watch.watched import Command

SKIPPED = 77

# pytest's folder in /tmp is named after the user that the environment names, and refused where that
# is not the one who runs it: after setpriv or sudo -E.
try:
    os.environ["LOGNAME"] = pwd.getpwuid(os.getuid()).pw_name
except KeyError:
    os.environ["LOGNAME"] = f"user-{os.getuid()}"


# What was ignored where the tests were started (by nohup, or with &) would be ignored by what they
# start, too; what is handled is not. A command that is asked to end heeds what is not ignored.
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, lambda *_: None)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--lib", type=Path, help="the built libhakmem.so")
    parser.addoption("--archive", type=Path, help="the built libhakmem.a")
    parser.addoption("--hakmem", type=Path, help="the built bin/hakmem")
    parser.addoption("--programs", type=Path, help="the folder of what is built of the test's")
    parser.addoption("--build", type=Path, help="the build tree")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "nightly: left to `make test-nightly`")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if NIGHTLY:
        return
    left = [item for item in items if item.get_closest_marker("nightly") is not None]
    items[:] = [item for item in items if item.get_closest_marker("nightly") is None]
    if left:
        config.hook.pytest_deselected(items=left)


@pytest.fixture(scope="session")
def given(request: pytest.FixtureRequest) -> Callable[[str], Path]:
    """The file or folder that an option names; without it, the test is skipped."""

    def path(option: str) -> Path:
        value: Path | None = request.config.getoption(option)
        if value is None:
            pytest.skip(f"needs {option} PATH")
        return value.resolve(strict=True)

    return path


@pytest.fixture(scope="session")
def library(given: Callable[[str], Path]) -> Path:
    return given("--lib")


@pytest.fixture(scope="session")
def archive(given: Callable[[str], Path]) -> Path:
    return given("--archive")


@pytest.fixture(scope="session")
def build(given: Callable[[str], Path]) -> Path:
    return given("--build")


@pytest.fixture(scope="session")
def programs(given: Callable[[str], Path]) -> Path:
    """The folder of what is built of the test's own folder."""
    return given("--programs")


@pytest.fixture(scope="session")
def command(given: Callable[[str], Path]) -> Command:
    return Command(given("--hakmem"))


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A browser, for pages."""
    if browser.found() is None:
        pytest.skip("needs chromium")
    with browser.browser(tmp_path_factory.mktemp("browser")) as made:
        yield made


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """To pytest a run of skipped tests alone is a good one; ctest shall say that it was skipped."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None and session.exitstatus == pytest.ExitCode.OK:
        ran = any(reporter.stats.get(outcome) for outcome in ("passed", "xfailed", "xpassed"))
        if reporter.stats.get("skipped") and not ran:
            session.exitstatus = SKIPPED
