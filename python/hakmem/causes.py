"""Why hakmem is not active somewhere, and what to do: every cause once, in the words that are
printed."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Cause:
    """A cause in a program: `fill` completes the sentences."""

    id: str
    fill: tuple[tuple[str, str], ...] = ()

    def _filled(self, at: int) -> str:
        return CAUSES[self.id][at].format(**dict(self.fill))

    @property
    def brief(self) -> str:
        return self._filled(0)

    @property
    def why(self) -> str:
        return self._filled(1)

    @property
    def remedy(self) -> str:
        return self._filled(2)


def cause(id: str, **fill: object) -> Cause:
    return Cause(id, tuple((name, str(value)) for name, value in fill.items()))


# id: what it is in a few words, why that matters, what to do.
CAUSES = {
    "static": (
        "it is linked statically",
        "A static program contains its malloc, and no loader can replace it.",
        "Link it with libhakmem.a, or link it dynamically and use 'hakmem run'.",
    ),
    "go": (
        "it is a Go program without cgo",
        "It uses no C library: Go's runtime gets its memory directly from the kernel.",
        "Nothing: hakmem can't serve it. (Built with CGO_ENABLED=1, its C parts use hakmem.)",
    ),
    "privileged": (
        "it runs with raised privileges",
        "The file is setuid or setgid, or has capabilities ({file}). The loader ignores LD_PRELOAD "
        "in such programs.",
        "Start it as the user that it switches to, link it with hakmem, or add the library to "
        "/etc/ld.so.preload as root, which affects every program on the machine.",
    ),
    "own": (
        "it contains {allocator}",
        "{file} defines malloc itself, and a program's own definition wins over every library's.",
        "Build it without that allocator (often an option such as -DUSE_JEMALLOC=no or "
        "MALLOC=libc), or link it with libhakmem.a instead.",
    ),
    "preloaded": (
        "{allocator} is preloaded first",
        "LD_PRELOAD or /etc/ld.so.preload names {file} first, and the program uses the first one.",
        "Remove it there, or start the program with 'hakmem run', which puts hakmem first.",
    ),
    "linked": (
        "it is linked with {allocator}",
        "The program or one of its libraries needs {file}, which comes before the C library.",
        "Start it with 'hakmem run': a preloaded library comes before a linked one.",
    ),
    "bound": (
        "some of its files call {allocator}",
        "{callers} use the malloc of {file}. Such a library defines malloc itself, or was loaded "
        "with RTLD_DEEPBIND or dlmopen.",
        "Nothing, as long as these files free only what they allocated. Otherwise build them "
        "without that allocator.",
    ),
    "musl": (
        "it is a program for {program}, and this libhakmem.so is for {library}",
        "A library built for one C library can't be loaded into a program built for another. "
        "musl's loader ends the program; glibc's prints a warning and continues without it.",
        "Build hakmem for {program} (for musl: cmake --preset musl) and preload that, or link the "
        "program with its libhakmem.a.",
    ),
    "architecture": (
        "it is a program for another processor ({program})",
        "{file} is for {library}. A program can only load libraries built for its processor.",
        "Run a program for {library}, or build hakmem for {program}. 32-bit programs are not "
        "supported.",
    ),
    "library-architecture": (
        "the library named in LD_PRELOAD is for another processor ({library})",
        "{file} is for {library} and the program for {program}, so the loader ignores the file.",
        "Set LD_PRELOAD to a libhakmem.so for {program}.",
    ),
    "missing": (
        "{file} does not exist",
        "LD_PRELOAD names that file. If it does not exist, the loader only prints a warning. Note "
        "that a container or chroot has a separate file system.",
        "Fix the path, or start the program with 'hakmem run', which knows where the library is.",
    ),
    "unreadable": (
        "the program has no permission to read {file}",
        "LD_PRELOAD names that file, but the program's user can't read it or can't enter a folder "
        "above it. The loader only prints a warning.",
        "Make it readable for all users: chmod a+r on the file, chmod a+x on the folders above it.",
    ),
    "noexec": (
        "{file} is on a file system that is mounted noexec",
        "Code can't be loaded from there. The loader prints a warning and continues without it.",
        "Move the library elsewhere, such as /usr/local/lib.",
    ),
    "damaged": (
        "{file} is not a valid library",
        "LD_PRELOAD names that file, but the loader can't read it as a library.",
        "Build or install hakmem again.",
    ),
    "refused": (
        "the loader rejected {file}",
        "LD_PRELOAD names it and it is readable, but it is not in the program's memory. It may "
        "need a newer C library, or AppArmor, SELinux or a sandbox forbids the program to load it.",
        "Look for the loader's message on the program's standard error, and for denials in the "
        "kernel log (dmesg).",
    ),
    "dropped": (
        "{wrapper} removed LD_PRELOAD",
        "The variable was set, and {wrapper}, or a program that it started, removed it from the "
        "environment, as sudo, su, env -i and service managers do.",
        "Put 'hakmem run' after the wrapper, before the program: hakmem run {command}",
    ),
    "not-asked": (
        "LD_PRELOAD was not set",
        "The program was started without LD_PRELOAD, or what started it removed the variable.",
        "Start it with: hakmem run {command}",
    ),
    "unknown-malloc": (
        "malloc resolves to another library",
        "hakmem is loaded, but the program calls the malloc of {file}.",
        "Please report this, with 'hakmem doctor --json'.",
    ),
}

# About the installation.
CAUSES |= {
    "no-library": (
        "hakmem's library can't be read",
        "The command expects it at {file}: {error}.",
        "Install hakmem again; in a build tree run: cmake --build --preset release",
    ),
    "not-loaded": (
        "hakmem's library can't be loaded",
        "The loader says: {error}.",
        "Build hakmem on this system, or install the package for this system.",
    ),
}

# Why it cannot be determined whether hakmem is active; then notes for programs in which it is.
CAUSES |= {
    "stripped": (
        "it contains hakmem, but its symbols were stripped",
        "hakmem is linked in, but without symbols the doctor can't see whether malloc is hakmem's.",
        "Run the doctor on the program before it is stripped.",
    ),
    "unseen": (
        "it ended, or called exec, too soon",
        "Its memory was gone before the doctor could read it.",
        "Run it again, or run the doctor with its PID while it runs.",
    ),
    "memory": (
        "no permission to read its memory",
        "The doctor has to read the process's memory, which the kernel does not permit: {reason}.",
        "Run: sudo hakmem doctor {pid}",
    ),
    "deleted": (
        "{file} was removed or replaced since the program started",
        "The program still uses the old file. The doctor needs to read that file, and only root "
        "still can.",
        "Run: sudo hakmem doctor {pid}",
    ),
    "unreadable-program": (
        "its file can't be read",
        "{file} is not an ELF file, or this user has no permission to read it.",
        "Run the doctor as root, or as a user with permission to read the file.",
    ),
    "Python": (
        "Python's own heap",
        "Python calls malloc only for blocks above 512 bytes. It keeps smaller objects in a "
        "separate heap that it maps directly from the kernel. hakmem's statistics do not include "
        "it.",
        "PYTHONMALLOC=malloc makes Python call malloc for every object; this is seldom faster.",
    ),
    "Python-free-threaded": (
        "Python's own heap",
        "A Python without the GIL keeps all of its objects in a separate heap, which is "
        "mimalloc's. Only extensions in C and some modules call malloc. hakmem's statistics and "
        "profiles do not include the rest.",
        "Nothing: such a Python ends at its start where PYTHONMALLOC=malloc is set.",
    ),
    "PyPy": (
        "PyPy's own heap",
        "PyPy keeps small objects in a separate heap, in pieces that malloc gives it. Profiles "
        "show PyPy's own functions, not those of the program in Python.",
        "For functions of Python in profiles, run the program with CPython.",
    ),
    "Java": (
        "Java's own heap",
        "Java's objects are in the heap of the virtual machine; only native code calls malloc.",
        "Nothing needs to be done.",
    ),
    "Node.js": (
        "JavaScript's own heap",
        "JavaScript's objects are in V8's heap; buffers and native code call malloc.",
        "Nothing needs to be done.",
    ),
    "LuaJIT": (
        "LuaJIT's own heap",
        "LuaJIT keeps its objects in a separate heap that it maps directly from the kernel, unless "
        "it was built with LUAJIT_USE_SYSMALLOC. Only C code calls malloc.",
        "Nothing needs to be done.",
    ),
    "Go": (
        "Go's own heap",
        "Go's objects are in the heap of Go's runtime; only C code calls malloc.",
        "Nothing needs to be done.",
    ),
    "libc-handle": (
        "functions that the program looks up in the C library itself",
        "{file} can call functions of the C library by its file name, as "
        "ctypes.CDLL('libc.so.6').malloc_trim(0) does. That calls the C library's own function, "
        "which does not know hakmem's memory: its malloc_trim returns nothing, its mallinfo2 shows "
        "an empty heap, and its free ends the program. The doctor can't see whether such calls are "
        "made.",
        "In Python, ctypes.CDLL(None).malloc_trim(0) calls hakmem's; in C, "
        "dlsym(RTLD_DEFAULT, ...).",
    ),
    "killed": (
        "the signal {signal} ended the program",
        "{program} did not exit by itself. That hakmem was active does not mean that all is well.",
        "Run it without hakmem. If it ends in the same way there, hakmem is not the reason. "
        "Otherwise look for hakmem's message on standard error (docs/misuse.md), and try 'hakmem "
        "run --debug'.",
    ),
    "malloc-conf": (
        "MALLOC_CONF is set",
        "hakmem does not read jemalloc's options.",
        "Of {options}: {advice}.",
    ),
    "beside": (
        "a second hakmem, called as hakmem_malloc",
        "{file} also contains hakmem under separate names. Memory from hakmem_malloc, or from Rust "
        "code that uses the crate, comes from hakmem in any case.",
        "Nothing needs to be done.",
    ),
}

# Files that contain another allocator, which works beside hakmem: what it is, what does not come
# from hakmem, what can be done. "inner" is any file that is not known by its name.
CAUSES |= {
    "polars": (
        "{file} contains {allocator}",
        "The columns of polars, and everything else that its Rust code allocates, come from "
        "{allocator}. hakmem's statistics do not include them.",
        "Nothing: its wheels are built this way. (If you build polars from source, the feature "
        "default_alloc makes it use malloc.)",
    ),
    "pyarrow": (
        "{file} contains {allocator}",
        "Arrow's buffers, such as the columns of its tables, come from {allocator}. hakmem's "
        "statistics do not include them.",
        "Set ARROW_DEFAULT_MEMORY_POOL=system before the program starts; then the buffers come "
        "from hakmem.",
    ),
    "duckdb": (
        "{file} contains {allocator}",
        "The tables, buffers and caches of DuckDB come from {allocator}. hakmem's statistics do "
        "not include them.",
        "Nothing: its packages are built this way. (If you build DuckDB from source with "
        "BUILD_JEMALLOC=0, it uses malloc.)",
    ),
    "inner": (
        "{file} contains {allocator}",
        "Memory that this file allocates with {allocator} is not in hakmem's statistics. Memory "
        "that it gets from malloc comes from hakmem.",
        "Nothing, unless you can build the file without its allocator (in Rust: without "
        "#[global_allocator]).",
    ),
}

INSTALLATION = ("no-library", "not-loaded")
UNKNOWN = ("stripped", "unseen", "memory", "deleted", "unreadable-program")
NOTES = (
    *("Python", "Python-free-threaded", "PyPy", "Java", "Node.js", "LuaJIT", "Go"),
    *("libc-handle", "killed", "malloc-conf", "beside"),
)
OBJECTS = ("polars", "pyarrow", "duckdb", "inner")
