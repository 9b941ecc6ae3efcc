"""Temporary folders: what a killed process leaves, the next removes, and nothing that is in use."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hakmem.folders import Folder

PACKAGES = Path(__file__).parents[2] / "python"
START = "import sys; sys.path.insert(0, sys.argv[1]); from hakmem.folders import Folder\n"
HOLDS = """
from pathlib import Path
folder = Folder("a-", Path(sys.argv[2]))
(folder.path / "within").mkdir()
(folder.path / "within/file").touch()
print(folder.path, flush=True)
input()
"""
MAKES = """
from pathlib import Path
for _ in range(300):
    with Folder("a-", Path(sys.argv[2])) as folder:
        (folder / "file").write_text("x")
        assert (folder / "file").read_text() == "x"
    assert not folder.exists()
"""


@contextmanager
def _holding(where: Path) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    with subprocess.Popen(
        [sys.executable, "-c", START + HOLDS, str(PACKAGES), str(where)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            yield process, Path(process.stdout.readline().strip())
        finally:
            process.kill()


def test_a_killed_processs_is_removed(tmp_path: Path) -> None:
    with _holding(tmp_path) as (process, left):
        with Folder("a-", tmp_path) as own:
            assert own.is_dir() and left.is_dir()
        process.kill()
        process.wait()
        with Folder("b-", tmp_path):
            assert left.is_dir(), "of another kind"
        with Folder("a-", tmp_path) as own:
            assert list(tmp_path.iterdir()) == [own]
    assert list(tmp_path.iterdir()) == []


def test_others_things_are_left_alone(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "file").touch()
    (tmp_path / "a-link.locked").symlink_to(other)
    (tmp_path / "a-file.locked").touch()
    (tmp_path / "a-folder").mkdir()
    before = sorted(tmp_path.rglob("*"))
    with Folder("a-", tmp_path):
        pass
    assert sorted(tmp_path.rglob("*")) == before


def test_many_at_once(tmp_path: Path) -> None:
    """No one takes another's for left behind, also when it has just been made."""
    words = [sys.executable, "-c", START + MAKES, str(PACKAGES), str(tmp_path)]
    makers = [subprocess.Popen(words, stderr=subprocess.PIPE, text=True) for _ in range(4)]
    for maker in makers:
        _, said = maker.communicate(timeout=300)
        assert maker.returncode == 0, said
    assert list(tmp_path.iterdir()) == []
