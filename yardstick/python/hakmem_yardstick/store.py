"""A session's folder: what was begun, each finished run as it comes, and the results at the end.

session.json    rows, allocators, machine and settings, written at the start
runs.jsonl      a line for each finished run, there as soon as it has ended
results.json    all of it, once the session has ended (model.Results.to_json)
"""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import IO, Any

from hakmem_yardstick.model import Results, Run, results_of, run_of

PREFIX = "hakmem-bench-"


class CannotStore(Exception):
    """Or read: what is wrong with the folder, and what to do."""


@contextmanager
def told(folder: Path) -> Iterator[None]:
    """What the system says against the folder, such as that the disk is full."""
    try:
        yield
    except BrokenPipeError:  # of standard output, whose reader has had enough
        raise
    except OSError as error:
        raise CannotStore(f"{error.filename or folder}: {error.strerror}") from None


def default_folder() -> Path:
    return Path(datetime.now().strftime(f"{PREFIX}%Y%m%d-%H%M%S"))


def newest(here: Path) -> Path:
    """The session that was begun last below `here` and has not ended."""
    found = [
        folder
        for folder in here.glob(f"{PREFIX}*")
        if (folder / "session.json").is_file() and not is_complete(folder)
    ]
    if not found:
        raise CannotStore(f"no {PREFIX}* here was interrupted; name the folder: --resume DIR")
    return max(found, key=lambda folder: (folder / "session.json").stat().st_mtime)


def is_complete(folder: Path) -> bool:
    try:
        return not json.loads((folder / "results.json").read_text())["interrupted"]
    except (OSError, ValueError, KeyError):
        return False


def write_whole(file: Path, text: str) -> None:
    """Or not at all: an interrupt leaves what was there."""
    partial = file.with_name(file.name + ".partial")
    partial.write_text(text)
    partial.replace(file)


class Store:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lines: IO[str] | None = None

    def create(self, results: Results, identity: Mapping[str, Any]) -> None:
        """`identity` must be the same when the session goes on."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise CannotStore(
                f"{self.folder}: {error.strerror}; choose another with --out"
            ) from None
        if (self.folder / "session.json").exists():
            raise CannotStore(
                f"{self.folder} holds a session: go on with --resume {self.folder}, "
                "or choose another folder with --out"
            )
        record = {**results.to_json(), "identity": identity}
        with told(self.folder):
            self._open()
            write_whole(self.folder / "session.json", json.dumps(record, indent=1) + "\n")

    def check(self) -> None:
        """Whether there is a session to go on with."""
        if not (self.folder / "session.json").exists():
            raise CannotStore(f"{self.folder} holds no session")

    def resume(self) -> tuple[Results, dict[str, Any]]:
        """What is there, with the runs that have finished, and the identity at its start."""
        self.check()
        try:
            with told(self.folder):
                record = json.loads((self.folder / "session.json").read_text())
            results, identity = results_of(record), dict(record["identity"])
        except (ValueError, KeyError, TypeError) as error:
            raise CannotStore(f"{self.folder}/session.json can't be read: {error}") from None
        with told(self.folder):
            self._open()
            results.runs = self._read()
        return results, identity

    def _read(self) -> list[Run]:
        """Cuts off a line that was being written when the machine or the session died."""
        file = self.folder / "runs.jsonl"
        data = file.read_bytes() if file.exists() else b""
        whole = data[: data.rfind(b"\n") + 1]
        runs = []
        for number, line in enumerate(whole.splitlines(), 1):
            try:
                runs.append(run_of(json.loads(line)))
            except (ValueError, KeyError, TypeError) as error:
                raise CannotStore(f"{file}: line {number} can't be read: {error}") from None
        if len(whole) < len(data):
            with file.open("r+b") as torn:
                torn.truncate(len(whole))
        return runs

    def _open(self) -> None:
        """Two that wrote to it would measure each other."""
        lines = (self.folder / "runs.jsonl").open("a")
        try:
            fcntl.flock(lines, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lines.close()
            raise CannotStore(
                f"{self.folder} is being written by a hakmem that still runs; wait for its end, "
                "or interrupt it (Ctrl-C, or kill -INT)"
            ) from None
        self._lines = lines

    def add(self, run: Run) -> None:
        assert self._lines is not None
        with told(self.folder):
            self._lines.write(json.dumps(asdict(run)) + "\n")
            self._lines.flush()

    def finish(self, results: Results) -> None:
        with told(self.folder):
            write_whole(self.folder / "results.json", json.dumps(results.to_json()) + "\n")

    def close(self) -> None:
        if self._lines is not None:
            with suppress(OSError):  # what could not be written was told when it was tried
                self._lines.close()
