"""The walk counts hand-written machine code right and refuses what no fast path may have."""

import subprocess
from pathlib import Path

import pytest

from tools.golden import table
from tools.golden.__main__ import broken_limits, increases
from tools.golden.walk import Counts, FastPath, Library, NoFastPath, fast_path


def library(folder: Path, body: str, behind: str = "") -> Library:
    """A shared library that exports `f`, with more text behind it that is not part of it."""
    source, shared = folder / "f.S", folder / "libf.so"
    source.write_text(
        f".text\n.globl f\n.type f, @function\nf:\n{body}\n.size f, .-f\n{behind}\n"
        '.section .note.GNU-stack,"",@progbits\n'
    )
    subprocess.run(["cc", "-shared", "-nostdlib", "-o", shared, source], check=True)
    return Library(shared)


@pytest.mark.parametrize(
    ("body", "counts"),
    [
        ("ret", FastPath(Counts(1, 0, 0, 0), 0)),
        ("push %rbx; lea 8(%rdi),%rax; nopw 0(%rax,%rax,1); pop %rbx; ret",
         FastPath(Counts(5, 0, 1, 1), 0)),
        ("mov (%rdi),%rax; mov %rax,8(%rdi); cmp (%rdi),%rsi; ret",
         FastPath(Counts(4, 0, 2, 1), 0)),
        ("addq $1,(%rdi); cmpb $0,(%rsi); mov %fs:0,%rax; ret",
         FastPath(Counts(4, 0, 3, 1), 1)),
        ("movdqu (%rdi),%xmm0; movups %xmm0,(%rsi); tzcnt (%rdi),%rax; ret",
         FastPath(Counts(4, 0, 2, 1), 0)),
        # the likely side falls through, though the other is shorter
        ("test %rdi,%rdi; je 1f; mov (%rdi),%rax; nop; ret; 1: ret",
         FastPath(Counts(5, 1, 1, 0), 0)),
        # turned round: what falls through calls
        ("test %rdi,%rdi; jne 1f; call slow; ret; 1: mov (%rdi),%rax; ret",
         FastPath(Counts(4, 1, 1, 0), 0)),
        # a jump inside the function, and one to code that leaves
        ("cmp %rsi,%rdi; ja slow; jmp 1f; nop; 1: ret", FastPath(Counts(4, 1, 0, 0), 0)),
    ],
)  # fmt: skip
def test_counts(tmp_path: Path, body: str, counts: FastPath) -> None:
    assert fast_path(library(tmp_path, body, "slow: ret"), "f") == counts


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("call slow; ret", "call at"),
        ("lock incl (%rdi); ret", "lock at"),
        ("xchg %rax,(%rdi); ret", "lock (xchg with memory) at"),
        ("rep stosb; ret", "repeated string instruction at"),
        ("1: dec %rdi; jnz 1b; ret", "loop at"),
        ("jmp slow", "leaves the function"),
        ("jmp *%rax", "leaves the function"),
    ],
)
def test_refuses(tmp_path: Path, body: str, reason: str) -> None:
    with pytest.raises(NoFastPath) as refused:
        fast_path(library(tmp_path, body, "slow: ret"), "f")
    assert reason in str(refused.value)


def test_follows_a_jump_to_another_entry(tmp_path: Path) -> None:
    entry = ".globl g; .type g, @function; g: mov (%rdi),%rax; ret; .size g, .-g"
    assert fast_path(library(tmp_path, "jmp g1; nop", "g1:" + entry), "f").counts == Counts(
        3, 0, 1, 0
    )


def test_table_is_read_as_written(tmp_path: Path) -> None:
    rows = {"malloc": Counts(15, 2, 6, 1), "operator delete, sized": Counts(21, 2, 8, 2)}
    table.write(tmp_path / "table.md", "gcc 12", rows)
    assert table.read(tmp_path / "table.md") == ("gcc 12", rows)
    assert table.read(tmp_path / "none.md") == ("", {})


def test_any_growth_is_named() -> None:
    golden = {"malloc": Counts(15, 2, 6, 1), "free": Counts(21, 2, 8, 2)}
    assert increases(golden, {**golden, "malloc": Counts(14, 2, 6, 1)}, {}) == []
    assert increases(golden, {**golden, "malloc": Counts(14, 2, 7, 1)}, {}) == [
        "malloc: loads grew from 6 to 7"
    ]
    assert increases(golden, {"malloc": golden["malloc"]}, {"free": "free: call"}) == ["free: call"]


def test_limits() -> None:
    good = {"malloc": Counts(15, 2, 6, 1), "free": Counts(28, 4, 8, 2)}
    assert broken_limits(good, {}) == []
    assert "44 instructions" in broken_limits({**good, "malloc": Counts(16, 2, 6, 1)}, {})[0]
    assert "5 conditional" in broken_limits({**good, "free": Counts(28, 5, 8, 2)}, {})[0]
    assert broken_limits({"malloc": good["malloc"]}, {"free": "a lock"}) == ["a lock"]
