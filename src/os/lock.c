#include "os/lock.h"

#include "base/atomic.h"
#include "os/os.h"

/* The first of its section to be linked: what follows begins with a page. */
static char fork_page[0] __attribute__((used, section("hakmem_fork"), aligned(4096)));
__thread bool fork_holds_locks;
int fork_state FORK_PAGE;

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

COLD void lock_wait(struct lock *lock)
{
    if (lock_spin(lock))
        return;
    while (__atomic_exchange_n(&lock->state, 2, __ATOMIC_ACQUIRE) != 0)
        os_wait(&lock->state, 2, 0);
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
        if (__atomic_exchange_n(&lock->state, 2, __ATOMIC_ACQUIRE) == 0)
            return lock_noted(lock);
        os_wait(&lock->state, 2, FORK_PATIENCE);
        if (before == FORK_HOLDS)
            __atomic_compare_exchange_n(&fork_state, &before, FORK_LASTS, false, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED);
    }
    return false;
}

COLD void lock_wake(struct lock *lock) { os_wake(&lock->state); }
