"""Figures of processes on hakmem as metrics of Prometheus."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from hakmem import look, rows
from hakmem.look import CannotLook, Line, Requested, Sheet, TooLate
from hakmem.modules import need

AT_ONCE = 4  # readers, however many processes there are
LABELS = ("pid", "program")


def client() -> Any:
    """The library. Raises NoModule."""
    (client,) = need("prometheus_client")
    for name in ("exposition", "metrics_core", "openmetrics.exposition"):
        importlib.import_module(f"prometheus_client.{name}")
    return client


class Processes:
    """Looks at processes, and is a collector of the last look, as the library calls it."""

    def __init__(self, library: Path, pids: Iterable[int]) -> None:
        self.library = library
        self.pids = list(pids)
        self.failed: list[CannotLook] = []
        self._sheets: list[Sheet] = []
        self._seconds = 0.0
        self._late: set[int] = set()
        self._core = client().metrics_core

    def look(self, seconds: float | None = None) -> None:
        """For so many seconds at most. What is not read by then comes first in the next look."""
        begun = time.monotonic()
        until = None if seconds is None else begun + seconds
        pids = sorted(self.pids or rows.on_hakmem(), key=lambda pid: pid not in self._late)
        with ThreadPoolExecutor(AT_ONCE) as pool:
            seen = list(pool.map(lambda pid: self._sheet(pid, until), pids))
        self.failed = [one for one in seen if isinstance(one, CannotLook)]
        self._sheets = [one for one in seen if isinstance(one, Sheet)]
        self._late = {pid for pid, one in zip(pids, seen, strict=True) if isinstance(one, TooLate)}
        self._seconds = time.monotonic() - begun

    def collect(self) -> Iterator[Any]:
        yield from self._families(self._sheets)
        unreadable = self._core.GaugeMetricFamily(
            "hakmem_processes_unreadable", "Processes whose heap could not be read."
        )
        unreadable.add_metric([], len(self.failed))
        yield unreadable
        took = self._core.GaugeMetricFamily(
            "hakmem_scrape_duration_seconds", "Time that looking at all processes took."
        )
        took.add_metric([], self._seconds)
        yield took

    def _sheet(self, pid: int, until: float | None) -> Sheet | CannotLook | None:
        """None of one that has ended meanwhile, where none was asked for by name."""
        left = None if until is None else until - time.monotonic()
        if left is not None and left <= 0:
            return TooLate(pid)
        try:
            return look.sheet(pid, self.library, left)
        except CannotLook as why:
            return why if self.pids or look.lives(pid) else None

    def _families(self, sheets: list[Sheet]) -> Iterator[Any]:
        # A gauge of 1: other parsers than that of OpenMetrics have no type for information.
        build = self._core.GaugeMetricFamily(
            "hakmem_build_info", "The version of the library.", labels=(*LABELS, "version")
        )
        for sheet in sheets:
            build.add_metric([*_labels(sheet), sheet.version], 1)
        yield build
        for name, help_, value in GAUGES:
            gauge = self._core.GaugeMetricFamily(name, help_, labels=LABELS, unit=_unit(name))
            for sheet in sheets:
                gauge.add_metric(_labels(sheet), value(sheet))
            yield gauge
        for name, help_, requested in OF_PROFILES:
            gauge = self._core.GaugeMetricFamily(name, help_, labels=LABELS, unit=_unit(name))
            for sheet in sheets:
                if sheet.requested is not None:
                    gauge.add_metric(_labels(sheet), requested(sheet.requested))
            yield gauge
        for name, help_, label, lines in BY_USE:
            family = self._core.GaugeMetricFamily(
                name, help_, labels=(*LABELS, label), unit=_unit(name)
            )
            for sheet in sheets:
                for line in lines(sheet):
                    family.add_metric([*_labels(sheet), line.name], line.resident)
            yield family
        marks = self._core.CounterMetricFamily(
            "hakmem_marks", "Marks that were set, by name.", labels=(*LABELS, "mark")
        )
        for sheet in sheets:
            for mark in sheet.seen["marks"]:
                marks.add_metric([*_labels(sheet), mark["name"]], mark["count"])
        yield marks
        for name, help_, key in COUNTERS:
            counter = self._core.CounterMetricFamily(name, help_, labels=LABELS, unit=_unit(name))
            for sheet in sheets:
                counter.add_metric(_labels(sheet), sheet.seen[key])
            yield counter


GAUGES: tuple[tuple[str, str, Callable[[Sheet], int]], ...] = (
    (
        "hakmem_resident_memory_bytes",
        "Resident memory of the process (RSS).",
        lambda sheet: sheet.resident,
    ),
    ("hakmem_live_bytes", "Memory in blocks in use.", lambda sheet: sheet.live),
    (
        "hakmem_swapped_bytes",
        "Memory of the process in swap, not resident.",
        lambda sheet: sum(sheet.swapped.values()),
    ),
    (
        "hakmem_returnable_bytes",
        "Free memory of the heap that can go back to the kernel at once.",
        rows.returnable,
    ),
    (
        "hakmem_thread_caches",
        "Threads that have a cache.",
        lambda sheet: sum(cache["living"] for cache in sheet.seen["caches"]),
    ),
)
# Of processes in which a heap profile is on, or was.
OF_PROFILES: tuple[tuple[str, str, Callable[[Requested], int]], ...] = (
    (
        "hakmem_requested_bytes",
        "Of the blocks in use, what the program requested: an estimate.",
        lambda requested: requested.size,
    ),
    (
        "hakmem_requested_error_bytes",
        "The standard error of hakmem_requested_bytes.",
        lambda requested: requested.error,
    ),
    (
        "hakmem_requested_samples",
        "The blocks that hakmem_requested_bytes is made from.",
        lambda requested: requested.samples,
    ),
)
BY_USE: tuple[tuple[str, str, str, Callable[[Sheet], tuple[Line, ...]]], ...] = (
    (
        "hakmem_heap_resident_bytes",
        "Resident memory of the heap, by use.",
        "use",
        lambda sheet: sheet.heap,
    ),
    (
        "hakmem_other_resident_bytes",
        "Resident memory outside of the heap, by kind.",
        "kind",
        lambda sheet: sheet.others,
    ),
)
COUNTERS = (
    ("hakmem_freed_bytes", "Memory that the program has freed.", "freed"),
    ("hakmem_returned_bytes", "Memory returned to the kernel.", "returned"),
    ("hakmem_taken_again_bytes", "Returned memory that was used again.", "taken_again"),
)


def _unit(name: str) -> str:
    return "bytes" if name.endswith("_bytes") else ""


def _labels(sheet: Sheet) -> list[str]:
    return [str(sheet.pid), sheet.program]


def text(processes: Processes, accept: str = "") -> tuple[bytes, str]:
    """And the type that it is: OpenMetrics for a client that accepts that, else Prometheus' own
    format, which promtool and the node exporter read."""
    library = client()
    registry = library.CollectorRegistry()
    registry.register(processes)
    encode, kind = library.exposition.choose_encoder(accept)
    return encode(registry), kind
