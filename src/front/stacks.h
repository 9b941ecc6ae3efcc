/* All stacks of a cache, for a thread that holds its lock: they are set up and emptied, and adapt
 * to what the thread does. */
#ifndef HAKMEM_FRONT_STACKS_H
#define HAKMEM_FRONT_STACKS_H

#include "base/defs.h"
#include "base/misuse.h"
#include "front/cache.h"
#include "learn/capacity.h"

/* The first stack from this one on that is begun, or STACKS. */
unsigned begun_from(const struct cache *cache, unsigned stack);

/* Its stack is empty, and full. */
void bin_close(struct bin *bin);

/* No stack is begun any more. */
void cache_reset(struct cache *cache);

/* Begins the stack if it is not. */
void stack_settle(struct cache *cache, unsigned stack);

/* Frees the n lowest of a stack: those that were pushed first. */
struct finding stack_put_oldest(struct cache *cache, unsigned stack, size_t n, bool by_transfer);

/* Or all of the stacks from `first` on, before `end`. The first wrong block found. */
struct finding stacks_put(struct cache *cache, unsigned first, unsigned end);

/* The thread is at work again, and ebbs no more. */
void cache_flows(struct cache *cache);

/* The thread took so many bytes from slabs, or gave so many back. */
void cache_took(struct cache *cache, size_t bytes);
void cache_gave(struct cache *cache, size_t bytes);

/* ---- capacities ----
 *
 * Stacks adapt to what their thread does: their capacities, as capacity_step decides
 * (learn/capacity.h), the arrays that these need, and a journal of what was learned. The owner
 * calls the functions for stacks and arrays, with the cache's lock. */

/* The first capacity of a stack whose first array is there. */
void stack_start_capacity(struct cache *cache, unsigned stack);

/* A stack of blocks of thin slabs was full: it may hold more, if the thread's share and the options
 * allow it. */
void stack_grow_thin(struct cache *cache, unsigned stack);

/* Where there are other threads: after a part of a stack that has grown was given up, it may hold
 * no more than is left. */
void stack_fit(struct cache *cache, unsigned stack);

/* What happened to a stack; `seen` has its event, and what else is known of it. */
void stack_adapt(struct cache *cache, unsigned stack, struct capacity_seen seen);

/* ---- arrays ----
 *
 * In chunks that belong to the cache. */

/* The first chunk of a new cache; false without memory. */
bool arrays_start(struct cache *cache);

/* Gives the chunks' pages back to the kernel; the arrays then hold zeroes. */
void arrays_purge(struct cache *cache);

/* ---- the journal ----
 *
 * What was learned last, and why, to show what the library does. Kept only if the option learn_log
 * is on. Thread safe. */

#define JOURNAL_MOST 256 /* the newest */

enum journal_subject {
    JOURNAL_STACK,
    JOURNAL_COMPACTS, /* a class begins to compact */
    JOURNAL_COMPACTED /* and ends */
};

struct journal_entry {
    enum journal_subject subject;
    enum capacity_reason why; /* of a stack */
    unsigned thread;          /* of a stack or a class, the kernel's number */
    size_t size;              /* of a stack or a class: bytes of a block */
    size_t from, to;          /* blocks of a stack */
    size_t clock;             /* bytes freed until then, as the allocation clock has them */
};

/* Whether lines are wanted. */
bool journal_open(void);

/* The caller holds a lock that a fork takes. */
void journal_add(const struct journal_entry *entry);

/* That a class began to compact in the shard, or ended, if it did `before` and does not, or the
 * other way. */
void journal_compaction(unsigned shard, unsigned cls, bool before);

/* How many lines were ever written; and one of them, counted from 0. False if it is gone, or can't
 * be read without waiting. */
size_t journal_count(void);
bool journal_read(size_t number, struct journal_entry *entry);

/* In a fork's child: a thread at the process's end may have been reading, without any other lock.
 */
void journal_fork_child(void);

/* ---- blocks taken ahead ----
 *
 * While a heap profile is on, malloc takes blocks of up to 640 bytes from small stacks of their
 * own. Only the slow path fills them, from the class's stack, with AHEAD_MOST blocks at most, and
 * counts these blocks. free pushes where it always does. So malloc comes to the slow path again and
 * again, also in a program that frees each block at once. These stacks are the owner's alone. Their
 * blocks count as free in a thread's cache. */

/* All are empty. */
void ahead_close(struct cache *cache);

/* The blocks of the class, where any are; another thread may find too many. */
size_t ahead_used(const struct cache *cache, unsigned cls, void ***blocks);

/* For the owner, whose stack of the class here is empty: up to n blocks come from the other stack.
 * How many. */
size_t ahead_fill(struct cache *cache, unsigned cls, size_t n);

/* The next, or null. All of the owner's allocations of the class have to take these first, since
 * they are counted already: what took others would be sampled more often. */
FAST void *ahead_take(struct cache *cache, unsigned cls)
{
    void *p;
    size_t offset = offsetof(struct cache, ahead) + cls * sizeof(struct ahead);
    return cls < AHEAD_CLASSES && cache_pop(cache, offset, &p) ? p : NULL;
}

/* Whether p is among them. */
bool ahead_holds(const struct cache *cache, unsigned cls, const void *p);

#endif
