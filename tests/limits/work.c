#include "work.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hakmem/hakmem.h"

#define KiB ((size_t)1 << 10)
#define MiB ((size_t)1 << 20)
#define MARK 4321
#define SLOTS 48
#define SHARED 16
#define TURNS_AFTER 200
#define FORK_TURNS 80
#define EDGE 64            /* bytes filled at both ends of a block */
#define SAMPLES 2          /* and words between, by their place */
#define SMALL_MOST 1024    /* filled whole */
#define TOUCHED (64 * KiB) /* what is larger is seldom zeroed or copied: runs are to be short */

struct block {
    unsigned char *start;
    size_t size;
};

struct seat {
    struct work *work;
    uint64_t random;
    struct block slots[SLOTS];
    size_t failures, allocations;
};

static pthread_mutex_t shared_lock = PTHREAD_MUTEX_INITIALIZER;
static struct block shared[SHARED]; /* blocks on their way to another thread; lock: shared */

_Noreturn void work_fail(const char *format, ...)
{
    char line[512];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(line, sizeof line - 1, format, arguments);
    va_end(arguments);
    if (length < 0 || length > (int)sizeof line - 2)
        length = (int)sizeof line - 2;
    line[length++] = '\n';
    if (write(STDERR_FILENO, line, (size_t)length) < 0)
        _exit(99);
    _exit(1);
}

static uint64_t next(struct seat *seat, uint64_t below)
{
    seat->random = seat->random * 6364136223846793005u + 1442695040888963407u;
    return (seat->random >> 33) % below;
}

/* ---- contents ---- */

static unsigned char mark_at(const struct block *b, size_t place)
{
    return (unsigned char)(place * 7 + b->size * 31 + 1);
}

/* Calls `at` for every place that is filled and below `limit`. */
static void each_place(const struct block *b, size_t limit,
                       void (*at)(const struct block *, size_t))
{
    size_t head = b->size <= SMALL_MOST ? b->size : EDGE;
    for (size_t i = 0; i < head && i < limit; i++)
        at(b, i);
    if (head == b->size)
        return;
    for (size_t i = 1; i <= SAMPLES; i++) {
        size_t place = b->size / (SAMPLES + 1) * i;
        if (place < limit)
            at(b, place);
    }
    for (size_t i = b->size - EDGE; i < b->size && i < limit; i++)
        at(b, i);
}

static void fill_at(const struct block *b, size_t place) { b->start[place] = mark_at(b, place); }

static void check_at(const struct block *b, size_t place)
{
    if (b->start[place] != mark_at(b, place))
        work_fail("block %p of %zu bytes, byte %zu: expected %02x, found %02x", (void *)b->start,
                  b->size, place, mark_at(b, place), b->start[place]);
}

static void zero_at(const struct block *b, size_t place)
{
    if (b->start[place] != 0)
        work_fail("block %p of %zu bytes by calloc, byte %zu: expected 0, found %02x",
                  (void *)b->start, b->size, place, b->start[place]);
}

/* ---- calls ---- */

static void check_result(struct seat *seat, const char *call, size_t n, const void *p)
{
    int expected = p == NULL ? ENOMEM : MARK;
    if (errno != expected)
        work_fail("errno after %s(%zu) that gave %p: expected %d, found %d (%s)", call, n, p,
                  expected, errno, strerror(errno));
    if (p == NULL && !seat->work->may_fail)
        work_fail("%s(%zu): expected a block, found NULL", call, n);
    if (p == NULL)
        seat->failures++;
    else
        seat->allocations++;
}

static void give(struct block *b)
{
    if (b->start != NULL)
        each_place(b, b->size, check_at);
    errno = MARK;
    hakmem_free(b->start);
    if (errno != MARK)
        work_fail("errno after free of %zu bytes: expected %d, found %d", b->size, MARK, errno);
    b->start = NULL;
}

static size_t some_size(struct seat *seat)
{
    switch (next(seat, 16)) {
    case 0 ... 5:
        return next(seat, KiB);
    case 6 ... 8:
        return KiB + next(seat, 31 * KiB);
    case 9 ... 10:
        return 32 * KiB + next(seat, 224 * KiB);
    case 11 ... 12:
        return 256 * KiB + next(seat, 2 * MiB - 256 * KiB);
    default:
        return 2 * MiB + next(seat, MiB);
    }
}

static void make(struct seat *seat, struct block *b)
{
    static const char *const calls[] = {"malloc", "calloc", "aligned_alloc", "posix_memalign"};
    unsigned kind = (unsigned)next(seat, 8);
    kind = kind < 4 ? 0 : kind - 4;
    size_t n = b->size = some_size(seat);
    if (kind == 1 && n > TOUCHED && next(seat, 8) != 0)
        kind = 0;
    size_t align = (size_t)16 << next(seat, next(seat, 4) == 0 ? 19 : 9); /* to 4 MiB */
    void *p = NULL;
    errno = MARK;
    if (kind == 0)
        p = hakmem_malloc(n);
    else if (kind == 1)
        p = hakmem_calloc(n, 1);
    else if (kind == 2)
        p = hakmem_aligned_alloc(align, n);
    else {
        int error = hakmem_posix_memalign(&p, align, n);
        if (errno != (error == 0 ? MARK : ENOMEM) || (error != 0 && error != ENOMEM) ||
            (error != 0) != (p == NULL))
            work_fail("posix_memalign(%zu, %zu): found %d, errno %d, %p", align, n, error, errno,
                      p);
    }
    check_result(seat, calls[kind], n, p);
    b->start = p;
    if (p == NULL)
        return;
    if (kind > 1 && (uintptr_t)p % align != 0)
        work_fail("%s(%zu, %zu): found %p", calls[kind], align, n, p);
    if (kind == 1)
        each_place(b, n, zero_at);
    each_place(b, n, fill_at);
}

static void resize(struct seat *seat, struct block *b)
{
    size_t n = next(seat, 2) == 0 ? some_size(seat) : b->size / 2 + next(seat, b->size + 2);
    if (b->size > 2 * MiB && next(seat, 8) != 0)
        n = b->size + next(seat, 256 * KiB); /* its pages stay or move */
    else if (b->size > TOUCHED && next(seat, 8) != 0)
        return;
    n += n == 0;
    each_place(b, b->size, check_at);
    errno = MARK;
    unsigned char *p = hakmem_realloc(b->start, n);
    check_result(seat, "realloc", n, p);
    if (p != NULL) {
        b->start = p;
        each_place(b, n < b->size ? n : b->size, check_at);
        b->size = n;
        each_place(b, n, fill_at);
    } else {
        each_place(b, b->size, check_at);
    }
}

static void swap_with_shared(struct block *b, size_t place)
{
    pthread_mutex_lock(&shared_lock);
    struct block other = shared[place];
    shared[place] = *b;
    pthread_mutex_unlock(&shared_lock);
    *b = other;
}

/* A child has what its parent had, and may use it as if it were alone. */
static void try_fork(struct seat *seat)
{
    pthread_mutex_lock(&shared_lock);
    pid_t child = fork();
    pthread_mutex_unlock(&shared_lock);
    if (child == 0) {
        alarm(120);
        for (unsigned i = 0; i < SLOTS; i++) {
            give(&seat->slots[i]);
            make(seat, &seat->slots[i]);
        }
        _exit(0);
    }
    int status = 0;
    if (child > 0 && (waitpid(child, &status, 0) != child || status != 0))
        work_fail("a child of fork: expected its end with 0, found status %d", status);
}

static void *seat_work(void *argument)
{
    struct seat *seat = argument;
    const struct work *work = seat->work;
    unsigned after = 0;
    for (unsigned turn = 0; turn < work->turns && after < TURNS_AFTER; turn++) {
        if (work->last != NULL && __atomic_load_n(work->last, __ATOMIC_RELAXED) != 0)
            after++;
        if (work->forks && turn % FORK_TURNS == FORK_TURNS - 1)
            try_fork(seat);
        struct block *b = &seat->slots[next(seat, SLOTS)];
        uint64_t what = next(seat, 8);
        if (b->start == NULL)
            make(seat, b);
        else if (what < 2)
            resize(seat, b);
        else if (what < 4)
            swap_with_shared(b, next(seat, SHARED));
        else
            give(b);
    }
    for (unsigned i = 0; i < SLOTS; i++)
        give(&seat->slots[i]);
    return NULL;
}

static void *shared_clear(void *unused)
{
    (void)unused;
    for (unsigned i = 0; i < SHARED; i++)
        give(&shared[i]);
    return NULL;
}

static void start(pthread_t *thread, void *(*body)(void *), void *argument)
{
    if (pthread_create(thread, NULL, body, argument) != 0)
        work_fail("pthread_create of the test itself failed");
}

void work_run(struct work *work)
{
    enum { MOST = 8 };
    static struct seat seats[MOST];
    pthread_t threads[MOST];
    /* The first alone: what it does is the same in every run. */
    for (unsigned i = 0; i <= work->threads && i < MOST; i++) {
        seats[i] = (struct seat){.work = work, .random = i + 1};
        start(&threads[i], seat_work, &seats[i]);
        if (i == 0)
            pthread_join(threads[0], NULL);
    }
    for (unsigned i = 1; i <= work->threads && i < MOST; i++)
        pthread_join(threads[i], NULL);
    pthread_t last;
    start(&last, shared_clear, NULL);
    pthread_join(last, NULL);
    work->failures = work->allocations = 0;
    for (unsigned i = 0; i < MOST; i++) {
        work->failures += seats[i].failures;
        work->allocations += seats[i].allocations;
        seats[i].failures = seats[i].allocations = 0;
    }
}
