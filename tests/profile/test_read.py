"""A file that is no whole profile gives one clear line and the documented status, never a
traceback; so does an output that can't be written."""

from __future__ import annotations

import os
import re
import resource
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from hakmem import heap_profile, outputs
from hakmem.heap_profile import NoProfile
from tests.nobody import as_nobody
from tests.profile.planted import Planted
from tests.watch.watched import Command

SMALL = """\
heap profile: 3: 300 [5: 700] @ heapprofile
# hakmem rate 1024 lost 0 memory 4096
2: 200 [3: 300] @ 0x401001 0x402001
# peak 2: 200 samples 1 2
1: 100 [2: 400] @
# peak 2: 400 samples 1 1
# sites 2

MAPPED_LIBRARIES:
00400000-00500000 r-xp 00000000 fe:00 4711                             /bin/no such app
7ff000000-7ff001000 rw-p 00000000 00:00 0
"""


def refused(command: Command, path: Path, *words: str, status: int = 1) -> str:
    done = command("profile", "--text", *words, str(path))
    assert done.returncode == status, done.stderr
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("hakmem profile: "), line
    return line


def test_small() -> None:
    profile = heap_profile.parse(SMALL, "small")
    assert (profile.rate, profile.lost) == (1024, 0)
    first, second = profile.sites
    assert first.stack == (0x401001, 0x402001) and second.stack == ()
    assert first.figures == (2, 200, 3, 300, 2, 200) and second.figures[4:] == (2, 400)
    module = profile.mapping_of(0x401000)
    assert module is not None and module.path == "/bin/no such app" and module.executable
    assert profile.mapping_of(0x500000) is None and profile.mapping_of(0) is None
    # What is in use at the end is the peak of memory that only grows.
    grown = heap_profile.parse(SMALL.replace("peak 2: 400", "peak 0: 0").replace(
        "peak 2: 200", "peak 0: 0"), "grown")  # fmt: skip
    assert [site.figures[5] for site in grown.sites] == [200, 100]


def test_line_ends_in_names() -> None:
    """Only a line feed ends a line; a name may have any other."""
    text = SMALL.replace("no such app", "one\u2028two\x85three\x0bfour\rfive")
    text = text.replace(
        "# peak 2: 200 samples 1 2\n", "# peak 2: 200 samples 1 2\n# name a\u2029b\n"
    )
    symbol = heap_profile.symbol_line(0x401000, ("f\u2028g", "", 0))
    copy = heap_profile.with_symbols(heap_profile.parse(text, "first"), [symbol])
    profile = heap_profile.parse(copy, "copy")
    assert copy == f"{text}{symbol}\n" and profile.sites[0].name == "a\u2029b"
    assert profile.symbols == {0x401000: (("f\u2028g", "", 0),)}
    assert heap_profile.with_symbols(profile, [symbol]) == copy


def test_sizes() -> None:
    """Where the reader was asked for them."""
    sizes = "# sizes 112:2.5:0.25:1 4096:1e+06:0:3\n"
    after = "# peak 2: 200 samples 1 2\n"
    profile = heap_profile.parse(SMALL.replace(after, after + sizes), "sizes")
    first, second = profile.sites
    assert [(one.size, one.blocks, one.variance) for one in first.sizes] == [
        (112, 2.5, 0.25),
        (4096, 1e6, 0),
    ]
    assert first.samples[:2] == (1, 2) and second.sizes == ()
    for wrong in ("112:2.5:0.25", "112:2.5:.:1", "112:-1:0:1", "", "1:1:1:1  2:2:2:2"):
        with pytest.raises(NoProfile, match="damaged in line 5: expected sizes"):
            heap_profile.parse(SMALL.replace(after, f"{after}# sizes {wrong}\n"), "sizes")


def test_blocks_that_are_always_sampled_have_no_error() -> None:
    text = SMALL.replace("300 [5: 700]", "200000100 [5: 200000500]")
    text = text.replace("2: 200 [3: 300]", "2: 200000000 [3: 200000100]")
    text = text.replace("samples 1 2", "samples 2 3")
    site = heap_profile.parse(text, "large").sites[0]
    assert site.errors[1] < 1


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "empty"),
        ("\n", "not a heap profile of hakmem"),
        ("hello\n", "not a heap profile of hakmem"),
        ("heap_v2/524288\n", "of another kind"),
        ("heap profile:    1:    2 [   1:    2] @ heap_v2/524288\n", "of another kind"),
        ("heap profile: 0: 0 [0: 0] @ heapprofile\n", "truncated after line 1"),
        ("heap profile: 0: 0 [0: 0] @ heapprofile\n\n", "damaged in line 2"),
        (SMALL.partition("\nMAPPED")[0], "truncated"),
        (SMALL[:-20], "truncated in line 11"),
        (SMALL.replace("0x401001", "401001"), "damaged in line 3"),
        (SMALL.replace("# peak 2: 200 samples 1 2", "# peak"), "damaged in line 4"),
        (SMALL.replace("sites 2", "sites 3"), "has 2 sites, and says 3"),
        (SMALL.replace("# sites 2\n", ""), "expected '# sites"),
        (SMALL.replace("00400000-", "zz-"), "damaged in line 10"),
        (SMALL.replace("3: 300 [", "9" * 40 + ": 300 ["), "not a heap profile of hakmem"),
    ],
)
def test_damaged(command: Command, tmp_path: Path, content: str, said: str) -> None:
    path = tmp_path / "app.heap"
    path.write_text(content)
    assert said in refused(command, path)


def test_unreadable(command: Command, tmp_path: Path) -> None:
    assert "a folder without a file" in refused(command, tmp_path)
    assert "No such file" in refused(command, tmp_path / "none", status=2)
    assert "No such file" in refused(command, tmp_path / "a\nb\x1b", status=2)
    good = tmp_path / "app.heap"
    good.write_text(SMALL)
    assert "No such file" in refused(command, good, "--diff", str(tmp_path / "none"), status=2)
    (tmp_path / "bytes").write_bytes(bytes(range(256)) * 64)
    assert "not a heap profile" in refused(command, tmp_path / "bytes")
    (tmp_path / "elf").write_bytes(b"\x7fELF" * 1000)
    assert "not a heap profile" in refused(command, tmp_path / "elf")


def test_endless(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heap_profile, "MOST_BYTES", 2**20)
    with pytest.raises(NoProfile, match="larger than 1 MiB"):
        heap_profile.read(Path("/dev/zero"))


def test_truncated_anywhere(planted: Planted) -> None:
    """A file that was cut is refused, but where only whole mappings are missing: that can't be
    seen."""
    text = planted.profile("profile_plant").read_text()
    mappings = text.index(heap_profile.MAPPED) + len(heap_profile.MAPPED) + 1
    for length in range(len(text)):
        try:
            heap_profile.parse(text[:length], "cut")
        except NoProfile as why:
            assert str(why).startswith("cut: ")
        else:
            assert length >= mappings and text[length - 1] == "\n"


def test_outputs_that_cannot_be_written(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "app.heap"
    path.write_text(SMALL)
    (tmp_path / "folder.html").mkdir()
    for name, status, said in (
        ("x.svg", 2, r"expected a name that ends in \.html, \.pb\.gz, "),
        ("none/x.html", 5, "none: no such folder"),
        ("app.heap/x.html", 5, "app.heap: no such folder"),
        ("folder.html", 5, "folder.html: Is a directory"),
        ("x" * 300 + ".html", 5, "File name too long"),
    ):
        done = command("profile", "-o", f"{tmp_path}/{name}", str(path))
        lines = done.stderr.splitlines()
        assert done.returncode == status, done.stderr
        assert re.search(said, lines[-1]) and "Traceback" not in done.stderr
        assert lines[-1].startswith("hakmem profile: ")
    assert sorted(one.name for one in tmp_path.iterdir()) == ["app.heap", "folder.html"]


def test_full_disk(tmp_path: Path) -> None:
    """Half of a file is never left: of what is written at once, and of what is made in parts."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    for content in (b"x" * 10**6, (b"x" * 10**4 for _ in range(100))):
        resource.setrlimit(resource.RLIMIT_FSIZE, (10**5, before[1]))
        try:
            with pytest.raises(outputs.CannotWrite, match="File too large"):
                outputs.write(tmp_path / "full.html", content, "profile")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        assert not list(tmp_path.iterdir())


def test_what_can_not_be_made(tmp_path: Path) -> None:
    """Nor where something goes wrong while it is made."""

    def parts() -> Iterator[bytes]:
        yield b"begin"
        raise NoProfile("damaged")

    with pytest.raises(NoProfile):
        outputs.write(tmp_path / "half.html", parts(), "profile")
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become another user")
def test_without_permission(tmp_path: Path, command: Command) -> None:
    """In a folder that is another's, and of a file that is."""
    path = tmp_path / "app.heap"
    path.write_text(SMALL)
    before = as_nobody()
    probe = subprocess.run([*before, "ls", str(command.path)], capture_output=True)
    if probe.returncode:
        pytest.skip("nobody can't enter the folder of the build")
    done = command("profile", "-o", "/x.html", "/etc/shadow", by=before)
    assert done.returncode == 5 and "/: no permission to write" in done.stderr
    done = command("profile", "--text", "/etc/shadow", by=before)
    assert done.returncode == 1 and "/etc/shadow: Permission denied" in done.stderr


@pytest.mark.parametrize(
    "words", [(), ("--top", "0", "x"), ("--by", "it", "x"), ("--seconds", "-1", "1")]
)
def test_wrong_usage(command: Command, words: tuple[str, ...]) -> None:
    done = command("profile", *words)
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1, done.stderr


def test_default_name(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "app.heap"
    path.write_text(SMALL)
    done = command("profile", str(path))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "app.heap.html").read_text().startswith("<!DOCTYPE html>")
    assert "/bin/no such app: can't be read" in done.stderr


def test_lost_samples_are_said(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "app.heap"
    path.write_text(SMALL.replace("lost 0", "lost 7"))
    assert "7 samples are missing" in command("profile", "--text", str(path)).stderr
