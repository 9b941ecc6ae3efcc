"""Run under an allocator: says where its functions come from, and uses them on checked content.

Prints one line of JSON, and waits. It asks the loader for the first library, in the order by which
programs' calls are bound, that has the function. A program at a fixed address may stand before all
with a small table of its own; where that leads is seen from outside.
"""

import contextlib
import ctypes
import json
import sys
import threading

NAMES = (
    "malloc",
    "free",
    "calloc",
    "realloc",
    "memalign",
    "posix_memalign",
    "aligned_alloc",
    "malloc_usable_size",
)
NEW, DELETE = "_Znwm", "_ZdlPv"
SIZES = (1, 8, 16, 24, 64, 100, 256, 1000, 4096, 10_000, 40_000, 300_000, 1_500_000)
ROUNDS, THREADS = 4, 2


class Found(ctypes.Structure):
    _fields_ = [
        ("file", ctypes.c_char_p),
        ("base", ctypes.c_void_p),
        ("symbol", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
    ]


def loaded_from(name: str) -> str | None:
    try:
        function = getattr(ctypes.CDLL(None), name)
    except AttributeError:
        return None
    found = Found()
    address = ctypes.cast(function, ctypes.c_void_p)
    ctypes.CDLL(None).dladdr(address, ctypes.byref(found))
    return found.file.decode() if found.file else None


def version() -> str:
    """As the library itself says; empty where it has no function for it that is known here."""
    here = ctypes.CDLL(None)
    if hasattr(here, "hakmem_version"):
        number = here.hakmem_version()
        return f"{number // 10000}.{number // 100 % 100}.{number % 100}"
    if hasattr(here, "mi_version"):
        number = here.mi_version()
        parts = (10000, 100) if number >= 10000 else (100, 10)
        return f"{number // parts[0]}.{number % parts[0] // parts[1]}.{number % parts[1]}"
    if hasattr(here, "mallctl"):
        text, size = ctypes.c_char_p(), ctypes.c_size_t(ctypes.sizeof(ctypes.c_char_p))
        if here.mallctl(b"version", ctypes.byref(text), ctypes.byref(size), None, 0) == 0:
            return (text.value or b"").decode().split("-")[0]
    if hasattr(here, "tc_version"):
        here.tc_version.restype = ctypes.c_char_p
        major, minor = ctypes.c_int(), ctypes.c_int()
        here.tc_version(ctypes.byref(major), ctypes.byref(minor), None)
        return f"{major.value}.{minor.value}"
    return ""


def use() -> None:
    """Raises AssertionError where a block isn't aligned, is handed out twice or loses content."""
    here = ctypes.CDLL(None)
    for name in ("malloc", "calloc", "realloc", "memalign", "aligned_alloc"):
        getattr(here, name).restype = ctypes.c_void_p
    here.malloc_usable_size.restype = ctypes.c_size_t
    size_of, address = ctypes.c_size_t, ctypes.c_void_p
    kept: list[tuple[int, int, int]] = []

    def keep(block: int | None, size: int, alignment: int, fill: int) -> None:
        assert block, f"no block of {size}"
        assert block % alignment == 0, (
            f"a block of {size} at {block:#x}, not aligned to {alignment}"
        )
        assert here.malloc_usable_size(address(block)) >= size, f"a block of {size} is smaller"
        ctypes.memset(block, fill, size)
        kept.append((block, size, fill))

    def check(block: int, size: int, fill: int) -> None:
        assert ctypes.string_at(block, size) == bytes([fill]) * size, f"content of {size} is lost"

    for turn in range(ROUNDS):
        for at, size in enumerate(SIZES):
            fill = (turn * len(SIZES) + at) % 255 + 1
            keep(here.malloc(size_of(size)), size, 16 if size >= 16 else 8, fill)
            zeroed = here.calloc(size_of(1), size_of(size))
            assert zeroed, f"no block of {size}"
            check(zeroed, size, 0)
            keep(zeroed, size, 8, fill)
            aligned = (size + 63) // 64 * 64
            keep(here.aligned_alloc(size_of(64), size_of(aligned)), aligned, 64, fill)
            keep(here.memalign(size_of(4096), size_of(size)), size, 4096, fill)
            to = ctypes.c_void_p()
            assert here.posix_memalign(ctypes.byref(to), size_of(32), size_of(size)) == 0
            keep(to.value, size, 32, fill)
            block, old, filled = kept.pop(at % len(kept))
            check(block, old, filled)
            other = SIZES[(turn + at) % len(SIZES)]
            moved = here.realloc(address(block), size_of(other))
            assert moved, f"no block of {other}"
            check(moved, min(old, other), filled)
            keep(moved, other, 8, filled)
            while len(kept) > 40:
                block, old, filled = kept.pop(0)
                check(block, old, filled)
                here.free(address(block))
    for block, old, filled in kept:
        check(block, old, filled)
        here.free(address(block))


def main() -> None:
    failures: list[str] = []

    def in_thread() -> None:
        try:
            use()
        except AssertionError as error:
            failures.append(str(error))

    with contextlib.suppress(OSError):
        # As a program in C++ has it; a library with operators of its own comes before it.
        ctypes.CDLL("libstdc++.so.6", mode=ctypes.RTLD_GLOBAL)
    origins = {name: loaded_from(name) for name in (*NAMES, NEW, DELETE)}
    threads = [threading.Thread(target=in_thread) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    in_thread()
    for thread in threads:
        thread.join()
    print(json.dumps({"origins": origins, "version": version(), "failures": failures}), flush=True)
    sys.stdin.read()  # it is looked at from outside, then let go


if __name__ == "__main__":
    main()
