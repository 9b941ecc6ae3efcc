#include "base/memory.h"
#include "heap/classes.h"

#include "back/meta.h"
#include "os/os.h"

/* Code may lie beside them, which has to stay executable: larger pages would have both. */
static bool alone_in_pages(void) { return sizeof class_offsets % os_page == 0; }

const struct class_offsets *class_offsets_closed;

/* Before the first change. */
static bool keep_copy(void)
{
    if (class_offsets_closed != NULL)
        return true;
    struct class_offsets *copy = meta_take_pages(round_up(sizeof *copy, os_page));
    if (copy == NULL)
        return false;
    words_move(copy, &class_offsets, sizeof *copy / sizeof(uint64_t));
    store_release(&class_offsets_closed, copy);
    return true;
}

static uint16_t offset_closed(const struct ahead_offsets *ahead, unsigned cls)
{
    return cls < ahead->count ? (uint16_t)(ahead->at + cls * ahead->step) : 0;
}
static_assert(BIN_FOREIGN == 0, "its offset");

static void set(struct class_offsets *offsets, const struct ahead_offsets *ahead)
{
    const struct class_offsets *open = class_offsets_closed;
    for (size_t n = 0; n <= CLASS_SMALL; n++)
        store_relaxed(&offsets->small[n],
                      ahead != NULL ? offset_closed(ahead, class_of(n)) : open->small[n]);
    for (size_t i = 0; i <= CLASS_MOST / CLASS_STEP; i++)
        store_relaxed(&offsets->above[i], ahead != NULL ? 0 : open->above[i]);
    for (size_t i = 0; i < CLASS_SLICES_MOST / SLICE; i++)
        store_relaxed(&offsets->by_slices[i], ahead != NULL ? 0 : open->by_slices[i]);
}

COLD bool classes_close(const struct ahead_offsets *ahead)
{
    struct class_offsets *offsets = (struct class_offsets *)(uintptr_t)&class_offsets;
    FORGET(offsets); /* a constant to the compiler */
    if (!keep_copy() || !alone_in_pages() || !os_let_write(offsets, sizeof *offsets, true))
        return false;
    set(offsets, ahead);
    os_let_write(offsets, sizeof *offsets, false);
    return true;
}
