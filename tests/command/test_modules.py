"""What a command says that lacks Python modules: all of them, and a command that installs them."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from hakmem import modules
from tests.command.command import clean_environment
from tests.ran import ran

ROOT = Path(__file__).parents[2]
SYSTEM = "/usr/bin/python3"
NAMES = {
    "elftools": "pyelftools",
    "google.protobuf": "protobuf",
    "prometheus_client": "prometheus-client",
}
RECORDINGS = ["numpy", "zstandard"]
CASES = [
    (["record", "--", "true"], RECORDINGS, 2),
    (["trace", "x"], RECORDINGS, 2),
    (["trace", "-o", "/tmp/x.pb.gz", "x"], [*RECORDINGS, "google.protobuf"], 2),
    (["profile", "-o", "/tmp/x.pb.gz", "x"], ["google.protobuf"], 2),
    (["exporter"], ["prometheus_client"], 2),
    (["top", "--prometheus"], ["prometheus_client"], 2),
    (["doctor"], ["elftools"], 125),
    (["trace", "x"], ["elftools", *RECORDINGS], 125),
    (["trace", "-ox.pb.gz", "x"], ["elftools", *RECORDINGS, "google.protobuf"], 125),
    (["profile", "-o", "x.pb.gz", "x"], ["elftools", "google.protobuf"], 125),
]


def _without(python: str, words: list[str], missing: list[str]) -> subprocess.CompletedProcess[str]:
    program = (
        f"import sys; sys.modules.update(dict.fromkeys({missing}))\n"
        f"sys.argv = ['hakmem', 'hakmem', 'libhakmem.so', *{words}]\n"
        "from hakmem.cli import main; main()"
    )
    return ran(
        python, "-c", program, cwd=Path(modules.__file__).parents[1], env=clean_environment()
    )


def _command(python: str, words: list[str], missing: list[str], status: int) -> list[str]:
    """Which it names; nothing else is said."""
    done = _without(python, words, missing)
    assert (done.returncode, done.stdout) == (status, ""), done
    line = re.fullmatch(
        rf"hakmem {words[0]}: (?:--prometheus |-o \S+: )?needs the Python modules? (.*):"
        r" install with '(.*)'\n",
        done.stderr,
    )
    assert line is not None, done.stderr
    assert re.split(", | and ", line[1]) == [NAMES.get(name, name) for name in missing]
    return shlex.split(line[2])


@pytest.mark.parametrize(("words", "missing", "status"), CASES)
def test_in_an_environment(words: list[str], missing: list[str], status: int) -> None:
    named = _command(sys.executable, words, missing, status)
    assert named[:4] == [sys.executable, "-m", "pip", "install"]
    assert named[4:] == [NAMES.get(name, name) for name in missing]


@pytest.mark.parametrize(("words", "missing", "status"), CASES)
def test_in_a_debian(words: list[str], missing: list[str], status: int) -> None:
    """Whose own Python has no pip. The packages that are named are those that have the modules."""
    find = (
        f"import importlib; [print(importlib.import_module(one).__path__[0]) for one in {missing}]"
    )
    found = ran(SYSTEM, "-c", find)
    if found.returncode or not Path("/usr/bin/dpkg").exists():
        pytest.skip(f"needs Debian's Python modules {missing}")
    owner = ["dpkg-query", "--search", *(f"{path}/__init__.py" for path in found.stdout.split())]
    owners = ran(*owner, check=True).stdout
    named = _command(SYSTEM, words, missing, status)
    assert named[:2] == ["apt-get", "install"]
    assert sorted(named[2:]) == sorted(line.partition(":")[0] for line in owners.splitlines())


def _required() -> list[Requirement]:
    """Without what bench and its kin need, which Debian 12 has not."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    texts = [text for name in ("prometheus", "pprof", "record") for text in extras[name]]
    return [Requirement(text) for text in (*project["dependencies"], *texts)]


@pytest.mark.parametrize("file", ["README.md", "debian/control", "docs/install.md", "tools/setup"])
def test_every_list_of_packages_has_them(file: str) -> None:
    text = (ROOT / file).read_text()
    wanted = {"python3-venv", *(f"python3-{one.name}" for one in _required())}
    assert wanted <= set(re.findall(r"\bpython3-[a-z]+(?:-[a-z]+)*", text))


@pytest.mark.parametrize("required", _required(), ids=lambda one: str(one.name))
def test_debian_s_versions_are_permitted(required: Requirement) -> None:
    ask = f"import importlib.metadata; print(importlib.metadata.version({required.name!r}))"
    done = ran(SYSTEM, "-c", ask)
    if done.returncode:
        pytest.skip(f"needs Debian's python3-{required.name}")
    assert done.stdout.strip() in required.specifier
