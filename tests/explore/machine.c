/* Memory with a buffer of stores for each thread, and a simulated kernel. It replaces
 * ThreadSanitizer's runtime and the kernel. */
#include <errno.h>
#include <linux/futex.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>

#include "engine.h"

#define SAME_LOADS 3 /* of one word with one result: the thread spins, */
#define PATIENCE 200 /* and has nothing else to do */

/* ---- words ---- */

static const struct range *range_of(const volatile void *word)
{
    for (unsigned i = 0; i < engine->range_count; i++)
        if ((uintptr_t)word - (uintptr_t)engine->ranges[i].start < engine->ranges[i].bytes)
            return &engine->ranges[i];
    return NULL;
}

static void say(const char *what, const volatile void *word, uint64_t value)
{
    if (!engine->trace)
        return;
    const struct range *range = range_of(word);
    printf("  %u: %-22s", engine->current, what);
    if (range != NULL && range->bytes > 8)
        printf(" %s[%zu]", range->name, ((size_t)word - (size_t)range->start) / 8);
    else if (range != NULL)
        printf(" %s", range->name);
    printf(" %#llx\n", (unsigned long long)value);
}

static uint64_t memory_load(const void *word, unsigned size)
{
    uint64_t value = 0;
    memcpy(&value, word, size);
    return value;
}

/* A thread that spins on a word continues when the word changes. */
static void memory_store(void *word, uint64_t value, unsigned size)
{
    memcpy(word, &value, size);
    for (unsigned i = 0; i < engine->count; i++)
        if (engine->threads[i].state == SPINS && engine->threads[i].word == word)
            engine->threads[i].state = READY;
}

void drain_one(unsigned number)
{
    struct thread *t = &engine->threads[number];
    struct store oldest = t->buffer[0];
    memmove(t->buffer, t->buffer + 1, --t->in_transfer * sizeof oldest);
    memory_store(oldest.word, oldest.value, oldest.size);
    if (engine->trace) {
        unsigned current = engine->current;
        engine->current = number;
        say("  comes to memory:", oldest.word, oldest.value);
        engine->current = current;
    }
}

void drain(unsigned number)
{
    while (engine->threads[number].in_transfer > 0)
        drain_one(number);
}

static uint64_t load(const void *word, unsigned size)
{
    const struct thread *t = self();
    for (unsigned i = t->in_transfer; i-- > 0;)
        if (t->buffer[i].word == word)
            return t->buffer[i].value;
    return memory_load(word, size);
}

/* Loads that tell the same again and again: the thread waits for a change, or does something
 * else. */
static void look_for_spin(const void *word, uint64_t value)
{
    struct thread *t = self();
    if (t->last != word || t->seen != value)
        t->loads = 0;
    t->last = word;
    t->seen = value;
    ++t->loads;
    if ((t->loads == SAME_LOADS && choose(2) == 1) || t->loads == PATIENCE) {
        t->loads = 0;
        t->state = SPINS;
        t->word = word;
        go_elsewhere();
    }
}

static bool spins_on(const void *word)
{
    return self()->last == word && self()->loads >= SAME_LOADS;
}

static void other_step(void) { self()->last = NULL; }

/* ---- what the compiled functions call ---- */

void explore_end_word(void *word)
{
    drain(engine->current);
    engine->ended_word = word;
}

/* The thread's own, if it is such a word; null if nobody watches it. */
static void *step_word(const volatile void *word)
{
    if (engine == NULL || !engine->running)
        return NULL;
    for (unsigned i = 0; i < engine->own_word_count; i++)
        if (word == engine->own_words[i])
            return &self()->own[i];
    return range_of(word) != NULL ? (void *)(uintptr_t)word : NULL;
}

/* Others may have had a turn before the access. */
static void access_to(const void *word)
{
    if (word == engine->ended_word)
        explore_fail("thread %u touches memory of a thread that has ended", engine->current);
}

static uint64_t step_load(const volatile void *at, unsigned size)
{
    void *word = step_word(at);
    if (word == NULL)
        return memory_load((const void *)at, size);
    if (!spins_on(word))
        point();
    access_to(word);
    uint64_t value = load(word, size);
    if (!spins_on(word))
        say("load", word, value);
    look_for_spin(word, value);
    return value;
}

static void step_store(volatile void *at, uint64_t value, unsigned size, int order)
{
    void *word = step_word(at);
    if (word == NULL) {
        memcpy((void *)at, &value, size);
        return;
    }
    point();
    access_to(word);
    other_step();
    struct thread *t = self();
    bool waits = order != __ATOMIC_SEQ_CST;
    if (waits && t->in_transfer == 0) {
        waits = engine->delays < engine->scenario->delays && choose(2) == 1;
        engine->delays += waits;
    }
    say(waits ? "store, which waits" : "store", word, value);
    if (!waits) {
        drain(engine->current);
        memory_store(word, value, size);
        return;
    }
    if (t->in_transfer == BUFFER)
        drain_one(engine->current);
    t->buffer[t->in_transfer++] = (struct store){word, value, size};
}

/* An instruction with a lock: what waits comes to memory first. */
static void *step_exchange(volatile void *at)
{
    void *word = step_word(at);
    if (word == NULL)
        return (void *)at;
    point();
    access_to(word);
    other_step();
    drain(engine->current);
    return word;
}

#define HOOKS(bits)                                                                                \
    uint##bits##_t __tsan_atomic##bits##_load(const volatile uint##bits##_t *word, int order)      \
    {                                                                                              \
        (void)order;                                                                               \
        return (uint##bits##_t)step_load(word, sizeof *word);                                      \
    }                                                                                              \
    void __tsan_atomic##bits##_store(volatile uint##bits##_t *word, uint##bits##_t value,          \
                                     int order)                                                    \
    {                                                                                              \
        step_store(word, value, sizeof *word, order);                                              \
    }                                                                                              \
    uint##bits##_t __tsan_atomic##bits##_exchange(volatile uint##bits##_t *at,                     \
                                                  uint##bits##_t value, int order)                 \
    {                                                                                              \
        (void)order;                                                                               \
        void *word = step_exchange(at);                                                            \
        uint64_t old = memory_load(word, sizeof *at);                                              \
        memory_store(word, value, sizeof *at);                                                     \
        say("exchange: found", word, old);                                                         \
        say("exchange: left", word, value);                                                        \
        return (uint##bits##_t)old;                                                                \
    }                                                                                              \
    uint##bits##_t __tsan_atomic##bits##_fetch_add(volatile uint##bits##_t *at,                    \
                                                   uint##bits##_t value, int order)                \
    {                                                                                              \
        (void)order;                                                                               \
        void *word = step_exchange(at);                                                            \
        uint64_t old = memory_load(word, sizeof *at);                                              \
        memory_store(word, old + value, sizeof *at);                                               \
        say("add", word, value);                                                                   \
        return (uint##bits##_t)old;                                                                \
    }                                                                                              \
    uint##bits##_t __tsan_atomic##bits##_fetch_sub(volatile uint##bits##_t *at,                    \
                                                   uint##bits##_t value, int order)                \
    {                                                                                              \
        return __tsan_atomic##bits##_fetch_add(at, (uint##bits##_t) - value, order);               \
    }                                                                                              \
    uint##bits##_t __tsan_atomic##bits##_fetch_or(volatile uint##bits##_t *at,                     \
                                                  uint##bits##_t value, int order)                 \
    {                                                                                              \
        (void)order;                                                                               \
        void *word = step_exchange(at);                                                            \
        uint64_t old = memory_load(word, sizeof *at);                                              \
        memory_store(word, old | value, sizeof *at);                                               \
        say("or", word, value);                                                                    \
        return (uint##bits##_t)old;                                                                \
    }                                                                                              \
    uint##bits##_t __tsan_atomic##bits##_fetch_and(volatile uint##bits##_t *at,                    \
                                                   uint##bits##_t value, int order)                \
    {                                                                                              \
        (void)order;                                                                               \
        void *word = step_exchange(at);                                                            \
        uint64_t old = memory_load(word, sizeof *at);                                              \
        memory_store(word, old &value, sizeof *at);                                                \
        say("and", word, value);                                                                   \
        return (uint##bits##_t)old;                                                                \
    }                                                                                              \
    int __tsan_atomic##bits##_compare_exchange_strong(                                             \
        volatile uint##bits##_t *at, uint##bits##_t *from, uint##bits##_t to, int order, int fail) \
    {                                                                                              \
        (void)order, (void)fail;                                                                   \
        void *word = step_exchange(at);                                                            \
        uint##bits##_t old = (uint##bits##_t)memory_load(word, sizeof *at);                        \
        bool same = old == *from;                                                                  \
        if (same)                                                                                  \
            memory_store(word, to, sizeof *at);                                                    \
        say(same ? "compare, exchange" : "compare, unlike", word, same ? to : old);                \
        *from = old;                                                                               \
        return same;                                                                               \
    }                                                                                              \
    int __tsan_atomic##bits##_compare_exchange_weak(                                               \
        volatile uint##bits##_t *at, uint##bits##_t *from, uint##bits##_t to, int order, int fail) \
    {                                                                                              \
        return __tsan_atomic##bits##_compare_exchange_strong(at, from, to, order, fail);           \
    }

HOOKS(8)
HOOKS(16)
HOOKS(32)
HOOKS(64)

void __tsan_atomic_signal_fence(int order) { (void)order; }
void __tsan_atomic_thread_fence(int order) { (void)order; } /* one of loads, which are in order */
void __tsan_init(void) {}
void __tsan_func_entry(void *pc) { (void)pc; }
void __tsan_func_exit(void) {}

/* A plain access, before it happens: to memory, so what waits comes there first. */
static void plain(const volatile void *at)
{
    if (step_word(at) != NULL)
        drain(engine->current);
}

#define PLAIN(bytes)                                           \
    void __tsan_read##bytes(void *at) { plain(at); }           \
    void __tsan_write##bytes(void *at) { plain(at); }          \
    void __tsan_unaligned_read##bytes(void *at) { plain(at); } \
    void __tsan_unaligned_write##bytes(void *at) { plain(at); }
PLAIN(1)
PLAIN(2)
PLAIN(4)
PLAIN(8)
PLAIN(16)
void __tsan_read_range(void *at, unsigned long bytes) { (void)bytes, plain(at); }
void __tsan_write_range(void *at, unsigned long bytes) { (void)bytes, plain(at); }

/* ---- the kernel ---- */

static long futex_wait(const int *word, int value, bool timed)
{
    point();
    other_step();
    drain(engine->current);
    say("sleeps unless changed", word, (uint64_t)*word);
    if (*word != value)
        return -1;
    self()->state = WAITS;
    self()->word = word;
    self()->timed = timed;
    go_elsewhere();
    return 0;
}

static long futex_wake(const int *word)
{
    unsigned asleep[THREADS_MOST], n = 0;
    point();
    other_step();
    drain(engine->current);
    for (unsigned i = 0; i < engine->count; i++)
        if (engine->threads[i].state == WAITS && engine->threads[i].word == word)
            asleep[n++] = i;
    say("wakes one of", word, n);
    if (n > 0)
        engine->threads[asleep[choose(n)]].state = READY;
    return n > 0;
}

/* The program's own: the functions that are explored ask the kernel by it. */
long syscall(long number, ...)
{
    va_list list;
    va_start(list, number);
    if (engine == NULL || !engine->running)
        return va_end(list), 0;
    if (number != SYS_futex)
        explore_fail("the kernel is asked for call %ld", number);
    int *word = va_arg(list, int *);
    int operation = va_arg(list, int), value = va_arg(list, int);
    const struct timespec *time = va_arg(list, const struct timespec *);
    va_end(list);
    bool timed = time != NULL;
    if (timed && time->tv_sec == 0 && time->tv_nsec == 0) {
        errno = EAGAIN; /* it asks whether there is memory, and there is */
        return -1;
    }
    if ((operation & FUTEX_CMD_MASK) == FUTEX_WAIT)
        return futex_wait(word, value, timed);
    return futex_wake(word);
}

int madvise(void *start, size_t bytes, int advice)
{
    if (advice == MADV_DONTNEED)
        memset(start, 0, bytes);
    return 0;
}

int clock_gettime(clockid_t clock, struct timespec *time)
{
    (void)clock;
    *time = (struct timespec){1000, 0};
    return 0;
}
