"""What to tell programs that run code of another language, so that its functions have names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

PAGE = "docs/profile.md#code-made-at-run-time"
# By the name of the runtime's file: the language, and who writes names.
RUNTIMES = (
    (
        r"node(js)?|libnode\.so.*",
        "JavaScript",
        "node --perf-prof --interpreted-frames-native-stack writes them",
    ),
    (
        r"libjvm\.so",
        "Java",
        "java -XX:+PreserveFramePointer -XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit"
        " writes those that are compiled; of a running process, jcmd PID Compiler.perfmap",
    ),
    (
        r"php(-fpm|-cgi)?[0-9.]*|libphp[0-9.]*\.so",
        "PHP",
        "its compiler writes those that it compiles, with -d opcache.jit_debug=16",
    ),
    (
        r"libcoreclr\.so",
        ".NET",
        "with DOTNET_PerfMapEnabled=1 it writes them, with DOTNET_ReadyToRun=0 its libraries', too",
    ),
    (
        r"mono(-sgen|-boehm)?|libmono(sgen|boehm)?-[0-9.]+\.so.*",
        "Mono",
        "MONO_DEBUG=disable_omit_fp mono --jitmap writes them",
    ),
    (r"libpypy.*\.so.*|pypy[0-9.]*-c", "Python", "PyPy writes none; CPython's are shown"),
    (r"(lib)?luajit([-0-9.]*|.*\.so.*)", "Lua", "LuaJIT writes none"),
    (r"beam\.smp", "Erlang", "its processes have stacks of their own, which are not followed"),
)


def without_names(paths: Iterable[str]) -> Iterator[str]:
    """Of a process that wrote no names of the code that it made; `paths`: files that it calls."""
    names = {path.rpartition("/")[2] for path in paths}
    for pattern, language, advice in RUNTIMES:
        if any(re.fullmatch(pattern, name) for name in names):
            yield f"functions of {language} have no names here: {advice} ({PAGE})"
