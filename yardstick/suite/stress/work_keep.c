/*
 * Blocks of all sizes on many threads, written through as a program would:
 *
 *   keep    each thread keeps, resizes, hands over and drops blocks whose
 *           sizes run over many octaves, each octave as often as the next
 *   tide    each thread fills all its slots with blocks and drops them again
 *
 * A block begins with its own size and a stamp, and ends with a byte of it.
 * realloc must carry both along, and a block that was handed over is verified
 * by the thread that drops it. A resize asks for a size that doesn't depend on
 * the old one: with the blocks that wander, that would change from run to run.
 */
#include "handover.h"

enum { PAGE = 4096, SMALLEST_HEADED = 16, BOARD = 64 };

struct head {
    uint32_t size;
    uint32_t stamp; /* of size and address: an honest block's can't be another's */
};

static uint32_t head_stamp(const void *block, uint32_t size)
{
    return (size * 0x85ebca6bu) ^ block_mix(block);
}

static void head_write(unsigned char *block, size_t size)
{
    struct head head = {(uint32_t)size, head_stamp(block, (uint32_t)size)};
    memcpy(block, &head, sizeof head);
    block[size - 1] = (unsigned char)(size >> 4);
}

static void pages_write(unsigned char *block, size_t from, size_t to)
{
    for (size_t at = from; at < to; at += PAGE)
        ((volatile unsigned char *)block)[at] = 1;
}

/* `written_at` is where the block was when its stamp was written. */
static size_t head_verify(const unsigned char *block, uintptr_t written_at, const struct params *p)
{
    struct head head;
    memcpy(&head, block, sizeof head);
    if (head.size < p->min || head.size > p->max ||
        head.stamp != head_stamp((const void *)written_at, head.size))
        give_up(EXIT_CONTENT, "block %p: its first bytes are not those written (%08x %08x)",
                (const void *)block, head.size, head.stamp);
    return head.size;
}

static void tail_verify(const unsigned char *block, size_t size)
{
    if (block[size - 1] != (unsigned char)(size >> 4))
        give_up(EXIT_CONTENT, "block %p of %zu bytes: last byte %02x, written was %02x",
                (const void *)block, size, block[size - 1], (unsigned char)(size >> 4));
}

static void *whole_make(size_t size)
{
    unsigned char *block = malloc(size);
    if (block == NULL)
        give_up(EXIT_NO_MEMORY, "malloc(%zu) found no memory", size);
    pages_write(block, 0, size);
    head_write(block, size);
    return block;
}

static void whole_drop(void *block, const struct params *p)
{
    if (block != NULL)
        tail_verify(block, head_verify(block, (uintptr_t)block, p));
    free(block);
}

static void *whole_resize(void *block, size_t size, const struct params *p)
{
    const uintptr_t before = (uintptr_t)block;
    unsigned char *moved = realloc(block, size);
    if (moved == NULL)
        give_up(EXIT_NO_MEMORY, "realloc(%zu) found no memory", size);
    size_t old = head_verify(moved, before, p);
    if (size >= old) {
        tail_verify(moved, old);
        pages_write(moved, old, size);
    }
    head_write(moved, size);
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

static void sizes_validate(const struct params *p)
{
    if (p->min < SMALLEST_HEADED || p->max < 2 * p->min)
        give_up(EXIT_USAGE, "sizes must be %d bytes or more and span an octave", SMALLEST_HEADED);
}

/* ---- keep */

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
            size_t size = octave_draw(&rng, p);
            *s = whole_make(size);
            w->checksum += size;
            calls++;
        } else if (act < DROPS) {
            whole_drop(*s, p);
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
        whole_drop(slot[i], p);
    }
    w->operations = calls;
    own_release(slot, p->slots * sizeof *slot);
}

void work_keep(const struct params *p, struct outcome *out)
{
    sizes_validate(p);
    struct board *board = own_memory(BOARD * sizeof *board);
    struct random rng = random_start(p->seed, p->threads);
    for (int i = 0; i < BOARD; i++)
        atomic_init(&board[i].block, whole_make(octave_draw(&rng, p)));

    const struct worker_calls calls = {.body = keep_body};
    workers_run(p, &calls, board, out);

    for (int i = 0; i < BOARD; i++)
        whole_drop(atomic_load(&board[i].block), p);
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
        for (uint64_t k = 0; k < p->slots; k++) {
            size_t size = octave_draw(&rng, p);
            slot[k] = whole_make(size);
            w->checksum += size;
        }
        for (uint64_t k = 0; k < p->slots; k++)
            whole_drop(slot[turn[k]], p);
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
