"""A plug-in of pytest: the markers limit_memory("24 MB") and limit_leaks("1 KB"), for tests in a
process that runs on hakmem ('hakmem run pytest'). Elsewhere one line says that they are not
checked.

pytest loads this in every run where hakmem is installed, so what it needs is imported late."""

from __future__ import annotations

import gc
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from hakmem.window import Measured

MARKERS = ("limit_memory", "limit_leaks")
ALLOWED = {"limit_memory": set(), "limit_leaks": {"warmups"}}
NOT_CHECKED = "hakmem_not_checked"  # a property of a report
_why_not = pytest.StashKey[str]()


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "limit_memory(size): the most memory in use at once that the test may allocate, on hakmem",
    )
    config.addinivalue_line(
        "markers",
        "limit_leaks(size, warmups=0): memory that the test may leave in use, on hakmem",
    )


class WrongMarker(Exception):
    """A line for the user."""


def _limits(item: pytest.Item) -> dict[str, int]:
    """In bytes, of the markers that the test has. Raises WrongMarker."""
    from hakmem.budgets import read_size

    limits = {}
    for name in MARKERS:
        marker = item.get_closest_marker(name)
        if marker is None:
            continue
        if len(marker.args) != 1 or not set(marker.kwargs) <= ALLOWED[name]:
            more = ", warmups=N" if ALLOWED[name] else ""
            raise WrongMarker(f'{name}: expected one size{more}, as in {name}("24 MB"{more})')
        warmups = marker.kwargs.get("warmups", 0)
        if type(warmups) is not int or warmups < 0:
            raise WrongMarker(f"{name}: warmups={warmups!r}: expected a whole number, 0 or more")
        try:
            limits[name] = read_size(str(marker.args[0]))
        except ValueError as why:
            raise WrongMarker(f"{name}: {why}") from why
    return limits


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> None:
    """What is measured is the test alone, without what pytest does around it."""
    if any(item.get_closest_marker(name) for name in MARKERS):
        try:
            _limits(item)
        except WrongMarker as why:
            raise pytest.fail.Exception(str(why), pytrace=False) from None
        run = item.runtest
        item.runtest = lambda: _run(item, run)  # type: ignore[method-assign]


def _run(item: pytest.Item, run: Callable[[], None]) -> None:
    from hakmem.window import CannotMeasure, Heap

    del item.runtest  # that of its class again
    leaks = item.get_closest_marker("limit_leaks")
    for _ in range(leaks.kwargs.get("warmups", 0) if leaks else 0):
        run()
    gc.collect()
    try:
        heap = Heap()
        heap.begin()
    except CannotMeasure as why:
        item.stash[_why_not] = str(why)
        run()
        return
    measured = None
    try:
        run()
    finally:
        if leaks:
            gc.collect()
        try:
            measured = heap.end()
        except CannotMeasure as why:
            item.stash[_why_not] = str(why)
    wrong = list(_exceeded(item, measured)) if measured is not None else []
    if wrong:
        raise pytest.fail.Exception("\n".join(wrong), pytrace=False)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, Any, None]:
    outcome = yield
    if call.when == "call" and _why_not in item.stash:
        report = outcome.get_result()
        report.user_properties.append((NOT_CHECKED, item.stash[_why_not]))


def _exceeded(item: pytest.Item, measured: Measured) -> Generator[str, None, None]:
    from hakmem import budgets, window
    from hakmem.profile_text import size

    used = {
        "limit_memory": (measured.peak, "in use at once", window.PEAK),
        "limit_leaks": (measured.left, "in use after the test", window.LIVE),
    }
    for name, limit in _limits(item).items():
        bytes_, what, at = used[name]
        if bytes_ <= limit:
            continue
        over = size(bytes_ - limit)
        yield f"{size(bytes_)} {what}: {over} more than {name} permits ({size(limit)})"
        for site in budgets.largest(measured.stacks(at), (at,), True):
            yield f"  {site}"


# In the process that reports: with xdist, tests run in others.


def pytest_terminal_summary(terminalreporter: Any) -> None:
    why = ""
    count = 0
    for reports in terminalreporter.stats.values():
        for report in reports:
            said = dict(getattr(report, "user_properties", ())).get(NOT_CHECKED)
            if said is not None and getattr(report, "when", "") == "call":
                why, count = said, count + 1
    if count:
        tests = f"{count} test{'s' if count > 1 else ''}"
        terminalreporter.write_line(f"hakmem: limits of {tests} not checked: {why}")
