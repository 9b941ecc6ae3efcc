#!/usr/bin/env python3
"""Runs the commands of documentation pages as a reader would, and compares what they print.

    run.py --build build/release docs/guide.md       hakmem from a build tree
    run.py docs/guide.md                             hakmem as it is installed here
    run.py --allow packages,root,systemd PAGE...     also what changes this machine: for one
                                                     that may be thrown away (see machine)
    run.py --list PAGE...                            what would be run, and what not

The blocks of a page run in order, in a fresh folder, each in a shell of its own (bash -eu) that
begins where the one before it ended: same folder, same environment. What a page started is ended
when the page is done. tests/docs/README.md has the marks by which a page says what a block needs.

Exit status: 0 all as the pages say, 1 not so, 2 wrong usage or a page that can't be read.
"""

from __future__ import annotations

import argparse
import ctypes
import difflib
import fcntl
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.docs.page import Block, Malformed, agrees, blocks

ROOT = Path(__file__).resolve().parents[2]
# What has to be allowed, and how to tell whether it is there; any other need is a command.
KINDS: dict[str, Callable[[], bool]] = {
    "root": lambda: os.geteuid() == 0,
    "packages": lambda: shutil.which("apt-get") is not None,
    "clone": lambda: shutil.which("git") is not None,
    "systemd": lambda: Path("/run/systemd/system").is_dir(),
    "docker": lambda: _succeeds("docker", "info"),
    "slow": lambda: True,
    "long": lambda: True,  # a quarter of an hour and more
}
# What needs no permission, but is not there on every machine.
FREE: dict[str, Callable[[], bool]] = {"ptrace": lambda: _traces()}
# Blocks with these needs see the world, others have a network of their own.
ONLINE = {"packages", "clone", "docker"}
PR_SET_CHILD_SUBREAPER = 36
PTRACE_TRACEME = 0
CLONE_NEWNET = 0x40000000
SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1
TIMEOUT = 3600.0  # it hangs; a block of tests on a busy machine takes many minutes
libc = ctypes.CDLL(None, use_errno=True)


def main() -> int:
    options = parse()
    try:
        pages = {page: blocks(page) for page in options.page}
    except (OSError, Malformed) as error:
        print(f"run.py: {error}", file=sys.stderr)
        return 2
    if options.list:
        for page, found in pages.items():
            for block in found:
                head = block.file or block.text.splitlines()[0]
                missing = unmet(block, options.allow)
                print(
                    f"{_where(page, block)}: {'needs ' + missing if missing else 'tried'}: {head}"
                )
        return 0
    # What daemons leave behind comes to this process.
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    world = os.open("/proc/self/ns/net", os.O_RDONLY)
    apart(options.net)
    tried = wrong = 0
    left_out: list[str] = []
    for page, found in pages.items():
        begin = time.monotonic()
        ran, failed, untried = try_page(page, found, options, world)
        tried, wrong = tried + ran, wrong + failed
        left_out += untried
        print(f"{_relative(page)}: {ran} blocks tried, {failed} wrong, {len(untried)} not tried "
              f"({time.monotonic() - begin:.0f} s)", flush=True)  # fmt: skip
    for line in left_out:
        print(f"not tried: {line}")
    print(f"{tried - wrong} passed, {wrong} failed, {len(left_out)} skipped")
    missed = [line for line in left_out if "needs long" not in line]
    return 1 if wrong or (options.all and missed) else 0


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("page", nargs="+", type=Path, help="a page in Markdown")
    parser.add_argument("--build", type=Path, help="a build tree to install hakmem from")
    parser.add_argument("--allow", type=lambda text: text.split(","), default=[],
                        help=f"of {', '.join(KINDS)}")  # fmt: skip
    parser.add_argument("--net", type=Path, metavar="FILE",
                        help="network namespace to use instead of a new one")  # fmt: skip
    parser.add_argument("--made", type=Path, metavar="FOLDER",
                        help="packages and wheels, which pages see as $MADE")  # fmt: skip
    parser.add_argument(
        "--all", action="store_true", help="what is not tried is a failure, but for what is long"
    )
    parser.add_argument("--list", action="store_true", help="run nothing")
    options = parser.parse_args()
    for word in options.allow:
        if word not in KINDS:
            parser.error(f"--allow {word}: expected one of {', '.join(KINDS)}")
    return options


def unmet(block: Block, allowed: list[str]) -> str | None:
    for need in block.needs:
        if need in KINDS and need not in allowed:
            return f"{need} (see --allow)"
        there = {**KINDS, **FREE}.get(need)
        if not (there() if there is not None else shutil.which(need, path=_path([]))):
            return need
    return None


def apart(namespace: Path | None) -> None:
    """A network of its own, where ports that pages name are free. Without the right to have one,
    they have to be free in the machine's."""
    if namespace is not None:
        _enter(os.open(namespace, os.O_RDONLY))
    elif libc.unshare(CLONE_NEWNET) == 0:
        with socket.socket() as any_socket:
            request = struct.pack("16sH14x", b"lo", 0)
            flags = struct.unpack("16sH14x", fcntl.ioctl(any_socket, SIOCGIFFLAGS, request))[1]
            fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", flags | IFF_UP))


def _enter(namespace: int) -> None:
    if libc.setns(namespace, CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "setns")


def try_page(
    page: Path, found: list[Block], options: argparse.Namespace, world: int
) -> tuple[int, int, list[str]]:
    ran = failed = 0
    left_out = []
    with tempfile.TemporaryDirectory(prefix="hakmem-docs-") as scratch:
        shell = Shell(Path(scratch), options, world)
        try:
            for block in found:
                missing = unmet(block, options.allow)
                if missing is not None:
                    left_out.append(f"{_where(page, block)}: needs {missing}")
                    continue
                problem = shell.put(block) if block.file else shell.run(block)
                ran += not block.hidden
                if problem:
                    failed += 1
                    print(f"{_where(page, block)}: {problem}", flush=True)
        finally:
            end_children()
    return ran, failed, left_out


class Shell:
    """The reader's: a folder and an environment that go on from block to block."""

    def __init__(self, scratch: Path, options: argparse.Namespace, world: int) -> None:
        self.world = world
        self.state = scratch / ".state"
        self.folder = scratch / "home"
        self.folder.mkdir()
        self.clone: Path | None = None
        self.environment = {**os.environ, "COLUMNS": "80", "LC_ALL": "C.UTF-8",
                            "DEBIAN_FRONTEND": "noninteractive"}  # fmt: skip
        for name in [n for n in self.environment if n.startswith(("HAKMEM_", "LD_"))]:
            del self.environment[name]
        if options.made:
            self.environment["MADE"] = str(options.made.resolve())
        self.environment["PATH"] = _path([])
        if options.build:
            prefix = scratch / "prefix"
            subprocess.run(["cmake", "--install", options.build, "--prefix", prefix],
                           stdout=subprocess.DEVNULL, check=True)  # fmt: skip
            self.environment["PATH"] = _path([prefix / "bin"])
            # As ldconfig would: what is installed is found by its name.
            (library,) = prefix.glob("lib/**/libhakmem.so.0")
            self.environment["LD_LIBRARY_PATH"] = str(library.parent)

    def put(self, block: Block) -> str | None:
        assert block.file is not None
        path = self.folder / block.file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block.text + "\n")
        return None

    def run(self, block: Block) -> str | None:
        """Runs commands; tells what is wrong with what came out."""
        if "clone" in block.needs and self.clone is None:
            self.folder = self.clone = self.folder / "hakmem"
            subprocess.run(["git", "clone", "-q", ROOT, self.clone], check=True)
        script = f"trap 'export -p >{self.state}; pwd >{self.state}.folder' EXIT\n{block.text}\n"
        online = ONLINE & set(block.needs)
        # A file, not a pipe: a daemon that keeps it open keeps nobody waiting.
        with tempfile.TemporaryFile() as output:
            process = subprocess.Popen(["bash", "-eu", "-c", script], cwd=self.folder,
                                       env=self.environment, stdin=subprocess.DEVNULL,
                                       stdout=output, stderr=subprocess.STDOUT,
                                       preexec_fn=partial(_enter, self.world) if online else None,
                                       start_new_session=True)  # fmt: skip
            try:
                status = process.wait(TIMEOUT)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                status = -signal.SIGKILL
            output.seek(0)
            said = output.read().decode(errors="replace")
        self._keep()
        if status != block.exit:
            what = "took too long" if status == -signal.SIGKILL else f"ended with {status}"
            commands = _indented(block.text)
            return f"{what}, expected {block.exit}:\n{commands}\n  said:\n{_indented(said)}"
        if block.expected is not None and not agrees(block.expected, said):
            diff = difflib.unified_diff(block.expected.splitlines(), said.splitlines(),
                                        "the page says", "it is", lineterm="")  # fmt: skip
            return f"other output than the page says:\n{_indented(chr(10).join(diff))}"
        return None

    def _keep(self) -> None:
        """The environment and the folder that the shell ended with are the next one's first."""
        if not self.state.exists():
            return
        script = f". {self.state}; exec env -0"
        environment = subprocess.run(
            ["bash", "-c", script], env={}, capture_output=True, check=True
        )
        pairs = (item.split("=", 1) for item in environment.stdout.decode().split("\0") if item)
        self.environment = {name: value for name, value in pairs if name != "_"}
        self.folder = Path(Path(f"{self.state}.folder").read_text().strip())


def end_children() -> None:
    """Ends what was started here and still runs, daemons too."""
    for number in [signal.SIGTERM] * 50 + [signal.SIGKILL] * 50:
        children = [
            int(pid)
            for task in Path("/proc/self/task").iterdir()
            for pid in (task / "children").read_text().split()
        ]
        if not children:
            return
        for pid in children:
            if number == signal.SIGKILL or not _asked(pid):
                os.kill(pid, number)
        time.sleep(0.1)
        while True:
            try:
                if os.waitpid(-1, os.WNOHANG) == (0, 0):
                    break
            except ChildProcessError:
                break


_ASKED: set[int] = set()


def _asked(pid: int) -> bool:
    """Whether it was asked to end before; it is by now."""
    known = pid in _ASKED
    _ASKED.add(pid)
    return known


def _path(first: list[Path]) -> str:
    # Servers are among the administrator's programs.
    return ":".join([*map(str, first), os.environ["PATH"], "/usr/local/sbin:/usr/sbin:/sbin"])


def _traces() -> bool:
    """Whether a child may be traced."""
    child = os.fork()
    if child == 0:
        os._exit(0 if libc.ptrace(PTRACE_TRACEME, 0, 0, 0) == 0 else 1)
    return os.waitpid(child, 0)[1] == 0


def _succeeds(*command: str) -> bool:
    try:
        return subprocess.run(command, capture_output=True, timeout=60).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def _relative(page: Path) -> Path:
    page = page.resolve()
    return page.relative_to(ROOT) if page.is_relative_to(ROOT) else page


def _where(page: Path, block: Block) -> str:
    return f"{_relative(page)}:{block.line}"


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.rstrip("\n").splitlines())


if __name__ == "__main__":
    sys.exit(main())
