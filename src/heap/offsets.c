#include "heap/classes.h"

#include <string.h>

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
    memcpy(copy, &class_offsets, sizeof *copy);
    store_release(&class_offsets_closed, copy);
    return true;
}

static void set(struct class_offsets *offsets, bool closed)
{
    for (size_t n = 0; n <= CLASS_SMALL; n++)
        store_relaxed(&offsets->small[n], closed ? 0 : class_offsets_closed->small[n]);
    for (size_t i = 0; i <= CLASS_MOST / CLASS_STEP; i++)
        store_relaxed(&offsets->above[i], closed ? 0 : class_offsets_closed->above[i]);
    for (size_t i = 0; i < CLASS_SLICES_MOST / SLICE; i++)
        store_relaxed(&offsets->by_slices[i], closed ? 0 : class_offsets_closed->by_slices[i]);
}
static_assert(BIN_FOREIGN == 0, "its offset");

COLD bool classes_close(bool closed)
{
    struct class_offsets *offsets = (struct class_offsets *)(uintptr_t)&class_offsets;
    FORGET(offsets); /* a constant to the compiler */
    if (!keep_copy() || !alone_in_pages() || !os_let_write(offsets, sizeof *offsets, true))
        return false;
    set(offsets, closed);
    os_let_write(offsets, sizeof *offsets, false);
    return true;
}
