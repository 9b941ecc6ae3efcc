/* The address map, metadata, superslabs and large blocks. */
#define _GNU_SOURCE /* MAP_FIXED_NOREPLACE */
#include "back/slices.h"
#include "back/superslabs.h"
#include "unit.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "back/huge.h"
#include "back/map.h"
#include "back/meta.h"
#include "base/policy.h"
#include "os/lock.h"
#include "os/os.h"
#include "report/report.h"

static void map_of_foreign(void)
{
    int local;
    EXPECT_EQUAL(map_bin(NULL), BIN_FOREIGN);
    EXPECT_EQUAL(map_bin(&local), BIN_FOREIGN);
    EXPECT_EQUAL(map_bin((void *)(uintptr_t)map_of_foreign), BIN_FOREIGN);
    for (unsigned bit = 0; bit < 64; bit++) {
        EXPECT_EQUAL(map_bin((void *)((uintptr_t)1 << bit)), BIN_FOREIGN);
        EXPECT_EQUAL(map_bin((void *)~((uintptr_t)1 << bit)), BIN_FOREIGN);
        EXPECT(map_owner((void *)((uintptr_t)1 << bit)) == NULL);
    }
}

static size_t place_of_slice(const void *p)
{
    size_t place = 0;
    EXPECT(map_bin_offset(p, &place));
    return place;
}

static void map_of_ours(void)
{
    char *slices = (char *)WINDOW_BASE + 5 * SUPERSLAB; /* never touched */
    EXPECT(map_cover(slices, 8 * SLICE));
    int owner;
    map_set(slices + SLICE, 2, BIN_FIRST + 5, &owner);
    EXPECT_EQUAL(place_of_slice(slices + SLICE), (BIN_FIRST + 5) * BIN_BYTES);
    EXPECT_EQUAL(place_of_slice(slices + 3 * SLICE), 0);
    EXPECT_EQUAL(map_bin(slices), BIN_FOREIGN);
    EXPECT_EQUAL(map_bin(slices + SLICE), BIN_FIRST + 5);
    EXPECT_EQUAL(map_bin(slices + 3 * SLICE - 16), BIN_FIRST + 5);
    EXPECT_EQUAL(map_bin(slices + 3 * SLICE), BIN_FOREIGN);
    EXPECT(map_owner(slices + SLICE) == &owner && map_owner(slices + 3 * SLICE) == NULL);
    /* Not a multiple of 16, or with bits beyond the address space: never ours. */
    size_t place;
    for (unsigned offset = 1; offset < 16; offset++) {
        EXPECT_EQUAL(map_bin(slices + SLICE + offset), BIN_FOREIGN);
        EXPECT(!map_bin_offset(slices + SLICE + offset, &place));
    }
    for (unsigned bit = WINDOW_BITS; bit < 64; bit++) {
        void *beyond = (void *)((uintptr_t)(slices + SLICE) ^ (uintptr_t)1 << bit);
        EXPECT_EQUAL(map_bin(beyond), BIN_FOREIGN);
        EXPECT(!map_bin_offset(beyond, &place));
    }
    map_set(slices + SLICE, 2, BIN_FOREIGN, NULL);
    EXPECT_EQUAL(map_bin(slices + SLICE), BIN_FOREIGN);
    EXPECT_EQUAL(place_of_slice(slices + SLICE), 0);
    EXPECT(!map_cover((void *)((uintptr_t)1 << 48), SLICE));
}

static void map_of_freed(void)
{
    char *slice = (char *)WINDOW_BASE + 5 * SUPERSLAB;
    int owner;
    map_set(slice, 1, BIN_WHOLE_FREE, &owner);
    EXPECT(map_clear(slice, BIN_HUGE) == NULL);
    EXPECT(map_whole_freed(slice) == NULL);
    EXPECT(map_whole_taken(slice) == &owner);
    EXPECT_EQUAL(map_bin(slice), BIN_WHOLE);
    EXPECT_EQUAL(place_of_slice(slice), BIN_WHOLE * BIN_BYTES);
    EXPECT(map_whole_freed(slice) == &owner && map_whole_freed(slice) == NULL);
    EXPECT(map_owner(slice) == &owner);
    EXPECT(map_clear(slice, BIN_WHOLE_FREE) == &owner);
    EXPECT(map_owner(slice) == NULL && map_clear(slice, BIN_WHOLE_FREE) == NULL);
    EXPECT_EQUAL(place_of_slice(slice), 0);
}

/* ---- what goes back ---- */

enum { PURGED = 100 }; /* pages in runs of 1, 2 and 3, with one between that stays */

/* Whether the kernel lets any page go. */
static bool purges(void)
{
    char *page = os_map(os_page);
    bool gone = os_purge(page, os_page);
    os_unmap(page, os_page);
    return gone;
}

static void runs_go_back(void)
{
    if (!purges())
        return;
    char *memory = os_map(2 * PURGED * os_page);
    struct os_run runs[PURGED];
    size_t count = 0;
    memset(memory, 7, 2 * PURGED * os_page);
    for (size_t page = 0; page + 3 < 2 * PURGED; page += count % 3 + 2, count++)
        runs[count] = (struct os_run){memory + page * os_page, (count % 3 + 1) * os_page};
    os_purge_runs(runs, count);
    for (size_t i = 0; i < count; i++) {
        const char *start = runs[i].start;
        EXPECT_EQUAL(runs[i].length, (i % 3 + 1) * os_page);
        for (size_t at = 0; at < runs[i].length; at += os_page / 2)
            EXPECT_EQUAL(start[at], 0);
        EXPECT_EQUAL(start[runs[i].length], 7);
    }
    os_unmap(memory, 2 * PURGED * os_page);
}

/* Pages that are locked stay, whichever of the runs they are. */
static void a_run_that_stays_is_told(void)
{
    for (size_t locked = 0; locked < 4 && purges(); locked++) {
        char *memory = os_map(8 * os_page);
        struct os_run runs[4];
        memset(memory, 7, 8 * os_page);
        for (size_t i = 0; i < 4; i++)
            runs[i] = (struct os_run){memory + 2 * i * os_page, os_page};
        if (syscall(SYS_mlock, runs[locked].start, os_page) != 0)
            return; /* none may be locked here */
        os_purge_runs(runs, 4);
        for (size_t i = 0; i < 4; i++) {
            EXPECT_EQUAL(runs[i].length, i == locked ? 0 : os_page);
            EXPECT_EQUAL(memory[2 * i * os_page], i == locked ? 7 : 0);
        }
        os_unmap(memory, 8 * os_page);
    }
}

/* Pages that a slab had given back are wanted again when its slices are, once. */
static void what_slices_lack_is_wanted_with_them(void)
{
    struct superslab *s;
    bool zero;
    char *slices = slices_take(2, 1, false, &zero, &s);
    size_t before = load_relaxed(&counters.pages.refaulted);
    add_relaxed(&counters.pages.purged, 40 * KiB);
    slices_lack(s, slices, 2, 40 * KiB);
    slices_give(s, slices, 2);
    EXPECT(slices_take(1, 1, false, &zero, &s) == slices);
    EXPECT_EQUAL(load_relaxed(&counters.pages.refaulted) - before, 20 * KiB);
    EXPECT(slices_take(1, 1, false, &zero, &s) == slices + SLICE);
    EXPECT_EQUAL(load_relaxed(&counters.pages.refaulted) - before, 40 * KiB);
    slices_give(s, slices, 2);
    EXPECT(slices_take(2, 1, false, &zero, &s) == slices);
    EXPECT_EQUAL(load_relaxed(&counters.pages.refaulted) - before, 40 * KiB);

    /* Once the slices themselves have gone back they lack nothing more. */
    char *more = slices_take(1, 1, false, &zero, &s); /* so that the superslab is not empty */
    slices_lack(s, slices, 2, 40 * KiB);
    add_relaxed(&counters.pages.purged, 40 * KiB);
    slices_give(s, slices, 2);
    size_t gone = slices_purge(SIZE_MAX); /* where the kernel takes them */
    EXPECT(gone == 2 || gone == 0);
    EXPECT(slices_take(2, 1, false, &zero, &s) == slices);
    EXPECT_EQUAL(load_relaxed(&counters.pages.refaulted) - before, (gone == 2 ? 40 : 80) * KiB);
    slices_give(s, slices, 2);
    slices_give(s, more, 1);
}

/* A table that is larger than a region gets one for itself. */
static void large_metadata(void)
{
    static const size_t sizes[] = {512 * KiB, 1 * MiB, 5 * MiB, 4 * KiB};
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        char *table = meta_take_pages(sizes[i]);
        EXPECT(table != NULL && (uintptr_t)table % os_page == 0);
        EXPECT(meta_holds(table, sizes[i]));
        memset(table, 1, sizes[i]);
    }
}

static void metadata(void)
{
    static char *pieces[4000];
    static size_t sizes[4000];
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 4000; i++) {
            sizes[i] = 1 + (size_t)(next_random() % (i % 100 == 0 ? META_MOST : 600));
            pieces[i] = meta_take(sizes[i]);
            EXPECT(pieces[i] != NULL && (uintptr_t)pieces[i] % CACHE_LINE == 0);
            EXPECT_EQUAL(map_bin(pieces[i]), BIN_FOREIGN);
            memset(pieces[i], i & 0xff, sizes[i]);
        }
        for (int i = 0; i < 4000; i++) {
            for (size_t j = 0; j < sizes[i]; j++)
                EXPECT_EQUAL((unsigned char)pieces[i][j], i & 0xff);
            meta_give(pieces[i], sizes[i]);
        }
    }
    /* What is given back serves again. */
    EXPECT(meta_mapped() <= 8 * MiB);
}

#define RUNS 300

static void slices(void)
{
    static char *runs[RUNS];
    static size_t lengths[RUNS];
    static struct superslab *homes[RUNS];
    for (int step = 0; step < 30000; step++) {
        unsigned i = (unsigned)(next_random() % RUNS);
        if (runs[i] != NULL) {
            EXPECT_EQUAL(runs[i][0], (char)i);
            EXPECT_EQUAL(runs[i][lengths[i] * SLICE - 1], (char)i);
            size_t more = next_random() % 4;
            if (more > 0 && step % 7 == 0 && slices_extend(homes[i], runs[i], lengths[i], more))
                lengths[i] += more;
            slices_give(homes[i], runs[i], lengths[i]);
            runs[i] = NULL;
            continue;
        }
        lengths[i] = 1 + (size_t)(next_random() % (step % 5 == 0 ? 64 : 6));
        size_t align = (size_t)1 << next_random() % (step % 3 == 0 ? 7 : 1);
        bool zero;
        runs[i] = slices_take(lengths[i], align, false, &zero, &homes[i]);
        EXPECT(runs[i] != NULL);
        EXPECT_EQUAL((uintptr_t)runs[i] % (align * SLICE), 0);
        EXPECT(runs[i] >= homes[i]->base);
        EXPECT(runs[i] + lengths[i] * SLICE <= homes[i]->base + SUPERSLAB);
        if (zero)
            for (size_t j = 0; j < lengths[i]; j++)
                EXPECT_EQUAL(runs[i][j * SLICE], 0);
        runs[i][0] = runs[i][lengths[i] * SLICE - 1] = (char)i;
    }
    for (unsigned i = 0; i < RUNS; i++)
        if (runs[i] != NULL)
            slices_give(homes[i], runs[i], lengths[i]);
}

static void huge(void)
{
    static const size_t sizes[] = {32769,      65536,   65537,   1 << 20, HUGE_LEAST - 1,
                                   HUGE_LEAST, 3 << 20, 5 << 20, 9 << 20};
    bool zero;
    for (unsigned i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (size_t align = 16; align <= 64 * MiB; align *= 4) {
            char *p = huge_take(sizes[i], align, &zero, NULL);
            EXPECT(p != NULL);
            EXPECT_EQUAL((uintptr_t)p % align, 0);
            EXPECT_EQUAL(map_bin(p), BIN_HUGE);
            EXPECT(huge_usable(p) >= sizes[i]);
            if (zero)
                EXPECT(p[0] == 0 && p[sizes[i] - 1] == 0);
            p[0] = p[sizes[i] - 1] = 1;
            EXPECT_EQUAL(huge_usable(p + 16), 0);
            EXPECT_EQUAL(huge_give(p + 16), MISUSE_INTERIOR);
            EXPECT_EQUAL(huge_give(p), MISUSE_NONE);
            EXPECT_EQUAL(huge_give(p), MISUSE_FREE);
            EXPECT_EQUAL(map_bin(p), BIN_FOREIGN);
        }
    /* Content moves with a block that is resized. Nothing is kept that could lie right behind it: a
     * block that grew into such a mapping is two, which the kernel does not move together. */
    huge_purge(SIZE_MAX);
    char *p = huge_take(3 * MiB, 1, &zero, NULL);
    memset(p, 7, 3 * MiB);
    for (size_t size = 4 * MiB; size < 200 * MiB; size += size / 2) {
        char *q = huge_resize(p, size);
        EXPECT(q != NULL);
        p = q;
        EXPECT(p[0] == 7 && p[3 * MiB - 1] == 7 && huge_usable(p) >= size);
        p[size - 1] = 1;
    }
    EXPECT_EQUAL(huge_give(p), MISUSE_NONE);
}

/* A huge block begins at any page of a slice, and nothing else of that slice is taken for it. */
static void huge_at_any_page(void)
{
    if (4 * os_page > SLICE)
        return;
    bool zero;
    char *p = huge_take(4 * MiB, 1, &zero, NULL);
    EXPECT(p != NULL);
    /* Cut, so that it is the slice's third page. */
    size_t before = (SLICE + 2 * os_page - (uintptr_t)p % SLICE) % SLICE;
    struct huge *h = map_clear(p, BIN_HUGE);
    EXPECT(before == 0 || os_unmap(p, before));
    p = h->base += before;
    h->usable = h->length -= before;
    map_set(p, 1, BIN_HUGE, h);

    EXPECT(huge_start(p) == p);
    EXPECT_EQUAL(huge_usable(p), h->length);
    EXPECT(address_describe(p).kind == ADDRESS_LARGE && address_describe(p).start == (uintptr_t)p);
    EXPECT_EQUAL(address_describe(p + 3 * MiB).start, (uintptr_t)p);
    EXPECT(address_describe(p - 16).kind != ADDRESS_LARGE);
    for (size_t at = 0; at < 4; at++) {
        char *other = p - 2 * os_page + at * os_page + (at == 2 ? 16 : 0);
        EXPECT(huge_usable(other) == 0);
        EXPECT(huge_resize(other, 8 * MiB) == NULL);
        EXPECT_EQUAL(huge_give(other), at < 2 ? MISUSE_FOREIGN : MISUSE_INTERIOR);
    }
    char *moved = huge_resize(p, 64 * MiB);
    if (moved != NULL) /* a filter may refuse */
        p = moved;
    EXPECT(huge_start(p) == p && map_owner(p) == h);

    EXPECT_EQUAL(huge_give(p), MISUSE_NONE);
    EXPECT(huge_is_dirty(p));
    huge_purge(SIZE_MAX);
}

/* What is kept of a huge block serves smaller ones, wherever a cut falls: also behind the boundary
 * of 4 GiB at which the map's leaves change. The kernel puts mappings below each other, so when
 * what lies between the lowest one and a boundary is filled, the next lies across it. */
static void huge_across_regions(void)
{
    const size_t region = 4 * GiB, length = 32 * MiB;
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    huge_purge(SIZE_MAX);
    /* A gap between older mappings may be served first; what is put there fills it. */
    char *lowest, *boundary, *filled, *got;
    int tries = 0;
    do {
        lowest = mmap(NULL, length, PROT_NONE, flags, -1, 0);
        EXPECT(lowest != MAP_FAILED);
        /* One region further down no block has been yet, so the map has no leaf there. */
        boundary = (char *)((uintptr_t)lowest & ~(region - 1)) - region;
        filled = boundary + length / 2;
        got =
            mmap(filled, (size_t)(lowest - filled), PROT_NONE, flags | MAP_FIXED_NOREPLACE, -1, 0);
    } while (got != filled && ++tries < 1000);
    EXPECT(got == filled);
    bool zero;
    char *p = huge_take(length, 1, &zero, NULL);
    EXPECT(p != NULL);
    if (!UNDER_TSAN)
        EXPECT(p < boundary && p + length > boundary + 3 * MiB);
    EXPECT_EQUAL(huge_give(p), MISUSE_NONE);
    char *parts[8];
    for (int i = 0; i < 8; i++) {
        parts[i] = huge_take(3 * MiB, 1, &zero, NULL);
        EXPECT(parts[i] != NULL);
        parts[i][0] = parts[i][3 * MiB - 1] = 1;
    }
    for (int i = 0; i < 8; i++)
        EXPECT_EQUAL(huge_give(parts[i]), MISUSE_NONE);
    munmap(filled, (size_t)(lowest - filled) + length);
}

/* A block of joined mappings that the kernel keeps apart can't be moved: realloc then copies, and
 * nothing of the address space is lost. */
static void huge_in_pieces(void)
{
    const size_t length = 16 * MiB;
    bool zero;
    huge_purge(SIZE_MAX);
    for (int round = 0; round < 50; round++) {
        char *p = huge_take(length, 1, &zero, NULL);
        EXPECT(p != NULL);
        madvise(p, length / 2, round % 2 == 0 ? MADV_DONTDUMP : MADV_DODUMP);
        p[0] = p[length - 1] = 1;
        char *q = huge_resize(p, 2 * length);
        EXPECT(q == NULL || (q[0] == 1 && q[length - 1] == 1));
        EXPECT_EQUAL(huge_give(q == NULL ? p : q), MISUSE_NONE);
    }
    huge_purge(SIZE_MAX);
    superslabs_release();
    /* 50 targets left behind would be 1.6 GiB. */
    FILE *statm = fopen("/proc/self/statm", "r");
    unsigned long pages = 0;
    EXPECT(statm != NULL && fscanf(statm, "%lu", &pages) == 1);
    fclose(statm);
    /* qemu passes on what the kernel counts, in pages of the kernel's own size. */
    size_t page = UNDER_EMULATOR ? 4 * KiB : (size_t)sysconf(_SC_PAGESIZE);
    EXPECT(UNDER_TSAN || pages * page < 1 * GiB);
}

static size_t mapping_of(const void *p) { return ((const struct huge *)map_owner(p))->length; }

/* Eight for each doubling, and the exact one where the kernel refuses that. */
static void huge_lengths(void)
{
    bool zero;
    huge_purge(SIZE_MAX);
    char *p = huge_take(5 * MiB + 1, 1, &zero, NULL);
    EXPECT_EQUAL(mapping_of(p), 5 * MiB + 512 * KiB);
    EXPECT_EQUAL(huge_usable(p), 5 * MiB + os_page);
    EXPECT_EQUAL(huge_give(p), MISUSE_NONE);
    char *q = huge_take(5 * MiB + 400 * KiB, 1, &zero, NULL);
    EXPECT(q == p && !zero);
    EXPECT(huge_resize(q, 5 * MiB + 500 * KiB) == q);
    EXPECT_EQUAL(mapping_of(q), 5 * MiB + 512 * KiB);
    EXPECT_EQUAL(huge_give(q), MISUSE_NONE);
    huge_purge(SIZE_MAX);
    if (UNDER_EMULATOR || UNDER_TSAN)
        return; /* their address spaces are not what is limited */
    FILE *statm = fopen("/proc/self/statm", "r");
    unsigned long pages = 0;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    EXPECT(statm != NULL && fscanf(statm, "%lu", &pages) == 1);
    fclose(statm);
    struct rlimit limit, before;
    getrlimit(RLIMIT_AS, &before);
    limit = before;
    limit.rlim_cur = pages * page + 134 * MiB;
    EXPECT(setrlimit(RLIMIT_AS, &limit) == 0);
    p = huge_take(130 * MiB, 1, &zero, NULL);
    EXPECT(p != NULL && mapping_of(p) == 130 * MiB);
    if (os_page == page) { /* larger ones are pretended, and move as copies */
        p = huge_resize(p, 132 * MiB);
        EXPECT(p != NULL && mapping_of(p) == 132 * MiB);
    }
    EXPECT(setrlimit(RLIMIT_AS, &before) == 0);
    EXPECT_EQUAL(huge_give(p), MISUSE_NONE);
    huge_purge(SIZE_MAX);
}

static void without_memory(void)
{
    struct rlimit limit = {0, 0}, before;
    getrlimit(RLIMIT_AS, &before);
    limit.rlim_max = before.rlim_max;
    bool zero;
    char *kept = huge_take(100 * KiB, 1, &zero, NULL);
    EXPECT(setrlimit(RLIMIT_AS, &limit) == 0);
    EXPECT(huge_take(500 * MiB, 1, &zero, NULL) == NULL);
    EXPECT(os_map_aligned(SUPERSLAB, SUPERSLAB) == NULL);
    EXPECT(setrlimit(RLIMIT_AS, &before) == 0);
    char *p = huge_take(500 * MiB, 1, &zero, NULL);
    EXPECT(p != NULL);
    EXPECT_EQUAL(huge_give(p), MISUSE_NONE);
    EXPECT_EQUAL(huge_give(kept), MISUSE_NONE);
}

/* What the callers of these floors hold: see os/lock.h. */
static struct lock guard = LOCK(PURGE);

int main(void)
{
    const struct os_given given = os_ask();
    os_start(&given);
    lock_take(&guard);
    map_start();
    slots_start(42);
    map_of_foreign();
    map_of_ours();
    map_of_freed();
    metadata();
    large_metadata();
    what_slices_lack_is_wanted_with_them();
    slices();
    runs_go_back();
    huge();
    huge_at_any_page();
    huge_in_pieces();
    huge_lengths();
    if (!UNDER_EMULATOR) {
        a_run_that_stays_is_told();
        huge_across_regions();
        without_memory();
    }
    puts(UNDER_EMULATOR ? "10 passed, 3 left out" : "13 passed, 0 failed");
    return 0;
}
