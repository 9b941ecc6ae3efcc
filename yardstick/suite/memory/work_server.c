/*
 * A server by operations: time is counted in ticks, in each of which every thread serves as many
 * requests as the load of the hour asks for. A request takes blocks of mixed sizes; most are given
 * back as it ends, some live on for a time that is spread evenly over orders of magnitude, up to
 * half a day, and of those every fourth is handed to another thread, which frees it in its time.
 * The load rises from night to noon by eight and falls again.
 *
 * A block carries its link and its hour, so the server needs no tables and touches what it frees,
 * as destructors do. Threads meet at the end of each slice of ticks: blocks change hands there, so
 * the work doesn't depend on who runs when, and memory is sampled.
 */
#include "memory.h"

enum {
    SLICES = 64,      /* of a day */
    LOAD_NIGHT = 2,   /* requests a tick */
    LOAD_NOON = 16,   /* requests a tick */
    BLOCKS_LEAST = 8, /* of a request */
    BLOCKS_SPREAD = 25,
    OUTLIVES_ONE_OF = 5, /* blocks that outlive their request */
    HANDED_ONE_OF = 4,   /* of those */
    NIGHT_SLICES = 8,    /* of each day, its last */
};

struct item {
    struct item *next;
    uint32_t size;
    uint32_t tick; /* in which it is freed */
};

_Static_assert(sizeof(struct item) <= MIX_MIN, "the smallest block holds what an item needs");

struct server;

struct station {
    _Alignas(128) struct server *server;
    struct random rng;
    struct item **wheel;     /* owner; the items of each tick, over a day */
    struct item **outbox[2]; /* for each thread; the slice's parity says which is being filled */
    /* Bytes taken here less bytes freed here, whoever took them: it may wrap, the sum of all does
     * not. Owner; read by the first thread while all wait. */
    uint64_t live;
    uint64_t calls, checksum;
};

struct server {
    const struct params *p;
    uint64_t day;     /* ticks */
    unsigned octaves; /* of lifetimes */
    struct station *station;
    pthread_barrier_t arrived, left;
    struct usage usage; /* owner: the first thread */
    double night_resident, night_live;
};

static struct item *item_make(struct station *s, size_t size, uint64_t tick)
{
    struct item *item = block_get(size);
    for (size_t at = PAGE_STEP; at < size; at += PAGE_STEP)
        ((unsigned char *)item)[at] = (unsigned char)size;
    if (size > sizeof *item)
        ((unsigned char *)item)[size - 1] = (unsigned char)size;
    *item = (struct item){.size = (uint32_t)size, .tick = (uint32_t)tick};
    s->live += size;
    s->calls++;
    s->checksum = s->checksum * 31 + size;
    return item;
}

static void item_drop(struct station *s, struct item *item, uint64_t tick)
{
    const size_t size = item->size;
    if (size < MIX_MIN || size > MIX_MAX || item->tick > tick)
        give_up(EXIT_CONTENT, "block %p: its first bytes are not those written", (void *)item);
    if (s->server->p->check && size > sizeof *item &&
        ((unsigned char *)item)[size - 1] != (unsigned char)size)
        give_up(EXIT_CONTENT, "block %p of %zu bytes: its last byte is not that written",
                (void *)item, size);
    s->live -= size;
    s->calls++;
    free(item);
}

static void list_drop(struct station *s, struct item *item, uint64_t tick)
{
    while (item != NULL) {
        struct item *next = item->next;
        item_drop(s, item, tick);
        item = next;
    }
}

static void item_push(struct item **list, struct item *item)
{
    item->next = *list;
    *list = item;
}

/* A parabola squared over the day, nothing at its ends. */
static uint64_t load_of(const struct server *all, uint64_t tick)
{
    const double hour = (double)(tick % all->day) / (double)all->day;
    const double height = 4 * hour * (1 - hour);
    return LOAD_NIGHT + (uint64_t)((LOAD_NOON - LOAD_NIGHT) * height * height);
}

/* 1 to half a day, each doubling as often. */
static uint64_t lifetime_draw(const struct server *all, uint64_t bits)
{
    const uint64_t low = UINT64_C(1) << random_low(bits, all->octaves);
    return low + random_high(bits, low);
}

static void request_serve(struct station *s, unsigned index, uint64_t tick, unsigned parity)
{
    struct server *all = s->server;
    struct item *own = NULL;
    uint64_t blocks = BLOCKS_LEAST + random_high(random_next(&s->rng), BLOCKS_SPREAD);
    for (; blocks > 0; blocks--) {
        const uint64_t bits = random_next(&s->rng);
        const uint64_t fate = random_next(&s->rng);
        const size_t size = mix_draw(bits);
        if (random_low(fate, OUTLIVES_ONE_OF) != 0) {
            item_push(&own, item_make(s, size, tick));
            continue;
        }
        const uint64_t death = tick + lifetime_draw(all, random_next(&s->rng));
        struct item *item = item_make(s, size, death);
        const unsigned threads = all->p->threads;
        if (threads > 1 && random_high(fate, HANDED_ONE_OF) == 0) {
            const unsigned to = (index + 1 + (unsigned)(fate % (threads - 1))) % threads;
            item_push(&s->outbox[parity][to], item);
        } else {
            item_push(&s->wheel[death % all->day], item);
        }
    }
    list_drop(s, own, tick);
}

static void inboxes_take(struct station *s, unsigned index, uint64_t tick, unsigned parity)
{
    struct server *all = s->server;
    for (unsigned from = 0; from < all->p->threads; from++) {
        struct station *sender = &all->station[from];
        struct item *item = sender->outbox[parity][index];
        sender->outbox[parity][index] = NULL;
        while (item != NULL) {
            struct item *next = item->next;
            s->checksum = s->checksum * 31 + item->size;
            if (item->tick <= tick)
                item_drop(s, item, tick);
            else
                item_push(&s->wheel[item->tick % all->day], item);
            item = next;
        }
    }
}

static void slice_sample(struct server *all, uint64_t slice)
{
    uint64_t live = 0;
    for (unsigned t = 0; t < all->p->threads; t++)
        live += all->station[t].live;
    const uint64_t resident = usage_sample(&all->usage, live);
    if (slice % SLICES >= SLICES - NIGHT_SLICES) {
        all->night_resident += (double)resident;
        all->night_live += (double)live;
    }
}

static void serve_step(unsigned index, void *shared)
{
    struct server *all = shared;
    struct station *s = &all->station[index];
    const uint64_t slices = all->p->batch * SLICES, ticks = all->day / SLICES;
    for (uint64_t slice = 0; slice < slices; slice++) {
        const unsigned parity = slice & 1;
        const uint64_t end = (slice + 1) * ticks;
        for (uint64_t tick = slice * ticks; tick < end; tick++) {
            struct item **due = &s->wheel[tick % all->day];
            struct item *gone = *due;
            *due = NULL;
            list_drop(s, gone, tick);
            for (uint64_t left = load_of(all, tick); left > 0; left--)
                request_serve(s, index, tick, parity);
        }
        pthread_barrier_wait(&all->arrived);
        if (index == 0)
            slice_sample(all, slice);
        pthread_barrier_wait(&all->left);
        inboxes_take(s, index, end, parity);
    }
}

/* Whatever still lives, on the main thread, when all others sleep. */
static void stations_empty(struct server *all)
{
    for (unsigned t = 0; t < all->p->threads; t++) {
        struct station *s = &all->station[t];
        for (uint64_t tick = 0; tick < all->day; tick++)
            list_drop(s, s->wheel[tick], UINT64_MAX);
        own_release(s->wheel, all->day * sizeof(void *));
        for (unsigned parity = 0; parity < 2; parity++)
            own_release(s->outbox[parity], all->p->threads * sizeof(void *));
    }
}

void work_server(const struct params *p, struct outcome *out)
{
    if (p->batch == 0)
        give_up(EXIT_USAGE, "--batch, the number of days, must be positive");
    struct server all = {.p = p, .day = (p->iterations / SLICES + 1) * SLICES, .octaves = 1};
    while (UINT64_C(2) << all.octaves <= all.day / 2)
        all.octaves++;
    all.station = own_touched(p->threads * sizeof *all.station);
    for (unsigned t = 0; t < p->threads; t++) {
        struct station *s = &all.station[t];
        s->server = &all;
        s->rng = random_start(p->seed, t);
        s->wheel = own_touched(all.day * sizeof(void *));
        for (unsigned parity = 0; parity < 2; parity++)
            s->outbox[parity] = own_touched(p->threads * sizeof(void *));
    }
    pthread_barrier_init(&all.arrived, NULL, p->threads);
    pthread_barrier_init(&all.left, NULL, p->threads);
    struct crew *crew = crew_start(p, &all);
    usage_start(&all.usage);

    clock_start();
    crew_do(crew, serve_step);
    clock_stop(out);

    usage_report(&all.usage, out);
    outcome_add(out, "night-ratio", "ratio", all.night_resident / all.night_live);
    for (unsigned t = 0; t < p->threads; t++) {
        out->operations += all.station[t].calls;
        out->checksum = out->checksum * 31 + all.station[t].checksum;
    }
    stations_empty(&all);
    crew_end(crew);
    pthread_barrier_destroy(&all.arrived);
    pthread_barrier_destroy(&all.left);
    own_release(all.station, p->threads * sizeof *all.station);
}
