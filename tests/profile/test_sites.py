"""Sites that the program names itself: the name is the innermost function of the stack, in every
format. And the probes of the samples, as gdb finds them."""

from __future__ import annotations

import gzip
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from hakmem import heap_profile, pprof, profile_difference, profile_html, profile_text
from hakmem.heap_profile import NoProfile
from tests.profile.planted import BLOCK, RATE, Planted, by_function, functions, named, near
from tests.ran import clean_environment, ran
from tests.watch.watched import Command

PLANTED = 64 * 2**20
NAMES = ("cache; of <pages>", "request?buffer")
NAMED = """\
heap profile: 3: 300 [3: 300] @ heapprofile
# hakmem rate 1024 lost 0 memory 4096
1: 100 [1: 100] @ 0x401001 0x402001
# peak 1: 100 samples 1 1
# name index
1: 100 [1: 100] @ 0x401001 0x402001
# peak 1: 100 samples 1 1
1: 100 [1: 100] @
# peak 1: 100 samples 1 1
# name   é \x85 a name
# sites 3

MAPPED_LIBRARIES:
00400000-00500000 r-xp 00000000 fe:00 4711                             /bin/no such app
"""


@pytest.fixture
def heap(planted: Planted) -> Path:
    return planted.profile("profile_plant_named")


def test_names_are_read() -> None:
    sites = heap_profile.parse(NAMED, "named").sites
    assert [site.name for site in sites] == ["index", "", "  é \x85 a name"]
    without_a_name = NAMED.replace("# name index\n", "# name \n")
    with pytest.raises(NoProfile, match="damaged in line 5"):
        heap_profile.parse(without_a_name, "named")


def test_a_name_is_the_innermost_function(heap: Path) -> None:
    profile = named(heap)
    for name, kept in zip(NAMES, (PLANTED, 0), strict=True):
        stack = by_function(profile, name)
        assert functions(stack)[:3] == [name, "get", "main"]
        assert near(stack.figures[3], PLANTED) and near(stack.figures[2], PLANTED / BLOCK)
        assert near(stack.figures[1], kept)


def test_formats(heap: Path, command: Command) -> None:
    profile = named(heap)
    table = command("profile", "--text", str(heap)).stdout
    assert re.search(rf"  {re.escape(NAMES[0])}\n +get", table), table
    (line,) = profile_text.collapsed(profile, 1).splitlines()
    assert ";main;get;cache: of <pages> " in line
    (stack, *_) = json.loads(profile_text.speedscope(profile, "x"))["profiles"][0]["samples"]
    assert stack
    page = profile_html.page(profile, "x")
    assert r"cache; of \u003cpages\u003e" in page and "<pages>" not in page


def test_pprof(heap: Path) -> None:
    pytest.importorskip("google.protobuf", reason="needs the Python module protobuf")
    made: Any = pprof.message().FromString(gzip.decompress(pprof.profile(named(heap))))
    functions_ = {one.id: made.string_table[one.name] for one in made.function}
    locations = {
        one.id: [functions_[line.function_id] for line in one.line] for one in made.location
    }
    innermost = {locations[sample.location_id[0]][0] for sample in made.sample}
    assert innermost >= set(NAMES)


def test_differences_are_by_name(heap: Path) -> None:
    profile = named(heap)
    assert not profile_difference.difference(profile, profile).stacks


# ---- probes ----

FOUND = re.compile(r"stap +otel_memory +(alloc|free) +0x[0-9a-f]+ .*libhakmem")


def test_probes(planted: Planted, tmp_path: Path) -> None:
    """Each sample passes alloc with the block, its bytes and its weight; its free passes free."""
    gdb = shutil.which("gdb")
    if gdb is None:
        pytest.skip("gdb is not installed")
    script = tmp_path / "script"
    script.write_text(
        f"""\
set pagination off
set confirm off
set debuginfod enabled off
set startup-with-shell off
set environment HAKMEM_PROFILE on
set environment HAKMEM_PROFILE_RATE {RATE}
set environment HAKMEM_PROFILE_FILE {tmp_path}/probes.heap
break main
run
info probes stap otel_memory
delete
break -probe-stap otel_memory:alloc
continue
printf "alloc %#lx %lu %lu\\n", $_probe_arg0, $_probe_arg1, $_probe_arg2
printf "arguments %d\\n", $_probe_argc
continue
printf "alloc %#lx %lu %lu\\n", $_probe_arg0, $_probe_arg1, $_probe_arg2
delete
break -probe-stap otel_memory:free
continue
printf "free %#lx %d\\n", $_probe_arg0, $_probe_argc
kill
"""
    )
    others = clean_environment()
    done = ran(
        gdb, "-nx", "-batch", "-x", script, planted.programs / "profile_plant_named", env=others
    )
    said = done.stdout + done.stderr
    if re.search(r"ptrace: Operation not permitted|Could not trace", said):
        pytest.skip("gdb may not trace here")
    assert set(FOUND.findall(done.stdout)) == {"alloc", "free"}, said
    allocs = re.findall(r"^alloc (0x[0-9a-f]+) (\d+) (\d+)$", done.stdout, re.M)
    assert len(allocs) == 2 and allocs[0][0] != allocs[1][0], said
    for _, size, weight in allocs:
        assert int(size) == BLOCK
        # A block of 1/16 of the rate is sampled in 6% of cases.
        assert abs(int(weight) - BLOCK / 0.0606) < 0.01 * RATE, said
    assert "arguments 3" in done.stdout, said
    assert re.search(r"^free 0x[0-9a-f]+0 1$", done.stdout, re.M), said
