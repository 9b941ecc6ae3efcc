#define _GNU_SOURCE
#include "ended.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "because.h"
#include "find.h"
#include "os/calls.h"
#include "profile.h"
#include "sheet/profile.h"
#include "sheet/target.h"

#define SAYS "hakmem run: "
#define REPORTER_MORE_MOST 8
/* Its status where something is lost; of budgets this and the sum of what is so, less 1.
 * command/hakmem.in asks for it. */
#define REPORTER_LOST 10
#define SAID_EXCEEDED 1      /* a budget is */
#define SAID_LOST 2          /* something is */
#define REPORTER_UNWRITTEN 5 /* where nothing is, but its file could not be written */
#define PATH_MOST 4096

static bool runs;        /* the program */
static char runs_as[32]; /* its name, when it was executed */
static bool any_found;   /* a process on hakmem */

/* Its name, with what could play with a terminal left out. */
static void name_of(pid_t process, char *name, size_t room)
{
    char path[48];
    snprintf(path, sizeof path, "/proc/%d/comm", process);
    FILE *file = fopen(path, "re");
    if (file == NULL || fgets(name, (int)room, file) == NULL)
        snprintf(name, room, "?");
    if (file != NULL)
        fclose(file);
    name[strcspn(name, "\n")] = 0;
    for (char *c = name; *c != 0; c++)
        if ((unsigned char)*c < 0x20 || (unsigned char)*c >= 0x7f)
            *c = '?';
}

void ended_program_runs(pid_t program)
{
    runs = true;
    name_of(program, runs_as, sizeof runs_as);
}

/* The file of a process. */
static void expand(struct text *t, const char *name, const struct trace *trace, pid_t process)
{
    static char apart[PATH_MOST];
    struct text split;
    const char *last = strrchr(name, '/');
    const char *dot = strrchr(last != NULL ? last + 1 : name, '.');
    size_t kept = dot != NULL ? (size_t)(dot - name) : strlen(name);
    if (process != trace->program && strstr(name, "%p") == NULL && !is_stream(name)) {
        text_init(&split, apart, sizeof apart);
        text_add_foreign(&split, name, kept);
        text_add(&split, ".%p");
        text_add(&split, name + kept);
        name = apart;
    }
    text_add_path(t, name, (uint64_t)process);
}

/* Starts the reporter, with these words more, and waits for it; its status, or -1. */
static int report(const struct trace *trace, char **more, const char *file, const char *name,
                  pid_t process)
{
    static char output[PATH_MOST];
    struct text t;
    char called[64];
    size_t count = 0;
    while (trace->reporter[count] != NULL)
        count++;
    char **words = malloc((count + REPORTER_MORE_MOST + 4) * sizeof *words);
    if (words == NULL)
        return -1;
    memcpy(words, trace->reporter, count * sizeof *words);
    snprintf(called, sizeof called, "--name=hakmem run: %s (%d)", name, process);
    words[count++] = called;
    if (trace->file != NULL) {
        text_init(&t, output, sizeof output);
        text_add(&t, "--output=");
        expand(&t, trace->file, trace, process);
        words[count++] = output;
    }
    for (unsigned i = 0; more[i] != NULL && i < REPORTER_MORE_MOST; i++)
        words[count++] = more[i];
    words[count++] = (char *)file;
    words[count] = NULL;
    pid_t child = fork();
    if (child == 0) {
        dup2(STDERR_FILENO, STDOUT_FILENO);
        execvp(words[0], words);
        _exit(127);
    }
    free(words);
    int status;
    while (child > 0 && waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return -1;
    return child > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void tell_status(const struct trace *trace, char byte)
{
    if (trace->told >= 0)
        (void)!write(trace->told, &byte, 1);
}

void ended_program(const struct trace *trace) { tell_status(trace, BYTE_OVER); }

/* As the reporter shows it: 1.5 MiB in 3 blocks. */
static const char *sum_text(const struct leak_sum *sum, char *text, size_t room)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB"};
    unsigned unit = 0;
    double size = (double)sum->bytes;
    for (; size >= 1024 && unit < 3; unit++)
        size /= 1024;
    snprintf(text, room, "%.*f %s in %" PRIu64 " block%s", unit == 0 ? 0 : 1, size, units[unit],
             sum->blocks, sum->blocks != 1 ? "s" : "");
    return text;
}

static void say_sums(const struct leak_sums *sums, const char *name, pid_t process,
                     const char *wrong)
{
    char lost[160] = "nothing is lost";
    char one[64], other[64];
    if (sums->lost.blocks > 0)
        snprintf(lost, sizeof lost, "lost %s, through them %s",
                 sum_text(&sums->lost, one, sizeof one),
                 sum_text(&sums->through, other, sizeof other));
    fprintf(stderr, SAYS "%s (%d): %s; reachable %s%s%s\n", name, process, lost,
            sum_text(&sums->reachable, one, sizeof one), wrong[0] != 0 ? "; " : "", wrong);
}

/* Where the reporter fails the sums are said: they are what remains. `wrong` says why it has
 * nothing to read; empty where it has. */
static void tell(const struct trace *trace, const struct leak_check *check, const char *name,
                 pid_t process, const char *wrong)
{
    bool lost = check->sums.lost.blocks > 0;
    bool reports = (lost || check->always) && wrong[0] == 0;
    int status = reports ? report(trace, (char *[]){NULL}, check->path, name, process) : -1;
    bool said = status == 0 || status == REPORTER_LOST || status == REPORTER_UNWRITTEN;
    if (status == REPORTER_LOST || (lost && !said))
        tell_status(trace, BYTE_LOST);
    if (!said && (lost || process == trace->program))
        say_sums(&check->sums, name, process, wrong);
}

/* ---- one process ---- */

struct ended {
    const struct trace *trace;
    pid_t process;
    int signal; /* that ends it, or 0 */
    char name[32];
    char thread[16]; /* as /proc calls the one that is left: the first one may have ended */
    struct target t;
    struct tables tables;
};

static bool open_process(struct ended *e, struct why *why)
{
    int error = kernel_open(&e->t, e->thread);
    if (error == 0)
        error = kernel_maps(&e->t, e->thread);
    if (error != 0)
        return because(why, EXIT_TARGET, "its memory can't be read: %s", strerror(error));
    target_allow(&e->t);
    if (!target_begin(&e->t))
        return because(why, EXIT_TARGET, "out of memory");
    return tables_find(&e->t, &e->tables, why);
}

/* Its number in its own namespace. */
static uint64_t inner_number(const struct ended *e)
{
    char line[256];
    uint64_t number = (uint64_t)e->process;
    snprintf(line, sizeof line, "/proc/%s/status", e->thread);
    FILE *status = fopen(line, "re");
    while (status != NULL && fgets(line, sizeof line, status) != NULL)
        if (strncmp(line, "NStgid:", 7) == 0)
            number = strtoull(strrchr(line, '\t') + 1, NULL, 10);
    if (status != NULL)
        fclose(status);
    return number;
}

static int write_all(int file, const char *text, size_t length)
{
    while (length > 0) {
        ssize_t done = write(file, text, length);
        if (done <= 0 && errno != EINTR)
            return done < 0 ? errno : EIO;
        text += done > 0 ? done : 0;
        length -= done > 0 ? (size_t)done : 0;
    }
    return 0;
}

static int write_to_stream(const char *path, const char *text, size_t length)
{
    int file = open(path, STREAM_FLAGS | O_CLOEXEC);
    if (file < 0)
        return errno;
    fcntl(file, F_SETFL, O_APPEND);
    int error = write_all(file, text, length);
    return close(file) != 0 && error == 0 ? errno : error;
}

/* A file that is there in whole or not at all; 0, or the number of an error. */
static int replace(const char *path, const char *text, size_t length)
{
    static char beside[PATH_MOST + 32];
    if (is_stream(path))
        return write_to_stream(path, text, length);
    snprintf(beside, sizeof beside, "%s.%d.tmp", path, getpid());
    int file = open(beside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (file < 0)
        return errno;
    int error = write_all(file, text, length);
    if ((close(file) != 0 || (error == 0 && rename(beside, path) != 0)) && error == 0)
        error = errno;
    if (error != 0)
        unlink(beside);
    return error;
}

static bool write_profile(struct ended *e, struct why *why)
{
    static char path[PATH_MOST];
    struct text t;
    char *text = NULL;
    size_t length = 0;
    text_init(&t, path, sizeof path);
    expand(&t, e->trace->profile, e->trace, e->process);
    FILE *out = open_memstream(&text, &length);
    bool done =
        out != NULL && profile_print(out, &e->t, &e->tables, e->thread, inner_number(e), NULL, why);
    bool written = out != NULL && fclose(out) == 0;
    if (out == NULL || (done && !written))
        done = because(why, EXIT_TARGET, "out of memory");
    int error = done ? replace(path, text, length) : 0;
    free(text);
    return done && (error == 0 || because(why, EXIT_TARGET, "%s: %s", path, strerror(error)));
}

static bool search(struct ended *e, const struct registers *const *threads, size_t count,
                   struct why *why)
{
    char path[48];
    const struct trace *trace = e->trace;
    int file = memfd_create("leaks", MFD_CLOEXEC);
    snprintf(path, sizeof path, "/proc/%d/fd/%d", getpid(), file);
    struct leak_check check = {.name = e->thread,
                               .pid = inner_number(e),
                               .threads = threads,
                               .thread_count = count,
                               .path = path,
                               .whole = trace->file != NULL,
                               /* the program itself gets a file though nothing is lost */
                               .always = trace->file != NULL && e->process == trace->program};
    bool done = leaks_check(&e->t, &e->tables, &check, why);
    if (check.found)
        tell(trace, &check, e->name, e->process, done ? "" : why->line);
    if (file >= 0)
        close(file);
    return check.found;
}

/* ---- budgets ---- */

/* Whether what is lost is asked for. */
static bool searches(const struct trace *trace)
{
    return trace->leaks || trace->budgets.leaked != NO_BUDGET;
}

/* Writes the profile, with what is lost if that is asked for. */
static bool write_used(struct ended *e, struct leak_check *check, struct why *why)
{
    if (searches(e->trace))
        return leaks_check(&e->t, &e->tables, check, why);
    FILE *out = fopen(check->path, "we");
    bool done =
        out != NULL && profile_print(out, &e->t, &e->tables, e->thread, check->pid, NULL, why);
    return ((out != NULL && fclose(out) == 0) ||
            because(why, EXIT_TARGET, "the report can't be written: %s", strerror(errno))) &&
           done;
}

static bool sum_used(struct ended *e, struct budgets *used, struct why *why)
{
    struct profile_sums sums;
    if (e->tables.profile.course == NULL)
        return because(why, EXIT_REFUSED, "its hakmem is too old for budgets");
    if (!profile_sum_all(&e->t, &e->tables.profile, &sums))
        return because(why, EXIT_NONSENSE,
                       "its list of blocks is invalid: the memory is corrupt, or forged");
    if (sums.rate != 1 || sums.lost != 0)
        return because(why, EXIT_REFUSED,
                       sums.lost != 0 ? "there was no memory to count all of its blocks"
                                      : "not every block of it was recorded");
    double most = sums.course.most > sums.live.bytes ? sums.course.most : sums.live.bytes;
    used->peak = most > 0 && most < 1e18 ? (uint64_t)most : 0;
    double blocks = sums.course.blocks + (double)sums.course.missed;
    used->allocations = blocks > 0 && blocks < 1e18 ? (uint64_t)blocks : 0;
    return true;
}

/* Where what the reporter said of earlier processes is kept, for its file of all. */
static int reported_file(void)
{
    static int file = -1;
    if (file < 0)
        file = memfd_create("budgets", MFD_CLOEXEC);
    return file;
}

/* What the reporter is told of a process, besides the reporter's own words. */
static int report_used(const struct ended *e, const char *path, char *more)
{
    char state[64];
    char limits[96] = "--limits=";
    char ended[32];
    const size_t begun = strlen(limits);
    const struct trace *trace = e->trace;
    char *words[REPORTER_MORE_MOST] = {state, limits};
    size_t count = 2;
    snprintf(state, sizeof state, "--state=/proc/%d/fd/%d", getpid(), reported_file());
    budgets_print(limits + begun, sizeof limits - begun, &trace->budgets);
    snprintf(ended, sizeof ended, "--signal=%d", e->signal);
    if (e->process == trace->program)
        words[count++] = "--program";
    if (e->process == trace->program && e->signal != 0)
        words[count++] = ended;
    if (more != NULL)
        words[count++] = more;
    return report(trace, words, path, e->name, e->process);
}

/* Has the reporter tell. It alone knows what is suppressed; where it fails, the limit is exceeded,
 * and what is lost counts. */
static bool tell_used(struct ended *e, const struct leak_check *check, bool exceeded, bool lost,
                      struct why *why)
{
    int status = report_used(e, check->path, NULL);
    int said = status - REPORTER_LOST + 1;
    bool failed = status != 0 && status != REPORTER_UNWRITTEN &&
                  (said <= 0 || said > (SAID_EXCEEDED | SAID_LOST));
    if (failed)
        said = (exceeded ? SAID_EXCEEDED : 0) | (lost ? SAID_LOST : 0);
    if (failed && lost)
        say_sums(&check->sums, e->name, e->process, "");
    if (said > 0 && (said & SAID_EXCEEDED) != 0)
        tell_status(e->trace, BYTE_EXCEEDED);
    if (said > 0 && (said & SAID_LOST) != 0)
        tell_status(e->trace, BYTE_LOST);
    return (!failed && status != REPORTER_UNWRITTEN) ||
           because(why, EXIT_TARGET,
                   failed ? "what reports of it failed" : "the report can't be written");
}

static bool check_budgets(struct ended *e, const struct registers *const *threads, size_t count,
                          struct why *why)
{
    char path[48];
    const struct trace *trace = e->trace;
    struct budgets used = {.leaked = 0};
    if (!sum_used(e, &used, why))
        return false;
    bool is_program = e->process == trace->program;
    bool wanted = budgets_exceeded(&trace->budgets, &used) ||
                  (is_program && (trace->budgets.all || trace->leaks));
    if (!wanted && !searches(trace))
        return true;
    int file = memfd_create("used", MFD_CLOEXEC);
    snprintf(path, sizeof path, "/proc/%d/fd/%d", getpid(), file);
    struct leak_check check = {.name = e->thread,
                               .pid = inner_number(e),
                               .threads = threads,
                               .thread_count = count,
                               .path = path,
                               .whole = true,
                               .always = wanted};
    bool done = write_used(e, &check, why);
    used.leaked = check.sums.lost.bytes + check.sums.through.bytes;
    bool exceeded = budgets_exceeded(&trace->budgets, &used);
    bool lost = trace->leaks && check.sums.lost.blocks > 0;
    if (done && (wanted || exceeded || lost))
        done = tell_used(e, &check, exceeded, lost, why);
    if (file >= 0)
        close(file);
    return done;
}

/* Of a process whose budgets are not checked: for the reporter's file of all. `why` is empty where
 * that is no failure, as others were. */
static void tell_unchecked(const struct ended *e, const char *why)
{
    char error[600];
    if (!e->trace->budgets.all)
        return;
    snprintf(error, sizeof error, "--error=%s", why);
    report_used(e, "/dev/null", error);
}

/* As is wanted. */
static bool search_or_check(struct ended *e, const struct registers *const *threads, size_t count,
                            struct why *why)
{
    if (e->trace->budgets.any)
        return check_budgets(e, threads, count, why);
    return !e->trace->leaks || search(e, threads, count, why);
}

static void say_why_not(const struct ended *e, const char *why)
{
    const char *what = e->trace->budgets.any ? "its budgets are not checked"
                       : e->trace->leaks     ? "not searched"
                                             : "no heap profile";
    fprintf(stderr, SAYS "%s (%d): %s: %s\n", e->name, e->process, what, why);
    if (e->trace->budgets.any) {
        tell_status(e->trace, BYTE_UNCHECKED);
        tell_unchecked(e, why);
    }
}

/* A process that is not on hakmem. */
static void say_without(const struct ended *e)
{
    if (!e->trace->budgets.any || e->process != e->trace->program)
        return;
    if (!any_found)
        tell_status(e->trace, BYTE_UNCHECKED); /* ended_all says so */
    tell_unchecked(e, any_found ? "" : "it did not use hakmem when it ended");
}

void ended_look(const struct trace *trace, pid_t process, pid_t thread,
                const struct registers *const *threads, size_t count, int signal)
{
    static struct ended e;
    struct why why = {EXIT_DONE, ""};
    if (process == trace->program && !runs)
        return; /* it was not found, or can't be executed */
    e = (struct ended){.trace = trace, .process = process, .signal = signal};
    snprintf(e.thread, sizeof e.thread, "%d", thread);
    name_of(process, e.name, sizeof e.name);
    bool opened = open_process(&e, &why);
    if (opened && trace->profile != NULL && !write_profile(&e, &why))
        fprintf(stderr, SAYS "%s (%d): no heap profile: %s\n", e.name, process, why.line);
    if (opened ? !search_or_check(&e, threads, count, &why) : why.ending != EXIT_WITHOUT)
        say_why_not(&e, why.line);
    else if (!opened)
        say_without(&e);
    any_found |= opened || why.ending != EXIT_WITHOUT;
    target_forget(&e.t);
    kernel_close(&e.t);
}

void ended_killed(const struct trace *trace, pid_t process)
{
    struct ended e = {.trace = trace, .process = process};
    if (process != trace->program || !runs)
        return;
    name_of(process, e.name, sizeof e.name);
    if (strcmp(e.name, "?") == 0) /* its parent has forgotten it already */
        snprintf(e.name, sizeof e.name, "%s", runs_as);
    say_why_not(&e, "it was ended by SIGKILL, so its memory is gone");
    any_found = true;
}

void ended_all(const struct trace *trace)
{
    if (runs && !any_found && !trace->known)
        fprintf(stderr,
                SAYS "no process was %s: none used hakmem at its end; "
                     "'hakmem doctor -- PROGRAM' says why\n",
                trace->budgets.any ? "checked"
                : trace->leaks     ? "searched"
                                   : "profiled");
}
