"""Every format is opened by a reader of its own: pprof, Python's protobuf, a JavaScript engine."""

from __future__ import annotations

import gzip
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from hakmem import heap_profile, pprof, profile_difference, profile_html, profile_text, symbols
from hakmem.heap_profile import FIGURES, Figures
from hakmem.symbols import Frame, Line, Named, Stack
from tests.profile.planted import KEPT, PASSED, RATE, Planted, functions, named, near
from tests.ran import ran
from tests.watch.watched import Command

HERE = Path(__file__).parent
PPROF = (
    ["pprof"] if shutil.which("pprof") else ["go", "tool", "pprof"] if shutil.which("go") else []
)


@pytest.fixture
def protobuf() -> Any:
    return pytest.importorskip("google.protobuf", reason="needs the Python module protobuf")


@pytest.fixture
def heap(planted: Planted) -> Path:
    return planted.profile("profile_plant")


def written(command: Command, tmp_path: Path, heap: Path, ending: str, *words: str) -> Path:
    path = tmp_path / f"out{ending}"
    done = command("profile", "-o", path, *words, heap)  # type: ignore[arg-type]
    assert done.returncode == 0, done.stderr
    assert done.stderr == f"hakmem profile: {path}\n" and done.stdout == ""
    return path


def from_pprof(path: Path, *words: str) -> str:
    if not PPROF:
        pytest.skip("there is neither pprof nor go")
    done = ran(*PPROF, "-symbolize=none", *words, path)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_several(command: Command, planted: Planted, heap: Path, tmp_path: Path) -> None:
    """Their sum, and each."""
    other = planted.profile("profile_plant_fixed")
    done = command("profile", "--text", str(heap), str(other))
    assert done.returncode == 0 and done.stderr == ""
    table = done.stdout.split("\n\n")[-1].splitlines()
    rows = [[int(n) for n in re.findall(r"iB +(\d+)", line)] for line in table[1:]]
    assert len(rows) == 3 and [len(row) for row in rows] == [3, 3, 3]
    assert [a + b for a, b in zip(*rows[:2], strict=True)] == rows[2]
    folder = tmp_path / "heaps"
    folder.mkdir()
    shutil.copy(heap, folder), shutil.copy(other, folder)
    same = command("profile", "--text", str(folder)).stdout
    assert (
        same.split("\n", 1)[1].replace(str(folder), str(heap.parent))
        == (done.stdout.split("\n", 1)[1])
    )
    assert command("profile", "-o", "x.heap", str(folder)).returncode == 2


def test_text(command: Command, heap: Path) -> None:
    done = command("profile", "--text", str(heap))
    assert done.returncode == 0 and done.stderr == ""
    lines = done.stdout.splitlines()
    assert lines[0] == f"{heap}: one sample for each 16 KiB on average"
    rows = [re.match(r" +([\d.]+) MiB +([\d.]+) MiB +([\d.]+) +(\d+)  (\S+)", x) for x in lines]
    found = [row for row in rows if row is not None]
    assert len(found) == 2
    if any(map(shutil.which, ("llvm-symbolizer", "addr2line"))):
        assert {row[5] for row in found} == {"inlined", "library_keeps"}
    for row in found:
        assert near(float(row[1]) * 2**20, KEPT) and 45 < float(row[3]) < 55
        assert 1.5 < float(row[2]) < 2.5
    only = command("profile", "--text", "--by", "alloc", "--top", "1", str(heap)).stdout
    assert "  in 2 other sites" in only and "allocated" in only.splitlines()[3]


def test_pprof(command: Command, tmp_path: Path, heap: Path, protobuf: Any) -> None:
    path = written(command, tmp_path, heap, ".pb.gz")
    top = from_pprof(path, "-top", "-sample_index=inuse_space", "-unit=B")
    row = re.search(r"^ *\S+ +\S+% +\S+% +(\d+)B +\S+% +leak(?: |$)", top, re.M)
    assert row is not None and near(int(row[1]), KEPT), top
    assert "Type: inuse_space" in from_pprof(path, "-top"), "what is shown without a choice"
    for name in FIGURES:
        assert "leak" in from_pprof(path, "-top", f"-sample_index={name}")
    raw = from_pprof(path, "-raw")
    assert f"Period: {RATE}" in raw and "PeriodType: space bytes" in raw
    build_id = symbols._facts(heap_profile_program(heap)).build_id
    assert re.search(rf"/profile_plant {build_id}", raw)


def heap_profile_program(heap: Path) -> Path:
    profile = heap_profile.read(heap)
    (path,) = {m.path for m in profile.mappings if m.path.endswith("/profile_plant")}
    return Path(path)


def test_pprof_by_its_messages(command: Command, tmp_path: Path, heap: Path, protobuf: Any) -> None:
    path = written(command, tmp_path, heap, ".pb.gz")
    profile = pprof.message().FromString(gzip.decompress(path.read_bytes()))
    strings = profile.string_table
    assert strings[0] == "" and len(set(strings)) == len(strings)
    kinds = [(strings[one.type], strings[one.unit]) for one in profile.sample_type]
    assert kinds == [
        ("inuse_objects", "count"),
        ("inuse_space", "bytes"),
        ("alloc_objects", "count"),
        ("alloc_space", "bytes"),
        ("peak_objects", "count"),
        ("peak_space", "bytes"),
    ]
    assert strings[profile.default_sample_type] == "inuse_space"
    assert re.compile(strings[profile.drop_frames]).fullmatch("malloc")
    locations = {one.id: one for one in profile.location}
    mappings = {one.id: one for one in profile.mapping}
    of_functions = {one.id for one in profile.function}
    assert profile.mapping[0].id == 1 and strings[mappings[1].filename].endswith("/profile_plant")
    for location in locations.values():
        mapping = mappings[location.mapping_id]
        assert mapping.memory_start <= location.address < mapping.memory_limit
        assert {line.function_id for line in location.line} <= of_functions
    for sample in profile.sample:
        assert len(sample.value) == 6 and set(sample.location_id) <= locations.keys()
    sums = [sum(sample.value[i] for sample in profile.sample) for i in range(6)]
    assert near(sums[1], 2 * KEPT) and near(sums[3], 2 * KEPT + PASSED)


def test_pprof_without_protobuf(command: Command, tmp_path: Path, heap: Path) -> None:
    """One line, before anything else is done."""
    hidden = tmp_path / "hakmem"
    program = (
        "import sys; sys.modules['google.protobuf'] = None; sys.argv = ['hakmem', 'hakmem', "
        f"'lib', 'profile', '-o', {str(tmp_path / 'x.pb.gz')!r}, {str(heap)!r}]; "
        "from hakmem.cli import main; main()"
    )
    import sys

    done = ran(sys.executable, "-c", program, cwd=HERE.parents[1] / "python")
    assert done.returncode == 2, done.stderr
    assert re.fullmatch(r"hakmem profile: -o .*needs the Python module protobuf: .*\n", done.stderr)
    assert not hidden.exists() and not (tmp_path / "x.pb.gz").exists()


def test_heap(command: Command, tmp_path: Path, heap: Path) -> None:
    """The text itself, and names; pprof reads that as well."""
    path = written(command, tmp_path, heap, ".heap")
    text = path.read_text()
    own = text[: text.index("# symbol ")]
    assert own == heap.read_text() and "\tleak\t" in text[len(own) :]
    assert "inuse_space" in from_pprof(path, "-raw")


def test_collapsed(command: Command, tmp_path: Path, heap: Path) -> None:
    path = written(command, tmp_path, heap, ".collapsed")
    found = dict(line.rsplit(" ", 1) for line in path.read_text().splitlines())
    (stack,) = (name for name in found if ";leak" in name and "library" not in name)
    assert near(int(found[stack]), KEPT) and ";main;leak" in stack
    more = written(command, tmp_path, heap, ".collapsed", "--by", "alloc").read_text()
    assert ";pass " in more and ";pass " not in "".join(found)


def test_speedscope(command: Command, tmp_path: Path, heap: Path) -> None:
    said = json.loads(written(command, tmp_path, heap, ".speedscope.json").read_text())
    assert said["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    frames = said["shared"]["frames"]
    assert len(said["profiles"]) == 6 and {p["unit"] for p in said["profiles"]} == {"bytes", "none"}
    for profile in said["profiles"]:
        assert profile["type"] == "sampled" and profile["startValue"] == 0
        assert len(profile["samples"]) == len(profile["weights"])
        assert profile["endValue"] == sum(profile["weights"]) > 0
        assert all(frames[i]["name"] for sample in profile["samples"] for i in sample)
    first = said["profiles"][0]
    assert first["name"] == "in use, bytes"
    names = [[frames[i]["name"] for i in sample] for sample in first["samples"]]
    assert any("leak" in sample and sample.index("main") < sample.index("leak") for sample in names)


# ---- the page ----


def drawn(page: Path, search: str) -> dict[str, Any]:
    if not shutil.which("node"):
        pytest.skip("there is no node")
    done = ran("node", HERE / "draw.cjs", page, search)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def test_page_is_alone(command: Command, tmp_path: Path, heap: Path) -> None:
    """It loads nothing, and may not."""
    text = written(command, tmp_path, heap, ".html").read_text()
    assert "default-src 'none'" in text and "prefers-color-scheme: dark" in text
    assert not re.search(r"""https?:|//[a-z]|\bsrc=|<link|@import|url\(|fetch\(|XMLHttp""", text)


def test_page(command: Command, tmp_path: Path, heap: Path) -> None:
    shown = drawn(written(command, tmp_path, heap, ".html"), "leak_in_library")
    assert shown["title"] == f"{heap}: heap profile" and shown["notes"] == ""
    first = shown["first"]
    widths = {frame["name"]: frame["width"] for frame in first["frames"]}
    assert widths["all stacks"] == 100 and 45 < widths["leak_in_library"] < 55
    assert first["pressed"] == ["in use", "bytes"] and len(first["rows"]) == 2
    assert len(shown["figures"]) == 6
    for name, figure in shown["figures"].items():
        names = {frame["name"] for frame in figure["frames"]}
        assert ("pass" in names) == name.startswith("allocated")
    found = shown["search"]
    assert {f["name"] for f in found["frames"] if f["found"]} == {"leak_in_library"}
    assert len(found["rows"]) == 1 and found["matched"].startswith("1 stacks match")
    assert all(frame["width"] == 100 for frame in shown["zoomed"]["frames"])
    assert shown["back"]["frames"] == first["frames"]
    sums = {re.split(r"[ /]", row[5])[0]: (row[0], row[2]) for row in shown["functions"]}
    in_library, all_ = sums["library_keeps"][0], sums["main"][0]
    assert sums["leak_in_library"] == (in_library, "0 B")
    assert sums["library_keeps"] == (in_library, in_library) and sums["main"] == (all_, "0 B")
    assert [frame["name"] for frame in shown["up"][:3]] == ["all stacks", *sorted(
        ("inlined", "library_keeps"), key=lambda one: -widths[one])]  # fmt: skip
    assert shown["around"][:2] == [
        f"Callers of leak_in_library{in_library}100.0main",
        f"Callees of leak_in_library{in_library}100.0library_keeps",
    ]


def strange() -> Named:
    """Names that could break out of where they stand."""
    figures: Figures = (1, 1000, 2, 2000, 1, 1000)
    lines = ("</script><script>alert(1)</script>", "a;b\nc", "\x1b[31m", "<!--", "☃")
    frames = tuple(Frame(i, None, i, (Line(name, name, i),)) for i, name in enumerate(lines, 1))
    return Named(1, (Stack(frames, figures, figures), Stack((), figures, figures)), {})


def test_strange_names(tmp_path: Path) -> None:
    named_ = strange()
    page = tmp_path / "page.html"
    page.write_text(profile_html.page(named_, "<b>&\"'</title>"))
    text = page.read_text()
    assert text.count("<script") == 2 and "<b>" not in text and text.count("</title>") == 1
    shown = drawn(page, "alert")
    assert len(shown["search"]["rows"]) == 1
    assert any(f["name"] == "</script><script>alert(1)</script>" for f in shown["first"]["frames"])
    lines = profile_text.collapsed(named_, 1).splitlines()
    assert len(lines) == 2 and all(re.fullmatch(".* 1000", line) for line in lines)
    assert "a:b?c" in lines[1]
    assert all(map(str.isprintable, profile_text.table(named_, profile_text.Table("inuse", 9), "")))
    json.loads(profile_text.speedscope(named_, "\x00"))


# ---- differences ----


def test_difference(command: Command, tmp_path: Path, planted: Planted) -> None:
    """Of two runs, whose addresses differ: what only one has is there, what both have is small."""
    heap, other = planted.profile("profile_plant"), planted.profile("profile_plant_fixed")
    same = profile_difference.difference(named(heap), named(heap))
    assert same.stacks == () and same.is_difference
    now = named(heap)
    without = Named(
        now.rate,
        tuple(stack for stack in now.stacks if "leak" not in functions(stack)),
        now.build_ids,
    )
    (grown,) = profile_difference.difference(now, without).stacks
    assert "leak" in functions(grown) and near(grown.figures[1], KEPT)
    (shrunk,) = profile_difference.difference(without, now).stacks
    assert near(-shrunk.figures[1], KEPT)
    # Another build of the program: by names.
    builds = profile_difference.difference(now, named(other))
    assert all(abs(stack.figures[1]) < KEPT / 10 for stack in builds.stacks)
    done = command("profile", "--text", "--diff", str(other), str(heap))
    assert done.returncode == 0, done.stderr
    assert "differences, one sample" in done.stdout
    assert re.search(r"^ *[+-][\d.]+ [KM]iB", done.stdout, re.M)
    collapsed = written(command, tmp_path, heap, ".collapsed", "--diff", str(other)).read_text()
    (line,) = (x for x in collapsed.splitlines() if ";leak;" in x)
    assert [near(int(figure), KEPT) for figure in line.split(" ")[-2:]] == [True, True]
    page = written(command, tmp_path, heap, ".html", "--diff", str(other))
    assert "less" in drawn(page, "leak")["about"]
    json.loads(
        written(command, tmp_path, heap, ".speedscope.json", "--diff", str(other)).read_text()
    )


def test_difference_of_moved_files() -> None:
    """A build in another folder, of a changed source: functions are compared, not their lines."""
    figures: Figures = (1, 1000, 2, 2000, 1, 1000)

    def build(folder: str, line: int) -> Named:
        frames = tuple(Frame(line, None, line, (Line(f, f"{folder}/a.c", line),)) for f in "ab")
        return Named(1, (Stack(frames, figures, figures),), {})

    assert profile_difference.difference(build("/one", 1), build("/two", 2)).stacks == ()


def test_nothing_in_use() -> None:
    figures: Figures = (0, 0, 2, 2000, 0, 0)
    named_ = Named(1, (Stack((), figures, figures),), {})
    last = list(profile_text.table(named_, profile_text.Table("inuse", 9), ""))[-1]
    assert last == "nothing in use; see --by alloc"
    same = profile_difference.difference(named_, named_)
    last = list(profile_text.table(same, profile_text.Table("inuse", 9), ""))[-1]
    assert last == "no difference in use"


def test_difference_for_pprof(
    command: Command, tmp_path: Path, planted: Planted, protobuf: Any
) -> None:
    heap, other = planted.profile("profile_plant"), planted.profile("profile_plant_fixed")
    path = written(command, tmp_path, heap, ".pb.gz", "--diff", str(other))
    assert "Type: inuse_space" in from_pprof(path, "-top")
