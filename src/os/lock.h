/* Locks of one word, and what a fork means for them; rank.h has their order. */
#ifndef HAKMEM_OS_LOCK_H
#define HAKMEM_OS_LOCK_H

#include "base/defs.h"
#include "os/rank.h"

/* A lock of one word, free when zero: spins a little, then sleeps in the kernel.
 *
 * A thread that forks holds every lock up to the caches' while the program's own handlers run, and
 * those may allocate: while `fork_holds_locks` is set, the calling thread passes every lock. */
extern __thread bool fork_holds_locks HIDDEN;

/* What a fork writes lies together, since each page of it is copied once in the parent and once in
 * the child. */
#define FORK_PAGE __attribute__((section("hakmem_fork"), aligned(CACHE_LINE)))

struct lock {
    int state; /* atomic: 0 free, 1 held, 2 held and somebody may sleep */
    LOCK_IN_DEBUG
};

void lock_wait(struct lock *lock);
void lock_wake(struct lock *lock);

/* What lock_try is, but for what rank.h adds in a debug build. */
FAST bool lock_grab(struct lock *lock)
{
    int free = 0;
    return unlikely(fork_holds_locks) ||
           __atomic_compare_exchange_n(&lock->state, &free, 1, false, __ATOMIC_ACQUIRE,
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
 * without (back/reserve.h, front/deferred.h). */
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
    if (unlikely(fork_holds_locks))
        return;
    lock_forget(lock);
    if (unlikely(__atomic_exchange_n(&lock->state, 0, __ATOMIC_RELEASE) == 2))
        lock_wake(lock);
}

/* Makes a lock that nobody else knows yet the calling thread's. */
FAST void lock_begin(struct lock *lock)
{
    lock_note(lock);
    lock->state = 1;
}

/* In a fork's child: frees a lock that a thread may hold which the child does not have. */
FAST void lock_reset(struct lock *lock)
{
    lock_disown(lock);
    lock->state = 0;
}

#endif
