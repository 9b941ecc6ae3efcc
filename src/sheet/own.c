#include "sheet/own.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "base/atomic.h"
#include "base/policy.h"
#include "base/text.h"
#include "os/calls.h"
#include "os/os.h"
#include "os/self.h"
#include "profile/marks.h"
#include "profile/samples.h"
#include "sheet/profile.h"
#include "sheet/target.h"

/* ---- files and descriptors ----
 *
 * Async-signal-safe, nothing allocates; errors are numbers as of errno, 0 where there is none. A
 * pipe that nobody reads and a file that is at its limit are errors, and no signals, while signals
 * are blocked (os_signals_block). */

#define WAIT_STEP 10 /* milliseconds */
#define WAIT_MOST 1000

/* Writes all of it; waits a second for a descriptor that does not wait by itself. */
static int output_write(int file, const char *text, size_t length)
{
    unsigned waited = 0;
    while (length > 0) {
        long done = call_write(file, text, length);
        if (done == -EINTR)
            continue;
        if (done == -EAGAIN && waited < WAIT_MOST) {
            os_let_pass(WAIT_STEP);
            waited += WAIT_STEP;
            continue;
        }
        if (done <= 0)
            return done < 0 ? (int)-done : EIO;
        text += done;
        length -= (size_t)done;
    }
    return 0;
}

/* A file that is there in whole or not at all: it is written beside, and then renamed. */
struct output {
    int file;
    const char *path;
    char beside[PATH_OPTION_MOST + 320];
};

static int output_begin(struct output *output, const char *path)
{
    text_of(output->beside, sizeof output->beside, "%s.%u.tmp", path, os_process());
    output->path = path;
    call_unlink(output->beside); /* one that a killed process of this number left */
    output->file = call_open(output->beside, O_WRONLY | O_CREAT | O_EXCL);
    return output->file < 0 ? -output->file : 0;
}

/* After a beginning without an error. `error`: what went wrong since, which it returns, after all
 * that was written is gone. */
static int output_end(struct output *output, int error)
{
    int closed = call_close(output->file);
    if (error == 0)
        error = -closed;
    if (error == 0)
        error = -call_rename(output->beside, output->path);
    if (error != 0)
        call_unlink(output->beside);
    return error;
}

/* ---- the sheet ---- */

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

/* What is written, a good part at once. */
static struct {
    char text[16 * KiB];
    struct text lines;
    int file, error;
} out; /* of the thread at work */

static void out_flush(void)
{
    if (out.error == 0)
        out.error = output_write(out.file, out.lines.start, out.lines.used);
    text_init(&out.lines, out.text, sizeof out.text);
}

/* With room for any line. */
static struct text *next_line(void)
{
    if (sizeof out.text - out.lines.used <= PROFILE_LINE_MOST)
        out_flush();
    return &out.lines;
}

static void write_sites(void)
{
    struct profile_sums sums = {.rate = policy.profile_rate,
                                .lost = samples_lost(),
                                .memory = samples_bytes(),
                                .pid = os_process(),
                                .course = samples_course(),
                                .lately = samples_watched()};
    uint64_t sites = 0;
    for (const struct site *site = NULL; (site = samples_site_after(site)) != NULL;)
        profile_sum(&sums, site);
    profile_add_head(next_line(), &sums);
    struct watch_mark mark;
    for (unsigned i = 0; mark_read(i, &mark); i++)
        profile_add_mark(next_line(), &mark, excess(os_nanoseconds(), mark.time));
    for (const struct site *site = NULL; (site = samples_site_after(site)) != NULL;) {
        if (load_relaxed(&site->total.samples) == 0)
            continue; /* that of others */
        profile_add_site(next_line(), &sums, site);
        sites++;
    }
    profile_add_end(next_line(), sites);
}

static void write_mappings(void)
{
    int maps = call_open("/proc/self/maps", O_RDONLY);
    out_flush();
    if (maps < 0 && out.error == 0)
        out.error = -maps;
    for (long got = 1; out.error == 0 && got > 0;) {
        got = call_read(maps, out.text, sizeof out.text);
        out.lines.used = got > 0 ? (size_t)got : 0;
        out.error = got < 0 ? (int)-got : 0;
        out_flush();
    }
    if (maps >= 0)
        call_close(maps);
}

static int write_whole(int file)
{
    out.file = file;
    out.error = 0;
    text_init(&out.lines, out.text, sizeof out.text);
    write_sites();
    for (const struct seen_module *one = modules_seen(); one != NULL; one = one->next)
        profile_add_module(next_line(), one->lines, one->bytes);
    write_mappings();
    for (const struct script_line *line = script_lines(); line != NULL; line = line->next)
        profile_add_script_line(next_line(), line);
    out_flush();
    return out.error;
}

static unsigned at_work; /* atomic: the process whose thread is; a fork's child is another */

static bool begin(sigset_t *before)
{
    unsigned other = load_relaxed(&at_work);
    unsigned self = os_process();
    if (other == self || !__atomic_compare_exchange_n(&at_work, &other, self, false,
                                                      __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        return false;
    os_signals_block(before);
    return true;
}

static int end(const sigset_t *before, int error)
{
    os_signals_restore(before);
    store_release(&at_work, 0);
    return error;
}

int profile_write(int file)
{
    sigset_t before;
    return begin(&before) ? end(&before, write_whole(file)) : EBUSY;
}

int profile_replace(const char *path)
{
    static struct output output;
    sigset_t before;
    if (!begin(&before))
        return EBUSY;
    int error = output_begin(&output, path);
    return end(&before, error != 0 ? error : output_end(&output, write_whole(output.file)));
}
