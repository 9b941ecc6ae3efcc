/* Which blocks of a process nothing refers to any more. The process is at its end, or stopped: its
 * memory does not change. It was started with a heap profile in which every block is a sample.
 *
 * Any word in memory that is not the heap's, or in a register, that is an address inside a block
 * makes that block reachable, and so does such a word in a reachable block. All others are lost. Of
 * these, one that another lost block refers to is indirectly lost, through that block. */
#ifndef HAKMEM_LOOK_LEAKS_H
#define HAKMEM_LOOK_LEAKS_H

#include <stdbool.h>

#include "sheet/heap.h"
#include "sheet/target.h"

/* What a thread had in its registers. */
#define WORDS_MOST 512

struct registers {
    uint64_t stack, thread; /* the stack pointer, and what points to the thread's own memory */
    int call;               /* the number of the system call that it is in; negative: none */
    size_t count;
    uint64_t words[WORDS_MOST];
};

struct leak_sum {
    uint64_t blocks, bytes; /* as requested */
};

/* Of a site, or of all. */
struct leak_sums {
    struct leak_sum lost;     /* to which nothing refers */
    struct leak_sum through;  /* to which only those do, over some steps */
    struct leak_sum indirect; /* to which only lost blocks do: those of this site */
    struct leak_sum reachable;
};

/* The process whose threads had these registers. Then prints to a file, which is begun only when
 * something is lost or `always` is set: a heap profile (src/sheet/profile.h) with one more
 * line for each site, `# leaks` and the eight numbers of its sums. `name` is what /proc calls the
 * process or a thread of it, `pid` its number as it knows it. On failure says why. */
struct leak_check {
    const char *name;
    uint64_t pid;
    const struct registers *const *threads;
    size_t thread_count;
    const char *path;
    bool always;
    bool whole; /* also sites of which nothing is lost; else their sums go to a line without a site
                 */
    struct leak_sums sums; /* the result */
    bool found;            /* it is there, even if it could not be printed */
};

bool leaks_check(struct target *t, const struct tables *tables, struct leak_check *check,
                 struct why *why);

#endif
