"""The library beside libraries that Debian's packages have for preloading, in both orders: programs
print and end as without hakmem. `--install` brings the packages, and then none may be missing."""

import os
import shutil
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.programs import packages
from tests.ran import clean_environment

LIBRARIES = Path("/usr/lib") / f"{os.uname().machine}-linux-gnu"
HANGS_AFTER = 120  # seconds; a run takes one, at most

PYTHON = """
import os, subprocess, threading
def work():
    kept = [bytes(i) for i in range(3000)]
    del kept[::2]
threads = [threading.Thread(target=work) for _ in range(4)]
[t.start() for t in threads]
[t.join() for t in threads]
print(sum(map(len, [bytes(i % 5000) for i in range(20000)])), os.getuid())
print(subprocess.run(["echo", "child"], capture_output=True).stdout)
"""
SQL = """
create table t (n integer primary key, word text);
with recursive c(n) as (select 1 union all select n + 1 from c where n < 20000)
insert into t select n, hex(n * n) from c;
create index by_word on t (word);
select count(*), max(word), sum(length(word)) from t where word > '35';
"""
BASH = 'for i in {1..3000}; do x+=" $i"; a[i]=$x; done; echo ${#x} $(echo ${#a[@]}) | cat'
PROGRAMS = {
    "python": ["/usr/bin/python3", "-c", PYTHON],
    "sqlite": ["/usr/bin/sqlite3", ":memory:", SQL],
    "ls": ["/bin/ls", "-ld", "/", "/usr", "/etc/passwd"],
    "bash": ["/bin/bash", "-c", BASH],
}


@dataclass(frozen=True)
class Wrapper:
    package: str
    library: str
    """What is preloaded, below the folder of libraries."""
    environment: dict[str, str] = field(default_factory=dict)
    launcher: tuple[str, ...] = ()
    """Starts what the library needs; it preloads it too, which counts no more."""


WRAPPERS = {
    "torsocks": Wrapper("torsocks", "torsocks/libtorsocks.so.0"),
    "uid_wrapper": Wrapper(
        "libuid-wrapper", "libuid_wrapper.so", {"UID_WRAPPER": "1", "UID_WRAPPER_ROOT": "1"}
    ),
    "aoss": Wrapper("alsa-oss", "libaoss.so"),
    "faketime": Wrapper(
        "libfaketime", "faketime/libfaketimeMT.so.1", {"FAKETIME": "@2020-01-01 00:00:00"}
    ),
    "fakeroot": Wrapper("fakeroot", "libfakeroot/libfakeroot-sysv.so", {}, ("fakeroot", "--")),
    "fakechroot": Wrapper("fakechroot", "fakechroot/libfakechroot.so"),
    "eatmydata": Wrapper("libeatmydata1", "libeatmydata.so.1"),
    "proxychains": Wrapper(
        "libproxychains4", "libproxychains.so.4", {"PROXYCHAINS_QUIET_MODE": "1"}
    ),
    "umockdev": Wrapper("umockdev", "libumockdev-preload.so.0"),
}


@pytest.fixture(scope="session", autouse=True)
def _installed(request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--install"):
        packages.install([wrapper.package for wrapper in WRAPPERS.values()] + ["sqlite3"])


def need(path: str, request: pytest.FixtureRequest) -> None:
    if shutil.which(path) is None and not Path(path).exists():
        (pytest.fail if request.config.getoption("--install") else pytest.skip)(
            f"{path} is not installed"
        )


def run(
    wrapper: Wrapper, program: Sequence[str], preload: Sequence[Path]
) -> tuple[int | str, str, str]:
    """Status, or that it hangs, and what it has printed."""
    words = ["env", f"LD_PRELOAD={' '.join(map(str, preload))}", *program]
    process = subprocess.Popen(
        [*wrapper.launcher, *words],
        env=clean_environment() | wrapper.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        out, err = process.communicate(timeout=HANGS_AFTER)
        return process.returncode, out, err
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        out, err = process.communicate()
        return "hangs", out, err


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("beside", WRAPPERS)
def test_same_output(beside: str, name: str, library: Path, request: pytest.FixtureRequest) -> None:
    wrapper, program = WRAPPERS[beside], PROGRAMS[name]
    theirs = LIBRARIES / wrapper.library
    for path in (str(theirs), program[0], *wrapper.launcher[:1]):
        need(path, request)
    expected = run(wrapper, program, [theirs])
    assert expected[0] == 0, ("without hakmem", expected)
    for first, second in ((theirs, library), (library, theirs)):
        found = run(wrapper, program, [first, second])
        assert found == expected, f"{first.name} first"
