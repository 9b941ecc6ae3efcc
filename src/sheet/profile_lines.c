#include "sheet/profile_lines.h"

static void sum_up(struct tally *sum, const struct tally *of_site)
{
    struct tally tally = tally_read(of_site);
    sum->samples += tally.samples;
    sum->blocks += tally.blocks;
    sum->bytes += tally.bytes;
}

void profile_sum(struct profile_sums *sums, const struct site *site)
{
    sum_up(&sums->total, &site->total);
    sum_up(&sums->live, &site->live);
    sum_up(&sums->peak, &site->peak);
}

#define NUMBER_MOST 1e18 /* another process's memory may hold any number, or none */

static void add_whole(struct text *t, double number)
{
    text_add_number(t, number > 0 && number < NUMBER_MOST ? (uint64_t)(number + 0.5) : 0);
}

static void add_tally(struct text *t, struct tally tally)
{
    add_whole(t, tally.blocks);
    text_add(t, ": ");
    add_whole(t, tally.bytes);
}

static void add_line(struct text *t, struct tally live, struct tally total)
{
    add_tally(t, live);
    text_add(t, " [");
    add_tally(t, total);
    text_add(t, "] @");
}

void profile_add_head(struct text *t, const struct profile_sums *sums)
{
    text_add(t, "heap profile: ");
    add_line(t, sums->live, sums->total);
    text_add(t, " heapprofile\n# hakmem rate ");
    text_add_number(t, sums->rate);
    text_add(t, " lost ");
    text_add_number(t, sums->lost);
    text_add(t, " memory ");
    text_add_number(t, sums->memory);
    if (sums->pid != 0) {
        text_add(t, " pid ");
        text_add_number(t, sums->pid);
    }
    text_add(t, "\n");
}

/* The peak is noted when the first block after it is freed: until then it is now. */
void profile_add_site(struct text *t, const struct profile_sums *sums, const struct site *site)
{
    bool now = sums->live.bytes > sums->peak.bytes;
    struct tally live = tally_read(&site->live), total = tally_read(&site->total);
    add_line(t, live, total);
    for (size_t i = 0; i < site->depth; i++) {
        text_add(t, " ");
        text_add_hex(t, site->frames[i] + 1); /* where the call returns, as readers expect */
    }
    text_add(t, "\n# peak ");
    add_tally(t, now ? live : tally_read(&site->peak));
    text_add(t, " samples ");
    text_add_number(t, live.samples);
    text_add(t, " ");
    text_add_number(t, total.samples);
    if (*site_name(site) != '\0') {
        text_add(t, "\n# name ");
        text_add_foreign(t, site_name(site), SITE_NAME_MOST);
    }
    text_add(t, "\n");
}

void profile_add_end(struct text *t, uint64_t sites)
{
    text_add(t, "# sites ");
    text_add_number(t, sites);
    text_add(t, "\n\nMAPPED_LIBRARIES:\n");
}
