"""The walk counts what a reader meets, and its lists name what the source has."""

import shutil
import sys
from pathlib import Path

import pytest

from tests.ran import ran
from tools.call_graph import Graph, call_graph
from tools.walk import ROOT, main, missing, stays, walk

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc finds the calls")

FAST = "static inline __attribute__((always_inline)) "
PLANTED = {
    "api/malloc.c": """
        #include "front/cache.h"
        void *slow_malloc(void);
        void *hakmem_malloc(void) { return pop() ? pop() : slow_malloc(); }
        """,
    "front/cache.h": f"""
        {FAST}int empty(void) {{ return 0; }}
        {FAST}int pop(void) {{ return empty(); }}
        """,
    "api/slow.c": """
        #include "api/door.h"
        #include "front/cache.h"
        int refill(void);
        static int take(void) { return refill() + pop(); }
        static void *plain_malloc(void) { return 0; }
        void *malloc_closed(void) { return 0; }
        void *slow_malloc(void) { return take() ? malloc_closed() : kind()->malloc(); }
const struct kind plain = {
            .malloc = plain_malloc,
};
        """,
    "api/door.h": f"""
        struct kind {{ void *(*malloc)(void); }};
        extern const struct kind plain;
        {FAST}const struct kind *kind(void) {{ return &plain; }}
        """,
    "front/refill.c": """
        int refill(void);
        static int learn(void) { return 0; }
        int refill(void) { return learn() + (0 ? refill() : 1); }
        """,
    "api/harden.c": """
        #include "api/door.h"
        int refill(void);
        static void *any_malloc(void) { return refill() ? (void *)0 : (void *)1; }
const struct kind hardened_kind = {
            .malloc = any_malloc,
};
        """,
    "os/lock.c": "static int take(void) { return 0; }\nint lock(void) { return take(); }",
}
START = "api/malloc.c:hakmem_malloc"
PLAIN = [
    START,
    "front/cache.h:pop",
    "front/cache.h:empty",
    "api/slow.c:slow_malloc",
    "api/slow.c:take",
    "front/refill.c:refill",
    "front/refill.c:learn",
    "api/door.h:kind",
    "api/slow.c:plain_malloc",
]


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    root = tmp_path_factory.mktemp("tree") / "src"
    for name, text in PLANTED.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return call_graph(root)


def test_a_walk_reads_each_function_once_in_the_order_of_calls(planted: Graph) -> None:
    assert walk(planted, START, "plain") == PLAIN
    assert stays(PLAIN) == 6


def test_a_mode_goes_through_its_gates(planted: Graph) -> None:
    harden, closed = "api/harden.c:any_malloc", "api/slow.c:malloc_closed"
    *before, table, plain = PLAIN
    assert sorted(walk(planted, START, "hardened")) == sorted([*PLAIN, harden])
    assert walk(planted, START, "recorded") == [*before, closed, table, plain]
    assert sorted(walk(planted, START, "everything")) == sorted([*PLAIN, closed, harden])


def test_sites_are_counted_once_for_all_who_include_them(planted: Graph) -> None:
    empty, pop = planted.sites("front/cache.h:empty"), planted.sites("front/cache.h:pop")
    assert [(site.file, site.line) for site in empty] == [("front/cache.h", 3)]
    assert sorted(site.file for site in pop) == ["api/malloc.c", "api/malloc.c", "api/slow.c"]
    assert {site.file for site in planted.sites("os/lock.c:take")} == {"os/lock.c"}


def test_what_is_not_there_is_named(planted: Graph) -> None:
    lines = list(missing(planted))
    assert "tools/walk.py: src/ has no function api/malloc.c:hakmem_free" in lines
    assert "tools/walk.py: src/ has no function front/hardened.c:*" in lines
    assert "tools/walk.py: src/ has no function os/lock.h:lock_enter" in lines
    assert not any("hakmem_malloc" in line for line in lines)


def test_the_lists_name_what_the_source_has() -> None:
    command = [sys.executable, "tools/walk.py", "--check"]
    done = ran(*command, cwd=ROOT)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_a_source_that_is_wrong_ends_it(tmp_path: Path) -> None:
    (tmp_path / "a.c").write_text("int f(void) { return g(; }\n")
    with pytest.raises(SystemExit, match=r"a\.c: gcc failed"):
        call_graph(tmp_path)


def test_what_it_does_not_know_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["walk.py", "--print"])
    assert main() == 2
