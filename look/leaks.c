#include "leaks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "because.h"
#include "blocks.h"
#include "memory.h"
#include "profile.h"
#include "roots.h"
#include "sheet/heap.h"

#define WORD sizeof(uint64_t)

struct leaks {
    struct heap_listener listener; /* first */
    struct target *t;
    const struct watch_profile *w;
    struct memory memory;
    struct blocks blocks;
    uint64_t *sites; /* addresses, sorted; then one of none, for blocks without a sample */
    size_t site_count, site_room;
    struct leak_sums *sums; /* of each site */
    bool *is_own;           /* of each site: its blocks are hakmem's, no part of the program */
    uint32_t *met;          /* blocks that are to be read */
    size_t met_count;
    uint32_t leader; /* while lost blocks are read: through which; else NO_BLOCK */
};

/* ---- blocks and their sites ---- */

static void block_heard(struct heap_listener *listener, uint64_t start, uint64_t bytes)
{
    blocks_add(&((struct leaks *)(void *)listener)->blocks, start, bytes);
}

static bool site_add(void *to, uint64_t site)
{
    struct leaks *l = to;
    if (l->site_count + 1 >= l->site_room) {
        size_t room = l->site_room == 0 ? 1024 : 2 * l->site_room;
        uint64_t *more = realloc(l->sites, room * sizeof *more);
        if (more == NULL)
            return false;
        l->sites = more;
        l->site_room = room;
    }
    l->sites[l->site_count++] = site;
    return true;
}

static int by_address(const void *a, const void *b)
{
    uint64_t left;
    uint64_t right;
    memcpy(&left, a, sizeof left);
    memcpy(&right, b, sizeof right);
    return left < right ? -1 : left > right;
}

/* Its number; that of no site where there is none. */
static uint32_t site_find(const struct leaks *l, uint64_t at)
{
    const uint64_t *found = bsearch(&at, l->sites, l->site_count, sizeof *l->sites, by_address);
    return (uint32_t)(found != NULL ? (size_t)(found - l->sites) : l->site_count);
}

static bool sites_read(struct leaks *l)
{
    if (!profile_sites(l->t, l->w, site_add, l))
        return false;
    if (l->site_count > 0)
        qsort(l->sites, l->site_count, sizeof *l->sites, by_address);
    l->sums = calloc(l->site_count + 1, sizeof *l->sums);
    l->is_own = calloc(l->site_count + 1, sizeof *l->is_own);
    if (l->sums == NULL || l->is_own == NULL)
        return false;
    for (size_t i = 0; i < l->site_count; i++) {
        uint64_t samples = 0; /* such a site has no total */
        uint64_t at = l->sites[i] + l->w->total_at + offsetof(struct tally, samples);
        l->is_own[i] = memory_read(&l->memory, at, &samples, sizeof samples) && samples == 0;
    }
    return true;
}

static void sample_note(struct leaks *l, const unsigned char *sample)
{
    uint64_t at;
    uint64_t site;
    uint64_t bytes;
    memcpy(&at, sample + l->w->sample_p_at, sizeof at);
    memcpy(&site, sample + l->w->sample_site_at, sizeof site);
    memcpy(&bytes, sample + l->w->sample_requested_at, sizeof bytes);
    uint32_t block = blocks_find(&l->blocks, at);
    if (block == NO_BLOCK || l->blocks.all[block].start != at)
        return; /* it was being freed */
    l->blocks.all[block].site = site_find(l, site);
    if (bytes < l->blocks.all[block].bytes)
        l->blocks.all[block].requested = bytes;
}

/* A list that leads in a circle ends: there are not more samples than blocks, and those that were
 * being made or freed. */
static bool samples_read(struct leaks *l)
{
    const struct watch_profile *w = l->w;
    uint64_t buckets = 0;
    uint64_t bits = 0;
    uint64_t left = 2 * (uint64_t)l->blocks.count + 1024;
    if (!memory_read(&l->memory, address(w->samples), &buckets, sizeof buckets) ||
        !memory_read(&l->memory, address(w->bucket_bits), &bits, sizeof bits) ||
        bits > SAMPLE_BUCKET_BITS_MOST)
        return false;
    for (uint64_t i = 0; buckets != 0 && i < (uint64_t)1 << bits; i++) {
        uint64_t at = 0;
        if (!memory_read(&l->memory, buckets + i * WORD, &at, sizeof at)) {
            /* Nothing of this piece is there. */
            i += (PIECE - (buckets + i * WORD) % PIECE) / WORD - 1;
            continue;
        }
        while (at != 0) {
            unsigned char sample[256];
            if (left-- == 0 || !memory_read(&l->memory, at, sample, w->sample_size))
                return false;
            sample_note(l, sample);
            memcpy(&at, sample + w->sample_next_at, sizeof at);
        }
    }
    return true;
}

/* ---- what refers to what ---- */

static void refers_to(struct leaks *l, uint64_t word)
{
    uint32_t at = blocks_find(&l->blocks, word);
    if (at == NO_BLOCK)
        return;
    struct block *block = &l->blocks.all[at];
    if (block->state == STATE_UNKNOWN) {
        block->state = l->leader == NO_BLOCK ? STATE_REACHED : l->leader;
        l->met[l->met_count++] = at;
    } else if (l->leader != NO_BLOCK && block->state == at) {
        block->state = l->leader; /* what was lost through it is lost through this one */
    }
}

static void words_read(struct leaks *l, uint64_t from, uint64_t to, bool keep)
{
    from = (from + WORD - 1) / WORD * WORD;
    to = to / WORD * WORD;
    while (from < to) {
        size_t bytes = (size_t)(to - from);
        const unsigned char *here = memory_at(&l->memory, from, &bytes, keep);
        for (size_t i = 0; here != NULL && i < bytes; i += WORD) {
            uint64_t word;
            memcpy(&word, here + i, sizeof word);
            refers_to(l, word);
        }
        from += bytes;
    }
}

static void root_read(void *to, uint64_t from, uint64_t end) { words_read(to, from, end, false); }

/* All that were met and all that these refer to. */
static void met_read(struct leaks *l)
{
    while (l->met_count > 0) {
        const struct block *block = &l->blocks.all[l->met[--l->met_count]];
        words_read(l, block->start, block->start + block->bytes, true);
    }
}

static void reachable_find(struct leaks *l, const struct leak_check *check, const struct heap *heap)
{
    l->leader = NO_BLOCK;
    for (size_t i = 0; i < check->thread_count; i++)
        for (size_t word = 0; word < check->threads[i]->count; word++)
            refers_to(l, check->threads[i]->words[word]);
    roots_each(l->t, heap, check->threads, check->thread_count, root_read, l);
    met_read(l);
}

/* What is lost, is so through itself, until another lost block is found that refers to it. */
static void lost_find(struct leaks *l)
{
    for (uint32_t i = 0; i < l->blocks.count; i++)
        if (l->blocks.all[i].state == STATE_UNKNOWN) {
            l->blocks.all[i].state = l->leader = i;
            l->met[l->met_count++] = i;
            met_read(l);
        }
}

/* ---- sums ---- */

static void add(struct leak_sum *sum, const struct block *block)
{
    sum->blocks++;
    sum->bytes += block->requested;
}

static void sum_up(struct leaks *l, struct leak_sums *all)
{
    for (uint32_t i = 0; i < l->blocks.count; i++) {
        const struct block *block = &l->blocks.all[i];
        size_t site = block->site == NO_BLOCK ? l->site_count : block->site;
        struct leak_sums *sums = &l->sums[site];
        if (l->is_own[site])
            continue;
        if (block->state == STATE_REACHED) {
            add(&sums->reachable, block);
            add(&all->reachable, block);
            continue;
        }
        uint32_t leader = blocks_leader(&l->blocks, i);
        if (leader == i) {
            add(&sums->lost, block);
            add(&all->lost, block);
            continue;
        }
        const struct block *through = &l->blocks.all[leader];
        add(&l->sums[through->site == NO_BLOCK ? l->site_count : through->site].through, block);
        add(&all->through, block);
        add(&sums->indirect, block);
        add(&all->indirect, block);
    }
}

/* ---- lines ---- */

struct lines {
    struct profile_more more; /* first */
    const struct leaks *leaks;
    bool whole;
    struct leak_sums others; /* of sites without a line of their own */
};

static void sum_add(struct leak_sum *sum, const struct leak_sum *more)
{
    sum->blocks += more->blocks;
    sum->bytes += more->bytes;
}

static void add_numbers(struct text *t, const struct leak_sums *sums)
{
    const struct leak_sum of[] = {sums->lost, sums->through, sums->indirect, sums->reachable};
    text_add(t, "# leaks");
    for (unsigned i = 0; i < sizeof of / sizeof of[0]; i++)
        text_write(t, " %zu %zu", (size_t)of[i].blocks, (size_t)of[i].bytes);
    text_add(t, "\n");
}

static bool site_line(struct profile_more *more, uint64_t site, struct text *t)
{
    struct lines *lines = (struct lines *)(void *)more;
    const struct leak_sums *sums = &lines->leaks->sums[site_find(lines->leaks, site)];
    bool is_lost = sums->lost.blocks > 0 || sums->indirect.blocks > 0;
    if (is_lost || (lines->whole && sums->reachable.blocks > 0))
        add_numbers(t, sums);
    else if (!lines->whole)
        sum_add(&lines->others.reachable, &sums->reachable);
    return is_lost || lines->whole;
}

/* Blocks that were allocated while the heap could note nothing. */
static uint64_t without_site(struct profile_more *more, struct text *t)
{
    const struct lines *lines = (const struct lines *)(void *)more;
    struct leak_sums sums = lines->leaks->sums[lines->leaks->site_count];
    sum_add(&sums.reachable, &lines->others.reachable);
    text_add(t, "0: 0 [0: 0] @\n# peak 0: 0 samples 0 0\n");
    add_numbers(t, &sums);
    return 1;
}

static bool write_file(struct leaks *l, const struct tables *tables, const struct leak_check *check,
                       struct why *why)
{
    struct lines lines = {.more = {site_line, without_site}, .leaks = l, .whole = check->whole};
    FILE *out = fopen(check->path, "we");
    if (out == NULL)
        return because(why, EXIT_TARGET, "the report can't be written: %s", strerror(errno));
    bool done = profile_print(out, l->t, tables, check->name, check->pid, &lines.more, why);
    if ((ferror(out) != 0) | (fclose(out) != 0))
        return because(why, EXIT_TARGET, "the report can't be written: %s", strerror(errno));
    return done;
}

/* ---- all of it ---- */

static bool check_all(struct leaks *l, struct leak_check *check, struct heap *heap, struct why *why)
{
    heap->listener = &l->listener;
    if (!heap_read(l->t, heap, why))
        return false;
    target_allow(l->t);
    l->met = blocks_index(&l->blocks) ? malloc((l->blocks.count + 1) * sizeof *l->met) : NULL;
    if (l->met == NULL || !memory_start(&l->memory, l->t))
        return because(why, EXIT_TARGET, "out of memory");
    if (!sites_read(l) || !samples_read(l))
        return because(why, EXIT_NONSENSE,
                       "its list of blocks is invalid: the memory is corrupt, or forged");
    reachable_find(l, check, heap);
    lost_find(l);
    sum_up(l, &check->sums);
    check->found = true;
    return (check->sums.lost.blocks == 0 && !check->always) ||
           write_file(l, &heap->tables, check, why);
}

bool leaks_check(struct target *t, const struct tables *tables, struct leak_check *check,
                 struct why *why)
{
    static struct heap heap;
    struct leaks l = {.listener = {block_heard}, .t = t, .w = &tables->profile};
    uint64_t rate = 0;
    check->sums = (struct leak_sums){0};
    check->found = false;
    if (l.w->samples == NULL)
        return because(why, EXIT_REFUSED, "its hakmem is too old for a search for leaks");
    if (!target_read(t, address(l.w->rate), &rate, sizeof rate) || rate != 1)
        return because(why, EXIT_REFUSED, "not every block of it was recorded");
    heap.tables = *tables;
    bool done = check_all(&l, check, &heap, why);
    memory_end(&l.memory);
    blocks_end(&l.blocks);
    free(l.sites);
    free(l.sums);
    free(l.is_own);
    free(l.met);
    return done;
}
