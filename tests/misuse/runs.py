"""Runs a case of misuse in one of three forms, and parses the report."""

import os
import re
from dataclasses import dataclass
from pathlib import Path

from tests.ran import ran

FORMS = ["preload", "static", "names"]
INSIDES = ["static", "names"]  # the insides are linked in, and the program sets the policy

LINE = "hakmem: "
END = "the program ends here (SIGABRT)"
IGNORED = "the call is ignored, the program goes on"
ADVICE_TWICE = "find the other call that freed it; valgrind and AddressSanitizer show both"
ADVICE_MOVED = "pass the pointer that malloc returned, not one that was moved from it"
ADVICE_FOREIGN = (
    "pass only what malloc and its kin returned; other memory goes back to whoever gave it"
)
LATE = "found late: the wrong call came before the one shown, perhaps in another thread"
FRAME = re.compile(r"#(\d+) 0x[0-9a-f]+(?: (\S+)\+0x[0-9a-f]+)?(?: \((.+)\+(0x[0-9a-f]+)\))?")


def run_with(
    library: Path, program: Path, *arguments: object, **options: str
) -> tuple[int, str, list[str]]:
    """With these options of hakmem: the exit status, the output, and the report's lines; all of
    standard error must be hakmem's."""
    variables = {f"HAKMEM_{name.upper()}": value for name, value in options.items()}
    done = ran(
        program, *map(str, arguments), env=os.environ | {"LD_PRELOAD": str(library)} | variables
    )
    lines = done.stderr.splitlines()
    assert all(line.startswith(LINE) for line in lines), done.stderr
    return done.returncode, done.stdout, [line.removeprefix(LINE) for line in lines]


@dataclass
class Run:
    form: str
    status: int  # as subprocess: minus the signal
    output: str
    error: str

    @property
    def culprit(self) -> str:
        """The last address that was announced, as a report prints it."""
        found = re.findall(r"culprit (0x[0-9a-f]+)", self.output)
        assert found, f"no culprit was announced: {self}"
        return str(found[-1])

    @property
    def lines(self) -> list[str]:
        """What hakmem said, line by line; fails on a line that is not hakmem's."""
        lines = self.error.splitlines()
        for line in lines:
            assert line.startswith(LINE), f"expected '{LINE}' before every line, found {line!r}"
        return [line.removeprefix(LINE) for line in lines]

    @property
    def frames(self) -> list[re.Match[str]]:
        return [match for line in self.lines if (match := FRAME.fullmatch(line))]

    @property
    def caller(self) -> re.Match[str]:
        """The first frame but for free's own, which debug builds show."""
        return next(frame for frame in self.frames if frame[2] not in ("free", "hakmem_free"))

    def functions(self) -> list[str]:
        return [frame[2] for frame in self.frames if frame[2]]


@dataclass
class Programs:
    folder: Path
    library: Path

    def run(self, form: str, *arguments: str, **variables: str) -> Run:
        program = self.folder / f"misuse_{form}"
        environment = dict(os.environ) | variables
        if form == "preload":
            environment["LD_PRELOAD"] = str(self.library)
            if "--go-on" in arguments:
                environment["HAKMEM_ABORT_ON_MISUSE"] = "0"
        done = ran(str(program), *arguments, env=environment)
        return Run(form, done.returncode, done.stdout, done.stderr)
