"""What this process allocates between two moments, where it runs on hakmem: its heap profile counts
each block. Blocks from before do not count, nor that they are freed."""

from __future__ import annotations

import ctypes
import errno
import os
import time
from dataclasses import dataclass, replace

from hakmem import heap_profile, perf_map, symbols
from hakmem.heap_profile import Profile
from hakmem.symbols import Stack

OPTIONS = {"profile_rate": 1, "profile_samples": 0}  # every block is a sample
TRIES = 100
LIVE, PEAK = 1, 5  # bytes: places in the figures of a stack


class CannotMeasure(Exception):
    """A line for the user."""


@dataclass(frozen=True)
class Measured:
    """In bytes."""

    peak: int  # of what was allocated meanwhile, in use at once
    left: int  # of it, in use at the end: the sum of the call stacks that have more than before
    before: Profile
    after: Profile

    def stacks(self, at: int) -> list[Stack]:
        """With names, and what each has more than before."""
        had = {(site.stack, site.name): site.figures[LIVE] for site in self.before.sites}
        more = []
        for site in self.after.sites:
            grown = max(site.figures[at] - had.get((site.stack, site.name), 0), 0)
            more.append(replace(site, figures=(0, grown, 0, 0, 0, grown)))
        grown_profile = replace(self.after, sites=tuple(one for one in more if one.figures[at]))
        with_made, _ = perf_map.with_made_here(grown_profile)
        return list(symbols.named(with_made, servers=False).stacks)


class Heap:
    """hakmem in this process. Raises CannotMeasure where it is not."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL(None)
        if not hasattr(self._library, "hakmem_profile_start"):
            raise CannotMeasure("it does not run on hakmem: start it with 'hakmem run'")
        self._was: dict[str, int] = {}
        self._files: list[int] = []

    def begin(self) -> None:
        """Raises CannotMeasure."""
        on = self._option("profile") == 1
        if on and self._option("profile_rate") != 1:
            raise CannotMeasure("a heap profile is on (--profile), which takes samples only")
        self._was = {name: self._option(name) for name in OPTIONS} | {"profile": int(on)}
        for name, value in OPTIONS.items():
            self._set(name, value)
        if self._library.hakmem_profile_start() != 0:
            raise CannotMeasure("hakmem can't count blocks here: there is no memory for it")
        try:
            self._files = [self._write()]
        except CannotMeasure:
            self._restore()
            raise

    def end(self) -> Measured:
        """Raises CannotMeasure. Reads what was written only now: that allocates, too."""
        try:
            self._files.append(self._write())
        finally:
            self._restore()
        before, after = map(_read, self._files)
        return _measured(before, after)

    def _restore(self) -> None:
        if not self._was["profile"]:
            self._library.hakmem_profile_stop()
        for name in OPTIONS:
            self._set(name, self._was[name])

    def _option(self, name: str) -> int:
        value = ctypes.c_uint64()
        if self._library.hakmem_option(name.encode(), ctypes.byref(value)) != 0:
            raise CannotMeasure(f"its hakmem is of another version: it has no option {name}")
        return value.value

    def _set(self, name: str, value: int) -> None:
        self._library.hakmem_option_set(name.encode(), ctypes.c_uint64(value))

    def _write(self) -> int:
        """The heap profile, to a new descriptor."""
        try:
            file = os.memfd_create("profile", os.MFD_CLOEXEC)
        except OSError as why:
            raise CannotMeasure(f"no room for its heap profile: {why.strerror}") from None
        error = errno.EBUSY
        for _ in range(TRIES):
            error = self._library.hakmem_profile_write(file)
            if error != errno.EBUSY:
                break
            time.sleep(0.01)
        if error != 0:
            os.close(file)
            raise CannotMeasure(f"hakmem can't write its heap profile: {os.strerror(error)}")
        return file


def _read(file: int) -> Profile:
    with open(file, "rb") as opened:
        opened.seek(0)
        return heap_profile.parse(
            opened.read().decode(errors="surrogateescape"), "the heap profile"
        )


def _measured(before: Profile, after: Profile) -> Measured:
    live = sum(site.figures[LIVE] for site in before.sites)
    had = {(site.stack, site.name): site.figures[LIVE] for site in before.sites}
    left = sum(
        max(site.figures[LIVE] - had.get((site.stack, site.name), 0), 0) for site in after.sites
    )
    return Measured(max(int((after.most or 0) - live), 0), int(left), before, after)
