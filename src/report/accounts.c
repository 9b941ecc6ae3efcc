#include "report/accounts.h"

#include "back/huge.h"
#include "back/meta.h"
#include "back/reserve.h"
#include "back/superslabs.h"
#include "back/use.h"
#include "base/memory.h"
#include "base/policy.h"
#include "base/text.h"
#include "front/cache.h"
#include "front/hardened.h"
#include "front/stacks.h"
#include "heap/hardening.h"
#include "heap/shards.h"
#include "heap/slab.h"
#include "heap/transfer.h"
#include "os/lock.h"
#include "os/os.h"
#include "profile/guarded.h"
#include "profile/samples.h"

/* ---- what the map names ---- */

/* Slabs of a class, with so many blocks that can be handed out, free ones of them, and pages that
 * went back or that nobody can touch. */
static void add_slabs(struct accounts *all, unsigned cls, size_t slabs, size_t places, size_t free,
                      size_t absent)
{
    const struct size_class *c = &size_classes[cls];
    struct class_accounts *sum = &all->classes[cls];
    sum->slabs += slabs;
    sum->free += free;
    sum->taken += places - free;
    all->stats.slabs += slabs;
    all->slab_slices += slabs * c->slices;
    all->stats.rest += slabs * c->slices * SLICE - places * c->size;
    all->stats.free_in_slabs += free * c->size;
    all->stats.returned_in_slabs += absent * os_page;
    all->metadata_used += slabs * meta_size(slab_bytes(c));
}

static void count_slab(struct accounts *all, const struct slab *slab, unsigned bin)
{
    const struct size_class *c = &size_classes[slab->cls];
    add_slabs(all, slab->cls, 1, slab->places, slab->free,
              count_bits(slab->absent | guard_pages_of(slab->cls)));
    /* What the program didn't ask for of a block of whole slices; of a free one nothing is its. */
    size_t usable = load_relaxed(&slab->usable);
    if (c->blocks == 1 && bin != BIN_WHOLE_FREE && usable != 0)
        all->stats.rest += c->size - usable;
}

static void count_huge(struct accounts *all, const struct huge *h)
{
    all->stats.huge_blocks++;
    all->huge_mapped += h->length;
    all->huge_usable += h->usable;
    all->stats.rest += h->length - h->usable;
    all->stats.untouched += h->before != 0 ? h->mapped - h->length : 0; /* guards */
    all->metadata_used += meta_size(sizeof *h);
}

/* Slabs of a class of small blocks, without a look at each: a large heap has so many that this
 * would keep other threads waiting. Those with free blocks are in the shards' sums. */
static void count_slabs(struct accounts *all, unsigned cls, size_t slabs)
{
    size_t free = 0, absent = slabs * count_bits(guard_pages_of(cls));
    for (unsigned i = 0; i < shards_made(); i++) {
        free += shard_begun(i, cls)->free;
        absent += shard_begun(i, cls)->absent;
    }
    add_slabs(all, cls, slabs, slabs * guard_places(cls), free, absent);
}

/* Of the slab of small blocks at an address; CLASSES where there is none. */
static unsigned small_class_at(uintptr_t address)
{
    unsigned bin = map_bin((const void *)address);
    unsigned cls = bin >= BIN_FIRST ? stack_class(bin_stack(bin)) : CLASSES;
    return cls < CLASS_SLICES_FIRST ? cls : CLASSES;
}

static void count_map(struct accounts *all)
{
    size_t slabs[CLASS_SLICES_FIRST] = {0};
    for (uintptr_t address = 0; map_next(&address); address += SLICE) {
        unsigned cls;
        for (; (cls = small_class_at(address)) != CLASSES; address += SLICE)
            slabs[cls]++;
        void *p = (void *)address;
        void *owner = map_owner(p);
        unsigned bin = map_bin(p);
        if (!meta_holds(owner, CACHE_LINE))
            continue; /* none, on its way out, or broken */
        if (bin == BIN_HUGE)
            count_huge(all, owner);
        else if (bin_of_slab(bin) && ((struct slab *)owner)->base == p)
            count_slab(all, owner, bin);
    }
    for (unsigned cls = 0; cls < CLASS_SLICES_FIRST; cls++)
        count_slabs(all, cls, slabs[cls]);
}

/* ---- caches ---- */

static void count_stacks(struct accounts *all, const struct cache *cache)
{
    all->stats.refills += cache->refills;
    all->stats.flushes += cache->flushes;
    all->metadata_used += meta_size(sizeof *cache);
    if (cache->sampler != NULL)
        all->metadata_used += meta_size(sizeof *cache->sampler);
    all->metadata_used += hardened_metadata(cache);
    for (unsigned i = 0; i < cache->chunk_count; i++)
        all->metadata_used += round_up(chunk_bytes(i), os_page);
    for (unsigned stack = 0; stack < STACKS; stack++) {
        unsigned cls = stack_class(stack);
        const struct cold_bin *cold = &cache->cold[stack];
        /* The thread may push and pop meanwhile. */
        size_t used = stack_used(&cache->bins[BIN_FIRST + stack], cold);
        all->classes[cls].cached += used <= cold->room ? used : 0;
    }
    void **blocks;
    for (unsigned cls = 0; cls < AHEAD_CLASSES; cls++)
        all->classes[cls].cached += ahead_used(cache, cls, &blocks);
    for (unsigned cls = 0; cls < CLASS_SLICES_FIRST; cls++)
        all->classes[cls].cached += hardened_count(cache, cls);
}

static void count_caches(struct accounts *all)
{
    for (struct cache *cache = caches_every(); cache != NULL; cache = cache->every) {
        all->stats.threads += registry_ownership(cache) == CACHE_LIVING;
        count_stacks(all, cache);
    }
}

/* ---- sums ---- */

static void count_compaction(struct accounts *all, unsigned cls)
{
    struct class_accounts *sum = &all->classes[cls];
    for (unsigned i = 0; i < SHARDS_MOST; i = shard_after(i)) {
        const struct begun *begun = shard_begun(i, cls);
        sum->compacts += begun->compacts;
        sum->compacted += begun->compacted;
        sum->regained += begun->regained;
        all->stats.compactions += begun->compactions;
    }
    all->stats.compacted += sum->compacted;
    all->stats.regained += sum->regained;
}

static void count_classes(struct accounts *all)
{
    for (unsigned cls = 0; cls < CLASSES; cls++) {
        struct class_accounts *sum = &all->classes[cls];
        size_t size = size_classes[cls].size;
        uint32_t *count, capacity;
        transfer_inside(cls, &count, &capacity);
        sum->in_transfer = *count;
        /* Where threads push and pop meanwhile, a block may be seen in two stacks. */
        size_t in_use = excess(sum->taken, sum->cached + sum->in_transfer);
        if (cls >= CLASS_SLICES_FIRST)
            all->stats.large_blocks += in_use;
        else
            all->stats.rest += in_use * hardening.canary;
        count_compaction(all, cls);
        all->stats.thread_caches += sum->cached * size;
        all->stats.transfer += sum->in_transfer * size;
        if (capacity != 0)
            all->metadata_used += meta_size(capacity * sizeof(void *));
    }
}

static void count_returned(struct accounts *all, const struct purge_counters *kind)
{
    all->stats.returned += load_relaxed(&kind->purged);
    all->stats.taken_again += load_relaxed(&kind->refaulted);
}

void account(struct accounts *all)
{
    ASSERT(lock_all_held());
    words_clear(all, sizeof *all);
    all->stats.mapped = os_mapped();
    all->stats.mapped_most = os_mapped_most();
    all->stats.held = load_relaxed(&use.held);
    count_map(all);
    count_caches(all);
    count_classes(all);

    const struct huge_inside huge = huge_inside();
    for (struct list *node = huge.dirty->next; node != huge.dirty; node = node->next) {
        const struct huge *h = list_entry(node, struct huge, node);
        all->stats.untouched += h->before != 0 ? h->mapped - h->length : 0;
        all->stats.kept_mappings++;
        all->metadata_used += meta_size(sizeof(struct huge));
    }
    all->stats.kept = use.dirty_huge;

    all->metadata_used += *huge.forbidden_count * meta_size(sizeof(struct huge));
    all->metadata_used += samples_bytes();
    if (class_offsets_closed != NULL)
        all->metadata_used += round_up(sizeof *class_offsets_closed, os_page);

    all->stats.superslabs = superslabs_mapped();
    all->metadata_used += all->stats.superslabs * meta_size(sizeof(struct superslab));
    all->stats.retained = use.dirty_slices * SLICE;
    size_t blocks = all->slab_slices * SLICE;
    all->stats.untouched +=
        superslabs_bytes() - blocks - all->stats.retained + *huge.forbidden_bytes;
    all->stats.untouched += zero_sized_mapped();

    count_returned(all, &counters.pages);
    count_returned(all, &counters.slices);
    count_returned(all, &counters.huge);
    all->stats.returning_ns = load_relaxed(&counters.returning_ns);

    for (unsigned i = 0; i < SHARDS_MOST; i = shard_after(i))
        all->metadata_used += shard_bytes(i);
    const struct meta_parts meta = meta_parts();
    all->stats.map = map_bytes();
    all->stats.metadata = meta_mapped() + meta.guards - all->stats.map;

    /* All that is left of superslabs and huge blocks. */
    all->stats.program =
        excess(blocks + all->huge_mapped, all->stats.rest + all->stats.free_in_slabs +
                                              all->stats.thread_caches + all->stats.transfer);

    const struct reserve_parts reserve = reserve_parts();
    all->stats.program += reserve.used;
    all->stats.rest += reserve.mapped - reserve.used;

    const struct guarded_parts guarded = guarded_parts();
    all->stats.program += guarded.used;
    all->stats.rest += guarded.pages - guarded.used;
    all->stats.untouched += guarded_region.bytes - guarded.pages;
    all->metadata_used += guarded.notes;
}

/* ---- what is broken ---- */

#define CHECK_RULE_WORDS(rule, words) [CHECK_##rule] = #rule ": " words,
static const char *const rule_words[] = {CHECK_RULES(CHECK_RULE_WORDS)};

COLD void heap_check_report(const struct accounts *accounts)
{
    for (size_t i = 0; i < accounts->breaches && i < CHECK_BREACHES_KEPT; i++) {
        const struct check_breach *one = &accounts->first[i];
        char line[512];
        struct text text = text_of(
            line, sizeof line, "hakmem: heap check: broken: %s; at %#lx expected %zu, found %zu\n",
            rule_words[one->rule], (uintptr_t)one->where, one->expected, one->found);
        os_print_error(text.start, text.used);
    }
    if (accounts->breaches > CHECK_BREACHES_KEPT)
        os_print_error("hakmem: heap check: more is broken, not shown\n", 46);
}
