/* Checks the heap against CHECK_RULES (accounts.h). */
#ifndef HAKMEM_REPORT_HEAP_CHECK_H
#define HAKMEM_REPORT_HEAP_CHECK_H

#include "back/superslabs.h"
#include "base/defs.h"
#include "report/accounts.h"

/* Accounts, then checks each rule. The caller holds all locks; blocks may be on their way between
 * the program and the slow path, unless no other thread is at work (`quiet`). Returns how many
 * breaches there are, SIZE_MAX without memory for the notes. Neither calls malloc nor prints. */
size_t heap_check(struct accounts *accounts, bool quiet);

/* Writes the breaches to standard error, a line each. Needs no lock. */
void heap_check_report(const struct accounts *accounts);

/* ---- the notes of one check, and what it found: for the files of the check alone ---- */

/* A superslab, with a bit for each slice. */
struct check_superslab {
    struct superslab *s;
    uint64_t in_slabs;
    uint64_t slabs;   /* where a slab begins */
    uint64_t in_tree; /* where a slab begins that is in its shard's tree */
};

struct check_range {
    uintptr_t start, end;
};

#define CHECK_MARK_WORDS (SUPERSLAB / CLASS_GRAIN / 64)

struct check_walk {
    struct accounts *accounts;
    bool quiet;                         /* nothing is on its way between two places */
    struct check_superslab *superslabs; /* by address */
    size_t superslab_count, superslab_room;
    struct check_range *ranges; /* by address */
    size_t range_count, range_room;
    /* Superslab by superslab a bit for each place where a block can begin: it is in a stack or in a
     * transfer cache. */
    uint64_t (*marks)[CHECK_MARK_WORDS];
};

void check_break(struct check_walk *walk, enum check_rule rule, const void *where, size_t expected,
                 size_t found);

/* A breach unless the two are the same. */
static inline void check_same(struct check_walk *walk, enum check_rule rule, const void *where,
                              size_t expected, size_t found)
{
    if (unlikely(expected != found))
        check_break(walk, rule, where, expected, found);
}

/* The superslab that p is in; null if in none. */
struct check_superslab *check_find(const struct check_walk *walk, const void *p);

/* ---- heap_check_fronts.c ---- */

/* Threads' caches, transfer caches: each block in one of them is taken, and there once. */
void check_fronts(struct check_walk *walk);

#endif
