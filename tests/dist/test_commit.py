"""How a build finds out from which commit it is made (cmake/commit.cmake)."""

import shutil
from pathlib import Path

import pytest

from tests.install.tree import SOURCE, done
from tools.dist import archives

SCRIPT = SOURCE / "cmake/commit.cmake"


def said(source: Path, folder: Path) -> str:
    file = folder / "said"
    done(["cmake", "-D", f"SOURCE={source}", "-D", f"FILE={file}", "-P", SCRIPT])
    return file.read_text()


def git(folder: Path, *words: str) -> str:
    known = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_CONFIG_GLOBAL": "/dev/null"}
    known |= {"GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b"}
    command = ["env", *(f"{name}={value}" for name, value in known.items()), "git", "-C", folder]
    return done([*command, *words]).strip()


@pytest.fixture
def repository(clone: Path, tmp_path: Path) -> Path:
    """With this project's own files for the purpose, and one that may change."""
    folder = tmp_path / "repository"
    (folder / "cmake").mkdir(parents=True)
    for name in "cmake/commit", ".gitattributes":
        shutil.copy(clone / name, folder / name)
    (folder / "file").write_text("before\n")
    git(folder, "init", "--quiet")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message", "first")
    git(folder, "tag", "--annotate", "--message", "a tag is not what is asked for", "v1")
    return folder


def test_of_a_clone(repository: Path, tmp_path: Path) -> None:
    head = git(repository, "rev-parse", "HEAD")
    assert said(repository, tmp_path) == f"commit {head[:12]}\n"
    (repository / "untracked").touch()
    assert said(repository, tmp_path) == f"commit {head[:12]}\n"
    (repository / "file").write_text("after\n")
    assert said(repository, tmp_path) == f"commit {head[:12]}+changes\n"


def test_of_an_archive(repository: Path, tmp_path: Path) -> None:
    head = git(repository, "rev-parse", "HEAD")
    archives.source(repository, head, "name", tmp_path / "archive.tar.gz")
    unpacked = archives.unpack(tmp_path / "archive.tar.gz", tmp_path / "unpacked")
    assert unpacked.name == "name"
    assert said(unpacked, tmp_path) == f"commit {head[:12]}\n"


def test_not_of_another_project_around_it(repository: Path, tmp_path: Path) -> None:
    inside = repository / "third_party"
    (inside / "cmake").mkdir(parents=True)
    shutil.copy(repository / "cmake/commit", inside / "cmake/commit")
    assert said(inside, tmp_path) == "commit not known: built outside a git clone\n"


def test_where_git_fails(repository: Path, tmp_path: Path) -> None:
    shutil.rmtree(repository / ".git")
    (repository / ".git").write_text("gitdir: /nonexistent\n")
    assert said(repository, tmp_path).startswith("commit not known: 'git describe' failed")


def test_the_file_is_left_alone_where_nothing_changed(repository: Path, tmp_path: Path) -> None:
    said(repository, tmp_path)
    before = (tmp_path / "said").stat().st_mtime_ns
    said(repository, tmp_path)
    assert (tmp_path / "said").stat().st_mtime_ns == before


def test_of_this_build(clone: Path, build: Path) -> None:
    """Whatever was committed since: it is a commit of this clone."""
    words = (build / "commit").read_text().split()
    assert words[0] == "commit"
    named = words[1].removesuffix("+changes")
    assert done(["git", "-C", clone, "cat-file", "-t", named]) == "commit\n"
