#include "heap/whole.h"

#include "back/map.h"
#include "back/slices.h"
#include "base/atomic.h"
#include "heap/shard.h"
#include "os/os.h"

bool whole_hand_out(const void *p, size_t n)
{
    struct slab *slab = map_whole_taken(p);
    ASSERT(slab->base == p && n <= size_classes[slab->cls].size);
    bool zero = slab->zero;
    slab->zero = false;
    store_relaxed(&slab->usable, (uint32_t)round_up(n == 0 ? 1 : n, os_page));
    return zero;
}

unsigned whole_class(const uint16_t *entry)
{
    const struct slab *slab = map_entry_owner(entry);
    return slab->cls;
}

enum misuse whole_take_back(const void *p, unsigned *cls)
{
    if ((uintptr_t)p % SLICE != 0)
        return MISUSE_INTERIOR;
    const struct slab *slab = map_whole_freed(p);
    if (slab == NULL)
        return MISUSE_FREE;
    *cls = slab->cls;
    return MISUSE_NONE;
}

bool whole_resize(const void *p, size_t n)
{
    struct shard *held = NULL;
    struct slab *slab = slab_lock(p, &held);
    unsigned cls = class_of_slices(n);
    unsigned now = size_classes[slab->cls].slices;
    unsigned then = size_classes[cls].slices;
    ASSERT(cls < CLASSES && size_classes[slab->cls].blocks == 1);
    /* It may have more than a block of its size needs (large_pop). */
    bool done = then <= now || slices_extend(slab->home, slab->base, now, then - now);
    if (done) {
        if (then > now)
            slab->cls = (uint8_t)cls;
        store_relaxed(&slab->usable, (uint32_t)round_up(n, os_page));
    }
    lock_release(&held->lock);
    return done;
}
