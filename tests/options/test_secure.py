"""A program with raised privileges takes nothing from the user who started it, and from the
system's file only what makes it safer."""

import os
import shutil
from pathlib import Path

import pytest

from tests.nobody import NOBODY, as_nobody, public_folder
from tests.options.surroundings import ask, other_etc
from tools.options import number, table

DEFAULTS = {option.name: number(option.value) for option in table()}
OTHER = NOBODY - 1


@pytest.mark.parametrize(("mode", "privileged"), [(0o2755, True), (0o4755, True), (0o755, False)])
def test_who_is_listened_to(mode: int, privileged: bool, show: Path) -> None:
    nobody = as_nobody()
    with public_folder() as folder:
        program = Path(shutil.copy(show, folder))
        os.chown(program, OTHER, OTHER)
        program.chmod(mode)
        file = folder / "file"
        file.write_text("keep_bytes = 2M\nnonsense = 1\n")
        system_file = "stack_bytes = 1M\nzero_freed = on\nstats_file = /tmp/x\nshuffle = of\n"
        command = [*other_etc(folder, system_file), *nobody, str(program)]
        variables = {"HAKMEM_CONFIG": str(file), "HAKMEM_PROFILE_SAMPLES": "3", "HAKMEM_LERN": "1"}
        outcome = ask(command, *DEFAULTS, **variables)
        if privileged and not outcome.privileged:
            pytest.skip("files here give no privileges (mounted nosuid?)")
        assert outcome.privileged == privileged
        safer = {"zero_freed": 1}
        set_here = {"stack_bytes": 1 << 20, "keep_bytes": 2 << 20, "profile_samples": 3}
        set_here |= safer | {"stats_file": 1}
        assert outcome.values == (DEFAULTS | safer if privileged else DEFAULTS | set_here)
        assert len(outcome.complaints) == (0 if privileged else 3), outcome.complaints
