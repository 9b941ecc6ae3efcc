"""Peers are found by name, built by their recipes, and none counts that is not active."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from hakmem_yardstick.allocators import (
    FOUR,
    UnknownAllocator,
    choose,
    configured_outside,
    environment,
    installed,
    names,
    pick,
)
from hakmem_yardstick.model import OURS, SYSTEM, Allocator, Kind
from hakmem_yardstick.peers import cache, crates, packages
from hakmem_yardstick.peers.cache import Unobtainable
from hakmem_yardstick.peers.catalogue import CRATES, MODES, PACKAGES, PEERS
from hakmem_yardstick.peers.proof import is_in_force, prove

CRATE = next(crate for crate in CRATES if crate.name == "rpmalloc")


@pytest.fixture(scope="session")
def build(library: Path) -> Path:
    return library.parent


def quiet(_line: str) -> None:
    pass


def test_every_name_of_a_mode_can_be_had_in_one_way() -> None:
    ways = [SYSTEM, *(package.name for package in PACKAGES), *(crate.name for crate in CRATES)]
    assert sorted(ways) == sorted(PEERS)
    assert set(MODES["quick"]) < set(MODES["standard"]) < set(MODES["full"])
    assert len(MODES["quick"]) == 3
    assert len(MODES["standard"]) == 5
    assert {file.name for file in crates.RECIPES.iterdir()} == {crate.name for crate in CRATES}


def test_what_is_chosen_is_in_force(build: Path) -> None:
    found, missing = choose(build, [], [*FOUR, f"{OURS}+keep_bytes=16M"])
    here = {a.name for a in found} | {m.name for m in missing}
    assert here == {*FOUR, OURS, f"{OURS}+keep_bytes=16M"}
    assert all(m.name in FOUR and "install" in m.why for m in missing), missing
    kinds = [a.kind for a in found]
    assert kinds == [Kind.PEER] * (len(kinds) - 2) + [Kind.OURS] * 2
    for allocator in found:
        assert allocator.origin and allocator.version, allocator


def test_settings_come_from_the_name_alone(build: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MALLOC_ARENA_MAX", "HAKMEM_SCAVENGER", "LD_PRELOAD", "MIMALLOC_VERBOSE"):
        monkeypatch.setenv(name, "" if name == "LD_PRELOAD" else "1")
    monkeypatch.setenv("KEPT", "1")
    found, _ = pick(build, [], [f"{OURS}+keep_bytes=16M", "glibc+MALLOC_TOP_PAD_=1"])
    ours, system = (environment(allocator) for allocator in found)
    assert ours["HAKMEM_KEEP_BYTES"] == "16M"
    assert Path(ours["LD_PRELOAD"]).samefile(build / "libhakmem.so")
    assert system["MALLOC_TOP_PAD_"] == "1"
    assert "LD_PRELOAD" not in system
    for variables in (ours, system):
        assert variables["KEPT"] == "1"
        assert not {"MALLOC_ARENA_MAX", "HAKMEM_SCAVENGER", "MIMALLOC_VERBOSE"} & variables.keys()
    assert {"HAKMEM_SCAVENGER", "MALLOC_ARENA_MAX"} <= set(configured_outside())


@pytest.mark.parametrize(
    ("libs", "vs", "told"),
    [
        ([], ["jemaloc"], "meant: jemalloc"),
        ([], ["nonesuch"], ", ".join(names()[:3])),
        (["mine=/nowhere/lib.so"], [], "no library at /nowhere/lib.so"),
        ([f"a b={__file__}"], [], "can't be a name"),
        ([f"{SYSTEM}={__file__}"], [], "has no library"),
    ],
)
def test_a_wrong_name_is_told_what_there_is(
    libs: list[str], vs: list[str], told: str, tmp_path: Path
) -> None:
    with pytest.raises(UnknownAllocator, match=told.replace("+", r"\+")):
        choose(tmp_path, libs, vs)


def test_another_library_under_a_name(build: Path) -> None:
    found, missing = pick(build, [f"other={build / 'libhakmem.so'}"], ["other"])
    assert not missing
    assert [(a.name, a.kind) for a in found] == [("other", Kind.PEER)]
    assert found[0].library == (build / "libhakmem.so").resolve()


WRONG = {
    "no allocator at all": ("int nothing_here;", "not active: malloc is"),
    "malloc and free alone": (
        "#include <stddef.h>\nextern void *__libc_malloc(size_t);extern void __libc_free(void *);"
        "void *malloc(size_t n) { return __libc_malloc(n); }"
        "void free(void *p) { __libc_free(p); }",
        "calloc is",
    ),
    "ends": ("__attribute__((constructor)) void end(void) { __builtin_trap(); }", "ends by SIG"),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_library_is_refused(
    what: str, build: Path, compiled: Callable[[str, str], Path]
) -> None:
    text, told = WRONG[what]
    library = compiled(what.replace(" ", "-"), text)
    found, missing = pick(build, [f"wrong={library}"], ["wrong"])
    assert not found
    assert told in missing[0].why


def test_in_force_means_that_very_library(build: Path, tmp_path: Path) -> None:
    library = build / "libhakmem.so"
    ours = Allocator(OURS, Kind.OURS, library.resolve())
    copy = tmp_path / library.name
    shutil.copy(library, copy)
    assert is_in_force(ours, str(library))
    assert not is_in_force(ours, str(copy))
    assert not is_in_force(ours, "/lib/x86_64-linux-gnu/libc.so.6")
    assert is_in_force(Allocator(SYSTEM, Kind.PEER), "/lib/x86_64-linux-gnu/libc.so.6")
    assert not is_in_force(Allocator(SYSTEM, Kind.PEER), str(library))
    # The system's malloc is not active where another one is preloaded.
    assert "not active" in prove(Allocator(SYSTEM, Kind.PEER), environment(ours)).failure


def test_what_is_in_place_is_found_without_fetching(build: Path, tmp_path: Path) -> None:
    found, missing = installed(build, [*FOUR, OURS])
    assert {a.name for a in found} | set(missing) == {*FOUR, OURS}
    assert {SYSTEM, OURS} <= {a.name for a in found}
    nowhere, all_missing = installed(tmp_path, [OURS])
    assert (nowhere, all_missing) == ([], [OURS])


def test_a_package_that_is_not_to_be_had(tmp_path: Path) -> None:
    package = replace(PACKAGES[0], debian="libhakmem-nonesuch0", files=("libhakmem_nonesuch.so.0",))
    with pytest.raises(Unobtainable, match=r"not installed, and .*; install libhakmem-nonesuch0"):
        packages.find(package, tmp_path, quiet)
    assert not list((tmp_path / "packages").glob("*"))


@pytest.mark.parametrize(
    ("said", "version"),
    [
        ("gcc (Debian 12.2.0-14) 12.2.0\nCopyright (C) 2022", "12.2.0"),
        ("gcc (GCC) 13.2.1 20231011 (Red Hat 13.2.1-7)\n", "13.2.1"),
        ("Debian clang version 14.0.6\nTarget: x86_64-pc-linux-gnu", "14.0.6"),
        ("clang version 17.0.6 (Fedora 17.0.6-2.fc39)\n", "17.0.6"),
        ("", "of unknown version"),
    ],
)
def test_compilers_tell_their_version(said: str, version: str) -> None:
    assert crates.version_of(said) == version


@pytest.mark.parametrize(("told", "base"), [("", "~/.cache"), ("here", "~/.cache"), ("/c", "/c")])
def test_all_is_kept_in_one_folder(told: str, base: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", told)
    assert cache.user_folder() == Path(base).expanduser() / "hakmem/bench"
    assert cache.folder(Path("/usr/lib")) == cache.user_folder() / "peers"


def sources(cache: Path) -> None:
    """As if the crate had been fetched: what a recipe does is looked at, not cargo."""
    (cache / "sources" / f"{CRATE.crate}-{CRATE.crate_version}").mkdir(parents=True)


def test_a_broken_recipe_says_where_its_log_is(tmp_path: Path) -> None:
    sources(tmp_path)
    recipes = tmp_path / "recipes"
    recipes.mkdir()
    (recipes / CRATE.name).write_text("echo before\nno-such-compiler --version\necho after\n")
    with pytest.raises(Unobtainable) as refusal:
        crates.find(CRATE, tmp_path, quiet, recipes)
    told = str(refusal.value)
    log = next((tmp_path / "built").glob("*.log"))
    assert str(log) in told
    assert "no-such-compiler" in told
    assert "before" in log.read_text()
    assert "after" not in log.read_text()
    assert list((tmp_path / "built").iterdir()) == [log], "an unfinished build is left behind"


def test_built_once_and_anew_when_the_recipe_changes(tmp_path: Path) -> None:
    sources(tmp_path)
    recipes = tmp_path / "recipes"
    recipes.mkdir()
    said: list[str] = []
    made = []
    for text in ("echo 1", "echo 1", "echo 2"):
        (recipes / CRATE.name).write_text(f'{text} >"$OUT"\n')
        library, origin = crates.find(CRATE, tmp_path, said.append, recipes)
        assert CRATE.crate in origin
        made.append(library)
    assert made[0] == made[1] != made[2]
    assert [library.read_text() for library in made] == ["1\n", "1\n", "2\n"]
    assert len(said) == 2
    assert all((library.parent / "log").is_file() for library in made)


def test_a_crate_with_another_checksum_is_refused(tmp_path: Path) -> None:
    if shutil.which("cargo") is None:
        pytest.skip("there is no cargo")
    with pytest.raises(Unobtainable) as refusal:
        crates.find(replace(CRATE, checksum="0" * 64), tmp_path, quiet)
    if "could not fetch" in str(refusal.value):
        pytest.skip(str(refusal.value))
    assert f"has checksum {CRATE.checksum}" in str(refusal.value)
    assert not list((tmp_path / "sources").iterdir())


def test_a_peer_is_built_from_its_crate(tmp_path: Path) -> None:
    if shutil.which("cargo") is None:
        pytest.skip("there is no cargo")
    try:
        library, _ = crates.find(CRATE, tmp_path, quiet)
    except Unobtainable as error:
        if "could not fetch" in str(error):
            pytest.skip(str(error))
        raise
    allocator = Allocator(CRATE.name, Kind.PEER, library)
    assert prove(allocator, environment(allocator)).failure == ""
