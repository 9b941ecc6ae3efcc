"""Why hakmem is not in force somewhere, and what to do: every cause once, as it is told."""

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
        "A static program has its malloc inside and no loader that could put another in its place.",
        "Link it with libhakmem.a, or link it dynamically.",
    ),
    "go": (
        "it is a Go program without cgo",
        "Such a program has no C library: Go's runtime asks the kernel for memory by itself.",
        "Nothing: hakmem can't serve it. Built with CGO_ENABLED=1, its parts in C are served.",
    ),
    "privileged": (
        "it runs with raised privileges",
        "The file is setuid or setgid or has capabilities ({file}), so that the loader takes no "
        "library from whoever starts it.",
        "Start it as the user that it becomes, link it with hakmem, or have root name the library "
        "in /etc/ld.so.preload, which holds for every program of the machine.",
    ),
    "own": (
        "it brings {allocator} inside",
        "{file} defines malloc itself, and a program's own definition comes before any library's.",
        "Build it without that allocator (often an option such as -DUSE_JEMALLOC=no or "
        "MALLOC=libc), or link it with libhakmem.a in its place.",
    ),
    "preloaded": (
        "{allocator} is preloaded first",
        "LD_PRELOAD or /etc/ld.so.preload names {file} first, and the first serves the program.",
        "Take it out of there, or start the program with 'hakmem run', which puts hakmem first.",
    ),
    "linked": (
        "it is linked with {allocator}",
        "The program or one of its libraries needs {file}, which comes before the C library.",
        "Start it with 'hakmem run': what is preloaded comes before what is linked.",
    ),
    "bound": (
        "some of its files call {allocator}",
        "{callers} found the malloc of {file}: a library that defines its own, or was "
        "loaded with RTLD_DEEPBIND or into a namespace of its own (dlmopen).",
        "Nothing, as long as these files free what they allocate; else build them without it.",
    ),
    "musl": (
        "it is a program for {program}, and this libhakmem.so is for {library}",
        "A library for one C library can't be loaded into a program for another; musl's loader "
        "ends the program, glibc's warns and goes on.",
        "Build hakmem for {program} (for musl: cmake --preset musl) and preload that, or link the "
        "program with its libhakmem.a.",
    ),
    "architecture": (
        "it is a program for another processor ({program})",
        "{file} is for {library}; a program loads libraries of its own kind only.",
        "Run a program for {library}, or build hakmem for {program}. Programs of 32 bits are not "
        "supported.",
    ),
    "library-architecture": (
        "the library named in LD_PRELOAD is for another processor ({library})",
        "{file} is for {library} and the program for {program}, so the loader leaves it out.",
        "Name a libhakmem.so for {program}.",
    ),
    "missing": (
        "there is no {file}",
        "LD_PRELOAD names that file, and the loader only warns where it finds none. A program in a "
        "container or chroot has a file system of its own.",
        "Mend the path, or start the program with 'hakmem run', which knows where the library is.",
    ),
    "unreadable": (
        "it may not read {file}",
        "LD_PRELOAD names that file, but the user that the program runs as has no access to it, or "
        "to a folder above it; the loader only warns.",
        "Make it readable for everybody: chmod a+r the file, chmod a+x the folders above it.",
    ),
    "noexec": (
        "{file} is on a file system that is mounted noexec",
        "From there nothing can be mapped as code, so the loader only warns and goes on.",
        "Put the library elsewhere: /usr/local/lib.",
    ),
    "damaged": (
        "{file} is no library",
        "LD_PRELOAD names that file, but the loader can't read it as a library.",
        "Build or install hakmem anew.",
    ),
    "refused": (
        "the loader did not take {file}",
        "LD_PRELOAD names it and it can be read, but it didn't get into the program's memory: it "
        "may need a newer C library, or something that confines the program (AppArmor, SELinux, a "
        "sandbox) forbids it.",
        "Look for the loader's line on the program's standard error, and for denials in the "
        "kernel's log (dmesg).",
    ),
    "dropped": (
        "{wrapper} took LD_PRELOAD away",
        "The variable was there, and {wrapper}, or what it started, dropped it, as sudo, su, "
        "env -i and service managers do.",
        "Put 'hakmem run' behind what drops it: hakmem run {command}",
    ),
    "not-asked": (
        "nobody asked for it",
        "The program was started without LD_PRELOAD, or what started it took the variable away.",
        "Start it with: hakmem run {command}",
    ),
    "unknown-malloc": (
        "its calls lead elsewhere",
        "The library is loaded, and yet the calls lead to {file}.",
        "Please report this, with 'hakmem doctor --json'.",
    ),
}

# Of the installation.
CAUSES |= {
    "no-library": (
        "its library can't be read",
        "The command looks for it at {file}: {error}.",
        "Install hakmem anew; in a build tree: cmake --build --preset release.",
    ),
    "not-loaded": (
        "its library can't be loaded",
        "The loader says: {error}.",
        "Build hakmem for this system, or install the package that is made for it.",
    ),
}

# The same for what can't be told, and for what should be known although hakmem is in force.
CAUSES |= {
    "stripped": (
        "it holds hakmem, and is stripped",
        "hakmem is linked in, but without symbols nobody can tell whether malloc is hakmem's.",
        "Ask the file before it is stripped.",
    ),
    "unseen": (
        "it ended or was replaced before it could be looked at",
        "Its memory was gone.",
        "Run it again, or ask about its PID while it runs.",
    ),
    "memory": (
        "its memory may not be read",
        "Which malloc its calls lead to stands in its memory, and the kernel lets only root or "
        "whoever may trace it look there.",
        "Run: sudo hakmem doctor {pid}",
    ),
    "deleted": (
        "{file} was removed or replaced since the program started",
        "The program has it in its memory, but what its calls lead to stands in the file, which "
        "only root can still read.",
        "Run: sudo hakmem doctor {pid}",
    ),
    "unreadable-program": (
        "its file can't be read",
        "{file} is no ELF file, or this user may not read it.",
        "Ask as root, or as the user that may read it.",
    ),
    "Python": (
        "Python's own heap",
        "Python asks malloc only for blocks above 512 bytes. Smaller objects lie in a heap of its "
        "own, whose memory it maps from the kernel, so it is not in hakmem's statistics.",
        "To pass every object on: PYTHONMALLOC=malloc. It is seldom faster.",
    ),
    "Java": (
        "Java's own heap",
        "Java's objects lie in a heap of the virtual machine's; only native parts call malloc.",
        "Nothing needs to be done.",
    ),
    "Node.js": (
        "JavaScript's own heap",
        "JavaScript's objects lie in V8's heap; buffers and native parts call malloc.",
        "Nothing needs to be done.",
    ),
    "Go": (
        "Go's own heap",
        "Go's objects lie in a heap of its runtime's; only parts in C call malloc.",
        "Nothing needs to be done.",
    ),
    "beside": (
        "hakmem under names of its own",
        "{file} also holds hakmem beside its malloc: what it asks of that by name (hakmem_malloc, "
        "or Rust's allocations by the crate) is hakmem's in any case.",
        "Nothing needs to be done.",
    ),
}

# Objects that bring an allocator of their own, which works beside hakmem: what it is, what does not
# come from hakmem, what can be done. "inner" is any that is not known by its name.
CAUSES |= {
    "polars": (
        "{file} brings {allocator}",
        "The columns of polars, and all else that its Rust code allocates, come from {allocator}, "
        "not from hakmem, and are not in hakmem's statistics.",
        "Nothing: its wheels are built so. (Built from source, polars has the feature "
        "default_alloc, with which it uses malloc.)",
    ),
    "pyarrow": (
        "{file} brings {allocator}",
        "Arrow's buffers, such as the columns of its tables, come from {allocator}, not from "
        "hakmem, and are not in hakmem's statistics.",
        "Set ARROW_DEFAULT_MEMORY_POOL=system before the program starts: then they are hakmem's.",
    ),
    "duckdb": (
        "{file} brings {allocator}",
        "The tables, buffers and caches of DuckDB come from {allocator}, not from hakmem, and are "
        "not in hakmem's statistics.",
        "Nothing, for a package as it is. (Built from source with BUILD_JEMALLOC=0, DuckDB uses "
        "malloc.)",
    ),
    "inner": (
        "{file} brings {allocator}",
        "What this file allocates by {allocator} does not come from hakmem and is not in hakmem's "
        "statistics. What it asks of malloc is hakmem's.",
        "Nothing, unless the file can be built to use malloc: without its allocator, or in Rust "
        "without #[global_allocator].",
    ),
}

INSTALLATION = ("no-library", "not-loaded")
UNKNOWN = ("stripped", "unseen", "memory", "deleted", "unreadable-program")
NOTES = ("Python", "Java", "Node.js", "Go", "beside")
OBJECTS = ("polars", "pyarrow", "duckdb", "inner")
