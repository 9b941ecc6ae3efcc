#include "back/slots.h"

#include "back/map.h"
#include "back/superslab_lists.h"
#include "base/hardening.h"
#include "base/mixed.h"
#include "learn/laws.h"
#include "os/os.h"

#define SLOTS (WINDOW / SUPERSLAB)
#define SLOTS_OF_LEAF (((size_t)1 << MAP_LEAF_BITS) / SUPERSLAB)
#define SLOT_TRIES 16

static uint64_t slots_taken[SLOTS / 64]; /* lock: superslabs */
static size_t slots_full;                /* words before this one are full; same lock */
static uint64_t slots_chance;            /* same lock */

/* In a hardened heap: slots that were taken once, and how many of them are free; same lock. For
 * each there are pages of the map, which stay: a heap whose superslabs come and go for long is not
 * to have all of them. */
static uint64_t slots_used[SLOTS / 64];
static size_t slots_left;

static uint64_t slot_bit(size_t slot) { return (uint64_t)1 << slot % 64; }

void slots_start(uint64_t random)
{
    /* In the first quarter of the window; slot 0 stays empty. Not near the end of a part that one
     * leaf of the map covers: a small heap needs one leaf, not by chance two. */
    size_t leaf = random % (SLOTS / 4 / SLOTS_OF_LEAF);
    size_t first = leaf * SLOTS_OF_LEAF + 1 + (random >> 32) % (SLOTS_OF_LEAF / 4 * 3);
    slots_full = first / 64;
    slots_taken[slots_full] = low_bits(first % 64);
    slots_chance = random;
}

uint64_t slots_random(void)
{
    ASSERT(lock_held(&superslabs_lock));
    slots_chance += MIXED_STEP;
    return mixed(slots_chance ^ hardening.secret);
}

/* Of a word's slots those that are taken or beside one that is. So in front of a superslab there is
 * nothing: what writes before its first block ends at once. */
static SLOW uint64_t near_taken(size_t word)
{
    uint64_t taken = slots_taken[word];
    uint64_t below = word > 0 ? slots_taken[word - 1] >> 63 : 0;
    uint64_t above = word + 1 < SLOTS / 64 ? slots_taken[word + 1] << 63 : 0;
    return taken | taken << 1 | taken >> 1 | below | above;
}

/* One of the free slots that were taken once: the first such behind one chosen by chance. */
static SLOW size_t slot_any_left(void)
{
    size_t from = slots_random() % SLOTS;
    uint64_t before = low_bits(from % 64);
    for (size_t i = 0; i <= SLOTS / 64; i++) {
        size_t word = (from / 64 + i) % (SLOTS / 64);
        uint64_t left = slots_used[word] & ~near_taken(word) & (i == 0 ? ~before : ~(uint64_t)0);
        if (left != 0)
            return word * 64 + lowest_bit(left);
    }
    return SLOTS;
}

/* A free slot chosen by chance; SLOTS if none is found. */
static SLOW size_t slot_any(void)
{
    size_t left = slots_left >= LAW_SLOTS_LEFT ? slot_any_left() : SLOTS;
    if (left != SLOTS)
        return left;
    for (int tries = 0; tries < SLOT_TRIES; tries++) {
        size_t slot = slots_random() % SLOTS;
        if (slot != 0 && !(near_taken(slot / 64) & slot_bit(slot)))
            return slot;
    }
    return SLOTS;
}

/* The lowest free slot from where the heap begins, or in a hardened heap any; SLOTS if there is
 * none. */
static size_t slot_next(void)
{
    size_t slot = unlikely(hardening.shuffles) ? slot_any() : SLOTS;
    if (unlikely(slot != SLOTS))
        return slot;
    while (slots_full < SLOTS / 64 && slots_taken[slots_full] == ~(uint64_t)0)
        slots_full++;
    return slots_full == SLOTS / 64 ? SLOTS
                                    : slots_full * 64 + lowest_bit(~slots_taken[slots_full]);
}

static SLOW void note_used(size_t slot)
{
    if (slots_used[slot / 64] & slot_bit(slot))
        slots_left--;
    slots_used[slot / 64] |= slot_bit(slot);
}

char *slot_map(size_t length)
{
    ASSERT(lock_held(&superslabs_lock));
    ASSERT(length <= SUPERSLAB);
    for (int tries = 0; tries < SLOT_TRIES; tries++) {
        size_t slot = slot_next();
        if (slot == SLOTS)
            return NULL;
        bool occupied;
        uintptr_t address = WINDOW_BASE + slot * SUPERSLAB;
        char *base = os_map_at(address, length, &occupied);
        if (base == NULL && !occupied)
            return NULL;
        slots_taken[slot / 64] |= slot_bit(slot);
        if (unlikely(hardening.shuffles))
            note_used(slot);
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
        slots_taken[slot / 64] &= ~slot_bit(slot);
        slots_left += (slots_used[slot / 64] & slot_bit(slot)) != 0;
        if (slot / 64 < slots_full)
            slots_full = slot / 64;
    }
}
