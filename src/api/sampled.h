/* Sampled allocations. While a profile is on, malloc is closed (heap/classes.h), so each call takes
 * the slow path and counts here; one in many is sampled. A sampled block of a class comes from a
 * shard of its own, whose slabs name BIN_SAMPLED in the map: no cache takes what is freed there, so
 * its free takes the slow path, too. While no profile was on, nothing of this costs malloc or free
 * an instruction. */
#ifndef HAKMEM_API_SAMPLED_H
#define HAKMEM_API_SAMPLED_H

#include "base/atomic.h"
#include "base/misuse.h"
#include "base/policy.h"
#include "front/cache.h"
#include "front/stacks.h"
#include "profile/samples.h"

/* The calling thread's; null where it has none. */
struct sampler *sampler_mine(void);

bool sample_due_now(unsigned cls);

/* Counts a block of the bin, unless it may be one to sample. */
FAST bool sample_count(struct cache *cache, size_t bin)
{
    struct sampler *sampler = cache->sampler;
    if (unlikely(sampler == NULL) || unlikely(sampler->gaps[bin] <= 1))
        return false;
    sampler->gaps[bin]--;
    return true;
}

/* Counts a block of the class that does not come from ahead_take: whether it is sampled. */
FAST bool sample_due(unsigned cls)
{
    return !likely(sample_count(cache_current(), BIN_FIRST + cls)) && sample_due_now(cls);
}

/* The block p, after blocks of its class were taken ahead: up to the next sample at most. A tail
 * call, so that its callers need no frame for larger blocks. */
void *and_more_ahead(void *p, unsigned cls) __attribute__((returns_nonnull));

/* While blocks are counted, what malloc's fast body would have done, and takes some more blocks
 * ahead for its next calls; null where the slow path is to serve. */
FAST void *pop_unsampled(size_t n)
{
    void *p;
    if (unlikely(n > CLASS_SMALL) && unlikely(n > CLASS_MOST))
        return NULL;
    size_t offset = class_bin_offset_closed(n);
    struct cache *cache = cache_current();
    struct sampler *sampler = cache->sampler;
    if (unlikely(sampler == NULL))
        return NULL;
    uint32_t *gap = &sampler->gaps[offset / BIN_BYTES];
    unsigned cls = (unsigned)(offset / BIN_BYTES) - BIN_FIRST;
    p = ahead_take(cache, cls);
    if (unlikely(p != NULL))
        return p;
    if (unlikely(*gap <= 1) || unlikely(!cache_pop(cache, offset, &p)))
        return NULL;
    --*gap;
    return likely(cls < AHEAD_CLASSES) ? and_more_ahead(p, cls) : p;
}

/* What malloc's fast body would have done, while none is to be sampled; null as above. */
FAST void *pop_uncounted(size_t n)
{
    void *p;
    if (unlikely(n > CLASS_SMALL) && unlikely(n > CLASS_MOST))
        return NULL;
    return likely(cache_pop(cache_current(), class_bin_offset_closed(n), &p)) ? p : NULL;
}

/* While malloc is closed, for whatever reason. */
FAST void *pop_closed(size_t n)
{
    return likely(closed_for(CLOSED_PROFILED | CLOSED_GUARDS)) ? pop_unsampled(n)
                                                               : pop_uncounted(n);
}

/* Whether a block of so many bytes is, of those that no gap counts: without a class, or past the
 * stacks. */
bool sample_due_alone(size_t bytes);

/* A block for n bytes, or of the class, guarded or noted as sampled, or both; null where there is
 * none. The call has this name, or none if it is null. */
void *sampled_take(size_t n, size_t align, unsigned cls, const char *name);

/* Notes p, which nobody else has yet, as sampled: n bytes are wanted, and it takes `bytes`. The
 * call has this name, or none if it is null. */
void sampled_note(void *p, size_t n, size_t bytes, const char *name);

/* realloc leaves p, which it returns, where it is: with n bytes. */
void *sampled_resize(void *p, size_t n);

/* realloc leaves p, which guarded_holds, where it is: with n bytes, which are no more than before.
 * Whether its page was found to be whole. */
struct finding guarded_stays(void *p, size_t n);

/* A huge block has another size: notes it if it is due. */
void sampled_count_huge(void *p, size_t n);

/* Frees p, which guarded_holds. */
struct finding guarded_free(void *p);

/* The free of p begins, which the map says is sampled: it is so no longer, and then to be freed as
 * any block of `*cls`. CLASSES: there is nothing more to do, or something was found. */
struct finding sampled_forget(void *p, unsigned *cls);

#endif
