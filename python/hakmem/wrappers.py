"""Functions that only pass calls on to the allocator: who calls them says more of what the memory
is for. So a row of a table is named by the first function that is none of these; the whole stack
has them all."""

from __future__ import annotations

import argparse
import functools
import re
from collections.abc import Iterable

# By name, without parameters of C++.
BUILT_IN = {
    "libc": r"(__)?(str|wcs)n?dup",
    "C++": r"(operator new|operator new\[\])"
    r"|((std|__gnu_cxx)::(\w+::)?_*(new_|malloc_)?allocator(_traits)?<.*>::allocate(\[abi:\w+\])?)"
    r"|(std::_Vector_base<.*>::_M_allocate)|std::(_M_)?allocate",
    "GNU and git": r"(do_|rpl_|sh_)?x\w{0,6}alloc(array|z)?|x(str|mem)n?dupz?|x?charalloc"
    r"|_obstack_(newchunk|begin\w*)|ggc_(internal_)?(cleared_)?(alloc|realloc)\w*",
    "redis and valkey": r"(valkey_)?z(try)?(m|c|re)alloc\w*|zstrdup|valkey_(m|c|re)alloc"
    r"|hi_\w*(alloc|dup)",
    "GLib": r"g_(try_)?(m|re)alloc0?(_n)?|g_aligned_alloc0?|g_(strn?|mem)dup2?"
    r"|g_slice_(alloc0?|copy)",
    "Python": r"_?Py(Mem|DataMem)_\w+|_?PyObject_(Malloc|Calloc|Realloc|New|NewVar)"
    r"|_?PyObject_GC_(Alloc|Malloc|Calloc|New|NewVar|Resize)|_?PyType_(GenericAlloc|AllocNoTrack)"
    r"|gc_alloc|pymalloc_\w+|new_arena",
    "Ruby": r"(ruby|rb|objspace|rb_gc_impl)_x?(m|c|re)alloc\w*|ruby_strdup",
    "PHP": r"_?(safe_)?p?e(m|c|re)alloc\w*|_?safe_p?(m|re)alloc|__zend_(m|c|re)alloc"
    r"|zend_mm_\w*alloc\w*|_?p?estrn?dup",
    "Perl and Lua": r"Perl_safesys(m|c|re)alloc|l_alloc|luaM_\w+",
    "OpenJDK": r"os::(m|re)alloc|(Rea|A)llocateHeap|Unsafe_(Rea|A)llocateMemory0",
    "PostgreSQL": r"re?palloc\w*|palloc\w*|pn?strdup|pg_(m|re)alloc\w*|pg_strdup"
    r"|MemoryContext(Alloc|Strdup)\w*|(AllocSet|Generation|Slab|Bump)(Alloc|Realloc)\w*",
    "SQLite": r"sqlite3_?(Mem|Db)?([mM]|[rR]e)alloc\w*|sqlite3DbStrN?Dup|mallocWithAlarm"
    r"|db(Malloc|Realloc)\w*",
    "OpenSSL": r"CRYPTO_(secure_)?(clear_|aligned_)?(m|z|c|re)alloc\w*|CRYPTO_(strn?|mem)dup",
    "LLVM": r"llvm::(safe_(m|c|re)alloc|allocate_buffer)",
}
_PARAMETERS = r"(\(.*\)( const)?)?(\[clone .*\])?"


class Wrappers:
    """`more`: names beside those that are known; `*` stands for anything."""

    def __init__(self, more: Iterable[str] = ()) -> None:
        own = [".*".join(map(re.escape, name.split("*"))) for name in more]
        self._names = re.compile(
            f"(?:{'|'.join([*BUILT_IN.values(), *own])}){_PARAMETERS}", re.DOTALL
        )
        self.has = functools.lru_cache(maxsize=None)(self._has)

    def _has(self, function: str) -> bool:
        return self._names.fullmatch(function) is not None


KNOWN = Wrappers()


def add_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--wrapper",
        metavar="NAME",
        action="append",
        default=[],
        help="a function that only calls the allocator for others, as xmalloc does: a row is named"
        " by what calls it; * stands for anything; may be repeated",
    )
