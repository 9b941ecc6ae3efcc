#include "heap/group.h"

#include "back/map.h"
#include "base/assert.h"
#include "learn/laws.h"

#define KEYS 64 /* a table of counts on the stack */
static_assert(LAW_GROUP_SAMPLE <= LAW_GROUP_LEAST, "there are so many");

/* Slices that share a key are grouped together; few do. */
static unsigned key_of(const void *p) { return (uintptr_t)p >> SLICE_BITS & (KEYS - 1); }

static bool scattered(void *const *blocks)
{
    unsigned changes = 0;
    for (unsigned i = 1; i < LAW_GROUP_SAMPLE; i++)
        changes += key_of(blocks[i]) != key_of(blocks[i - 1]);
    return changes > LAW_GROUP_SAMPLE / LAW_GROUP_CHANGES;
}

/* Each block goes to the next slot of its key; the one that was there goes on. */
void group_by_slice(void **blocks, size_t n)
{
    ASSERT(n >= LAW_GROUP_LEAST);
    if (!scattered(blocks))
        return;
    size_t count[KEYS] = {0};
    for (size_t i = 0; i < n; i++)
        count[key_of(blocks[i])]++;
    size_t next[KEYS], end[KEYS], sum = 0;
    for (unsigned key = 0; key < KEYS; key++) {
        next[key] = sum;
        end[key] = sum += count[key];
    }
    for (unsigned key = 0; key < KEYS; key++) {
        while (next[key] < end[key]) {
            void *block = blocks[next[key]];
            for (unsigned its = key_of(block); its != key; its = key_of(block)) {
                void **slot = &blocks[next[its]++];
                void *other = *slot;
                *slot = block;
                block = other;
            }
            blocks[next[key]++] = block;
        }
    }
}
