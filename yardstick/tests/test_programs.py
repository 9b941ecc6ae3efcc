"""Rows of real programs at a small scale: their figures, and what becomes of those that fail."""

import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from hakmem_yardstick.model import OURS, SYSTEM, Allocator, Kind, Row
from hakmem_yardstick.programs import Programs, inforce, packages_missing, runner, turnovers
from hakmem_yardstick.programs.program import SCRIPTS, Place, Program, Ran, batch
from hakmem_yardstick.programs.runner import PROGRAMS
from hakmem_yardstick.runner import Outcome, Unavailable
from yardstick.tests import made

SCALE = 0.05
TIMEOUT = 300.0
BY_NAME = {program.name: program for program in PROGRAMS}
GLIBC = Allocator(SYSTEM, Kind.PEER)
SERVICES = ["python-turnover", "cxx-turnover"]
TURNOVERS = [*SERVICES, "postgres-turnover"]


def installed(*names: str) -> list[Program]:
    """Those programs; without one of them there is nothing to test here."""
    found = [BY_NAME[name] for name in names]
    for program in found:
        if program.missing():
            pytest.skip(f"needs {' '.join(program.packages)}")
    return found


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def scratch(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where runs have their folders; short, for sockets, open to postgres, and to be left empty."""
    with tempfile.TemporaryDirectory(prefix="hakmem-test-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        with monkeypatch.context() as patch:
            patch.setattr("tempfile.tempdir", name)
            yield folder
        assert list(folder.iterdir()) == []
        assert here(folder) == []


def here(folder: Path) -> list[str]:
    """Processes whose command names the folder, or that run in it."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (
                process.joinpath("cmdline")
                .read_bytes()
                .replace(b"\0", b" ")
                .decode(errors="replace")
            )
            if str(folder) in command or str(folder) in str(process.joinpath("cwd").readlink()):
                found.append(command)
        except OSError:
            continue  # it has just ended
    return found


@pytest.fixture(scope="session")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Allocator]:
    folder = tmp_path_factory.mktemp("broken")

    def build(name: str, **numbers: str | int) -> Allocator:
        return Allocator(name, Kind.PEER, made.bad(folder, name, **numbers))

    return build


def row_of(programs: Programs, name: str) -> Row:
    row = next(row for row in programs.rows() if row.name == name)
    programs.prepare(row)
    return row


def run(programs: Programs, name: str, allocator: Allocator, timeout: float = TIMEOUT) -> Outcome:
    row = row_of(programs, name)
    return programs.run(row, allocator, scale=SCALE, timeout=timeout)


@pytest.mark.parametrize("name", ["sqlite", "redis", *TURNOVERS])
def test_both_do_the_same_work(name: str, library: Path, cache: Path, scratch: Path) -> None:
    programs = Programs(cache, installed(name))
    ours = Allocator(OURS, Kind.OURS, library)
    outcomes = [run(programs, name, allocator) for allocator in (GLIBC, ours)]
    row = row_of(programs, name)
    for outcome in outcomes:
        assert (outcome.outcome, outcome.detail) == ("ok", "")
        assert outcome.values.keys() == {measure.name for measure in row.measures}
        assert 0 < outcome.seconds < TIMEOUT
        assert all(value > 0 for value in outcome.values.values())
        assert 2_000 < outcome.values["peak"] < 1_000_000
        if name != "postgres-turnover":  # whose processes are many, and the peak is of one
            assert outcome.values["pss"] <= outcome.values["peak"]
        assert outcome.raw["result"] == outcomes[0].raw["result"]
        assert outcome.raw["sizes"] == BY_NAME[name].scaled(SCALE)
        assert all(0 <= at <= outcome.seconds for at, _ in outcome.series)
    assert set(row.judged) <= outcomes[0].values.keys()
    if name in TURNOVERS:
        says_what_is_resident_after_each_step(name, outcomes[1])


def test_redis_is_timed_by_its_requests(cache: Path, scratch: Path) -> None:
    programs = Programs(cache, installed("redis"))
    outcome = run(programs, "redis", GLIBC)
    rates = [rate for _, rate in outcome.raw["tests"]]
    requests = BY_NAME["redis"].scaled(SCALE)["requests"]
    assert outcome.raw["operations"] == requests * len(rates)
    seconds = sum(requests / rate for rate in rates)
    assert outcome.values["time"] == pytest.approx(seconds / outcome.raw["operations"] * 1e9)
    # redis pipelines 16 requests: one takes some microseconds, not some milliseconds.
    assert 100 < outcome.values["time"] < 1e6
    assert outcome.values["cpu"] * outcome.raw["operations"] / 1e9 < outcome.seconds * 2


def test_every_row_says_what_it_is() -> None:
    rows = Programs(programs=PROGRAMS).rows()
    assert len({row.name for row in rows}) == len(rows) == len(PROGRAMS)
    for row in rows:
        names = [measure.name for measure in row.measures]
        assert set(row.judged) <= set(names)
        assert row.group == "programs"
        assert row.needs_content and row.why
    assert {row.name for row in rows if row.tier == "quick"} == {"python-malloc", "redis"}


def test_what_is_not_there_is_named_with_its_package(cache: Path) -> None:
    (lua,) = installed("lua")
    gone = replace(lua, executables=("lua99",), packages=("lua9.9",))
    programs = Programs(cache, [gone])
    (row,) = programs.rows()
    with pytest.raises(Unavailable, match=r"no lua99 here; apt-get install lua9\.9"):
        programs.prepare(row)
    assert packages_missing([lua, gone]) == ["lua9.9"]


@pytest.mark.parametrize(("name", "calls"), [("lua", 1), ("lua", 40_000), ("redis", 40_000)])
def test_a_crash_has_its_word_and_leaves_nothing(
    name: str, calls: int, broken: Callable[..., Allocator], cache: Path, scratch: Path
) -> None:
    """At once, or in the middle of the work, when the client of a server is at it too."""
    programs = Programs(cache, installed(name))
    crashing = broken(f"crash{calls}", AFTER=calls, ACTION="raise(SIGSEGV)")
    outcome = run(programs, name, crashing)
    assert outcome.outcome == "SIGSEGV"
    assert outcome.values == {}


def test_a_hang_is_ended(broken: Callable[..., Allocator], cache: Path, scratch: Path) -> None:
    programs = Programs(cache, installed("redis"))
    assert run(programs, "redis", GLIBC).outcome == "ok"  # what is compared with takes longer
    hanging = broken("hang", AFTER=40000, ACTION="for (;;) pause()")
    outcome = run(programs, "redis", hanging, timeout=2.0)
    assert outcome.outcome == "hang"
    assert outcome.detail.startswith("not done after ")


def test_a_library_without_malloc_is_not_active(
    compiled: Callable[[str, str], Path], cache: Path, scratch: Path
) -> None:
    programs = Programs(cache, installed("lua"))
    empty = Allocator("empty", Kind.PEER, compiled("empty", ""))
    outcome = run(programs, "lua", empty)
    assert outcome.outcome == "not active"
    assert "libc.so" in outcome.detail


def test_a_librarys_file_may_have_another_version() -> None:
    ours, other = Path(__file__), Path(__file__).with_name("conftest.py")
    bindings = {"/usr/lib/libruby-3.3.so.3.3": {"malloc": {str(ours)}}, "/usr/bin/ruby": {}}
    names = BY_NAME["ruby"].proof_of
    assert inforce.elsewhere(bindings, names, ours) == ""
    assert "malloc from" in inforce.elsewhere(bindings, names, other)
    assert "tells of no malloc" in inforce.elsewhere({"/usr/bin/ruby": {}}, names, ours)


def test_another_result_is_no_figure(library: Path, cache: Path, scratch: Path) -> None:
    """A program that tells what is preloaded stands for one that an allocator leads astray."""
    (lua,) = installed("lua")

    def command(_: Place) -> list[str]:
        return ["lua5.4", "-e", 'print(os.getenv("LD_PRELOAD"))']

    programs = Programs(cache, [replace(lua, run=batch(command))])
    assert run(programs, "lua", GLIBC).outcome == "ok"
    outcome = run(programs, "lua", Allocator(OURS, Kind.OURS, library))
    assert outcome.outcome == "other result"
    assert outcome.values == {}


def says_what_is_resident_after_each_step(name: str, outcome: Outcome) -> None:
    (size,) = BY_NAME[name].scaled(SCALE).values()
    assert outcome.raw["operations"] == 3 * (size // 5)
    filled, deleted = outcome.raw["filled_kib"], outcome.raw["deleted_kib"]
    assert size * 200 / 1024 < filled < outcome.values["peak"] * 1.1
    assert 2_000 < outcome.values["turned"] < filled * 1.2
    assert 2_000 < deleted < filled * 1.1
    assert outcome.seconds > 2 * turnovers.REST_SECONDS


@pytest.mark.parametrize("name", SERVICES)
def test_a_turnover_compares_its_contents(
    name: str, broken: Callable[..., Allocator], cache: Path, scratch: Path
) -> None:
    programs = Programs(cache, installed(name))
    outcome = run(programs, name, broken("spoil", SPOIL=100000))
    assert outcome.outcome == "other result"
    assert outcome.values == {}


def test_a_turnover_counts_its_records(
    cache: Path, scratch: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A service that deletes too little would have another turnover than the row's."""
    (python,) = installed("python-turnover")
    script = tmp_path_factory.mktemp("script") / "turnover.py"
    right = (SCRIPTS / "turnover.py").read_text()
    script.write_text(right.replace("len(self.live) // 5", "len(self.live) // 4"))
    assert script.read_text() != right

    def command(place: Place) -> list[str | Path]:
        return ["python3", "-S", script, str(place.sizes["records"])]

    programs = Programs(cache, [replace(python, run=turnovers.turnover(command))])
    outcome = run(programs, "python-turnover", GLIBC)
    assert outcome.outcome == "load failed"
    assert "the service holds 5000 records, not 4000" in outcome.detail


def with_session(program: Program, change: Callable[[str], str], folder: Path) -> Program:
    """The program with another session, except on the system's malloc."""

    def changed(place: Place) -> Ran:
        if "LD_PRELOAD" not in place.environment:
            return program.run(place)
        shutil.copytree(place.inputs, folder, dirs_exist_ok=True)
        session = folder / "session.sql"
        text = session.read_text()
        session.write_text(change(text))
        assert session.read_text() != text
        return program.run(replace(place, inputs=folder))

    return replace(program, run=changed)


@pytest.mark.parametrize(
    ("change", "outcome", "detail"),
    [
        (
            lambda text: re.sub(r"(.*SELECT )\d+", r"\g<1>7", text, flags=re.DOTALL),
            "other result",
            "",
        ),
        (
            lambda text: text.replace("DEALLOCATE", "-- ", 1),
            "load failed",
            "201 statements are left, with 200 results, not 200",
        ),
        (
            lambda text: re.sub("EXECUTE [^;]*", "SELECT 1 WHERE false", text, count=1),
            "load failed",
            "200 statements are left, with 199 results, not 200",
        ),
        (lambda text: text.replace("DEALLOCATE s", "DEALLOCATE t", 1), "load failed", "not exist"),
    ],
)
def test_a_session_is_checked(
    change: Callable[[str], str],
    outcome: str,
    detail: str,
    library: Path,
    cache: Path,
    scratch: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    (postgres,) = installed("postgres-turnover")
    program = with_session(postgres, change, tmp_path_factory.mktemp("session"))
    programs = Programs(cache, [program])
    ran = run(programs, program.name, Allocator(OURS, Kind.OURS, library))
    assert ran.outcome == outcome
    assert detail in ran.detail


def test_inputs_are_made_once_and_alike(cache: Path, tmp_path: Path) -> None:
    first, second = (Programs(place, installed("sqlite")) for place in (cache, tmp_path))
    made = []
    for programs, place in ((first, cache), (second, tmp_path), (first, cache)):
        row_of(programs, "sqlite")
        (file,) = place.glob("programs/sqlite/rows80000-*/rows.sql")
        made.append((file.read_bytes(), file.stat().st_mtime_ns))
    assert made[0] == made[2]
    assert made[0][0] == made[1][0]


def test_inputs_are_made_anew_when_a_script_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The program that a row compiles is a script of the package."""
    scripts = tmp_path / "scripts"
    shutil.copytree(SCRIPTS, scripts)
    monkeypatch.setattr(runner, "SCRIPTS", scripts)
    (program,) = installed("cxx-turnover")
    made = []
    for text in ("", "// another\n", ""):
        with (scripts / "turnover.cc").open("a") as file:
            file.write(text)
        runner.sources.cache_clear()
        row_of(Programs(tmp_path / "cache", [program]), program.name)
        (file_made,) = (tmp_path / "cache").glob("programs/cxx-turnover/records*/turnover")
        made.append((file_made.parent.name, file_made.stat().st_mtime_ns))
    runner.sources.cache_clear()
    assert made[0] != made[1] == made[2]
