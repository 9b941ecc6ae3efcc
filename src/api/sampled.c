#include "api/sampled.h"

#include <string.h>

#include "api/blocks.h"
#include "api/door.h"
#include "back/map.h"
#include "back/meta.h"
#include "base/memory.h"
#include "base/policy.h"
#include "front/owners.h"
#include "front/stacks.h"
#include "heap/shards.h"
#include "heap/slab.h"
#include "life/profiling.h"
#include "life/scavenger.h"
#include "life/statistics.h"
#include "os/backtrace.h"
#include "os/os.h"
#include "profile/guarded.h"
#include "profile/noted.h"
#include "profile/python.h"
#include "profile/rate.h"
#include "report/report.h"

/* The unwinder may allocate: that is not sampled. */

struct sampler *sampler_mine(void)
{
    struct cache *cache = thread_cache();
    if (cache == NULL)
        return NULL;
    if (cache->sampler == NULL && lock_enter(cache->lock)) {
        struct sampler *sampler = meta_take(sizeof *sampler);
        if (sampler != NULL) {
            words_clear(sampler, sizeof *sampler);
            sampler->random = rate_random();
        }
        cache->sampler = sampler;
        lock_release(cache->lock);
    }
    return cache->sampler;
}

/* Without a sampler the rate may be another when the block is noted, by a factor of two at most,
 * and hardly ever. */
static bool due_by_chance(struct sampler *sampler, size_t bytes)
{
    uint64_t random = rate_random();
    size_t rate = rate_now();
    if (sampler != NULL)
        sampler->due = rate;
    return rate_gap(&random, bytes, rate) == 1;
}

/* At another rate all are drawn anew. */
static void follow_rate(struct sampler *sampler)
{
    rate_look(os_milliseconds());
    size_t rate = rate_now();
    if (likely(sampler->rate == rate))
        return;
    sampler->rate = rate;
    memset(sampler->gaps, 0, sizeof sampler->gaps);
}

SLOW bool sample_due_now(unsigned cls)
{
    struct sampler *sampler = sampler_mine();
    size_t bytes = size_classes[cls].size;
    if (sampler == NULL)
        return !thread_is_within(THREAD_SAMPLES) && due_by_chance(NULL, bytes);
    uint32_t *gap = &sampler->gaps[BIN_FIRST + cls];
    uint64_t *drawn = &sampler->drawn[cls / 64];
    uint64_t bit = (uint64_t)1 << cls % 64;
    if (*gap == 0) {
        follow_rate(sampler);
        *gap = rate_gap(&sampler->random, bytes, sampler->rate);
        *drawn = *gap <= GAP_MOST ? *drawn | bit : *drawn & ~bit;
        *gap = (uint32_t)smaller(*gap, GAP_MOST);
    }
    if (--*gap > 0)
        return false;
    sampler->due = sampler->rate;
    return (*drawn & bit) != 0 && !thread_is_within(THREAD_SAMPLES);
}

SLOW void *and_more_ahead(void *p, unsigned cls)
{
    struct cache *cache = cache_current();
    uint32_t *gap = &cache->sampler->gaps[BIN_FIRST + cls];
    if (likely(*gap > 1))
        *gap -= (uint32_t)ahead_fill(cache, cls, *gap - 1);
    return p;
}

SLOW bool sample_due_alone(size_t bytes)
{
    return !thread_is_within(THREAD_SAMPLES) && due_by_chance(sampler_mine(), bytes);
}

static void *block_take(unsigned cls)
{
    struct door door;
    void *p = NULL;
    if (!enter_to_take(&door))
        return NULL;
    size_t taken = shard_take(SHARD_SAMPLED, cls, &p + 1, 1);
    if (door.cache != NULL)
        cache_took(door.cache, taken * size_classes[cls].size);
    leave_taken(&door, 0);
    if (taken != 1)
        return NULL;
    kind()->ready(p, cls);
    return p;
}

/* Where the calling thread is, into trace.frames; returns how many. */
static SLOW unsigned frames_fill(struct frames trace)
{
    backtrace_fill_cheaply(&trace);
    return trace.count;
}

/* Where the calling thread is, native and in scripts. */
struct whereabouts {
    struct native_stack native;
    struct python_stack python;
    uintptr_t frames[FRAMES_MOST], ends[FRAMES_MOST];
};

static void whereabouts_read(struct whereabouts *at)
{
    thread_enters(THREAD_SAMPLES);
    at->native = (struct native_stack){.frames = at->frames, .ends = at->ends};
    at->native.count =
        frames_fill((struct frames){.most = FRAMES_MOST, .frames = at->frames, .stacks = at->ends});
    at->python.count = 0;
    if (load_relaxed(&policy.profile_scripts) != 0)
        python_read(&at->python, &at->native);
    thread_leaves(THREAD_SAMPLES);
}

/* A block of the program's. False where the heap is not to be entered. */
static SLOW bool origin_note(struct door *door, struct origin *from)
{
    struct whereabouts at;
    struct modules_met met;
    whereabouts_read(&at);
    modules_meet(&met, at.native.frames, at.native.count);
    if (!enter(door))
        return false;
    from->depth = python_mix(&at.python, &at.native, from->frames, FRAMES_MOST);
    from->since = modules_see(&met, from->frames, from->depth) ? 0 : os_nanoseconds();
    return true;
}

SLOW void sampled_note(void *p, size_t n, size_t bytes, const char *name)
{
    struct origin from = {.name = name != NULL ? name : ""};
    bool own = scavenger_calls() || profile_asks_libc();
    struct door door;
    if (own ? !enter(&door) : !origin_note(&door, &from)) {
        samples_miss();
        return;
    }
    const struct sampler *sampler = cache_current()->sampler;
    size_t rate = sampler != NULL ? sampler->due : rate_now();
    size_t block = bytes <= CLASS_MOST ? bytes : round_up(larger(n, 1), os_page);
    bool noted = samples_add(p, n, block, rate_weight(bytes, rate), own ? NULL : &from);
    if (noted && map_bin(p) == BIN_WHOLE)
        map_set(p, 1, BIN_SAMPLED, map_owner(p));
    leave(&door);
    size_t now = os_milliseconds();
    rate_count(now, from.depth);
    if (unlikely(load_relaxed(&policy.profile_rss) != 0))
        statistics_look(now);
}

SLOW void *sampled_resize(void *p, size_t n)
{
    struct door door;
    if (!enter(&door))
        return p;
    samples_resize(p, n, n <= CLASS_MOST ? 0 : round_up(n, os_page));
    leave(&door);
    return p;
}

static SLOW struct guarded_call call_now(void)
{
    struct guarded_call call = {.thread = os_thread_id()};
    if (thread_is_within(THREAD_SAMPLES))
        return call;
    thread_enters(THREAD_SAMPLES);
    call.depth = frames_fill((struct frames){.most = GUARDED_FRAMES, .frames = call.frames});
    thread_leaves(THREAD_SAMPLES);
    return call;
}

/* A block that is aligned may be freed with its alignment, which a guarded one does not know. */
static SLOW void *guarded_block_take(size_t n, size_t align)
{
    size_t now = os_milliseconds();
    if (align > 1 || n > os_page || !guards_due(now))
        return NULL;
    struct guarded_call call = call_now();
    void *p = guarded_take(n, rate_random(), &call);
    guards_taken(now);
    return p;
}

SLOW void *sampled_take(size_t n, size_t align, unsigned cls, const char *name)
{
    bool noted = closed_for(CLOSED_PROFILED);
    void *p = guarded_block_take(n, align);
    if (p == NULL && noted)
        p = block_take(cls);
    struct cache *cache = thread_cache();
    if (cache != NULL && p != NULL)
        note_taker(cache);
    if (p != NULL && noted)
        sampled_note(p, n, size_classes[cls].size, name);
    return p;
}

SLOW struct finding guarded_free(void *p)
{
    struct guarded_call call = call_now();
    struct door door;
    if (!enter(&door))
        return deferred_put(p);
    if (load_relaxed(&profile_used))
        samples_forget(p);
    struct finding found = {guarded_give(p, &call), p};
    leave_given(&door, 0);
    return found;
}

SLOW struct finding guarded_stays(void *p, size_t n)
{
    struct door door;
    struct finding found = {MISUSE_NONE, p};
    if (!enter(&door)) {
        store_relaxed(&sizes_unsure, true); /* it keeps its size */
        return found;
    }
    found.what = guarded_shrink(p, n);
    if (load_relaxed(&profile_used))
        samples_resize(p, n, 0);
    leave(&door);
    return found;
}

SLOW struct finding sampled_forget(void *p, unsigned *cls)
{
    struct door door;
    struct finding found = {MISUSE_NONE, NULL};
    *cls = CLASSES;
    if (!enter(&door))
        return kind()->give_later(p);
    struct slab *slab = map_owner(p);
    bool known = samples_forget(p);
    if (slab == NULL || (!known && slab->cls >= CLASS_SLICES_FIRST))
        found = (struct finding){slab == NULL ? MISUSE_FREE : MISUSE_INTERIOR, p};
    else
        *cls = slab->cls;
    if (*cls < CLASSES && *cls >= CLASS_SLICES_FIRST)
        map_set(p, 1, BIN_WHOLE, slab);
    leave(&door);
    return found;
}

COLD void sampled_count_huge(void *p, size_t n)
{
    const struct sampler *sampler = sampler_mine();
    if (sample_due_alone(n))
        sampled_note(p, n, n, sampler != NULL ? sampler->name : NULL);
}
