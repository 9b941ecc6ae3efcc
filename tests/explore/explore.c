#include "explore.h"

#include <errno.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>

#define STACK ((size_t)256 << 10)
#define BUFFER 5        /* stores that wait at most, as in the models */
#define STEPS_MOST 4000 /* more is a thread that waits in a loop for ever */
#define CHOICES_MOST 20000
#define RANGES 32
#define SAME_LOADS 3 /* of one word with one result: the thread spins, */
#define PATIENCE 200 /* and has nothing else to do */

enum state { READY, WAITS, SPINS, ENDED };

struct store {
    void *word;
    uint64_t value;
    unsigned size;
};

struct thread {
    ucontext_t context; /* where it begins */
    jmp_buf at;         /* where it goes on */
    bool begun;
    char *stack;
    enum state state;
    const void *word; /* that it waits for */
    bool timed;       /* its wait ends by itself */
    struct store buffer[BUFFER];
    unsigned waiting; /* stores in it */
    const void *last; /* word of the last loads, */
    uint64_t seen;    /* their result, */
    unsigned loads;   /* and how many */
    uint64_t own[2];  /* its words */
    uint64_t kept[4]; /* its variables while others run */
};

struct range {
    const char *start;
    size_t bytes;
    const char *name;
};

struct image {
    char *start, *copy;
    size_t bytes;
};

/* Outside of static memory, which is put back before each execution. */
static struct engine {
    const struct scenario *scenario;
    ucontext_t main;
    struct thread threads[THREADS_MOST];
    unsigned count, current;
    bool running, trace, failed;
    unsigned steps, preemptions, delays;
    struct {
        uint16_t chosen, of;
    } choices[CHOICES_MOST];
    unsigned depth, length;
    struct range ranges[RANGES];
    unsigned range_count;
    void *own_words[2];
    const void *ended_word;
    unsigned own_word_count;
    struct {
        void *start;
        size_t bytes;
    } own_variables[4];
    unsigned own_variable_count;
    struct image images[8];
    unsigned image_count;
    char reason[400];
} * e;

static struct thread *self(void) { return &e->threads[e->current]; }
unsigned explore_self(void) { return e->current; }

/* ---- choices ---- */

static unsigned choose(unsigned of)
{
    if (of <= 1)
        return 0;
    if (e->depth == e->length) {
        if (e->length == CHOICES_MOST)
            explore_fail("too many choices");
        e->choices[e->length].chosen = 0;
        e->choices[e->length++].of = (uint16_t)of;
    }
    if (e->choices[e->depth].of != of) {
        fprintf(stderr, "explore: the same choices led elsewhere\n");
        abort();
    }
    return e->choices[e->depth++].chosen;
}

/* The next way; false when all were gone. */
static bool choose_next(void)
{
    while (e->length > 0) {
        if (++e->choices[e->length - 1].chosen < e->choices[e->length - 1].of)
            return true;
        e->length--;
    }
    return false;
}

/* ---- words ---- */

static const struct range *range_of(const volatile void *word)
{
    for (unsigned i = 0; i < e->range_count; i++)
        if ((uintptr_t)word - (uintptr_t)e->ranges[i].start < e->ranges[i].bytes)
            return &e->ranges[i];
    return NULL;
}

static void say(const char *what, const volatile void *word, uint64_t value)
{
    if (!e->trace)
        return;
    const struct range *range = range_of(word);
    printf("  %u: %-22s", e->current, what);
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

/* Whoever spins on a word goes on when it changes. */
static void memory_store(void *word, uint64_t value, unsigned size)
{
    memcpy(word, &value, size);
    for (unsigned i = 0; i < e->count; i++)
        if (e->threads[i].state == SPINS && e->threads[i].word == word)
            e->threads[i].state = READY;
}

static void drain_one(unsigned number)
{
    struct thread *t = &e->threads[number];
    struct store oldest = t->buffer[0];
    memmove(t->buffer, t->buffer + 1, --t->waiting * sizeof oldest);
    memory_store(oldest.word, oldest.value, oldest.size);
    if (e->trace) {
        unsigned current = e->current;
        e->current = number;
        say("  comes to memory:", oldest.word, oldest.value);
        e->current = current;
    }
}

static void drain(unsigned number)
{
    while (e->threads[number].waiting > 0)
        drain_one(number);
}

static uint64_t load(const void *word, unsigned size)
{
    const struct thread *t = self();
    for (unsigned i = t->waiting; i-- > 0;)
        if (t->buffer[i].word == word)
            return t->buffer[i].value;
    return memory_load(word, size);
}

/* ---- threads ---- */

static void variables_swap(struct thread *t, bool away)
{
    for (unsigned i = 0; i < e->own_variable_count; i++)
        memcpy(away ? (void *)&t->kept[i] : e->own_variables[i].start,
               away ? e->own_variables[i].start : (void *)&t->kept[i], e->own_variables[i].bytes);
}

static void switch_to(unsigned number)
{
    struct thread *from = self(), *to = &e->threads[number];
    if (to == from)
        return;
    variables_swap(from, true);
    e->current = number;
    variables_swap(to, false);
    if (_setjmp(from->at) != 0)
        return;
    if (to->begun)
        _longjmp(to->at, 1);
    to->begun = true;
    setcontext(&to->context);
}

static void leave_execution(void)
{
    e->running = false;
    setcontext(&e->main);
}

/* The k-th other thread that can go on, and how many there are. */
static unsigned others(unsigned k, unsigned *which)
{
    unsigned n = 0;
    for (unsigned i = 0; i < e->count; i++)
        if (i != e->current && e->threads[i].state == READY) {
            if (n == k)
                *which = i;
            n++;
        }
    return n;
}

/* The calling thread can't go on, or has ended. */
static void go_elsewhere(void)
{
    unsigned which = 0, n = others(0, &which);
    if (n == 0) { /* no store waits for ever */
        for (unsigned i = 0; i < e->count; i++)
            drain(i);
        if (self()->state == READY)
            return;
        n = others(0, &which);
    }
    if (n == 0) { /* a wait that ends by itself, or a spin that ends in a wait */
        for (unsigned i = 0; i < e->count && n == 0; i++)
            if ((e->threads[i].state == WAITS && e->threads[i].timed) ||
                e->threads[i].state == SPINS) {
                e->threads[i].state = READY;
                which = i;
                n = 1;
            }
    }
    if (n == 0) {
        for (unsigned i = 0; i < e->count; i++)
            if (e->threads[i].state != ENDED)
                explore_fail("thread %u waits for ever", i);
        leave_execution();
    }
    if (n > 1)
        others(choose(n), &which);
    switch_to(which);
}

/* Before a step of the calling thread. */
static void point(void)
{
    if (++e->steps > STEPS_MOST)
        explore_fail("no end after %d steps", STEPS_MOST);
    unsigned which = 0, n = others(0, &which);
    if (n > 0 && e->preemptions < e->scenario->preemptions) {
        unsigned k = choose(n + 1);
        if (k > 0) {
            e->preemptions++;
            others(k - 1, &which);
            switch_to(which);
        }
    }
    for (unsigned i = 0; i < e->count; i++)
        while (i != e->current && e->threads[i].waiting > 0 && choose(2) == 1)
            drain_one(i);
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
    drain(e->current);
    e->ended_word = word;
}

/* The thread's own, if it is such a word; null if nobody watches it. */
static void *step_word(const volatile void *word)
{
    if (e == NULL || !e->running)
        return NULL;
    for (unsigned i = 0; i < e->own_word_count; i++)
        if (word == e->own_words[i])
            return &self()->own[i];
    return range_of(word) != NULL ? (void *)(uintptr_t)word : NULL;
}

/* Others may have had a turn before the access. */
static void access_to(const void *word)
{
    if (word == e->ended_word)
        explore_fail("thread %u touches memory of a thread that has ended", e->current);
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
    if (waits && t->waiting == 0) {
        waits = e->delays < e->scenario->delays && choose(2) == 1;
        e->delays += waits;
    }
    say(waits ? "store, which waits" : "store", word, value);
    if (!waits) {
        drain(e->current);
        memory_store(word, value, size);
        return;
    }
    if (t->waiting == BUFFER)
        drain_one(e->current);
    t->buffer[t->waiting++] = (struct store){word, value, size};
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
    drain(e->current);
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
void __tsan_init(void) {}
void __tsan_func_entry(void *pc) { (void)pc; }
void __tsan_func_exit(void) {}

/* A plain access, before it happens: to memory, so what waits comes there first. */
static void plain(const volatile void *at)
{
    if (step_word(at) != NULL)
        drain(e->current);
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
    drain(e->current);
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
    drain(e->current);
    for (unsigned i = 0; i < e->count; i++)
        if (e->threads[i].state == WAITS && e->threads[i].word == word)
            asleep[n++] = i;
    say("wakes one of", word, n);
    if (n > 0)
        e->threads[asleep[choose(n)]].state = READY;
    return n > 0;
}

static long barrier_everywhere(void)
{
    point();
    other_step();
    say("barrier everywhere", NULL, 0);
    for (unsigned i = 0; i < e->count; i++)
        drain(i);
    return 0;
}

/* The program's own: the functions that are explored ask the kernel by it. */
long syscall(long number, ...)
{
    va_list list;
    va_start(list, number);
    if (e == NULL || !e->running)
        return va_end(list), 0;
    if (number == SYS_membarrier)
        return va_end(list), barrier_everywhere();
    if (number != SYS_futex)
        explore_fail("the kernel is asked for call %ld", number);
    int *word = va_arg(list, int *);
    int operation = va_arg(list, int), value = va_arg(list, int);
    bool timed = va_arg(list, void *) != NULL;
    va_end(list);
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

/* ---- executions ---- */

void explore_watch(const volatile void *start, size_t bytes, const char *name)
{
    if (e->range_count == RANGES)
        abort();
    e->ranges[e->range_count++] = (struct range){(const char *)(uintptr_t)start, bytes, name};
}

void *explore_own_word(void *word, unsigned thread)
{
    unsigned i = 0;
    while (i < e->own_word_count && e->own_words[i] != word)
        i++;
    e->own_words[i] = word;
    e->own_word_count = i == e->own_word_count ? i + 1 : e->own_word_count;
    void *own = &e->threads[thread].own[i];
    memcpy(own, word, sizeof(uint64_t));
    return own;
}

void explore_own_variable(void *variable, size_t bytes)
{
    e->own_variables[e->own_variable_count].start = variable;
    e->own_variables[e->own_variable_count++].bytes = bytes;
    for (unsigned i = 0; i < THREADS_MOST; i++)
        memcpy(&e->threads[i].kept[e->own_variable_count - 1], variable, bytes);
}

void explore_restore(void *start, size_t bytes)
{
    struct image *image = &e->images[e->image_count++];
    *image = (struct image){start, malloc(bytes), bytes};
}

void explore_only_this(void)
{
    for (unsigned i = 0; i < e->count; i++)
        if (i != e->current) {
            e->threads[i].state = ENDED;
            e->threads[i].waiting = 0;
        }
}

void explore_fail(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(e->reason, sizeof e->reason, format, list);
    va_end(list);
    if (e->trace)
        printf("  %u: %s\n", e->current, e->reason);
    e->failed = true;
    leave_execution();
    abort();
}

static void thread_main(void)
{
    e->scenario->threads[e->current]();
    self()->state = ENDED;
    go_elsewhere();
}

static void images_take(void)
{
    for (unsigned i = 0; i < e->image_count; i++)
        memcpy(e->images[i].copy, e->images[i].start, e->images[i].bytes);
}

/* The words that threads have of their own lie in the engine, so they are kept beside. */
static void execute(const struct thread *first)
{
    for (unsigned i = 0; i < e->image_count; i++)
        memcpy(e->images[i].start, e->images[i].copy, e->images[i].bytes);
    e->steps = e->preemptions = e->delays = e->depth = 0;
    e->failed = false;
    e->ended_word = NULL;
    for (unsigned i = 0; i < e->count; i++) {
        struct thread *t = &e->threads[i];
        char *stack = t->stack;
        *t = first[i];
        t->stack = stack;
        getcontext(&t->context);
        t->context.uc_stack.ss_sp = stack;
        t->context.uc_stack.ss_size = STACK;
        makecontext(&t->context, thread_main, 0);
    }
    /* Whichever comes first, that costs nothing. */
    e->current = 0;
    e->current = choose(e->count);
    variables_swap(self(), false);
    e->running = true;
    volatile bool back = false;
    getcontext(&e->main);
    if (!back) {
        back = true;
        self()->begun = true;
        setcontext(&self()->context);
    }
    if (e->failed)
        return;
    for (unsigned i = 0; i < e->count; i++)
        drain(i);
    if (e->scenario->finish != NULL) {
        getcontext(&e->main);
        if (!e->failed && back) {
            back = false;
            e->scenario->finish();
        }
    }
}

static void engine_make(const struct scenario *scenario)
{
    if (e == NULL)
        e = mmap(NULL, sizeof *e, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(e, 0, sizeof *e);
    e->scenario = scenario;
    while (e->count < THREADS_MOST && scenario->threads[e->count] != NULL)
        e->threads[e->count++].stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE,
                                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
}

bool explore(const struct scenario *scenario)
{
    engine_make(scenario);
    scenario->prepare();
    images_take();
    struct thread first[THREADS_MOST];
    memcpy(first, e->threads, sizeof first);
    unsigned long executions = 0, steps = 0;
    do {
        execute(first);
        executions++;
        steps += e->steps;
    } while (!e->failed && choose_next());
    for (unsigned i = 0; i < e->image_count; i++)
        memcpy(e->images[i].start, e->images[i].copy, e->images[i].bytes);
    printf("%s: %lu executions, %lu steps: %s\n", scenario->name, executions, steps,
           e->failed ? e->reason : "nothing wrong");
    if (!e->failed)
        return true;
    e->trace = true;
    execute(first);
    return false;
}
