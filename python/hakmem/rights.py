"""Why a process's memory may not be read, and what helps."""

from __future__ import annotations

import os
import re
from pathlib import Path

YAMA = Path("/proc/sys/kernel/yama/ptrace_scope")
SCOPES = {
    "1": "kernel.yama.ptrace_scope is 1, so only its parent and root may; start the program with"
    " 'hakmem run -o watch=on', or try as root",
    "2": "kernel.yama.ptrace_scope is 2, so only root may",
    "3": "kernel.yama.ptrace_scope is 3, so no process may until the machine starts again",
}
ELSE = (
    "a security module (AppArmor, SELinux) or a container without CAP_SYS_PTRACE forbids it; try"
    " as root outside of the container"
)


def reason(pid: int) -> str:
    try:
        status = Path(f"/proc/{pid}/status").read_text(errors="replace")
        owner = Path(f"/proc/{pid}/mem").stat().st_uid
        scope = YAMA.read_text().strip() if YAMA.exists() else "0"
    except OSError:
        return "it has ended"
    users = re.search(r"^Uid:\s+(\d+)\s+(\d+)\s+(\d+)", status, re.MULTILINE)
    me = os.geteuid()
    if users is not None and me != 0 and set(users.groups()) != {str(me)}:
        return f"it is a process of another user (UID {users[1]}); try as root"
    if users is not None and me != 0 and owner != me:
        return "it is not dumpable (it had more privileges, or asked for it); try as root"
    return SCOPES.get(scope, ELSE)
