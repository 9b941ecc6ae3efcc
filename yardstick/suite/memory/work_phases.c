/*
 * Phases: a heap of bounded size whose blocks' sizes shift, while a part of the blocks of former
 * sizes stays and holds the memory they came from. Resident memory is sampled at equal steps of
 * the filling and of the freeing.
 *
 *   shift    sizes jump about; a tenth of a phase's bytes, at random, lives for two phases more
 *   double   sizes double from phase to phase; each sixteenth block, in order, stays to the end
 *   records  records that are rebuilt a little larger, half of them in each phase
 */
#include "memory.h"

enum {
    SAMPLES = 8, /* of each phase's filling, and as many of its freeing */
    DOUBLINGS_MOST = 64,
    SHIFT_KEPT_ONE_OF = 10,
    SHIFT_KEPT_FOR = 2,
    DOUBLE_KEPT_ONE_OF = 16,
};

/* Blocks of one phase: a piece of the table. */
struct piece {
    void **block;
    uint64_t count;
};

struct phases {
    const struct params *p;
    struct usage usage;
    uint64_t budget; /* bytes that may live at once */
    uint64_t live;
    uint64_t calls, checksum;
};

/* Ends with the sum of sizes at `budget` bytes or just below. */
static void phase_fill(struct phases *f, struct piece *piece, uint64_t low, uint64_t high,
                       struct random *rng)
{
    uint64_t next = f->live + (f->budget - f->live) / SAMPLES;
    piece->count = 0;
    for (;;) {
        size_t size = size_draw(random_next(rng), low, high - low + 1);
        if (f->live + size > f->budget)
            break;
        piece->block[piece->count++] = filled_make(size);
        f->live += size;
        f->checksum = f->checksum * 31 + size;
        f->calls++;
        if (f->live >= next) {
            usage_sample(&f->usage, f->live);
            next += (f->budget - f->live) / SAMPLES + 1;
        }
    }
    usage_sample(&f->usage, f->live);
}

static void phase_drop(struct phases *f, void *block)
{
    f->live -= filled_drop(block, f->p);
    f->calls++;
}

/* Frees the first `freed` blocks of the piece; what stays moves to its front. */
static void piece_shrink(struct phases *f, struct piece *piece, uint64_t freed)
{
    for (uint64_t i = 0; i < freed; i++) {
        phase_drop(f, piece->block[i]);
        if ((i + 1) % (freed / SAMPLES + 1) == 0)
            usage_sample(&f->usage, f->live);
    }
    for (uint64_t i = freed; i < piece->count; i++)
        piece->block[i - freed] = piece->block[i];
    piece->count -= freed;
    usage_sample(&f->usage, f->live);
}

static void piece_shuffle(struct piece *piece, struct random *rng)
{
    for (uint64_t i = piece->count; i > 1; i--) {
        uint64_t j = random_low(random_next(rng), i);
        void *block = piece->block[i - 1];
        piece->block[i - 1] = piece->block[j];
        piece->block[j] = block;
    }
}

/* Each n-th block to the end of the piece, where it stays; the others in their order before. */
static uint64_t piece_sift(struct piece *piece, uint64_t n, void **room)
{
    uint64_t kept = 0, others = 0;
    for (uint64_t i = 0; i < piece->count; i++) {
        if (i % n == 0)
            room[kept++] = piece->block[i];
        else
            piece->block[others++] = piece->block[i];
    }
    memcpy(piece->block + others, room, kept * sizeof *room);
    return others;
}

static void phases_report(struct phases *f, struct outcome *out)
{
    usage_report(&f->usage, out);
    outcome_add(out, "end-ratio", "ratio", (double)usage_rest(&f->usage) / (double)f->live);
    out->operations = f->calls;
    out->checksum = f->checksum;
}

static void phases_verify(const struct params *p)
{
    if (p->batch == 0)
        give_up(EXIT_USAGE, "--batch, the number of phases, must be positive");
}

static struct phases phases_begin(const struct params *p)
{
    struct phases f = {.p = p, .budget = p->iterations * 1024};
    if (f.budget < 4 * p->max)
        f.budget = 4 * p->max;
    usage_start(&f.usage);
    return f;
}

/* Doublings between the row's bounds. */
static unsigned doublings_of(const struct params *p)
{
    unsigned n = 0;
    while (p->min << (n + 1) <= p->max)
        n++;
    return n > 0 ? n : 1;
}

void work_phases_shift(const struct params *p, struct outcome *out)
{
    phases_verify(p);
    const uint64_t room = (p->iterations * 1024 + 4 * p->max) / p->min + 1;
    const size_t table_bytes = room * sizeof(void *);
    const unsigned doublings = doublings_of(p);
    /* A piece lives for three phases, whole in the first; what then stays needs a tenth, and more
     * where chance has kept the small ones. */
    const uint64_t kept_room = room / SHIFT_KEPT_ONE_OF + 1;
    const size_t kept_bytes = kept_room * sizeof(void *);
    void **table = own_touched(table_bytes);
    struct piece kept[SHIFT_KEPT_FOR + 1] = {{0}};
    for (unsigned i = 0; i <= SHIFT_KEPT_FOR; i++)
        kept[i].block = own_touched(kept_bytes);
    struct phases f = phases_begin(p);
    struct random rng = random_start(p->seed, 0);

    clock_start();
    for (unsigned phase = 0; phase < p->batch; phase++) {
        /* Three doublings on, or back: large after small and small after large. */
        const uint64_t low = p->min << phase * 3 % doublings;
        struct piece piece = {table, 0}, *old = &kept[phase % (SHIFT_KEPT_FOR + 1)];
        piece_shrink(&f, old, old->count);
        phase_fill(&f, &piece, low, 2 * low - 1, &rng);
        piece_shuffle(&piece, &rng);
        piece_shrink(&f, &piece, piece.count - piece.count / SHIFT_KEPT_ONE_OF);
        memcpy(old->block, piece.block, piece.count * sizeof *piece.block);
        old->count = piece.count;
    }
    clock_stop(out);
    phases_report(&f, out);

    for (unsigned i = 0; i <= SHIFT_KEPT_FOR; i++) {
        for (uint64_t k = 0; k < kept[i].count; k++)
            phase_drop(&f, kept[i].block[k]);
        own_release(kept[i].block, kept_bytes);
    }
    own_release(table, table_bytes);
}

void work_phases_double(const struct params *p, struct outcome *out)
{
    const uint64_t room = (p->iterations * 1024 + 4 * p->max) / p->min + 1;
    const size_t table_bytes = room * sizeof(void *);
    /* What stays, of all phases together: each has at most half the blocks of the one before. */
    const size_t kept_bytes = (2 * room / DOUBLE_KEPT_ONE_OF + DOUBLINGS_MOST) * sizeof(void *);
    void **table = own_touched(table_bytes);
    void **sifted = own_touched(kept_bytes);
    struct piece kept = {own_touched(kept_bytes), 0};
    struct phases f = phases_begin(p);
    struct random rng = random_start(p->seed, 0);

    clock_start();
    for (uint64_t size = p->min; size <= p->max; size *= 2) {
        struct piece piece = {table, 0};
        phase_fill(&f, &piece, size, size, &rng);
        piece_shrink(&f, &piece, piece_sift(&piece, DOUBLE_KEPT_ONE_OF, sifted));
        memcpy(kept.block + kept.count, piece.block, piece.count * sizeof *piece.block);
        kept.count += piece.count;
    }
    clock_stop(out);
    phases_report(&f, out);

    for (uint64_t i = 0; i < kept.count; i++)
        phase_drop(&f, kept.block[i]);
    own_release(table, table_bytes);
    own_release(sifted, kept_bytes);
    own_release(kept.block, kept_bytes);
}

/* Half as large again at most, from a fifth on; the largest begin anew as small ones. */
static size_t record_next(size_t size, uint64_t bits, const struct params *p)
{
    size_t next = size + size / 5 + random_high(bits, size * 3 / 10 + 1);
    return next <= p->max ? next : p->min + random_high(bits, p->min);
}

void work_records(const struct params *p, struct outcome *out)
{
    phases_verify(p);
    const uint64_t records = p->iterations;
    void **record = own_touched(records * sizeof *record);
    struct phases f = phases_begin(p);
    struct random rng = random_start(p->seed, 0);

    clock_start();
    for (uint64_t i = 0; i < records; i++) {
        size_t size = p->min + random_high(random_next(&rng), p->min);
        record[i] = filled_make(size);
        f.live += size;
        f.calls++;
    }
    for (unsigned phase = 0; phase < p->batch; phase++) {
        for (uint64_t i = 0; i < records / 2; i++) {
            const uint64_t bits = random_next(&rng), which = random_low(bits, records);
            const size_t next = record_next(filled_size(record[which]), bits, p);
            void *rebuilt = filled_make(next); /* both live for a moment, as when a copy is made */
            f.live += next;
            phase_drop(&f, record[which]);
            record[which] = rebuilt;
            f.checksum = f.checksum * 31 + next;
            f.calls++;
            if ((i + 1) % (records / 2 / SAMPLES + 1) == 0)
                usage_sample(&f.usage, f.live);
        }
        usage_sample(&f.usage, f.live);
    }
    clock_stop(out);
    phases_report(&f, out);

    for (uint64_t i = 0; i < records; i++)
        phase_drop(&f, record[i]);
    own_release(record, records * sizeof *record);
}
