"""The functions of libc's that the library calls, by its source files.

Another library may stand before libc's functions, and allocate in there, or load a library, or wait
for a thread that allocates. So they are called where no lock is held, as each file here does, and
what finds and frees blocks calls none at all.
"""

from collections import defaultdict
from pathlib import Path

from tests.ran import ran

# Kept by the compiler and the linker; not functions that a library replaces.
OF_THE_COMPILER = {"_GLOBAL_OFFSET_TABLE_", "__popcountdi2", "__errno_location"}
DATA = {"environ", "__environ", "__libc_single_threaded"}

SETS_OF_SIGNALS = {"sigemptyset", "sigfillset", "sigaddset", "sigdelset", "sigismember"}
# The thread is in the middle of a call of the program's, before or after what it does with locks.
BLOCKS_ARE_FILLED = {"memset", "memcpy"}
# Statistics, sheets and reports that somebody asked for; they take no lock.
TEXT = {"memchr", "memcmp", "memcpy", "memmove", "memset", "strcmp", "strcspn", "strlen", "strncmp"}
TEXT |= {"strrchr", "strspn", "strstr"}
CALLS = {
    # before the start's lock is taken, and after it
    "os_linux": {"getauxval", "__register_atfork", "pthread_atfork", "atexit"}
    | {"__cxa_thread_atexit_impl"},
    "life": {"pthread_key_create", "pthread_getspecific", "pthread_setspecific"},
    "scavenger": {"pthread_create", "pthread_join", "pthread_sigmask", "sigfillset"}
    | {f"pthread_attr_{what}" for what in ("init", "destroy", "setstacksize")},
    "profiling": {"exit"},  # its address: whether it is on the stack
    "malloc": BLOCKS_ARE_FILLED,
    "slow": BLOCKS_ARE_FILLED,
    "realloc": BLOCKS_ARE_FILLED,
    "hardened": BLOCKS_ARE_FILLED,
    "hardening": BLOCKS_ARE_FILLED,
    "huge": BLOCKS_ARE_FILLED,
    "forbidden": BLOCKS_ARE_FILLED,
    "guarded": BLOCKS_ARE_FILLED,
    "heap": BLOCKS_ARE_FILLED,
    "sampled": BLOCKS_ARE_FILLED,  # at the rate's change
    "self_linux": {"sigaction", "sigpending", "pthread_sigmask"}
    | BLOCKS_ARE_FILLED
    | {"sigsetjmp", "__sigsetjmp", "siglongjmp"}
    | SETS_OF_SIGNALS,
    "statistics": {"sigaction", "sigfillset"} | TEXT,
    "backtrace": {"_dl_find_object", "_Unwind_Backtrace"}
    | {f"_Unwind_Get{what}" for what in ("CFA", "GR", "IP", "IPInfo")},
    "module": {"dl_iterate_phdr"},
    "report": {"strncmp"} | BLOCKS_ARE_FILLED,
    "glibc": {"fprintf", "fputs", "fwrite"},
    **dict.fromkeys(("look", "own", "walk"), TEXT),
    "target": {"clock_gettime", "getauxval", "strchr"} | TEXT,
}


def called(archive: Path) -> dict[str, set[str]]:
    """What each object of an archive needs that no other object has."""
    listed = ran("nm", "--print-file-name", archive, check=True)
    defined: set[str] = set()
    needed: dict[str, set[str]] = defaultdict(set)
    for line in listed.stdout.splitlines():
        _, member, symbol = line.split(":", 2)
        kind, name = symbol.split()[-2:]
        if kind in "Uwv":
            needed[member.split(".")[0]].add(name)
        else:
            defined.add(name)
    others = {name for names in needed.values() for name in names if name.startswith("__aarch64_")}
    known = defined | OF_THE_COMPILER | DATA | others  # those are libgcc's atomics
    return {file: names - known for file, names in needed.items()}


def test_libc_is_called_where_no_lock_is_held(objects: Path) -> None:
    found = called(objects)
    assert {"shards", "stacks", "refill", "slow", "os_linux"} <= set(found), "the objects of src/"
    new = {file: names - CALLS.get(file, set()) for file, names in found.items()}
    assert {file: names for file, names in new.items() if names} == {}
