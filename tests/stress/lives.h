/* Threads that follow each other: each starts the next one as it ends and passes on its blocks, so
 * both exist at the same time for a moment. Such a sequence of threads is a seat. */
#ifndef HAKMEM_TESTS_LIVES_H
#define HAKMEM_TESTS_LIVES_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* One seat's thread of now. */
struct life {
    struct lives *lives;
    unsigned seat;
    uint64_t generation;
    pthread_t before; /* who started this thread; after the last one has ended, that one */
};

struct lives {
    unsigned seats;
    uint64_t generations; /* of each seat */
    void (*live)(unsigned seat, uint64_t generation);

    struct life *each; /* room for `seats` */
    pthread_mutex_t lock;
    pthread_cond_t all_done;
    unsigned working; /* lock; seats whose last generation has not ended */
};

/* Starts the first generation of every seat. `each` is the caller's; the rest is set here. */
void lives_start(struct lives *lives);

/* Whether every last generation has ended, and all threads are joined; else after `seconds`. */
bool lives_ended(struct lives *lives, unsigned seconds);

#endif
