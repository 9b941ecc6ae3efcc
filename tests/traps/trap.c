#include "trap.h"

#define CELLS 256

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

static atomic_bool stop;

static void *work_until_stopped(void *seat)
{
    while (!stop)
        seat_work(seat, 200);
    return NULL;
}

void beside_crew(struct crew *crew, void (*f)(void))
{
    pthread_t threads[crew->n];
    stop = false;
    for (unsigned i = 0; i < crew->n; i++)
        threads[i] = started(work_until_stopped, &crew->seats[i]);
    f();
    stop = true;
    threads_join(threads, crew->n);
}
