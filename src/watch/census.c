#include "watch/census.h"

#include "back/large.h"
#include "back/meta.h"
#include "back/reserve.h"
#include "back/superslabs.h"
#include "base/text.h"
#include "front/roster.h"
#include "front/stack.h"
#include "heap/slab.h"
#include "heap/transfer.h"
#include "os/lock.h"
#include "os/os.h"

/* ---- what the map names ---- */

/* Where threads push and pop meanwhile, a block may be seen in two stacks. */
static size_t minus(size_t a, size_t b) { return a > b ? a - b : 0; }

static void count_slab(struct census *census, const struct slab *slab)
{
    const struct size_class *c = &size_classes[slab->cls];
    struct census_class *sum = &census->classes[slab->cls];
    sum->slabs++;
    sum->free += slab->free;
    sum->taken += c->blocks - slab->free;
    census->slabs++;
    census->slab_slices += c->slices;
    census->rest += c->slices * SLICE - (size_t)c->blocks * c->size;
    census->free_in_slabs += (size_t)slab->free * c->size;
    census->absent += count_bits(slab->absent) * os_page;
    census->metadata_used += meta_size(slab_bytes(c));
    /* What the program didn't ask for of a block of whole slices. */
    if (c->blocks == 1 && slab->usable != 0)
        census->rest += c->size - slab->usable;
}

static void count_run(struct census *census, const struct superslab *s, uintptr_t address)
{
    size_t index = (address - (uintptr_t)s->base) / SLICE % SUPERSLAB_SLICES;
    census->runs++;
    census->run_slices += s->run[index];
    census->run_usable += s->usable[index];
    census->rest += s->run[index] * SLICE - s->usable[index];
}

static void count_huge(struct census *census, const struct huge *h)
{
    census->huge++;
    census->huge_mapped += h->length;
    census->huge_usable += h->usable;
    census->rest += h->length - h->usable;
    census->metadata_used += meta_size(sizeof *h);
}

/* Free, and in a thread's pocket. */
static void count_retired(struct census *census, const void *owner, const void *p)
{
    size_t bytes = large_retired_bytes(p, owner);
    if (large_retired_bin(owner) == BIN_HUGE) {
        census->huge_mapped += bytes;
        census->metadata_used += meta_size(sizeof(struct huge));
    } else {
        census->run_slices += bytes / SLICE;
    }
    census->cached += bytes;
}

static void count_map(struct census *census)
{
    for (uintptr_t address = 0; map_next(&address); address += SLICE) {
        void *p = (void *)address;
        void *owner = map_owner(p);
        unsigned bin = map_bin(p);
        if (!meta_holds(owner, CACHE_LINE))
            continue; /* on its way out, or broken */
        if (bin == BIN_LARGE)
            count_run(census, owner, address);
        else if (bin == BIN_HUGE)
            count_huge(census, owner);
        else if (bin == BIN_RETIRED)
            count_retired(census, owner, p);
        else if (bin_of_slab(bin) && ((struct slab *)owner)->base == p)
            count_slab(census, owner);
    }
}

/* ---- caches ---- */

/* Of blocks of whole slices that lie free in a stack or transfer cache nothing is the program's, so
 * nothing is behind what it may use: count_slab added that. */
static void count_cached(struct census *census, void *const *blocks, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct slab *slab = bin_of_slab(map_bin(blocks[i])) ? map_owner(blocks[i]) : NULL;
        if (slab != NULL && meta_holds(slab, sizeof *slab) && slab->cls >= CLASS_SLICES_FIRST &&
            slab->cls < CLASSES && slab->usable != 0)
            census->rest = minus(census->rest, size_classes[slab->cls].size - slab->usable);
    }
}

static void count_stacks(struct census *census, const struct cache *cache)
{
    census->refills += cache->refills;
    census->flushes += cache->flushes;
    census->metadata_used += meta_size(sizeof *cache) + cache->chunk_count * CHUNK;
    for (unsigned cls = 0; cls < CLASSES; cls++) {
        const struct bin *bin = &cache->bins[BIN_FIRST + cls];
        const struct depot *depot = &cache->depots[cls];
        /* The thread may push and pop meanwhile. */
        size_t used = stack_used(bin, depot);
        used = used <= depot->room ? used : 0;
        census->classes[cls].cached += used;
        if (cls >= CLASS_SLICES_FIRST && used > 0 && !cache->asleep)
            count_cached(census, stack_floor(depot) + 1, used);
    }
}

static void count_caches(struct census *census)
{
    for (struct cache *cache = caches_every(); cache != NULL; cache = cache->every) {
        census->caches += roster_ownership(cache) == CACHE_LIVING;
        census->orphans += roster_ownership(cache) == CACHE_ORPHAN;
        count_stacks(census, cache);
    }
}

/* ---- sums ---- */

static void count_classes(struct census *census)
{
    for (unsigned cls = 0; cls < CLASSES; cls++) {
        struct census_class *sum = &census->classes[cls];
        size_t size = size_classes[cls].size;
        uint32_t *count, capacity;
        void **blocks = transfer_inside(cls, &count, &capacity);
        sum->waiting = *count;
        if (cls >= CLASS_SLICES_FIRST)
            count_cached(census, blocks, sum->waiting);
        census->cached += sum->cached * size;
        census->waiting += sum->waiting * size;
        if (capacity != 0)
            census->metadata_used += meta_size(capacity * sizeof(void *));
    }
}

void census_count(struct census *census)
{
    ASSERT(lock_all_held());
    *census = (struct census){.mapped = os_mapped()};
    count_map(census);
    count_caches(census);
    count_classes(census);

    const struct large_inside large = large_inside();
    for (const struct list *node = large.kept->next; node != large.kept; node = node->next) {
        census->kept_mappings++;
        census->metadata_used += meta_size(sizeof(struct huge));
    }
    census->kept = *large.kept_bytes;

    const struct superslabs_inside all = superslabs_inside();
    census->superslabs = *all.mapped;
    census->metadata_used += census->superslabs * meta_size(sizeof(struct superslab));
    census->retained = *all.retained * SLICE;
    size_t blocks = (census->slab_slices + census->run_slices) * SLICE;
    census->untouched = superslabs_bytes() - blocks - census->retained;

    const struct meta_parts meta = meta_parts();
    census->metadata = meta_mapped() + meta.guards;
    census->map = map_bytes();

    /* All that is left of superslabs and huge blocks. */
    census->program = minus(blocks + census->huge_mapped, census->rest + census->free_in_slabs +
                                                              census->cached + census->waiting);

    const struct reserve_parts reserve = reserve_parts();
    census->program += reserve.used;
    census->rest += reserve.mapped - reserve.used;
}

/* ---- the report ---- */

#define CENSUS_RULE_WORDS(rule, words) [CENSUS_##rule] = #rule ": " words,
static const char *const rule_words[] = {CENSUS_RULES(CENSUS_RULE_WORDS)};

COLD void census_report(const struct census *census)
{
    for (size_t i = 0; i < census->breaches && i < CENSUS_BREACHES_KEPT; i++) {
        const struct census_breach *breach = &census->first[i];
        char line[512];
        struct text text;
        text_init(&text, line, sizeof line);
        text_add(&text, "hakmem: heap check: broken: ");
        text_add(&text, rule_words[breach->rule]);
        text_add(&text, "; at ");
        text_add_hex(&text, (uintptr_t)breach->where);
        text_add(&text, " expected ");
        text_add_number(&text, breach->expected);
        text_add(&text, ", found ");
        text_add_number(&text, breach->found);
        text_add(&text, "\n");
        os_print_error(text.start, text.used);
    }
    if (census->breaches > CENSUS_BREACHES_KEPT)
        os_print_error("hakmem: heap check: more is broken, not shown\n", 46);
}
