#include "replay/play.h"

#include <malloc.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include "replay/epochs.h"

#define STACK_BYTES (256 * 1024)
#define SPINS 200

/* In a slot: the allocation failed. */
static char none;

static size_t page;

/* As much as the program wrote to of such blocks, as far as that is known. */
static void touch(char *p, const struct op *op)
{
    size_t n = op->size;
    if (n == 0)
        return;
    *(volatile char *)p = 1;
    char *end = p + n;
    if (op->touch == OPS_TOUCH_ALL)
        *(volatile char *)(end - 1) = 1;
    else if (op->touch < (n + page - 1) / page)
        end = p + op->touch * page;
    for (char *at = (char *)(((uintptr_t)p | (page - 1)) + 1); at < end; at += page)
        *(volatile char *)at = 1;
}

/* Of a block that another thread allocates, when it has. */
static void *held(_Atomic(void *) *slot)
{
    void *p;
    for (unsigned spins = 0; (p = atomic_load(slot)) == NULL; spins++)
        if (spins > SPINS)
            sched_yield();
    return p;
}

static void *allocate(const struct op *op)
{
    if (op->kind == OP_CALLOC)
        return calloc(op->size, 1);
    return op->align != 0 ? memalign((size_t)1 << op->align, op->size) : malloc(op->size);
}

static void keep(struct play *play, const struct op *op, void *p)
{
    if (p != NULL)
        touch(p, op);
    else
        atomic_fetch_add(&play->failed, 1);
    atomic_store_explicit(&play->slots[op->slot], p != NULL ? p : &none, memory_order_release);
}

static void reallocate(struct play *play, const struct op *op, void *taken)
{
    void *p = taken != NULL ? taken : held(&play->slots[op->slot]);
    void *q = realloc(p == &none ? NULL : p, op->size);
    if (q != NULL || p == &none) {
        keep(play, op, q);
        return;
    }
    /* It is there still. */
    atomic_fetch_add(&play->failed, 1);
    atomic_store_explicit(&play->slots[op->slot], p, memory_order_release);
}

static void *take(_Atomic(void *) *slot)
{
    void *p = held(slot);
    atomic_store_explicit(slot, NULL, memory_order_relaxed);
    return p;
}

static void let_go(void *p)
{
    if (p != &none)
        free(p);
}

struct start {
    struct play *play;
    uint32_t thread;
    atomic_bool taken;
};

static void *run(void *argument)
{
    struct start *start = argument;
    struct play *play = start->play;
    uint32_t thread = start->thread;
    atomic_store(&start->taken, true);
    play_thread(play, thread);
    return NULL;
}

/* Its argument is on this stack, so that nothing is allocated but what the C library needs. */
static bool start_thread(struct play *play, uint32_t thread)
{
    struct start start = {.play = play, .thread = thread};
    pthread_attr_t how;
    pthread_attr_init(&how);
    pthread_attr_setstacksize(&how, STACK_BYTES);
    bool started = pthread_create(&play->running[thread], &how, run, &start) == 0;
    pthread_attr_destroy(&how);
    while (started && !atomic_load(&start.taken))
        sched_yield();
    return started;
}

bool play_thread(struct play *play, uint32_t thread)
{
    if (page == 0)
        page = (size_t)sysconf(_SC_PAGESIZE);
    const struct op *op = play->ops + play->threads[thread].first;
    const struct op *end = op + play->threads[thread].count;
    uint32_t epoch = UINT32_MAX;
    void *taken = NULL;
    for (; op < end; op++) {
        switch ((enum op_kind)op->kind) {
        case OP_EPOCH:
            if (epoch != UINT32_MAX)
                epoch_part_done(epoch);
            epoch = op->slot;
            epoch_wait(epoch);
            break;
        case OP_MALLOC:
        case OP_CALLOC:
            keep(play, op, allocate(op));
            break;
        case OP_FREE:
            let_go(take(&play->slots[op->slot]));
            break;
        case OP_REALLOC:
            reallocate(play, op, taken);
            taken = NULL;
            break;
        case OP_TAKE:
            taken = take(&play->slots[op->slot]);
            break;
        case OP_START:
            if (!start_thread(play, op->slot))
                return false;
            break;
        case OP_END:
            pthread_join(play->running[op->slot], NULL);
            break;
        case OP_KINDS:
            break;
        }
    }
    if (epoch != UINT32_MAX)
        epoch_part_done(epoch);
    return true;
}
