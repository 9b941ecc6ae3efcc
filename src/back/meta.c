#include "back/meta.h"

#include "base/atomic.h"
#include "base/watch.h"
#include "os/lock.h"
#include "os/os.h"

/* The first is small, since a limit of address space counts it whole; the next ones double. */
#define REGION_FIRST (128 * KiB)
#define REGION_MOST (1 * MiB)
#define FINE_STEP 64
#define FINE_MOST (1 * KiB)
#define FINE_KINDS (FINE_MOST / FINE_STEP)
/* No powers of two, so that pieces in a row don't alias in the L1 cache: 1280 bytes to 40 KiB. */
#define COARSE_LEAST 1280
#define COARSE_KINDS 6

struct free_piece {
    struct free_piece *next;
};

/* Lies at the start of each region. */
struct region {
    struct region *next;
    size_t length;
    size_t lost; /* bytes too few for what came next */
};

static struct lock meta_lock = LOCK(META);
static struct free_piece *free_pieces[FINE_KINDS + COARSE_KINDS]; /* lock: meta */
static char *bump, *bump_end;                                     /* lock: meta */
static struct region *regions;                                    /* newest first; atomic */
static size_t mapped;                                             /* atomic */

/* Steps of a cache line up to 1 KiB, then doubling: slab descriptors are small and many. */
static unsigned kind_of(size_t bytes, size_t *rounded)
{
    if (bytes <= FINE_MOST) {
        *rounded = round_up(bytes, FINE_STEP);
        return (unsigned)(*rounded / FINE_STEP) - 1;
    }
    unsigned doubling = 0;
    while ((size_t)COARSE_LEAST << doubling < bytes)
        doubling++;
    *rounded = (size_t)COARSE_LEAST << doubling;
    return FINE_KINDS + doubling;
}

/* Has `bytes` left in the newest region, a new one where the last has fewer: what that has left is
 * lost. False without memory. */
static bool has_room(size_t bytes)
{
    ASSERT(lock_held(&meta_lock));
    if (bump != NULL && (size_t)(bump_end - bump) >= bytes)
        return true;
    size_t length = regions == NULL ? REGION_FIRST : regions->length * 2;
    if (length > REGION_MOST)
        length = REGION_MOST;
    /* A table that is larger gets one for itself. */
    if (length < FINE_STEP + bytes)
        length = round_up(FINE_STEP + bytes, os_page);
    char *mapping = os_map_guarded(length);
    if (mapping == NULL)
        return false;
    os_name(mapping, length, "hakmem: metadata");
    os_small_pages(mapping, length, false);
    add_relaxed(&mapped, length);
    struct region *region = (struct region *)mapping;
    region->next = regions;
    region->length = length;
    if (regions != NULL)
        regions->lost += (size_t)(bump_end - bump);
    store_release(&regions, region);
    bump = mapping + FINE_STEP;
    bump_end = mapping + length;
    return true;
}

void *meta_take(size_t bytes)
{
    ASSERT(bytes >= 1 && bytes <= META_MOST);
    size_t rounded;
    unsigned kind = kind_of(bytes, &rounded);
    lock_take(&meta_lock);
    void *result = free_pieces[kind];
    ASSERT(result == NULL || meta_holds(result, rounded));
    if (result != NULL) {
        free_pieces[kind] = free_pieces[kind]->next;
    } else if (has_room(rounded)) {
        result = bump;
        bump += rounded;
    }
    lock_release(&meta_lock);
    return result;
}

/* From the region's end, so that small pieces share their pages at its start. */
void *meta_take_pages(size_t bytes)
{
    ASSERT(bytes >= 1);
    size_t pages = round_up(bytes, os_page);
    lock_take(&meta_lock);
    bool fits = has_room(pages);
    bump_end -= fits ? pages : 0;
    void *result = fits ? bump_end : NULL;
    lock_release(&meta_lock);
    return result;
}

void meta_give(void *p, size_t bytes)
{
    ASSERT(meta_holds(p, bytes) && (uintptr_t)p % FINE_STEP == 0);
    size_t rounded;
    unsigned kind = kind_of(bytes, &rounded);
    struct free_piece *piece = p;
    lock_take(&meta_lock);
    piece->next = free_pieces[kind];
    free_pieces[kind] = piece;
    lock_release(&meta_lock);
}

size_t meta_mapped(void) { return load_relaxed(&mapped); }

size_t meta_size(size_t bytes)
{
    size_t rounded;
    kind_of(bytes, &rounded);
    return rounded;
}

bool meta_holds(const void *p, size_t bytes)
{
    for (const struct region *r = load_acquire(&regions); r != NULL; r = r->next) {
        size_t offset = (size_t)((const char *)p - (const char *)r);
        if (offset < r->length)
            return offset >= FINE_STEP && offset + bytes <= r->length;
    }
    return false;
}

struct meta_parts meta_parts(void)
{
    ASSERT(lock_all_held());
    struct meta_parts parts = {.unused = (size_t)(bump_end - bump)};
    for (const struct region *r = regions; r != NULL; r = r->next) {
        parts.unused += FINE_STEP + r->lost;
        parts.guards += 2 * os_page;
    }
    for (unsigned kind = 0; kind < FINE_KINDS + COARSE_KINDS; kind++) {
        size_t bytes = kind < FINE_KINDS ? (kind + 1) * (size_t)FINE_STEP
                                         : (size_t)COARSE_LEAST << (kind - FINE_KINDS);
        for (const struct free_piece *p = free_pieces[kind]; p != NULL; p = p->next) {
            parts.free += bytes;
            if (!meta_holds(p, bytes) || parts.free > mapped)
                return (struct meta_parts){SIZE_MAX, parts.unused, parts.guards};
        }
    }
    return parts;
}

const struct watch_meta watch_meta = {
    .bytes = sizeof watch_meta,
    .next_at = offsetof(struct region, next),
    .length_at = offsetof(struct region, length),
    .first = &regions,
};
