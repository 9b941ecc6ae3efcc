"""What `hakmem compare` was asked for, checked before anything takes long. Needs none of the
libraries that the command installs."""

from __future__ import annotations

import argparse
import shutil
from dataclasses import dataclass

from hakmem.arguments import WrongUse
from hakmem_yardstick.chosen import known, measures, part, writable
from hakmem_yardstick.subject import JUDGED, MEASURES, Program


@dataclass(frozen=True)
class Asked:
    program: Program
    judged: tuple[str, ...]
    precision: float


def asked(arguments: argparse.Namespace) -> Asked:
    """Raises WrongUse."""
    for option in ("json", "markdown", "html", "output"):
        writable(f"--{option}", getattr(arguments, option))
    if arguments.stdin is not None and not arguments.stdin.is_file():
        raise WrongUse(f"--stdin {arguments.stdin}: there is no such file")
    if arguments.cd is not None and not arguments.cd.is_dir():
        raise WrongUse(f"--cd {arguments.cd}: there is no such folder")
    makes_it = arguments.setup is not None or arguments.prepare is not None
    if not makes_it and shutil.which(arguments.behind[0]) is None:
        raise WrongUse(f"{arguments.behind[0]}: no such program")
    known(arguments.allocators)
    program = Program(
        tuple(arguments.behind),
        stdin=arguments.stdin,
        cwd=arguments.cd,
        setup=arguments.setup,
        prepare=arguments.prepare,
        timeout=arguments.timeout,
        ignore_status=arguments.ignore_exit_status,
        check_output=arguments.check_output,
        output=arguments.output,
    )
    judged = JUDGED if arguments.measures is None else measures(arguments.measures, MEASURES)
    return Asked(program, judged, part("--precision", arguments.precision))
