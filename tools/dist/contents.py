"""What a release says of itself: SHA256SUMS, the list of contents (SPDX 2.3), the notes."""

from __future__ import annotations

import io
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha1, sha256
from pathlib import Path

from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerNeedSection
from spdx_tools.common.spdx_licensing import spdx_licensing
from spdx_tools.spdx.model.actor import Actor, ActorType
from spdx_tools.spdx.model.checksum import Checksum, ChecksumAlgorithm
from spdx_tools.spdx.model.document import CreationInfo, Document
from spdx_tools.spdx.model.file import File
from spdx_tools.spdx.model.package import Package, PackagePurpose, PackageVerificationCode
from spdx_tools.spdx.model.relationship import Relationship, RelationshipType
from spdx_tools.spdx.model.spdx_no_assertion import SpdxNoAssertion
from spdx_tools.spdx.validation.document_validator import validate_full_spdx_document
from spdx_tools.spdx.writer.json.json_writer import write_document_to_file

from tools.dist import archives
from tools.dist.parts import Failed, Part

LICENSE = "MIT"
# Of the compiler's unwinder, which every shared library of hakmem's holds.
RUNTIME_LICENSE = "GPL-3.0-or-later WITH GCC-exception-3.1"
COPYRIGHT = "2026 hakmem contributors"
SUMS = "SHA256SUMS"
NOTES = "RELEASE-NOTES.md"


@dataclass(frozen=True)
class Release:
    version: str
    commit: str
    seconds: int  # the commit's time

    @property
    def name(self) -> str:
        return f"hakmem-{self.version}"

    @property
    def time(self) -> datetime:
        return datetime.fromtimestamp(self.seconds, UTC).replace(tzinfo=None)


def sums(folder: Path) -> str:
    """As sha256sum reads it."""
    files = sorted(path for path in folder.iterdir() if path.name != SUMS)
    return "".join(f"{sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files)


# ---- the list of contents ----


def _id(name: str) -> str:
    return "SPDXRef-" + re.sub("[^A-Za-z0-9.-]", "-", name)


def _checksums(data: bytes) -> list[Checksum]:
    return [
        Checksum(ChecksumAlgorithm.SHA1, sha1(data).hexdigest()),
        Checksum(ChecksumAlgorithm.SHA256, sha256(data).hexdigest()),
    ]


def _runtime(compiler: str) -> Package:
    asked = [compiler, "-dumpfullversion"]
    version = subprocess.run(asked, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    return Package(
        name="libgcc",
        spdx_id=_id(f"libgcc-of-{compiler}"),
        version=version,
        download_location=SpdxNoAssertion(),
        files_analyzed=False,
        license_concluded=spdx_licensing.parse(RUNTIME_LICENSE),
        license_declared=spdx_licensing.parse(RUNTIME_LICENSE),
        copyright_text=SpdxNoAssertion(),
        comment=f"the unwinder of {compiler}, linked into libhakmem.so for backtraces in its reports",
    )


def _package(part: Part, release: Release, files: Sequence[File]) -> Package:
    license = LICENSE if part.compiler is None else f"{LICENSE} AND ({RUNTIME_LICENSE})"
    codes = sorted(file.checksums[0].value for file in files)
    return Package(
        name=part.file.name,
        spdx_id=_id(part.file.name),
        version=release.version,
        file_name=part.file.name,
        supplier=Actor(ActorType.ORGANIZATION, "hakmem contributors"),
        download_location=SpdxNoAssertion(),
        files_analyzed=True,
        verification_code=PackageVerificationCode(sha1("".join(codes).encode()).hexdigest()),
        checksums=_checksums(part.file.read_bytes()),
        license_concluded=spdx_licensing.parse(license),
        license_declared=spdx_licensing.parse(LICENSE),
        copyright_text=COPYRIGHT,
        description=part.what,
        primary_package_purpose=PackagePurpose[part.purpose],
    )


def contents(release: Release, parts: Sequence[Part]) -> Document:
    """Every file of the release, and every file in each of them. The first part is the source."""
    document = Document(
        CreationInfo(
            spdx_version="SPDX-2.3",
            spdx_id="SPDXRef-DOCUMENT",
            name=release.name,
            data_license="CC0-1.0",
            document_namespace=f"https://hakmem.invalid/spdx/{release.name}-{release.commit}",
            creators=[Actor(ActorType.ORGANIZATION, "hakmem contributors")],
            created=release.time,
        )
    )
    runtimes = {part.compiler: _runtime(part.compiler) for part in parts if part.compiler}
    packages = list(runtimes.values())
    files: list[File] = []
    relations: list[Relationship] = []
    for part in parts:
        found = [
            File(f"./{name}", f"{_id(part.file.name)}-{at}", _checksums(data))
            for at, (name, data) in enumerate(archives.members(part.file))
        ]
        package = _package(part, release, found)
        packages.append(package)
        files += found
        relate = [("SPDXRef-DOCUMENT", RelationshipType.DESCRIBES, package.spdx_id)]
        relate += [(package.spdx_id, RelationshipType.CONTAINS, file.spdx_id) for file in found]
        if part is not parts[0]:
            origin = _id(parts[0].file.name)
            relate.append((package.spdx_id, RelationshipType.GENERATED_FROM, origin))
        if part.compiler:
            inside = runtimes[part.compiler].spdx_id
            relate.append((package.spdx_id, RelationshipType.STATIC_LINK, inside))
        relations += [Relationship(*each) for each in relate]
    document.packages, document.files, document.relationships = packages, files, relations
    return document


def write_contents(document: Document, to: Path) -> None:
    wrong = validate_full_spdx_document(document)
    if wrong:
        raise Failed("the list of contents is wrong: " + wrong[0].validation_message)
    write_document_to_file(document, str(to), validate=False, drop_duplicates=False)


# ---- the notes ----


def changes(changelog: str, version: str) -> tuple[str, str]:
    """The heading and the text of a version; of the unreleased changes where it has no heading."""
    sections = [part.partition("\n") for part in re.split("^## ", changelog, flags=re.M)[1:]]
    heading = re.compile(rf"\[?{re.escape(version)}\]?( |$)")
    for wanted in heading, re.compile(r"\[?Unreleased\]?$"):
        for title, _, text in sections:
            if wanted.match(title.strip()):
                return title.strip(), text.strip() + "\n"
    raise Failed(f"CHANGELOG.md has no heading for {version}, and none for what is unreleased")


def needed_glibc(libraries: Sequence[bytes]) -> str:
    """The newest version of which one of the libraries needs a symbol."""
    names: list[str] = []
    for library in libraries:
        section = ELFFile(io.BytesIO(library)).get_section_by_name(".gnu.version_r")
        assert isinstance(section, GNUVerNeedSection)
        names += [str(symbol.name) for _, symbols in section.iter_versions() for symbol in symbols]
    versions = [name.removeprefix("GLIBC_") for name in names if name.startswith("GLIBC_2")]
    return max(versions, key=lambda version: [int(number) for number in version.split(".")])


def notes(release: Release, parts: Sequence[Part], glibc: str, changelog: str) -> str:
    title, text = changes(changelog, release.version)
    lines = [
        f"# hakmem {release.version}",
        "",
        f"Built from commit {release.commit} of {release.time:%-d %B %Y}.",
    ]
    if not re.search(r"\d", title):
        lines += ["", "This version is not released yet: what follows may still change."]
    lines += [
        "",
        "| file | |",
        "|---|---|",
        *(f"| `{part.file.name}` | {part.what} |" for part in parts),
        f"| `{release.name}.spdx.json` | list of contents: every file, its hashes, its licence |",
        f"| `{SUMS}` | `sha256sum --check {SUMS}` compares the files with it |",
        "",
        f"The libraries need Linux with glibc {glibc} or later, the command Python 3.11 with pyelftools.",
        "Everything was built from the source tarball; whoever builds it anew from the same commit with",
        "the same tools gets the same bytes.",
        "",
        "## Changes",
    ]
    return "\n".join(lines) + "\n\n" + text
