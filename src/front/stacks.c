#include "front/stacks.h"

#include "back/meta.h"
#include "back/use.h"
#include "base/atomic.h"
#include "base/memory.h"
#include "base/policy.h"
#include "front/cache.h"
#include "heap/classes.h"
#include "heap/shards.h"
#include "heap/transfer.h"
#include "learn/capacity.h"
#include "learn/laws.h"
#include "learn/share.h"
#include "os/lock.h"
#include "os/os.h"

/* ---- arrays ---- */

static_assert(CLASS_FIRST_WORDS * sizeof(void *) <= CHUNK_FIRST,
              "the first arrays are in one chunk");

static_assert(((size_t)ARRAY_LEAST << (ARRAY_KINDS - 1)) * sizeof(void *) <= CHUNK_LATER,
              "each array is in one chunk");

static unsigned kind_of(size_t words)
{
    unsigned kind = 0;
    while ((size_t)ARRAY_LEAST << kind < words)
        kind++;
    return kind;
}

static bool chunk_add(struct cache *cache)
{
    if (cache->chunk_count == CHUNKS_MOST)
        return false;
    char *chunk = meta_take_pages(chunk_bytes(cache->chunk_count));
    if (chunk == NULL)
        return false;
    cache->chunks[cache->chunk_count++] = chunk;
    return true;
}

/* Goes on in the chunk of this number. */
static void chunk_begin(struct cache *cache, unsigned number)
{
    ASSERT(number < cache->chunk_count);
    cache->chunk = number;
    cache->bump = cache->chunks[number];
    cache->end = cache->bump + chunk_bytes(number);
}

bool arrays_start(struct cache *cache)
{
    cache->chunk_count = 0;
    return chunk_add(cache);
}

/* Forgets all; room for the first ones of all classes is set aside. */
static void arrays_reset(struct cache *cache)
{
    for (unsigned i = 0; i < ARRAY_KINDS; i++)
        cache->spare[i] = NULL;
    chunk_begin(cache, 0);
    cache->first = (void **)cache->bump;
    cache->bump += CLASS_FIRST_WORDS * sizeof(void *);
}

/* A class's first one, for which there is always room: in the order in which classes are first
 * used, so that few pages are touched. */
static void **array_first(struct cache *cache, unsigned stack)
{
    ASSERT(lock_held(cache->lock));
    void **array = cache->first;
    cache->first += size_classes[stack].first + 1;
    ASSERT(cache->first <= (void **)cache->chunks[0] + CLASS_FIRST_WORDS);
    return array;
}

/* An array of so many words, 10 * 2^n; null without memory, or beyond the largest. And back. */
static void **array_take(struct cache *cache, size_t words)
{
    ASSERT(lock_held(cache->lock));
    ASSERT(words >= 2);
    unsigned kind = kind_of(words);
    if (kind >= ARRAY_KINDS)
        return NULL;
    void **array = cache->spare[kind];
    if (array != NULL) {
        cache->spare[kind] = *array;
        return array;
    }
    size_t bytes = words * sizeof(void *);
    if ((size_t)(cache->end - cache->bump) < bytes) {
        if (cache->chunk + 1 == cache->chunk_count && !chunk_add(cache))
            return NULL;
        chunk_begin(cache, cache->chunk + 1);
    }
    array = (void **)cache->bump;
    ASSERT((size_t)(cache->end - cache->bump) >= bytes);
    cache->bump += bytes;
    return array;
}

static void array_give(struct cache *cache, void **array, size_t words)
{
    ASSERT(lock_held(cache->lock));
    ASSERT(words >= 2);
    unsigned kind = kind_of(words);
    *array = cache->spare[kind];
    cache->spare[kind] = array;
}

void arrays_purge(struct cache *cache)
{
    ASSERT(lock_held(cache->lock));
    /* Pages may be larger, and others' data in them. */
    for (unsigned i = 0; i < cache->chunk_count && chunk_bytes(i) % os_page == 0; i++)
        os_purge(cache->chunks[i], chunk_bytes(i));
}

/* ---- the journal ---- */

static struct lock journal_lock FORK_PAGE = LOCK(JOURNAL);
static struct journal_entry journal[JOURNAL_MOST]; /* lock: journal */
static size_t journaled;                           /* atomic; the same */

bool journal_open(void) { return unlikely(policy.learn_log != 0); }

void journal_add(const struct journal_entry *entry)
{
    lock_take(&journal_lock);
    journal[journaled % JOURNAL_MOST] = *entry;
    store_relaxed(&journaled, journaled + 1);
    lock_release(&journal_lock);
}

static COLD void journal_stack(unsigned stack, size_t from, struct capacity to)
{
    const struct journal_entry entry = {.subject = JOURNAL_STACK,
                                        .why = to.why,
                                        .thread = os_thread_id(),
                                        .size = size_classes[stack].size,
                                        .from = from,
                                        .to = to.blocks,
                                        .clock = clock_now()};
    journal_add(&entry);
}

void journal_compaction(unsigned shard, unsigned cls, bool before)
{
    bool now = shard_compacts(shard, cls);
    if (likely(now == before) || !journal_open())
        return;
    const struct journal_entry entry = {.subject = now ? JOURNAL_COMPACTS : JOURNAL_COMPACTED,
                                        .thread = os_thread_id(),
                                        .size = size_classes[cls].size,
                                        .clock = clock_now()};
    journal_add(&entry);
}

size_t journal_count(void) { return load_relaxed(&journaled); }

/* At the end of the process, which may come in a signal handler that interrupted journal_add: so it
 * waits for nobody. Without a cache's lock, so a fork may come meanwhile. */
#define TRIES 1000

bool journal_read(size_t number, struct journal_entry *entry)
{
    for (int tries = 1; !lock_try_unguarded(&journal_lock); tries++)
        if (tries == TRIES)
            return false;
    bool there = number < journaled && journaled - number <= JOURNAL_MOST;
    *entry = journal[number % JOURNAL_MOST];
    lock_release(&journal_lock);
    return there;
}

void journal_fork_child(void)
{
    if (journal_lock.state != 0)
        lock_reset(&journal_lock);
}

/* ---- capacities ---- */

/* What all stacks of a thread should hold at most, of as many threads as there are. */
static struct capacity_share cache_share(const struct cache *cache)
{
    size_t threads = caches_living();
    size_t keep = load_relaxed(&limits.keep);
    size_t bytes = smaller(load_relaxed(&policy.thread_bytes), keep);
    if (threads <= 1)
        return share_alone(bytes);
    size_t refills = cache->refills - cache->began;
    return share_at_work(threads, refills, load_relaxed(&use.slices), keep, bytes);
}

/* Blocks that a new stack of the class may hold. */
static size_t stack_first(unsigned stack, struct capacity_share share)
{
    const struct size_class *c = &size_classes[stack];
    if (policy.learn == 0 || stack_is_large(stack))
        return c->first;
    return share_first(c->size, c->first, share.weight);
}

static void stack_set_capacity(struct cache *cache, unsigned stack, size_t capacity)
{
    ASSERT(lock_held(cache->lock));
    ASSERT(capacity <= cache->cold[stack].room);
    struct cold_bin *cold = &cache->cold[stack];
    size_t size = size_classes[stack].size;
    if (!stack_is_large(stack)) {
        cache->capacity_bytes += (capacity - cold->capacity) * size;
        cache->capacity_weight += (capacity - cold->capacity) * capacity_weight(size);
    }
    cold->capacity = (uint16_t)capacity;
    stack_set_limit(cache, stack);
}

/* On a larger array where the old one is too small; where there is none nothing changes. Arrays are
 * 10 * 2^n words: arrays at equal distances modulo 4 KiB would make the stores of one
 * class block the loads of another (25 cycles a pair of random sizes, 32 with powers of two). */
static void stack_resize(struct cache *cache, unsigned stack, size_t capacity)
{
    ASSERT(lock_held(cache->lock));
    ASSERT(capacity <= ROOM_MOST);
    struct cold_bin *cold = &cache->cold[stack];
    struct bin *bin = &cache->bins[BIN_FIRST + stack];
    size_t first = size_classes[stack].first + 1u;
    if (capacity > cold->room) {
        void **array = array_take(cache, capacity + 1);
        if (array == NULL)
            return;
        size_t used = stack_used(bin, cold);
        words_move(array, cold->base, used + 1);
        if (cold->room >= first)
            array_give(cache, cold->base, cold->room + 1u);
        cold->base = array;
        cold->room = capacity & ROOM_MOST;
        store_relaxed(&bin->top, array + used);
    }
    stack_set_capacity(cache, stack, capacity);
}

void stack_grow_thin(struct cache *cache, unsigned stack)
{
    ASSERT(lock_held(cache->lock) && stack_is_thin(stack));
    const size_t most = LAW_FREES_A_LOOK - 1;
    size_t size = size_classes[stack].size;
    size_t capacity = cache->cold[stack].capacity;
    if (policy.learn == 0 || capacity >= most || most * size > policy.stack_bytes)
        return;
    if (cache->capacity_bytes + (most - capacity) * size <= cache_share(cache).bytes)
        stack_resize(cache, stack, most);
}

void stack_start_capacity(struct cache *cache, unsigned stack)
{
    ASSERT(lock_held(cache->lock));
    const struct size_class *c = &size_classes[stack];
    size_t first = stack_first(stack, cache_share(cache));
    stack_set_capacity(cache, stack, first);
    if (policy.learn == 0 && stack < CLASS_LARGE) /* not of thin slabs */
        stack_resize(cache, stack, capacity_fixed(c->size, c->first, policy.stack_bytes));
}

static void stack_learn(struct cache *cache, unsigned stack, struct capacity next)
{
    if (journal_open())
        journal_stack(stack, cache->cold[stack].capacity, next);
    stack_resize(cache, stack, next.blocks);
}

/* So that a thread that only frees by now finds it full before its last free, and can rest. */
void stack_fit(struct cache *cache, unsigned stack)
{
    ASSERT(lock_held(cache->lock));
    struct cold_bin *cold = &cache->cold[stack];
    if (policy.learn == 0 || stack_is_large(stack) || stack_is_thin(stack) || caches_living() <= 1)
        return;
    size_t used = stack_used(&cache->bins[BIN_FIRST + stack], cold);
    const struct capacity next = {larger(used, stack_first(stack, cache_share(cache))),
                                  CAPACITY_AGED};
    if (next.blocks < cold->capacity)
        stack_learn(cache, stack, next);
}

void stack_adapt(struct cache *cache, unsigned stack, struct capacity_seen seen)
{
    ASSERT(lock_held(cache->lock));
    ASSERT(stack_begun(&cache->cold[stack]));
    struct cold_bin *cold = &cache->cold[stack];
    if (policy.learn == 0)
        return;
    seen.size = size_classes[stack].size;
    seen.capacity = cold->capacity;
    seen.held = cache->capacity_bytes;
    seen.weight = cache->capacity_weight;
    seen.share = cache_share(cache);
    seen.first = stack_first(stack, seen.share);
    struct capacity next = capacity_step(&seen, policy.stack_bytes);
    if (next.why != CAPACITY_FITS)
        stack_learn(cache, stack, next);
}

/* ---- all stacks ---- */

unsigned begun_from(const struct cache *cache, unsigned stack)
{
    for (unsigned i = stack / 64; i < sizeof cache->begun / sizeof *cache->begun; i++) {
        uint64_t left = cache->begun[i];
        if (i == stack / 64)
            left &= ~low_bits(stack % 64);
        if (left != 0)
            return i * 64 + lowest_bit(left);
    }
    return STACKS;
}

void bin_close(struct bin *bin)
{
    store_relaxed(&bin->topmost, window_mark());
    store_relaxed(&bin->top, NULL);
    store_relaxed(&bin->limit, NULL);
}

void cache_reset(struct cache *cache)
{
    cache->capacity_bytes = cache->capacity_weight = cache->outflow = cache->large_bytes = 0;
    sub_relaxed(&use.stacked, cache->large_told);
    cache->large_told = 0;
    arrays_reset(cache);
    for (unsigned stack = begun_from(cache, 0); stack < STACKS;
         stack = begun_from(cache, stack + 1)) {
        bin_close(&cache->bins[BIN_FIRST + stack]);
        cache->cold[stack] = (struct cold_bin){0};
    }
    words_clear(cache->begun, sizeof cache->begun);
}

/* The blocks that a new thread frees first mostly come from another thread, which keeps their
 * neighbours. If the new thread got them again from malloc, each write to them would take the cache
 * line away from the other thread. */
static_assert(LAW_DIRECT_FREES < 16, "fits direct_frees");

static void stack_begin(struct cache *cache, unsigned stack)
{
    ASSERT(lock_held(cache->lock));
    ASSERT(!stack_begun(&cache->cold[stack]));
    struct bin *bin = &cache->bins[BIN_FIRST + stack];
    struct cold_bin *cold = &cache->cold[stack];
    void **array = array_first(cache, stack);
    *array = window_mark();
    cold->base = array;
    stack_set_top(bin, array);
    cache->begun[stack / 64] |= (uint64_t)1 << stack % 64;
    cold->room = size_classes[stack].first;
    bool shares_lines = CACHE_LINE / size_classes[stack].size > 1;
    bool others = shares_lines && caches_living() > 1 && !stack_is_thin(stack);
    cold->direct_frees = others ? LAW_DIRECT_FREES : 0;
    stack_start_capacity(cache, stack);
    cache_settle(cache, false);
}

void stack_settle(struct cache *cache, unsigned stack)
{
    ASSERT(lock_held(cache->lock));
    struct bin *bin = &cache->bins[BIN_FIRST + stack];
    struct cold_bin *cold = &cache->cold[stack];
    if (unlikely(!stack_begun(cold)))
        stack_begin(cache, stack);
    size_t used = stack_used(bin, cold);
    ASSERT(used <= cold->room && cold->capacity <= cold->room);
    stack_set_top(bin, cold->base + used);
}

COLD void cache_flows(struct cache *cache)
{
    ASSERT(lock_held(cache->lock));
    cache->ebb = 0;
    cache->most_taken = (ptrdiff_t)cache->taken > 0 ? cache->taken : 0;
    cache_close(cache, CLOSED_RESTS, false);
}

void cache_took(struct cache *cache, size_t bytes)
{
    ASSERT(lock_held(cache->lock));
    cache->taken += bytes;
    if (unlikely(cache->ebb > 0))
        cache_flows(cache);
    if ((ptrdiff_t)cache->taken > (ptrdiff_t)cache->most_taken)
        cache->most_taken = cache->taken;
}

/* The allocation clock is everybody's, so threads advance it in steps of a slice. */
void cache_gave(struct cache *cache, size_t bytes)
{
    ASSERT(lock_held(cache->lock));
    cache->taken -= bytes;
    cache->unclocked += bytes;
    if (cache->unclocked >= SLICE) {
        clock_advance(cache->unclocked);
        cache->unclocked = 0;
    }
}

struct finding stack_put_oldest(struct cache *cache, unsigned stack, size_t n, bool by_transfer)
{
    ASSERT(lock_held(cache->lock));
    struct bin *bin = &cache->bins[BIN_FIRST + stack];
    struct cold_bin *cold = &cache->cold[stack];
    void **oldest = cold->base + 1;
    size_t used = stack_used(bin, cold);
    ASSERT(n <= used && used <= cold->room);
    size_t sent = by_transfer ? transfer_put(stack, oldest, n) : 0;
    struct finding found = shards_put(oldest + sent, n - sent);
    words_move(oldest, oldest + n, used - n);
    stack_set_top(bin, cold->base + used - n);
    cache_gave(cache, n * size_classes[stack].size);
    if (stack_is_large(stack))
        cache->large_bytes -= n * size_classes[stack].size;
    return found;
}

struct finding stacks_put(struct cache *cache, unsigned first, unsigned end)
{
    struct finding found = {MISUSE_NONE, NULL};
    for (unsigned stack = begun_from(cache, first); stack < end;
         stack = begun_from(cache, stack + 1)) {
        stack_settle(cache, stack);
        size_t used = stack_used(&cache->bins[BIN_FIRST + stack], &cache->cold[stack]);
        finding_keep(&found, stack_put_oldest(cache, stack, used, false));
    }
    return found;
}

/* ---- blocks taken ahead ---- */

static_assert(offsetof(struct ahead, topmost) == offsetof(struct bin, topmost) &&
                  offsetof(struct ahead, top) == offsetof(struct bin, top),
              "cache_pop takes it for a bin");

void ahead_close(struct cache *cache)
{
    for (unsigned cls = 0; cls < AHEAD_CLASSES; cls++) {
        store_relaxed(&cache->ahead[cls].topmost, window_mark());
        store_relaxed(&cache->ahead[cls].top, NULL);
    }
}

size_t ahead_used(const struct cache *cache, unsigned cls, void ***blocks)
{
    struct sampler *sampler = load_relaxed(&cache->sampler);
    if (cls >= AHEAD_CLASSES || sampler == NULL)
        return 0;
    void **base = sampler->ahead[cls];
    void **top = load_relaxed(&cache->ahead[cls].top);
    *blocks = base + 1;
    /* A thread that was stopped while it found a closed one empty leaves the top below null. */
    bool any = top > base && top <= base + AHEAD_MOST;
    return any ? (size_t)(top - base) : 0;
}

SLOW size_t ahead_fill(struct cache *cache, unsigned cls, size_t n)
{
    struct ahead *ahead = &cache->ahead[cls];
    struct bin *bin = &cache->bins[BIN_FIRST + cls];
    n = smaller(smaller(n, AHEAD_MOST), stack_used(bin, &cache->cold[cls]));
    if (n == 0 || ahead->topmost != window_mark())
        return 0;
    /* As cache_pop_whole does with one: so a fork may come at any moment. */
    void **top = load_own(&bin->top);
    store_release(&bin->top, top - n);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    void *topmost = load_own(&bin->topmost);
    if (unlikely(topmost == window_mark())) {
        store_own(&bin->top, top);
        return 0;
    }
    void **base = cache->sampler->ahead[cls];
    store_own(&base[0], window_mark());
    for (size_t i = 1; i < n; i++)
        store_own(&base[i], load_own(top - n + i));
    store_own(&base[n], topmost);
    store_own(&bin->topmost, load_own(top - n));
    store_relaxed(&ahead->topmost, topmost);
    store_release(&ahead->top, base + n);
    return n;
}

bool ahead_holds(const struct cache *cache, unsigned cls, const void *p)
{
    void **blocks = NULL;
    size_t used = ahead_used(cache, cls, &blocks);
    for (size_t i = 0; i < used && i < AHEAD_MOST; i++)
        if (load_relaxed(&blocks[i]) == p)
            return true;
    return false;
}
