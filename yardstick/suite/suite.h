/*
 * The suite: small programs that ask an allocator for blocks and give them
 * back, each a row of a group. This header holds what all files share.
 *
 *   main.c          options, one row, one line of JSON
 *   GROUP/rows.c    the group's table of rows
 *   GROUP/work_*.c  what its rows do
 *   handover.h      trays of blocks from thread to thread
 *   block.h         one block: asked for, written, verified, given back
 *   loops.h         random mixed and replacement over an array of slots
 *   exchange.h      trays of blocks that threads swap and replace in part
 *   histogram.h     how often something took how long
 *   random.h        numbers that no allocator can influence
 *   workers.c       threads, made before the clock starts
 *   measure.c       clock, counters, resident memory
 *
 * The program's own tables never come from malloc (own_memory), so the
 * allocator under test sees the row's blocks and nothing else.
 */
#ifndef SUITE_H
#define SUITE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdnoreturn.h>
#include <time.h>

/* Which bytes of a new block are written; with TOUCH_PAGES one in every 4096, and the last. */
enum touch { TOUCH_NONE, TOUCH_FIRST, TOUCH_BOTH, TOUCH_PAGES };

/* In which order the blocks of a batch are freed. */
enum order { ORDER_SAME, ORDER_REVERSE, ORDER_SHUFFLED };

struct params {
    uint64_t iterations; /* turns of the loop, of each thread (of each pair in a queue) */
    uint64_t seed;
    uint64_t slots; /* blocks that may live at once, of each thread */
    uint64_t min;   /* bytes, smallest block */
    uint64_t max;   /* bytes, largest block */
    uint64_t batch; /* blocks handed over at once, where blocks are handed over */
    uint64_t wait;  /* milliseconds of idleness that the row watches; scaled as the iterations */
    unsigned threads;
    unsigned makers; /* threads that only allocate, where the others only free */
    enum touch touch;
    enum order order;
    bool check; /* stamp every block, verify the stamp when it is freed */
    bool unpin; /* let the kernel choose the threads' processors */
};

/* How much of the suite a run must take to include the row. */
enum tier { TIER_STANDARD, TIER_QUICK, TIER_FULL };

/* What a row measures besides time and memory; smaller is better. */
struct figure {
    const char *name; /* as in "resident-10s" */
    const char *unit; /* "ns", "KiB", "ratio", "faults" */
    double value;
};

enum { MOST_FIGURES = 16 };

/* Filled in by a row's function, through clock_start and clock_stop. */
struct outcome {
    double seconds;
    double cpu_seconds;
    uint64_t operations; /* calls of malloc, realloc and free in the measured part */
    uint64_t checksum;   /* of the sizes asked for: equal work has an equal sum */
    long minor_faults;
    long voluntary_switches;
    long involuntary_switches;
    struct figure figures[MOST_FIGURES]; /* through outcome_add */
    unsigned figure_count;
};

typedef void work_fn(const struct params *p, struct outcome *out);

struct row {
    const char *name;   /* of its own in the whole suite */
    const char *family; /* rows that differ in one parameter; plots draw a line through them */
    const char *why;
    work_fn *run;
    bool needs_content; /* the row reads what it wrote, so it needs no run that checks content */
    bool sampled;       /* its memory over time is worth a picture */
    enum tier tier;
    /* The measures that tables and means are made of, separated by spaces: names of figures, and
     * "time" (of one operation) and "peak" (resident memory), which null stands for. */
    const char *judged;
    struct params params;
};

/* For tables of rows; `more` are further members, as READS is. */
#define ROW_WITH(more, title, kin, level, measures, function, reason, ...)           \
    {                                                                                \
        .name = title, .family = kin, .why = reason, .run = function, .tier = level, \
        .judged = measures, more.params = {                                          \
            __VA_ARGS__                                                              \
        }                                                                            \
    }
#define READS .needs_content = true,
#define KIB 1024u
#define MIB (1024u * 1024u)

/* Each group's rows, of which one without a name is the last. */
extern const struct row seed_rows[], micro_rows[], threads_rows[], stress_rows[], memory_rows[],
    tail_rows[];

/* What rows do, by the file that has it. */
work_fn work_pair, work_pair_random, work_mixed, work_replace; /* seed/work_slots.c */
work_fn work_batch, work_chase;                                /* seed/work_batch.c */
work_fn work_realloc;                                          /* micro/work_resize.c */
work_fn work_own, work_exchange, work_larson;                  /* seed/work_threads.c */
work_fn work_queue, work_stream;                               /* threads/work_streams.c */
work_fn work_ring, work_all_to_all;                            /* threads/work_rounds.c */
work_fn work_pool;                                             /* threads/work_pool.c */
work_fn work_sharing_active, work_sharing_passive;             /* threads/work_sharing.c */
work_fn work_keep, work_tide;                                  /* stress/work_keep.c */
work_fn work_churn;                                            /* stress/work_churn.c */

/*
 * measure.c
 *
 * clock_start and clock_stop stand around the measured part of a row, once in
 * a run, on the main thread.
 */
void clock_start(void);
void clock_stop(struct outcome *out);

/* Nanoseconds. */
static inline uint64_t clock_of(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static inline uint64_t clock_now(void) { return clock_of(CLOCK_MONOTONIC); }

/* A figure of the row's own; `name` and `unit` must outlive the run. */
void outcome_add(struct outcome *out, const char *name, const char *unit, double value);

/* Sets the peak of resident memory back to what is resident now; false where
 * the kernel does not let us, and the peak then counts from the start. */
bool peak_reset(void);

/* A field of /proc/self/status in KiB, such as "VmHWM:"; -1 if not there. */
long status_kib(const char *field);

/* This process's resident anonymous memory in bytes, written pages of private file mappings
 * included. Exact is from smaps_rollup and walks the page tables, some 10 us a MiB; quick is from
 * statm (resident less shared), a few us, exact too since Linux 6.16 and before that off by up to
 * some 100 KiB. */
uint64_t resident_exact(void);
uint64_t resident_quick(void);

/* Where the malloc in use comes from: a path, or "?" */
const char *allocator_path(void);

/* Zeroed memory that never meets the allocator under test. */
void *own_memory(size_t bytes);
void own_release(void *memory, size_t bytes);

/* A random order of 0..count-1, in own_memory. */
uint32_t *own_permutation(uint64_t count, uint64_t seed);

/* Says why on the standard error, then exits with `code`. */
enum { EXIT_USAGE = 2, EXIT_NO_MEMORY = 3, EXIT_CONTENT = 4, EXIT_SYSTEM = 5 };
noreturn void give_up(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));

/*
 * workers.c
 *
 * Runs `body` on as many threads as the row has; the clock runs from the
 * moment they are all ready until the last has been joined.
 */
struct worker {
    const struct params *params;
    void *shared; /* the same for all */
    unsigned index;
    uint64_t operations; /* owner: the worker, until it is joined */
    uint64_t checksum;   /* owner: the worker, until it is joined */
};

/* `prepare` runs on the worker's own thread before the clock starts, `body`
 * after; `prepare` may be null. */
struct worker_calls {
    void (*prepare)(struct worker *w);
    void (*body)(struct worker *w);
};

void workers_run(const struct params *p, const struct worker_calls *calls, void *shared,
                 struct outcome *out);

/* Processors that the process may use. */
unsigned processors_allowed(void);

/* Binds a new thread, by its attributes, to one of the processors that the
 * process may use, the `index`th in turn; does nothing when p->unpin is set. */
void worker_pin(const struct params *p, unsigned index, pthread_attr_t *attributes);

/* A thread so bound; with a stack of so many bytes, or, with 0, the usual one. */
pthread_t worker_start(const struct params *p, unsigned index, size_t stack, void *(*main)(void *),
                       void *argument);

/* The same for the thread that calls, and what it forks. */
void caller_pin(const struct params *p, unsigned index);

#endif
