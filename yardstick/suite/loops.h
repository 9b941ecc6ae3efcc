/*
 * The two loops over an array of slots that both single and threaded rows run.
 *
 *   mixed_turns      a random slot: free what is in it, or else fill it
 *   replace_turns    a random slot: free what is in it, and fill it anew
 */
#ifndef SUITE_LOOPS_H
#define SUITE_LOOPS_H

#include "block.h"
#include "random.h"

/* Sum of the sizes asked for. */
static ALWAYS_INLINE uint64_t mixed_loop(void **slot, const struct params *p, uint64_t turns,
                                         struct random *from, enum touch touch, bool check)
{
    struct random rng = *from; /* a copy whose address nobody has stays in a register */
    const uint64_t slots = p->slots, min = p->min, span = params_span(p);
    uint64_t sum = 0;

    for (uint64_t i = 0; i < turns; i++) {
        uint64_t bits = random_next(&rng);
        void **s = &slot[random_low(bits, slots)];
        if (*s != NULL) {
            block_drop(*s, p, check);
            *s = NULL;
        } else {
            size_t size = size_draw(bits, min, span);
            sum += size;
            *s = block_make(size, touch, check);
        }
    }
    *from = rng;
    return sum;
}

static ALWAYS_INLINE uint64_t replace_loop(void **slot, const struct params *p, uint64_t turns,
                                           struct random *from, enum touch touch, bool check)
{
    struct random rng = *from;
    const uint64_t slots = p->slots, min = p->min, span = params_span(p);
    uint64_t sum = 0;

    for (uint64_t i = 0; i < turns; i++) {
        uint64_t bits = random_next(&rng);
        void **s = &slot[random_low(bits, slots)];
        size_t size = size_draw(bits, min, span);
        block_drop(*s, p, check);
        sum += size;
        *s = block_make(size, touch, check);
    }
    *from = rng;
    return sum;
}

static inline uint64_t mixed_turns(void **slot, const struct params *p, uint64_t turns,
                                   struct random *rng)
{
    return SPECIALISE(mixed_loop, p, slot, p, turns, rng);
}

static inline uint64_t replace_turns(void **slot, const struct params *p, uint64_t turns,
                                     struct random *rng)
{
    return SPECIALISE(replace_loop, p, slot, p, turns, rng);
}

/* Fills every slot, and gives the sum of the sizes. */
static inline uint64_t slots_fill(void **slot, const struct params *p, struct random *rng)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < p->slots; i++) {
        size_t size = size_draw(random_next(rng), p->min, params_span(p));
        sum += size;
        slot[i] = block_make(size, p->touch, p->check);
    }
    return sum;
}

static inline void slots_empty(void **slot, const struct params *p)
{
    for (uint64_t i = 0; i < p->slots; i++) {
        block_drop(slot[i], p, p->check);
        slot[i] = NULL;
    }
}

#endif
