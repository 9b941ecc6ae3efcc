#include "watch/makers.h"

#include "back/huge.h"
#include "back/map.h"
#include "heap/canary.h"
#include "heap/guard_pages.h"
#include "heap/slab.h"
#include "heap/zero_sized.h"
#include "profile/guarded.h"

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
