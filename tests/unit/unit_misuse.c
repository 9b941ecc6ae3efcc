/* The check of the size of a sized free, and the descriptions of addresses, if the policy lets the
 * program continue. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "api/slow.h"
#include "back/map.h"
#include "back/use.h"
#include "base/policy.h"
#include "hakmem/hakmem.h"
#include "heap/classes.h"
#include "os/os.h"
#include "report/report.h"

static char said[16384];
static int pipe_ends[2];

/* What is written to standard error from here to what_was_said. */
static int begin_listening(void)
{
    int before = dup(STDERR_FILENO);
    EXPECT(pipe(pipe_ends) == 0);
    dup2(pipe_ends[1], STDERR_FILENO);
    close(pipe_ends[1]);
    return before;
}

static const char *what_was_said(int before)
{
    dup2(before, STDERR_FILENO);
    close(before);
    size_t used = 0;
    ssize_t got;
    while ((got = read(pipe_ends[0], said + used, sizeof said - 1 - used)) > 0)
        used += (size_t)got;
    said[used] = '\0';
    close(pipe_ends[0]);
    return said;
}

static bool is_reported(const void *p, size_t align, size_t size)
{
    int before = begin_listening();
    sized_free_check(p, align, size, NULL);
    return what_was_said(before)[0] != '\0';
}

static void expect_fits(const void *p, size_t align, size_t size, bool fits)
{
    bool reported = is_reported(p, align, size);
    if (reported == fits)
        fprintf(stderr, "block of %zu, alignment %zu, size %zu:\n%s", hakmem_malloc_usable_size(p),
                align, size, said);
    EXPECT_EQUAL(reported, !fits);
}

static void right_sizes_fit(void)
{
    static const size_t sizes[] = {0,      1,      15,      16,      17,      100,     1024,
                                   1025,   30000,  32768,   32769,   65536,   65537,   200000,
                                   262144, 262145, 1 << 20, 1500000, 2 << 20, 3000000, 8 << 20};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        void *p = hakmem_malloc(sizes[i]);
        expect_fits(p, 1, sizes[i], true);
        slow_free_sized(p, sizes[i]);
        for (size_t align = 16; align <= 1 << 20; align *= 4) {
            p = hakmem_aligned_alloc(align, sizes[i]);
            expect_fits(p, align, sizes[i], true);
            slow_free_aligned_sized(p, align, sizes[i]);
        }
    }
}

/* Whatever realloc makes of a block, its new size fits. */
static void sizes_fit_after_realloc(void)
{
    for (int i = 0; i < 3000; i++) {
        size_t most = i % 10 == 0 ? 3 << 20 : 4000;
        void *p = hakmem_malloc(next_random() % most + 1);
        size_t n = next_random() % most + 1;
        p = hakmem_realloc(p, n);
        EXPECT(p != NULL);
        if (i % 10 == 0 || is_reported(p, 1, n))
            expect_fits(p, 1, n, true);
        hakmem_free(p);
    }
}

static void wrong_sizes_do_not(void)
{
    static const size_t pairs[][2] = {
        {100, 113},
        {100, 200},
        {100, 16},
        {100, 55},
        {1000, 24},
        {16, 17},
        {32768, 8},
        {200000, 90000},
        {200000, 300000},
        {1 << 20, 100},
        {1 << 20, (1 << 20) + 4097},
        {8 << 20, 1000},
        {100, SIZE_MAX},
        {8 << 20, (size_t)1 << 60},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        void *p = hakmem_malloc(pairs[i][0]);
        expect_fits(p, 1, pairs[i][1], false);
        hakmem_free(p);
    }
    void *p = hakmem_malloc(100);
    expect_fits(p, 4096, 100, false); /* such a block would be larger */
    expect_fits(p, 3, 100, false);
    hakmem_free(p);
}

static void a_report_has_both_sizes_and_the_block_is_freed(void)
{
    char *p = hakmem_malloc(100);
    int before = begin_listening();
    errno = 5;
    slow_free_sized(p, 24);
    EXPECT_EQUAL(errno, 5);
    what_was_said(before);
    EXPECT(strstr(said, "the block is freed, the program goes on") != NULL);
    EXPECT(hakmem_malloc(100) == p);
    char first[128];
    snprintf(first, sizeof first, "sized free(%p, 24): the size that was said does not fit",
             (void *)p);
    EXPECT(strstr(said, first) != NULL);
    EXPECT(strstr(said, "size: 24 bytes were said, the block has 112\n") != NULL);
}

static void nothing_is_said_unless_asked(void)
{
    void *p = hakmem_malloc(100);
    hardening.sizes = 0;
    expect_fits(p, 1, 5000, true);
    hardening.sizes = 1;
    expect_fits(NULL, 1, 5000, true);
    expect_fits(&policy, 1, 5000, true); /* free says what is wrong there */
    hakmem_free(p);
}

static void places(void)
{
    char *small = hakmem_malloc(100);
    struct address place = address_describe(small + 30);
    EXPECT_EQUAL(place.kind, ADDRESS_CLASS);
    EXPECT_EQUAL(place.start, (uintptr_t)small);
    EXPECT_EQUAL(place.size, 112);
    EXPECT_EQUAL(place.slab % SLICE, 0);
    EXPECT_EQUAL(address_describe(&place).kind, ADDRESS_ELSEWHERE);
    EXPECT_EQUAL(address_describe(NULL).kind, ADDRESS_ELSEWHERE);
    EXPECT_EQUAL(address_describe((void *)UINTPTR_MAX).kind, ADDRESS_ELSEWHERE);
    EXPECT_EQUAL(address_describe((void *)(WINDOW_BASE + 1)).kind, ADDRESS_VACANT);

    static const size_t sizes[] = {65536, 200704, 1 << 20, 2 << 20, 8 << 20, 1 << 28};
    policy.container_limits = 0; /* a small container would have less kept */
    limits.stays = true;         /* a look may come at any time */
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        if (sizes[i] > CLASS_SLICES_MOST) /* no stack holds it */
            policy.keep_bytes = limits.keep = KEEP_ALL;
        char *p = hakmem_malloc(sizes[i]);
        EXPECT_EQUAL(address_describe(p).kind, ADDRESS_LARGE);
        EXPECT_EQUAL(address_describe(p + sizes[i] - 1).kind, ADDRESS_LARGE);
        EXPECT_EQUAL(address_describe(p + sizes[i] - 1).start, (uintptr_t)p);
        EXPECT_EQUAL(address_describe(p + sizes[i] - 1).size, sizes[i]);
        hakmem_free(p);
        EXPECT_EQUAL(address_describe(p + 5000).kind, ADDRESS_DIRTY);
        hakmem_purge(); /* so that the next one finds room in the thread's stacks */
    }
    hakmem_free(small);
}

/* While a report is written no handler of the program's runs; afterwards they do again. */
static void a_report_leaves_signals_as_they_were(void)
{
    sigset_t now;
    char *p = hakmem_malloc(100);
    int before = begin_listening();
    hakmem_free(p + 16);
    what_was_said(before);
    EXPECT(said[0] != '\0');
    hakmem_free(p);
    EXPECT_EQUAL(pthread_sigmask(SIG_SETMASK, NULL, &now), 0);
    EXPECT(!sigismember(&now, SIGUSR1) && !sigismember(&now, SIGALRM));
}

static _Atomic int looked;

static void *reports_and_looks(void *as_before)
{
    sigset_t now;
    char *p = hakmem_malloc(100);
    hakmem_free(p + 16);
    hakmem_free(p);
    pthread_sigmask(SIG_SETMASK, NULL, &now);
    *(bool *)as_before = !sigismember(&now, SIGUSR1);
    looked++;
    return NULL;
}

/* The full pipe stops one in the middle of its report, so the other waits for its turn. */
static void a_report_that_waited_leaves_signals_as_they_were(void)
{
    static const char nothing[4096];
    pthread_t threads[2];
    bool as_before[2];
    int before = begin_listening();
    fcntl(STDERR_FILENO, F_SETFL, O_NONBLOCK);
    while (write(STDERR_FILENO, nothing, sizeof nothing) > 0)
        ;
    fcntl(STDERR_FILENO, F_SETFL, 0);
    for (int i = 0; i < 2; i++)
        EXPECT_EQUAL(pthread_create(&threads[i], NULL, reports_and_looks, &as_before[i]), 0);
    usleep(100000);
    fcntl(pipe_ends[0], F_SETFL, O_NONBLOCK);
    while (looked < 2) {
        while (read(pipe_ends[0], said, sizeof said) > 0)
            ;
        usleep(1000);
    }
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    dup2(before, STDERR_FILENO);
    close(before);
    close(pipe_ends[0]);
    EXPECT(as_before[0] && as_before[1]);
}

static void a_path_is_cut_to_its_room(void)
{
    char path[16];
    memset(path, '#', sizeof path);
    os_program_path(path, 8);
    EXPECT_EQUAL(strlen(path), 7);
    EXPECT_EQUAL(path[0], '/');
    for (size_t i = 8; i < sizeof path; i++)
        EXPECT_EQUAL(path[i], '#');
}

static void a_look_at_a_mapping_leaves_no_file_open(void)
{
    int before = dup(STDERR_FILENO);
    close(before);
    char line[64];
    EXPECT_EQUAL(os_mapping(&before, line, sizeof line), OS_MAPPED);
    EXPECT_EQUAL(os_mapping(NULL, line, sizeof line), OS_NOT_MAPPED);
    int after = dup(STDERR_FILENO);
    close(after);
    EXPECT_EQUAL(after, before);
}

static size_t milliseconds_of(clockid_t id)
{
    struct timespec now;
    EXPECT(clock_gettime(id, &now) == 0);
    return (size_t)now.tv_sec * 1000 + (size_t)now.tv_nsec / 1000000;
}

static void the_clock_counts_milliseconds(void)
{
    size_t before = milliseconds_of(CLOCK_MONOTONIC_COARSE);
    size_t between = os_milliseconds();
    size_t after = milliseconds_of(CLOCK_MONOTONIC);
    EXPECT(before <= between && between <= after);
    size_t exact = os_nanoseconds() / 1000000;
    EXPECT(after <= exact && exact <= milliseconds_of(CLOCK_MONOTONIC));
}

int main(void)
{
    a_look_at_a_mapping_leaves_no_file_open();
    the_clock_counts_milliseconds();
    policy.abort_on_misuse = 0;
    hardening.sizes = 1;
    places();
    right_sizes_fit();
    sizes_fit_after_realloc();
    wrong_sizes_do_not();
    a_report_has_both_sizes_and_the_block_is_freed();
    nothing_is_said_unless_asked();
    a_report_leaves_signals_as_they_were();
    a_report_that_waited_leaves_signals_as_they_were();
    a_path_is_cut_to_its_room();
    puts("8 passed, 0 failed");
    return 0;
}
