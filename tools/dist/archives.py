"""Archives: made so that their bytes follow from what is in them, and read."""

from __future__ import annotations

import gzip
import io
import subprocess
import tarfile
import zipfile
from pathlib import Path


def source(repository: Path, commit: str, name: str, to: Path) -> None:
    """All files of a commit, in a folder of this name. The clone's own settings change nothing."""
    git = ["git", "-C", str(repository), "-c", "tar.umask=0022", "-c", "core.autocrlf=false"]
    tar = subprocess.run(
        [*git, "archive", "--format=tar", f"--prefix={name}/", commit],
        stdout=subprocess.PIPE,
        check=True,
    ).stdout
    to.write_bytes(gzip.compress(tar, 9, mtime=0))


def pack(folder: Path, to: Path, seconds: int) -> None:
    """A folder under its own name, all of it from one second, and everybody's."""

    def plain(info: tarfile.TarInfo) -> tarfile.TarInfo:
        info.uid = info.gid = 0
        info.uname = info.gname = ""
        info.mtime = seconds
        may_be_run = info.isdir() or info.issym() or info.mode & 0o100
        info.mode = 0o755 if may_be_run else 0o644
        return info

    with (
        to.open("wb") as file,
        gzip.GzipFile("", "wb", 9, file, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as tar,
    ):
        for path in sorted([folder, *folder.rglob("*")]):
            tar.add(path, path.relative_to(folder.parent), recursive=False, filter=plain)


def members(archive: Path) -> list[tuple[str, bytes]]:
    """The files in a tarball, crate, wheel or Debian package, without links, in the order of names."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as zipped:
            names = [name for name in zipped.namelist() if not name.endswith("/")]
            return sorted((name, zipped.read(name)) for name in names)
    data = archive.read_bytes()
    if archive.suffix == ".deb":
        unpacking = ["dpkg-deb", "--fsys-tarfile", str(archive)]
        data = subprocess.run(unpacking, stdout=subprocess.PIPE, check=True).stdout
    found = []
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        for info in tar:
            content = tar.extractfile(info) if info.isfile() else None
            if content is not None:
                found.append((info.name.removeprefix("./"), content.read()))
    return sorted(found)


def unpack(archive: Path, to: Path) -> Path:
    """Into a folder that is made; returns the one folder that was in the archive."""
    to.mkdir(parents=True)
    subprocess.run(["tar", "--no-same-owner", "-xf", archive, "-C", to], check=True)
    (folder,) = to.iterdir()
    return folder
