/*
 * One block: asked for, written, verified, given back. `touch` and `check` are
 * constants wherever the loop that calls is a measured one, so that what is
 * not wanted costs nothing.
 *
 * A stamped block begins with four bytes mixed from its size and its address,
 * and ends with its size's low byte where the row writes last bytes. Two blocks
 * that overlap and a block cleared or moved behind our back fail to match.
 */
#ifndef SUITE_BLOCK_H
#define SUITE_BLOCK_H

#include "suite.h"

#include <stdlib.h>
#include <string.h>

#define ALWAYS_INLINE inline __attribute__((always_inline))

/* The compiler must take `p` for used, and all memory for read and written. */
#define KEEP(p) __asm__ volatile("" : : "r"(p) : "memory")

enum { SMALLEST_BLOCK = 8 }; /* a stamp must fit */
enum { PAGE_STEP = 4096 };

/* Of malloc, or the end of the run. */
static ALWAYS_INLINE void *block_get(size_t size)
{
    void *block = malloc(size);
    if (__builtin_expect(block == NULL, 0))
        give_up(EXIT_NO_MEMORY, "malloc(%zu) found no memory", size);
    return block;
}

static inline uint32_t block_mix(uintptr_t at) { return (uint32_t)(at >> 4) * 0x9e3779b1u; }

static ALWAYS_INLINE void block_touch(unsigned char *block, size_t size, enum touch touch)
{
    if (touch == TOUCH_PAGES)
        for (size_t at = PAGE_STEP; at < size; at += PAGE_STEP)
            block[at] = (unsigned char)size;
    if (touch != TOUCH_NONE)
        block[0] = (unsigned char)size;
    if (touch == TOUCH_BOTH || touch == TOUCH_PAGES)
        block[size - 1] = (unsigned char)size;
}

static inline void block_stamp(void *block, size_t size, enum touch touch)
{
    uint32_t head = (uint32_t)size ^ block_mix((uintptr_t)block);
    block_touch(block, size, touch);
    memcpy(block, &head, sizeof head);
}

/* As asked for, of a block that was there when it was stamped. */
static inline size_t block_size(const void *block, uintptr_t stamped_at)
{
    uint32_t head;
    memcpy(&head, block, sizeof head);
    return head ^ block_mix(stamped_at);
}

/* Likewise; it is one that the row has asked for. */
static inline size_t head_verify(const void *block, uintptr_t stamped_at, const struct params *p)
{
    const size_t size = block_size(block, stamped_at);
    if (size < p->min || size > p->max)
        give_up(EXIT_CONTENT, "block %p: its first bytes are not those written (%08x)", block,
                (uint32_t)size ^ block_mix(stamped_at));
    return size;
}

static inline void tail_verify(const void *block, size_t size)
{
    unsigned char tail = ((const unsigned char *)block)[size - 1];
    if (tail != (unsigned char)size)
        give_up(EXIT_CONTENT, "block %p of %zu bytes: last byte %02x, written was %02x", block,
                size, tail, (unsigned char)size);
}

static inline void block_verify(const void *block, const struct params *p)
{
    const size_t size = head_verify(block, (uintptr_t)block, p);
    if (p->touch == TOUCH_BOTH || p->touch == TOUCH_PAGES)
        tail_verify(block, size);
}

static ALWAYS_INLINE void *block_make(size_t size, enum touch touch, bool check)
{
    unsigned char *block = block_get(size);
    if (check)
        block_stamp(block, size, touch);
    else
        block_touch(block, size, touch);
    KEEP(block);
    return block;
}

static ALWAYS_INLINE void block_drop(void *block, const struct params *p, bool check)
{
    if (check && block != NULL) {
        block_verify(block, p);
        memset(block, 0, sizeof(uint32_t)); /* found again, if somebody else holds it too */
    }
    free(block);
}

/* Uniform between the row's bounds, from the high half of `bits`. */
static ALWAYS_INLINE size_t size_draw(uint64_t bits, uint64_t min, uint64_t span)
{
    return min + ((bits >> 32) * span >> 32);
}

static inline uint64_t params_span(const struct params *p) { return p->max - p->min + 1; }

/* A loop is compiled once for every way of writing blocks; it ends with these two as constants. */
#define SPECIALISE(loop, p, ...)                                         \
    ((p)->check                  ? loop(__VA_ARGS__, (p)->touch, true)   \
     : (p)->touch == TOUCH_NONE  ? loop(__VA_ARGS__, TOUCH_NONE, false)  \
     : (p)->touch == TOUCH_FIRST ? loop(__VA_ARGS__, TOUCH_FIRST, false) \
     : (p)->touch == TOUCH_BOTH  ? loop(__VA_ARGS__, TOUCH_BOTH, false)  \
                                 : loop(__VA_ARGS__, TOUCH_PAGES, false))

#endif
