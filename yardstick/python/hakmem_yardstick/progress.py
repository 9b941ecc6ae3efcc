"""What is shown while something is measured: a bar with the time left on a terminal, and plain
lines elsewhere."""

from __future__ import annotations

import time
from typing import Self

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn

from hakmem_yardstick.compare_runs import Comparison
from hakmem_yardstick.estimate import duration
from hakmem_yardstick.model import Run

# Between plain lines that tell no news.
_SECONDS = 10.0


class Display:
    def __init__(self, console: Console, *, plain: bool = True) -> None:
        """`plain`: whether there are lines where there is no terminal."""
        self.console = console
        self._plain = plain
        self._last = 0.0
        self._bar = Progress(
            TextColumn("{task.fields[where]}"),
            BarColumn(),
            TextColumn("{task.fields[rest]}"),
            console=console,
            transient=True,
            auto_refresh=False,  # nothing is drawn while something is measured
            disable=not console.is_terminal,
        )
        self._task = self._bar.add_task("", total=None, where="", rest="")

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def say(self, text: str, style: str = "") -> None:
        """Stays on the screen."""
        self.console.print(escape(text), style=style, highlight=False, soft_wrap=True)

    def warn(self, text: str) -> None:
        self.say(text, "yellow")

    def failed(self, run: Run) -> None:
        self.say(f"{run.row} on {run.allocator}: {run.outcome} ({run.detail})", "red")

    def step(self, text: str) -> None:
        """What is done now, of which nobody knows how long it takes."""
        self._show(text, "", 0, None)

    def follow(self, comparison: Comparison) -> None:
        """Shows each run of it."""

        def tell(run: Run) -> None:
            where = f"round {run.round + 1}  {run.allocator}"
            done = len(comparison.results.runs)
            self.runs(where, done, comparison.seconds_left, comparison.used)

        comparison.on_run = tell

    def runs(
        self, where: str, done: int, left: float, used: float, *, always: bool = False
    ) -> None:
        """`left` and `used` in seconds, from which the bar is drawn."""
        total = round(done * (1 + left / used)) if used > 0 and done else None
        runs = f"{done} of about {total} runs" if total else f"{done} runs"
        self._show(where, f"{runs}, {duration(left)} left", done, total)
        lines = self._plain and not self.console.is_terminal
        if lines and (always or time.monotonic() - self._last > _SECONDS):
            self._last = time.monotonic()
            self.say(f"{where}  {runs} done, about {duration(left)} left")

    def _show(self, where: str, rest: str, done: int, total: int | None) -> None:
        where = escape(where)
        self._bar.update(self._task, completed=done, total=total, where=where, rest=rest)
        self._bar.refresh()
