/* glibc's extensions for hakmem's memory, and their names. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>

#include "api/heap.h"
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

#define EXPORT __attribute__((visibility("default")))

EXPORT int hakmem_malloc_trim(size_t pad) { return purge_all(thread_cache(), pad) > 0; }

/* ---- numbers ---- */

/* Blocks that lie in threads' stacks and transfer caches, and in slabs. */
static size_t blocks_cached(const struct accounts *accounts)
{
    size_t blocks = 0;
    for (unsigned cls = 0; cls < CLASSES; cls++)
        blocks += accounts->classes[cls].cached + accounts->classes[cls].in_transfer;
    return blocks;
}

static size_t blocks_free(const struct accounts *accounts)
{
    size_t blocks = 0;
    for (unsigned cls = 0; cls < CLASSES; cls++)
        blocks += accounts->classes[cls].free;
    return blocks;
}

static struct hakmem_mallinfo2 mallinfo_of(const struct accounts *accounts)
{
    size_t arena = accounts->mapped - accounts->huge_mapped - accounts->metadata - accounts->map;
    size_t used = accounts->program - accounts->huge_usable;
    return (struct hakmem_mallinfo2){
        .arena = arena,
        .ordblks = blocks_free(accounts),
        .smblks = blocks_cached(accounts),
        .hblks = accounts->huge,
        .hblkhd = accounts->huge_mapped,
        .fsmblks = accounts->cached + accounts->in_transfer,
        .uordblks = used,
        .fordblks = arena - used,
        .keepcost = accounts->retained + accounts->kept,
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
    struct hakmem_mallinfo2 all = hakmem_mallinfo2();
    return (struct hakmem_mallinfo){
        .arena = clamped(all.arena),
        .ordblks = clamped(all.ordblks),
        .smblks = clamped(all.smblks),
        .hblks = clamped(all.hblks),
        .hblkhd = clamped(all.hblkhd),
        .usmblks = clamped(all.usmblks),
        .fsmblks = clamped(all.fsmblks),
        .uordblks = clamped(all.uordblks),
        .fordblks = clamped(all.fordblks),
        .keepcost = clamped(all.keepcost),
    };
}

/* ---- XML ---- */

/* `<name a="1" b="2"/>` to the stream: its text up to each number, then the number. */
struct piece {
    const char *words;
    size_t number;
};

static void write_element(FILE *stream, const struct piece *pieces, size_t count)
{
    char line[512];
    struct text text;
    text_init(&text, line, sizeof line);
    for (size_t i = 0; i < count; i++)
        text_write(&text, "%s=\"%zu\"", pieces[i].words, pieces[i].number);
    text_add(&text, "/>\n");
    fputs(line, stream);
}

#define ELEMENT(stream, ...)                                   \
    write_element(stream, (const struct piece[]){__VA_ARGS__}, \
                  sizeof((const struct piece[]){__VA_ARGS__}) / sizeof(struct piece))

static void write_sizes(FILE *stream, const struct accounts *accounts)
{
    fputs("<sizes>\n", stream);
    for (unsigned cls = 0; cls < CLASSES; cls++) {
        size_t size = size_classes[cls].size;
        size_t least = cls == 0 ? 1 : size_classes[cls - 1].size + 1;
        size_t count = accounts->classes[cls].free;
        if (count > 0)
            ELEMENT(stream, {"  <size from", least}, {" to", size}, {" total", count * size},
                    {" count", count});
    }
    fputs("</sizes>\n", stream);
}

/* What glibc writes for a heap and once more for all of them; hakmem has one. */
static void write_totals(FILE *stream, const struct accounts *accounts,
                         const struct hakmem_mallinfo2 *info, bool all)
{
    ELEMENT(stream, {"<total type=\"fast\" count", info->smblks}, {" size", info->fsmblks});
    ELEMENT(stream, {"<total type=\"rest\" count", info->ordblks},
            {" size", accounts->free_in_slabs});
    if (all)
        ELEMENT(stream, {"<total type=\"mmap\" count", info->hblks}, {" size", info->hblkhd});
    size_t now = all ? accounts->mapped : info->arena;
    ELEMENT(stream, {"<system type=\"current\" size", now});
    if (all)
        ELEMENT(stream, {"<system type=\"max\" size", os_mapped_most()});
    ELEMENT(stream, {"<aspace type=\"total\" size", now});
    ELEMENT(stream, {"<aspace type=\"mprotect\" size", now});
}

static void write_details(FILE *stream, const struct accounts *accounts)
{
    fputs("<hakmem>\n", stream);
    ELEMENT(stream, {"<bytes mapped", accounts->mapped}, {" program", accounts->program},
            {" thread_caches", accounts->cached}, {" transfer", accounts->in_transfer},
            {" free_in_slabs", accounts->free_in_slabs}, {" rest", accounts->rest},
            {" retained", accounts->retained}, {" untouched", accounts->untouched},
            {" kept", accounts->kept}, {" metadata", accounts->metadata}, {" map", accounts->map});
    ELEMENT(stream, {"<counts superslabs", accounts->superslabs}, {" slabs", accounts->slabs},
            {" large_blocks", accounts->whole}, {" huge_blocks", accounts->huge},
            {" kept_mappings", accounts->dirty_mappings}, {" threads", accounts->caches},
            {" refills", accounts->refills}, {" flushes", accounts->flushes});
    ELEMENT(stream, {"<returned bytes", accounts->returned},
            {" taken_again", accounts->taken_again}, {" nanoseconds", accounts->returning_ns},
            {" in_slabs", accounts->absent});
    ELEMENT(stream, {"<compaction begun", accounts->compactions}, {" bytes", accounts->compacted},
            {" regained", accounts->regained});
    for (unsigned cls = 0; cls < CLASSES; cls++) {
        const struct class_accounts *c = &accounts->classes[cls];
        if (c->slabs > 0)
            ELEMENT(stream, {"<class size", size_classes[cls].size}, {" slabs", c->slabs},
                    {" taken", c->taken}, {" free", c->free}, {" cached", c->cached},
                    {" transfer", c->in_transfer}, {" compacts", c->compacts},
                    {" compacted", c->compacted}, {" regained", c->regained});
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
    write_totals(stream, &accounts, &info, false);
    fputs("</heap>\n", stream);
    write_totals(stream, &accounts, &info, true);
    write_details(stream, &accounts);
    fputs("</malloc>\n", stream);
    return 0;
}

/* ---- the summary ---- */

static void print_figure(struct text *text, const char *words, size_t number)
{
    text_add(text, words);
    for (size_t tens = 1000000000; tens > number && tens > 1; tens /= 10)
        text_add(text, " ");
    text_add_number(text, number);
    text_add(text, "\n");
}

EXPORT void hakmem_malloc_stats(void)
{
    struct accounts accounts;
    heap_count(&accounts);
    struct hakmem_mallinfo2 info = mallinfo_of(&accounts);
    char lines[1024];
    struct text text;
    text_init(&text, lines, sizeof lines);
    print_figure(&text, "Arena 0:\nsystem bytes     = ", info.arena);
    print_figure(&text, "in use bytes     = ", info.uordblks);
    print_figure(&text, "Total (incl. mmap):\nsystem bytes     = ", accounts.mapped);
    print_figure(&text, "in use bytes     = ", accounts.program);
    print_figure(&text, "max mmap regions = ", load_relaxed(&use.blocks_most));
    print_figure(&text, "max mmap bytes   = ", load_relaxed(&use.huge_most));
    print_figure(&text, "hakmem:\nmmap regions     = ", info.hblks);
    print_figure(&text, "mmap bytes       = ", info.hblkhd);
    print_figure(&text, "thread caches    = ", accounts.cached);
    print_figure(&text, "transfer caches  = ", accounts.in_transfer);
    print_figure(&text, "free in slabs    = ", accounts.free_in_slabs);
    print_figure(&text, "retained         = ", accounts.retained);
    print_figure(&text, "kept mappings    = ", accounts.kept);
    print_figure(&text, "metadata         = ", accounts.metadata + accounts.map);
    print_figure(&text, "max system bytes = ", os_mapped_most());
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
