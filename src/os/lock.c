#include "os/lock.h"

#include "base/atomic.h"
#include "os/os.h"

/* The first of its section to be linked: what follows begins with a page. */
static char fork_page[0] __attribute__((used, section("hakmem_fork"), aligned(4096)));
__thread size_t lock_number = LOCK_ODD;
int fork_state FORK_PAGE;

void fork_hold_locks(bool holds)
{
    size_t within = lock_number & (THREAD_SAMPLES | THREAD_RECORDS);
    lock_number = within | (holds ? LOCK_PASSES : thread_number());
}

COLD size_t lock_number_now(void)
{
    if ((lock_number & LOCK_ODD) != 0 && !fork_holds_locks())
        lock_number = (lock_number & ~LOCK_ODD) | thread_number();
    return lock_number;
}

static inline void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory");
#endif
}

/* What a holder does takes a microsecond or so; sleeping costs several. */
static bool lock_spin(struct lock *lock)
{
    for (int i = 0; i < 100; i++) {
        relax();
        if (__atomic_load_n(&lock->state, __ATOMIC_RELAXED) == 0 && lock_try(lock))
            return true;
    }
    return false;
}

/* Where the kernel compares: the half of the word that tells whether somebody may sleep. */
static int *sleepers_of(struct lock *lock)
{
    return (int *)&lock->state + (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
}

/* Takes the lock if it is free, for one who may not be the only one to have waited; else sleeps
 * until it is released, or for so long (0: for ever), or for no reason. */
static bool lock_claim(struct lock *lock, size_t milliseconds)
{
    size_t me = lock_number, state = load_relaxed(&lock->state), next;
    do {
        if ((state & LOCK_SLEEPERS) != 0)
            break;
        next = (state == 0 ? me : state) | LOCK_SLEEPERS;
    } while (!__atomic_compare_exchange_n(&lock->state, &state, next, false, __ATOMIC_ACQUIRE,
                                          __ATOMIC_RELAXED));
    if (state == 0)
        return true;
    if ((state & ~THREAD_BITS) == (me & ~THREAD_BITS))
        lock_is_left();
    os_wait(sleepers_of(lock), (int)(state | LOCK_SLEEPERS), milliseconds);
    return false;
}

COLD void lock_wait(struct lock *lock)
{
    if (lock_spin(lock))
        return;
    while (!lock_claim(lock, 0))
        ;
    (void)lock_noted(lock);
}

/* An ordinary fork is over sooner. */
#define FORK_PATIENCE 10 /* milliseconds */

/* By the number of waits and not by a clock, which may stand. A wait may end early, and then a fork
 * is said to last that does not: that is no harm. */
COLD bool lock_await(struct lock *lock)
{
    int before = load_relaxed(&fork_state);
    if (before != FORK_LASTS && lock_spin(lock))
        return true;
    for (; (before = load_relaxed(&fork_state)) != FORK_LASTS;) {
        if (lock_claim(lock, FORK_PATIENCE))
            return lock_noted(lock);
        if (before == FORK_HOLDS)
            __atomic_compare_exchange_n(&fork_state, &before, FORK_LASTS, false, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED);
    }
    return false;
}

COLD void lock_wake(struct lock *lock) { os_wake(sleepers_of(lock)); }
