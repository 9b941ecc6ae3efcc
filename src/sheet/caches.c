#include "sheet/look.h"

#define CACHES_MOST 100000
#define TRANSFER_MOST (1u << 20)

/* The words from `at` on, up to n of them, each a block. */
static void cached_read(struct look *look, uint64_t at, uint64_t n, uint32_t cache)
{
    for (uint64_t i = 0; i < n && !look->t->room.short_of; i++) {
        uint64_t block;
        if (!target_spend(look->t) || !target_read(look->t, at + i * WORD, &block, sizeof block)) {
            look->heap->skipped++;
            return;
        }
        spans_add(&look->cached, block, block + 1, cache);
    }
}

static void stack_read(struct look *look, const unsigned char *cache, unsigned stack,
                       uint32_t number)
{
    const struct watch_caches *w = &look->heap->tables.caches;
    const unsigned char *cold = cache + w->cold_at + (size_t)stack * w->cold_bytes;
    const unsigned char *bin = cache + w->bins_at + (size_t)stack * w->bin_bytes;
    uint64_t base = word_at(cold, w->base_at);
    uint64_t top = word_at(bin, w->top_at);
    uint64_t room = half_at(cold, w->room_at) & w->room_mask;
    if (base == 0 || top <= base)
        return;
    uint64_t n = (top - base) / WORD;
    if (n > room) {
        look->heap->skipped++;
        return;
    }
    cached_read(look, base + WORD, n, number);
}

/* From the top down to the window's base. */
static void ahead_read(struct look *look, const unsigned char *ahead, uint32_t number)
{
    const struct watch_caches *w = &look->heap->tables.caches;
    uint64_t top = word_at(ahead, w->top_at);
    for (uint32_t i = 0; top != 0 && i <= w->ahead_most && !look->t->room.short_of; i++) {
        uint64_t block;
        if (!target_spend(look->t) || !target_read(look->t, top, &block, sizeof block)) {
            look->heap->skipped++;
            return;
        }
        if (block == look->heap->tables.map.window_base)
            return;
        if (i < w->ahead_most)
            spans_add(&look->cached, block, block + 1, number);
        top -= WORD;
    }
}

#define HELD_MOST 100000

static void held_class_read(struct look *look, uint64_t at, uint32_t number)
{
    struct watch_held held;
    if (!target_spend(look->t) || !target_read(look->t, at, &held, sizeof held) ||
        held.ready > held.ready_most || held.held > held.held_most || held.ready_most > HELD_MOST ||
        held.held_most > HELD_MOST) {
        look->heap->skipped++;
        return;
    }
    at += sizeof held;
    cached_read(look, at, held.ready, number);
    cached_read(look, at + (uint64_t)held.ready_most * WORD, held.held, number);
}

/* What a thread has in a hardened heap. */
static void held_read(struct look *look, uint64_t at, uint32_t number)
{
    const struct watch_caches *w = &look->heap->tables.caches;
    for (uint32_t i = 0; i < w->held_classes && at != 0 && !look->t->room.short_of; i++) {
        uint64_t of_class;
        if (!target_spend(look->t) ||
            !target_read(look->t, at + w->held_first + (uint64_t)i * WORD, &of_class, WORD))
            look->heap->skipped++;
        else if (of_class != 0)
            held_class_read(look, of_class, number);
    }
}

static bool cache_read(struct look *look, uint64_t at)
{
    struct heap *heap = look->heap;
    const struct watch_caches *w = &heap->tables.caches;
    unsigned char *cache = look->cache;
    struct cache_sum *more = room_grown(&look->t->room, heap->caches, heap->cache_count,
                                        &look->cache_room, sizeof *heap->caches);
    if (more == NULL)
        return false;
    heap->caches = more;
    if (heap->cache_count == CACHES_MOST || !target_read(look->t, at, cache, w->size))
        return false;
    uint32_t number = (uint32_t)heap->cache_count++;
    uint32_t whose = half_at(cache, w->generation_at);
    heap->caches[number] = (struct cache_sum){
        .mine = w->mine_at != 0 ? word_at(cache, w->mine_at) : 0,
        .living = whose != 0 && whose == look->generation,
    };
    for (unsigned stack = 0; stack < w->stacks; stack++)
        stack_read(look, cache, stack, number);
    for (uint32_t i = 0; i < w->aheads; i++)
        ahead_read(look, cache + w->ahead_at + (size_t)i * w->ahead_bytes, number);
    if (w->held_classes != 0)
        held_read(look, word_at(cache, w->held_at), number);
    return true;
}

static void transfers_read(struct look *look)
{
    const struct watch_transfer *w = &look->heap->tables.transfer;
    for (unsigned cls = 0; cls < look->heap->tables.slabs.classes; cls++) {
        uint64_t at = address(w->first) + (uint64_t)cls * w->stride;
        uint32_t count = 0;
        uint32_t capacity = 0;
        uint64_t blocks = 0;
        if (!target_read(look->t, at + w->count_at, &count, sizeof count) || count == 0)
            continue; /* a page without any is perhaps not there */
        if (!target_read(look->t, at + w->capacity_at, &capacity, sizeof capacity) ||
            !target_read(look->t, at + w->blocks_at, &blocks, sizeof blocks) || count > capacity ||
            count > TRANSFER_MOST)
            look->heap->skipped++;
        else
            cached_read(look, blocks, count, IN_TRANSFER);
    }
}

void caches_read(struct look *look)
{
    const struct watch_caches *w = &look->heap->tables.caches;
    look->cache = room_get(&look->t->room, w->size);
    /* Before the first call nothing is there yet. */
    if (look->cache != NULL &&
        target_read(look->t, address(w->generation), &look->generation, sizeof look->generation))
        list_walk(look, address(w->every), w->every_at, cache_read);
    transfers_read(look);
}
