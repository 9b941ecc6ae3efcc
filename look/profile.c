#include "profile.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "because.h"
#include "samples.h"
#include "sheet/profile_lines.h"

#define SITES_MOST 100000 /* of a list that leads to itself, too */
#define SITE_MOST 1024    /* bytes, without its frames */

static struct {
    struct site site;
    /* After it, as a site has them. */
    unsigned char more[FRAMES_MOST * sizeof(uintptr_t) + SITE_NAME_MOST + 1];
} one;

static uint64_t address(const void *p) { return (uint64_t)(uintptr_t)p; }

/* False where it is none. */
static bool site_read(struct target *t, const struct watch_profile *w, uint64_t at, uint64_t *next)
{
    unsigned char site[SITE_MOST];
    if (!target_read(t, at, site, w->size))
        return false;
    memcpy(next, site + w->next_at, sizeof *next);
    memcpy(&one.site.total, site + w->total_at, sizeof one.site.total);
    memcpy(&one.site.live, site + w->live_at, sizeof one.site.live);
    memcpy(&one.site.peak, site + w->peak_at, sizeof one.site.peak);
    memcpy(&one.site.depth, site + w->depth_at, sizeof one.site.depth);
    uint64_t name = 0;
    if (w->name_at != 0)
        memcpy(&name, site + w->name_at, sizeof name);
    size_t frames = one.site.depth * sizeof(uintptr_t);
    if (one.site.depth > FRAMES_MOST || name > SITE_NAME_MOST ||
        !target_read(t, at + w->size, one.more, frames + name))
        return false;
    one.more[frames + name] = '\0';
    return true;
}

/* Calls `each` for all sites; false where their tables make no sense. */
static bool sites_read(struct target *t, const struct watch_profile *w,
                       void (*each)(const struct site *, uint64_t at, struct profile_sums *),
                       struct profile_sums *sums)
{
    uint64_t buckets = 0;
    unsigned count = 0;
    if (!target_read(t, address(w->sites), &buckets, sizeof buckets))
        return target_mapped(t, address(w->sites), sizeof buckets); /* never written: no profile */
    for (uint32_t i = 0; buckets != 0 && i < w->buckets; i++) {
        uint64_t at = 0;
        /* A page that was never written has no site. */
        if (!target_read(t, buckets + i * sizeof at, &at, sizeof at))
            continue;
        for (uint64_t next; at != 0; at = next) {
            if (++count > SITES_MOST || !site_read(t, w, at, &next))
                return false;
            if (one.site.total.samples > 0)
                each(&one.site, at, sums);
        }
    }
    return true;
}

static void sum(const struct site *site, uint64_t at, struct profile_sums *sums)
{
    (void)at;
    profile_sum(sums, site);
}

static uint64_t printed;

static void print_sizes(uint64_t at)
{
    size_t count;
    const struct held *held = samples_of(at, &count);
    if (count > 0)
        fputs("# sizes", stdout);
    for (size_t i = 0; i < count; i++)
        printf(" %" PRIu64 ":%.1f:%.6g:%" PRIu64, held[i].block, held[i].blocks, held[i].variance,
               held[i].samples);
    if (count > 0)
        fputs("\n", stdout);
}

static void print(const struct site *site, uint64_t at, struct profile_sums *sums)
{
    static char line[PROFILE_LINE_MOST];
    struct text t;
    text_init(&t, line, sizeof line);
    profile_add_site(&t, sums, site);
    fputs(line, stdout);
    print_sizes(at);
    printed++;
}

static bool maps_print(int pid, struct why *why)
{
    char text[4096];
    snprintf(text, sizeof text, "/proc/%d/maps", pid);
    FILE *maps = fopen(text, "r");
    if (maps == NULL)
        return because(why, EXIT_TARGET, "%s: %s", text, strerror(errno));
    for (size_t got; (got = fread(text, 1, sizeof text, maps)) > 0;)
        fwrite(text, 1, got, stdout);
    fclose(maps);
    return true;
}

bool profile_print(struct target *t, const struct tables *tables, int pid, bool by_size,
                   struct why *why)
{
    static char line[PROFILE_LINE_MOST];
    const struct watch_profile *w = &tables->profile;
    struct profile_sums sums = {0};
    struct text text;
    if (w->sites == NULL)
        return because(why, EXIT_REFUSED, "its hakmem is too old to take heap profiles");
    target_read(t, address(w->rate), &sums.rate, sizeof sums.rate);
    target_read(t, address(w->lost), &sums.lost, sizeof sums.lost);
    target_read(t, address(w->memory), &sums.memory, sizeof sums.memory);
    if (!sites_read(t, w, sum, &sums) || (by_size && !samples_read(t, w)))
        return because(why, EXIT_NONSENSE,
                       "its description of the heap profile is invalid: the memory is corrupt, or "
                       "forged");
    text_init(&text, line, sizeof line);
    profile_add_head(&text, &sums);
    fputs(line, stdout);
    if (!sites_read(t, w, print, &sums))
        return because(why, EXIT_NONSENSE, "its heap profile changed while it was being read");
    text_init(&text, line, sizeof line);
    profile_add_end(&text, printed);
    fputs(line, stdout);
    return maps_print(pid, why);
}
