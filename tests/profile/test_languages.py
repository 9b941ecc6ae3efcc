"""A leak of 8 MiB in Rust and in an extension of Python is the largest site, with its line."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.profile.planted import HERE, line_of, named, near
from tests.ran import clean_environment, ran
from tests.watch.watched import Command

KEPT = 8 * 2**20
# Blocks of 16 KiB are all sampled.
EXACT = ("-o", "profile_rate=1K", "-o", "profile_samples=0")


def environment(**more: str) -> dict[str, str]:
    others = clean_environment()
    return {**others, **more}


def done(words: list[str | Path], folder: Path, **more: str) -> subprocess.CompletedProcess[str]:
    return ran(*words, cwd=folder, env=environment(**more))


def is_largest(command: Command, heap: Path, function: str, source: str) -> None:
    largest = max(named(heap).stacks, key=lambda stack: stack.figures[1])
    assert near(largest.figures[1], KEPT)
    place = (f"/{source}", line_of(source, "leaks"))
    found = [(f"/{line.file.rpartition('/')[2]}", line.line) for line in largest.lines()
             if re.fullmatch(rf"(\w+::)*{function}", line.function)]  # fmt: skip
    assert place in found, largest.lines()
    text = command("profile", "--text", "--top", "1", str(heap)).stdout
    assert re.search(rf"\b{function} \({source}:{place[1]}\)", text), text
    assert "$" not in text


@pytest.fixture
def rust() -> None:
    if not shutil.which("rustc") or not shutil.which("cargo"):
        pytest.skip("needs rustc and cargo")
    if not any(map(shutil.which, ("llvm-symbolizer", "addr2line"))):
        pytest.skip("needs llvm-symbolizer or addr2line")


def test_rust(command: Command, rust: None, tmp_path: Path) -> None:
    """With Rust's own allocator, which calls malloc."""
    built = done(["rustc", "-g", "-O", "-o", "leak", HERE / "plant_leak.rs"], tmp_path)
    assert built.returncode == 0, built.stderr
    ran = done(["/bin/sh", command.path, "run", "--profile=x.heap", *EXACT, "./leak"], tmp_path)
    assert ran.returncode == 0, ran.stderr
    is_largest(command, tmp_path / "x.heap", "leaks", "plant_leak.rs")


def test_rust_crate(command: Command, rust: None, library: Path, tmp_path: Path) -> None:
    """With the crate, and the library as it is installed."""
    if not shutil.which("cmake") or not shutil.which("pkg-config"):
        pytest.skip("needs cmake and pkg-config")
    prefix = tmp_path / "installed"
    installed = done(["cmake", "--install", library.parent, "--prefix", prefix], tmp_path)
    assert installed.returncode == 0, installed.stderr
    (tmp_path / "Cargo.toml").write_text(
        '[package]\nname = "leak"\nversion = "0.0.0"\nedition = "2021"\n'
        f'[[bin]]\nname = "leak"\npath = "{HERE / "plant_leak.rs"}"\n'
        f'[dependencies]\nhakmem = {{ path = "{HERE.parents[1] / "bindings/rust"}",'
        ' features = ["system"], optional = true }\n[features]\ndefault = ["hakmem"]\n'
        "[profile.release]\ndebug = true\n"
    )
    shutil.copy(HERE.parents[1] / "bindings/rust/Cargo.lock", tmp_path)
    libraries = prefix / "lib"
    built = done(
        ["cargo", "build", "--offline", "--release"], tmp_path,
        PKG_CONFIG_PATH=str(libraries / "pkgconfig"), CARGO_TARGET_DIR=str(tmp_path / "target"),
    )  # fmt: skip
    if re.search("no matching package|failed to (download|get)|--offline", built.stderr):
        pytest.skip("needs the crate cc in cargo's cache")
    assert built.returncode == 0, built.stderr
    ran = done(
        ["target/release/leak"], tmp_path, LD_LIBRARY_PATH=str(libraries), HAKMEM_PROFILE="on",
        HAKMEM_PROFILE_FILE="x.heap", HAKMEM_PROFILE_RATE="1K", HAKMEM_PROFILE_SAMPLES="0",
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    is_largest(command, tmp_path / "x.heap", "leaks", "plant_leak.rs")


def test_python_extension(command: Command, tmp_path: Path) -> None:
    python, cc = shutil.which("python3"), shutil.which("cc")
    if python is None or cc is None:
        pytest.skip("needs python3 and cc")
    asks = "import sysconfig; print(sysconfig.get_path('include'))"
    headers = done([python, "-c", asks], tmp_path).stdout.strip()
    if not Path(headers, "Python.h").is_file():
        pytest.skip("needs Python's headers")
    built = done(
        [cc, "-g", "-O1", "-fno-builtin", "-shared", "-fPIC", f"-I{headers}", "-o",
         "plant_extension.so", HERE / "plant_extension.c"], tmp_path,
    )  # fmt: skip
    assert built.returncode == 0, built.stderr
    program = "import plant_extension as plant\nfor _ in range(512): plant.leaks(); plant.frees()\n"
    (tmp_path / "program.py").write_text(program)
    words: list[str | Path] = ["--profile=x.heap", *EXACT, python, tmp_path / "program.py"]
    ran = done(["/bin/sh", command.path, "run", *words], tmp_path)
    assert ran.returncode == 0, ran.stderr
    is_largest(command, tmp_path / "x.heap", "leaks", "plant_extension.c")
