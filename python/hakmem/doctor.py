"""`hakmem doctor`: does a program use hakmem's malloc, and if not, why and what to do."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import stat
import sys
import textwrap
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from hakmem import elf, look, process, trace
from hakmem.causes import Cause, cause
from hakmem.hint import hint
from hakmem.judge import IN_FORCE, IN_PART, NOT, UNKNOWN, Judgement, judge
from hakmem.library import Library
from hakmem.look import CannotLook
from hakmem.process import Program
from hakmem.profile_text import printable

HELP = "check whether a program uses hakmem; if not, say why and what to do"
DESCRIPTION = HELP[0].upper() + HELP[1:] + "."
EPILOG = """\
With a PROGRAM, runs it with 'hakmem run'. Just before it ends, looks into its memory, and so for
every program that it starts. Its standard output goes to standard error. With a PID, looks at a
running process and changes nothing. Without either, checks the installation with a small program.

examples:
  hakmem doctor                                is hakmem installed correctly
  hakmem doctor -- ls -l                       a program and its arguments
  hakmem doctor --seconds 3 -- redis-server    a program that does not end by itself
  hakmem doctor 4711                           a running process
  hakmem doctor --json 4711 | jq -r .verdict

exit status:
  0  hakmem is active everywhere
  1  not active, or not in every program that was started
  2  wrong usage, or no such program or process
  3  cannot be determined: no permission, or the process ended too soon
"""
EXIT = {IN_FORCE: 0, NOT: 1, IN_PART: 1, UNKNOWN: 3}
NO_SUCH = 2
MOST_SECONDS = 10**8  # three years; timers end somewhere
SECURITY = "security.capability"


class Failure(Exception):
    """A line for the user, and the exit status."""

    def __init__(self, status: int, line: str) -> None:
        super().__init__(line)
        self.status = status


@dataclass(frozen=True)
class Report:
    subject: str
    verdict: str
    judgements: list[Judgement]
    causes: list[Cause]  # of the installation, where there is no program


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "hakmem doctor [-h] [--json] [--seconds N] [PID | -- PROGRAM [ARG]...]"
    parser.add_argument("--json", action="store_true", help="write JSON")
    parser.add_argument(
        "--seconds",
        metavar="N",
        type=float,
        help="ask the program, and what it started, to end after so long (SIGTERM)",
    )
    parser.add_argument("pid", metavar="PID", nargs="?", help="a process that runs")


def run(arguments: argparse.Namespace) -> int:
    try:
        report = _report(arguments)
    except Failure as failure:
        print(f"hakmem doctor: {failure}", file=sys.stderr)
        return failure.status
    if arguments.json:
        text = json.dumps(_json(report, arguments.library), indent=2) + "\n"
    else:
        text = _text(report, min(shutil.get_terminal_size().columns, 100))
    with suppress(BrokenPipeError):  # the verdict is the status, read or not
        print(text, end="", flush=True)
    if report.verdict == IN_FORCE and not arguments.json:
        hint("'hakmem top' shows the processes on hakmem; 'hakmem why PID' says why one is large")
    return EXIT[report.verdict]


def _report(arguments: argparse.Namespace) -> Report:
    library, command = arguments.library, list(arguments.behind)
    if arguments.seconds is not None and not 0 < arguments.seconds <= MOST_SECONDS:
        raise Failure(NO_SUCH, f"--seconds: expected a number above 0, {MOST_SECONDS} at most")
    if arguments.pid is not None:
        if command:
            raise Failure(NO_SUCH, "expected a PID or a program, not both")
        program = _of_pid(_pid(arguments.pid))
        judged = judge(program, library)
        return Report(f"{program.name} (PID {program.pid})", judged.verdict, [judged], [])
    broken = _installation(library, alone=not command)
    if broken is not None:
        return Report("this installation", NOT, [], [broken])
    subject = process.short(command, 500)
    if not command:
        command = [shutil.which("true") or sys.executable]
        subject = f"{command[0]}, started by this installation ({library.resolve()})"
    judgements = _of_command(command, library, arguments.front, arguments.seconds)
    return Report(subject, _together(judgements), judgements, [])


def _installation(library: Path, alone: bool) -> Cause | None:
    """What is wrong with the library itself; asked alone, it is loaded, for the loader's words."""
    try:
        file = elf.read(library)
    except OSError as error:
        return cause("no-library", file=library, error=error.strerror)
    except elf.NotElf:
        return cause("damaged", file=library)
    if alone and file.musl == elf.read(Path(sys.executable)).musl:
        try:
            _ = Library(library).version
        except OSError as error:
            return cause("not-loaded", error=error)
    return None


# ---- a process ----


def _pid(word: str) -> int:
    try:
        return look.read_pid(word)
    except CannotLook as why:
        advice = "a program comes after --, as in 'hakmem doctor -- ls -l'"
        raise Failure(why.status, f"{why}; {advice}") from None


def _of_pid(pid: int) -> Program:
    try:
        look.check_pid(pid)
        program = process.program(pid)
        program.picture = process.look(pid)
    except CannotLook as none:
        raise Failure(none.status, str(none)) from None
    except PermissionError as error:
        why = "it is another user's, or protected; run: sudo hakmem doctor"
        raise Failure(EXIT[UNKNOWN], f"PID {pid}: may not be looked at: {why} {pid}") from error
    except OSError as error:
        raise Failure(NO_SUCH, f"process {pid} has just ended") from error
    _add_ancestors(program)
    return program


def _add_ancestors(program: Program) -> None:
    """What started it, and so on, as far as it may be seen and still runs."""
    pid = program.pid
    try:
        while (pid := _parent(pid)) > 0:
            program.before = process.program(pid)
            program = program.before
    except OSError:
        return


def _parent(pid: int) -> int:
    text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    return int(text.rpartition(")")[2].split()[1])


# ---- a program that is run ----


def _of_command(
    command: Sequence[str], library: Path, front: Path, seconds: float | None
) -> list[Judgement]:
    path = shutil.which(command[0])
    if path is None:
        state = "cannot be executed" if Path(command[0]).exists() else "there is no such program"
        raise Failure(NO_SUCH, f"{command[0]}: {state}")
    unfit = _unfit(path, command, library)
    if unfit is not None:
        return [unfit]
    if not process.seen_in_proc():
        raise Failure(
            EXIT[UNKNOWN], "/proc is not mounted, or shows those of another PID namespace"
        )
    began = time.monotonic()
    try:
        programs = trace.run([str(front), "run", "--", *command], seconds)
    except trace.NotPermitted:
        raise Failure(
            EXIT[UNKNOWN],
            f"{command[0]}: programs may not be traced here (a container without ptrace, or under "
            "a debugger); start it with 'hakmem run' and ask about its PID",
        ) from None
    # The first is the shell that ran bin/hakmem, the next what it starts the program with.
    starter = str(library.resolve().parent / "hakmem/look")
    programs = [program for program in programs[1:] if program.path != starter]
    if not programs:
        late = seconds is not None and time.monotonic() - began >= seconds
        why = f"within {seconds:g} s; give it more --seconds" if late else "(see above)"
        raise Failure(EXIT[UNKNOWN], f"{command[0]}: 'hakmem run' did not start it {why}")
    became = {id(program.before) for program in programs if program.before is not None
              and program.before.pid == program.pid}  # fmt: skip
    judged = [judge(program, library) for program in programs]
    # What a process was before an exec counts only where something is wrong with it.
    return [j for j in judged if j.verdict != UNKNOWN or id(j.program) not in became]


def _unfit(path: str, command: Sequence[str], library: Path) -> Judgement | None:
    """Programs that can't be run here, or not while they are looked at as they would be."""
    environment = {**os.environ, "LD_PRELOAD": str(library)}
    try:
        file = elf.read(Path(path))
    except elf.NotElf:
        return None
    except OSError:
        file = None
    secure = os.geteuid() != 0 and _raises_privileges(Path(path))
    user, groups = os.geteuid(), [os.getegid(), *os.getgroups()]
    program = Program(0, path, list(command), environment, secure, user, groups, Path("/"), file)
    judged = judge(program, library)
    kinds = {cause.id for cause in judged.causes}
    return judged if kinds & {"privileged", "architecture"} else None


def _raises_privileges(path: Path) -> bool:
    if os.statvfs(path).f_flag & os.ST_NOSUID:
        return False
    status = path.stat()
    user = status.st_mode & stat.S_ISUID and status.st_uid != os.geteuid()
    group = status.st_mode & stat.S_ISGID and status.st_gid != os.getegid()
    capabilities = False
    with suppress(OSError):  # a file system without such attributes
        capabilities = SECURITY in os.listxattr(path)
    return bool(user or group or capabilities)


def _together(judgements: Sequence[Judgement]) -> str:
    verdicts = {judgement.verdict for judgement in judgements}
    if len(verdicts) == 1:
        return verdicts.pop()
    return IN_PART if verdicts & {NOT, IN_PART} else UNKNOWN


# ---- what is printed ----

VERDICTS = {
    IN_FORCE: "hakmem is active in {}",
    IN_PART: "hakmem is active in parts of {}, not everywhere",
    NOT: "hakmem is NOT active in {}",
    UNKNOWN: "cannot determine whether hakmem is active in {}",
}

OBJECTS = {
    IN_FORCE: ", but these files contain another allocator",
    IN_PART: "; also, these files contain another allocator",
}


def _text(report: Report, width: int) -> str:
    objects = _objects(report)
    verdict = printable(VERDICTS[report.verdict].format(report.subject))
    lines = [verdict + (OBJECTS[report.verdict] if objects else ""), ""]

    def add(label: str, text: str) -> None:
        head, rest = f"  {label:7} ", " " * 10
        lines.append(textwrap.fill(printable(text), width, initial_indent=head,
                                   subsequent_indent=rest, break_long_words=False,
                                   break_on_hyphens=False))  # fmt: skip

    for cause_, programs in _grouped(report).items():
        add("cause", cause_.brief + (f", in {programs}" if programs else ""))
        add("why", cause_.why)
        add("do", cause_.remedy)
        lines.append("")
    proven = [judgement for judgement in report.judgements if judgement.proof]
    for judgement in proven[:1] if report.verdict == IN_FORCE else proven:
        add("proof", f"{judgement.program.name}: {judgement.proof}" if len(report.judgements) > 1
            else judgement.proof)  # fmt: skip
    if report.verdict == IN_FORCE and len(proven) > 1:
        more = "one more program" if len(proven) == 2 else f"{len(proven) - 1} more programs"
        add("", f"and so it is in {more} that it started")
    for found in objects:
        lines.append("")
        add("file", found.brief)
        add("why", found.why)
        add("do", found.remedy)
    if objects:
        lines.append("")
    for note in dict.fromkeys(note for j in report.judgements for note in j.notes):
        add("note", f"{note.brief}. {note.why} {note.remedy}")
    return "\n".join(lines).rstrip() + "\n"


def _objects(report: Report) -> list[Cause]:
    """Files with an allocator of their own, each once; they matter where hakmem is active."""
    if report.verdict not in OBJECTS:
        return []
    return list(dict.fromkeys(found for j in report.judgements for found in j.objects))


def _grouped(report: Report) -> dict[Cause, str]:
    """Each cause once, with the programs in which it is found where there are several."""
    found: dict[Cause, list[str]] = {cause: [] for cause in report.causes}
    for judgement in report.judgements:
        for cause_ in judgement.causes:
            found.setdefault(cause_, []).append(judgement.program.name)
    alone = len(report.judgements) < 2
    return {
        cause: "" if alone else ", ".join(dict.fromkeys(names)) for cause, names in found.items()
    }


def _json(report: Report, library: Path) -> dict[str, object]:
    return {
        "verdict": report.verdict,
        "subject": report.subject,
        "library": str(library.resolve()),
        "causes": [_cause(cause) for cause in report.causes],
        "programs": [
            {
                "pid": judgement.program.pid or None,
                "path": judgement.program.path,
                "arguments": judgement.program.arguments,
                "verdict": judgement.verdict,
                "proof": judgement.proof or None,
                "causes": [_cause(cause) for cause in judgement.causes],
                "notes": [_cause(cause) for cause in judgement.notes],
                "objects": [_cause(cause) | dict(cause.fill) for cause in judgement.objects],
            }
            for judgement in report.judgements
        ],
    }


def _cause(cause: Cause) -> dict[str, str]:
    return {"id": cause.id, "brief": cause.brief, "why": cause.why, "do": cause.remedy}
