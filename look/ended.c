#define _GNU_SOURCE
#include "ended.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "because.h"
#include "find.h"
#include "sheet/kernel.h"

#define SAYS "hakmem run: "
#define REPORTER_WORDS_MOST 64
#define REPORTER_LOST 10 /* its status where something is lost: command/hakmem.in asks for it */
#define PATH_MOST 4096

static bool runs;      /* the program */
static bool any_told;  /* one that lost something */
static bool any_found; /* a process that could be searched, or of which was said why not */

void ended_program_runs(void) { runs = true; }

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

/* %p in a name stands for the number of the process. */
static void expand(char *to, size_t room, const char *name, pid_t process)
{
    for (size_t at = 0; *name != 0 && at + 16 < room; name++)
        if (name[0] == '%' && name[1] == 'p') {
            at += (size_t)snprintf(to + at, room - at, "%d", process);
            name++;
        } else {
            to[at++] = *name;
            to[at] = 0;
        }
}

/* Starts the reporter and waits for it; its status, or -1. */
static int report(const struct trace *trace, const char *file, const char *name, pid_t process)
{
    static char output[PATH_MOST] = "--output=";
    char called[64];
    char *words[REPORTER_WORDS_MOST + 4];
    size_t count = 0;
    for (; trace->reporter[count] != NULL && count < REPORTER_WORDS_MOST; count++)
        words[count] = trace->reporter[count];
    snprintf(called, sizeof called, "--name=hakmem run: %s (%d)", name, process);
    words[count++] = called;
    if (trace->file != NULL) {
        size_t prefix = strlen("--output=");
        expand(output + prefix, sizeof output - prefix, trace->file, process);
        words[count++] = output;
    }
    words[count++] = (char *)file;
    words[count] = NULL;
    pid_t child = fork();
    if (child == 0) {
        dup2(STDERR_FILENO, STDOUT_FILENO);
        execvp(words[0], words);
        _exit(127);
    }
    int status;
    while (child > 0 && waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return -1;
    return child > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void tell(const struct trace *trace, const struct leak_check *check, const char *name,
                 pid_t process)
{
    const struct leak_sums *sums = &check->sums;
    if (sums->lost.blocks > 0 || check->always) {
        int status = report(trace, check->path, name, process);
        any_told |= sums->lost.blocks > 0;
        if (status == REPORTER_LOST && trace->lost >= 0)
            (void)!write(trace->lost, "1", 1);
        if (status == 0 || status == REPORTER_LOST)
            return;
    } else if (process == trace->program) {
        fprintf(stderr,
                SAYS "%s (%d): nothing is lost; reachable %" PRIu64 " B in %" PRIu64 " blocks\n",
                name, process, sums->reachable.bytes, sums->reachable.blocks);
        return;
    } else {
        return;
    }
    fprintf(stderr,
            SAYS "%s (%d): lost %" PRIu64 " B in %" PRIu64 " blocks, through them %" PRIu64
                 " B in %" PRIu64 " blocks; reachable %" PRIu64 " B in %" PRIu64 " blocks\n",
            name, process, sums->lost.bytes, sums->lost.blocks, sums->through.bytes,
            sums->through.blocks, sums->reachable.bytes, sums->reachable.blocks);
}

/* Opens it by the thread that is left: its first one may have ended. */
static bool check(struct leak_check *check, struct why *why)
{
    struct target t;
    struct tables tables;
    int error = kernel_open(&t, check->name);
    if (error == 0)
        error = kernel_maps(&t, check->name);
    bool done =
        error == 0 || because(why, EXIT_TARGET, "its memory can't be read: %s", strerror(error));
    if (done) {
        target_allow(&t);
        done = target_begin(&t) || because(why, EXIT_TARGET, "out of memory");
    }
    done = done && tables_find(&t, &tables, why) && leaks_check(&t, &tables, check, why);
    target_forget(&t);
    kernel_close(&t);
    return done;
}

/* Whether it gets a file though nothing is lost: the program itself, unless the file has what
 * another process lost. */
static bool wants_file(const struct trace *trace, pid_t process)
{
    return trace->file != NULL && process == trace->program &&
           (!any_told || strstr(trace->file, "%p") != NULL);
}

void ended_search(const struct trace *trace, pid_t process, pid_t thread,
                  const struct registers *const *threads, size_t count)
{
    struct why why = {EXIT_DONE, ""};
    char number[16];
    char name[32];
    char path[48];
    if (process == trace->program && !runs)
        return; /* it was not found, or can't be executed */
    int file = memfd_create("leaks", MFD_CLOEXEC);
    snprintf(number, sizeof number, "%d", thread);
    snprintf(path, sizeof path, "/proc/%d/fd/%d", getpid(), file);
    name_of(process, name, sizeof name);
    struct leak_check one = {.name = number,
                             .threads = threads,
                             .thread_count = count,
                             .path = path,
                             .whole = trace->file != NULL,
                             .always = wants_file(trace, process)};
    bool done = check(&one, &why);
    if (done)
        tell(trace, &one, name, process);
    else if (why.ending != EXIT_WITHOUT)
        fprintf(stderr, SAYS "%s (%d): not searched: %s\n", name, process, why.line);
    any_found |= done || why.ending != EXIT_WITHOUT;
    if (file >= 0)
        close(file);
}

void ended_all(void)
{
    if (runs && !any_found)
        fprintf(stderr, SAYS "no process was searched: none used hakmem at its end; "
                             "'hakmem doctor -- PROGRAM' says why\n");
}
