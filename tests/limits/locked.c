/* All memory is locked (mlockall): pages can't be returned, and mapped memory counts at once. The
 * work continues as usual; at the limit of locked memory malloc fails with ENOMEM. */
#include "../api/check.h"

#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "work.h"

#define SKIPPED 77
#define NOBODY 65534

static int work_while_locked(void)
{
    struct rlimit none = {RLIM_INFINITY, RLIM_INFINITY};
    setrlimit(RLIMIT_MEMLOCK, &none);
    if (mlockall(MCL_CURRENT | MCL_FUTURE) != 0) {
        printf("mlockall is not allowed here (%s): skipped\n", error_name(errno));
        return SKIPPED;
    }
    struct work work = {.turns = 3000, .threads = 3};
    work_run(&work);
    printf("locked: %zu blocks\n", work.allocations);
    CHECK(work.allocations > 4000, "expected more than 4000 blocks, found %zu", work.allocations);
    return 0;
}

/* The kernel then answers EAGAIN to mmap. */
static int reach_the_limit_of_locked_memory(void)
{
    struct rlimit both = {0, 0};
    getrlimit(RLIMIT_MEMLOCK, &both);
    if (both.rlim_max > 64 * MiB)
        both.rlim_max = 64 * MiB;
    const size_t limit = both.rlim_cur = both.rlim_max;
    if (setrlimit(RLIMIT_MEMLOCK, &both) != 0 ||
        (geteuid() == 0 && setresuid(NOBODY, NOBODY, NOBODY) != 0) || mlockall(MCL_FUTURE) != 0) {
        printf("a limit to locked memory can't be set here (%s): skipped\n", error_name(errno));
        return SKIPPED;
    }
    static const size_t sizes[] = {100, 5000, 50000, 500000, 3 * MiB};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        size_t got = 0;
        unsigned char *newest = NULL;
        for (;;) {
            errno = 4321;
            unsigned char *p = do_malloc(sizes[i]);
            if (p == NULL)
                break;
            CHECK_ERROR("errno after malloc", errno, 4321);
            memcpy(p, &newest, sizeof newest);
            newest = p;
            got += sizes[i];
            if (!CHECK(got <= limit, "blocks of %zu: expected an end at %zu bytes", sizes[i],
                       limit))
                break;
        }
        CHECK_ERROR("errno at the limit of locked memory", errno, ENOMEM);
        CHECK(got >= limit / 4 || sizes[i] > limit / 16,
              "blocks of %zu: expected at least a quarter of %zu bytes, found %zu", sizes[i], limit,
              got);
        printf("locked, at most %zu MiB: %zu KiB in blocks of %zu\n", limit / MiB, got / KiB,
               sizes[i]);
        while (newest != NULL) {
            unsigned char *p = newest;
            memcpy(&newest, p, sizeof newest);
            do_free(p);
        }
    }
    return 0;
}

static void *allocate(void *p)
{
    p = do_malloc(1000);
    CHECK(p != NULL, "malloc in a thread");
    do_free(p);
    return NULL;
}

/* What a service gets that nobody has given more: Debian's limit. All addresses count, also those
 * that the library has for itself. */
#define DEFAULT (8 * MiB)

static int work_under_the_default_limit(void)
{
    struct rlimit both = {DEFAULT, DEFAULT};
    if (setrlimit(RLIMIT_MEMLOCK, &both) != 0 ||
        (geteuid() == 0 && setresuid(NOBODY, NOBODY, NOBODY) != 0)) {
        printf("the limit to locked memory can't be set here (%s): skipped\n", error_name(errno));
        return SKIPPED;
    }
    CHECK_ERROR("mlockall", mlockall(MCL_CURRENT | MCL_FUTURE) == 0 ? 0 : errno, 0);
    for (size_t got = 0; got < DEFAULT / 4; got += 200) {
        void *p = do_malloc(200);
        if (!CHECK(p != NULL, "malloc(200) after %zu bytes: %s", got, error_name(errno)))
            break;
        memset(p, 1, 200);
    }
    pthread_t thread;
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 64 * KiB);
    CHECK_ERROR("pthread_create", pthread_create(&thread, &small, allocate, NULL), 0);
    pthread_join(thread, NULL);
    pthread_attr_destroy(&small);
    return 0;
}

static void run(void *body)
{
    int result = (*(int (**)(void))body)();
    fflush(stdout);
    if (result != 0)
        _exit(result);
}

int main(void)
{
    static int (*bodies[])(void) = {work_while_locked, work_under_the_default_limit,
                                    reach_the_limit_of_locked_memory};
    int skipped = 0;
    check_start("locked");
    for (size_t i = 0; i < 3; i++) {
        struct child_end end = child_end(run, &bodies[i]);
        bool skips = WIFEXITED(end.status) && WEXITSTATUS(end.status) == SKIPPED;
        CHECK(end.status == 0 || skips, "body %zu: expected the end with 0, found %#x: %s", i,
              (unsigned)end.status, end.said);
        skipped += skips;
    }
    int failed = check_end();
    return failed != 0 ? failed : skipped == 3 ? SKIPPED : 0;
}
