"""hakmem as a folder of another project, here a C project on a machine without a C++ compiler."""

from pathlib import Path

from tests.install.tree import HERE, SOURCE, done


def test_in_a_project_without_cxx(tmp_path: Path) -> None:
    configure = ["cmake", "-G", "Ninja", "-S", HERE / "project", "-B", tmp_path]
    done([*configure, f"-DHAKMEM_SOURCE={SOURCE}", "-DWITH_CXX=OFF"], CXX="/nonexistent")
    done(["cmake", "--build", tmp_path], timeout=600)
    programs = sorted((tmp_path / "programs").iterdir())
    assert len(programs) == 8
    printed = {program.name: done([program]) for program in programs}
    library = tmp_path / "hakmem" / "libhakmem.so"
    assert printed.pop("hakmem_dynamic_unaware").strip() == str(library.resolve())
    assert set(printed.values()) == {""}
    # It is built as the figures say, whatever kind of build the project has, and leaves that alone.
    assert " -O3 " in (tmp_path / "build.ninja").read_text()
    assert "CMAKE_BUILD_TYPE:STRING=\n" in (tmp_path / "CMakeCache.txt").read_text()
    done(["cmake", "--install", tmp_path, "--prefix", tmp_path / "prefix"])
    assert not (tmp_path / "prefix").exists()
