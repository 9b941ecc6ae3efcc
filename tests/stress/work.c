#include "work.h"

/* A size from the seat's range or from the mixture, out of 64 random bits. */
static size_t draw_size(const struct seat *seat, uint64_t bits)
{
    if (seat->largest != 0)
        return seat->smallest + (size_t)(bits % (seat->largest - seat->smallest + 1));
    unsigned kind = bits & 1023;
    bits >>= 10;
    if (kind < 60) { /* powers of two and their neighbours */
        size_t size = ((size_t)1 << bits % 16) + (bits >> 8) % 3;
        return size > 1 ? size - 1 : 1;
    }
    if (kind < 700) { /* to 1024, the smaller the more */
        unsigned width = 1 + (unsigned)(bits % 10);
        return 1 + (size_t)(bits >> 8 & (((uint64_t)1 << width) - 1));
    }
    if (kind < 900)
        return 1 + (size_t)(bits % 1024);
    if (kind < 1014)
        return 1 + (size_t)(bits % (32 * KiB));
    if (kind < 1019)
        return 32 * KiB + (size_t)(bits % (224 * KiB));
    if (kind < 1023)
        return 256 * KiB + (size_t)(bits % (1792 * KiB));
    return 2 * MiB + (size_t)(bits % (6 * MiB));
}

/* Alignments from 16 to 64 KiB, those above a page rarely. */
static size_t draw_alignment(uint64_t bits)
{
    return (size_t)16 << (bits % 16 != 0 ? (bits >> 4) % 9 : (bits >> 4) % 13);
}

/* Room for a large block in the budget, or false. Small blocks need none: their number is bounded
 * by the slots. */
static bool take_room(struct exchange *e, size_t weight)
{
    if (weight == 0)
        return true;
    size_t before = atomic_fetch_add_explicit(&e->large_bytes, weight, memory_order_relaxed);
    if (before + weight <= e->large_limit)
        return true;
    atomic_fetch_sub_explicit(&e->large_bytes, weight, memory_order_relaxed);
    return false;
}

static void give_room(struct exchange *e, struct record *r)
{
    if (r->weight != 0)
        atomic_fetch_sub_explicit(&e->large_bytes, r->weight, memory_order_relaxed);
    r->weight = 0;
}

static size_t weight_of(size_t size, size_t alignment)
{
    size_t bytes = size > alignment ? size : alignment;
    return size > 32 * KiB || alignment > 4096 ? bytes : 0;
}

static void op_make(struct seat *seat, struct record *r, uint64_t how, uint64_t bits)
{
    static const enum maker makers[16] = {
        MADE_BY_MALLOC,  MADE_BY_MALLOC,   MADE_BY_MALLOC,         MADE_BY_MALLOC,
        MADE_BY_MALLOC,  MADE_BY_MALLOC,   MADE_BY_MALLOC,         MADE_BY_MALLOC,
        MADE_BY_MALLOC,  MADE_BY_CALLOC,   MADE_BY_CALLOC,         MADE_BY_CALLOC,
        MADE_BY_REALLOC, MADE_BY_MEMALIGN, MADE_BY_POSIX_MEMALIGN, MADE_BY_ALIGNED_ALLOC,
    };
    struct block_wish wish = {
        .maker = makers[how % 16],
        .size = draw_size(seat, bits),
        .alignment = 1,
        .all_usable = (how >> 4) % 8 == 0,
        .check_all = (how >> 8) % 8 == 0,
    };
    if (wish.maker >= MADE_BY_ALIGNED_ALLOC)
        wish.alignment = draw_alignment(how >> 12);
    size_t weight = weight_of(wish.size, wish.alignment);
    if (!take_room(seat->exchange, weight)) {
        wish.size = wish.size % 1024 + 1;
        wish.alignment = wish.alignment < 64 ? wish.alignment : 64;
        weight = 0;
    }
    block_make(r, &wish, &seat->worker);
    r->weight = weight;
    seat->calls++;
}

static void op_free(struct seat *seat, struct record *r)
{
    block_free(r, &seat->worker);
    give_room(seat->exchange, r);
    seat->calls++;
}

static void op_resize(struct seat *seat, struct record *r, uint64_t how, uint64_t bits)
{
    size_t size = draw_size(seat, bits);
    if (how % 4 == 0) /* nearer to what it was: from half to double */
        size = r->size / 2 + (size_t)(bits % (r->size + r->size / 2 + 1)) + 1;
    size_t weight = weight_of(size, 1);
    if (size > 8 * MiB || !take_room(seat->exchange, weight)) {
        size = size % 1024 + 1;
        weight = 0;
    }
    block_resize(r, size, (how >> 4) % 8 == 0, &seat->worker);
    give_room(seat->exchange, r);
    r->weight = weight;
    seat->calls++;
}

/* Acquire and release: what the other thread wrote into record and block is seen here. */
static void op_swap(struct seat *seat, struct record **slot, size_t cell, uint64_t bits)
{
    struct exchange *e = seat->exchange;
    *slot = atomic_exchange_explicit(&e->cells[cell], *slot, memory_order_acq_rel);
    struct record *r = *slot;
    if (r->block == NULL)
        return;
    if (block_thread(r) != seat->worker.number)
        seat->received++;
    if (bits % 4 == 0)
        block_fill_anew(r, &seat->worker);
    else
        block_check(r, &seat->worker);
}

void exchange_make(struct exchange *e, size_t cells, size_t large_limit)
{
    struct record *record = pages_from_kernel(cells * sizeof *record);
    e->cells = pages_from_kernel(cells * sizeof *e->cells);
    e->n = cells;
    e->large_limit = large_limit;
    for (size_t i = 0; i < cells; i++)
        atomic_init(&e->cells[i], record++);
}

void seat_make(struct seat *seat, unsigned number, size_t slots, struct exchange *e)
{
    struct record *record = pages_from_kernel(slots * sizeof *record);
    seat->slots = pages_from_kernel(slots * sizeof *seat->slots);
    seat->n = slots;
    for (size_t i = 0; i < slots; i++)
        seat->slots[i] = record++;
    seat->worker.number = number;
    seat->exchange = e;
}

void seat_work(struct seat *seat, uint64_t operations)
{
    for (uint64_t i = 0; i < operations; i++) {
        /* Always two numbers an operation, whatever the slot holds: the sequence stays the same. */
        uint64_t how = random_next(&seat->random), bits = random_next(&seat->random);
        struct record **slot = &seat->slots[(how >> 32) % seat->n];
        unsigned action = how & 63;
        how >>= 6;
        if (action < 16) {
            op_swap(seat, slot, bits % seat->exchange->n, bits >> 32);
        } else if ((*slot)->block == NULL) {
            op_make(seat, *slot, how, bits);
        } else if (action < 38) {
            op_free(seat, *slot);
        } else if (action < 46) {
            op_free(seat, *slot);
            op_make(seat, *slot, how, bits);
        } else if (action < 58) {
            op_resize(seat, *slot, how, bits);
        } else {
            block_fill_anew(*slot, &seat->worker);
        }
    }
}

void slot_fill(struct seat *seat, struct record *slot)
{
    uint64_t how = random_next(&seat->random), bits = random_next(&seat->random);
    op_make(seat, slot, how, bits);
}

void slot_free(struct seat *seat, struct record *slot)
{
    if (slot->block != NULL)
        op_free(seat, slot);
}

void slot_swap(struct seat *seat, struct record **slot, size_t cell)
{
    op_swap(seat, slot, cell, random_next(&seat->random));
}

void seat_clear(struct seat *seat, const struct worker *me)
{
    for (size_t i = 0; i < seat->n; i++) {
        seat->calls += seat->slots[i]->block != NULL;
        block_free(seat->slots[i], me);
        give_room(seat->exchange, seat->slots[i]);
    }
}

void exchange_clear(struct exchange *e, const struct worker *me)
{
    for (size_t i = 0; i < e->n; i++) {
        struct record *r = atomic_load_explicit(&e->cells[i], memory_order_acquire);
        block_free(r, me);
        give_room(e, r);
    }
}
