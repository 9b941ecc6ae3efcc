/* A short life of a program: blocks of every kind are allocated, resized, checked and freed by
 * several threads. Calls may fail if the kernel refused something; contents and errno are always
 * checked. An error ends the program with one line that explains it. */
#ifndef HAKMEM_TESTS_LIMITS_WORK_H
#define HAKMEM_TESTS_LIMITS_WORK_H

#include <stdbool.h>
#include <stddef.h>

struct work {
    unsigned turns;     /* operations of each thread */
    unsigned threads;   /* at a time, at least 1; the last also hand blocks to each other */
    bool forks;         /* children are started meanwhile, which check and free what they inherit */
    bool may_fail;      /* a null pointer with ENOMEM is no error */
    const size_t *last; /* unless null: once this is not zero, each thread makes few turns more */
    size_t failures;    /* null pointers seen; written by work_run */
    size_t allocations; /* the same for blocks */
};

/* Runs it in threads of its own, which have ended on return: no block and no cache is left. */
void work_run(struct work *work);

_Noreturn void work_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
