#include "back/slots.h"

#include "back/map.h"
#include "back/superslab_lists.h"
#include "os/os.h"

#define SLOTS (WINDOW / SUPERSLAB)
#define SLOTS_OF_LEAF (((size_t)1 << MAP_LEAF_BITS) / SUPERSLAB)
#define SLOT_TRIES 16

static uint64_t slots_taken[SLOTS / 64]; /* lock: superslabs */
static size_t slots_full;                /* words before this one are full; same lock */

void slots_start(uint64_t random)
{
    /* In the first quarter of the window; slot 0 stays empty. Not near the end of a part that one
     * leaf of the map covers: a small heap needs one leaf, not by chance two. */
    size_t leaf = random % (SLOTS / 4 / SLOTS_OF_LEAF);
    size_t first = leaf * SLOTS_OF_LEAF + 1 + (random >> 32) % (SLOTS_OF_LEAF / 4 * 3);
    slots_full = first / 64;
    slots_taken[slots_full] = low_bits(first % 64);
}

char *slot_map(size_t length)
{
    ASSERT(lock_held(&superslabs_lock));
    ASSERT(length <= SUPERSLAB);
    for (int tries = 0; tries < SLOT_TRIES; tries++) {
        while (slots_full < SLOTS / 64 && slots_taken[slots_full] == ~(uint64_t)0)
            slots_full++;
        if (slots_full == SLOTS / 64)
            return NULL;
        unsigned bit = lowest_bit(~slots_taken[slots_full]);
        bool occupied;
        uintptr_t address = WINDOW_BASE + (slots_full * 64 + bit) * SUPERSLAB;
        char *base = os_map_at(address, length, &occupied);
        if (base == NULL && !occupied)
            return NULL;
        slots_taken[slots_full] |= (uint64_t)1 << bit;
        if (base != NULL)
            return base;
    }
    return NULL;
}

void slot_unmapped(const char *base)
{
    ASSERT(lock_held(&superslabs_lock));
    ASSERT((uintptr_t)base % SUPERSLAB == 0);
    uintptr_t slot = ((uintptr_t)base - WINDOW_BASE) / SUPERSLAB;
    if (slot < SLOTS) {
        slots_taken[slot / 64] &= ~((uint64_t)1 << slot % 64);
        if (slot / 64 < slots_full)
            slots_full = slot / 64;
    }
}
