"""The root of the repository holds what CONTRIBUTING.md lists, and nothing else: no input of a
fuzzer that crashed, and no file of a tool that ran there. And each folder of tests has a README,
which the index names."""

import re
import subprocess

from tests.docs.options_named import ROOT

LISTED = re.compile(r"^\| ((?:`[^`]+`(?:, )?)+) \|", re.MULTILINE)


def test_the_root_holds_what_is_listed() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text()
    table = page.split("| in the root |")[1].split("\n\n")[0]
    listed = {name for cell in LISTED.findall(table) for name in re.findall(r"`([^`]+)`", cell)}
    files = subprocess.run(["git", "ls-files"], cwd=ROOT, stdout=subprocess.PIPE, check=True)
    assert {line.split("/")[0] for line in files.stdout.decode().splitlines()} == listed


def test_each_folder_of_tests_is_in_the_index() -> None:
    tests = ROOT / "tests"
    index = (tests / "README.md").read_text()
    named = set(re.findall(r"\((\w+)/README\.md\)", index))
    assert named == {path.parent.name for path in tests.glob("*/CMakeLists.txt")}
    assert [name for name in sorted(named) if not (tests / name / "README.md").is_file()] == []
