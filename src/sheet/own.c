#include "sheet/own.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "base/atomic.h"
#include "base/policy.h"
#include "base/text.h"
#include "os/calls.h"
#include "os/os.h"
#include "os/output.h"
#include "os/self.h"
#include "profile/marks.h"
#include "profile/samples.h"
#include "sheet/profile.h"
#include "sheet/target.h"

/* Of the calling thread: the first one, which /proc/self is, may have ended before the others.
 * Older than Linux 3.17: that one. */
static const char selves[][12] = {"thread-self", "self"};

static int number_of(enum ending ending)
{
    return ending == EXIT_NONSENSE ? EAGAIN : ENOMEM; /* it changed too fast, or no memory */
}

/* Looks until little is left to explain, and keeps the best text in `best`. */
static int look(struct target *t, const char *self, enum form form, char *best, size_t *length)
{
    const uint64_t most = kernel_bytes(self, "status", "VmHWM:"); /* before this touches more */
    struct why why;
    uint64_t least = UINT64_MAX;
    int error = EAGAIN;
    for (unsigned n = 0; n < LOOKS_MOST; n++) {
        error = kernel_maps(t, self);
        if (error != 0)
            break;
        struct heap *heap = room_get(&t->room, sizeof *heap);
        target_allow(t);
        if (heap == NULL || !target_begin(t))
            return ENOMEM;
        if (!tables_read(t, (uint64_t)(uintptr_t)&hakmem_watch, &heap->tables, &why) ||
            !heap_read(t, heap, &why)) {
            error = number_of(why.ending);
            continue;
        }
        struct totals totals = totals_of(t, heap);
        totals.most = most;
        uint64_t unexplained =
            (uint64_t)(totals.unexplained < 0 ? -totals.unexplained : totals.unexplained);
        if (unexplained < least) {
            least = unexplained;
            *length = sheet_print(form, heap, &totals, best, PRINT_MOST);
        }
        if (unexplained <= little_of(t))
            break;
    }
    return least != UINT64_MAX ? 0 : error;
}

/* The text, in the room. */
static int read_own(struct room *room, enum form form, char **text, size_t *length)
{
    struct target t;
    if (os_page != PAGE)
        return ENOTSUP;
    *text = room_get(room, PRINT_MOST);
    if (*text == NULL)
        return ENOMEM;
    const char *self = selves[0];
    int error = kernel_open(&t, self);
    if (error == ENOENT)
        error = kernel_open(&t, self = selves[1]);
    if (error != 0)
        return error;
    error = look(&t, self, form, *text, length);
    target_forget(&t);
    kernel_close(&t);
    return error;
}

struct own_error sheet_write_own(int file, enum form form)
{
    struct room room = {0};
    char *text = NULL;
    size_t length = 0;
    struct own_error error = {read_own(&room, form, &text, &length), OWN_READ};
    if (error.number == 0) {
        sigset_t before;
        os_signals_block(&before); /* SIGPIPE, which this takes back */
        error = (struct own_error){output_write(file, text, length), OWN_WRITE};
        os_signals_restore(&before);
    }
    room_release(&room);
    return error;
}

struct own_error sheet_replace_own(const char *path, enum form form)
{
    static struct output output; /* not on the stack, which may be small */
    struct own_error error = {output_begin(&output, path), OWN_WRITE};
    if (error.number != 0)
        return error;
    error = sheet_write_own(output.file, form);
    int ended = output_end(&output, error.number);
    return error.number != 0 ? error : (struct own_error){ended, OWN_WRITE};
}

/* ---- the heap profile ---- */

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
                                .pid = os_process(),
                                .course = samples_course(),
                                .lately = samples_watched()};
    struct text t;
    uint64_t sites = 0;
    int error = 0;
    text_init(&t, lines, sizeof lines);
    for (const struct site *site = NULL; (site = samples_site_after(site)) != NULL;)
        profile_sum(&sums, site);
    profile_add_head(&t, &sums);
    struct watch_mark mark;
    for (unsigned i = 0; error == 0 && mark_read(i, &mark); i++) {
        error = flush(file, &t);
        profile_add_mark(&t, &mark, excess(os_nanoseconds(), mark.time));
    }
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

static int write_modules(int file)
{
    struct text t;
    int error = 0;
    text_init(&t, lines, sizeof lines);
    for (const struct seen_module *one = modules_seen(); error == 0 && one != NULL;
         one = one->next) {
        profile_add_module(&t, one->lines, one->bytes);
        error = flush(file, &t);
    }
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

static int write_script_lines(int file)
{
    struct text t;
    int error = 0;
    text_init(&t, lines, sizeof lines);
    for (const struct script_line *line = script_lines(); error == 0 && line != NULL;
         line = line->next) {
        profile_add_script_line(&t, line);
        error = flush(file, &t);
    }
    return error != 0 ? error : output_write(file, t.start, t.used);
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
        error = write_modules(file);
    if (error == 0)
        error = write_mappings(file);
    if (error == 0)
        error = write_script_lines(file);
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
