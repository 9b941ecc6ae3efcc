"""Chromium without a window, asked through its debugging protocol:
https://chromedevtools.github.io/devtools-protocol. Messages are JSON and end with a zero byte."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

SECONDS = 600
# Chromium reads what it is asked from descriptor 3, and answers on 4.
EXEC = """\
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.dup2(int(sys.argv[2]), 4)
os.execv(sys.argv[3], sys.argv[3:])
"""
KEYS = {"Tab": 9, "Enter": 13, " ": 32, "Escape": 27, "Home": 36, "End": 35,
        "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}  # fmt: skip


def found() -> str | None:
    some = map(shutil.which, ("chromium", "chromium-browser", "chromium-headless-shell"))
    return next(filter(None, some), None)


class Failed(Exception):
    pass


class Browser:
    def __init__(self, ask: int, answers: int) -> None:
        self._ask, self._answers = ask, answers
        self._rest = b""
        self._last = 0
        self._session = ""
        self.complaints: list[str] = []  # on the console, and of requests
        self._loaded = 0

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._last += 1
        message = {"id": self._last, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        left = json.dumps(message).encode() + b"\0"
        while left:
            left = left[os.write(self._ask, left) :]
        while True:
            answer = self._next()
            if answer.get("id") == self._last:
                if "error" in answer:
                    raise Failed(f"{method}: {answer['error']['message']}")
                return dict(answer["result"])

    def _next(self) -> dict[str, Any]:
        """One message; an event is noted."""
        end = time.monotonic() + SECONDS
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._answers], [], [], max(end - time.monotonic(), 0))
            part = os.read(self._answers, 2**20) if ready else b""
            if not part:
                raise Failed("chromium ended" if ready else "chromium does not answer")
            self._rest += part
        text, _, self._rest = self._rest.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        self._note(message.get("method", ""), message.get("params", {}))
        return message

    def _note(self, event: str, what: dict[str, Any]) -> None:
        if event == "Page.loadEventFired":
            self._loaded += 1
        elif event == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(what["exceptionDetails"]))
        elif event == "Log.entryAdded":
            self.complaints.append(what["entry"]["text"])
        elif event == "Runtime.consoleAPICalled":
            self.complaints.append(json.dumps(what["args"]))

    def attach(self) -> None:
        made = self.call("Target.createTarget", url="about:blank")
        said = self.call("Target.attachToTarget", targetId=made["targetId"], flatten=True)
        self._session = said["sessionId"]
        for part in ("Page", "Runtime", "Log"):
            self.call(f"{part}.enable")

    def open(self, page: Path, width: int, height: int, scheme: str, fragment: str = "") -> None:
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=False)  # fmt: skip
        media = [{"name": "prefers-color-scheme", "value": scheme}]
        self.call("Emulation.setEmulatedMedia", features=media)
        before = self._loaded
        self.call("Page.navigate", url="about:blank")  # another fragment alone loads nothing
        while self._loaded == before:
            self._next()
        before = self._loaded
        self.call("Page.navigate", url=f"{page.as_uri()}#{fragment}" if fragment else page.as_uri())
        while self._loaded == before:
            self._next()

    def run(self, script: str) -> Any:
        """What an expression gives."""
        said = self.call("Runtime.evaluate", expression=script, returnByValue=True,
                         awaitPromise=True)  # fmt: skip
        if "exceptionDetails" in said:
            raise Failed(json.dumps(said["exceptionDetails"]))
        return said["result"].get("value")

    def click(self, script: str) -> None:
        """In the middle of what of an element is in the window. The expression gives it."""
        self.drag(
            f"(() => {{ const one = {script}; one.scrollIntoView({{block: 'nearest'}});"
            "const box = one.getBoundingClientRect();"
            "return [(Math.max(box.left, 0) + Math.min(box.right, innerWidth)) / 2,"
            "(Math.max(box.top, 0) + Math.min(box.bottom, innerHeight)) / 2]; })()"
        )

    def drag(self, script: str) -> None:
        """From one place to another, or clicks if there is one. The expression gives x and y of
        each."""
        first, second, *more = self.run(script)
        places = [(first, second), *zip(more[::2], more[1::2], strict=True)]
        steps = [("mouseMoved", 0, places[0]), ("mousePressed", 1, places[0])]
        steps += [("mouseMoved", 1, place) for place in places[1:]]
        for kind, held, (x, y) in [*steps, ("mouseReleased", 0, places[-1])]:
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, buttons=held, clickCount=1,
                      button="none" if kind == "mouseMoved" and not held else "left")  # fmt: skip

    def key(self, key: str, shift: bool = False) -> None:
        text = {"Enter": "\r", " ": " "}.get(key, "")
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key,
                      modifiers=8 if shift else 0, windowsVirtualKeyCode=KEYS[key],
                      text=text if kind == "keyDown" else "")  # fmt: skip

    def write(self, text: str) -> None:
        self.call("Input.insertText", text=text)

    def picture(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot")["data"]))


@contextmanager
def browser(folder: Path, *options: str) -> Iterator[Browser]:
    """`folder`: for its files, and what it says."""
    program = found()
    assert program is not None
    its_end, ask = os.pipe()
    answers, its_answers = os.pipe()
    given = [fcntl.fcntl(one, fcntl.F_DUPFD, 10) for one in (its_end, its_answers)]
    words = [program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
             "--remote-debugging-pipe",
             f"--user-data-dir={folder / 'browser'}", *options]  # fmt: skip
    with (folder / "browser.log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-c", EXEC, *map(str, given), *words],
            pass_fds=given, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
        )  # fmt: skip
    for one in (its_end, its_answers, *given):
        os.close(one)
    try:
        made = Browser(ask, answers)
        made.attach()
        yield made
        with suppress(Failed, OSError):
            made.call("Browser.close")
    finally:
        os.close(ask)
        os.close(answers)
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
