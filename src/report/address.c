#include "report/address.h"

#include "back/huge.h"
#include "back/map.h"
#include "back/superslabs.h"
#include "heap/hardening.h"
#include "heap/slab.h"
#include "profile/guarded.h"

static struct address address_in_slab(uintptr_t address, const struct slab *slab)
{
    const struct size_class *c = &size_classes[slab->cls];
    uintptr_t base = (uintptr_t)slab->base;
    size_t number = (address - base) / c->size;
    enum address_kind kind = number < c->blocks ? ADDRESS_CLASS : ADDRESS_SLAB_END;
    return (struct address){kind, base + number * c->size, c->size, base};
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

static struct address address_near(uintptr_t address, const void *start)
{
    struct address none = {ADDRESS_ELSEWHERE, 0, 0, 0};
    unsigned bin = map_bin(start);
    if (bin_of_slab(bin)) {
        const struct slab *slab = slab_around(address, start);
        if (slab == NULL)
            return none;
        if (size_classes[slab->cls].blocks > 1)
            return address_in_slab(address, slab);
        if (bin == BIN_WHOLE_FREE) {
            none.kind = ADDRESS_DIRTY;
            return none;
        }
        return (struct address){ADDRESS_LARGE, (uintptr_t)start, slab->usable, 0};
    }
    start = huge_start(start);
    if (start == NULL)
        return none;
    size_t usable = huge_usable(start);
    if (address - (uintptr_t)start >= round_up(usable, SLICE))
        return none;
    return (struct address){ADDRESS_LARGE, (uintptr_t)start, usable, 0};
}

/* The slice of the nearest block that begins at or below p. */
static const void *slice_below(const void *p)
{
    const void *slice = map_below(p);
    const void *huge = slice == NULL ? NULL : huge_start(slice);
    return huge > p ? map_below((const char *)slice - 1) : slice;
}

COLD struct address address_describe(const void *p)
{
    uintptr_t address = (uintptr_t)p;
    struct address place = {ADDRESS_ELSEWHERE, 0, 0, 0};
    const struct guarded_block *guarded = guarded_holds(p) ? guarded_near(p) : NULL;
    if (guarded != NULL)
        return (struct address){ADDRESS_GUARDED, (uintptr_t)load_relaxed(&guarded->start),
                                load_relaxed(&guarded->bytes), 0};
    const void *start = slice_below(p);
    if (start != NULL)
        place = address_near(address, start);
    if (place.kind == ADDRESS_ELSEWHERE && huge_is_dirty(p))
        place.kind = ADDRESS_DIRTY;
    else if (place.kind == ADDRESS_ELSEWHERE && slots_hold(p))
        place.kind = ADDRESS_VACANT;
    return place;
}

/* ---- makers ---- */

/* The slab of a block of a class that begins at p, or null. */
static const struct slab *slab_of_class(const void *p)
{
    void *owner;
    const struct slab *slab = bin_of_slab(map_find(p, &owner)) ? owner : NULL;
    bool found = slab != NULL && slab->cls < CLASS_SLICES_FIRST && slab_begins(slab, p) &&
                 !guard_pages_bar(p, slab->cls);
    return found ? slab : NULL;
}

/* Where it is noted of a block that has no class; null where it is not. */
static uint8_t *note_of(const void *p)
{
    if (guarded_holds(p))
        return guarded_maker(p);
    struct huge *h = huge_at(p);
    return h != NULL ? &h->maker : NULL;
}

enum maker maker_of(const void *p)
{
    if (!hardening.functions)
        return MAKER_UNKNOWN;
    const struct slab *slab = slab_of_class(p);
    if (slab != NULL)
        return canary_maker(p, slab->cls);
    if (zero_sized_holds(p))
        return MAKER_MALLOC;
    const uint8_t *note = note_of(p);
    return note != NULL ? (enum maker)load_relaxed(note) : MAKER_UNKNOWN;
}

void maker_note(void *p, enum maker maker)
{
    const struct slab *slab = slab_of_class(p);
    uint8_t *note = slab == NULL ? note_of(p) : NULL;
    if (slab != NULL)
        canary_mark(p, slab->cls, maker);
    else if (note != NULL)
        store_relaxed(note, (uint8_t)maker);
}
