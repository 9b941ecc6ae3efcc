#include "trap.h"

#include <sys/wait.h>
#include <unistd.h>

#define CELLS 256

static size_t next_size(size_t n) { return n < 6 * MiB ? n + n / 2 + 1 : 1; }

void use_the_heap(unsigned number)
{
    enum { N = 40 };
    unsigned char *blocks[N];
    size_t n = 1;
    for (unsigned i = 0; i < N; i++, n = next_size(n)) {
        blocks[i] = NEED("malloc", do_malloc(n));
        blocks[i][0] = blocks[i][n - 1] = (unsigned char)(i + number);
    }
    n = 1;
    for (unsigned i = 0; i < N; i++, n = next_size(n)) {
        unsigned char expected = (unsigned char)(i + number);
        CHECK(blocks[i][0] == expected && blocks[i][n - 1] == expected,
              "ends of a block of %zu bytes: expected %02x, found %02x and %02x", n, expected,
              blocks[i][0], blocks[i][n - 1]);
        do_free(blocks[i]);
    }
}

void in_child(void (*f)(void))
{
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        watchdog(120);
        f();
        _exit(!check_all_passed());
    }
    if (CHECK(child > 0 && waitpid(child, &status, 0) == child, "fork: %s", error_name(errno)))
        CHECK(status == 0, "status of the child: expected 0, found %#x", (unsigned)status);
}

pthread_t started(void *(*f)(void *), void *argument)
{
    pthread_t thread;
    int error = pthread_create(&thread, NULL, f, argument);
    if (error != 0)
        fail("pthread_create: expected success, found %s", error_name(error));
    return thread;
}

void in_thread(void *(*f)(void *), void *argument) { pthread_join(started(f, argument), NULL); }

void crew_make(struct crew *crew, unsigned n, size_t slots)
{
    struct record *record = pages_from_kernel((CELLS + n * slots) * sizeof *record);
    crew->n = n;
    crew->exchange.n = CELLS;
    crew->exchange.large_limit = 64 * MiB;
    crew->exchange.cells = pages_from_kernel(CELLS * sizeof *crew->exchange.cells);
    for (size_t i = 0; i < CELLS; i++)
        atomic_init(&crew->exchange.cells[i], record++);
    crew->seats = pages_from_kernel(n * sizeof *crew->seats);
    for (unsigned i = 0; i < n; i++) {
        struct seat *seat = &crew->seats[i];
        seat->worker.number = i + 1;
        seat->random = random_start(1, i, 0);
        seat->exchange = &crew->exchange;
        seat->n = slots;
        seat->slots = pages_from_kernel(slots * sizeof *seat->slots);
        for (size_t k = 0; k < slots; k++)
            seat->slots[k] = record++;
    }
}

void crew_clear(struct crew *crew)
{
    struct worker me = {0, 0};
    for (unsigned i = 0; i < crew->n; i++)
        seat_clear(&crew->seats[i], &me);
    exchange_clear(&crew->exchange, &me);
}
