/* What explore.c, which decides which thread continues, and machine.c, which simulates memory and
 * the kernel, share. */
#ifndef HAKMEM_TESTS_ENGINE_H
#define HAKMEM_TESTS_ENGINE_H

#include <setjmp.h>
#include <ucontext.h>

#include "explore.h"

#define BUFFER 5 /* stores that wait at most, as in the models */
#define CHOICES_MOST 20000
#define RANGES 32

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
    unsigned in_transfer; /* stores in it */
    const void *last;     /* word of the last loads, */
    uint64_t seen;        /* their result, */
    unsigned loads;       /* and how many */
    uint64_t own[2];      /* its words */
    uint64_t kept[4];     /* its variables while others run */
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
extern struct engine {
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
} * engine;

static inline struct thread *self(void) { return &engine->threads[engine->current]; }

/* ---- explore.c ---- */

/* One of so many, by number; in the end each was chosen. */
unsigned choose(unsigned of);

/* Before a step of the calling thread: another may go on, and stores may come to memory. */
void point(void);

/* The calling thread can't go on, or has ended. */
void go_elsewhere(void);

/* ---- machine.c ---- */

/* The oldest store of a thread's buffer comes to memory; all of them. */
void drain_one(unsigned thread);
void drain(unsigned thread);

#endif
