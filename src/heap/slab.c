#include "heap/slab.h"

#include "back/map.h"
#include "back/meta.h"
#include "back/slices.h"
#include "base/atomic.h"
#include "base/memory.h"
#include "base/policy.h"
#include "base/watch.h"
#include "heap/hardening.h"
#include "learn/compaction.h"
#include "os/lock.h"
#include "os/os.h"

/* Bytes of blocks, lowest first, among which a block of a slab is chosen by chance; at least 64
 * blocks. The distance from one block of 64 bytes to the next then has 8.1 bits of entropy, of 2
 * KiB 10.0. */
#define CHOICE_BYTES (16 * KiB)

/* Those that are never handed out. */
static SLOW void bar_blocks(struct slab *slab)
{
    slab->places = (uint16_t)guard_places(slab->cls);
    store_relaxed(&slab->free, slab->places);
    slab->examined = slab->places;
    slab->summary = 0;
    for (unsigned i = 0; i * 64 < size_classes[slab->cls].blocks; i++)
        slab->summary |= (uint64_t)(guard_word(slab->cls, i) != 0) << i;
}

void slab_init(struct slab *slab, unsigned cls, void *base, struct superslab *home)
{
    ASSERT(lock_rank_held(RANK_SHARD));
    ASSERT(cls < CLASSES && (uintptr_t)base % SLICE == 0);
    unsigned blocks = size_classes[cls].blocks;
    unsigned words = (blocks + 63) / 64;
    slab->node.key = (uintptr_t)base;
    slab->base = base;
    slab->home = home;
    slab->cls = (uint8_t)cls;
    slab->places = (uint16_t)blocks;
    store_relaxed(&slab->free, (uint16_t)blocks);
    slab->zero = false;
    slab->thin = false;
    slab->usable = 0;
    slab->examined = (uint16_t)blocks;
    store_relaxed(&slab->absent, 0);
    list_init(&slab->sparse);
    slab->summary = low_bits(words);
    words_fill(slab->words, ~(uint64_t)0, words);
    if (blocks % 64 != 0)
        slab->words[words - 1] = low_bits(blocks % 64);
    if (unlikely(guard_plans != NULL))
        bar_blocks(slab);
}

/* Of a word's blocks those in groups of 2^doublings that are all set. */
static uint64_t whole_groups(uint64_t word, unsigned doublings)
{
    for (unsigned i = 0; i < doublings; i++)
        word &= word >> (1u << i);
    if (doublings == 1)
        word &= UINT64_MAX / 3;
    if (doublings == 2)
        word &= UINT64_MAX / 15;
    for (unsigned i = 0; i < doublings; i++)
        word |= word << (1u << i);
    return word;
}

static size_t take(struct slab *slab, void **end, size_t n, unsigned doublings)
{
    ASSERT(lock_rank_held(RANK_SHARD));
    ASSERT(n >= 1 && slab->free <= slab->places);
    size_t size = size_classes[slab->cls].size;
    size_t taken = 0;
    for (uint64_t left = slab->summary; taken < n && left != 0; left &= left - 1) {
        unsigned index = lowest_bit(left);
        uint64_t word = slab->words[index];
        uint64_t others = word & ~whole_groups(word, doublings);
        char *first = slab->base + index * 64 * size;
        word &= ~others;
        if (word == ~(uint64_t)0 && n - taken >= 64) {
            for (unsigned i = 0; i < 64; i++)
                end[-1 - (ptrdiff_t)i] = first + i * size;
            end -= 64;
            taken += 64;
            word = 0;
        } else {
            for (; taken < n && word != 0; taken++) {
                *--end = first + lowest_bit(word) * size;
                word &= word - 1;
            }
        }
        word |= others;
        slab->words[index] = word;
        if (word == 0)
            slab->summary &= ~((uint64_t)1 << index);
    }
    ASSERT(taken <= slab->free);
    store_relaxed(&slab->free, (uint16_t)(slab->free - taken));
    return taken;
}

size_t slab_take(struct slab *slab, void **end, size_t n) { return take(slab, end, n, 0); }

/* A bit of a word that is not 0: the first from a place chosen by chance. */
static unsigned any_bit(uint64_t word, uint32_t chance)
{
    unsigned from = (unsigned)((uint64_t)chance * (highest_bit(word) + 1) >> 32);
    return lowest_bit(word & ~low_bits(from));
}

/* Words of 64 blocks among which one is chosen: not all, as then every page of a slab that is
 * little used would be touched. */
static unsigned words_of_choice(size_t size)
{
    return (unsigned)larger(CHOICE_BYTES / (64 * size), 1);
}

SLOW size_t slab_take_any(struct slab *slab, void **end, size_t n)
{
    ASSERT(lock_rank_held(RANK_SHARD));
    size_t size = size_classes[slab->cls].size;
    size_t taken = 0;
    for (; taken < n && slab->summary != 0; taken++) {
        uint64_t chance = hardening.shuffles ? random_shared() : 0;
        uint64_t words = low_bits(lowest_bit(slab->summary) + words_of_choice(size));
        unsigned index = any_bit(slab->summary & words, (uint32_t)chance);
        uint64_t word = slab->words[index] & guard_word(slab->cls, index);
        unsigned bit = any_bit(word, (uint32_t)(chance >> 32));
        *--end = slab->base + (index * 64 + bit) * size;
        slab->words[index] &= ~((uint64_t)1 << bit);
        if ((word & (word - 1)) == 0)
            slab->summary &= ~((uint64_t)1 << index);
    }
    store_relaxed(&slab->free, (uint16_t)(slab->free - taken));
    return taken;
}

/* Slabs begin with a line: 4 blocks of 16 bytes are one, 2 of 32, 4 of 48 are three. */
SLOW size_t slab_take_lines(struct slab *slab, void **end, size_t n)
{
    size_t size = size_classes[slab->cls].size;
    return take(slab, end, n, size >= CACHE_LINE ? 0 : size == CACHE_LINE / 2 ? 1 : 2);
}

/* The number of the block at p, or one beyond the last where none begins. */
FAST unsigned block_number(const struct slab *slab, const void *p)
{
    const struct size_class *c = &size_classes[slab->cls];
    size_t offset = (size_t)((const char *)p - slab->base);
    unsigned number = blocks_before(c, offset);
    return unlikely((size_t)number * c->size != offset) ? c->blocks : number;
}

bool slab_begins(const struct slab *slab, const void *p)
{
    return block_number(slab, p) < size_classes[slab->cls].blocks;
}

enum misuse slab_check(const struct slab *slab, const void *p)
{
    ASSERT(lock_rank_held(RANK_SHARD) || lock_all_held());
    unsigned number = block_number(slab, p);
    if (number >= size_classes[slab->cls].blocks)
        return MISUSE_INTERIOR;
    return slab->words[number / 64] >> number % 64 & 1 ? MISUSE_FREE : MISUSE_NONE;
}

/* The class is in registers: what is asked of the slab for each block is its words. */
size_t slab_put(struct slab *slab, void *const *blocks, size_t n, enum misuse *what)
{
    ASSERT(lock_rank_held(RANK_SHARD));
    const struct size_class c = size_classes[slab->cls];
    const size_t bytes = c.slices * SLICE;
    const char *base = slab->base;
    uint64_t summary = slab->summary;
    size_t put = 0;
    *what = MISUSE_NONE;
    for (; put < n; put++) {
        size_t offset = (size_t)((const char *)blocks[put] - base);
        if (offset >= bytes)
            break;
        unsigned number = blocks_before(&c, offset);
        if (unlikely((size_t)number * c.size != offset || number >= c.blocks)) {
            *what = MISUSE_INTERIOR;
            break;
        }
        uint64_t bit = (uint64_t)1 << number % 64;
        uint64_t *word = &slab->words[number / 64];
        if (unlikely(*word & bit)) {
            *what = MISUSE_FREE;
            break;
        }
        *word |= bit;
        summary |= (uint64_t)1 << number / 64;
    }
    ASSERT(slab->free + put <= slab->places);
    slab->summary = summary;
    store_relaxed(&slab->free, (uint16_t)(slab->free + put));
    return put;
}

/* A block is handed out once there is a guard page behind it. */
static const char *begun_until(const struct slab *slab)
{
    const char *until = slab->base;
    for (uint64_t guards = guard_pages_of(slab->cls); guards != 0; guards &= guards - 1) {
        const char *page = slab->base + lowest_bit(guards) * os_page;
        if (!slices_guarded(slab->home, page))
            return load_relaxed(&slab->home->unguardable) ? slab->base + SLICE : until;
        until = page;
    }
    return slab->base + SLICE;
}

SLOW void *slab_written(const struct slab *slab, size_t *most)
{
    ASSERT(lock_rank_held(RANK_SHARD));
    const struct size_class *c = &size_classes[slab->cls];
    const char *until = begun_until(slab);
    for (unsigned i = 0; i * 64 < c->blocks; i++)
        for (uint64_t left = slab->words[i] & guard_word(slab->cls, i); left != 0;) {
            unsigned first = lowest_bit(left);
            uint64_t rest = ~(left >> first);
            unsigned n = rest == 0 ? 64 : lowest_bit(rest);
            char *run = slab->base + (i * 64 + first) * (size_t)c->size;
            size_t bytes = n * (size_t)c->size;
            left &= ~(low_bits(n) << first);
            if (run >= until || *most < bytes)
                return NULL;
            *most -= bytes;
            if (likely(is_zero(run, bytes)))
                continue;
            while (is_zero(run, c->size))
                run += c->size;
            return run;
        }
    return NULL;
}

/* In front of a slab's first block is the end of the slice before. If it can be touched it holds
 * the canary of a block that ends there, or zeroes: those of a free block, or of what the slab
 * there leaves over at its end, which nothing ever used. So which slab that is, or was a moment
 * ago, need not be known: all sizes that divide a slice are tried. */
static SLOW bool slice_before_stands(const void *p)
{
    uint64_t found = load_relaxed((const uint64_t *)p - 1);
    bool stands = found == 0;
    for (size_t size = CLASS_GRAIN; !stands && size <= CLASS_MOST; size += size)
        stands = canary_is_whole((const char *)p - size, found);
    return stands;
}

/* A block in use has a slab. */
SLOW bool slab_edge_stands(const void *p, unsigned cls)
{
    const struct slab *slab = map_owner(p);
    if (slab == NULL || slices_guarded(slab->home, (const char *)p - 1))
        return true;
    return (uintptr_t)p % SLICE == 0 ? slice_before_stands(p) : slab_inside_stands(p, cls);
}

size_t slab_usable(const void *p, const struct slab *slab)
{
    if (slab == NULL || !slab_begins(slab, p))
        return 0;
    const struct size_class *c = &size_classes[slab->cls];
    return c->blocks == 1 ? slab->usable : class_usable(slab->cls);
}

const struct watch_slabs watch_slabs = {
    .bytes = sizeof watch_slabs,
    .classes = CLASSES,
    .class_bytes = sizeof(struct size_class),
    .size_at = offsetof(struct size_class, size),
    .blocks_at = offsetof(struct size_class, blocks),
    .slices_at = offsetof(struct size_class, slices),
    .slab_bytes = sizeof(struct slab),
    .base_at = offsetof(struct slab, base),
    .home_at = offsetof(struct slab, home),
    .cls_at = offsetof(struct slab, cls),
    .places_at = offsetof(struct slab, places),
    .usable_at = offsetof(struct slab, usable),
    .words_at = offsetof(struct slab, words),
    .table = size_classes,
};

/* ---- a shard ---- */

struct shard first_shard = {.lock = LOCK(SHARD)};
struct shard *shards[SHARDS_MOST] = {&first_shard};
unsigned shard_count = 1;
size_t slabs_sparse;
size_t class_slabs[CLASS_SLICES_FIRST];

/* A slab's blocks begin in its first slice: others it has for one block alone. A block that has
 * whole slices for itself is in no program's hands yet. */
void slab_map(const struct slab *slab, void *owner)
{
    unsigned bin = load_relaxed(&slab->shard) == SHARD_SAMPLED ? BIN_SAMPLED
                   : slab->thin                                ? BIN_FIRST + CLASSES + slab->cls
                   : slab->cls < CLASS_SLICES_FIRST            ? BIN_FIRST + slab->cls
                                                               : BIN_WHOLE_FREE;
    map_set(slab->base, 1, owner != NULL ? bin : BIN_FOREIGN, owner);
}

COLD void partial_absent(struct shard *shard, unsigned cls, size_t pages)
{
    shard->begun[cls].absent += pages;
    store_relaxed(&shard->absent, shard->absent + pages);
}

SLOW void slab_bring_back(struct shard *shard, struct slab *slab, void *const *blocks, size_t n)
{
    ASSERT(lock_held(&shard->lock));
    ASSERT(n >= 1);
    size_t size = size_classes[slab->cls].size;
    uint64_t absent = slab->absent;
    for (size_t i = 0; i < n && absent != 0; i++) {
        size_t offset = (size_t)((const char *)blocks[i] - slab->base);
        ASSERT(offset < size_classes[slab->cls].slices * SLICE);
        unsigned first = (unsigned)(offset / os_page);
        unsigned end = (unsigned)((offset + size - 1) / os_page) + 1;
        absent &= ~(low_bits(end) & ~low_bits(first));
    }
    size_t pages = count_bits(slab->absent & ~absent);
    store_relaxed(&slab->absent, absent);
    partial_absent(shard, slab->cls, -pages);
    /* Of lower places it was not known that they would be wanted. */
    if (!shard->begun[slab->cls].compacts)
        count_refault(&counters.pages, pages * os_page);
}

void slab_note_sparse(struct shard *shard, struct slab *slab)
{
    slab->stamp = clock_now();
    list_push(&shard->sparse, &slab->sparse);
    add_relaxed(&slabs_sparse, 1);
}

void slab_not_sparse(struct slab *slab)
{
    ASSERT(lock_held(&load_acquire(&shards[load_relaxed(&slab->shard)])->lock));
    if (list_empty(&slab->sparse))
        return;
    list_remove(&slab->sparse);
    sub_relaxed(&slabs_sparse, 1);
}

void slabs_give_back(struct pairing_node *emptied)
{
    ASSERT(!lock_rank_held(RANK_SHARD) || fork_holds_locks());
    while (emptied != NULL) {
        struct slab *slab = (struct slab *)emptied;
        const struct size_class *c = &size_classes[slab->cls];
        ASSERT(slab->free == slab->places && list_empty(&slab->sparse));
        emptied = emptied->next;
        if (unlikely(slab->absent != 0))
            slices_lack(slab->home, slab->base, c->slices, count_bits(slab->absent) * os_page);
        if (slab->cls < CLASS_SLICES_FIRST)
            sub_relaxed(&class_slabs[slab->cls], 1);
        slices_give(slab->home, slab->base, c->slices);
        meta_give(slab, slab_bytes(c));
    }
}

static SLOW void change_lock(struct shard **held, struct shard *shard)
{
    if (*held != NULL)
        lock_release(&(*held)->lock);
    *held = shard;
    lock_take(&shard->lock);
}

/* The slab's shard can change, and by a program's error
 * the slab itself can be gone, until its lock is held. */
struct slab *slab_lock(const void *p, struct shard **held)
{
    for (;;) {
        void *owner;
        if (!bin_of_slab(map_find(p, &owner)) || unlikely(owner == NULL))
            return NULL;
        struct slab *slab = owner;
        struct shard *shard = load_acquire(&shards[load_relaxed(&slab->shard) % SHARDS_MOST]);
        if (likely(shard == *held))
            return slab;
        change_lock(held, shard);
    }
}

/* No place is better than one in the lowest slab. */
static bool is_thin(struct shard *shard, const struct slab *slab)
{
    return shard->begun[slab->cls].compacts && slab->free > 0 &&
           slab != lowest_partial(shard, slab->cls) && compaction_thin(slab->free, slab->places);
}

void slab_settle_thin(struct shard *shard, struct slab *slab)
{
    ASSERT(lock_held(&shard->lock));
    bool thin = is_thin(shard, slab);
    if (thin == slab->thin)
        return;
    slab->thin = thin;
    slab_map(slab, slab);
}

/* Whether pages of the slab may be free. */
static inline bool slab_worth_a_look(const struct slab *slab)
{
    const struct size_class *c = &size_classes[slab->cls];
    return slab->free > slab->examined && list_empty(&slab->sparse) && slab->free >= c->sparse &&
           look_at_slab(slab->free - slab->examined, slab->places - slab->free, slab->thin);
}

void slab_settle(struct shard *shard, struct slab *slab, bool was_full,
                 struct pairing_node **emptied)
{
    ASSERT(lock_held(&shard->lock));
    ASSERT(load_relaxed(&slab->shard) == shard->index);
    const struct size_class *c = &size_classes[slab->cls];
    ASSERT(slab->free <= slab->places);
    bool empty = slab->free == slab->places;
    if (was_full && slab->free > 0 && !empty)
        partial_add(shard, slab);
    if (!was_full && empty)
        partial_remove(shard, slab);
    if (empty) {
        if (unlikely(slab->thin))
            shard->begun[slab->cls].regained +=
                c->slices * SLICE - count_bits(slab->absent) * os_page;
        slab_map(slab, NULL);
        slab_not_sparse(slab);
        slab->node.next = *emptied;
        *emptied = &slab->node;
        return;
    }
    if (slab_worth_a_look(slab))
        slab_note_sparse(shard, slab);
    if (unlikely(shard->begun[slab->cls].compacts) && !slab->thin)
        slab_settle_thin(shard, slab);
}

/* ---- when a class compacts ---- */

static COLD void switch_compaction(struct shard *shard, unsigned cls)
{
    struct begun *begun = &shard->begun[cls];
    bool begins = !begun->compacts;
    store_relaxed(&begun->compacts, begins);
    begun->compactions += begins;
    struct pairing_heap *slabs = &shard->partial[cls];
    for (struct pairing_node *node = slabs->root; node != NULL; node = pairing_after(slabs, node))
        slab_settle_thin(shard, (struct slab *)node);
}

void shard_settle_compaction(struct shard *shard, unsigned cls)
{
    ASSERT(lock_held(&shard->lock));
    if (cls >= CLASSES_THIN)
        return;
    const struct begun *begun = &shard->begun[cls];
    size_t size = size_classes[cls].size;
    bool differs = begun->compacts ? compaction_ends(begun->free, begun->blocks, size) ||
                                         !load_relaxed(&policy.compact)
                                   : compaction_begins(begun->free, begun->blocks, size, os_page) &&
                                         load_relaxed(&policy.compact);
    if (unlikely(differs))
        switch_compaction(shard, cls);
}
