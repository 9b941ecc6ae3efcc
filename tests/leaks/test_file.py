"""Files of `--leaks=FILE`, suppressions, and what is said of wrong ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from hakmem import heap_profile, leaks
from hakmem.heap_profile import NoProfile
from tests.leaks.searched import Run

SMALL = """\
heap profile: 3: 300 [3: 300] @ heapprofile
# hakmem rate 1 lost 0 memory 0
3: 300 [3: 300] @ 0x1001 0x2001
# peak 3: 300 samples 3 3
# leaks 1 100 1 50 0 0 1 100
1: 50 [1: 50] @ 0x3001 0x2001
# peak 1: 50 samples 1 1
# leaks 0 0 0 0 1 50 0 0
0: 0 [0: 0] @
# peak 0: 0 samples 0 0
# leaks 0 0 0 0 0 0 7 700
# sites 3

MAPPED_LIBRARIES:
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "x.leaks"
    path.write_text(text)
    return path


def test_read(tmp_path: Path) -> None:
    found = leaks.find(heap_profile.read(write(tmp_path, SMALL)))
    assert leaks.total(found.lost, leaks.LOST) == (1, 100)
    assert leaks.total(found.lost, leaks.THROUGH) == (1, 50)
    assert leaks.total(found.indirect, leaks.OTHER) == (1, 50)
    assert leaks.total(found.reachable, leaks.OTHER) == found.reachable_sum == (8, 800)


def test_every_part_of_it(tmp_path: Path) -> None:
    """Cut anywhere, it is refused."""
    for length in range(len(SMALL)):
        with pytest.raises(NoProfile):
            leaks.find(heap_profile.read(write(tmp_path, SMALL[:length])))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("# leaks 1 100", "# leaks -1 100"),
        ("# leaks 1 100", "# leaks 1"),
        ("1 50 0 0 1 100", "1 50 0 0 1 100 1"),
        ("# leaks 1 100", "# leak 1 100"),
        ("# leaks 1 100", "# leaks 1 99999999999999999999"),
    ],
)
def test_damaged(before: str, after: str, tmp_path: Path) -> None:
    with pytest.raises(NoProfile, match="damaged"):
        heap_profile.read(write(tmp_path, SMALL.replace(before, after, 1)))


def test_a_profile_without_a_search(tmp_path: Path, run: Run) -> None:
    text = "".join(line for line in SMALL.splitlines(keepends=True) if "# leaks" not in line)
    path = write(tmp_path, text)
    with pytest.raises(NoProfile, match="without a search for leaks"):
        leaks.find(heap_profile.read(path))
    ended = run.command("leaks", path)
    assert ended.status == 1 and len(ended.err.splitlines()) == 1


def test_hakmem_profile_reads_it(tmp_path: Path, run: Run) -> None:
    ended = run.command("profile", "--text", write(tmp_path, SMALL))
    assert ended.status == 0 and "in use 350 B in 4 blocks" in ended.out


def test_command(tmp_path: Path, run: Run) -> None:
    path = write(tmp_path, SMALL)
    ended = run.command("leaks", path)
    assert ended.status == 0
    assert ended.out.splitlines()[0] == (
        f"{path}: lost 100 B in 1 block, through them 50 B in 1 block; reachable 800 B in 8 blocks"
    )
    assert run.command("leaks", "--status=3", path).status == 3
    ended = run.command("leaks", "--name", "the program", "-o", "copy.leaks", path)
    assert ended.out.startswith("the program: lost") and ended.out.count("\n") == 1
    assert (run.folder / "copy.leaks").read_text() == SMALL
    assert run.command("leaks", "-o", "/nowhere/x", path).status == 5
    assert run.command("leaks", "/nowhere/x").status == 2


def test_files_of_processes(run: Run) -> None:
    plant = run.programs / "leaks_plant"
    ended = run("--leaks=%p.leaks", plant, "fork")
    assert {path.name for path in run.folder.iterdir()} == {
        f"{number}.leaks" for _, number, _ in ended.said()
    }
    # Without %p a child's has its number in its name.
    for path in run.folder.iterdir():
        path.unlink()
    ended = run("--leaks=x.leaks", plant, "fork")
    child = int(ended.out)
    assert {path.name for path in run.folder.iterdir()} == {"x.leaks", f"x.{child}.leaks"}
    assert "lost_direct" in run.command("leaks", f"x.{child}.leaks").out
    assert "nothing is lost" in run.command("leaks", "x.leaks").out


# ---- suppressions ----


@pytest.mark.parametrize(
    ("pattern", "matches"),
    [
        ("lost_direct", True),
        ("lost_d*t", True),
        ("^lost", True),
        ("direct$", True),
        ("^lost_direct$", True),
        ("^direct", False),
        ("lost$", False),
        ("plant.c", True),
        ("plant?c", False),
        ("leaks_plant", True),
        ("LOST_DIRECT", False),
        ("another", False),
        ("*other*", False),
    ],
)
def test_suppressions(pattern: str, matches: bool, run: Run, tmp_path: Path) -> None:
    known = tmp_path / "known.txt"
    known.write_text(f"# those that are known\n\n leak:{pattern} \n")
    ended = run("--leaks-status=9", f"--leaks-suppressions={known}",
                run.programs / "leaks_plant", "one")  # fmt: skip
    assert ended.status == (0 if matches else 9), ended
    said = "nothing is lost; suppressed 100 B in 1 block" if matches else "lost 100 B in 1 block"
    assert ended.one().startswith(said)


def test_many_suppressions(run: Run, tmp_path: Path) -> None:
    """Each counts, however many there are."""
    files = [tmp_path / f"known{number}" for number in range(100)]
    for file in files:
        file.write_text("leak:nobody\n")
    files[-1].write_text("leak:leaks_plant\n")
    words = [f"--leaks-suppressions={file}" for file in files]
    ended = run(*words, run.programs / "leaks_plant", "one")
    assert ended.one().startswith("nothing is lost; suppressed 100 B in 1 block"), ended


@pytest.mark.parametrize("line", ["leak:", "leak", "leaks:x", "race:x", "leak: *", "x"])
def test_wrong_suppressions(line: str, run: Run, tmp_path: Path) -> None:
    known = tmp_path / "known.txt"
    known.write_text(f"leak:fine\n{line}\n")
    ended = run.command("leaks", "--suppressions", known, write(tmp_path, SMALL))
    assert ended.status == 2 and f"{known}:2: expected leak:PATTERN" in ended.err


def test_many_stars() -> None:
    """With a backtrack for each of them, this would never end."""
    assert not leaks.Pattern("a*" * 1000 + "b").matches("a" * 2000)
    assert leaks.Pattern("a*" * 1000 + "b").matches("a" * 2000 + "b")


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        ("a*b", "xaxbx", True),
        ("a*b$", "xabxb", True),
        ("^a*b$", "ab", True),
        ("^ab*b$", "ab", False),
        ("^a$", "a", True),
        ("^a$", "aa", False),
        ("a$", "ba", True),
        ("*a$", "ba", True),
        ("a*", "ba", True),
        ("^*a", "ba", True),
        ("a*b*c", "axxcxxb", False),
    ],
)
def test_patterns(pattern: str, text: str, matches: bool) -> None:
    assert leaks.Pattern(pattern).matches(text) == matches
