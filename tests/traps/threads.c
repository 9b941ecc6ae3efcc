/* The ends of threads: many keys with destructors, every round of them, keys that were there before
 * the allocator's own, blocks of threads that are gone, and identities that serve again (traps 34,
 * 35, 37, 38); parameters that change while threads allocate. */
#include "trap.h"

#include <limits.h>
#include <stdio.h>
#include <sys/resource.h>

/* ThreadSanitizer ends a thread's state before the last round. */
#define ROUNDS (PTHREAD_DESTRUCTOR_ITERATIONS - CHECK_UNDER_THREAD_SANITIZER)

/* ---- keys before the first call ---- */

enum { EARLY_KEYS = 100, EARLY_BYTES = 300 };
static pthread_key_t early[EARLY_KEYS];
static unsigned early_made;
static atomic_uint early_freed;

static void free_early(void *block)
{
    CHECK_PATTERN(block, EARLY_BYTES, 1);
    do_free(block);
    atomic_fetch_add(&early_freed, 1);
}

/* Libc keeps values of a thread's first 32 keys in place and allocates for more: a key that the
 * allocator makes after this one makes its first call in each thread allocate. */
__attribute__((constructor(101))) static void make_early_keys(void)
{
    while (early_made < EARLY_KEYS && pthread_key_create(&early[early_made], free_early) == 0)
        early_made++;
}

static void *set_early_keys(void *unused)
{
    for (unsigned i = 0; i < early_made; i++) {
        void *p = NEED("malloc", do_malloc(EARLY_BYTES));
        pattern_fill(p, EARLY_BYTES, 1);
        pthread_setspecific(early[i], p);
    }
    return unused;
}

TEST(keys_from_before_the_first_call)
{
    enum { THREADS = 50 };
    CHECK_SIZE("keys made by a constructor", early_made, EARLY_KEYS);
    for (int i = 0; i < THREADS; i++)
        in_thread(set_early_keys, NULL);
    CHECK_SIZE("destructors called", early_freed, THREADS * EARLY_KEYS);
    for (unsigned i = 0; i < early_made; i++)
        pthread_key_delete(early[i]);
}

/* ---- all keys, all rounds ---- */

static pthread_key_t keys[PTHREAD_KEYS_MAX];
static unsigned made;
static atomic_ulong rounds;

/* The value says how often it has been set. */
static void next_round(void *value)
{
    unsigned *round = value, now = *round;
    CHECK_PATTERN(round + 1, 100, 2);
    do_free(round);
    atomic_fetch_add(&rounds, 1);
    unsigned *next = NEED("malloc in a destructor", do_malloc(sizeof *next + 100));
    if (now + 1 >= ROUNDS) {
        do_free(next);
        return;
    }
    *next = now + 1;
    pattern_fill(next + 1, 100, 2);
    for (unsigned i = 0; i < made; i++) {
        if (pthread_getspecific(keys[i]) == NULL && i % 97 == now) {
            pthread_setspecific(keys[i], next);
            return;
        }
    }
    do_free(next);
}

static void *set_all_keys(void *unused)
{
    for (unsigned i = 0; i < made; i++) {
        unsigned *p = NEED("malloc", do_malloc(sizeof *p + 100));
        *p = 0;
        pattern_fill(p + 1, 100, 2);
        pthread_setspecific(keys[i], p);
    }
    return unused;
}

TEST(every_key_and_every_round)
{
    enum { THREADS = 20 };
    while (made < PTHREAD_KEYS_MAX && pthread_key_create(&keys[made], next_round) == 0)
        made++;
    CHECK(made > 900, "keys to be had: expected more than 900, found %u", made);
    for (int i = 0; i < THREADS; i++)
        in_thread(set_all_keys, NULL);
    CHECK(rounds > (unsigned long)made * THREADS,
          "destructors called: expected more than %u, found %lu", made * THREADS, rounds);
    for (unsigned i = 0; i < made; i++)
        pthread_key_delete(keys[i]);
}

/* ---- no memory stays with what ended ---- */

static size_t peak_bytes(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (size_t)usage.ru_maxrss * KiB;
}

static pthread_key_t late_key;

/* Allocates in the last round, after the thread's cache is gone, and never frees in a cache again.
 */
static void late(void *value)
{
    uintptr_t round = (uintptr_t)value;
    use_the_heap((unsigned)round);
    if (round < ROUNDS)
        pthread_setspecific(late_key, (void *)(round + 1));
}

enum { LEFT = 2000 };
static void *left[LEFT];

static void *leave_blocks(void *unused)
{
    pthread_setspecific(late_key, (void *)1);
    for (unsigned i = 0; i < LEFT; i++) {
        do_free(left[i]); /* of the thread before */
        left[i] = NEED("malloc", do_malloc(i));
        memset(left[i], 1, i);
    }
    return unused;
}

TEST(threads_leave_no_memory_behind)
{
    enum { THREADS = 600 };
    size_t early_peak = 0;
    if (!CHECK(pthread_key_create(&late_key, late) == 0, "pthread_key_create failed"))
        return;
    for (int i = 0; i < THREADS; i++) {
        in_thread(leave_blocks, NULL);
        if (i == THREADS / 4)
            early_peak = peak_bytes();
    }
    for (unsigned i = 0; i < LEFT; i++)
        do_free(left[i]);
    CHECK(CHECK_UNDER_THREAD_SANITIZER || peak_bytes() < early_peak + 8 * MiB,
          "peak memory after %d threads: expected at most 8 MiB more than after %d, found %zu KiB",
          THREADS, THREADS / 4, (peak_bytes() - early_peak) / KiB);
    pthread_key_delete(late_key);
}

/* ---- the same thread again ---- */

static void *kept_over_threads;

static void *pass_on(void *address)
{
    static __thread char place;
    if (kept_over_threads != NULL) {
        CHECK_PATTERN(kept_over_threads, 5000, 6);
        do_free(kept_over_threads);
    }
    void *p = NEED("malloc", do_malloc(5000));
    pattern_fill(p, 5000, 6);
    kept_over_threads = p;
    *(void **)address = &place;
    return NULL;
}

/* Libc gives the next thread the last one's stack, handle and thread-local memory. */
TEST(identities_serve_again)
{
    enum { THREADS = 2000 };
    unsigned again = 0;
    pthread_t before = 0;
    void *place_before = NULL;
    for (int i = 0; i < THREADS; i++) {
        void *place = NULL;
        pthread_t thread = started(pass_on, &place);
        pthread_join(thread, NULL);
        again += pthread_equal(thread, before) && place == place_before;
        before = thread;
        place_before = place;
    }
    do_free(kept_over_threads);
    printf("threads: %u of %d threads had the handle and the place of the one before\n", again,
           THREADS);
    CHECK(CHECK_UNDER_THREAD_SANITIZER || again > THREADS / 2,
          "identities that served again: expected most of %d, found %u", THREADS, again);
}

/* ---- owners that are gone ---- */

enum { MAKERS = 16, EACH = 3000 };
static void *made_by[MAKERS][EACH];

static size_t size_of(unsigned i) { return i % 64 == 0 ? i * 100 : i % 700; }

static void *make_and_end(void *row)
{
    for (unsigned i = 0; i < EACH; i++) {
        void *p = NEED("malloc", do_malloc(size_of(i)));
        pattern_fill(p, size_of(i), i);
        ((void **)row)[i] = p;
    }
    return NULL;
}

static void *free_others(void *first)
{
    for (unsigned i = *(unsigned *)first; i < EACH; i += 2) {
        for (unsigned k = 0; k < MAKERS; k++) {
            CHECK_PATTERN(made_by[k][i], size_of(i), i);
            do_free(made_by[k][i]);
        }
    }
    return NULL;
}

/* Two threads free, in each other's slabs, what sixteen left behind. */
TEST(blocks_whose_makers_are_gone)
{
    static unsigned even = 0, odd = 1;
    for (int round = 0; round < 3; round++) {
        pthread_t makers[MAKERS];
        for (unsigned i = 0; i < MAKERS; i++)
            makers[i] = started(make_and_end, made_by[i]);
        threads_join(makers, MAKERS);
        pthread_t one = started(free_others, &even), other = started(free_others, &odd);
        pthread_join(one, NULL);
        pthread_join(other, NULL);
    }
}

/* ---- parameters that change ---- */

static atomic_bool parameters_done;

/* Sizes that every parameter is about: free slices, large and huge blocks, stacks and slabs. */
static void *use_the_heap_meanwhile(void *unused)
{
    static const size_t sizes[] = {100, 5000, 70000, 600000, 3000000, 5000000};
    do {
        void *blocks[12];
        for (unsigned i = 0; i < 12; i++) {
            size_t n = sizes[i % 6];
            pattern_fill(blocks[i] = NEED("malloc", do_malloc(n)), n < 500 ? n : 500, i);
        }
        for (unsigned i = 0; i < 12; i++) {
            CHECK_PATTERN(blocks[i], sizes[i % 6] < 500 ? sizes[i % 6] : 500, i);
            do_free(blocks[i]);
        }
    } while (!atomic_load(&parameters_done));
    return unused;
}

/* Threads that allocate meanwhile read what mallopt writes. ThreadSanitizer checks that. */
TEST(parameters_change_beside_threads)
{
    enum { THREADS = 4, CHANGES = 200 };
    pthread_t threads[THREADS];
    threads_start(threads, THREADS, use_the_heap_meanwhile);
    for (unsigned i = 0; i < CHANGES; i++) {
        NAME_UNDER_TEST(mallopt)(M_TRIM_THRESHOLD, i % 3 == 0 ? -1 : (int)i << 16);
        NAME_UNDER_TEST(mallopt)(M_ARENA_MAX, (int)i % 4 + 1);
        use_the_heap(i);
    }
    atomic_store(&parameters_done, true);
    threads_join(threads, THREADS);
}

int main(void) { return tests_main("threads"); }
