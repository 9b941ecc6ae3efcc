#include "sheet/profile.h"

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
    sum_up(&sums->peak, sums->lately ? &site->lately : &site->peak);
}

#define NUMBER_MOST 1e18 /* another process's memory may hold any number, or none */

static uint64_t whole(double number)
{
    return number > 0 && number < NUMBER_MOST ? (uint64_t)(number + 0.5) : 0;
}

/* Of a positive number, else 0: half its exponent, which is at most 7% off, and Newton's steps. */
static double root(double x)
{
    union {
        double number;
        uint64_t bits;
    } r = {x};
    if (!(x > 0))
        return 0;
    r.bits = (r.bits >> 1) + ((uint64_t)1023 << 51);
    for (unsigned i = 0; i < 5; i++)
        r.number = (r.number + x / r.number) / 2;
    return r.number;
}

static void add_tally(struct text *t, struct tally tally)
{
    text_write(t, "%lu: %lu", whole(tally.blocks), whole(tally.bytes));
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
    text_write(t, " heapprofile\n# hakmem rate %lu lost %lu memory %lu", sums->rate, sums->lost,
               sums->memory);
    if (sums->pid != 0)
        text_write(t, " pid %lu", sums->pid);
    if (sums->course.blocks > 0 || sums->course.most > 0) {
        bool now = sums->live.bytes > sums->course.most;
        text_write(t, " most %lu allocated %lu", whole(now ? sums->live.bytes : sums->course.most),
                   whole(sums->course.blocks + (double)sums->course.missed));
    }
    text_add(t, "\n");
}

/* The peak is noted when the first block after it is freed: until then it is now. */
void profile_add_site(struct text *t, const struct profile_sums *sums, const struct site *site)
{
    bool now = sums->live.bytes > sums->peak.bytes;
    struct tally live = tally_read(&site->live), total = tally_read(&site->total);
    struct tally peak = now ? live : tally_read(sums->lately ? &site->lately : &site->peak);
    add_line(t, live, total);
    for (size_t i = 0; i < site->depth; i++)
        text_write(t, " %#lx", site->frames[i] + 1); /* where the call returns, as readers expect */
    text_add(t, "\n# peak ");
    add_tally(t, peak);
    text_write(t, " samples %lu %lu", live.samples, total.samples);
    if (!sums->no_errors)
        text_write(t, " errors %lu %lu %lu", whole(root(live.variance)),
                   whole(root(total.variance)), whole(root(peak.variance)));
    if (*site_name(site) != '\0')
        text_write(t, "\n# name %.*s", SITE_NAME_MOST, site_name(site));
    if (site->since != 0)
        text_write(t, "\n# since %lu", site->since);
    text_add(t, "\n");
}

void profile_add_mark(struct text *t, const struct watch_mark *mark, uint64_t ago)
{
    text_write(t, "# mark %lu ms ago count %lu in use %lu name %.*s\n", ago / 1000000, mark->count,
               whole(mark->in_use), MARK_NAME - 1, mark->name);
}

void profile_add_end(struct text *t, uint64_t sites)
{
    text_write(t, "# sites %lu\n\nMAPPED_LIBRARIES:\n", sites);
}

void profile_add_times(struct text *t, struct times times)
{
    if (times.began != 0)
        text_write(t, "# started %lu ms\n", times.began);
    text_write(t, "# written %lu ms\n", times.now);
}

void profile_add_module(struct text *t, const char *lines, size_t bytes)
{
    while (bytes > 0) {
        size_t length = 0;
        while (length < bytes && lines[length] != '\n')
            length++;
        text_write(t, "%.*s\n", (int)length, lines);
        length += length < bytes;
        lines += length;
        bytes -= length;
    }
}

void profile_add_script_line(struct text *t, const struct script_line *line)
{
    text_write(t, "%016lx-%016lx r-xp 00000000 00:00 0 [python:%.*s:%u:%.*s]\n", line->address,
               line->address + SCRIPT_STEP, (int)line->file_bytes,
               line->names + line->function_bytes, line->line, (int)line->function_bytes,
               line->names);
}

/* With fewer an error can't be estimated. */
#define SAMPLES_LEAST 2
#define ROUNDING 1e-6 /* of sums that samples are added to and taken from */
#define SUM_MOST 1e40 /* another process's memory may hold any number, or none */

static bool possible(double x) { return x > -SUM_MOST && x < SUM_MOST; }

/* A ratio of two sums, each of which estimates a sum over all blocks by those that are in the
 * sample: block i with the chance 1/w. To the first order the ratio's variance is that of the sum
 * of w (n - share b), divided by the square of the lower sum; and the variance of a sum of w d is
 * estimated by that of w (w - 1) d d (Horvitz and Thompson, 1952). */
static double error_of(const struct fill *fill, double share)
{
    double sum = fill->nn - 2 * share * fill->nb + share * share * fill->bb;
    double samples = (double)fill->samples;
    double variance = sum / fill->blocks / fill->blocks * samples / (samples - 1);
    return root(variance);
}

struct requested requested_from(const struct fill *fill)
{
    const struct requested unknown = {0};
    if (fill->samples < SAMPLES_LEAST || !possible(fill->requested) || !possible(fill->blocks) ||
        !possible(fill->nn) || !possible(fill->nb) || !possible(fill->bb) || fill->blocks < 1 ||
        fill->requested < 0 || fill->requested > fill->blocks * (1 + ROUNDING))
        return unknown;
    double share = fill->requested < fill->blocks ? fill->requested / fill->blocks : 1;
    double error = error_of(fill, share);
    return (struct requested){fill->samples, share, error < 1 ? error : 1, fill->blocks};
}

uint64_t requested_of(double share, uint64_t bytes)
{
    return (uint64_t)(share * (double)bytes + 0.5);
}
