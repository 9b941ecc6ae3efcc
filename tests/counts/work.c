#include "work.h"

#include <string.h>

void work_start(struct work *w)
{
    w->random = 0x9e3779b97f4a7c15;
    memset(w->slot, 0, sizeof w->slot);
}

/* xorshift; the low half picks the slot, the high half the size. */
static uint64_t next_random(struct work *w)
{
    uint64_t x = w->random;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return w->random = x;
}

/* Uniform below `bound`, by multiplication. */
static uint32_t below(uint32_t bits, uint32_t bound)
{
    return (uint32_t)((uint64_t)bits * bound >> 32);
}

/* Never inlined: all calls of the allocator are this function's. */
__attribute__((noinline)) bool work_operate(struct work *w)
{
    for (int i = 0; i < WORK_OPERATIONS; i++) {
        uint64_t bits = next_random(w);
        void **slot = &w->slot[below((uint32_t)bits, w->slots)];
        if (*slot != NULL) {
            w->give(*slot);
            *slot = NULL;
        } else {
            size_t size = w->min + below((uint32_t)(bits >> 32), w->max - w->min + 1);
            volatile char *block = w->take(size);
            if (block == NULL)
                return false;
            block[0] = (char)size;
            *slot = (void *)block;
        }
    }
    return true;
}

bool work_operate_measured(struct work *w)
{
    bool done = work_operate(w);
    __asm__ volatile("" ::: "memory"); /* no jump: the call must return here */
    return done;
}
