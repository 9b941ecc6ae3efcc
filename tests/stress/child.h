/* Children of fork: each checks and frees blocks that its parent and other threads made before,
 * allocates, and ends; some fork once more, some start a thread, some exec, some leave by exit, and
 * some are posix_spawn's, for which no handler of pthread_atfork runs (trap 42).
 *
 * What a child touches of the time before lies still during the fork: the slots of the seat whose
 * thread forks. The exchange is not for the child: fork's copy of memory is no single instant for
 * what other threads write meanwhile. */
#ifndef HAKMEM_TESTS_CHILD_H
#define HAKMEM_TESTS_CHILD_H

#include "work.h"

struct child_times {
    uint64_t children;
    double forking; /* seconds in fork or posix_spawn, all together */
    double longest; /* of them */
    double living;  /* seconds until the child had ended, all together */
};

/* The first argument of a program that must end at once and well: children exec it. */
#define CHILD_NOTHING "--nothing"

/* Forks, and waits for a good end of the child. The child's own number decides what it does. */
void child_run(struct seat *seat, uint64_t seed, uint64_t number, struct child_times *times);

#endif
