#include "life/statistics.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "back/use.h"
#include "base/atomic.h"
#include "base/policy.h"
#include "base/text.h"
#include "front/stacks.h"
#include "life/limits.h"
#include "os/os.h"
#include "sheet/own.h"

static bool at_work; /* atomic: one thread writes at a time */

/* Milliseconds to wait for another. */
#define WAIT_STEP 10
#define WAIT_MOST 1000

static bool begin(void) { return !__atomic_exchange_n(&at_work, true, __ATOMIC_ACQUIRE); }

/* Not on the stack: a handler may have a small one. Of the thread that is at work. */
static char path[PATH_OPTION_MOST + 256];
static char line[PATH_OPTION_MOST + 256];

static void complain(const char *option, const char *about, const char *why)
{
    struct text t =
        text_of(line, sizeof line, "hakmem: %s: %.*s: %s\n", option, PATH_OPTION_MOST, about, why);
    os_print_error(t.start, t.used);
}

/* Of reading, or of writing to what `about` says. */
static void complain_of(const char *option, const char *about, struct own_error error)
{
    char why[64];
    struct text t;
    text_init(&t, why, sizeof why);
    if (error.number == 0)
        return;
    if (error.step == OWN_READ && error.number == EAGAIN)
        text_add(&t, "the heap changed too fast");
    else
        text_add_error(&t, error.number);
    complain(option, error.step == OWN_READ ? "the process can't read itself in /proc" : about,
             why);
}

static void make_path(const char *from)
{
    struct text t;
    text_init(&t, path, sizeof path);
    text_add_path(&t, from, os_process());
}

static void make_own_path(void)
{
    static char program[PATH_OPTION_MOST];
    os_program_path(program, sizeof program);
    const char *name = strrchr(program, '/');
    name = name != NULL ? name + 1 : program;
    text_of(path, sizeof path, "%s.%u.heap", *name != 0 ? name : "program", os_process());
}

static void write_file(void)
{
    make_path(stats_path);
    complain_of("stats_file", path, sheet_replace_own(path, FORM_OPENMETRICS));
}

static void write_profile(void)
{
    make_path(profile_path);
    int error = profile_replace(path);
    for (unsigned waited = 0; error == EBUSY && waited < WAIT_MOST; waited += WAIT_STEP) {
        os_let_pass(WAIT_STEP);
        error = profile_replace(path);
    }
    complain_of("profile_file", path, (struct own_error){error, OWN_WRITE});
}

/* ---- memory that has grown ----
 *
 * When resident memory has passed the option profile_rss: once, and again after it has grown by a
 * further quarter. Memory that shrinks and grows again to what it was counts no more, so there are
 * few files, however long the program runs. */

/* Milliseconds from one look to the next: a look takes some microseconds. */
#define LOOK_MS 10
#define FURTHER 4 /* a part of what was resident */

static size_t looked; /* when; atomic */

static struct {
    size_t option; /* for which these are; all atomic, and right with any value of the others */
    size_t limit;
    unsigned count;
} crossings;

static bool is_due(size_t now)
{
    size_t before = load_relaxed(&looked);
    return now - before >= LOOK_MS &&
           __atomic_compare_exchange_n(&looked, &before, now, false, __ATOMIC_RELAXED,
                                       __ATOMIC_RELAXED);
}

struct crossing {
    bool found;
    int error;       /* an errno: resident memory can't be read */
    unsigned number; /* from 1 on */
    size_t resident;
};

/* Looks, at most every so often; `now` in milliseconds. Thread safe, and needs no lock. */
static struct crossing crossing_look(size_t now)
{
    struct crossing crossing = {0};
    size_t option = load_relaxed(&policy.profile_rss);
    if (!is_due(now))
        return crossing;
    if (load_relaxed(&crossings.option) != option) {
        store_relaxed(&crossings.option, option);
        store_relaxed(&crossings.limit, option);
    }
    crossing.error = os_resident(&crossing.resident);
    crossing.number = load_relaxed(&crossings.count) + 1;
    crossing.found = crossing.error == 0 && crossing.resident > load_relaxed(&crossings.limit);
    return crossing;
}

/* It is dealt with. The caller lets no other thread do so. */
static void crossing_done(const struct crossing *crossing)
{
    store_relaxed(&crossings.count, crossing->number);
    store_relaxed(&crossings.limit, crossing->resident + crossing->resident / FURTHER);
}

/* That of profile_file, or in the current folder; with what tells it from the one at the end. */
static void make_crossing_path(unsigned number)
{
    static const char ending[] = ".heap";
    const size_t cut = sizeof ending - 1;
    if (policy.profile_file)
        make_path(profile_path);
    else
        make_own_path();
    size_t length = strlen(path);
    bool cuts = length > cut && memcmp(path + length - cut, ending, cut) == 0;
    length -= cuts ? cut : 0;
    text_of(path + length, sizeof path - length, ".rss-%u%s", number, cuts ? ending : "");
}

/* Where another thread writes a profile at this moment, the next look does it. What fails is said
 * once: else it would be at each growth, on a full disk, say. */
COLD void statistics_look(size_t now)
{
    static bool said; /* of the thread that is at work */
    KEEP_ERRNO;
    struct crossing crossing = crossing_look(now);
    if ((!crossing.found && crossing.error == 0) || !begin())
        return;
    int error = crossing.error;
    if (crossing.found) {
        make_crossing_path(crossing.number);
        error = profile_replace(path);
        if (error != EBUSY)
            crossing_done(&crossing);
    }
    if (error != 0 && error != EBUSY && !said) {
        said = true;
        complain_of("profile_rss", path,
                    (struct own_error){error, crossing.found ? OWN_WRITE : OWN_READ});
    }
    store_release(&at_work, false);
}

static void print(const char *option)
{
    complain_of(option, "standard error", sheet_write_own(STDERR_FILENO, FORM_TEXT));
}

/* ---- no memory ---- */

#define REPORT_MS 60000

static void add_limit(struct text *t, const char *name, size_t limit)
{
    if (limit != SIZE_MAX)
        text_write(t, ", %s %zu", name, limit);
}

static void say_no_memory(size_t bytes)
{
    struct text t =
        text_of(line, sizeof line,
                "hakmem: no memory for a block of %zu bytes. Of the heap, bytes in use %zu, free "
                "and kept %zu",
                bytes, load_relaxed(&use.slices) + load_relaxed(&use.huge), use_dirty());
    add_limit(&t, "hard_limit_bytes", load_relaxed(&limits.hard));
    add_limit(&t, "soft_limit_bytes", load_relaxed(&limits.soft));
    add_limit(&t, "memory limit of the container", limits_container());
    text_add(&t, "\n");
    os_print_error(t.start, t.used);
}

COLD void statistics_no_memory(size_t bytes)
{
    static size_t until; /* in milliseconds; of the thread that is at work */
    KEEP_ERRNO;
    if (!begin())
        return;
    size_t now = os_milliseconds();
    if (until == 0 || now >= until) {
        until = now + REPORT_MS;
        say_no_memory(bytes);
        print("report_no_memory");
    }
    store_release(&at_work, false);
}

static void on_signal(int number)
{
    (void)number;
    KEEP_ERRNO;
    if (!begin())
        return;
    if (policy.profile_file)
        write_profile();
    if (policy.stats_file)
        write_file();
    else if (!policy.profile_file)
        print("stats");
    store_release(&at_work, false);
}

/* A fault that a handler returns from happens again, for ever. */
static bool is_fault(size_t number)
{
    static const unsigned char faults[] = {SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV};
    for (size_t i = 0; i < sizeof faults; i++)
        if (faults[i] == number)
            return true;
    return false;
}

/* On the program's own stack for signals where it has one: its other stacks may be small. */
COLD void statistics_start(void)
{
    KEEP_ERRNO;
    if (policy.watch)
        os_let_watch();
    if (policy.stats_signal == 0)
        return;
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART | SA_ONSTACK};
    sigfillset(&action.sa_mask);
    if (is_fault(policy.stats_signal))
        complain("stats_signal", "expected a signal that is no fault", "nothing is set");
    else if (sigaction((int)policy.stats_signal, &action, NULL) != 0)
        complain("stats_signal", "expected a signal that can be handled", "nothing is set");
}

COLD void statistics_fork_child(void)
{
    store_relaxed(&at_work, false);
    if (policy.watch)
        os_let_watch();
}

/* Another thread's handler may be at work, or one that called exit: that is not waited for long.
 * Afterwards no handler begins. */
COLD void statistics_end(void)
{
    KEEP_ERRNO;
    if (!policy.stats_file && !policy.stats && !policy.profile_file && !policy.profile_rss)
        return;
    bool begun = begin();
    for (unsigned waited = 0; !begun && waited < WAIT_MOST; waited += WAIT_STEP) {
        os_let_pass(WAIT_STEP);
        begun = begin();
    }
    if (begun && policy.profile_file && policy.profile_end)
        write_profile();
    if (begun && policy.stats_file)
        write_file();
    if (begun && policy.stats)
        print("stats");
}

/* ---- what was learned ---- */

static const char *const whys[CAPACITY_REASONS] = {
    [CAPACITY_MISSES] = "it was empty",
    [CAPACITY_OVERFLOWS] = "it was full",
    [CAPACITY_FOREIGN] = "what is freed is other threads'",
    [CAPACITY_DRAINS] = "the thread frees more than it takes again",
    [CAPACITY_AGED] = "nobody needed what it held",
    [CAPACITY_SHARE] = "more threads share what all may keep",
};

static void add_bytes(struct text *t, size_t bytes)
{
    static const struct {
        const char *name;
        size_t bytes;
    } units[] = {{" GiB", GiB}, {" MiB", MiB}, {" KiB", KiB}, {" bytes", 1}};
    unsigned u = 0;
    while (units[u].bytes > 1 && bytes < units[u].bytes)
        u++;
    text_write(t, "%zu%s", bytes / units[u].bytes, units[u].name);
}

/* Of a stack, or of a class. */
static void add_step(struct text *t, const struct journal_entry *e)
{
    text_write(t, "thread %u, blocks of %zu bytes: ", e->thread, e->size);
    if (e->subject == JOURNAL_STACK)
        text_write(t, "keeps up to %zu -> %zu: %s", e->from, e->to, whys[e->why]);
    else
        text_add(t, e->subject == JOURNAL_COMPACTS ? "begin to compact: most of their slabs is free"
                                                   : "compact no more: they are in their places");
}

COLD void learned_print(void)
{
    static const char nothing[] = "hakmem: learned: nothing, since learn is off\n";
    char words[256];
    if (policy.learn == 0) {
        os_print_error(nothing, sizeof nothing - 1);
        return;
    }
    size_t end = journal_count();
    size_t begin = end > JOURNAL_MOST ? end - JOURNAL_MOST : 0;
    struct text t = text_of(words, sizeof words, "hakmem: learned: %zu steps%s\n", end,
                            begin > 0 ? ", the last 256 of them:"
                            : end > 0 ? ":"
                                      : "");
    os_print_error(t.start, t.used);
    for (size_t number = begin; number < end; number++) {
        struct journal_entry e;
        if (!journal_read(number, &e))
            continue;
        t = text_of(words, sizeof words, "hakmem: learned: after ");
        add_bytes(&t, e.clock);
        text_add(&t, " freed: ");
        add_step(&t, &e);
        text_add(&t, "\n");
        os_print_error(t.start, t.used);
    }
}
