"""What is shown while a session runs: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from hakmem_yardstick.estimate import duration
from hakmem_yardstick.model import Run

# Between plain lines that tell no news.
_SECONDS = 10.0


class Display:
    def __init__(self, console: Console) -> None:
        self.console = console
        self._last = 0.0
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        if console.is_terminal:
            self._bar = Progress(
                TextColumn("{task.fields[where]}"),
                BarColumn(),
                TextColumn("{task.fields[runs]}"),
                TextColumn("{task.fields[left]} left"),
                console=console,
                transient=True,
                auto_refresh=False,  # nothing is drawn while something is measured
            )

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
            self._task = self._bar.add_task("", total=None, where="", runs="", left="?")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def say(self, text: str) -> None:
        """Stays on the screen."""
        self.console.print(escape(text), highlight=False, soft_wrap=True)

    def warn(self, text: str) -> None:
        self.console.print(f"[yellow]{escape(text)}[/yellow]", highlight=False, soft_wrap=True)

    def runs(
        self, where: str, done: int, left: float, used: float, *, always: bool = False
    ) -> None:
        """`left` and `used` in seconds, from which the bar is drawn."""
        total = round(done * (1 + left / used)) if used > 0 and done else None
        runs = f"{done} of about {total} runs" if total else f"{done} runs"
        if self._bar is not None and self._task is not None:
            self._bar.update(
                self._task,
                completed=done,
                total=total,
                where=escape(where),
                runs=runs,
                left=duration(left),
                refresh=True,
            )
        elif always or time.monotonic() - self._last > _SECONDS:
            self._last = time.monotonic()
            self.say(f"{where}  {runs} done, about {duration(left)} left")

    def failed(self, run: Run) -> None:
        text = f"{run.row} on {run.allocator}: {run.outcome} ({run.detail})"
        self.console.print(f"[red]{escape(text)}[/red]", highlight=False, soft_wrap=True)
