/* A heap, read by its tables: what its memory is used for, in bytes that are resident. */
#ifndef HAKMEM_SHEET_HEAP_H
#define HAKMEM_SHEET_HEAP_H

#include "base/watch.h"
#include "sheet/profile.h"
#include "sheet/target.h"

/* ---- the tables by which it is read ----
 *
 * Those of constants (base/watch.h), copied from the target and found to be possible: no length in
 * them is too long, no field lies outside of what it is in. */

struct tables {
    uint64_t at; /* where hakmem_watch is */
    char version[17];
#define TABLE(name) struct watch_##name name; /* zero where an older library has none */
    WATCH_TABLES(TABLE, TABLE)
#undef TABLE
};

static inline uint64_t address(const void *p) { return (uint64_t)(uintptr_t)p; }

/* Bytes of a site's tally that are read (struct tally in profile/samples.h). */
static inline size_t tally_bytes(const struct watch_profile *p)
{
    return p->tally_bytes == 0 ? 24 : 32;
}

/* Reads the marks; how many. */
unsigned marks_read(struct target *t, const struct tables *tables, struct watch_mark *marks);

#define CLASSES_MOST 512
#define STACKS_MOST 1024
#define CACHE_MOST 65536 /* bytes */
#define BUCKETS_MOST 65536
#define SAMPLE_BUCKET_BITS_MOST 28

/* Copies them, where hakmem_watch is known. */
bool tables_read(struct target *t, uint64_t at, struct tables *tables, struct why *why);

/* ---- what is read ---- */

/* What resident memory of the heap is used for. */
#define HEAP_LINES(LINE)                                                \
    LINE(LIVE, "live", "blocks in use")                                 \
    LINE(ROUNDING, "rounding", "unused ends of large blocks and slabs") \
    LINE(HOLES, "holes", "free blocks in pages that are in use")        \
    LINE(FREE_PAGES, "free_pages", "free pages in slabs")               \
    LINE(CACHES, "caches", "free blocks in thread caches")              \
    LINE(TRANSFER, "transfer", "free blocks in transfer caches")        \
    LINE(SLICES, "slices", "free slices (64 KiB), cached")              \
    LINE(HUGE_PAGES, "huge_pages", "huge pages, unused parts")          \
    LINE(KEPT, "kept", "freed blocks above 2 MiB, cached")              \
    LINE(METADATA, "metadata", "allocator metadata and code")

#define HEAP_LINE_ENUM(line, name, words) LINE_##line,
enum heap_line { HEAP_LINES(HEAP_LINE_ENUM) HEAP_LINE_COUNT };
#undef HEAP_LINE_ENUM

/* Limits of memory. */
#define HEAP_LIMITS(LIMIT)                \
    LIMIT(SOFT, soft, "soft_limit_bytes") \
    LIMIT(HARD, hard, "hard_limit_bytes") \
    LIMIT(CONTAINER, container, "the container")

#define HEAP_LIMIT_ENUM(limit, name, words) LIMIT_##limit,
enum heap_limit { HEAP_LIMITS(HEAP_LIMIT_ENUM) HEAP_LIMIT_COUNT };
#undef HEAP_LIMIT_ENUM

struct class_sum {
    uint32_t size, blocks, slices; /* of a block, in a slab, of a slab */
    uint64_t slabs;
    uint64_t live, cached, in_transfer, free; /* blocks */
    uint64_t sparse_pages, sparse_used; /* resident and in use, but at least half free: how many,
                                           and bytes of blocks in them, in caches too */
    uint64_t sparse_live;               /* blocks in use that lie in such pages, or partly */
    uint64_t resident[HEAP_LINE_COUNT];
};

struct cache_sum {
    uint64_t blocks, bytes;
    uint64_t mine; /* the address of a variable of the thread; 0: not known */
    int thread;    /* its number, which who looks may find out; 0: not known */
    bool living;
};

/* Called for each block that is in use, with the bytes that the program may use of it. */
struct heap_listener {
    void (*block)(struct heap_listener *, uint64_t start, uint64_t bytes);
};

struct heap {
    struct tables tables;
    struct heap_listener *listener; /* null, or whoever wants to know */
    const struct spans *seen;       /* all memory of the heap, until the target is forgotten */
    uint64_t resident[HEAP_LINE_COUNT];
    uint64_t live_bytes; /* resident or not, as are all that follow */
    uint64_t free_bytes;
    uint64_t huge_blocks, huge_bytes;
    uint64_t superslabs;
    struct class_sum classes[CLASSES_MOST];
    struct cache_sum *caches; /* the newest first */
    size_t cache_count;
    uint64_t freed, returned, taken_again; /* counters of the process, bytes */
    uint64_t held;                         /* what limits of the heap count */
    uint64_t limits[HEAP_LIMIT_COUNT];     /* UINT64_MAX: none, or not known */
    struct requested requested;
    struct watch_mark marks[MARKS_MOST];
    unsigned mark_count;
    uint64_t skipped; /* descriptors that made no sense: changed meanwhile, or damaged */
};

/* Reads the heap; mappings learn what of them is claimed. The tables are in place, and so is the
 * listener. False where it
 * makes no sense, or there is no memory. */
bool heap_read(struct target *t, struct heap *heap, struct why *why);

/* ---- what a look adds up to ---- */

/* What a mapping is of. */
enum mapping_kind { KIND_HEAP, KIND_FILE, KIND_STACK, KIND_ANONYMOUS, KINDS };
extern const char kind_names[KINDS][12];
enum mapping_kind mapping_kind(const struct target *t, const struct mapping *m);

struct totals {
    uint64_t resident;     /* all of it, by the kernel */
    uint64_t kinds[KINDS]; /* of that, in mappings of the kind, and not the heap's */
    int64_t unexplained;   /* of the heap's mappings: what changed meanwhile */
    uint64_t returnable;   /* of the heap: what could go back at once */
    uint64_t swapped[2];   /* not resident, but in swap: of the heap, of all else */
    uint64_t most;         /* that was ever resident (VmHWM); 0 where nobody asked */
};

struct totals totals_of(const struct target *t, const struct heap *heap);

/* A heap at work changes while it is looked at. So much that is not explained is little; else the
 * best of LOOKS_MOST looks is taken. */
uint64_t little_of(const struct target *t);
#define LOOKS_MOST 6

#endif
