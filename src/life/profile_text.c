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
#include "sheet/profile_lines.h"

static char lines[16 * KiB];

/* Writes the lines out when there may be no room for one more. */
static int flush(int file, struct text *t)
{
    if (sizeof lines - t->used > PROFILE_LINE_MOST)
        return 0;
    int error = output_write(file, t->start, t->used);
    text_init(t, lines, sizeof lines);
    return error;
}

static int write_sites(int file)
{
    struct profile_sums sums = {.rate = policy.profile_rate,
                                .lost = samples_lost(),
                                .memory = samples_bytes(),
                                .pid = os_process()};
    struct text t;
    uint64_t sites = 0;
    int error = 0;
    text_init(&t, lines, sizeof lines);
    for (const struct site *site = NULL; (site = samples_site_after(site)) != NULL;)
        profile_sum(&sums, site);
    profile_add_head(&t, &sums);
    for (const struct site *site = NULL; error == 0 && (site = samples_site_after(site)) != NULL;) {
        if (load_relaxed(&site->total.samples) == 0)
            continue; /* that of others */
        error = flush(file, &t);
        profile_add_site(&t, &sums, site);
        sites++;
    }
    if (error == 0)
        error = flush(file, &t);
    profile_add_end(&t, sites);
    return error != 0 ? error : output_write(file, t.start, t.used);
}

static int write_mappings(int file)
{
    int maps = call_open("/proc/self/maps", O_RDONLY);
    int error = maps < 0 ? -maps : 0;
    for (long got = 1; error == 0 && got > 0;) {
        got = call_read(maps, lines, sizeof lines);
        error = got < 0 ? (int)-got : output_write(file, lines, (size_t)got);
    }
    if (maps >= 0)
        call_close(maps);
    return error;
}

int profile_write(int file)
{
    static unsigned
        at_work; /* atomic: the number of the process that is; a fork's child is another */
    sigset_t before;
    unsigned other = load_relaxed(&at_work);
    unsigned self = os_process();
    if (other == self || !__atomic_compare_exchange_n(&at_work, &other, self, false,
                                                      __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        return EBUSY;
    os_signals_block(&before);
    int error = write_sites(file);
    if (error == 0)
        error = write_mappings(file);
    os_signals_restore(&before);
    store_release(&at_work, 0);
    return error;
}

int profile_replace(const char *path)
{
    static struct output output;
    int error = output_begin(&output, path);
    return error != 0 ? error : output_end(&output, profile_write(output.file));
}
