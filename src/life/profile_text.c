#include "life/profile_text.h"

#include <errno.h>
#include <signal.h>

#include "base/atomic.h"
#include "base/policy.h"
#include "base/text.h"
#include "os/calls.h"
#include "os/output.h"
#include "os/self.h"
#include "profile/samples.h"

static char lines[16 * KiB];
#define LINE_MOST (512 + FRAMES_MOST * 19)

/* Writes the lines out when there may be no room for one more. */
static int flush(int file, struct text *t, size_t room)
{
    if (sizeof lines - t->used > room)
        return 0;
    int error = output_write(file, t->start, t->used);
    text_init(t, lines, sizeof lines);
    return error;
}

static void add_whole(struct text *t, double number)
{
    text_add_number(t, number > 0 ? (uint64_t)(number + 0.5) : 0);
}

static void add_tally(struct text *t, const struct tally *tally)
{
    add_whole(t, tally->blocks);
    text_add(t, ": ");
    add_whole(t, tally->bytes);
}

static void add_line(struct text *t, const struct tally *live, const struct tally *total)
{
    add_tally(t, live);
    text_add(t, " [");
    add_tally(t, total);
    text_add(t, "] @");
}

static void add_site(struct text *t, const struct site *site)
{
    add_line(t, &site->live, &site->total);
    for (size_t i = 0; i < site->depth; i++) {
        text_add(t, " ");
        text_add_hex(t, site->frames[i] + 1); /* where the call returns, as readers expect */
    }
    text_add(t, "\n# peak ");
    add_tally(t, &site->peak);
    text_add(t, " samples ");
    text_add_number(t, site->live.samples);
    text_add(t, " ");
    text_add_number(t, site->total.samples);
    if (*site_name(site) != '\0') {
        text_add(t, "\n# name ");
        text_add_foreign(t, site_name(site), SITE_NAME_MOST);
    }
    text_add(t, "\n");
}

static void sum_up(struct tally *sum, const struct tally *tally)
{
    sum->blocks += tally->blocks;
    sum->bytes += tally->bytes;
}

static int write_sites(int file)
{
    struct tally live = {0};
    struct tally total = {0};
    struct text t;
    int error = 0;
    text_init(&t, lines, sizeof lines);
    for (const struct site *site = NULL; (site = samples_site_after(site)) != NULL;) {
        sum_up(&live, &site->live);
        sum_up(&total, &site->total);
    }
    text_add(&t, "heap profile: ");
    add_line(&t, &live, &total);
    text_add(&t, " heapprofile\n# hakmem rate ");
    text_add_number(&t, policy.profile_rate);
    text_add(&t, " lost ");
    text_add_number(&t, samples_lost());
    text_add(&t, " memory ");
    text_add_number(&t, samples_bytes());
    text_add(&t, "\n");
    for (const struct site *site = NULL; error == 0 && (site = samples_site_after(site)) != NULL;) {
        error = flush(file, &t, LINE_MOST);
        add_site(&t, site);
    }
    text_add(&t, "\nMAPPED_LIBRARIES:\n");
    return error != 0 ? error : output_write(file, t.start, t.used);
}

static int write_mappings(int file)
{
    int maps = call_open("/proc/self/maps", O_RDONLY);
    int error = maps < 0 ? errno : 0;
    for (long got = 1; error == 0 && got > 0;) {
        got = call_read(maps, lines, sizeof lines);
        error = got < 0 ? errno : output_write(file, lines, (size_t)got);
    }
    if (maps >= 0)
        call_close(maps);
    return error;
}

int profile_write(int file)
{
    static bool at_work; /* atomic */
    sigset_t before;
    if (__atomic_exchange_n(&at_work, true, __ATOMIC_ACQUIRE))
        return EBUSY;
    os_signals_block(&before);
    int error = write_sites(file);
    if (error == 0)
        error = write_mappings(file);
    os_signals_restore(&before);
    store_release(&at_work, false);
    return error;
}

int profile_replace(const char *path)
{
    static struct output output;
    int error = output_begin(&output, path);
    return error != 0 ? error : output_end(&output, profile_write(output.file));
}
