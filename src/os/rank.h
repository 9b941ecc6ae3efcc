/* The order of locks, and, in builds with assertions, which thread holds what.
 *
 * A thread waits for a lock only if every lock that it holds has a lower rank, so no two threads
 * wait for each other. lock_try never waits, so it may be used for any lock. A thread that holds
 * the registry's lock may wait for a cache's lock while it holds other caches' locks: a fork takes
 * every cache's, in the registry's order, and only one thread does so at a time.
 *
 * Ranks from TRANSFER to JOURNAL are inside: a thread takes them only if it holds purge, cacheless
 * or a cache's lock. A fork takes these three kinds, so it knows that no thread is inside.
 * lock_try_unguarded is the exception. */
#ifndef HAKMEM_OS_RANK_H
#define HAKMEM_OS_RANK_H

#include "base/defs.h"

#define LOCK_RANKS(RANK)                                                                          \
    RANK(START, "start", "the process's start; every fork, and every walk of the heap")           \
    RANK(PURGE, "purge", "one thread at a time gives memory back")                                \
    RANK(CACHELESS, "cacheless",                                                                  \
         "the lock of threads without a cache; creating and ending caches")                       \
    RANK(REGISTRY, "registry", "the list of caches and their owners; with it every cache's lock") \
    RANK(CACHE, "cache", "one for each cache: its arrays, limits and capacities")                 \
    RANK(TRANSFER, "transfer", "one for each class: blocks on their way between threads")         \
    RANK(SHARD, "shard", "slabs and their bits; a second one only by lock_try")                   \
    RANK(DIRTY, "dirty", "the big-block cache: mappings of freed huge blocks")                    \
    RANK(SUPERSLABS, "superslabs", "slices, free or not")                                         \
    RANK(MAP, "map", "new leaves of the address map")                                             \
    RANK(PROFILE, "profile", "sampled blocks, and the sites that allocated them")                 \
    RANK(META, "meta", "memory for descriptors and arrays")                                       \
    RANK(JOURNAL, "journal", "what was learned last")                                             \
    RANK(RESERVE, "reserve", "blocks for threads that find the heap held by a fork")

#define LOCK_RANK_NAME(name, word, what) RANK_##name,
enum lock_rank { RANK_NONE, LOCK_RANKS(LOCK_RANK_NAME) RANK_COUNT };
#undef LOCK_RANK_NAME

struct lock;

/* Whether the calling thread holds the lock. A thread that forks counts as holding all locks. */
bool lock_held(const struct lock *lock);

/* Whether the calling thread holds any lock of a rank. */
bool lock_rank_held(enum lock_rank rank);

/* Whether the calling thread holds no lock. */
bool lock_none_held(void);

/* Whether no other thread is inside: every lock up to the caches' is the calling thread's. */
bool lock_all_held(void);

/* Takes a lock if it is free. The second also takes one that is inside without a cache's lock:
 * where a fork's child can't be harmed by a holder that it lacks. */
#if HAKMEM_ASSERT
bool lock_try(struct lock *lock);
bool lock_try_unguarded(struct lock *lock);
#else
#define lock_try(lock) lock_grab(lock)
#define lock_try_unguarded(lock) lock_grab(lock)
#endif

#if HAKMEM_ASSERT

/* In the struct of a lock. */
#define LOCK_IN_DEBUG unsigned char rank;

/* What a lock in static memory begins with. */
#define LOCK(name)          \
    {                       \
        .rank = RANK_##name \
    }

/* One in other memory, which is zero. */
void lock_set_rank(struct lock *lock, enum lock_rank rank);

/* Before a thread waits. */
void lock_check_order(const struct lock *lock);

/* It has the lock, which is true; and gives it back. One that forks passes both. */
bool lock_noted(struct lock *lock);
void lock_forget(struct lock *lock);

/* It has a lock that nobody else knows. */
void lock_note(struct lock *lock);

#else
#define LOCK_IN_DEBUG
#define LOCK(name) \
    {              \
        0          \
    }
#define lock_set_rank(lock, rank) ((void)0)
#define lock_check_order(lock) ((void)0)
#define lock_noted(lock) true
#define lock_forget(lock) ((void)0)
#define lock_note(lock) ((void)0)
#endif

#endif
