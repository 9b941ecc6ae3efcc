#include "back/meta.h"

#include "base/atomic.h"
#include "os/os.h"

#define REGION (1 * MiB)
#define FINE_STEP 64
#define FINE_MOST (1 * KiB)
#define FINE_KINDS (FINE_MOST / FINE_STEP)
/* No powers of two, so that pieces in a row don't alias in the L1 cache: 1280 bytes to 40 KiB. */
#define COARSE_LEAST 1280
#define COARSE_KINDS 6

struct free_piece {
    struct free_piece *next;
};

static struct lock meta_lock;
static struct free_piece *free_pieces[FINE_KINDS + COARSE_KINDS]; /* lock: meta */
static char *bump, *bump_end;                                     /* lock: meta */
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

void *meta_take(size_t bytes)
{
    size_t rounded;
    unsigned kind = kind_of(bytes, &rounded);
    void *result = NULL;
    lock_take(&meta_lock);
    if (free_pieces[kind] != NULL) {
        result = free_pieces[kind];
        free_pieces[kind] = free_pieces[kind]->next;
    } else {
        if ((size_t)(bump_end - bump) < rounded) {
            /* What is left of the old region is lost: at most one piece in a megabyte. */
            char *region = os_map_guarded(REGION);
            if (region != NULL) {
                os_name(region, REGION, "hakmem: metadata");
                os_small_pages(region, REGION);
                bump = region;
                bump_end = region + REGION;
                add_relaxed(&mapped, REGION);
            }
        }
        if ((size_t)(bump_end - bump) >= rounded) {
            result = bump;
            bump += rounded;
        }
    }
    lock_release(&meta_lock);
    return result;
}

void meta_give(void *p, size_t bytes)
{
    size_t rounded;
    unsigned kind = kind_of(bytes, &rounded);
    struct free_piece *piece = p;
    lock_take(&meta_lock);
    piece->next = free_pieces[kind];
    free_pieces[kind] = piece;
    lock_release(&meta_lock);
}

size_t meta_mapped(void) { return load_relaxed(&mapped); }

void meta_fork_lock(void) { lock_take(&meta_lock); }
void meta_fork_unlock(void) { lock_release(&meta_lock); }
