"""Run under an allocator: says where its functions come from.

Prints one line of JSON, and waits. It asks the loader for the first library, in the order by which
programs' calls are bound, that has the function. A program at a fixed address may stand before all
with a small table of its own; where that leads is seen from outside.
"""

import contextlib
import ctypes
import json
import sys

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


def main() -> None:
    with contextlib.suppress(OSError):
        # As a program in C++ has it; a library with operators of its own comes before it.
        ctypes.CDLL("libstdc++.so.6", mode=ctypes.RTLD_GLOBAL)
    origins = {name: loaded_from(name) for name in (*NAMES, NEW, DELETE)}
    print(json.dumps({"origins": origins, "version": version()}), flush=True)
    sys.stdin.read()  # it is looked at from outside, then let go


if __name__ == "__main__":
    main()
