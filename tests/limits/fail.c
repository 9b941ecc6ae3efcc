/* Every call of the OS layer failing: for each kind of call and for all of them together, one run
 * of a short program for each of the first N calls, in which a burst of failures begins with that
 * call: it alone, 3, 10, and all until a moment later. Each run is a process of its own. Whatever
 * fails, malloc gives a null pointer with ENOMEM at worst; with the failures over, the heap is
 * sound, everything works again, and with everything freed nothing but metadata is mapped.
 *
 *   limits_fail [--calls N] [--each N] [--step N] [--turns N] [--burst N] [--call NAME [--n N]]
 *
 * Of the first N calls of --each none is left out, then one in N of --step is tried. A burst of 0
 * is the one that lasts. With --n it is that one run, in the process itself: for a debugger, with a
 * breakpoint at fake_refuses. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../stress/statm.h"
#include "back/huge.h"
#include "back/reserve.h"
#include "back/slices.h"
#include "back/superslabs.h"
#include "back/use.h"
#include "base/policy.h"
#include "hakmem/hakmem.h"
#include "heap/classes.h"
#include "heap/shards.h"
#include "heap/transfer.h"
#include "life/purge.h"
#include "os_fake.h"
#include "work.h"

#define WORKERS 2 /* processes at a time */

#define LASTING 0 /* a burst until the work ends */

/* Pages that one run touches and another doesn't. */
#define SLACK_RESIDENT (1 * MiB)

struct result {
    size_t calls[FAKE_ANY + 1];
    size_t failed;      /* calls refused */
    size_t failures;    /* null pointers */
    size_t allocations; /* blocks */
    size_t beside;      /* bytes mapped at the end beside metadata */
    size_t untouched;   /* bytes that were never used and could not be unmapped */
    size_t resident;    /* bytes of the process at the end */
};

static unsigned turns = 300;
static size_t each_most = 32;
static struct result usual; /* a run without failures */

/* Huge pages would be zeroed for a few bytes. */
static void small_pages(void) { prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0); }

/* So that a short run makes many calls. Without a call of hakmem, as the first of those may fail.
 */
static void keep_little(void) { policy.keep_bytes = limits.keep = 1 * MiB; }

static void everything_works(void)
{
    static const size_t sizes[] = {1, 100, 5000, 30000, 32769, 100000, 500000, 2 * MiB, 5 * MiB};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        unsigned char *p = hakmem_malloc(sizes[i]);
        if (p == NULL)
            work_fail("malloc(%zu) when no call fails any more: expected a block, found NULL",
                      sizes[i]);
        p[0] = p[sizes[i] - 1] = 1;
        p = hakmem_realloc(p, sizes[i] * 2);
        if (p == NULL || p[0] != 1 || p[sizes[i] - 1] != 1)
            work_fail("realloc(%zu) when no call fails any more: found %p", sizes[i] * 2,
                      (void *)p);
        hakmem_free(p);
    }
}

static void *everything_works_in_thread(void *unused)
{
    (void)unused;
    everything_works();
    return NULL;
}

/* Blocks that the last threads left for others. */
static void transfer_empty(void)
{
    void *block;
    for (unsigned cls = 0; cls < CLASSES; cls++)
        while (transfer_take(cls, &block + 1, 1) == 1)
            shards_put(&block, 1);
}

/* One run in this process. */
static struct result run(enum fake_call call, size_t first, size_t burst)
{
    struct result result = {.failed = 0};
    size_t last = burst == LASTING ? SIZE_MAX : first + burst - 1;
    bool forks = first % 8 == 1;
    os_fake.fails = call;
    os_fake.first = first;
    os_fake.last = last;
    struct work work = {.turns = turns,
                        .threads = 3,
                        .forks = forks,
                        .may_fail = last > 0,
                        .last = &os_fake.failed};
    alarm(300);
    work_run(&work);
    memcpy(result.calls, os_fake.calls, sizeof result.calls);
    result.failed = os_fake.failed;
    result.failures = work.failures;
    result.allocations = work.allocations;

    os_fake.last = 0;
    work = (struct work){.turns = 100, .threads = 2};
    work_run(&work);
    long broken = hakmem_check();
    if (broken != 0)
        work_fail("hakmem_check when no call fails any more: expected 0, found %ld", broken);
    pthread_t thread;
    if (pthread_create(&thread, NULL, everything_works_in_thread, NULL) != 0)
        work_fail("pthread_create of the test itself failed");
    pthread_join(thread, NULL);
    purge_stop();
    transfer_empty();
    huge_purge(SIZE_MAX);
    superslabs_release();
    purge_go_on();
    reserve_release();
    if (superslabs_mapped() != 0)
        work_fail("superslabs with everything freed: expected 0, found %zu", superslabs_mapped());
    struct hakmem_stats stats;
    hakmem_stats(&stats, sizeof stats);
    if (stats.mapped != os_fake.mapped)
        work_fail("bytes mapped: expected %zu, found %zu by hakmem_stats", os_fake.mapped,
                  stats.mapped);
    result.beside = stats.mapped - stats.metadata - stats.map;
    result.untouched = os_fake.untouched;
    result.resident = statm_read().resident;
    return result;
}

/* ---- many runs ---- */

struct job {
    pid_t pid;
    size_t n;
    struct result *result; /* shared with the process */
};

struct row {
    enum fake_call call;
    size_t burst; /* calls that fail from the n-th on */
    size_t runs, wrong, failures, allocations, worst;
    bool ended; /* the program makes fewer calls than that */
};

static void start_job(struct job *job, const struct row *row, size_t n)
{
    job->n = n;
    memset(job->result, 0, sizeof *job->result);
    job->pid = fork();
    if (job->pid < 0)
        work_fail("fork of the test itself failed");
    if (job->pid > 0)
        return;
    *job->result = run(row->call, n, row->burst);
    _exit(0);
}

static void wrong_end(struct row *row, const struct job *job, const char *what, size_t found,
                      size_t most)
{
    row->wrong++;
    fprintf(stderr,
            "%s number %zu, a burst of %zu: %s with everything freed: expected at most %zu KiB, "
            "found %zu KiB\n",
            fake_names[row->call], job->n, row->burst, what, most / KiB, found / KiB);
}

static void end_job(struct job *job, struct row *row)
{
    int status = 0;
    if (job->pid == 0)
        return;
    if (waitpid(job->pid, &status, 0) != job->pid)
        work_fail("waitpid of the test itself failed");
    job->pid = 0;
    row->runs++;
    if (status != 0) {
        row->wrong++;
        fprintf(stderr, "%s number %zu, a burst of %zu: expected the end of the run, found %s %d\n",
                fake_names[row->call], job->n, row->burst,
                WIFSIGNALED(status) ? "signal" : "status",
                WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
        return;
    }
    struct result *r = job->result;
    if (r->failed == 0)
        row->ended = true;
    row->failures += r->failures;
    row->allocations += r->allocations;
    size_t lost = r->beside > usual.beside ? r->beside - usual.beside : 0;
    if (lost > row->worst)
        row->worst = lost;
    /* Address space that was mapped to get an aligned part of it, and which the kernel will not
     * take back, is lost; no page of it was touched. */
    if (lost > r->untouched)
        wrong_end(row, job, "bytes mapped beside metadata", r->beside, usual.beside + r->untouched);
    if (r->resident > usual.resident + SLACK_RESIDENT)
        wrong_end(row, job, "bytes resident", r->resident, usual.resident + SLACK_RESIDENT);
}

static size_t run_row(struct row *row, struct job *jobs, size_t calls, size_t step)
{
    unsigned next = 0;
    size_t each = row->burst == LASTING ? 1 : row->burst;
    for (size_t n = 1; n <= calls && !row->ended; n += n < each_most || each > step ? each : step) {
        struct job *job = &jobs[next++ % WORKERS];
        end_job(job, row);
        if (!row->ended)
            start_job(job, row, n);
    }
    for (unsigned i = 0; i < WORKERS; i++)
        end_job(&jobs[i], row);
    printf("%-15s burst %2zu %5zu runs %9zu blocks %8zu null pointers, at most %5zu KiB lost, "
           "%zu wrong\n",
           fake_names[row->call], row->burst, row->runs, row->allocations, row->failures,
           row->worst / KiB, row->wrong);
    fflush(stdout);
    return row->wrong;
}

static size_t number(const char *text) { return strtoul(text, NULL, 10); }

int main(int argc, char **argv)
{
    size_t calls = 1000;
    size_t step = 1;
    size_t alone = 0;
    static const size_t bursts[] = {1, 3, 10, LASTING};
    size_t burst = SIZE_MAX; /* each of these */
    unsigned only = FAKE_ANY + 1;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--calls") == 0)
            calls = number(argv[i + 1]);
        else if (strcmp(argv[i], "--each") == 0)
            each_most = number(argv[i + 1]);
        else if (strcmp(argv[i], "--step") == 0)
            step = number(argv[i + 1]);
        else if (strcmp(argv[i], "--turns") == 0)
            turns = (unsigned)number(argv[i + 1]);
        else if (strcmp(argv[i], "--n") == 0)
            alone = number(argv[i + 1]);
        else if (strcmp(argv[i], "--burst") == 0)
            burst = number(argv[i + 1]);
        else if (strcmp(argv[i], "--call") == 0)
            for (only = 0; only <= FAKE_ANY && strcmp(argv[i + 1], fake_names[only]) != 0;)
                only++;
        else
            work_fail("%s: no such option", argv[i]);
    }
    keep_little();
    small_pages();

    if (alone > 0) {
        struct result r = run(only, alone, burst == SIZE_MAX ? 1 : burst);
        printf("%zu calls refused, %zu blocks, %zu null pointers, %zu KiB beside metadata\n",
               r.failed, r.allocations, r.failures, r.beside / KiB);
        return 0;
    }

    struct job jobs[WORKERS] = {{.pid = 0}};
    for (unsigned i = 0; i < WORKERS; i++) {
        jobs[i].result = mmap(NULL, sizeof *jobs[i].result, PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (jobs[i].result == MAP_FAILED)
            work_fail("mmap of the test itself failed");
    }
    usual = (struct result){.beside = SIZE_MAX / 2, .resident = SIZE_MAX / 2};
    struct row plain = {.call = FAKE_ANY, .burst = 1};
    start_job(&jobs[0], &plain, SIZE_MAX); /* never reached */
    struct result *r = jobs[0].result;
    end_job(&jobs[0], &(struct row){.call = FAKE_ANY});
    usual = *r;
    printf("without failures: %zu blocks, %zu KiB beside metadata at the end; calls:",
           r->allocations, usual.beside / KiB);
    for (unsigned call = 0; call <= FAKE_ANY; call++)
        printf(" %s %zu", fake_names[call], usual.calls[call]);
    printf("\n");
    if (usual.allocations == 0)
        work_fail("the run without failures: expected blocks, found none");

    size_t wrong = 0;
    for (unsigned call = 0; call <= FAKE_ANY; call++)
        for (unsigned i = 0; i < sizeof bursts / sizeof *bursts; i++)
            if ((only > FAKE_ANY || only == call) && (burst == SIZE_MAX || burst == bursts[i]) &&
                usual.calls[call] > 0) {
                struct row row = {.call = call, .burst = bursts[i]};
                wrong += run_row(&row, jobs, calls, step);
            }
    return wrong != 0;
}
