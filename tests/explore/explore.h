/* Goes through the interleavings of a few threads that run the allocator's own functions.
 *
 * The functions are compiled as for ThreadSanitizer, so each access to a shared word is a call, and
 * the calls are answered here: they decide which thread goes on, and when a store that waits in a
 * thread's buffer comes to memory (x86: in order, and only the thread itself sees it before). All
 * choices are tried, up to a number of times that a thread is stopped where it could go on
 * (preemptions) and of stores that wait (delays). Threads are coroutines, an execution is a few
 * microseconds, and afterwards all static memory is what it was before. */
#ifndef HAKMEM_TESTS_EXPLORE_H
#define HAKMEM_TESTS_EXPLORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define THREADS_MOST 4

struct scenario {
    const char *name;
    void (*prepare)(void); /* once, before all executions; alone */
    void (*threads[THREADS_MOST])(void);
    void (*finish)(void); /* after each execution in which all threads ended; alone */
    unsigned preemptions, delays;
};

/* Of the calling thread of the scenario. */
unsigned explore_self(void);

/* Accesses to these bytes are steps; all others happen at once and are nobody's concern. */
void explore_watch(const volatile void *start, size_t bytes, const char *name);

/* A word of which each thread has its own, at this address in the code; what another thread knows
 * it by is the result. */
void *explore_own_word(void *word, unsigned thread);

/* The thread ends: what other threads knew as its word may be anybody's memory now. */
void explore_end_word(void *word);

/* A plain variable of which each thread has its own; at most a word. */
void explore_own_variable(void *variable, size_t bytes);

/* And has another number in each of them. */
void explore_own_number(size_t *variable);

/* Memory that is put back before each execution, besides static memory. */
void explore_restore(void *start, size_t bytes);

/* Stops all other threads for ever, as they are; what waits in their buffers is lost. */
void explore_only_this(void);

/* This execution went wrong. */
void explore_fail(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));
#define EXPECT(condition, ...)         \
    do {                               \
        if (!(condition))              \
            explore_fail(__VA_ARGS__); \
    } while (0)

/* What went wrong, with the steps that lead there, to standard output. True if nothing did. */
bool explore(const struct scenario *scenario);

#endif
