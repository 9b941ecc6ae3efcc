#include "sheet/own.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "base/atomic.h"
#include "base/policy.h"
#include "base/text.h"
#include "os/calls.h"
#include "os/os.h"
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

/* A file that is there in whole or not at all: it is written beside, and then renamed. Or a stream.
 */
struct output {
    int file;
    bool stream;
    const char *path;
    char beside[PATH_OPTION_MOST + 320];
};

static int output_begin(struct output *output, const char *path)
{
    output->path = path;
    output->stream = is_stream(path);
    if (output->stream) {
        output->file = call_open(path, STREAM_FLAGS);
        return output->file < 0 ? -output->file : 0;
    }
    text_of(output->beside, sizeof output->beside, "%s.%u.tmp", path, os_process());
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
    if (output->stream)
        return error;
    if (error == 0)
        error = -call_rename(output->beside, output->path);
    if (error != 0)
        call_unlink(output->beside);
    return error;
}

static const struct {
    char name[12], title[40];
} sheet_lines[] = {
#define LINE(line, name, title) {name, title},
    HEAP_LINES(LINE)
#undef LINE
};

static void add_program(struct text *t)
{
    char path[256];
    os_program_path(path, sizeof path);
    const char *name = strrchr(path, '/');
    name = name != NULL ? name + 1 : path;
    text_add_foreign(t, *name != 0 ? name : "program", sizeof path);
}

/* ---- a sheet for people ---- */

#define CLASSES_SHOWN 10

static uint64_t tenths_of(uint64_t part, uint64_t whole)
{
    return whole == 0 ? 0 : (uint64_t)((double)part * 10 / (double)whole + 0.5);
}

/* Two values for "%lu.%lu". */
#define TENTHS(tenths) (tenths) / 10, (tenths) % 10
#define IN_MIB(bytes) TENTHS(tenths_of(bytes, MiB))

/* Lines of a sum. What is shown of each is how much further the sum is with it, as that is shown:
 * so what is shown adds up, too. */
struct lines_sum {
    uint64_t so_far, whole;
};

/* Of what was `before` and what is `now`, in tenths. */
static void add_tenths(struct text *t, uint64_t now, uint64_t before)
{
    uint64_t tenths = now < before ? before - now : now - before;
    text_write(t, "%s%lu.%lu", now < before ? "-" : "", TENTHS(tenths));
}

static void add_line(struct text *t, struct lines_sum *sum, const char *title, int64_t bytes)
{
    char amount[32], part[32];
    struct text in_mib, percent;
    uint64_t before = sum->so_far, now = before + (uint64_t)bytes;
    text_init(&in_mib, amount, sizeof amount);
    text_init(&percent, part, sizeof part);
    add_tenths(&in_mib, tenths_of(now, MiB), tenths_of(before, MiB));
    add_tenths(&percent, tenths_of(now * 100, sum->whole), tenths_of(before * 100, sum->whole));
    text_write(t, "  %-40s%9s%7s\n", title, amount, part);
    sum->so_far = now;
}

static void add_head(struct text *t, const struct heap *heap, const struct totals *totals)
{
    add_program(t);
    text_write(t, " (PID %u), hakmem %s: ", os_process(), heap->tables.version);
    text_write(t, "%lu.%lu MiB resident (at most %lu.%lu), %lu.%lu MiB in blocks in use\n",
               IN_MIB(totals->resident), IN_MIB(totals->most), IN_MIB(heap->live_bytes));
}

/* The next class with less live memory than the last that was shown, or as much and a larger size.
 */
static const struct class_sum *class_below(const struct heap *heap, const struct class_sum *last)
{
    const struct class_sum *best = NULL;
    for (unsigned cls = 0; cls < heap->tables.slabs.classes; cls++) {
        const struct class_sum *sum = &heap->classes[cls];
        uint64_t live = sum->live * sum->size;
        uint64_t before = last != NULL ? last->live * last->size : UINT64_MAX;
        if (sum->live > 0 && (live < before || (live == before && sum > last)) &&
            (best == NULL || live > best->live * best->size))
            best = sum;
    }
    return best;
}

static void add_classes(struct text *t, const struct heap *heap)
{
    const struct class_sum *sum = class_below(heap, NULL);
    if (sum == NULL)
        return;
    text_add(t, "size classes with the most memory in use\n"
                "     size   blocks in use      MiB   free blocks      MiB   in caches\n");
    for (unsigned n = 0; sum != NULL && n < CLASSES_SHOWN; n++, sum = class_below(heap, sum)) {
        text_write(t, "%9u%16lu%7lu.%lu%14lu%7lu.%lu%12lu\n", sum->size, sum->live,
                   IN_MIB(sum->live * sum->size), sum->free, IN_MIB(sum->free * sum->size),
                   sum->cached + sum->in_transfer);
    }
}

static void add_counters(struct text *t, const struct heap *heap)
{
    text_write(
        t,
        "since the start: %lu.%lu MiB freed, %lu.%lu MiB returned to the kernel, %lu.%lu MiB "
        "of it used again\n",
        IN_MIB(heap->freed), IN_MIB(heap->returned), IN_MIB(heap->taken_again));
}

static void add_limits(struct text *t, const struct heap *heap)
{
    static const char names[HEAP_LIMIT_COUNT][20] = {
#define NAME(limit, name, words) words,
        HEAP_LIMITS(NAME)
#undef NAME
    };
    bool any = false;
    for (unsigned i = 0; i < HEAP_LIMIT_COUNT; i++) {
        if (heap->limits[i] == UINT64_MAX)
            continue;
        text_write(t, "%s%s %lu.%lu", any ? ", " : "limits in MiB: ", names[i],
                   IN_MIB(heap->limits[i]));
        any = true;
    }
    if (any)
        text_write(t, "; of the heap count %lu.%lu\n", IN_MIB(heap->held));
}

static void add_swapped(struct text *t, const struct totals *totals)
{
    if (totals->swapped[0] + totals->swapped[1] > 0)
        text_write(t,
                   "in swap, not resident: %lu.%lu MiB of the heap, %lu.%lu MiB of other memory\n",
                   IN_MIB(totals->swapped[0]), IN_MIB(totals->swapped[1]));
}

static void add_requested(struct text *t, const struct heap *heap)
{
    const struct requested *requested = &heap->requested;
    if (requested->samples == 0)
        return;
    text_write(t,
               "of the blocks in use the program requested %lu.%lu MiB, %lu.%lu%% (standard error "
               "%lu.%lu%%): estimated from %lu samples\n",
               IN_MIB(requested_of(requested->share, heap->live_bytes)),
               TENTHS(requested_of(requested->share, 1000)),
               TENTHS(requested_of(requested->error, 1000)), requested->samples);
}

static void print_text(struct text *t, const struct heap *heap, const struct totals *totals)
{
    struct lines_sum sum = {0, totals->resident};
    add_head(t, heap, totals);
    text_add(t, "heap                                              MiB      %\n");
    for (unsigned line = 0; line < HEAP_LINE_COUNT; line++)
        add_line(t, &sum, sheet_lines[line].title, (int64_t)heap->resident[line]);
    add_line(t, &sum, "not accounted for", totals->unexplained);
    text_add(t, "other\n");
    add_line(t, &sum, "program, libraries, mapped files", (int64_t)totals->kinds[KIND_FILE]);
    add_line(t, &sum, "stacks", (int64_t)totals->kinds[KIND_STACK]);
    add_line(t, &sum, "other anonymous memory", (int64_t)totals->kinds[KIND_ANONYMOUS]);
    add_swapped(t, totals);
    add_limits(t, heap);
    add_requested(t, heap);
    add_classes(t, heap);
    add_counters(t, heap);
}

/* ---- as OpenMetrics ---- */

static void add_family(struct text *t, const char *name, const char *type, const char *help)
{
    size_t n = strlen(name);
    text_write(t, "# TYPE %s %s\n", name, type);
    if (n > 6 && strcmp(name + n - 6, "_bytes") == 0)
        text_write(t, "# UNIT %s bytes\n", name);
    text_write(t, "# HELP %s %s\n", name, help);
}

static void add_sample(struct text *t, const char *name, const char *label, const char *value,
                       int64_t number)
{
    text_add(t, name);
    if (label != NULL)
        text_write(t, "{%s=\"%s\"}", label, value);
    text_write(t, "%s%lu\n", number < 0 ? " -" : " ",
               number < 0 ? 0 - (uint64_t)number : (uint64_t)number);
}

static void add_gauge(struct text *t, const char *name, const char *help, uint64_t value)
{
    add_family(t, name, "gauge", help);
    add_sample(t, name, NULL, NULL, (int64_t)value);
}

static void add_counter(struct text *t, const char *name, const char *total, const char *help,
                        uint64_t value)
{
    add_family(t, name, "counter", help);
    add_sample(t, total, NULL, NULL, (int64_t)value);
}

static void add_requested_metrics(struct text *t, const struct heap *heap)
{
    const struct requested *requested = &heap->requested;
    if (requested->samples == 0)
        return;
    add_gauge(t, "hakmem_requested_bytes",
              "Of the blocks in use, what the program requested: an estimate.",
              requested_of(requested->share, heap->live_bytes));
    add_gauge(t, "hakmem_requested_error_bytes", "The standard error of hakmem_requested_bytes.",
              requested_of(requested->error, heap->live_bytes));
    add_gauge(t, "hakmem_requested_samples", "The blocks that hakmem_requested_bytes is made from.",
              requested->samples);
}

static void print_metrics(struct text *t, const struct heap *heap, const struct totals *totals)
{
    uint64_t living = 0;
    for (size_t i = 0; i < heap->cache_count; i++)
        living += heap->caches[i].living;
    add_family(t, "hakmem_build_info", "gauge", "The version of the library.");
    add_sample(t, "hakmem_build_info", "version", heap->tables.version, 1);
    add_gauge(t, "hakmem_resident_memory_bytes", "Resident memory of the process (RSS).",
              totals->resident);
    add_gauge(t, "hakmem_live_bytes", "Memory in blocks in use.", heap->live_bytes);
    add_requested_metrics(t, heap);
    add_gauge(t, "hakmem_swapped_bytes", "Memory of the process in swap, not resident.",
              totals->swapped[0] + totals->swapped[1]);
    add_family(t, "hakmem_heap_resident_bytes", "gauge", "Resident memory of the heap, by use.");
    for (unsigned line = 0; line < HEAP_LINE_COUNT; line++)
        add_sample(t, "hakmem_heap_resident_bytes", "use", sheet_lines[line].name,
                   (int64_t)heap->resident[line]);
    add_sample(t, "hakmem_heap_resident_bytes", "use", "unexplained", totals->unexplained);
    add_family(t, "hakmem_other_resident_bytes", "gauge",
               "Resident memory outside of the heap, by kind.");
    for (unsigned kind = KIND_HEAP + 1; kind < KINDS; kind++)
        add_sample(t, "hakmem_other_resident_bytes", "kind", kind_names[kind],
                   (int64_t)totals->kinds[kind]);
    add_gauge(t, "hakmem_returnable_bytes",
              "Free memory of the heap that can go back to the kernel at once.",
              totals->returnable);
    add_counter(t, "hakmem_freed_bytes", "hakmem_freed_bytes_total",
                "Memory that the program has freed.", heap->freed);
    add_counter(t, "hakmem_returned_bytes", "hakmem_returned_bytes_total",
                "Memory returned to the kernel.", heap->returned);
    add_counter(t, "hakmem_taken_again_bytes", "hakmem_taken_again_bytes_total",
                "Returned memory that was used again.", heap->taken_again);
    add_gauge(t, "hakmem_thread_caches", "Threads that have a cache.", living);
    text_add(t, "# EOF\n");
}

/* Returns how many bytes the text has. */
static size_t sheet_print(enum form form, const struct heap *heap, const struct totals *totals,
                          char *to, size_t room)
{
    struct text t;
    text_init(&t, to, room);
    if (form == FORM_OPENMETRICS)
        print_metrics(&t, heap, totals);
    else
        print_text(&t, heap, totals);
    return t.used;
}

/* ---- reading it ---- */

#define PRINT_MOST 16384 /* bytes, for any sheet */

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
    profile_add_times(next_line(), kernel_times("self"));
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
