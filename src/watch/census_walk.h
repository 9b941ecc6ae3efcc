/* What the two halves of census_check share: one walk and what it has found. Only for them. */
#ifndef HAKMEM_WATCH_CENSUS_WALK_H
#define HAKMEM_WATCH_CENSUS_WALK_H

#include "back/superslab.h"
#include "base/defs.h"
#include "watch/census.h"

/* A superslab, with a bit for each slice. */
struct census_superslab {
    struct superslab *s;
    uint64_t in_slabs;
    uint64_t in_runs;
    uint64_t slabs;   /* where a slab begins */
    uint64_t in_tree; /* where a slab begins that is in its shard's tree */
};

struct census_range {
    uintptr_t start, end;
};

#define CENSUS_MARK_WORDS (SUPERSLAB / CLASS_GRAIN / 64)

struct census_walk {
    struct census *census;
    bool quiet;                          /* nothing is on its way between two places */
    struct census_superslab *superslabs; /* by address */
    size_t superslab_count, superslab_room;
    struct census_range *ranges; /* by address */
    size_t range_count, range_room;
    /* Superslab by superslab a bit for each place where a block can begin: it is in a stack or in a
     * transfer cache. */
    uint64_t (*marks)[CENSUS_MARK_WORDS];
};

void census_break(struct census_walk *walk, enum census_rule rule, const void *where,
                  size_t expected, size_t found);

/* A breach unless the two are the same. */
static inline void census_same(struct census_walk *walk, enum census_rule rule, const void *where,
                               size_t expected, size_t found)
{
    if (unlikely(expected != found))
        census_break(walk, rule, where, expected, found);
}

/* The superslab that p is in; null if in none. */
struct census_superslab *census_find(const struct census_walk *walk, const void *p);

/* Notes a superslab, a huge block or a kept mapping. */
void census_add_range(struct census_walk *walk, const void *start, size_t length);

/* Threads' caches, transfer caches: each block in one of them is taken, and there once. */
void census_check_fronts(struct census_walk *walk);

#endif
