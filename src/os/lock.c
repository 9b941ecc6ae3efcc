#include "os/lock.h"

#include "base/atomic.h"
#include "base/text.h"
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

/* ---- who holds what ----
 *
 * And what a failed assertion prints. A release build contains none of it. */

#if HAKMEM_ASSERT

static __thread unsigned held[RANK_COUNT]; /* locks of each rank */

#define RANK_WORD(name, word, what) word,
static const char *const rank_words[] = {"no", LOCK_RANKS(RANK_WORD)};

static void add_rank(struct text *text, unsigned rank)
{
    text_write(text, "%s (rank %u)", rank_words[rank < RANK_COUNT ? rank : RANK_NONE], rank);
}

static void add_held(struct text *text)
{
    const char *before = "hakmem: the thread holds: ";
    for (unsigned rank = RANK_START; rank < RANK_COUNT; rank++) {
        if (held[rank] == 0)
            continue;
        text_add(text, before);
        add_rank(text, rank);
        if (held[rank] > 1)
            text_write(text, " x %u", held[rank]);
        before = ", ";
    }
    text_add(text, before[0] == ',' ? "\n" : "hakmem: the thread holds no lock\n");
    if (fork_holds_locks())
        text_add(text, "hakmem: the thread forks, and passes every lock\n");
}

void assertion_failed(const char *file, unsigned line, const char *function, const char *what)
{
    char said[1024];
    struct text text = text_of(said, sizeof said, "hakmem: %s:%u: %s: assertion failed: %s\n", file,
                               line, function, what);
    add_held(&text);
    os_print_error(text.start, text.used);
    os_die();
}

/* As for any assertion; of a lock it matters most which. */
static COLD __attribute__((noreturn)) void wrong(const struct lock *lock, const char *function,
                                                 const char *rule)
{
    char what[256];
    struct text text = text_of(what, sizeof what, "%s: ", rule);
    add_rank(&text, lock->rank);
    assertion_failed(__FILE__, __LINE__, function, text.start);
}

void lock_set_rank(struct lock *lock, enum lock_rank rank) { lock->rank = (unsigned char)rank; }

bool lock_held(const struct lock *lock)
{
    return fork_holds_locks() ||
           (load_relaxed(&lock->state) & ~THREAD_BITS) == (size_t)&lock_number;
}

bool lock_rank_held(enum lock_rank rank) { return fork_holds_locks() || held[rank] > 0; }

bool lock_all_held(void)
{
    return lock_rank_held(RANK_START) && lock_rank_held(RANK_PURGE) &&
           lock_rank_held(RANK_CACHELESS) && lock_rank_held(RANK_REGISTRY);
}

bool lock_none_held(void)
{
    unsigned sum = 0;
    for (unsigned rank = RANK_NONE; rank < RANK_COUNT; rank++)
        sum += held[rank];
    return fork_holds_locks() || sum == 0;
}

void lock_check_order(const struct lock *lock)
{
    if (fork_holds_locks())
        return;
    unsigned highest = RANK_COUNT - 1;
    while (highest > RANK_NONE && held[highest] == 0)
        highest--;
    bool every_lock = lock->rank == RANK_CACHE && highest == RANK_CACHE &&
                      held[RANK_REGISTRY] > 0 && !lock_held(lock);
    if (unlikely(highest >= lock->rank && !every_lock))
        wrong(lock, "lock_take",
              "each lock that is held has a lower rank than the one to wait for");
}

static void check_guard(const struct lock *lock)
{
    bool inside = lock->rank >= RANK_TRANSFER && lock->rank <= RANK_JOURNAL;
    if (unlikely(inside && !lock_rank_held(RANK_PURGE) && !lock_rank_held(RANK_CACHELESS) &&
                 !lock_rank_held(RANK_CACHE)))
        wrong(lock, "lock_try", "who takes a lock inside holds purge, cacheless or a cache's");
}

void lock_note(struct lock *lock)
{
    if (unlikely(lock->rank == RANK_NONE))
        wrong(lock, "lock_note", "each lock has a rank");
    held[lock->rank]++;
}

bool lock_noted(struct lock *lock)
{
    if (likely(!fork_holds_locks()))
        lock_note(lock);
    return true;
}

bool lock_try_unguarded(struct lock *lock) { return lock_grab(lock) && lock_noted(lock); }

bool lock_try(struct lock *lock)
{
    check_guard(lock);
    return lock_try_unguarded(lock);
}

void lock_forget(struct lock *lock)
{
    if (unlikely(!lock_held(lock)))
        wrong(lock, "lock_release", "who releases a lock holds it");
    held[lock->rank]--;
}

#endif
