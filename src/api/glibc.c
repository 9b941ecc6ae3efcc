/* glibc's extensions for hakmem's memory, and their names. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>

#include "back/use.h"
#include "base/atomic.h"
#include "base/policy.h"
#include "base/text.h"
#include "hakmem/hakmem.h"
#include "heap/shards.h"
#include "life/life.h"
#include "life/purge.h"
#include "life/settings.h"
#include "os/os.h"
#include "report/accounts.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT int hakmem_malloc_trim(size_t pad) { return purge_all(thread_cache(), pad) > 0; }

/* ---- numbers ---- */

static struct hakmem_mallinfo2 mallinfo_of(const struct accounts *accounts)
{
    const struct hakmem_stats *s = &accounts->stats;
    size_t arena = s->mapped - accounts->huge_mapped - s->metadata - s->map;
    size_t used = s->program - accounts->huge_usable;
    size_t cached = 0, free = 0; /* blocks in threads' stacks and transfer caches, and in slabs */
    for (unsigned cls = 0; cls < CLASSES; cls++) {
        cached += accounts->classes[cls].cached + accounts->classes[cls].in_transfer;
        free += accounts->classes[cls].free;
    }
    return (struct hakmem_mallinfo2){
        .arena = arena,
        .ordblks = free,
        .smblks = cached,
        .hblks = s->huge_blocks,
        .hblkhd = accounts->huge_mapped,
        .fsmblks = s->thread_caches + s->transfer,
        .uordblks = used,
        .fordblks = arena - used,
        .keepcost = s->retained + s->kept,
    };
}

EXPORT struct hakmem_mallinfo2 hakmem_mallinfo2(void)
{
    struct accounts accounts;
    heap_count(&accounts);
    return mallinfo_of(&accounts);
}

static int clamped(size_t n) { return n < INT_MAX ? (int)n : INT_MAX; }

EXPORT struct hakmem_mallinfo hakmem_mallinfo(void)
{
    const struct hakmem_mallinfo2 all = hakmem_mallinfo2();
    struct hakmem_mallinfo info;
    enum { FIELDS = sizeof info / sizeof(int) };
    static_assert(FIELDS == sizeof all / sizeof(size_t), "the same fields");
    for (unsigned i = 0; i < FIELDS; i++)
        ((int *)&info)[i] = clamped(((const size_t *)&all)[i]);
    return info;
}

/* ---- XML ---- */

static void write_sizes(FILE *stream, const struct accounts *accounts)
{
    fputs("<sizes>\n", stream);
    for (unsigned cls = 0; cls < CLASSES; cls++) {
        size_t size = size_classes[cls].size;
        size_t least = cls == 0 ? 1 : size_classes[cls - 1].size + 1;
        size_t count = accounts->classes[cls].free;
        if (count > 0)
            fprintf(stream, "  <size from=\"%zu\" to=\"%zu\" total=\"%zu\" count=\"%zu\"/>\n",
                    least, size, count * size, count);
    }
    fputs("</sizes>\n", stream);
}

/* What glibc writes for a heap and once more for all of them; hakmem has one. */
static void write_totals(FILE *stream, const struct hakmem_stats *stats,
                         const struct hakmem_mallinfo2 *info, bool all)
{
    fprintf(stream,
            "<total type=\"fast\" count=\"%zu\" size=\"%zu\"/>\n"
            "<total type=\"rest\" count=\"%zu\" size=\"%zu\"/>\n",
            info->smblks, info->fsmblks, info->ordblks, stats->free_in_slabs);
    if (all)
        fprintf(stream, "<total type=\"mmap\" count=\"%zu\" size=\"%zu\"/>\n", info->hblks,
                info->hblkhd);
    size_t now = all ? stats->mapped : info->arena;
    fprintf(stream, "<system type=\"current\" size=\"%zu\"/>\n", now);
    if (all)
        fprintf(stream, "<system type=\"max\" size=\"%zu\"/>\n", stats->mapped_most);
    fprintf(stream,
            "<aspace type=\"total\" size=\"%zu\"/>\n<aspace type=\"mprotect\" size=\"%zu\"/>\n",
            now, now);
}

static void write_details(FILE *stream, const struct accounts *accounts)
{
    const struct hakmem_stats *s = &accounts->stats;
    fprintf(stream,
            "<hakmem>\n<bytes mapped=\"%zu\" program=\"%zu\" thread_caches=\"%zu\" "
            "transfer=\"%zu\" free_in_slabs=\"%zu\" rest=\"%zu\" retained=\"%zu\" "
            "untouched=\"%zu\" kept=\"%zu\" metadata=\"%zu\" map=\"%zu\"/>\n",
            s->mapped, s->program, s->thread_caches, s->transfer, s->free_in_slabs, s->rest,
            s->retained, s->untouched, s->kept, s->metadata, s->map);
    fprintf(stream,
            "<counts superslabs=\"%zu\" slabs=\"%zu\" large_blocks=\"%zu\" huge_blocks=\"%zu\" "
            "kept_mappings=\"%zu\" threads=\"%zu\" refills=\"%zu\" flushes=\"%zu\"/>\n",
            s->superslabs, s->slabs, s->large_blocks, s->huge_blocks, s->kept_mappings, s->threads,
            s->refills, s->flushes);
    fprintf(stream,
            "<returned bytes=\"%zu\" taken_again=\"%zu\" nanoseconds=\"%zu\" in_slabs=\"%zu\"/>\n"
            "<compaction begun=\"%zu\" bytes=\"%zu\" regained=\"%zu\"/>\n",
            s->returned, s->taken_again, s->returning_ns, s->returned_in_slabs, s->compactions,
            s->compacted, s->regained);
    for (unsigned cls = 0; cls < CLASSES; cls++) {
        const struct class_accounts *c = &accounts->classes[cls];
        if (c->slabs > 0)
            fprintf(stream,
                    "<class size=\"%zu\" slabs=\"%zu\" taken=\"%zu\" free=\"%zu\" cached=\"%zu\" "
                    "transfer=\"%zu\" compacts=\"%zu\" compacted=\"%zu\" regained=\"%zu\"/>\n",
                    (size_t)size_classes[cls].size, c->slabs, c->taken, c->free, c->cached,
                    c->in_transfer, c->compacts, c->compacted, c->regained);
    }
    fputs("</hakmem>\n", stream);
}

EXPORT int hakmem_malloc_info(int options, FILE *stream)
{
    if (options != 0)
        return EINVAL;
    struct accounts accounts; /* stdio may allocate: only when no lock is held any more */
    heap_count(&accounts);
    struct hakmem_mallinfo2 info = mallinfo_of(&accounts);
    fputs("<malloc version=\"1\">\n<heap nr=\"0\">\n", stream);
    write_sizes(stream, &accounts);
    write_totals(stream, &accounts.stats, &info, false);
    fputs("</heap>\n", stream);
    write_totals(stream, &accounts.stats, &info, true);
    write_details(stream, &accounts);
    fputs("</malloc>\n", stream);
    return 0;
}

/* ---- the summary ---- */

EXPORT void hakmem_malloc_stats(void)
{
    struct accounts accounts;
    heap_count(&accounts);
    const struct hakmem_stats *s = &accounts.stats;
    struct hakmem_mallinfo2 info = mallinfo_of(&accounts);
    char lines[1024];
    struct text text = text_of(lines, sizeof lines,
                               "Arena 0:\n"
                               "system bytes     = %10zu\n"
                               "in use bytes     = %10zu\n"
                               "Total (incl. mmap):\n"
                               "system bytes     = %10zu\n"
                               "in use bytes     = %10zu\n"
                               "max mmap regions = %10zu\n"
                               "max mmap bytes   = %10zu\n",
                               info.arena, info.uordblks, s->mapped, s->program,
                               load_relaxed(&use.blocks_most), load_relaxed(&use.huge_most));
    text_write(&text,
               "hakmem:\n"
               "mmap regions     = %10zu\n"
               "mmap bytes       = %10zu\n"
               "thread caches    = %10zu\n"
               "transfer caches  = %10zu\n"
               "free in slabs    = %10zu\n"
               "retained         = %10zu\n"
               "kept mappings    = %10zu\n"
               "metadata         = %10zu\n"
               "max system bytes = %10zu\n",
               info.hblks, info.hblkhd, s->thread_caches, s->transfer, s->free_in_slabs,
               s->retained, s->kept, s->metadata + s->map, s->mapped_most);
    os_print_error(text.start, text.used);
}

/* ---- parameters ---- */

enum { /* glibc's numbers */
       SET_MXFAST = 1,
       SET_TRIM_THRESHOLD = -1,
       SET_TOP_PAD = -2,
       SET_MMAP_THRESHOLD = -3,
       SET_MMAP_MAX = -4,
       SET_CHECK_ACTION = -5,
       SET_PERTURB = -6,
       SET_ARENA_TEST = -7,
       SET_ARENA_MAX = -8,
};

/* The most that glibc takes. */
#define MXFAST_MOST (80 * (int)sizeof(size_t) / 4)
#define MMAP_THRESHOLD_MOST (32 << 20)

#define CHECK_ABORTS 2 /* the bit of M_CHECK_ACTION that ends the program */

EXPORT int hakmem_mallopt(int parameter, int value)
{
    thread_cache(); /* the process's start: what its options say would win over an earlier call */
    switch (parameter) {
    case SET_TRIM_THRESHOLD:
        option_change("keep_bytes", value < 0 ? KEEP_ALL : (size_t)value, NULL);
        return 1;
    case SET_MMAP_MAX:
        return value >= 0;
    case SET_ARENA_MAX:
        if (value <= 0)
            return 0;
        shards_limit((unsigned)value);
        return 1;
    case SET_MXFAST:
        return value >= 0 && value <= MXFAST_MOST;
    case SET_MMAP_THRESHOLD:
        return value >= 0 && value <= MMAP_THRESHOLD_MOST;
    case SET_TOP_PAD:
        return value >= 0;
    case SET_ARENA_TEST:
        return value > 0;
    case SET_CHECK_ACTION:
        return (value & CHECK_ABORTS) != 0;
    case SET_PERTURB:
        return value == 0;
    default:
        return 0;
    }
}

/* The names that programs call. */
#ifdef HAKMEM_OVERRIDE
#define ALIAS(name) __attribute__((alias(#name), copy(name), visibility("default")))
int malloc_trim(size_t pad) ALIAS(hakmem_malloc_trim);
struct hakmem_mallinfo2 mallinfo2(void) ALIAS(hakmem_mallinfo2);
struct hakmem_mallinfo mallinfo(void) ALIAS(hakmem_mallinfo);
int malloc_info(int options, FILE *stream) ALIAS(hakmem_malloc_info);
void malloc_stats(void) ALIAS(hakmem_malloc_stats);
int mallopt(int parameter, int value) ALIAS(hakmem_mallopt);
struct hakmem_mallinfo __libc_mallinfo(void) ALIAS(hakmem_mallinfo);
int __libc_mallopt(int parameter, int value) ALIAS(hakmem_mallopt);

/* And malloc with them. */
static void *(*const whole_family)(size_t) __attribute__((used)) = hakmem_malloc;
#endif
