/* The operations that are counted: random mixed over an array of slots, the same on every run.
 *
 * Each operation picks a slot: an occupied one is freed, an empty one gets a block of a size drawn
 * between two bounds, whose first byte is written. Nothing here calls the allocator or the system
 * but through `take` and `give`. */
#ifndef HAKMEM_TESTS_WORK_H
#define HAKMEM_TESTS_WORK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WORK_SLOTS_MOST = 8192, WORK_OPERATIONS = 100000 };

struct work {
    void *(*take)(size_t);
    void (*give)(void *);
    uint32_t slots;    /* at most WORK_SLOTS_MOST */
    uint32_t min, max; /* bytes of a block, at least 1 */
    uint64_t random;   /* state of the generator; work_start sets it */
    void *slot[WORK_SLOTS_MOST];
};

/* Empty slots and the fixed seed; keeps allocator, number of slots and sizes. */
void work_start(struct work *w);

/* The next WORK_OPERATIONS; false when memory ran out. */
bool work_operate(struct work *w);

/* The same under a name of its own, by which callgrind tells it from the warm-up. */
bool work_operate_measured(struct work *w);

#endif
