#include "heap/slab.h"

void slab_init(struct slab *slab, unsigned cls, void *base, struct superslab *home)
{
    unsigned blocks = size_classes[cls].blocks;
    unsigned words = (blocks + 63) / 64;
    slab->node.key = (uintptr_t)base;
    slab->base = base;
    slab->home = home;
    slab->cls = (uint8_t)cls;
    slab->free = (uint16_t)blocks;
    slab->zero = false;
    slab->usable = 0;
    slab->summary = low_bits(words);
    for (unsigned i = 0; i < words; i++)
        slab->words[i] = ~(uint64_t)0;
    if (blocks % 64 != 0)
        slab->words[words - 1] = low_bits(blocks % 64);
}

size_t slab_take(struct slab *slab, void **end, size_t n)
{
    size_t size = size_classes[slab->cls].size;
    size_t taken = 0;
    while (taken < n && slab->summary != 0) {
        unsigned index = lowest_bit(slab->summary);
        uint64_t word = slab->words[index];
        char *first = slab->base + index * 64 * size;
        if (word == ~(uint64_t)0 && n - taken >= 64) {
            for (unsigned i = 0; i < 64; i++)
                end[-1 - (ptrdiff_t)i] = first + i * size;
            end -= 64;
            taken += 64;
            word = 0;
        } else {
            do {
                *--end = first + lowest_bit(word) * size;
                word &= word - 1;
            } while (++taken < n && word != 0);
        }
        slab->words[index] = word;
        if (word == 0)
            slab->summary &= slab->summary - 1;
    }
    slab->free = (uint16_t)(slab->free - taken);
    return taken;
}

/* The number of the block at p, or one beyond the last where none begins. */
FAST unsigned block_number(const struct slab *slab, const void *p)
{
    const struct size_class *c = &size_classes[slab->cls];
    size_t offset = (size_t)((const char *)p - slab->base);
    unsigned number =
        (unsigned)((uint64_t)(offset / CLASS_GRAIN) * c->reciprocal >> CLASS_RECIPROCAL_BITS);
    return unlikely((size_t)number * c->size != offset) ? c->blocks : number;
}

bool slab_begins(const struct slab *slab, const void *p)
{
    return block_number(slab, p) < size_classes[slab->cls].blocks;
}

enum misuse slab_check(const struct slab *slab, const void *p)
{
    unsigned number = block_number(slab, p);
    if (number >= size_classes[slab->cls].blocks)
        return MISUSE_INTERIOR;
    return slab->words[number / 64] >> number % 64 & 1 ? MISUSE_FREE : MISUSE_NONE;
}

/* The class is in registers: what is asked of the slab for each block is its words. */
size_t slab_put(struct slab *slab, void *const *blocks, size_t n, enum misuse *what)
{
    const struct size_class c = size_classes[slab->cls];
    const size_t bytes = c.slices * SLICE;
    const char *base = slab->base;
    uint64_t summary = slab->summary;
    size_t put = 0;
    *what = MISUSE_NONE;
    for (; put < n; put++) {
        size_t offset = (size_t)((const char *)blocks[put] - base);
        if (offset >= bytes)
            break;
        unsigned number =
            (unsigned)((uint64_t)(offset / CLASS_GRAIN) * c.reciprocal >> CLASS_RECIPROCAL_BITS);
        if (unlikely((size_t)number * c.size != offset || number >= c.blocks)) {
            *what = MISUSE_INTERIOR;
            break;
        }
        uint64_t bit = (uint64_t)1 << number % 64;
        uint64_t *word = &slab->words[number / 64];
        if (unlikely(*word & bit)) {
            *what = MISUSE_FREE;
            break;
        }
        *word |= bit;
        summary |= (uint64_t)1 << number / 64;
    }
    slab->summary = summary;
    slab->free = (uint16_t)(slab->free + put);
    return put;
}
