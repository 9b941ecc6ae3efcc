/* Checks superslabs by their lists, everything that the map names, shards' trees, then the caches,
 * dirty mappings and sums. Its notes lie in a separate mapping. */
#include "report/accounts.h"

#include "back/huge.h"
#include "back/meta.h"
#include "back/superslabs.h"
#include "back/use.h"
#include "base/memory.h"
#include "front/cache.h"
#include "front/stacks.h"
#include "heap/hardening.h"
#include "heap/shards.h"
#include "heap/slab.h"
#include "heap/transfer.h"
#include "os/os.h"

/* ---- notes ---- */

/* Where memory is; of a superslab with a bit for each slice. */
struct noted {
    uintptr_t start, end;
    struct superslab *s; /* null: a huge block or a kept mapping */
    size_t number;       /* of superslabs */
    uint64_t in_slabs;
    uint64_t slabs;   /* where a slab begins */
    uint64_t in_tree; /* where a slab begins that is in its shard's tree */
};

#define MARK_WORDS (SUPERSLAB / CLASS_GRAIN / 64)

struct walk {
    struct accounts *accounts;
    bool quiet;          /* nothing is on its way between two places */
    struct noted *noted; /* by address */
    size_t count, room;
    size_t superslab_count, superslab_room;
    /* Superslab by superslab a bit for each place where a block can begin: it is in a stack or in a
     * transfer cache. */
    uint64_t (*marks)[MARK_WORDS];
};

static void breach(struct walk *walk, enum check_rule rule, const void *where, size_t expected,
                   size_t found)
{
    struct accounts *accounts = walk->accounts;
    accounts->broken[rule]++;
    if (accounts->breaches < CHECK_BREACHES_KEPT)
        accounts->first[accounts->breaches] = (struct check_breach){rule, where, expected, found};
    accounts->breaches++;
}

/* A breach unless the two are the same. */
static inline void same(struct walk *walk, enum check_rule rule, const void *where, size_t expected,
                        size_t found)
{
    if (unlikely(expected != found))
        breach(walk, rule, where, expected, found);
}

/* The superslab that p is in; null if in none. */
static struct noted *noted_at(const struct walk *walk, const void *p)
{
    uintptr_t base = (uintptr_t)p & ~(SUPERSLAB - 1);
    size_t low = 0, high = walk->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (walk->noted[middle].start < base)
            low = middle + 1;
        else
            high = middle;
    }
    while (low < walk->count && walk->noted[low].start == base && walk->noted[low].s == NULL)
        low++;
    return low < walk->count && walk->noted[low].start == base ? &walk->noted[low] : NULL;
}

/* Notes a superslab, a huge block or a kept mapping; in the end all of them have to lie apart. From
 * above: mostly they come by address. */
static void note(struct walk *walk, const void *start, size_t length, struct superslab *s)
{
    if (walk->count == walk->room)
        return;
    size_t i = walk->count++;
    for (; i > 0 && walk->noted[i - 1].start > (uintptr_t)start; i--) {
        walk->noted[i] = walk->noted[i - 1];
        FORGET(i); /* or it becomes a call of memmove, with every lock held */
    }
    walk->noted[i] = (struct noted){
        (uintptr_t)start, (uintptr_t)start + length, s, walk->superslab_count, 0, 0, 0};
}

static void note_superslab(struct walk *walk, struct superslab *s)
{
    if (noted_at(walk, s->base) != NULL || walk->superslab_count == walk->superslab_room)
        return;
    note(walk, s->base, s->slices * SLICE, s);
    walk->superslab_count++;
}

static void check_ranges(struct walk *walk)
{
    for (size_t i = 1; i < walk->count; i++)
        if (walk->noted[i].start < walk->noted[i - 1].end)
            breach(walk, CHECK_RANGES_OVERLAP, (void *)walk->noted[i].start, walk->noted[i - 1].end,
                   walk->noted[i].start);
}

/* ---- superslabs ---- */

/* The superslabs of a list, whose node is at `offset` in them; each is to be in list `number`. */
static void check_list(struct walk *walk, const struct list *head, size_t offset,
                       void (*each)(struct walk *, struct superslab *, unsigned), unsigned number)
{
    const size_t most = superslabs_mapped();
    size_t steps = 0;
    for (const struct list *node = head;; node = node->next) {
        const struct list *next = node->next;
        struct superslab *s = (struct superslab *)((uintptr_t)next - offset);
        bool whole = (next == head || meta_holds(s, sizeof *s)) && next->prev == node;
        if (!whole || steps++ > most) {
            breach(walk, CHECK_SUPERSLAB_LISTS, node, most, steps);
            return;
        }
        if (next == head)
            return;
        each(walk, s, number);
    }
}

static void check_listed(struct walk *walk, struct superslab *s, unsigned longest)
{
    same(walk, CHECK_SUPERSLAB_LONGEST, s, s->longest, longest);
    note_superslab(walk, s);
}

static void check_aged(struct walk *walk, struct superslab *s, unsigned unused)
{
    (void)unused;
    const struct noted *found = noted_at(walk, s->base);
    if (found == NULL || found->s != s)
        breach(walk, CHECK_SUPERSLAB_LISTS, s, 1, 0);
}

static void check_lists(struct walk *walk)
{
    for (unsigned n = 1; n <= SUPERSLAB_SLICES; n++) {
        const struct list *head = &superslabs_by_longest[n - 1];
        bool members = head->next != NULL && head->next != head;
        same(walk, CHECK_SUPERSLAB_NONEMPTY, head, members, superslabs_nonempty >> (n - 1) & 1);
        if (members)
            check_list(walk, head, offsetof(struct superslab, node), check_listed, n);
    }
    check_list(walk, &superslabs_dense, offsetof(struct superslab, node), check_listed, 0);
    check_list(walk, &superslabs_aged, offsetof(struct superslab, age), check_aged, 0);
}

static void check_superslabs(struct walk *walk)
{
    size_t retained = 0;
    size_t taken_slices = 0;
    for (size_t i = 0; i < walk->count; i++) {
        const struct noted *found = &walk->noted[i];
        const struct superslab *s = found->s;
        if (s == NULL)
            continue;
        if (longest_run(s->free) > s->longest || (s->free == 0) != (s->longest == 0))
            breach(walk, CHECK_SUPERSLAB_LONGEST, s, longest_run(s->free), s->longest);
        same(walk, CHECK_SLICES_SHARED, s->base, 0, found->in_slabs & s->free);
        uint64_t taken = ~s->free & all_slices(s);
        same(walk, CHECK_SLICES_TOUCHED, s->base, 0, taken & ~s->touched);
        if (walk->quiet)
            same(walk, CHECK_SLICES_LOST, s->base, 0, taken & ~found->in_slabs);
        retained += count_bits(s->free & s->touched);
        taken_slices += count_bits(taken);
    }
    same(walk, CHECK_SUPERSLAB_COUNT, &superslabs_count, walk->superslab_count, superslabs_count);
    same(walk, CHECK_SLICES_RETAINED, &use.dirty_slices, retained, use.dirty_slices);
    same(walk, CHECK_USE_SLICES, &use.slices, taken_slices * SLICE, use.slices);
}

/* ---- what the map names ---- */

static void check_huge(struct walk *walk, const struct huge *h, const char *p)
{
    if (!walk->quiet)
        return; /* it changes without a lock */
    same(walk, CHECK_MAP_BASE, p, (size_t)h->base & ~(SLICE - 1), (size_t)p);
    if (h->length % SLICE != 0 || h->usable == 0 || h->usable > h->length)
        breach(walk, CHECK_HUGE_LENGTH, p, h->usable, h->length);
    note(walk, h->base, h->length, NULL);
}

static void check_bits(struct walk *walk, const struct slab *slab)
{
    unsigned blocks = size_classes[slab->cls].blocks;
    unsigned words = (blocks + 63) / 64;
    size_t bits = 0;
    uint64_t summary = 0;
    uint64_t last = blocks % 64 == 0 ? ~(uint64_t)0 : low_bits(blocks % 64);
    for (unsigned i = 0; i < words; i++) {
        uint64_t guards = ~guard_word(slab->cls, i) & (i + 1 < words ? ~(uint64_t)0 : last);
        same(walk, CHECK_SLAB_BITS, slab->base, 0, guards & ~slab->words[i]);
        bits += count_bits(slab->words[i] & ~guards);
        summary |= (uint64_t)((slab->words[i] & ~guards) != 0) << i;
    }
    same(walk, CHECK_SLAB_BITS, slab->base, 0, slab->words[words - 1] & ~last);
    same(walk, CHECK_SLAB_FREE, slab->base, bits, slab->free);
    same(walk, CHECK_SLAB_SUMMARY, slab->base, summary, slab->summary);
    same(walk, CHECK_SLAB_BITS, slab->base, guard_places(slab->cls), slab->places);
    if (bits >= slab->places)
        breach(walk, CHECK_SLAB_EMPTY, slab->base, slab->places - 1u, bits);
}

static void check_absent(struct walk *walk, const struct slab *slab)
{
    const struct size_class *c = &size_classes[slab->cls];
    uint64_t absent = slab->absent;
    for (unsigned i = 0; i < c->blocks && absent != 0; i++) {
        if (slab->words[i / 64] >> i % 64 & 1)
            continue;
        unsigned first = (unsigned)((size_t)i * c->size / os_page);
        unsigned end = (unsigned)(((size_t)(i + 1) * c->size - 1) / os_page) + 1;
        same(walk, CHECK_SLAB_ABSENT, slab->base + (size_t)i * c->size, 0,
             absent & low_bits(end) & ~low_bits(first));
    }
}

/* The slab's first slice. */
static void check_slab(struct walk *walk, struct slab *slab)
{
    const struct size_class *c = &size_classes[slab->cls];
    check_bits(walk, slab);
    check_absent(walk, slab);
    struct noted *found = noted_at(walk, slab->base);
    unsigned index = (unsigned)((uintptr_t)slab->base / SLICE % SUPERSLAB_SLICES);
    if (found == NULL || found->s != slab->home || index + c->slices > SUPERSLAB_SLICES) {
        breach(walk, CHECK_SLAB_HOME, slab->base, found == NULL ? 0 : (size_t)found->s,
               (size_t)slab->home);
        return;
    }
    uint64_t mask = slice_mask(index, c->slices);
    same(walk, CHECK_SLICES_SHARED, slab->base, 0, found->in_slabs & mask);
    if (walk->quiet && c->blocks == 1 && slab->usable > c->size)
        breach(walk, CHECK_WHOLE_LENGTH, slab->base, c->size, slab->usable);
    found->in_slabs |= mask;
    found->slabs |= (uint64_t)1 << index;
}

static void check_slab_entry(struct walk *walk, struct slab *slab, const char *p, unsigned bin)
{
    if (slab->cls >= CLASSES || !meta_holds(slab, slab_bytes(&size_classes[slab->cls]))) {
        breach(walk, CHECK_MAP_OWNER, p, CLASSES - 1, slab->cls);
        return;
    }
    /* A block of whole slices comes and goes without a lock. */
    bool in_use = bin == BIN_WHOLE || bin == BIN_SAMPLED;
    unsigned expected = BIN_FIRST + slab->cls;
    if (load_relaxed(&slab->shard) == SHARD_SAMPLED)
        expected = BIN_SAMPLED;
    else if (slab->thin)
        expected += CLASSES;
    else if (slab->cls >= CLASS_SLICES_FIRST)
        expected = in_use ? bin : BIN_WHOLE_FREE;
    same(walk, CHECK_MAP_BIN, p, expected, bin);
    if (p != slab->base)
        breach(walk, CHECK_MAP_BASE, p, (size_t)slab->base, (size_t)p);
    else
        check_slab(walk, slab);
}

static void check_map(struct walk *walk)
{
    for (uintptr_t address = 0; map_next(&address); address += SLICE) {
        char *p = (char *)address;
        void *owner = map_owner(p);
        unsigned bin = map_bin(p);
        if (!walk->quiet && (owner == NULL || bin == BIN_FOREIGN))
            continue; /* a large block on its way */
        size_t least = bin == BIN_HUGE ? sizeof(struct huge) : sizeof(struct slab);
        if (!meta_holds(owner, least))
            breach(walk, CHECK_MAP_OWNER, p, 1, 0);
        else if (bin == BIN_HUGE)
            check_huge(walk, owner, p);
        else if (bin_of_slab(bin) && bin < BIN_FIRST + STACKS)
            check_slab_entry(walk, owner, p, bin);
        else
            breach(walk, CHECK_MAP_BIN, p, BIN_FIRST, bin);
    }
}

/* ---- shards ---- */

static bool node_whole(const struct pairing_node *node, const struct pairing_node *before)
{
    return node == NULL || (meta_holds(node, sizeof(struct slab)) && node->prev == before);
}

/* Notes that a slab is in the tree; false if it has been met before or is none. */
static bool visit(struct walk *walk, unsigned shard, unsigned cls, const struct pairing_node *node)
{
    const struct slab *slab = (const struct slab *)node;
    struct noted *found = noted_at(walk, slab->base);
    uint64_t bit = (uint64_t)1 << (uintptr_t)slab->base / SLICE % SUPERSLAB_SLICES;
    if (found == NULL || (found->slabs & bit) == 0 || map_owner(slab->base) != slab ||
        slab->shard != shard || slab->cls != cls || node->key != (uintptr_t)slab->base)
        breach(walk, CHECK_PARTIAL_PLACE, slab, shard, slab->shard);
    if (found == NULL)
        return true;
    bool first = (found->in_tree & bit) == 0;
    found->in_tree |= bit;
    return first;
}

static void check_tree(struct walk *walk, unsigned shard, unsigned cls)
{
    const struct pairing_heap *slabs = shard_partial(shard, cls);
    const struct pairing_node *root = slabs->root;
    size_t steps = 0, most = 4 * walk->accounts->stats.slabs + 4;
    size_t blocks = 0, free = 0, absent = 0;
    uintptr_t least = root != NULL && meta_holds(root, sizeof *root) ? root->key : 0;
    if (!node_whole(root, NULL) || (root != NULL && root->next != NULL))
        return breach(walk, CHECK_PARTIAL_TREE, root, 1, 0);
    for (struct pairing_node *node = slabs->root; node != NULL; node = pairing_after(slabs, node)) {
        bool whole = node->key >= least && node_whole(node->child, node) &&
                     node_whole(node->next, node) &&
                     (node->child == NULL || node->child->key >= node->key);
        if (!whole || ++steps > most || !visit(walk, shard, cls, node)) {
            breach(walk, CHECK_PARTIAL_TREE, node, most, steps);
            return;
        }
        blocks += ((const struct slab *)node)->places;
        free += ((const struct slab *)node)->free;
        absent += count_bits(((const struct slab *)node)->absent);
    }
    same(walk, CHECK_PARTIAL_SUMS, root, blocks, shard_begun(shard, cls)->blocks);
    same(walk, CHECK_PARTIAL_SUMS, root, free, shard_begun(shard, cls)->free);
    same(walk, CHECK_PARTIAL_SUMS, root, absent, shard_begun(shard, cls)->absent);
}

static void check_shards(struct walk *walk)
{
    for (unsigned shard = 0; shard < SHARDS_MOST; shard = shard_after(shard))
        for (unsigned cls = 0; cls < CLASSES; cls++)
            check_tree(walk, shard, cls);
    for (size_t i = 0; i < walk->count; i++) {
        const struct noted *found = &walk->noted[i];
        for (uint64_t left = found->slabs; left != 0; left &= left - 1) {
            const char *p = found->s->base + lowest_bit(left) * SLICE;
            const struct slab *slab = map_owner(p);
            same(walk, CHECK_PARTIAL_MISSING, p, slab->free > 0,
                 found->in_tree >> lowest_bit(left) & 1);
        }
    }
}

/* ---- kept mappings, sums ---- */

static void check_kept(struct walk *walk)
{
    const struct huge_inside huge = huge_inside();
    size_t bytes = 0;
    for (const struct list *node = huge.dirty->next; node != huge.dirty; node = node->next) {
        const struct huge *h = list_entry(node, struct huge, node);
        if (!meta_holds(h, sizeof *h) || h->length == 0 || h->length % SLICE != 0) {
            breach(walk, CHECK_KEPT_LENGTH, h, SLICE, 0);
            return;
        }
        bytes += h->length;
        note(walk, h->base, h->length, NULL);
        size_t named = 0;
        for (size_t at = 0; at < h->length; at += SLICE)
            named += map_owner(h->base + at) != NULL || map_bin(h->base + at) != BIN_FOREIGN;
        same(walk, CHECK_KEPT_MAPPED, h->base, 0, named);
    }
    same(walk, CHECK_KEPT_BYTES, &use.dirty_huge, bytes, use.dirty_huge);
}

static void check_sums(struct walk *walk)
{
    const struct accounts *accounts = walk->accounts;
    const struct meta_parts meta = meta_parts();
    if (meta.free == SIZE_MAX)
        breach(walk, CHECK_META_FREE, NULL, 0, 1);
    if (!walk->quiet)
        return;
    if (meta.free != SIZE_MAX)
        same(walk, CHECK_META_SUM, NULL, meta_mapped(),
             accounts->metadata_used + accounts->stats.map + meta.free + meta.unused);
    const struct hakmem_stats *s = &accounts->stats;
    size_t parts = s->program + s->thread_caches + s->transfer + s->free_in_slabs + s->rest +
                   s->retained + s->untouched + s->kept + s->metadata + s->map;
    same(walk, CHECK_MAPPED_SUM, NULL, s->mapped, parts);
}

/* ---- threads' caches and transfer caches ---- */

/* Sets p's mark; false if it is set already. */
static bool mark(struct walk *walk, const void *p)
{
    const struct noted *found = noted_at(walk, p);
    if (found == NULL)
        return true;
    size_t grain = (size_t)((const char *)p - found->s->base) / CLASS_GRAIN;
    uint64_t *word = &walk->marks[found->number][grain / 64];
    uint64_t bit = (uint64_t)1 << grain % 64;
    bool first = (*word & bit) == 0;
    *word |= bit;
    return first;
}

/* The slab of p, checked as far as to be read; null where p is in none. */
static struct slab *slab_of(const void *p)
{
    struct slab *slab = bin_of_slab(map_bin(p)) ? map_owner(p) : NULL;
    if (slab == NULL || !meta_holds(slab, sizeof *slab + sizeof(uint64_t)))
        return NULL;
    return slab->cls < CLASSES ? slab : NULL;
}

/* A block that lies at `slot` in a stack or transfer cache of a class. */
static void check_block(struct walk *walk, void *const *slot, unsigned cls, enum check_rule rule)
{
    const void *p = *slot;
    const struct slab *slab = slab_of(p);
    if (slab == NULL || slab->cls != cls || !slab_begins(slab, p)) {
        breach(walk, rule, slot, cls, slab == NULL ? CLASSES : slab->cls);
        return;
    }
    if (slab_check(slab, p) == MISUSE_FREE)
        breach(walk, CHECK_BLOCK_FREE, p, 0, 1);
    if (!mark(walk, p))
        breach(walk, CHECK_BLOCK_TWICE, p, 1, 2);
}

/* Whether an array of a stack lies in one of the cache's chunks. */
static bool in_chunk(const struct cache *cache, void *const *base, size_t words)
{
    for (unsigned i = 0; i < cache->chunk_count && i < CHUNKS_MOST; i++) {
        size_t offset = (size_t)((const char *)base - cache->chunks[i]);
        if (offset < chunk_bytes(i))
            return offset + words * sizeof(void *) <= chunk_bytes(i);
    }
    return false;
}

/* Whether the stack lies in its array; its slots may be read then. */
static bool stack_bounds(struct walk *walk, const struct cache *cache, unsigned stack)
{
    const struct bin *bin = &cache->bins[BIN_FIRST + stack];
    const struct cold_bin *cold = &cache->cold[stack];
    if (!stack_begun(cold) && cold->capacity == 0 && bin->limit == NULL)
        return false;
    if (!in_chunk(cache, cold->base, cold->room + (size_t)1) || cold->capacity > cold->room) {
        breach(walk, CHECK_STACK_BOUNDS, bin, cold->room, cold->capacity);
        return false;
    }
    /* An owner that was stopped while it found its stack empty leaves the top a word below. */
    size_t top = (size_t)(load_relaxed(&bin->top) + 1 - cold->base);
    void **limit = load_relaxed(&bin->limit);
    if (top > cold->capacity + (size_t)1 || (walk->quiet && top == 0) ||
        (limit != NULL && limit != cold->base + cold->capacity)) {
        breach(walk, CHECK_STACK_BOUNDS, bin, cold->capacity, top - 1);
        return false;
    }
    return true;
}

/* The blocks of one of the threads' stacks, and what is noted as the topmost. */
static void check_blocks(struct walk *walk, void *const *blocks, size_t used, const void *topmost,
                         const void *where, unsigned cls)
{
    const void *expected = used > 0 ? blocks[used - 1] : window_mark();
    same(walk, CHECK_STACK_TOPMOST, where, (size_t)expected, (size_t)topmost);
    for (size_t i = 0; i < used; i++)
        check_block(walk, &blocks[i], cls, CHECK_STACK_BLOCK);
}

/* Without the slots where the owner may be pushing and popping. */
static void check_stack(struct walk *walk, const struct cache *cache, unsigned stack, bool slots)
{
    const struct bin *bin = &cache->bins[BIN_FIRST + stack];
    const struct cold_bin *cold = &cache->cold[stack];
    if (stack_bounds(walk, cache, stack) && slots)
        check_blocks(walk, cold->base + 1, stack_used(bin, cold), bin->topmost, bin,
                     stack_class(stack));
}

static void check_ahead(struct walk *walk, const struct cache *cache)
{
    for (unsigned cls = 0; cls < AHEAD_CLASSES; cls++) {
        void **blocks = NULL;
        const struct ahead *ahead = &cache->ahead[cls];
        size_t used = ahead_used(cache, cls, &blocks);
        check_blocks(walk, blocks, used, ahead->topmost, ahead, cls);
    }
}

static void check_cache(struct walk *walk, const struct cache *cache, bool slots)
{
    size_t capacity = 0;
    size_t weight = 0;
    for (unsigned stack = 0; stack < STACKS; stack++) {
        check_stack(walk, cache, stack, slots);
        size_t size = size_classes[stack].size;
        if (stack_is_large(stack))
            continue;
        capacity += cache->cold[stack].capacity * size;
        weight += cache->cold[stack].capacity * capacity_weight(size);
    }
    if (slots)
        check_ahead(walk, cache);
    same(walk, CHECK_CACHE_CAPACITY, cache, capacity, cache->capacity_bytes);
    same(walk, CHECK_CACHE_CAPACITY, cache, weight, cache->capacity_weight);
}

static void check_caches(struct walk *walk)
{
    size_t threads[SHARDS_MOST];
    words_clear(threads, sizeof threads);
    for (const struct cache *cache = caches_every(); cache != NULL; cache = cache->every) {
        enum ownership whose = registry_ownership(cache);
        /* What an orphan's thread was just doing when the fork came is not undone yet. */
        check_cache(walk, cache,
                    whose == CACHE_UNUSED || (whose == CACHE_LIVING && walk->quiet) ||
                        cache == cache_current());
        threads[cache->shard % SHARDS_MOST] += whose != CACHE_UNUSED;
    }
    same(walk, CHECK_CACHE_COUNT, caches_count(), walk->accounts->stats.threads, *caches_count());
    for (unsigned i = 0; i < shards_made() && walk->quiet; i++)
        same(walk, CHECK_SHARD_THREADS, shard_threads(i), threads[i], *shard_threads(i));
}

static void check_transfer(struct walk *walk, unsigned cls)
{
    uint32_t *count, capacity;
    void **blocks = transfer_inside(cls, &count, &capacity);
    if (*count > capacity) {
        breach(walk, CHECK_TRANSFER_BOUNDS, count, capacity, *count);
        return;
    }
    for (uint32_t i = 0; i < *count; i++)
        check_block(walk, &blocks[i], cls, CHECK_TRANSFER_BLOCK);
}

/* ---- the whole ---- */

size_t heap_check(struct accounts *accounts, bool quiet)
{
    account(accounts);
    struct walk walk = {.accounts = accounts, .quiet = quiet};
    /* Some more than there should be, to tell how many there are. */
    walk.superslab_room = accounts->stats.superslabs + 16;
    walk.room =
        walk.superslab_room + accounts->stats.huge_blocks + accounts->stats.kept_mappings + 16;
    size_t table = round_up(walk.room * sizeof *walk.noted, os_page);
    size_t bytes = table + round_up(walk.superslab_room * sizeof *walk.marks, os_page);
    char *notes = os_map(bytes);
    if (notes == NULL)
        return SIZE_MAX;
    walk.noted = (struct noted *)notes;
    walk.marks = (uint64_t(*)[MARK_WORDS])(notes + table);

    check_lists(&walk);
    check_map(&walk);
    check_superslabs(&walk);
    check_shards(&walk);
    check_caches(&walk);
    for (unsigned cls = 0; cls < CLASSES; cls++)
        check_transfer(&walk, cls);
    if (quiet) {
        check_kept(&walk);
        same(&walk, CHECK_USE_HUGE, &use.huge, accounts->huge_mapped, use.huge);
        same(&walk, CHECK_USE_HELD, &use.held, use.slices + use.huge + use_dirty(), use.held);
    }
    check_ranges(&walk);
    check_sums(&walk);
    os_unmap(notes, bytes);
    return accounts->breaches;
}
