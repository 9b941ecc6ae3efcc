#include "acts.h"

#include "names.h"

#include <sched.h>
#include <time.h>

#define PAIR_CELLS 32
#define BURST_MOST 512
/* A block of a storm costs a twentieth of one that knows its content. */
#define BLOCKS_OF_STORM 4

const char *const act_names[ACTS] = {
    "mixture", "class", "holes", "grow", "give", "take", "full", "storm", "fork",
};

static uint64_t draw(struct actor *a) { return random_next(&a->seat.random); }

static void sleep_milliseconds(unsigned milliseconds)
{
    struct timespec time = {milliseconds / 1000, milliseconds % 1000 * 1000000};
    nanosleep(&time, NULL);
}

/* New blocks are of this range; as many slots are used as the bytes allow, the rest emptied. */
static void use_sizes(struct actor *a, size_t smallest, size_t largest)
{
    size_t n = largest == 0 ? a->slots : a->bytes / largest;
    a->seat.smallest = smallest;
    a->seat.largest = largest;
    for (size_t i = n; i < a->slots; i++)
        slot_free(&a->seat, a->seat.slots[i]);
    a->seat.n = n < 16 ? 16 : n < a->slots ? n : a->slots;
}

/* A size from 16 bytes to 64 KiB, each doubling as often. */
static size_t draw_power(struct actor *a)
{
    uint64_t bits = draw(a);
    size_t low = (size_t)16 << bits % 12;
    return low + (size_t)((bits >> 8) % low);
}

static void act_mixture(struct actor *a, uint64_t operations)
{
    use_sizes(a, 0, 0);
    seat_work(&a->seat, operations);
}

static void act_class(struct actor *a, uint64_t operations)
{
    size_t size = draw_power(a);
    for (size_t i = 0; i < a->slots; i++)
        if (draw(a) % 8 != 0) /* a few stay in the slabs of before */
            slot_free(&a->seat, a->seat.slots[i]);
    use_sizes(a, size, size + size / 4);
    seat_work(&a->seat, operations);
}

static void act_holes(struct actor *a, uint64_t operations)
{
    static const size_t ranges[][2] = {{1024, 8192}, {16, 1024}, {4096, 32768}, {16, 128}};
    const size_t *range = ranges[draw(a) % 4];
    use_sizes(a, range[0], range[1]);
    while (operations > 0) {
        for (size_t i = 0; i < a->seat.n && operations > 0; i++)
            if (a->seat.slots[i]->block == NULL) {
                slot_fill(&a->seat, a->seat.slots[i]);
                operations--;
            }
        for (size_t i = 0; i < a->seat.n; i++)
            if (draw(a) % 10 != 0)
                slot_free(&a->seat, a->seat.slots[i]);
        if (draw(a) % 4 == 0)
            sleep_milliseconds(1 + (unsigned)(draw(a) % 8));
        for (size_t i = 0; i < a->seat.n; i++)
            if (a->seat.slots[i]->block != NULL)
                block_check(a->seat.slots[i], &a->seat.worker);
    }
}

/* The exchange's budget bounds them; beyond it slots get small blocks. */
static void act_grow(struct actor *a, uint64_t operations)
{
    static const size_t largest[] = {256 * KiB, 1 * MiB, 2 * MiB, 6 * MiB};
    operations = operations / 8 + 1; /* each costs page faults */
    use_sizes(a, 0, 0);
    while (operations > 0) {
        a->seat.smallest = 33 * KiB;
        a->seat.largest = largest[draw(a) % 4];
        for (size_t i = 0; i < a->slots && operations > 0; i++, operations--) {
            slot_free(&a->seat, a->seat.slots[i]);
            slot_fill(&a->seat, a->seat.slots[i]);
        }
        seat_clear(&a->seat, &a->seat.worker);
    }
}

/* Cells that a giver and a taker have for themselves, or all. */
static size_t draw_cell(struct actor *a, bool pair)
{
    size_t n = a->seat.exchange->n;
    if (!pair)
        return draw(a) % n;
    return ((a->seat.worker.number / 2) * PAIR_CELLS + draw(a) % PAIR_CELLS) % n;
}

static void act_give(struct actor *a, uint64_t operations)
{
    bool pair = draw(a) % 2 == 0;
    if (draw(a) % 2 == 0) {
        size_t size = draw_power(a);
        use_sizes(a, size, size + size / 2);
    } else {
        use_sizes(a, 0, 0);
    }
    for (uint64_t i = 0; i < operations; i++) {
        struct record **slot = &a->seat.slots[i % a->seat.n];
        if ((*slot)->block == NULL)
            slot_fill(&a->seat, *slot);
        slot_swap(&a->seat, slot, draw_cell(a, pair));
        if ((*slot)->block != NULL && i % 16 == 0)
            sched_yield(); /* nobody takes */
    }
}

static void act_take(struct actor *a, uint64_t operations)
{
    bool pair = draw(a) % 2 == 0;
    use_sizes(a, 0, 0);
    for (uint64_t i = 0; i < operations; i++) {
        struct record **slot = &a->seat.slots[i % a->seat.n];
        slot_free(&a->seat, *slot);
        slot_swap(&a->seat, slot, draw_cell(a, pair));
        if ((*slot)->block == NULL && i % 16 == 0)
            sched_yield(); /* nobody gives */
    }
}

void act_fill_stacks(struct actor *a, uint64_t operations)
{
    while (operations > 0) {
        size_t size = draw_power(a);
        use_sizes(a, size, size + size / 4);
        for (size_t i = 0; i < a->seat.n && operations > 0; i++, operations--)
            if (a->seat.slots[i]->block == NULL)
                slot_fill(&a->seat, a->seat.slots[i]);
        seat_clear(&a->seat, &a->seat.worker);
    }
}

static void act_full(struct actor *a, uint64_t operations)
{
    act_fill_stacks(a, operations);
    sleep_milliseconds(1 + (unsigned)(draw(a) % 50));
}

/* Two words at the ends of each block are its content: more would take longer than the allocator.
 */
static void storm_make(uintptr_t **block, size_t words, uintptr_t key)
{
    uintptr_t *b = do_malloc(words * sizeof *b);
    if (b == NULL)
        fail("malloc(%zu) gave NULL in a storm", words * sizeof *b);
    b[0] = (uintptr_t)b ^ key;
    b[words - 1] = (uintptr_t)b + key;
    *block = b;
}

static void storm_free(uintptr_t *b, size_t words, uintptr_t key)
{
    if (b[0] != ((uintptr_t)b ^ key) || b[words - 1] != (uintptr_t)b + key)
        fail("block %p of %zu bytes in a storm: expected %#zx and %#zx at its ends, found %#zx and "
             "%#zx",
             (void *)b, words * sizeof *b, (uintptr_t)b ^ key, (uintptr_t)b + key, b[0],
             b[words - 1]);
    do_free(b);
}

static void act_storm(struct actor *a, uint64_t operations)
{
    static const size_t sizes[] = {16, 48, 256, 1024};
    uintptr_t *blocks[BURST_MOST];
    for (uint64_t done = 0; done < operations * BLOCKS_OF_STORM;) {
        uint64_t bits = draw(a);
        size_t words = sizes[bits % 4] / sizeof(uintptr_t);
        size_t n = 1 + (bits >> 8) % BURST_MOST;
        size_t stride = (bits >> 32) % 2 == 0 ? 1 : 7; /* in order, or every seventh */
        uintptr_t key = (uintptr_t)draw(a);
        for (size_t i = 0; i < n; i++)
            storm_make(&blocks[i], words, key);
        for (size_t first = 0; first < stride; first++)
            for (size_t i = first; i < n; i += stride)
                storm_free(blocks[i], words, key);
        done += n;
        a->seat.calls += 2 * n;
    }
}

static void act_fork(struct actor *a, uint64_t operations)
{
    act_mixture(a, operations);
    if (a->forks)
        child_run(&a->seat, draw(a), draw(a), &a->times);
}

void act(struct actor *a, enum act what, uint64_t operations)
{
    static void (*const bodies[ACTS])(struct actor *, uint64_t) = {
        act_mixture, act_class, act_holes, act_grow, act_give,
        act_take,    act_full,  act_storm, act_fork,
    };
    a->acts[what]++;
    bodies[what](a, operations);
    a->seat.n = a->slots;
}
