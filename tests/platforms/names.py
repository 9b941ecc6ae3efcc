"""The names that the library may export, and those that it must export."""

import re
from pathlib import Path

HEADER = Path(__file__).parents[2] / "include/hakmem/hakmem.h"

# Names of malloc's family in C, as programs call them. Those that the header declares with the
# prefix hakmem_ must be there; the others may be.
FAMILY = {
    *("malloc", "free", "calloc", "realloc", "reallocarray", "cfree"),
    *("aligned_alloc", "memalign", "posix_memalign", "valloc", "pvalloc"),
    *("free_sized", "free_aligned_sized"),
    *("malloc_usable_size", "malloc_trim", "malloc_stats", "malloc_info", "mallopt"),
    *("mallinfo", "mallinfo2"),
    *("__libc_malloc", "__libc_free", "__libc_calloc", "__libc_realloc", "__libc_memalign"),
    *("__libc_valloc", "__libc_pvalloc", "__posix_memalign", "__libc_reallocarray"),
    *("__libc_mallinfo", "__libc_mallopt"),
}
# The C library's, which other allocators define too.
STRINGS = {"strdup", "strndup"}
# hardened_malloc's, for hakmem_object_size.
HARDENED = {"malloc_object_size"}
# jemalloc's, for programs that are linked with it.
JEMALLOC = {
    *("mallocx", "rallocx", "xallocx", "sallocx", "dallocx", "sdallocx", "nallocx"),
    *("mallctl", "mallctlnametomib", "mallctlbymib", "malloc_stats_print"),
}
# operator new and delete: plain, array; sized, aligned, nothrow.
NEW = {f"_Zn{kind}m{aligned}" for kind in "wa" for aligned in ("", "St11align_val_t")}
DELETE = {
    f"_Zd{kind}Pv{form}"
    for kind in "la"
    for form in (
        *("", "m", "St11align_val_t", "mSt11align_val_t"),
        *("RKSt9nothrow_t", "St11align_val_tRKSt9nothrow_t"),
    )
}
NEW |= {f"{name}RKSt9nothrow_t" for name in NEW}
# Those with a hint: how hot the block is, the size too, Clang's token.
SIZED_NEW = {
    f"__size_returning_new{aligned}{hot}"
    for aligned in ("", "_aligned")
    for hot in ("", "_hot_cold")
}
TOKEN_FAMILY = (
    *("malloc", "calloc", "realloc", "reallocarray"),
    *("aligned_alloc", "memalign", "posix_memalign", "valloc", "pvalloc"),
)
HINTED = (
    {f"{name}12__hot_cold_t" for name in NEW}
    | SIZED_NEW
    | {f"__alloc_token_{name}" for name in (*TOKEN_FAMILY, *NEW)}
)

# In objects, beside these: what compilers put into every one that catches exceptions.
OF_COMPILERS = {"DW.ref.__gxx_personality_v0"}


def declared() -> set[str]:
    """The functions of the public header."""
    text = re.sub(r"/\*.*?\*/", "", HEADER.read_text(), flags=re.DOTALL)
    return set(re.findall(r"\b(hakmem_\w+)\(", text))


def required() -> set[str]:
    ours = declared()
    family = {name for name in FAMILY if f"hakmem_{name}" in ours}
    return ours | family | STRINGS | HARDENED | JEMALLOC | NEW | DELETE | HINTED


def allowed() -> set[str]:
    return required() | FAMILY
