/* Writes to a free block in a hardened heap, after which the program does nothing but end by exit:
 * by the thread that freed it, one that is gone, one that sleeps, and with the block held back, in
 * its slab, or in a slab that is all free. Each in a child. All must end by a report, or by SIGSEGV
 * in the write. With --small: only blocks of up to 32 KiB. Programs that are correct, with threads
 * at work while the process ends, must end as always. */
#include "wrote.h"

#include <stdatomic.h>

enum who { SELF, GONE, SLEEPS };
enum where { HELD, SLAB, ALL_FREE };

static const char *const who_names[] = {"the thread itself", "a thread that is gone",
                                        "a thread that sleeps"};
static const char *const where_names[] = {"just freed", "freed before others", "with all others"};

struct job {
    size_t size;
    enum who who;
    enum where where;
    char *written;
    atomic_bool done;
};

enum { OTHERS = 6000, BYTES_MOST = 64 << 20 };

/* Frees a block, and perhaps so many others that it is held back no more. */
static void free_one(struct job *job)
{
    static char *others[OTHERS];
    size_t n = job->where == HELD ? 300 : OTHERS;
    if (n * job->size > BYTES_MOST)
        n = BYTES_MOST / job->size;
    for (size_t i = 0; i < n; i++) {
        others[i] = malloc(job->size);
        others[i][0] = 1;
    }
    size_t keep = job->where == HELD ? n : job->where == SLAB ? 8 : 1;
    size_t mine = n / 2;
    job->written = others[mine];
    if (job->where == HELD) {
        for (size_t i = 0; i < n && job->size > 32768; i++) /* the first of these are closed */
            if (i != mine)
                free(others[i]);
        free(others[mine]);
        return;
    }
    for (size_t i = 0; i < n; i++)
        if (i == mine || keep == 1 || i % keep != 0)
            free(others[i]);
}

static void *thread(void *arg)
{
    struct job *job = arg;
    free_one(job);
    job->done = true;
    while (job->who == SLEEPS)
        pause();
    return NULL;
}

static void write_and_end(void *argument)
{
    struct job *job = argument;
    if (job->who == SELF) {
        free_one(job);
    } else {
        pthread_t other = started(thread, job);
        while (!job->done)
            usleep(1000);
        if (job->who == GONE)
            pthread_join(other, NULL);
    }
    volatile char *p = job->written;
    p[job->size / 2] ^= 0x5a;
    tell_that_it_wrote();
    exit(0);
}

static int failed, cases;

static void try(size_t size, enum who who, enum where where)
{
    struct job job = {.size = size, .who = who, .where = where};
    struct child_end end = child_end(write_and_end, &job);
    cases++;
    if (is_found(end, "something wrote to this block while it was free"))
        return;
    failed++;
    printf("%zu bytes, freed by %s, %s: status %#x, %s\n", size, who_names[who], where_names[where],
           (unsigned)end.status, end.said);
}

/* ---- a correct program, whose threads go on while it ends ---- */

static atomic_int begun;

static void *works(void *arg)
{
    unsigned state = (unsigned)(size_t)arg;
    static _Thread_local char *mine[200];
    begun++;
    for (;;) {
        state = state * 1103515245 + 12345;
        unsigned at = state >> 16, i = at % 200;
        free(mine[i]);
        size_t size = 16 + at * 31 % 1000;
        mine[i] = malloc(size);
        memset(mine[i], 0xa5, size);
    }
    return NULL;
}

static void end_beside_threads(void *unused)
{
    pthread_t threads[4];
    (void)unused;
    threads_start(threads, 4, works);
    while (begun < 4)
        usleep(100);
    usleep(2000);
    exit(0);
}

static void correct(void)
{
    struct child_end end = child_end(end_beside_threads, NULL);
    cases++;
    if (end.status == 0)
        return;
    failed++;
    printf("a correct program: status %#x, %s\n", (unsigned)end.status, end.said);
}

int main(int argc, char **argv)
{
    bool small = argc > 1 && strcmp(argv[1], "--small") == 0;
    static const size_t sizes[] = {16, 64, 1000, 8000, 32000, 40000, 100000, 3 << 20};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (enum who who = SELF; who <= SLEEPS; who++)
            for (enum where where = HELD; where <= ALL_FREE; where++)
                if (!small || sizes[i] <= 32768)
                    try(sizes[i], who, where);
    for (int i = 0; i < 100; i++)
        correct();
    printf("%d programs, %d did not end as they should\n", cases, failed);
    return failed != 0;
}
