/* Fork and libc's locks: after hakmem's handler libc's fork waits for the list of open files and
 * for the database of names. Their holder may wait for a file whose owner allocates (traps 39, 66).
 * First with every thread at the critical point, then in forks that last, then under load. */
#include "../api/stats.h"
#include "trap.h"

#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- who waits ---- */

static int number_of_thread(void) { return (int)syscall(SYS_gettid); }

/* Whether the kernel has put the thread to sleep. */
static bool sleeps(int number)
{
    char path[64], line[256] = "";
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", number);
    int file = open(path, O_RDONLY);
    if (file < 0)
        return false;
    ssize_t got = read(file, line, sizeof line - 1);
    close(file);
    const char *after_name = got > 0 ? strrchr(line, ')') : NULL;
    return after_name != NULL && after_name[2] == 'S';
}

/* Waits until the thread whose number comes to be there sleeps, and goes on sleeping for a while.
 */
static void await_sleep(volatile int *number)
{
    for (int times = 0; times < 20; usleep(1000))
        times = *number != 0 && sleeps(*number) ? times + 1 : 0;
}

/* ---- what is done meanwhile ---- */

static const size_t sizes[] = {16, 200, 3000, 30 * KiB, 40 * KiB, 200 * KiB, 300 * KiB, 3 * MiB};
enum { SIZES = sizeof sizes / sizeof *sizes, MANY = 1500, KEPT = 100 };

struct one {
    unsigned char *p;
    size_t n;
};
static struct one before[MANY], kept[KEPT];

static size_t size_of(unsigned i) { return sizes[i % (i % 32 == 0 ? SIZES : 5)] + i % 7; }

static void one_made(struct one *b, unsigned i)
{
    b->n = size_of(i);
    switch (i % 4) {
    case 0:
        b->p = NEED("calloc", do_calloc(1, b->n));
        for (size_t at = 0; at < b->n; at += 97)
            if (b->p[at] != 0) {
                CHECK(false, "calloc(1, %zu): byte %zu: expected 0, found %d", b->n, at, b->p[at]);
                break;
            }
        break;
    case 1:
        b->p = NEED("memalign", do_memalign(4096, b->n));
        CHECK((uintptr_t)b->p % 4096 == 0, "memalign(4096, %zu) is %p", b->n, (void *)b->p);
        break;
    default:
        b->p = NEED("malloc", do_malloc(b->n));
    }
    CHECK(do_usable_size(b->p) >= b->n, "usable size of %zu bytes: found %zu", b->n,
          do_usable_size(b->p));
    pattern_fill(b->p, b->n, i);
}

static void one_freed(struct one *b, unsigned i)
{
    CHECK_PATTERN(b->p, b->n, i);
    if (i % 4 == 1)
        do_free(b->p);
    else
        hakmem_free_sized(b->p, b->n);
}

/* Into another size and back; to the same size it stays, in the reserve too. */
static void one_resized(struct one *b, unsigned i)
{
    size_t most = b->n * (2 + i % 3) + 100;
    b->p = NEED("realloc", do_realloc(b->p, most));
    CHECK_PATTERN(b->p, b->n, i);
    b->p = NEED("realloc", do_realloc(b->p, b->n));
    uintptr_t before = (uintptr_t)b->p;
    b->p = NEED("realloc", do_realloc(b->p, b->n));
    if ((uintptr_t)b->p != before)
        CHECK(false, "realloc(%#zx, %zu) to the same size: found %p", before, b->n, (void *)b->p);
}

static void each(struct one *blocks, unsigned n, void (*f)(struct one *, unsigned))
{
    for (unsigned i = 0; i < n; i++)
        f(&blocks[i], i);
}

static void *first_calls_and_an_end(void *unused)
{
    struct one blocks[64];
    each(blocks, 64, one_made);
    each(blocks, 64, one_freed);
    return unused;
}

/* So much that every stack runs empty, and full. */
static void allocate_and_free(void)
{
    static struct one blocks[MANY];
    each(kept, KEPT, one_made);
    each(blocks, MANY, one_made);
    each(blocks, MANY / 3, one_resized);
    each(blocks, MANY, one_freed);
    each(before, MANY, one_freed);
    in_thread(first_calls_and_an_end, NULL);
}

/* ---- one file, its owner, who waits for it, who forks ---- */

static FILE *file;
static volatile int flusher_number, forker_number;
static volatile bool child_is_over;

static void *flush_all(void *unused)
{
    flusher_number = number_of_thread();
    fflush(NULL);
    return unused;
}

static void look_in_child(void)
{
    each(kept, KEPT, one_resized);
    each(kept, KEPT, one_freed);
    use_the_heap(1);
    CHECK_SIZE("breaches of the child's heap", (size_t)hakmem_check(), 0);
}

static void *fork_one(void *unused)
{
    do_free(do_malloc(100)); /* it has a cache */
    forker_number = number_of_thread();
    in_child(look_in_child);
    child_is_over = true;
    return unused;
}

/* The list of files is locked by one who waits for this thread's file, and awaited by the fork. */
static void owner_allocates(void)
{
    each(before, MANY, one_made);
    file = NEED("tmpfile", tmpfile());
    fprintf(file, "something to flush");
    flockfile(file);
    flusher_number = forker_number = 0;
    child_is_over = false;
    pthread_t flusher = started(flush_all, NULL);
    await_sleep(&flusher_number);
    pthread_t forker = started(fork_one, NULL);
    await_sleep(&forker_number);
    CHECK(!child_is_over, "the fork was to wait for the file's owner");
    allocate_and_free();
    CHECK(!child_is_over, "the fork was to wait for the file's owner");
    funlockfile(file);
    pthread_join(flusher, NULL);
    pthread_join(forker, NULL);
    fclose(file);
    each(kept, KEPT, one_resized);
    each(kept, KEPT, one_freed);
    use_the_heap(2);
    CHECK_SIZE("breaches of the heap", (size_t)hakmem_check(), 0);
}

TEST(owner_of_a_file_allocates)
{
    for (int i = 0; i < 3; i++)
        owner_allocates();
}

/* The same with a thread that ends the process. */
static void *owner(void *unused)
{
    await_sleep(&flusher_number);
    await_sleep(&forker_number);
    allocate_and_free();
    funlockfile(file);
    return unused;
}

static void *own(void *unused)
{
    flockfile(file);
    forker_number = 0;
    flusher_number = 0;
    child_is_over = true; /* it is locked */
    return owner(unused);
}

static void *exit_later(void *unused)
{
    flusher_number = number_of_thread();
    exit(0);
    return unused;
}

static void exit_beside_a_fork(void)
{
    each(before, MANY, one_made);
    file = NEED("tmpfile", tmpfile());
    fprintf(file, "something to flush");
    child_is_over = false;
    started(own, NULL);
    while (!child_is_over)
        usleep(1000);
    started(exit_later, NULL);
    await_sleep(&flusher_number);
    in_thread(fork_one, NULL);
    pause(); /* the other thread ends the process */
}

TEST(owner_of_a_file_allocates_at_exit) { in_child(exit_beside_a_fork); }

/* ---- forks that last ---- */

/* Registered before the allocator's first call, so it runs while the heap is held. */
static volatile bool lingers;

static void linger(void)
{
    if (lingers)
        usleep(40000);
}

static void nothing(void) {}

__attribute__((constructor(101))) static void before_all(void)
{
    if (pthread_atfork(linger, nothing, nothing) != 0)
        abort();
}

enum { LONG_FORKS = 20 };
static struct crew crew;
static volatile bool stop;

/* Threads that begin and end meanwhile. */
static void *start_until_stopped(void *unused)
{
    while (!stop)
        in_thread(first_calls_and_an_end, NULL);
    return unused;
}

static void use_and_look(void)
{
    use_the_heap(4);
    CHECK_SIZE("breaches of the child's heap", (size_t)hakmem_check(), 0);
}

static void fork_for_long(void)
{
    stop = false;
    lingers = true;
    pthread_t starter = started(start_until_stopped, NULL);
    for (int i = 0; i < LONG_FORKS; i++)
        in_child(use_and_look);
    stop = true;
    lingers = false;
    pthread_join(starter, NULL);
}

TEST(every_thread_goes_on)
{
    crew_make(&crew, 3, 100);
    beside_crew(&crew, fork_for_long);
    crew_clear(&crew);
    CHECK_SIZE("breaches of the heap", (size_t)hakmem_check(), 0);
    size_t threads = stats_now().threads;
    CHECK(threads <= 2, "caches of ended threads: expected none, found %zu of threads", threads);
}

/* ---- under load ---- */

enum { FORKS = 150 };

static void *use_files(void *unused)
{
    while (!stop) {
        FILE *f = tmpfile();
        if (f == NULL)
            continue;
        for (int i = 0; i < 20; i++)
            fprintf(f, "%d %*d\n", i, i * 100, i);
        rewind(f);
        char *line = NULL;
        size_t room = 0;
        while (getline(&line, &room, f) > 0)
            ;
        free(line);
        fclose(f);
    }
    return unused;
}

static void *flush_files(void *unused)
{
    while (!stop)
        fflush(NULL);
    return unused;
}

static void *look_up_names(void *unused)
{
    while (!stop) {
        char room[4096];
        struct passwd found, *result;
        if (getpwnam_r("root", &found, room, sizeof room, &result) == 0 && result != NULL)
            CHECK(found.pw_uid == 0, "root's number: expected 0, found %u", found.pw_uid);
        setpwent();
        getpwent_r(&found, room, sizeof room, &result);
        endpwent();
    }
    return unused;
}

static void work_in_child(void) { use_the_heap(3); }

static void fork_beside(void *(*f)(void *), void *(*g)(void *))
{
    pthread_t threads[4];
    stop = false;
    for (int i = 0; i < 4; i++)
        threads[i] = started(i < 2 ? f : g, NULL);
    for (int i = 0; i < FORKS; i++)
        in_child(work_in_child);
    stop = true;
    threads_join(threads, 4);
}

TEST(files_that_come_and_go) { fork_beside(use_files, flush_files); }
TEST(names_looked_up) { fork_beside(look_up_names, look_up_names); }

int main(void) { return tests_main("libc_locks"); }
