#include "heap/guard_pages.h"

#include <string.h>

#include "base/assert.h"
#include "base/hardening.h"
#include "learn/laws.h"

#define LEAST_PAGES 4 /* of a slab: with fewer nothing would be left */

#define PAGE 4096
#define ROOM 8192 /* of the table: whole pages, which are made read-only */

const struct guard_plan *guard_plans;

static union {
    struct {
        struct guard_plan plans[CLASSES];
        uint64_t words[(ROOM - CLASSES * sizeof(struct guard_plan)) / sizeof(uint64_t)];
    };
    char bytes[ROOM];
} table __attribute__((aligned(PAGE)));

static unsigned words_of(unsigned cls) { return (size_classes[cls].blocks + 63u) / 64; }

/* From the start of the slab on: blocks up to the end of a page, `run` pages from the first at the
 * least, then a guard page, then blocks again. Where no block has room with a guard page behind it
 * there are guard pages up to the end. */
static COLD void plan_make(struct guard_plan *plan, uint64_t *words, unsigned cls, unsigned run)
{
    const struct size_class *c = &size_classes[cls];
    size_t slab = c->slices * SLICE;
    size_t first = 0; /* where the next blocks may begin */
    size_t last = 0;  /* where the guard page behind them does; 0: there are none yet */
    uint64_t touched = 0;
    memset(words, 0, words_of(cls) * sizeof *words);
    *plan = (struct guard_plan){.words = words};
    for (unsigned i = 0; i < c->blocks; i++) {
        size_t start = (size_t)i * c->size;
        size_t end = start + c->size;
        if (last != 0 && start >= first && end > last) {
            first = last + os_page;
            last = 0;
        }
        if (start < first)
            continue;
        if (last == 0)
            last = larger(round_up(end, os_page), (start / os_page + run) * os_page);
        if (last + os_page > slab)
            break;
        words[i / 64] |= (uint64_t)1 << i % 64;
        plan->places++;
        touched |= low_bits((unsigned)(round_up(end, os_page) / os_page)) &
                   ~low_bits((unsigned)(start / os_page));
    }
    plan->pages = low_bits((unsigned)(slab / os_page)) & ~touched;
}

/* How much of the pages that have blocks is blocks, in percent. */
static size_t fills(const struct guard_plan *plan, unsigned cls)
{
    size_t pages = SLICE / os_page - count_bits(plan->pages);
    return plan->places * size_classes[cls].size * 100 / (pages * os_page);
}

/* The shortest runs that leave few bytes of their pages without a block. */
static COLD void plan_choose(struct guard_plan *plan, uint64_t *words, unsigned cls)
{
    unsigned best = 1;
    size_t most = 0;
    for (unsigned run = 1; run <= LAW_GUARD_RUN && most < LAW_GUARD_FILLS; run++) {
        plan_make(plan, words, cls, run);
        if (fills(plan, cls) > most) {
            most = fills(plan, cls);
            best = run;
        }
    }
    plan_make(plan, words, cls, best);
}

COLD void guard_pages_start(void)
{
    if (!hardened() || !hardening.guards || SLICE / os_page < LEAST_PAGES || !os_can_guard())
        return;
    uint64_t *next = table.words;
    for (unsigned cls = 0; cls < CLASSES; next += words_of(cls++)) {
        struct guard_plan *plan = &table.plans[cls];
        ASSERT(next + words_of(cls) <= (uint64_t *)(table.bytes + ROOM));
        if (size_classes[cls].blocks > 1) {
            plan_choose(plan, next, cls);
        } else { /* blocks of whole slices */
            *next = 1;
            *plan = (struct guard_plan){0, 1, next};
        }
    }
    if (os_page == PAGE)
        os_let_write(&table, sizeof table, false);
    guard_plans = table.plans;
}
