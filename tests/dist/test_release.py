"""Two releases of `make dist` must be equal, and their files must work. tests/install tries the
x86-64 libraries, the packages and the wheel as it tries those that are built here."""

import re
import subprocess
from pathlib import Path

import pytest
from spdx_tools.spdx.parser.parse_anything import parse_file
from spdx_tools.spdx.validation.document_validator import validate_full_spdx_document

from tests.install.tree import HERE, SOURCE, Installed, done, one
from tools.dist import archives, contents

PROGRAMS = HERE / "programs"
TRIPLE = "aarch64-linux-gnu"
EMULATED = ["qemu-aarch64", "-L", f"/usr/{TRIPLE}"]
REGISTRY = Path("/usr/share/cargo/registry")  # Debian's, of its packages of crates


@pytest.fixture(scope="session")
def commit(made: Path) -> str:
    found = re.search(r"Built from commit ([0-9a-f]{40}) ", (made / contents.NOTES).read_text())
    assert found is not None
    return found[1]


def test_the_same_bytes(made: Path, again: Path) -> None:
    first, second = ({file.name: file.read_bytes() for file in f.iterdir()} for f in (made, again))
    assert set(first) == set(second)
    assert [name for name in first if first[name] != second[name]] == []


def test_everything_is_there(made: Path) -> None:
    version = made.name.removeprefix("hakmem-")
    assert {file.name for file in made.iterdir()} == {
        *(f"hakmem-{version}{end}" for end in (".tar.gz", ".spdx.json")),
        f"hakmem-malloc-{version}.crate",
        *(f"hakmem-{version}-linux-{machine}.tar.gz" for machine in ("x86_64", "aarch64")),
        *(f"hakmem-{version}-py3-none-linux_x86_64.whl", contents.NOTES, contents.SUMS),
        *(
            f"{package}_{version}_amd64.deb"
            for package in (
                *("hakmem", "hakmem-debug", "libhakmem-dev"),
                *("libhakmem0", "libhakmem0-dbgsym"),
            )
        ),
    }


def test_is_of_what_is_committed_here(made: Path, commit: str) -> None:
    """These tests are the clone's that it was made in."""
    assert done(["git", "rev-parse", "HEAD"], cwd=SOURCE).strip() == commit
    again = made.parents[1] / "again.tar.gz"
    archives.source(SOURCE, commit, made.name, again)
    assert again.read_bytes() == (made / f"{made.name}.tar.gz").read_bytes()


def test_sums(made: Path) -> None:
    checked = done(["sha256sum", "--check", "--strict", contents.SUMS], cwd=made)
    assert checked.count(": OK\n") == len(list(made.iterdir())) - 1


def test_list_of_contents(made: Path) -> None:
    document = parse_file(str(one(made, "*.spdx.json")))
    assert validate_full_spdx_document(document, "SPDX-2.3") == []
    held = {package.name for package in document.packages}
    described = {f"{made.name}.spdx.json", contents.NOTES, contents.SUMS}
    assert {file.name for file in made.iterdir()} - described <= held
    assert any(file.name.endswith("/src/front/cache.c") for file in document.files)


def test_no_path_of_the_build(made: Path) -> None:
    for file in made.iterdir():
        if file.suffix in (".gz", ".crate", ".whl", ".deb"):
            for name, data in archives.members(file):
                text_of_ours = name.endswith((".py", ".c", ".md", "/in_clones"))
                assert text_of_ours or b"/hakmem-dist-" not in data, f"{file.name}: {name}"


def test_source(made: Path, commit: str, tmp_path: Path) -> None:
    """Built as docs/install.md says, and preloaded with and without the command."""
    source = archives.unpack(made / f"{made.name}.tar.gz", tmp_path / "unpacked")
    prefix = Installed(tmp_path / "prefix")
    done(["cmake", "-B", "build/user"], cwd=source)
    done(["cmake", "--build", "build/user", "-j2"], cwd=source, timeout=900)
    done(["cmake", "--install", "build/user", "--prefix", prefix.prefix], cwd=source)
    assert f"(commit {commit[:12]})" in done([prefix.command, "--version"])
    library = prefix.libraries / "libhakmem.so.0"
    unaware = tmp_path / "unaware"
    done(["cc", PROGRAMS / "unaware.c", "-o", unaware])
    assert subprocess.run([unaware], stdout=subprocess.PIPE).stdout == b""
    loaded = str(library.resolve())
    assert done([unaware], LD_PRELOAD=str(library)).strip() == loaded
    assert done([prefix.command, "run", unaware]).strip() == loaded
    assert "is active" in done([prefix.command, "doctor", "--", unaware])


# ---- AArch64 ----


@pytest.fixture(scope="session")
def aarch64(made: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    folder = tmp_path_factory.mktemp("aarch64") / "unpacked"
    return Installed(archives.unpack(one(made, "*-linux-aarch64.tar.gz"), folder))


WAYS = {
    "shared": ["-Wl,--no-as-needed", "{lib}/libhakmem.so"],
    "archive": ["-static", "-Wl,-u,malloc", "{lib}/libhakmem.a"],
    "object": ["{lib}/hakmem.o"],
}


@pytest.mark.parametrize("way", WAYS)
def test_aarch64_linked(way: str, aarch64: Installed, tmp_path: Path) -> None:
    words = [word.format(lib=aarch64.libraries) for word in WAYS[way]]
    include = f"-I{aarch64.prefix / 'include'}"
    program = tmp_path / "words"
    compiler = [f"{TRIPLE}-gcc", "-O1", "-pthread", include]
    done([*compiler, PROGRAMS / "words.c", *words, "-o", program])
    done([*EMULATED, "-E", f"LD_LIBRARY_PATH={aarch64.libraries}", program])


def test_aarch64_preloaded(aarch64: Installed, commit: str, tmp_path: Path) -> None:
    unaware = tmp_path / "unaware"
    done([f"{TRIPLE}-gcc", PROGRAMS / "unaware.c", "-o", unaware])
    library = aarch64.libraries / "libhakmem.so.0"
    printed = done([*EMULATED, "-E", f"LD_PRELOAD={library}", unaware])
    assert printed.strip() == str(library.resolve())
    note = aarch64.prefix / "share/hakmem/hakmem/commit"
    assert note.read_text() == f"commit {commit[:12]}\n"


# ---- Rust ----

MAIN = """\
#[global_allocator]
static ALLOCATOR: hakmem::Hakmem = hakmem::Hakmem;

fn main() {
    let before = hakmem::stats().program;
    let blocks: Vec<Vec<u8>> = (0..64).map(|_| vec![1; 65536]).collect();
    let more = hakmem::stats().program - before;
    assert!(more >= 4 << 20, "hakmem counts {more} bytes of {} blocks", blocks.len());
    assert_eq!(hakmem::check(), Some(0));
}
"""


def test_crate(made: Path, tmp_path: Path) -> None:
    crate = archives.unpack(one(made, "*.crate"), tmp_path / "crate")
    program = tmp_path / "program"
    (program / "src").mkdir(parents=True)
    (program / "src/main.rs").write_text(MAIN)
    (program / "Cargo.toml").write_text(
        '[package]\nname = "program"\nversion = "0.0.0"\nedition = "2021"\n\n'
        f'[dependencies]\nhakmem-malloc = {{ path = "{crate}" }}\n'
    )
    registry = []
    if REGISTRY.exists():
        registry = ["--config", 'source.crates-io.replace-with="debian"']
        registry += ["--config", f'source.debian.directory="{REGISTRY}"']
    done(["cargo", "run", "--quiet", *registry], cwd=program, timeout=900)
