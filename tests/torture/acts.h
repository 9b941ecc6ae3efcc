/* What a thread of the torture does for a while, on its own slots and on the cells of the exchange.
 * Each act drives another part of the allocator; threads do different ones at the same time. */
#ifndef HAKMEM_TESTS_ACTS_H
#define HAKMEM_TESTS_ACTS_H

#include "child.h"
#include "work.h"

enum act {
    ACT_MIXTURE, /* all sizes and all ways, exchanged with all threads */
    ACT_CLASS,   /* a narrow range of sizes after another was freed: slabs change class */
    ACT_HOLES,   /* fill, free nine tenths at random, look at the rest, fill again */
    ACT_GROW,    /* as many large blocks as there is room for, then none */
    ACT_GIVE,    /* allocate for others, who free */
    ACT_TAKE,    /* free what others allocated */
    ACT_FULL,    /* free a burst of every class, so that all stacks are full, and sleep a little */
    ACT_STORM, /* bursts of small blocks of few classes: refill and flush in all threads at once */
    ACT_FORK,  /* a child looks at the slots, works on them, and ends */
    ACTS
};

extern const char *const act_names[ACTS];

struct actor {
    struct seat seat;
    size_t slots; /* that the seat has; an act may use fewer of them */
    size_t bytes; /* that small blocks in its slots may have together */
    bool forks;   /* else ACT_FORK is ACT_MIXTURE */
    struct child_times times;
    uint64_t acts[ACTS]; /* how often */
};

/* Does about `operations`. */
void act(struct actor *actor, enum act what, uint64_t operations);

/* Fills the stacks of all classes with free blocks; the slots are empty afterwards. */
void act_fill_stacks(struct actor *actor, uint64_t operations);

#endif
