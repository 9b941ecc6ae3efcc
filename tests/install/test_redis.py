"""hakmem/redis.h and hakmem-redis.pc, with programs that have the functions of redis and valkey
that active defragmentation needs, divided into files as theirs are. docs/guide/servers.md builds
redis itself."""

from pathlib import Path

import pytest

from tests.install.tree import Installed, done

INFO = "int zmalloc_get_allocator_info(%s)"
THREE = "size_t *allocated, size_t *active, size_t *resident"
HINTED = "int je_get_defrag_hint(void *p);\n#define WORTH(p) je_get_defrag_hint(p)"
MOVES = "#define TAKE(n) zmalloc_no_tcache(n)\n#define GIVE(p, n) zfree_no_tcache(p)"
# Of each server: its version.h, the parameters of the function that says what could be gained, a
# call of it, and what defrag.c calls to move a block.
SERVERS = {
    "redis 7": (
        "#define REDIS_VERSION_NUM 0x0007000f",
        THREE,
        "zmalloc_get_allocator_info(&allocated, &active, &resident)",
        f"{HINTED}\n{MOVES}",
    ),
    "redis 8": (
        "#define REDIS_VERSION_NUM 0x00080002",
        f"int refresh, {THREE}, size_t *retained, size_t *muzzy, size_t *gain",
        "zmalloc_get_allocator_info(1, &allocated, &active, &resident, NULL, NULL, &gain)",
        f"{HINTED}\n{MOVES}",
    ),
    "valkey 8.1": (
        "#define VALKEY_VERSION_NUM 0x00080101",
        f"{THREE}, size_t *retained, size_t *muzzy",
        "zmalloc_get_allocator_info(&allocated, &active, &resident, NULL, NULL)",
        "#define WORTH(p) allocatorShouldDefrag(p)\n#define TAKE(n) allocatorDefragAlloc(n)\n"
        "#define GIVE(p, n) allocatorDefragFree(p, n)",
    ),
}

ZMALLOC_H = """
#include <malloc.h>
#include <stddef.h>
#define HAVE_MALLOC_SIZE 1
size_t zmalloc_used_memory(void);
size_t zmalloc_get_rss(void);
%s;
#ifdef HAVE_DEFRAG
void *zmalloc_no_tcache(size_t n);
void zfree_no_tcache(void *p);
#endif
"""
ZMALLOC_C = """
#include "fmacros.h"
#include <stdlib.h>
#include "zmalloc.h"
size_t zmalloc_used_memory(void) { return 1000; }
size_t zmalloc_get_rss(void) { return 5000; }
#ifdef HAVE_DEFRAG
void *zmalloc_no_tcache(size_t n) { return mallocx(n, MALLOCX_TCACHE_NONE); }
void zfree_no_tcache(void *p) { dallocx(p, MALLOCX_TCACHE_NONE); }
#endif
%s { *allocated = *active = *resident = 0; return 1; }
"""
ALLOCATOR_H = """
int allocatorDefragInit(void);
void allocatorDefragFree(void *p, size_t n);
__attribute__((malloc)) void *allocatorDefragAlloc(size_t n);
unsigned long allocatorDefragGetFragSmallbins(void);
int allocatorShouldDefrag(void *p);
float getAllocatorFragmentation(size_t *bytes);
"""
ALLOCATOR_C = """
#include <stdlib.h>
#include "allocator_defrag.h"
int allocatorDefragInit(void) { return -1; }
void allocatorDefragFree(void *p, size_t n) { (void)p, (void)n, abort(); }
void *allocatorDefragAlloc(size_t n) { (void)n; return NULL; }
unsigned long allocatorDefragGetFragSmallbins(void) { return 0; }
int allocatorShouldDefrag(void *p) { return p == NULL; }
float getAllocatorFragmentation(size_t *bytes) { return *bytes = 0; }
"""
DEFRAG_C = """
#include "fmacros.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include "zmalloc.h"
#ifndef HAVE_DEFRAG
#error "HAVE_DEFRAG"
#endif
#if __has_include("allocator_defrag.h")
#include "allocator_defrag.h"
#endif
%s
enum { COUNT = 50000, SIZE = 300 };
static char *blocks[COUNT];
int main(void)
{
    size_t allocated, active, resident, gain = 0, moved = 0;
    (void)gain;
    for (int i = 0; i < COUNT; i++)
        memset(blocks[i] = malloc(SIZE), i, SIZE);
    for (int i = 0; i < COUNT; i++)
        if (i %% 5 != 0)
            free(blocks[i]);
    %s;
    assert(allocated == 1000 && resident == 5000 && active - allocated > COUNT * SIZE / 2);
#if __has_include("allocator_defrag.h")
    assert(allocatorDefragInit() == 0 && allocatorDefragGetFragSmallbins() == active - allocated);
    assert(getAllocatorFragmentation(&gain) > 1000 && gain == active - allocated);
#endif
    for (int i = 0; i < COUNT; i += 5)
        if (WORTH(blocks[i])) {
            char *p = memcpy(TAKE(SIZE), blocks[i], SIZE);
            GIVE(blocks[i], SIZE);
            blocks[i] = p;
            moved++;
        }
    %s;
    assert(moved > COUNT / 10 && active - allocated < COUNT * SIZE / 10);
    for (int i = 0; i < COUNT; i += 5)
        assert(blocks[i][0] == (char)i && blocks[i][SIZE - 1] == (char)i);
    return 0;
}
"""


@pytest.mark.parametrize("server", SERVERS)
def test_a_server_moves_its_blocks(server: str, installed: Installed, tmp_path: Path) -> None:
    version, parameters, call, functions = SERVERS[server]
    files = {
        "fmacros.h": "#define _GNU_SOURCE\n",
        "version.h": version,
        "zmalloc.h": ZMALLOC_H % (INFO % parameters),
        "zmalloc.c": ZMALLOC_C % (INFO % parameters),
        "defrag.c": DEFRAG_C % (functions, call, call),
    }
    if server.startswith("valkey"):
        files |= {"allocator_defrag.h": ALLOCATOR_H, "allocator_defrag.c": ALLOCATOR_C}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    flags = installed.pkg_config("--cflags", package="hakmem-redis")
    libs = installed.pkg_config("--libs", package="hakmem-redis")
    sources = [name for name in files if name.endswith(".c")]
    done(["gcc", "-O2", "-flto=auto", "-Wall", "-Werror", *flags, "-c", *sources], cwd=tmp_path)
    objects = [name.replace(".c", ".o") for name in sources]
    done(["gcc", "-flto=auto", *objects, *libs, "-o", "server"], cwd=tmp_path)
    done([tmp_path / "server"], LD_LIBRARY_PATH=str(installed.libraries))


def test_another_version_is_refused(installed: Installed, tmp_path: Path) -> None:
    other = INFO % "int unknown, size_t *allocated"
    files = {
        "fmacros.h": "", "version.h": SERVERS["redis 8"][0], "zmalloc.h": ZMALLOC_H % other,
        "defrag.c": "int main(void) { return 0; }",
    }  # fmt: skip
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    flags = installed.pkg_config("--cflags", package="hakmem-redis")
    with pytest.raises(AssertionError, match="conflicting types"):
        done(["gcc", *flags, "-c", "defrag.c"], cwd=tmp_path)


def test_other_files_are_left_alone(installed: Installed, tmp_path: Path) -> None:
    (tmp_path / "other.c").write_text("#ifdef HAVE_DEFRAG\n#error\n#endif\nint n;\n")
    flags = installed.pkg_config("--cflags", package="hakmem-redis")
    done(["gcc", "-Wall", "-Werror", *flags, "-c", "other.c"], cwd=tmp_path)
