/* What the tests of this folder share beside the checks of ../api: children, threads, and crews of
 * the stress's workers with checked content. */
#ifndef HAKMEM_TESTS_TRAP_H
#define HAKMEM_TESTS_TRAP_H

#include "../api/check.h"
#include "../stress/work.h"

#include <pthread.h>

/* Blocks of sizes from 1 byte to 6 MiB at once, each of them written, checked and freed. */
void use_the_heap(unsigned number);

/* Runs f in a child, which must end with 0: after f, by the result of its checks. A child that
 * hangs is ended by its watchdog. */
void in_child(void (*f)(void));
#define RUN_IN_CHILD(test)  \
    do {                    \
        check_test = #test; \
        in_child(test);     \
    } while (0)

/* Runs f(argument) in a thread of its own, to its end. */
void in_thread(void *(*f)(void *), void *argument);

/* Ends the test by a failure unless thread starts. */
pthread_t started(void *(*f)(void *), void *argument);

/* Seats for n workers who exchange blocks; each seat may be one thread's at a time. */
struct crew {
    struct exchange exchange;
    struct seat *seats;
    unsigned n;
};

void crew_make(struct crew *crew, unsigned n, size_t slots);

/* Checks and frees every block of the crew. */
void crew_clear(struct crew *crew);

#endif
