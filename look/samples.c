#include "samples.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "grown.h"

#define SAMPLES_MOST ((uint64_t)1 << 24) /* of lists that lead to themselves, too */
#define SAMPLE_MOST 1024                 /* bytes */
#define WEIGHT_MOST 1e18                 /* another process's memory may hold any number, or none */

static struct held *held; /* one for each sample, and then for each site and size */
static size_t held_count, held_room;

static bool add(const struct held *one)
{
    struct held *more = grown(held, held_count, &held_room, sizeof *held);
    if (more == NULL)
        return false;
    held = more;
    held[held_count++] = *one;
    return true;
}

/* False where none is there, or it is unused: then what follows is none of this list. */
static bool sample_read(struct target *t, const struct watch_profile *w, uint64_t at,
                        uint64_t *next, struct held *one)
{
    unsigned char sample[SAMPLE_MOST];
    uint64_t p;
    double weight;
    if (!target_read(t, at, sample, w->sample_size))
        return false;
    memcpy(next, sample + w->sample_next_at, sizeof *next);
    memcpy(&p, sample + w->sample_p_at, sizeof p);
    memcpy(&weight, sample + w->sample_weight_at, sizeof weight);
    memset(one, 0, sizeof *one);
    memcpy(&one->site, sample + w->sample_site_at, sizeof one->site);
    memcpy(&one->block, sample + w->sample_block_at, sizeof one->block);
    one->samples = 1;
    one->blocks = weight;
    one->variance = weight * (weight - 1);
    return p != 0 && weight >= 1 && weight < WEIGHT_MOST;
}

static int by_site(const void *a, const void *b)
{
    const struct held *left = a;
    const struct held *right = b;
    if (left->site != right->site)
        return left->site < right->site ? -1 : 1;
    return left->block < right->block ? -1 : left->block > right->block;
}

static void add_up(void)
{
    size_t sums = 0;
    qsort(held, held_count, sizeof *held, by_site);
    for (size_t i = 0; i < held_count; i++) {
        if (sums == 0 || by_site(&held[sums - 1], &held[i]) != 0) {
            held[sums++] = held[i];
            continue;
        }
        held[sums - 1].samples++;
        held[sums - 1].blocks += held[i].blocks;
        held[sums - 1].variance += held[i].variance;
    }
    held_count = sums;
}

bool samples_read(struct target *t, const struct watch_profile *w)
{
    uint64_t buckets = 0;
    held_count = 0;
    if (w->samples == NULL)
        return true; /* an older library's */
    if (!target_read(t, address(w->samples), &buckets, sizeof buckets))
        return target_mapped(t, address(w->samples), sizeof buckets);
    uint64_t bits = 0;
    if (w->bucket_bits == NULL || !target_read(t, address(w->bucket_bits), &bits, sizeof bits) ||
        bits > SAMPLE_BUCKET_BITS_MOST)
        return false;
    for (uint64_t i = 0; buckets != 0 && i >> bits == 0; i++) {
        uint64_t at = 0;
        /* A page that was never written has no sample. */
        if (!target_read(t, buckets + i * sizeof at, &at, sizeof at))
            continue;
        struct held one;
        for (uint64_t next; at != 0 && sample_read(t, w, at, &next, &one); at = next)
            if (held_count == SAMPLES_MOST || !add(&one))
                return false;
    }
    if (held_count > 0)
        add_up();
    return true;
}

const struct held *samples_of(uint64_t site, size_t *count)
{
    size_t low = 0, high = held_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (held[middle].site < site)
            low = middle + 1;
        else
            high = middle;
    }
    for (*count = 0; low + *count < held_count && held[low + *count].site == site; ++*count)
        ;
    return *count > 0 ? &held[low] : NULL;
}

bool samples_add_sizes(struct profile_more *more, uint64_t site, struct text *t)
{
    (void)more;
    size_t count;
    const struct held *one = samples_of(site, &count);
    if (count == 0)
        return true;
    text_add(t, "# sizes");
    for (size_t i = 0; i < count; i++) {
        char word[128];
        snprintf(word, sizeof word, " %" PRIu64 ":%.1f:%.6g:%" PRIu64, one[i].block, one[i].blocks,
                 one[i].variance, one[i].samples);
        text_add(t, word);
    }
    text_add(t, "\n");
    return true;
}
