"""The runner notices what is wrong with a page, and leaves no files behind."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.docs.page import agrees

RUN = Path(__file__).with_name("run.py")


def ran(tmp_path: Path, page: str, *options: str) -> tuple[int, str]:
    file = tmp_path / "page.md"
    file.write_text(page)
    ended = subprocess.run([sys.executable, RUN, *options, file], stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, text=True, timeout=300)  # fmt: skip
    return ended.returncode, ended.stdout


@pytest.mark.parametrize(
    ("expected", "output", "same"),
    [
        ("one", "one\n", True),
        ("one", "one\ntwo\n", False),
        ("one\n…", "one\ntwo\nthree\n", True),
        ("one\n…", "one\n", True),
        ("…\nthree", "one\ntwo\nthree\n", True),
        ("…\nthree", "one\ntwo\n", False),
        ("a … z", "a b c z", True),
        ("a … z", "a b\nz", False),
        ("a.c", "abc", False),
    ],
)
def test_what_agrees(expected: str, output: str, same: bool) -> None:
    assert agrees(expected, output) == same


def test_a_page_that_is_right(tmp_path: Path) -> None:
    page = """
```sh
export NAME=world
mkdir there && cd there
```

<!-- exit: 3 -->
```sh
echo "hello $NAME in ${PWD##*/}"
echo error >&2
exit 3
```

It says:

```text
hello world in there
error
```

<!-- file: some/file.conf -->
```ini
of the page
```

<!-- prepare
cp some/file.conf copy
-->
```sh
cat copy
```

```text
of the page
```
"""
    assert ran(tmp_path, page)[0] == 0


@pytest.mark.parametrize(
    ("page", "told"),
    [
        ("```sh\nfalse\ntrue\n```\n", "ended with 1, expected 0"),
        ("```sh\necho $unset\n```\n", "unset: unbound variable"),
        ("<!-- exit: 1 -->\n```sh\ntrue\n```\n", "ended with 0, expected 1"),
        ("```sh\necho one\n```\n\n```text\ntwo\n```\n", "other output than the page says"),
        ("<!-- prepare\nfalse\n-->\n", "ended with 1, expected 0"),
    ],
)
def test_a_page_that_is_wrong(tmp_path: Path, page: str, told: str) -> None:
    status, output = ran(tmp_path, page)
    assert status == 1
    assert "page.md:" in output
    assert told in output


def test_marks_that_belong_to_nothing(tmp_path: Path) -> None:
    assert ran(tmp_path, "<!-- exit: 1 -->\nWords.\n")[0] == 2
    assert ran(tmp_path, "<!-- prepare\ntrue\n")[0] == 2
    assert ran(tmp_path, "```sh\ntrue\n")[0] == 2


def test_what_is_not_tried_is_told(tmp_path: Path) -> None:
    page = "<!-- needs: no-such-program-anywhere -->\n```sh\nfalse\n```\n"
    status, output = ran(tmp_path, page)
    assert status == 0
    assert "needs no-such-program-anywhere" in output
    assert ran(tmp_path, page, "--all")[0] == 1
    page = "<!-- needs: slow -->\n```sh\nfalse\n```\n"
    assert ran(tmp_path, page)[0] == 0
    assert ran(tmp_path, page, "--allow", "slow")[0] == 1


def test_daemons_are_ended(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    page = f"```sh\nsetsid -f sh -c 'echo $$ >{pid}; exec sleep 300'\n" + (
        f"until [ -s {pid} ]; do sleep 0.1; done\n```\n"
    )
    begin = time.monotonic()
    assert ran(tmp_path, page)[0] == 0
    assert time.monotonic() - begin < 100
    assert not Path(f"/proc/{pid.read_text().strip()}").exists()
