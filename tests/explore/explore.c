#include "explore.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "engine.h"

#define STACK ((size_t)256 << 10)
#define STEPS_MOST 4000 /* more is a thread that waits in a loop for ever */

struct engine *engine;

unsigned explore_self(void) { return engine->current; }

/* ---- choices ---- */

unsigned choose(unsigned of)
{
    if (of <= 1)
        return 0;
    if (engine->depth == engine->length) {
        if (engine->length == CHOICES_MOST)
            explore_fail("too many choices");
        engine->choices[engine->length].chosen = 0;
        engine->choices[engine->length++].of = (uint16_t)of;
    }
    if (engine->choices[engine->depth].of != of) {
        fprintf(stderr, "explore: the same choices led elsewhere\n");
        abort();
    }
    return engine->choices[engine->depth++].chosen;
}

/* The next way; false when all were gone. */
static bool choose_next(void)
{
    while (engine->length > 0) {
        if (++engine->choices[engine->length - 1].chosen < engine->choices[engine->length - 1].of)
            return true;
        engine->length--;
    }
    return false;
}

/* ---- threads ---- */

static void variables_swap(struct thread *t, bool away)
{
    for (unsigned i = 0; i < engine->own_variable_count; i++)
        memcpy(away ? (void *)&t->kept[i] : engine->own_variables[i].start,
               away ? engine->own_variables[i].start : (void *)&t->kept[i],
               engine->own_variables[i].bytes);
}

static void switch_to(unsigned number)
{
    struct thread *from = self(), *to = &engine->threads[number];
    if (to == from)
        return;
    variables_swap(from, true);
    engine->current = number;
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
    engine->running = false;
    setcontext(&engine->main);
}

/* The k-th other thread that can go on, and how many there are. */
static unsigned others(unsigned k, unsigned *which)
{
    unsigned n = 0;
    for (unsigned i = 0; i < engine->count; i++)
        if (i != engine->current && engine->threads[i].state == READY) {
            if (n == k)
                *which = i;
            n++;
        }
    return n;
}

void go_elsewhere(void)
{
    unsigned which = 0, n = others(0, &which);
    if (n == 0) { /* no store waits for ever */
        for (unsigned i = 0; i < engine->count; i++)
            drain(i);
        if (self()->state == READY)
            return;
        n = others(0, &which);
    }
    if (n == 0) { /* a wait that ends by itself, or a spin that ends in a wait */
        for (unsigned i = 0; i < engine->count && n == 0; i++)
            if ((engine->threads[i].state == WAITS && engine->threads[i].timed) ||
                engine->threads[i].state == SPINS) {
                engine->threads[i].state = READY;
                which = i;
                n = 1;
            }
    }
    if (n == 0) {
        for (unsigned i = 0; i < engine->count; i++)
            if (engine->threads[i].state != ENDED)
                explore_fail("thread %u waits for ever", i);
        leave_execution();
    }
    if (n > 1)
        others(choose(n), &which);
    switch_to(which);
}

void point(void)
{
    if (++engine->steps > STEPS_MOST)
        explore_fail("no end after %d steps", STEPS_MOST);
    unsigned which = 0, n = others(0, &which);
    if (n > 0 && engine->preemptions < engine->scenario->preemptions) {
        unsigned k = choose(n + 1);
        if (k > 0) {
            engine->preemptions++;
            others(k - 1, &which);
            switch_to(which);
        }
    }
    for (unsigned i = 0; i < engine->count; i++)
        while (i != engine->current && engine->threads[i].in_transfer > 0 && choose(2) == 1)
            drain_one(i);
}

/* ---- executions ---- */

void explore_watch(const volatile void *start, size_t bytes, const char *name)
{
    if (engine->range_count == RANGES)
        abort();
    engine->ranges[engine->range_count++] =
        (struct range){(const char *)(uintptr_t)start, bytes, name};
}

void *explore_own_word(void *word, unsigned thread)
{
    unsigned i = 0;
    while (i < engine->own_word_count && engine->own_words[i] != word)
        i++;
    engine->own_words[i] = word;
    engine->own_word_count = i == engine->own_word_count ? i + 1 : engine->own_word_count;
    void *own = &engine->threads[thread].own[i];
    memcpy(own, word, sizeof(uint64_t));
    return own;
}

void explore_own_variable(void *variable, size_t bytes)
{
    engine->own_variables[engine->own_variable_count].start = variable;
    engine->own_variables[engine->own_variable_count++].bytes = bytes;
    for (unsigned i = 0; i < THREADS_MOST; i++)
        memcpy(&engine->threads[i].kept[engine->own_variable_count - 1], variable, bytes);
}

/* Even, as an address is. */
void explore_own_number(size_t *variable)
{
    explore_own_variable(variable, sizeof *variable);
    for (unsigned i = 0; i < THREADS_MOST; i++)
        engine->threads[i].kept[engine->own_variable_count - 1] = 16 * (i + 1);
}

void explore_restore(void *start, size_t bytes)
{
    struct image *image = &engine->images[engine->image_count++];
    *image = (struct image){start, malloc(bytes), bytes};
}

void explore_only_this(void)
{
    for (unsigned i = 0; i < engine->count; i++)
        if (i != engine->current) {
            engine->threads[i].state = ENDED;
            engine->threads[i].in_transfer = 0;
        }
}

void explore_fail(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(engine->reason, sizeof engine->reason, format, list);
    va_end(list);
    if (engine->trace)
        printf("  %u: %s\n", engine->current, engine->reason);
    engine->failed = true;
    leave_execution();
    abort();
}

static void thread_main(void)
{
    engine->scenario->threads[engine->current]();
    self()->state = ENDED;
    go_elsewhere();
}

static void images_take(void)
{
    for (unsigned i = 0; i < engine->image_count; i++)
        memcpy(engine->images[i].copy, engine->images[i].start, engine->images[i].bytes);
}

/* The words that threads have of their own lie in the engine, so they are kept beside. */
static void execute(const struct thread *first)
{
    for (unsigned i = 0; i < engine->image_count; i++)
        memcpy(engine->images[i].start, engine->images[i].copy, engine->images[i].bytes);
    engine->steps = engine->preemptions = engine->delays = engine->depth = 0;
    engine->failed = false;
    engine->ended_word = NULL;
    for (unsigned i = 0; i < engine->count; i++) {
        struct thread *t = &engine->threads[i];
        char *stack = t->stack;
        *t = first[i];
        t->stack = stack;
        getcontext(&t->context);
        t->context.uc_stack.ss_sp = stack;
        t->context.uc_stack.ss_size = STACK;
        makecontext(&t->context, thread_main, 0);
    }
    /* Whichever comes first, that costs nothing. */
    engine->current = 0;
    engine->current = choose(engine->count);
    variables_swap(self(), false);
    engine->running = true;
    volatile bool back = false;
    getcontext(&engine->main);
    if (!back) {
        back = true;
        self()->begun = true;
        setcontext(&self()->context);
    }
    if (engine->failed)
        return;
    for (unsigned i = 0; i < engine->count; i++)
        drain(i);
    if (engine->scenario->finish != NULL) {
        getcontext(&engine->main);
        if (!engine->failed && back) {
            back = false;
            engine->scenario->finish();
        }
    }
}

static void engine_make(const struct scenario *scenario)
{
    if (engine == NULL)
        engine =
            mmap(NULL, sizeof *engine, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(engine, 0, sizeof *engine);
    engine->scenario = scenario;
    while (engine->count < THREADS_MOST && scenario->threads[engine->count] != NULL)
        engine->threads[engine->count++].stack = mmap(
            NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
}

bool explore(const struct scenario *scenario)
{
    engine_make(scenario);
    scenario->prepare();
    images_take();
    struct thread first[THREADS_MOST];
    memcpy(first, engine->threads, sizeof first);
    unsigned long executions = 0, steps = 0;
    do {
        execute(first);
        executions++;
        steps += engine->steps;
    } while (!engine->failed && choose_next());
    for (unsigned i = 0; i < engine->image_count; i++)
        memcpy(engine->images[i].start, engine->images[i].copy, engine->images[i].bytes);
    printf("%s: %lu executions, %lu steps: %s\n", scenario->name, executions, steps,
           engine->failed ? engine->reason : "nothing wrong");
    if (!engine->failed)
        return true;
    engine->trace = true;
    execute(first);
    return false;
}
