"""Why a process's memory may not be read, and what helps."""

from __future__ import annotations

import os
import re
from pathlib import Path

YAMA = Path("/proc/sys/kernel/yama/ptrace_scope")
ONLY_PARENT = (
    "kernel.yama.ptrace_scope is 1, so only its parent and root may; start the program with"
    " 'hakmem run --set watch=on', or try as root"
)
ONLY_ROOT = "kernel.yama.ptrace_scope is 2, so only root may"
NOBODY = "kernel.yama.ptrace_scope is 3, so no process may until the machine starts again"
WITHOUT = (
    "this root has no CAP_SYS_PTRACE, as is usual in containers; add the capability, or try as root"
    " outside of the container"
)
FILES = (
    "its files in /proc belong to another user; CAP_DAC_READ_SEARCH is needed beside CAP_SYS_PTRACE"
)
ELSE = "a security module (AppArmor, SELinux) or another user namespace forbids it"
HIDDEN = (
    "processes of other users can't be seen: that needs CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH,"
    " which root has outside of containers"
)
# Numbers of capabilities.
DAC_OVERRIDE, DAC_READ_SEARCH, SYS_PTRACE = 1, 2, 19


def reason(pid: int) -> str:
    try:
        status = Path(f"/proc/{pid}/status").read_text(errors="replace")
        owner = Path(f"/proc/{pid}/mem").stat().st_uid
        scope = YAMA.read_text().strip() if YAMA.exists() else "0"
    except OSError:
        return "it has ended"
    me = os.geteuid()
    if scope == "3":
        return NOBODY
    if _has(SYS_PTRACE):
        return FILES if owner != me and not _has(DAC_OVERRIDE, DAC_READ_SEARCH) else ELSE
    if me == 0:
        return WITHOUT
    users, groups = _ids("Uid", status), _ids("Gid", status)
    if me not in users:
        return f"it is a process of another user (UID {users[0]}); try as root"
    if set(users) != {me} or set(groups) != {os.getegid()}:
        return "it runs with other users or groups than this command (setuid); try as root"
    if owner != me:
        return "it is not dumpable (it had more privileges, or asked for it); try as root"
    return {"1": ONLY_PARENT, "2": ONLY_ROOT}.get(scope, ELSE)


def _ids(name: str, status: str) -> list[int]:
    """Real, effective and saved; -1 where the kernel does not say."""
    found = re.search(rf"^{name}:\s+(\d+)\s+(\d+)\s+(\d+)", status, re.MULTILINE)
    return [int(one) for one in found.groups()] if found else [-1]


def hidden() -> bool:
    """Whether there are processes of which this one has no right to see if they use hakmem."""
    if _has(SYS_PTRACE) and _has(DAC_OVERRIDE, DAC_READ_SEARCH):
        return False
    for maps in Path("/proc").glob("[0-9]*/maps"):
        try:
            maps.open().close()
        except PermissionError:
            return True
        except OSError:
            continue  # it has ended
    return False


def _has(*capabilities: int) -> bool:
    """Whether this process has one of them."""
    status = Path("/proc/self/status").read_text()
    held = re.search(r"^CapEff:\s+([0-9a-f]+)$", status, re.MULTILINE)
    return held is not None and any(int(held[1], 16) >> one & 1 for one in capabilities)
