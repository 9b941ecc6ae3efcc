/*
 * Blocks of all sizes on many threads, written through as a program would:
 *
 *   keep    each thread keeps, resizes, hands over and drops blocks whose
 *           sizes run over many octaves, each octave as often as the next
 *   tide    each thread fills all its slots with blocks and drops them again
 *
 * realloc must carry a block's stamp and its last byte along, and a block that
 * was handed over is verified by the thread that drops it. A resize asks for a
 * size that doesn't depend on the old one: with the blocks that wander, that
 * would change from run to run.
 */
#include "handover.h"

static void *whole_resize(void *block, size_t size, const struct params *p)
{
    const uintptr_t before = (uintptr_t)block;
    unsigned char *moved = realloc(block, size);
    if (moved == NULL)
        give_up(EXIT_NO_MEMORY, "realloc(%zu) found no memory", size);
    size_t old = head_verify(moved, before, p);
    if (size >= old)
        tail_verify(moved, old);
    if (size > old)
        block_touch(moved + old, size - old, TOUCH_PAGES);
    block_stamp(moved, size, TOUCH_BOTH);
    KEEP(moved);
    return moved;
}

/* An octave first, then a size within it: as many blocks of 16 to 32 bytes as of 1 to 2 MiB. */
static size_t octave_draw(struct random *rng, const struct params *p)
{
    const uint64_t bits = random_next(rng);
    const uint64_t octaves = 63 - (uint64_t)__builtin_clzll(p->max / p->min);
    const uint64_t low = p->min << random_low(bits, octaves);
    return low + random_high(bits, low);
}

static void *whole_make(struct random *rng, const struct params *p, uint64_t *sum)
{
    const size_t size = octave_draw(rng, p);
    *sum += size;
    return block_make(size, TOUCH_PAGES, true);
}

static void sizes_validate(const struct params *p)
{
    if (p->max < 2 * p->min)
        give_up(EXIT_USAGE, "sizes must span an octave");
}

/* ---- keep */

enum { BOARD = 64 };

struct board {
    _Alignas(128) _Atomic(void *) block; /* atomic; never null */
};

static void keep_body(struct worker *w)
{
    /* Of eight turns on a block. */
    enum { DROPS = 3, RESIZES = 2, ALL = 8 };
    const struct params *p = w->params;
    struct board *board = w->shared;
    struct random rng = random_start(p->seed, w->index);
    void **slot = own_memory(p->slots * sizeof *slot);
    uint64_t calls = 0;

    for (uint64_t i = 0; i < p->iterations; i++) {
        const uint64_t bits = random_next(&rng);
        void **s = &slot[random_low(bits, p->slots)];
        const uint64_t act = random_high(bits, ALL);
        if (*s == NULL) {
            *s = whole_make(&rng, p, &w->checksum);
            calls++;
        } else if (act < DROPS) {
            block_drop(*s, p, true);
            *s = NULL;
            calls++;
        } else if (act < DROPS + RESIZES) {
            /* The larger of two: a buffer grows more often than it shrinks. */
            size_t one = octave_draw(&rng, p), other = octave_draw(&rng, p);
            size_t size = one > other ? one : other;
            *s = whole_resize(*s, size, p);
            w->checksum += size;
            calls++;
        } else {
            struct board *place = &board[random_low(random_next(&rng), BOARD)];
            *s = atomic_exchange_explicit(&place->block, *s, memory_order_acq_rel);
        }
    }
    for (uint64_t i = 0; i < p->slots; i++) {
        calls += slot[i] != NULL;
        block_drop(slot[i], p, true);
    }
    w->operations = calls;
    own_release(slot, p->slots * sizeof *slot);
}

void work_keep(const struct params *p, struct outcome *out)
{
    sizes_validate(p);
    struct board *board = own_memory(BOARD * sizeof *board);
    struct random rng = random_start(p->seed, p->threads);
    uint64_t sum = 0;
    for (int i = 0; i < BOARD; i++)
        atomic_init(&board[i].block, whole_make(&rng, p, &sum));

    const struct worker_calls calls = {.body = keep_body};
    workers_run(p, &calls, board, out);

    for (int i = 0; i < BOARD; i++)
        block_drop(atomic_load(&board[i].block), p, true);
    own_release(board, BOARD * sizeof *board);
    resident_add(out);
}

/* ---- tide */

static void tide_body(struct worker *w)
{
    const struct params *p = w->params;
    const uint32_t *turn = w->shared;
    struct random rng = random_start(p->seed, w->index);
    void **slot = own_memory(p->slots * sizeof *slot);

    for (uint64_t i = 0; i < p->iterations; i++) {
        for (uint64_t k = 0; k < p->slots; k++)
            slot[k] = whole_make(&rng, p, &w->checksum);
        for (uint64_t k = 0; k < p->slots; k++)
            block_drop(slot[turn[k]], p, true);
    }
    w->operations = 2 * p->iterations * p->slots;
    own_release(slot, p->slots * sizeof *slot);
}

void work_tide(const struct params *p, struct outcome *out)
{
    sizes_validate(p);
    uint32_t *turn = own_permutation(p->slots, p->seed);
    const struct worker_calls calls = {.body = tide_body};
    workers_run(p, &calls, turn, out);
    own_release(turn, p->slots * sizeof *turn);
    resident_add(out);
}
