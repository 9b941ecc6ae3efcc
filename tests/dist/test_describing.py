"""The descriptions of a release, for a small one that consists of a few files."""

import os
import subprocess
import zipfile
from collections.abc import Callable
from hashlib import sha1, sha256
from pathlib import Path

import pytest
from spdx_tools.spdx.model.relationship import RelationshipType
from spdx_tools.spdx.parser.parse_anything import parse_file
from spdx_tools.spdx.validation.document_validator import validate_full_spdx_document

from tests.install.tree import SOURCE, done
from tools.dist import archives, contents
from tools.dist.contents import Release
from tools.dist.parts import Failed, Part, Work

RELEASE = Release("1.2.3", "0123456789abcdef" * 2 + "01234567", 1_700_000_000)
FILES = {"a": b"of a", "bin/run": b"#!/bin/sh\n", "lib/libhakmem.so.1.2.3": b"library"}


def tree(folder: Path, order: Callable[[list[str]], list[str]] = sorted) -> Path:
    for name in order(list(FILES)):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(FILES[name])
    (folder / "bin/run").chmod(0o755)
    (folder / "lib/libhakmem.so").symlink_to("libhakmem.so.1.2.3")
    return folder


def test_a_folder_packed_at_another_time_in_another_place(tmp_path: Path) -> None:
    first = tree(tmp_path / "first" / "name")
    second = tree(tmp_path / "second" / "name", lambda names: sorted(names, reverse=True))
    os.utime(second / "a", (1, 1))
    (second / "a").chmod(0o600)
    (second / "bin").chmod(0o700)
    for folder in first, second:
        archives.pack(folder, folder.parent / "packed.tar.gz", RELEASE.seconds)
    packed = first.parent / "packed.tar.gz"
    assert packed.read_bytes() == (second.parent / "packed.tar.gz").read_bytes()
    unpacked = archives.unpack(packed, tmp_path / "unpacked")
    assert {name: (unpacked / name).read_bytes() for name in FILES} == FILES
    assert os.access(unpacked / "bin/run", os.X_OK) and not os.access(unpacked / "a", os.X_OK)
    assert (unpacked / "lib/libhakmem.so").readlink() == Path("libhakmem.so.1.2.3")
    assert (unpacked / "a").stat().st_mtime == RELEASE.seconds


@pytest.fixture
def parts(tmp_path: Path) -> list[Part]:
    """One file of each kind that is looked into, all with the same files in it."""
    folder = tree(tmp_path / "tree" / "name")
    out = tmp_path / "out"
    out.mkdir()
    archives.pack(folder, out / "source.tar.gz", RELEASE.seconds)
    with zipfile.ZipFile(out / "one.whl", "w") as wheel:
        for name, data in FILES.items():
            wheel.writestr(name, data)
    (folder / "DEBIAN").mkdir()
    control = "Package: one\nVersion: 1\nArchitecture: all\nMaintainer: a <a@b>\nDescription: one\n"
    (folder / "DEBIAN/control").write_text(control)
    done(["dpkg-deb", "--root-owner-group", "--build", folder, out / "one_1_all.deb"])
    return [
        Part(out / "source.tar.gz", "source", "SOURCE"),
        Part(out / "one.whl", "wheel", "INSTALL", "gcc"),
        Part(out / "one_1_all.deb", "package", "INSTALL"),
    ]


def test_members_of_each_kind(parts: list[Part]) -> None:
    source, *others = (dict(archives.members(part.file)) for part in parts)
    assert source == {f"name/{name}": data for name, data in FILES.items()}
    assert others == [FILES, FILES]


def test_sums_are_what_sha256sum_checks(parts: list[Part]) -> None:
    folder = parts[0].file.parent
    (folder / contents.SUMS).write_text(contents.sums(folder))
    assert done(["sha256sum", "--check", "--strict", contents.SUMS], cwd=folder).count(": OK\n") == 3
    parts[0].file.write_bytes(b"changed")
    with pytest.raises(AssertionError, match=r"source\.tar\.gz: FAILED"):
        done(["sha256sum", "--check", contents.SUMS], cwd=folder)


def test_list_of_contents(parts: list[Part], tmp_path: Path) -> None:
    """Read back by a parser of the format: valid, and with the hash of every file."""
    written = tmp_path / "one.spdx.json"
    contents.write_contents(contents.contents(RELEASE, parts), written)
    read = parse_file(str(written))
    assert validate_full_spdx_document(read, "SPDX-2.3") == []
    assert read.creation_info.created == RELEASE.time
    by_name = {package.name: package for package in read.packages}
    assert set(by_name) == {"libgcc", *(part.file.name for part in parts)}
    files = {file.spdx_id: file for file in read.files}
    for part in parts:
        package = by_name[part.file.name]
        assert package.checksums[1].value == sha256(part.file.read_bytes()).hexdigest()
        held = [
            files[str(relation.related_spdx_element_id)]
            for relation in read.relationships
            if relation.spdx_element_id == package.spdx_id
            and relation.relationship_type == RelationshipType.CONTAINS
        ]
        members = archives.members(part.file)
        assert sorted((file.name, file.checksums[0].value) for file in held) == [
            (f"./{name}", sha1(data).hexdigest()) for name, data in members
        ]
    linked = [r for r in read.relationships if r.relationship_type == RelationshipType.STATIC_LINK]
    assert [relation.spdx_element_id for relation in linked] == [by_name["one.whl"].spdx_id]
    again = tmp_path / "again.spdx.json"
    contents.write_contents(contents.contents(RELEASE, parts), again)
    assert again.read_bytes() == written.read_bytes()


def test_a_wrong_list_is_not_written(parts: list[Part], tmp_path: Path) -> None:
    document = contents.contents(RELEASE, parts)
    document.packages[0].spdx_id = "has spaces"
    with pytest.raises(Failed, match="list of contents"):
        contents.write_contents(document, tmp_path / "never.spdx.json")
    assert not (tmp_path / "never.spdx.json").exists()


def test_notes_of_this_project() -> None:
    title, text = contents.changes((SOURCE / "CHANGELOG.md").read_text(), "0.1.0")
    assert title and text.startswith("### ")


def test_needed_glibc(build: Path) -> None:
    """As the linker's own tool lists it."""
    library = build / "libhakmem.so"
    listed = done(["readelf", "--version-info", library]).split()
    versions = {word.removeprefix("GLIBC_") for word in listed if word.startswith("GLIBC_2.")}
    newest = contents.needed_glibc([library.read_bytes()])
    assert newest in versions
    order = subprocess.check_output(["sort", "-V"], input="\n".join(versions), text=True)
    assert order.split()[-1] == newest


def test_a_failing_step_shows_the_end_of_what_it_said(tmp_path: Path) -> None:
    work = Work(tmp_path, tmp_path, 0)
    with pytest.raises(Failed, match="(?s)ended with 3:\n.*last words"):
        work.run("sh", "-c", "echo last words >&2; exit 3")
    work.run("sh", "-c", 'test "$SOURCE_DATE_EPOCH" = 0 && test "$TZ" = UTC')
