#include "heap/transfer.h"

#include "back/meta.h"
#include "base/atomic.h"
#include "base/memory.h"
#include "base/watch.h"
#include "heap/classes.h"
#include "heap/shards.h"
#include "os/lock.h"

/* What may wait in one, at least one block. */
#define TRANSFER_BYTES ((size_t)128 * KiB)
#define TRANSFER_BLOCKS (META_MOST / sizeof(void *)) /* metadata has no larger pieces */

struct transfer {
    struct lock lock;
    uint32_t count;    /* atomic for those who peek; lock: transfer */
    uint32_t low;      /* the fewest since the last decay; lock: transfer */
    uint32_t capacity; /* blocks; 0 until the first put; lock: transfer */
    void **blocks;     /* lock: transfer */
} __attribute__((aligned(CACHE_LINE)));

static struct transfer transfers[CLASSES] = {[0 ... CLASSES - 1] = {.lock = LOCK(TRANSFER)}};

/* Classes of which there may be some, so that nobody looks through all, or at pages that were never
 * written; atomic, a bit is cleared under the class's lock. */
#define FILLED_WORDS ((CLASSES + 63) / 64)
static uint64_t filled[FILLED_WORDS];

static bool is_filled(unsigned cls)
{
    return (load_relaxed(&filled[cls / 64]) >> cls % 64 & 1) != 0;
}

size_t transfer_take(unsigned cls, void **end, size_t n)
{
    ASSERT(cls < CLASSES && n >= 1);
    struct transfer *t = &transfers[cls];
    if (!is_filled(cls) || load_relaxed(&t->count) == 0 || !lock_try(&t->lock))
        return 0;
    ASSERT(t->low <= t->count && t->count <= t->capacity);
    size_t taken = t->count < n ? t->count : n;
    size_t left = t->count - taken;
    words_move(end - taken, t->blocks + left, taken);
    store_relaxed(&t->count, (uint32_t)left);
    if (t->low > left)
        t->low = (uint32_t)left;
    lock_release(&t->lock);
    return taken;
}

static bool transfer_open(struct transfer *t, unsigned cls)
{
    ASSERT(lock_held(&t->lock));
    ASSERT(t->capacity == 0);
    size_t capacity = smaller(TRANSFER_BYTES / size_classes[cls].size, TRANSFER_BLOCKS);
    capacity += capacity == 0;
    t->blocks = meta_take(capacity * sizeof(void *));
    if (t->blocks == NULL)
        return false;
    t->capacity = (uint32_t)capacity;
    return true;
}

size_t transfer_put(unsigned cls, void **blocks, size_t n)
{
    ASSERT(cls < CLASSES && n >= 1);
    struct transfer *t = &transfers[cls];
    if (!lock_try(&t->lock))
        return 0;
    size_t put = 0;
    if (t->capacity != 0 || transfer_open(t, cls)) {
        ASSERT(t->count <= t->capacity);
        size_t room = t->capacity - t->count;
        put = room < n ? room : n;
        words_move(t->blocks + t->count, blocks, put);
        store_relaxed(&t->count, (uint32_t)(t->count + put));
        if (!is_filled(cls))
            __atomic_fetch_or(&filled[cls / 64], (uint64_t)1 << cls % 64, __ATOMIC_RELAXED);
    }
    lock_release(&t->lock);
    return put;
}

bool transfer_holds(unsigned cls, const void *p)
{
    ASSERT(cls < CLASSES);
    struct transfer *t = &transfers[cls];
    bool found = false;
    lock_take(&t->lock);
    for (uint32_t i = 0; i < t->count && !found; i++)
        found = t->blocks[i] == p;
    lock_release(&t->lock);
    return found;
}

/* The oldest go. */
static struct finding transfer_decay(unsigned cls, bool all)
{
    struct transfer *t = &transfers[cls];
    lock_take(&t->lock);
    size_t n = all ? t->count : t->low;
    ASSERT(n <= t->count);
    struct finding found = shards_put(t->blocks, n);
    store_relaxed(&t->count, (uint32_t)(t->count - n));
    words_move(t->blocks, t->blocks + n, t->count);
    t->low = t->count;
    if (t->count == 0)
        __atomic_fetch_and(&filled[cls / 64], ~((uint64_t)1 << cls % 64), __ATOMIC_RELAXED);
    lock_release(&t->lock);
    return found;
}

struct finding transfers_decay(bool all)
{
    ASSERT(lock_rank_held(RANK_PURGE));
    struct finding found = {MISUSE_NONE, NULL};
    for (unsigned i = 0; i < FILLED_WORDS; i++)
        for (uint64_t left = load_relaxed(&filled[i]); left != 0; left &= left - 1)
            finding_keep(&found, transfer_decay(i * 64 + lowest_bit(left), all));
    return found;
}

void **transfer_inside(unsigned cls, uint32_t **count, uint32_t *capacity)
{
    ASSERT(lock_all_held());
    *count = &transfers[cls].count;
    *capacity = transfers[cls].capacity;
    return transfers[cls].blocks;
}

const struct watch_transfer watch_transfer = {
    .bytes = sizeof watch_transfer,
    .stride = sizeof(struct transfer),
    .count_at = offsetof(struct transfer, count),
    .capacity_at = offsetof(struct transfer, capacity),
    .blocks_at = offsetof(struct transfer, blocks),
    .first = transfers,
};
