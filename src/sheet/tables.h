/* The tables of constants by which a heap is read (src/base/watch.h), copied from the target and
 * found to be possible: no length in them is too long, no field lies outside of what it is in. */
#ifndef HAKMEM_SHEET_TABLES_H
#define HAKMEM_SHEET_TABLES_H

#include "base/watch.h"
#include "sheet/target.h"

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

#endif
