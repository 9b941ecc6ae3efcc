#include "watch/place.h"

#include "back/large.h"
#include "back/map.h"
#include "heap/slab.h"

static struct place place_in_slab(uintptr_t address, const struct slab *slab)
{
    const struct size_class *c = &size_classes[slab->cls];
    uintptr_t base = (uintptr_t)slab->base;
    size_t number = (address - base) / c->size;
    enum place_kind kind = number < c->blocks ? PLACE_CLASS : PLACE_SLAB_END;
    return (struct place){kind, base + number * c->size, c->size, base};
}

/* The slab of the slice at `start`, where it is one that holds `address`. Another thread may retire
 * it meanwhile: then what its descriptor says need not be a slab's. */
static const struct slab *slab_around(uintptr_t address, const void *start)
{
    const struct slab *slab = map_owner(start);
    if (slab == NULL || slab->cls >= CLASSES || map_owner(start) != slab)
        return NULL;
    size_t bytes = size_classes[slab->cls].slices * SLICE;
    return address - (uintptr_t)slab->base < bytes ? slab : NULL;
}

static struct place place_near(uintptr_t address, const void *start)
{
    struct place none = {PLACE_ELSEWHERE, 0, 0, 0};
    unsigned bin = map_bin(start);
    if (bin_of_slab(bin)) {
        const struct slab *slab = slab_around(address, start);
        if (slab == NULL)
            return none;
        if (size_classes[slab->cls].blocks > 1)
            return place_in_slab(address, slab);
        if (bin == BIN_WHOLE_FREE) {
            none.kind = PLACE_KEPT;
            return none;
        }
        return (struct place){PLACE_LARGE, (uintptr_t)start, slab->usable, 0};
    }
    const void *owner = bin == BIN_FOREIGN ? NULL : map_owner(start);
    if (owner == NULL)
        return none;
    start = large_start(start, owner);
    if (bin == BIN_RETIRED) {
        if (address - (uintptr_t)start < large_retired_bytes(start, owner))
            none.kind = PLACE_KEPT;
        return none;
    }
    size_t usable = large_usable(start, bin);
    if (address - (uintptr_t)start >= round_up(usable, SLICE))
        return none;
    return (struct place){PLACE_LARGE, (uintptr_t)start, usable, 0};
}

/* The slice of the nearest block that begins at or below p. */
static const void *slice_below(const void *p)
{
    const void *slice = map_below(p);
    unsigned bin = slice == NULL ? BIN_FOREIGN : map_bin(slice);
    const void *owner = bin == BIN_HUGE || bin == BIN_RETIRED ? map_owner(slice) : NULL;
    return owner != NULL && large_start(slice, owner) > p ? map_below((const char *)slice - 1)
                                                          : slice;
}

COLD struct place place_of(const void *p)
{
    uintptr_t address = (uintptr_t)p;
    struct place place = {PLACE_ELSEWHERE, 0, 0, 0};
    const void *start = slice_below(p);
    if (start != NULL)
        place = place_near(address, start);
    if (place.kind == PLACE_ELSEWHERE && large_is_kept(p))
        place.kind = PLACE_KEPT;
    else if (place.kind == PLACE_ELSEWHERE && address - WINDOW_BASE < WINDOW)
        place.kind = PLACE_VACANT;
    return place;
}
