#include "back/slots.h"

#include "back/map.h"
#include "back/superslab_lists.h"
#include "base/hardening.h"
#include "base/mixed.h"
#include "learn/laws.h"
#include "os/os.h"

#define WINDOW_SLOTS (WINDOW / SUPERSLAB)
#define WIDE_SLOTS (WIDE / SUPERSLAB)
#define SLOT_TRIES 16

/* Lock: superslabs; the first two are constant once the process has started. */
static struct {
    uintptr_t base;
    size_t slots;
    size_t first; /* where the heap begins: slots before it come last; then 0 */
    size_t full;  /* words of `taken` from the first to this one are full */
    size_t left;  /* slots that are free and were taken once */
    uint64_t chance;
    uint64_t taken[WIDE_SLOTS / 64];
    /* In a hardened heap: slots that were taken once. For each there are pages of the map, which
     * stay: a heap whose superslabs come and go for long is not to have all of them. */
    uint64_t used[WIDE_SLOTS / 64];
} range;

static uint64_t slot_bit(size_t slot) { return (uint64_t)1 << slot % 64; }

void slots_start(uint64_t random)
{
    range.base = hardening.shuffles ? WIDE_BASE : WINDOW_BASE;
    range.slots = hardening.shuffles ? WIDE_SLOTS : WINDOW_SLOTS;
    range.first = 1 + random % (range.slots - 1);
    range.full = range.first / 64;
    range.taken[range.full] = low_bits(range.first % 64);
    range.taken[0] |= 1; /* no block begins at the window's base */
    range.chance = random;
}

bool slots_hold(const void *p) { return (uintptr_t)p - range.base < range.slots * SUPERSLAB; }

uint64_t slots_random(void)
{
    ASSERT(lock_held(&superslabs_lock));
    range.chance += MIXED_STEP;
    return mixed(range.chance ^ hardening.secret);
}

/* Of a word's slots those that are taken or beside one that is. So in front of a superslab there is
 * nothing: what writes before its first block ends at once. */
static SLOW uint64_t near_taken(size_t word)
{
    uint64_t taken = range.taken[word];
    uint64_t below = word > 0 ? range.taken[word - 1] >> 63 : 0;
    uint64_t above = word + 1 < range.slots / 64 ? range.taken[word + 1] << 63 : 0;
    return taken | taken << 1 | taken >> 1 | below | above;
}

/* One of the free slots that were taken once: the first such behind one chosen by chance. */
static SLOW size_t slot_any_left(void)
{
    size_t from = slots_random() % range.slots;
    uint64_t before = low_bits(from % 64);
    for (size_t i = 0; i <= range.slots / 64; i++) {
        size_t word = (from / 64 + i) % (range.slots / 64);
        uint64_t left = range.used[word] & ~near_taken(word) & (i == 0 ? ~before : ~(uint64_t)0);
        if (left != 0)
            return word * 64 + lowest_bit(left);
    }
    return range.slots;
}

/* A free slot chosen by chance; range.slots if none is found. */
static SLOW size_t slot_any(void)
{
    size_t left = range.left >= LAW_SLOTS_LEFT ? slot_any_left() : range.slots;
    if (left != range.slots)
        return left;
    for (int tries = 0; tries < SLOT_TRIES; tries++) {
        size_t slot = slots_random() % range.slots;
        if (slot != 0 && !(near_taken(slot / 64) & slot_bit(slot)))
            return slot;
    }
    return range.slots;
}

static size_t slot_lowest(void)
{
    while (range.full < range.slots / 64 && range.taken[range.full] == ~(uint64_t)0)
        range.full++;
    return range.full == range.slots / 64 ? range.slots
                                          : range.full * 64 + lowest_bit(~range.taken[range.full]);
}

static SLOW void turn_to_first(void)
{
    range.taken[range.first / 64] &= ~low_bits(range.first % 64);
    range.taken[0] |= 1;
    range.first = range.full = 0;
}

/* The lowest free slot from where the heap begins, or else before that; in a hardened heap any.
 * range.slots if there is none. */
static size_t slot_next(void)
{
    size_t slot = unlikely(hardening.shuffles) ? slot_any() : range.slots;
    if (likely(slot == range.slots))
        slot = slot_lowest();
    if (unlikely(slot == range.slots) && range.first > 0) {
        turn_to_first();
        slot = slot_lowest();
    }
    return slot;
}

static SLOW void note_used(size_t slot)
{
    if (range.used[slot / 64] & slot_bit(slot))
        range.left--;
    range.used[slot / 64] |= slot_bit(slot);
}

char *slot_map(size_t length)
{
    ASSERT(lock_held(&superslabs_lock));
    ASSERT(length <= SUPERSLAB);
    for (int tries = 0; tries < SLOT_TRIES; tries++) {
        size_t slot = slot_next();
        if (slot == range.slots)
            return NULL;
        bool occupied;
        uintptr_t address = range.base + slot * SUPERSLAB;
        char *base = os_map_at(address, length, &occupied);
        if (base == NULL && !occupied)
            return NULL;
        range.taken[slot / 64] |= slot_bit(slot);
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
    uintptr_t slot = ((uintptr_t)base - range.base) / SUPERSLAB;
    if (slot < range.slots) {
        range.taken[slot / 64] &= ~slot_bit(slot);
        range.left += (range.used[slot / 64] & slot_bit(slot)) != 0;
        if (slot / 64 < range.full)
            range.full = slot / 64;
    }
}
