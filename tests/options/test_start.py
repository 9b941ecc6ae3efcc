"""Reading options costs one openat that fails when a program starts, and uses no function of libc.
The start also reads one file of the system: its mode of huge pages."""

import re
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.counts.trace import skip_without_strace
from tests.options.surroundings import SYSTEM_FILE
from tests.ran import clean_environment, ran

# All by which files are asked for, or anything is written.
FILES = "%file,%desc"
HUGE_PAGES = Path("/sys/kernel/mm/transparent_hugepage/enabled")
MISSING = re.compile(r'openat\(AT_FDCWD, "/etc/hakmem\.conf", .*\) = -1 ENOENT \(.*\)')


def file_calls(program: Path, library: Path, out: Path) -> list[str]:
    command = ["strace", "-f", "-o", str(out), "-e", f"trace={FILES}", "-e", "signal=none"]
    command += ["-E", f"LD_PRELOAD={library}", str(program)]
    done = ran(*command, env=clean_environment())
    assert done.returncode == 0, done.stderr
    calls = [line.split(maxsplit=1)[1] for line in out.read_text().splitlines()]
    # Anonymous memory has no file, though its descriptor is an argument.
    return [call for call in calls if not call.startswith(("mmap", "+++"))]


@pytest.mark.skipif(Path(SYSTEM_FILE).exists(), reason=f"there is a {SYSTEM_FILE} here")
def test_one_failing_openat(once: Path, library: Path, nothing: Path, tmp_path: Path) -> None:
    skip_without_strace()
    ours = file_calls(once, library, tmp_path / "ours")
    of_any = file_calls(once, nothing, tmp_path / "any")
    print("\nwith hakmem:", *ours, "with a library of nothing:", *of_any, sep="\n  ")
    missing = [call for call in ours if MISSING.fullmatch(call)]
    assert len(missing) == 1

    def names(calls: list[str]) -> Counter[str]:
        return Counter(call.split("(")[0] for call in calls)

    system = ["openat", "read", "close"] if HUGE_PAGES.exists() else ["openat"]
    assert names(ours) == names(of_any) + Counter(["openat", *system])


def test_preloaded(library: Path) -> None:
    """In a real program the first call comes early; the environment is there already."""
    environment = clean_environment() | {"LD_PRELOAD": str(library), "HAKMEM_SCAVENGER": "maybe"}
    for command in (["ls", "-d", "/"], ["bash", "-c", ":"], [sys.executable, "-c", "pass"]):
        done = ran(*command, env=environment)
        assert done.returncode == 0, done.stderr
        assert done.stderr == (
            "hakmem: environment: HAKMEM_SCAVENGER=maybe: expected on or off; "
            "the default stays, on\n"
        ), command
