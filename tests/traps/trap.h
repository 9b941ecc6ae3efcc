/* What the tests of this folder share beside the checks of ../api: crews of the stress's workers
 * with checked content. */
#ifndef HAKMEM_TESTS_TRAP_H
#define HAKMEM_TESTS_TRAP_H

#include "../api/check.h"
#include "../stress/work.h"

/* Seats for n workers who exchange blocks; each seat may be one thread's at a time. */
struct crew {
    struct exchange exchange;
    struct seat *seats;
    unsigned n;
};

void crew_make(struct crew *crew, unsigned n, size_t slots);

/* Checks and frees every block of the crew. */
void crew_clear(struct crew *crew);

/* Runs f while the threads of all seats allocate and free. */
void beside_crew(struct crew *crew, void (*f)(void));

#endif
