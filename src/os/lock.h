/* Locks of one word, their order, and what a fork means for them; in builds with assertions also
 * which thread holds what.
 *
 * A thread waits for a lock only if every lock that it holds has a lower rank, so no two threads
 * wait for each other. lock_try never waits, so it may be used for any lock. A thread that holds
 * the registry's lock may wait for a cache's lock while it holds other caches' locks: a fork takes
 * every cache's, in the registry's order, and only one thread does so at a time.
 *
 * Ranks from TRANSFER to JOURNAL are inside: a thread takes them only if it holds purge, cacheless
 * or a cache's lock. A fork takes these three kinds, so it knows that no thread is inside.
 * lock_try_unguarded is the exception. */
#ifndef HAKMEM_OS_LOCK_H
#define HAKMEM_OS_LOCK_H

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

/* ---- who holds what ---- */

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

/* ---- a lock ---- */

/* A lock of one word, free when zero, else with the number of the thread that holds it: spins a
 * little, then sleeps in the kernel. A thread that would wait for itself ends the process
 * (lock_is_left).
 *
 * A thread that forks holds every lock up to the caches' while the program's own handlers run, and
 * those may allocate: meanwhile it passes every lock. */
void fork_hold_locks(bool holds);

/* What the calling thread writes into a lock that it takes: the address of this, which no other
 * living thread has. Its lowest bits are free, and libc has little room for thread-local memory of
 * libraries that come late, so what else is to be known of a thread is there: whether it has taken
 * no lock yet, whether it passes every lock, and what it is in the middle of. */
extern __thread size_t lock_number HIDDEN;
#define LOCK_ODD ((size_t)1)       /* it is no address yet, or passes */
#define THREAD_SAMPLES ((size_t)2) /* a block is sampled: what that allocates is not */
#define THREAD_RECORDS ((size_t)4) /* a call is recorded: what that calls is not */
#define THREAD_BITS ((size_t)7)
#define LOCK_PASSES (LOCK_ODD | 8)
size_t lock_number_now(void);

FAST bool fork_holds_locks(void)
{
    return unlikely((lock_number & ~(THREAD_SAMPLES | THREAD_RECORDS)) == LOCK_PASSES);
}

/* No other living thread has it. */
FAST size_t thread_number(void) { return (size_t)&lock_number; }

FAST bool thread_is_within(size_t what) { return (lock_number & what) != 0; }
FAST void thread_enters(size_t what) { lock_number |= what; }
FAST void thread_leaves(size_t what) { lock_number &= ~what; }

/* What a fork writes lies together, since each page of it is copied once in the parent and once in
 * the child. */
#define FORK_PAGE __attribute__((section("hakmem_fork"), aligned(CACHE_LINE)))

struct lock {
    size_t state; /* atomic: 0 free, else lock_number, and LOCK_SLEEPERS if somebody may sleep */
    LOCK_IN_DEBUG
};
#define LOCK_SLEEPERS ((size_t)1)

/* The calling thread was about to wait for a lock that it holds itself: it has left an earlier call
 * by a jump out of a signal handler, or the handler that it is in interrupted one. Says so, and
 * ends the process (report/report.c). */
void lock_is_left(void) __attribute__((noreturn));

void lock_wait(struct lock *lock);
void lock_wake(struct lock *lock);

/* What lock_try is, but for what a debug build adds. */
FAST bool lock_grab(struct lock *lock)
{
    size_t free = 0, number = lock_number;
    return (unlikely((number & LOCK_ODD) != 0) && ((number = lock_number_now()) & LOCK_ODD) != 0) ||
           __atomic_compare_exchange_n(&lock->state, &free, number, false, __ATOMIC_ACQUIRE,
                                       __ATOMIC_RELAXED);
}

FAST void lock_take(struct lock *lock)
{
    lock_check_order(lock);
    if (unlikely(!lock_try(lock)))
        lock_wait(lock);
}

/* A fork waits for locks of libc's while it holds all of ours. A thread that has one of those may
 * come to one of ours, so nobody who is in the middle of the program's calls waits for a fork
 * without end: `lock_enter` fails once a fork has held every lock for a while, and its caller does
 * without (back/reserve.h, front/owners.h). */
enum { FORK_NONE, FORK_HOLDS, FORK_LASTS };
extern int fork_state HIDDEN; /* atomic: the forking thread's; who has waited makes it last */

bool lock_await(struct lock *lock);

FAST bool lock_enter(struct lock *lock)
{
    lock_check_order(lock);
    return likely(lock_try(lock)) || lock_await(lock);
}

FAST bool fork_is_over(void) { return __atomic_load_n(&fork_state, __ATOMIC_SEQ_CST) == FORK_NONE; }

FAST void lock_release(struct lock *lock)
{
    if (unlikely((lock_number & LOCK_ODD) != 0))
        return;
    lock_forget(lock);
    if (unlikely(__atomic_exchange_n(&lock->state, 0, __ATOMIC_RELEASE) & LOCK_SLEEPERS))
        lock_wake(lock);
}

/* Makes a lock that nobody else knows yet the calling thread's. */
FAST void lock_begin(struct lock *lock)
{
    lock->state = (size_t)&lock_number;
    lock_note(lock);
}

/* In a fork's child: frees a lock that a thread may hold which the child does not have. */
FAST void lock_reset(struct lock *lock) { lock->state = 0; }

#endif
