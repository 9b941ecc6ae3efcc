/* jemalloc's functions, as its manual describes them, mixed with malloc and free as that permits.
 */
#include "check.h"

#include <hakmem/hakmem.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* As in jemalloc's header. */
void *mallocx(size_t n, int flags);
void *rallocx(void *p, size_t n, int flags);
size_t xallocx(void *p, size_t n, size_t extra, int flags);
size_t sallocx(const void *p, int flags);
void dallocx(void *p, int flags);
void sdallocx(void *p, size_t n, int flags);
size_t nallocx(size_t n, int flags);
int mallctl(const char *name, void *old, size_t *old_bytes, void *new, size_t new_bytes);
int mallctlnametomib(const char *name, size_t *mib, size_t *length);
int mallctlbymib(const size_t *mib, size_t length, void *old, size_t *old_bytes, void *new,
                 size_t new_bytes);
void malloc_stats_print(void (*write)(void *, const char *), void *to, const char *options);
#define LG_ALIGN(la) ((int)(la))
#define ZERO 0x40
#define CACHE(tc) ((int)(((tc) + 2) << 8))
#define CACHE_NONE CACHE(-1)
#define ARENA(a) ((int)(((unsigned)(a) + 1) << 20))
#define ARENAS_ALL 4096

/* ---- blocks ---- */

static const size_t sizes[] = {
    1, 7, 16, 100, 1000, 1024, 4096, 32 * KiB, 32 * KiB + 1, 300000, MiB + 5, 2 * MiB, 5 * MiB + 3};
#define SIZES (sizeof sizes / sizeof *sizes)
static const int aligns[] = {0, 3, 4, 6, 12, 13, 16, 21, 22};
#define ALIGNS (sizeof aligns / sizeof *aligns)
static const int kinds[] = {0, CACHE_NONE, CACHE(3), ARENA(0), ARENA(4000), CACHE_NONE | ARENA(1)};
#define KINDS (sizeof kinds / sizeof *kinds)

/* Blocks whose memory is not zero come back. */
static void leave_dirty(size_t n)
{
    void *p[3];
    for (int i = 0; i < 3; i++)
        memset(p[i] = NEED("malloc", do_malloc(n)), 0xa5, n);
    for (int i = 0; i < 3; i++)
        do_free(p[i]);
}

static void a_block(size_t n, int flags)
{
    size_t align = (size_t)1 << (flags & 0x3f);
    leave_dirty(n);
    unsigned char *p = NEED("mallocx", mallocx(n, flags));
    size_t has = sallocx(p, flags);
    CHECK(has >= n, "%zu bytes usable of %zu", has, n);
    CHECK_ALIGNED(p, align);
    CHECK_SIZE("malloc_usable_size", do_usable_size(p), has);
    CHECK(nallocx(n, flags) >= has, "nallocx(%zu) is %zu, and %zu are usable", n, nallocx(n, flags),
          has);
    if (flags & ZERO)
        CHECK_BYTES(p, 0, has);
    pattern_fill(p, n, (unsigned)n);
    CHECK_SIZE("xallocx", xallocx(p, n, 0, flags), has);
    CHECK_SIZE("xallocx with more", xallocx(p, n, 4 * n, flags), has);
    CHECK_PATTERN(p, n, (unsigned)n);
    switch (n % 4) { /* by any of the functions */
    case 0:
        dallocx(p, flags);
        break;
    case 1:
        sdallocx(p, n, flags);
        break;
    case 2:
        sdallocx(p, has, flags);
        break;
    default:
        do_free(p);
    }
}

TEST(blocks_have_what_flags_say)
{
    unsigned way = 0;
    for (size_t i = 0; i < SIZES; i++)
        for (size_t k = 0; k < KINDS; k++)
            for (size_t a = 0; a < ALIGNS; a++)
                for (int zero = 0; zero <= ZERO; zero += ZERO)
                    a_block(sizes[i] + way++ % 4, kinds[k] | aligns[a] | zero);
}

TEST(each_may_free_the_others)
{
    for (size_t i = 0; i < SIZES; i++)
        for (size_t k = 0; k < KINDS; k++) {
            size_t n = sizes[i];
            do_free(NEED("mallocx", mallocx(n, kinds[k])));
            dallocx(NEED("malloc", do_malloc(n)), kinds[k]);
            sdallocx(NEED("malloc", do_malloc(n)), n, kinds[k]);
            sdallocx(NEED("calloc", do_calloc(n, 1)), nallocx(n, 0), kinds[k]);
            do_free(NEED("realloc", do_realloc(NEED("mallocx", mallocx(n, kinds[k])), n + 1)));
            dallocx(NEED("rallocx", rallocx(NEED("malloc", do_malloc(n)), 2 * n, 0)), kinds[k]);
        }
}

static void resized(size_t from, size_t to, int flags)
{
    size_t least = from < to ? from : to;
    leave_dirty(to);
    unsigned char *p = NEED("mallocx", mallocx(from, flags));
    size_t before = sallocx(p, flags);
    memset(p, 1, before);
    p = NEED("rallocx", rallocx(p, to, flags));
    CHECK_ALIGNED(p, (size_t)1 << (flags & 0x3f));
    CHECK(sallocx(p, flags) >= to, "%zu bytes usable of %zu", sallocx(p, flags), to);
    CHECK_BYTES(p, 1, least);
    if (flags & ZERO && sallocx(p, flags) > before)
        CHECK_BYTES(p + before, 0, sallocx(p, flags) - before);
    sdallocx(p, to, flags);
}

TEST(rallocx_preserves_and_aligns)
{
    static const int to[] = {0, LG_ALIGN(6), LG_ALIGN(13)};
    for (size_t i = 0; i < SIZES; i++)
        for (size_t j = 0; j < SIZES; j++)
            for (size_t k = 0; k < 3; k++) {
                resized(sizes[i], sizes[j], to[k]);
                resized(sizes[i], sizes[j], to[k] | ZERO);
                resized(sizes[i], sizes[j], to[k] | CACHE_NONE | ARENA(7));
            }
}

TEST(too_much_is_refused)
{
    volatile size_t n = SIZE_MAX / 2; /* unknown to the compiler */
    CHECK_NULL("mallocx", mallocx(n, 0));
    CHECK_NULL("mallocx", mallocx(n, ZERO | LG_ALIGN(12)));
    CHECK_NULL("mallocx", mallocx(100, LG_ALIGN(62)));
    CHECK_SIZE("nallocx", nallocx(n, 0), 0);
    CHECK_SIZE("nallocx", nallocx(1, LG_ALIGN(62)), 0);
    char *p = NEED("mallocx", mallocx(100, 0));
    memset(p, 1, 100);
    CHECK_NULL("rallocx", rallocx(p, n, 0));
    CHECK_NULL("rallocx", rallocx(p, n, LG_ALIGN(12)));
    CHECK_BYTES(p, 1, 100);
    dallocx(p, 0);
}

/* ---- mallctl ---- */

static size_t number(const char *name)
{
    size_t value = 0, bytes = sizeof value;
    CHECK_ERROR(name, mallctl(name, &value, &bytes, NULL, 0), 0);
    CHECK_SIZE(name, bytes, sizeof value);
    return value;
}

static unsigned small_number(const char *name)
{
    unsigned value = 0;
    size_t bytes = sizeof value;
    CHECK_ERROR(name, mallctl(name, &value, &bytes, NULL, 0), 0);
    return value;
}

static bool truth(const char *name)
{
    bool value = false;
    size_t bytes = sizeof value;
    CHECK_ERROR(name, mallctl(name, &value, &bytes, NULL, 0), 0);
    return value;
}

static int order(const char *name) { return mallctl(name, NULL, NULL, NULL, 0); }

static void begin_epoch(void)
{
    uint64_t epoch = 1;
    size_t bytes = sizeof epoch;
    CHECK_ERROR("epoch", mallctl("epoch", &epoch, &bytes, &epoch, sizeof epoch), 0);
}

TEST(figures_are_the_heap_s)
{
    enum { COUNT = 1000, SIZE = 5000 };
    static void *blocks[COUNT];
    begin_epoch();
    size_t before = number("stats.allocated"), epoch = number("epoch");
    for (int i = 0; i < COUNT; i++)
        memset(blocks[i] = NEED("mallocx", mallocx(SIZE, 0)), 1, SIZE);
    CHECK_SIZE("stats.allocated of the same epoch", number("stats.allocated"), before);
    begin_epoch();
    CHECK_SIZE("epoch", number("epoch"), epoch + 1);
    size_t allocated = number("stats.allocated"), active = number("stats.active");
    size_t grown = allocated - before, least = COUNT * sallocx(blocks[0], 0);
    CHECK(grown >= least && grown < least + 2 * MiB, "%zu more, of %zu", grown, least);
    CHECK(active >= allocated && active % number("arenas.page") == 0, "active: %zu", active);
    CHECK(number("stats.mapped") >= active, "mapped: %zu", number("stats.mapped"));
    CHECK(number("stats.resident") >= active, "resident: %zu", number("stats.resident"));
    struct hakmem_stats stats;
    hakmem_stats(&stats, sizeof stats);
    CHECK_SIZE("stats.allocated", allocated, stats.program);
    CHECK_SIZE("small",
               number("stats.arenas.0.small.allocated") + number("stats.arenas.0.large.allocated"),
               allocated);
    CHECK_SIZE("pages", number("stats.arenas.4096.pactive") * number("arenas.page"), active);
    for (int i = 0; i < COUNT; i++)
        dallocx(blocks[i], 0);
    CHECK_ERROR("arena.0.purge", order("arena.0.purge"), 0);
    begin_epoch();
    CHECK(number("stats.allocated") < before + MiB, "%zu left", number("stats.allocated"));
    CHECK(number("stats.arenas.0.pdirty") <= 256, "%zu dirty", number("stats.arenas.0.pdirty"));
}

/* As redis 8 adds up what moving blocks could give back. */
TEST(classes_are_counted)
{
    enum { COUNT = 3000 };
    static void *blocks[COUNT];
    size_t size[4], regs[6], slabs[6], parts = 4, six = 6, seven = 6, bytes = sizeof(size_t);
    unsigned bins = small_number("arenas.nbins");
    for (int i = 0; i < COUNT; i++)
        blocks[i] = NEED("malloc", do_malloc(640));
    begin_epoch();
    CHECK_ERROR("to mib", mallctlnametomib("arenas.bin.0.size", size, &parts), 0);
    CHECK_ERROR("to mib", mallctlnametomib("stats.arenas.4096.bins.0.curregs", regs, &six), 0);
    CHECK_ERROR("to mib", mallctlnametomib("stats.arenas.4096.bins.0.curslabs", slabs, &seven), 0);
    CHECK(parts == 4 && six == 6 && seven == 6, "parts: %zu, %zu, %zu", parts, six, seven);
    bool found = false;
    for (unsigned j = 0; j < bins; j++) {
        size_t n, used, of;
        size[2] = regs[4] = slabs[4] = j;
        CHECK_ERROR("size", mallctlbymib(size, parts, &n, &bytes, NULL, 0), 0);
        CHECK_ERROR("curregs", mallctlbymib(regs, six, &used, &bytes, NULL, 0), 0);
        CHECK_ERROR("curslabs", mallctlbymib(slabs, seven, &of, &bytes, NULL, 0), 0);
        if (n != nallocx(640, 0))
            continue;
        char name[64];
        snprintf(name, sizeof name, "arenas.bin.%u.nregs", j);
        found = used >= COUNT / 10 * 9 && of * small_number(name) >= used;
    }
    CHECK(found, "the blocks of 640 bytes are not counted");
    size[2] = bins;
    CHECK_ERROR("no bin", mallctlbymib(size, parts, &parts, &bytes, NULL, 0), ENOENT);
    for (int i = 0; i < COUNT; i++)
        do_free(blocks[i]);
}

TEST(what_is_unknown_is_not_there)
{
    static const char *const names[] = {"",
                                        ".",
                                        "stats",
                                        "stats.",
                                        "stats.allocate",
                                        "stats.allocatedx",
                                        "arena.0",
                                        "arena.x.purge",
                                        "arena..purge",
                                        "arena.3.purge",
                                        "arena.99999999999999999999.purge",
                                        "arena.0.reset",
                                        "arena.0.extent_hooks",
                                        "arena.0.dirty_decay_ms",
                                        "arenas.bin.4000.size",
                                        "thread.allocated",
                                        "thread.allocatedp",
                                        "thread.deallocatedp",
                                        "experimental.utilization.batch_query",
                                        "*",
                                        "opt",
                                        "arenas.bin.*.size",
                                        "stats.arenas.0.bins.72.curregs",
                                        "prof.reset",
                                        "version.x"};
    size_t value, bytes, mib[8], parts;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        bytes = sizeof value, parts = 8;
        CHECK_ERROR(names[i], mallctl(names[i], &value, &bytes, NULL, 0), ENOENT);
        CHECK_ERROR(names[i], mallctlnametomib(names[i], mib, &parts), ENOENT);
    }
    parts = 1;
    CHECK_ERROR("a part of a name", mallctlnametomib("stats.allocated", mib, &parts), 0);
    CHECK_SIZE("parts", parts, 1);
    CHECK_ERROR("by a part", mallctlbymib(mib, 1, &value, &bytes, NULL, 0), ENOENT);
    CHECK_ERROR("by none", mallctlbymib(mib, 0, &value, &bytes, NULL, 0), ENOENT);
    mib[0] = 100000;
    CHECK_ERROR("by a wrong one", mallctlbymib(mib, 2, &value, &bytes, NULL, 0), ENOENT);
}

TEST(wrong_uses_are_refused)
{
    uint64_t value = 1;
    size_t bytes = 4;
    CHECK_ERROR("too short", mallctl("stats.allocated", &value, &bytes, NULL, 0), EINVAL);
    CHECK_SIZE("too short", bytes, 4);
    bytes = 8;
    CHECK_ERROR("too long", mallctl("arenas.narenas", &value, &bytes, NULL, 0), EINVAL);
    CHECK_ERROR("read only", mallctl("version", NULL, NULL, &value, 8), EPERM);
    CHECK_ERROR("read only", mallctl("arenas.create", NULL, NULL, &value, 8), EPERM);
    CHECK_ERROR("an order", mallctl("arena.0.purge", &value, &bytes, NULL, 0), EPERM);
    CHECK_ERROR("write only", mallctl("prof.dump", &value, &bytes, NULL, 0), EPERM);
    CHECK_ERROR("length", mallctl("epoch", NULL, NULL, &value, 4), EINVAL);
    CHECK_ERROR("length", mallctl("background_thread", NULL, NULL, &value, 8), EINVAL);
    CHECK_ERROR("nothing new", mallctl("epoch", NULL, NULL, NULL, 8), EINVAL);
}

TEST(settings)
{
    const char *version = NULL;
    size_t bytes = sizeof version;
    CHECK_ERROR("version", mallctl("version", &version, &bytes, NULL, 0), 0);
    CHECK(version != NULL && strncmp(version, "5.3.0-hakmem-", 13) == 0, "version: %s", version);
    CHECK_SIZE("arenas.quantum", number("arenas.quantum"), 16);
    CHECK_SIZE("narenas", small_number("arenas.narenas"), 1);
    char last[40];
    snprintf(last, sizeof last, "arenas.lextent.%u.size", small_number("arenas.nlextents") - 1);
    size_t most = number(last);
    CHECK(nallocx(most, 0) == most, "the largest size is %zu, nallocx: %zu", most,
          nallocx(most, 0));
    for (size_t k = 0; k < 16; k++) {
        char *p = NEED("mallocx", mallocx(50, LG_ALIGN(6)));
        CHECK_NULL("far beyond", rallocx(p, SIZE_MAX - k, LG_ALIGN(6)));
        dallocx(p, 0);
    }
    CHECK_SIZE("beyond the largest", nallocx(most + 1, 0), 0);
    CHECK_NULL("beyond the largest", mallocx(most + 1, 0));
    CHECK(truth("opt.prof") && truth("config.stats"), "they are on");
    bool on = truth("background_thread"), off = !on;
    CHECK_ERROR("as it is", mallctl("background_thread", NULL, NULL, &on, sizeof on), 0);
    CHECK_ERROR("changed", mallctl("background_thread", NULL, NULL, &off, sizeof off), EFAULT);
    on = true, off = false;
    size_t one = sizeof on;
    CHECK_ERROR("as it is", mallctl("thread.tcache.enabled", NULL, NULL, &on, sizeof on), 0);
    CHECK_ERROR("off", mallctl("thread.tcache.enabled", &on, &one, &off, sizeof off), 0);
    CHECK(on, "thread.tcache.enabled: expected on, as it was, found off");
    CHECK_ERROR("on again", mallctl("thread.tcache.enabled", &off, &one, &on, sizeof on), 0);
    CHECK(!off, "thread.tcache.enabled: expected off, as it was set, found on");
    CHECK_ERROR("flush", order("thread.tcache.flush"), 0);
    CHECK_ERROR("idle", order("thread.idle"), 0);
    CHECK_ERROR("decay", order("arena.0.decay"), 0);
    CHECK_ERROR("purge of all", order("arena.4096.purge"), 0);
    CHECK_ERROR("purge of all, as it was", order("arena.1.purge"), 0); /* redis' MEMORY PURGE */
}

TEST(arenas_are_accepted)
{
    unsigned arena = 0;
    size_t bytes = sizeof arena;
    CHECK_ERROR("none yet", order("arena.1.destroy"), EFAULT);
    CHECK_ERROR("create", mallctl("arenas.create", &arena, &bytes, NULL, 0), 0);
    CHECK_SIZE("arena", arena, 1);
    CHECK_SIZE("narenas", small_number("arenas.narenas"), 2);
    CHECK(truth("arena.1.initialized"), "it is initialized");
    CHECK_SIZE("its memory", number("stats.arenas.1.pactive"), 0);
    char *p = NEED("mallocx", mallocx(100, ARENA(arena) | CACHE_NONE));
    memset(p, 1, 100);
    CHECK_ERROR("thread.arena", mallctl("thread.arena", NULL, NULL, &arena, sizeof arena), 0);
    CHECK_SIZE("thread.arena", small_number("thread.arena"), arena);
    CHECK_ERROR("the first", order("arena.0.destroy"), EFAULT);
    CHECK_ERROR("destroy", order("arena.1.destroy"), 0);
    CHECK_ERROR("tcache.create", mallctl("tcache.create", &arena, &bytes, NULL, 0), 0);
    dallocx(NEED("mallocx", mallocx(100, CACHE(arena) | ARENA(1))), CACHE(arena));
    CHECK_ERROR("flush", mallctl("tcache.flush", NULL, NULL, &arena, sizeof arena), 0);
    CHECK_ERROR("destroy", mallctl("tcache.destroy", NULL, NULL, &arena, sizeof arena), 0);
    CHECK_BYTES(p, 1, 100); /* which jemalloc's would take away */
    dallocx(p, 0);
}

TEST(profiles)
{
    char folder[] = "/tmp/hakmem-jemalloc-XXXXXX", path[64];
    const char *name = path;
    bool on = true, off = false, was = true;
    size_t bytes = sizeof was;
    if (mkdtemp(folder) == NULL)
        return;
    snprintf(path, sizeof path, "%s/heap", folder);
    CHECK_ERROR("on", mallctl("prof.active", &was, &bytes, &on, sizeof on), 0);
    CHECK(!was && truth("prof.active"), "it was off, and is on");
    CHECK(number("prof.lg_sample") < 31, "lg_sample: %zu", number("prof.lg_sample"));
    do_free(NEED("malloc", do_malloc(100)));
    CHECK_ERROR("dump", mallctl("prof.dump", NULL, NULL, &name, sizeof name), 0);
    CHECK(access(path, R_OK) == 0, "no file %s", path);
    CHECK_ERROR("off", mallctl("prof.active", NULL, NULL, &off, sizeof off), 0);
    unlink(path);
    snprintf(path, sizeof path, "%s/no/heap", folder);
    CHECK_ERROR("nowhere", mallctl("prof.dump", NULL, NULL, &name, sizeof name), EFAULT);
    rmdir(folder);
}

static void *ask_and_order(void *unused)
{
    static const char *const orders[] = {"arena.4096.purge", "arena.0.decay",
                                         "thread.tcache.flush"};
    for (unsigned i = 0; i < 300; i++) {
        void *p = NEED("mallocx", mallocx(1 + i * 97 % 5000, CACHE_NONE & -(int)(i % 2)));
        if (i % 10 == 0)
            CHECK_ERROR("order", order(orders[i / 10 % 3]), 0);
        begin_epoch();
        CHECK(number("stats.resident") > 0, "nothing is resident");
        dallocx(p, 0);
    }
    return unused;
}

TEST(threads_and_children_may_ask)
{
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, ask_and_order, NULL);
    for (int i = 0; i < 20; i++) {
        int status = 1;
        pid_t child = fork();
        if (child == 0) {
            begin_epoch();
            _exit(number("stats.allocated") == 0 || order("arena.0.purge") != 0);
        }
        waitpid(child, &status, 0);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child ended with %d", status);
    }
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
}

/* ---- malloc_stats_print ---- */

static char printed[32 * KiB];

static void collect(void *to, const char *words)
{
    CHECK(to == printed, "another place");
    strncat(printed, words, sizeof printed - strlen(printed) - 1);
}

TEST(what_is_printed)
{
    size_t allocated;
    void *small = NEED("malloc", do_malloc(16));
    malloc_stats_print(collect, printed, NULL);
    const char *line = strstr(printed, "\nAllocated: ");
    CHECK(line != NULL && sscanf(line, "\nAllocated: %zu, active: ", &allocated) == 1, "%s",
          printed);
    CHECK_SIZE("allocated", allocated, number("stats.allocated"));
    CHECK(strstr(printed, ", blocks ") != NULL, "%s", printed);
    printed[0] = '\0';
    malloc_stats_print(collect, printed, "gb");
    CHECK(strstr(printed, "blocks") == NULL, "%s", printed);
    printed[0] = '\0';
    malloc_stats_print(collect, printed, "J");
    CHECK(strncmp(printed, "{\"jemalloc\":{\"version\":\"5.3.0-hakmem-", 36) == 0, "%s", printed);
    CHECK(strstr(printed, "\"stats\":{\"allocated\":") != NULL, "%s", printed);
    CHECK(strcmp(printed + strlen(printed) - 4, "}}}\n") == 0, "%s", printed);
    do_free(small);
}

/* ---- misuse ---- */

static void twice(void *p) { dallocx(p, 0), dallocx(p, 0); }
static void twice_past(void *p) { dallocx(p, CACHE_NONE), dallocx(p, CACHE_NONE); }
static void inside(void *p) { dallocx((char *)p + 16, 0); }
static void foreign(void *unused) { sdallocx((void *)&unused, 8, 0); }
static void resize_of_freed(void *p) { dallocx(p, CACHE_NONE), do_free(rallocx(p, 500, 0)); }
static void size_of_inside(void *p) { do_free(do_malloc(sallocx((char *)p + 16, 0))); }
static void wrong_size(void *p) { sdallocx(p, 1000, 0); }

static bool sizes_checked(void)
{
    uint64_t on = 0, preset = 0;
    hakmem_option("check_sizes", &on);
    hakmem_option("preset", &preset);
    return on == 1 || (on == HAKMEM_AUTO && preset == 1);
}

TEST(wrong_calls_are_reported)
{
    void *block = NEED("mallocx", mallocx(100, 0));
    CHECK_ABORTS(twice, block, "");
    CHECK_ABORTS(twice_past, block, "");
    CHECK_ABORTS(inside, block, "");
    CHECK_ABORTS(foreign, block, "");
    CHECK_ABORTS(resize_of_freed, block, "");
    CHECK_ABORTS(size_of_inside, block, "");
    if (sizes_checked())
        CHECK_ABORTS(wrong_size, block, "");
    dallocx(block, 0);
}

int main(void) { return check_any_malloc() ? 0 : tests_main("jemalloc"); }
