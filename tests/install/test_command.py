"""The installed command runs programs on the installed library."""

import sys
from pathlib import Path

from tests.install.tree import HERE, SOURCE, Installed, check_commit, check_sheet, done


def test_runs_a_program_on_the_installed_library(installed: Installed) -> None:
    maps = done([installed.command, "run", "cat", "/proc/self/maps"])
    assert str((installed.libraries / "libhakmem.so").resolve()) in maps


def test_runs_through_a_link_from_elsewhere(installed: Installed, tmp_path: Path) -> None:
    (tmp_path / "hakmem").symlink_to(installed.command)
    maps = done(["hakmem", "run", "cat", "/proc/self/maps"], PATH=f"{tmp_path}:/usr/bin:/bin")
    assert str((installed.libraries / "libhakmem.so").resolve()) in maps


def test_the_python_part_knows_the_installed_library(installed: Installed) -> None:
    """Options come from the installed table; doctor without a program tries a small one."""
    assert "keep_bytes" in done([installed.command, "options"])
    assert str(installed.libraries) in done([installed.command, "doctor"])


def test_reads_a_process(installed: Installed) -> None:
    check_sheet(installed.command)


def test_names_its_commit(installed: Installed, made: Path | None) -> None:
    check_commit(done([installed.command, "--version"]), made)


def test_manual_pages_and_completions(installed: Installed) -> None:
    share = installed.prefix / "share"
    for section in "man1", "man3":
        found = [path for path in (share / "man" / section).iterdir() if path.exists()]
        pages = {path.name.removesuffix(".gz") for path in found}
        assert pages == {path.name for path in (SOURCE / "share" / "man" / section).iterdir()}
    completed = {path.relative_to(share).parts[0] for path in share.glob("*/*completions/*hakmem")}
    completed |= {path.relative_to(share).parts[0] for path in share.glob("zsh/*/_hakmem")}
    assert completed == {"bash-completion", "zsh"}


def test_every_verb(installed: Installed) -> None:
    """With Debian's Python and modules, the oldest that are permitted."""
    done([sys.executable, HERE / "verbs.py", installed.command])
