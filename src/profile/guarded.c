#include "profile/guarded.h"

#include <string.h>

#include "back/map.h"
#include "back/meta.h"
#include "base/defs.h"
#include "os/os.h"

#define OF_WHICH_ONE_BEGINS 4 /* with its page; the others end with it */

enum { FREE, CHANGING, USED };

struct place {
    unsigned state;  /* atomic; who sets CHANGING owns the rest */
    size_t freed_at; /* atomic: the count of frees; 0: never used */
    struct guarded_block block;
};

struct guarded_region guarded_region;
static struct place *places; /* constant once they are there */
static size_t frees;         /* atomic */

static size_t notes_bytes(void) { return round_up(GUARDED_PLACES * sizeof *places, os_page); }

static char *page_of(size_t place) { return guarded_region.start + (2 * place + 1) * os_page; }

COLD bool guarded_start(void)
{
    if (guarded_region.start != NULL)
        return true;
    if (places == NULL)
        places = meta_take_pages(notes_bytes());
    if (places == NULL)
        return false;
    size_t length = round_up((2 * GUARDED_PLACES + 1) * os_page, SLICE);
    char *start = os_map_aligned(length, SLICE);
    if (start == NULL)
        return false;
    if (!os_forbid(start, length)) {
        os_unmap(start, length);
        return false;
    }
    os_name(start, length, "hakmem: guarded blocks");
    guarded_region.bytes = length;
    store_release(&guarded_region.start, start);
    return true;
}

/* ---- places ---- */

static bool place_claim(struct place *place, unsigned from)
{
    return __atomic_compare_exchange_n(&place->state, &from, CHANGING, false, __ATOMIC_ACQ_REL,
                                       __ATOMIC_RELAXED);
}

/* The one that has been free for longest. */
static struct place *place_take(void)
{
    struct place *oldest;
    do {
        oldest = NULL;
        for (struct place *place = places; place < places + GUARDED_PLACES; place++)
            if (load_relaxed(&place->state) == FREE &&
                (oldest == NULL ||
                 load_relaxed(&place->freed_at) < load_relaxed(&oldest->freed_at)))
                oldest = place;
    } while (oldest != NULL && !place_claim(oldest, FREE));
    return oldest;
}

size_t guarded_places_free(void)
{
    size_t count = 0;
    for (size_t i = 0; places != NULL && i < GUARDED_PLACES; i++)
        count += load_relaxed(&places[i].state) == FREE;
    return count;
}

/* The place whose page has p; null for a guard. */
static struct place *place_of(const void *p)
{
    size_t page = (size_t)((const char *)p - guarded_region.start) / os_page;
    return page % 2 == 1 && page / 2 < GUARDED_PLACES ? &places[page / 2] : NULL;
}

/* ---- blocks ---- */

/* Another in each page, so that a block copied from one place to another does not fit. */
static unsigned char pattern_of(const char *page)
{
    return (unsigned char)(0xa5 ^ ((uintptr_t)page / os_page));
}

static void note(struct guarded_call *to, const struct guarded_call *by)
{
    store_relaxed(&to->depth, 0); /* what is half written is not read */
    store_relaxed(&to->thread, by->thread);
    for (unsigned i = 0; i < by->depth; i++)
        store_relaxed(&to->frames[i], by->frames[i]);
    store_release(&to->depth, by->depth);
}

COLD void *guarded_take(size_t n, uint64_t random, const struct guarded_call *by)
{
    ASSERT(n <= os_page && by->depth <= GUARDED_FRAMES);
    struct place *place = place_take();
    if (place == NULL)
        return NULL;
    char *page = page_of((size_t)(place - places));
    if (!os_let_write(page, os_page, true)) {
        store_release(&place->state, FREE);
        return NULL;
    }
    n = larger(n, 1); /* each block has a byte, which the program may use */
    size_t room = round_up(n, 16);
    char *p = random % OF_WHICH_ONE_BEGINS == 0 ? page : page + os_page - room;
    memset(page, pattern_of(page), (size_t)(p - page));
    memset(p, 0, n); /* the kernel may have refused to take the page back */
    memset(p + n, pattern_of(page), (size_t)(page + os_page - (p + n)));
    note(&place->block.allocated, by);
    store_relaxed(&place->block.freed_by.depth, 0);
    store_relaxed(&place->block.start, p);
    store_relaxed(&place->block.bytes, n);
    store_relaxed(&place->block.freed, false);
    store_relaxed(&place->block.maker, MAKER_MALLOC);
    store_release(&place->state, USED);
    return p;
}

static bool is_pattern(const char *from, const char *to, unsigned char pattern)
{
    while (from < to && (unsigned char)*from == pattern)
        from++;
    return from == to;
}

static enum misuse look_around(const struct guarded_block *block, const char *page)
{
    unsigned char pattern = pattern_of(page);
    if (!is_pattern(block->start + block->bytes, page + os_page, pattern))
        return MISUSE_OVERRUN;
    return is_pattern(page, block->start, pattern) ? MISUSE_NONE : MISUSE_UNDERRUN;
}

COLD enum misuse guarded_look(const void *p)
{
    const struct place *place = place_of(p);
    if (place == NULL || load_relaxed(&place->block.start) == NULL)
        return MISUSE_FOREIGN;
    if (load_relaxed(&place->block.start) != p)
        return MISUSE_INTERIOR;
    return load_acquire(&place->state) == USED ? MISUSE_NONE : MISUSE_FREE;
}

/* MISUSE_NONE: p is a block in use, and its place the caller's. */
static enum misuse block_claim(const void *p)
{
    enum misuse what = guarded_look(p);
    return what == MISUSE_NONE && !place_claim(place_of(p), USED) ? MISUSE_FREE : what;
}

COLD enum misuse guarded_give(void *p, const struct guarded_call *by)
{
    struct place *place = place_of(p);
    if (guarded_look(p) == MISUSE_NONE && load_relaxed(&place->block.maker) != MAKER_MALLOC)
        return MISUSE_FUNCTION;
    enum misuse what = block_claim(p);
    if (what != MISUSE_NONE)
        return what;
    struct guarded_block *block = &place->block;
    char *page = page_of((size_t)(place - places));
    what = look_around(block, page);
    note(&block->freed_by, by);
    store_relaxed(&block->freed, true);
    os_purge(page, os_page);
    os_forbid(page, os_page);
    store_relaxed(&place->freed_at, add_relaxed(&frees, 1) + 1);
    store_release(&place->state, FREE);
    return what;
}

COLD enum misuse guarded_shrink(const void *p, size_t n)
{
    struct place *place = place_of(p);
    enum misuse what = block_claim(p);
    if (what != MISUSE_NONE)
        return what;
    char *page = page_of((size_t)(place - places));
    size_t before = load_relaxed(&place->block.bytes);
    ASSERT(n >= 1 && n <= before);
    what = look_around(&place->block, page);
    memset((char *)p + n, pattern_of(page), before - n);
    store_relaxed(&place->block.bytes, n);
    store_release(&place->state, USED);
    return what;
}

size_t guarded_usable(const void *p)
{
    return guarded_look(p) == MISUSE_NONE ? load_relaxed(&place_of(p)->block.bytes) : 0;
}

uint8_t *guarded_maker(const void *p)
{
    return guarded_look(p) == MISUSE_NONE ? &place_of(p)->block.maker : NULL;
}

/* ---- for reports ---- */

/* From the address to the block, one past its end included. */
static size_t distance(const struct place *place, const char *address)
{
    const char *start = load_relaxed(&place->block.start);
    if (start == NULL)
        return SIZE_MAX;
    const char *end = start + load_relaxed(&place->block.bytes);
    return address < start ? (size_t)(start - address)
           : address < end ? 0
                           : (size_t)(address - end) + 1;
}

COLD const struct guarded_block *guarded_near(const void *address)
{
    const struct place *place = place_of(address);
    size_t page = (size_t)((const char *)address - guarded_region.start) / os_page;
    size_t after = smaller(page / 2, GUARDED_PLACES);
    const struct place *left = after > 0 ? &places[after - 1] : NULL;
    const struct place *right = after < GUARDED_PLACES ? &places[after] : NULL;
    if (place == NULL && left != NULL &&
        (right == NULL || distance(left, address) <= distance(right, address)))
        place = left;
    else if (place == NULL)
        place = right;
    return place != NULL && load_relaxed(&place->block.start) != NULL ? &place->block : NULL;
}

COLD void guarded_open(const void *address)
{
    os_let_write((void *)((uintptr_t)address & ~(os_page - 1)), os_page, true);
}

struct guarded_parts guarded_parts(void)
{
    struct guarded_parts parts = {0, 0, places != NULL ? notes_bytes() : 0};
    for (size_t i = 0; places != NULL && i < GUARDED_PLACES; i++)
        if (load_acquire(&places[i].state) == USED) {
            parts.used += load_relaxed(&places[i].block.bytes);
            parts.pages += os_page;
        }
    return parts;
}
