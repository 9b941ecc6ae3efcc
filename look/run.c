/* The tracer is no parent of the program: the process that is called becomes the program, so that
 * its number, its signals and its exit status are what they would be without. Only where another
 * status is to tell of leaks, the process stays, and the program is its child. */
#define _GNU_SOURCE
#include "run.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fit.h"
#include "trace.h"

#define SAYS "hakmem run: "
#define FAILED 125
#define EXCEEDED 122 /* a budget is, and the program itself succeeded */
#define PTRACE_IS_NOT                                                                        \
    "ptrace is not permitted: the program is already traced (strace, gdb), or "              \
    "kernel.yama.ptrace_scope is 2 or 3, or the container forbids it (docker run --cap-add " \
    "SYS_PTRACE)"
#define PROC_IS_NOT "/proc is not mounted, or shows the processes of another PID namespace"

static int failed(const char *what, int error)
{
    fprintf(stderr, SAYS "%s: %s\n", what, strerror(error));
    return FAILED;
}

/* ---- the tracer ---- */

/* All descriptors but the standard ones and these. */
static void close_others(int ready, int told)
{
    DIR *all = opendir("/proc/self/fd");
    if (all == NULL)
        return;
    /* A folder that changes meanwhile may skip one: so until none was left. */
    for (bool any = true; any;) {
        any = false;
        rewinddir(all);
        for (const struct dirent *entry; (entry = readdir(all)) != NULL;) {
            int file = (int)strtol(entry->d_name, NULL, 10);
            if (file > STDERR_FILENO && file != ready && file != told && file != dirfd(all))
                any |= close(file) == 0;
        }
    }
    closedir(all);
}

/* It holds nothing that is the program's but standard error, and no terminal's signal ends it. */
static void set_apart(int ready, int told)
{
    setsid();
    for (int signal = 1; signal < NSIG; signal++)
        if (signal != SIGCHLD && signal != SIGSEGV && signal != SIGBUS)
            sigaction(signal, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    sigaction(SIGCHLD, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
    for (int i = STDIN_FILENO; i <= STDERR_FILENO; i++) {
        if (i == STDERR_FILENO && fcntl(i, F_GETFD) >= 0)
            break;
        int null = open("/dev/null", O_RDWR);
        if (null != i) {
            dup2(null, i);
            close(null);
        }
    }
    close_others(ready, told);
}

/* A pipe of descriptors that are no standard ones, also where those are closed. */
static int pipe_apart(int ends[2])
{
    if (pipe2(ends, O_CLOEXEC) != 0)
        return -1;
    int error = 0;
    for (int i = 0; i < 2; i++) {
        int low = ends[i];
        ends[i] = fcntl(low, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
        error = ends[i] < 0 ? errno : error;
        close(low);
    }
    errno = error;
    return error == 0 ? 0 : -1;
}

static void trace_program(const struct trace *trace, int ready)
{
    set_apart(ready, trace->told);
    int error = trace_begin(trace->program);
    if (write(ready, &error, sizeof error) == sizeof error && error == 0) {
        close(ready);
        trace_all(trace);
    }
    _exit(0);
}

/* Starts it; 0 once it traces this process, or the number of an error. */
static int trace_this(struct trace trace)
{
    int ready[2];
    int error = ECHILD;
    if (pipe_apart(ready) != 0)
        return errno;
    trace.program = getpid();
    /* Where only a parent may trace (kernel.yama.ptrace_scope is 1). */
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
    pid_t between = fork();
    if (between < 0)
        return errno;
    if (between == 0) {
        pid_t tracer = fork();
        if (tracer == 0)
            trace_program(&trace, ready[1]);
        _exit(0);
    }
    close(ready[1]);
    while (waitpid(between, NULL, 0) < 0 && errno == EINTR)
        ;
    ssize_t got;
    while ((got = read(ready[0], &error, sizeof error)) < 0 && errno == EINTR)
        ;
    close(ready[0]);
    prctl(PR_SET_PTRACER, 0, 0, 0, 0);
    return got == sizeof error ? error : ECHILD;
}

/* ---- the program ---- */

/* Else the numbers that it has are other processes'. */
static bool proc_is_ours(void)
{
    char self[16] = "";
    return readlink("/proc/self", self, sizeof self - 1) > 0 && strtol(self, NULL, 10) == getpid();
}

static bool is_traced(void)
{
    char line[128];
    long tracer = 0;
    FILE *status = fopen("/proc/self/status", "re");
    while (status != NULL && fgets(line, sizeof line, status) != NULL)
        if (strncmp(line, "TracerPid:", 10) == 0)
            tracer = strtol(line + 10, NULL, 10);
    if (status != NULL)
        fclose(status);
    return tracer != 0;
}

/* 'hakmem doctor', which traces this, says it better. */
static void say_unfit(const char *program, const char *why)
{
    if (!is_traced())
        fprintf(stderr, SAYS "%s: hakmem is not active: %s; see 'hakmem doctor -- %s'\n", program,
                why, program);
}

/* 0, or the exit status of a run that can't be. A profile that can't be read from outside is
 * written by the program itself. */
static int trace_if_wanted(const struct trace *trace)
{
    if (!trace->leaks && trace->profile == NULL && !trace->budgets.any)
        return 0;
    bool seen = proc_is_ours();
    int error = seen ? trace_this(*trace) : EPERM;
    bool forbidden = error == EPERM || error == EACCES;
    const char *reason = seen ? PTRACE_IS_NOT : PROC_IS_NOT;
    setenv("HAKMEM_PROFILE_END", error == 0 ? "off" : "on", 1);
    if (error == 0)
        return 0;
    if (!forbidden)
        return failed("the program can't be traced", error);
    if (trace->leaks || trace->budgets.any)
        fprintf(stderr, SAYS "%s: %s\n", trace->budgets.any ? "budgets" : "--leaks", reason);
    else
        fprintf(stderr,
                SAYS "--profile: processes that end by _exit or by a signal write no "
                     "profile: %s\n",
                reason);
    return trace->leaks || trace->budgets.any ? FAILED : 0;
}

static int run_program(struct trace trace, const char *preload, char **program)
{
    const char *why = "";
    enum fit fit = fit_of(program[0], &why);
    trace.known = fit != FITS;
    if (trace.known)
        say_unfit(program[0], why);
    if (fit == FITS_PRIVILEGED && trace.budgets.any)
        return FAILED; /* it was said why */
    int status = fit == FITS_PRIVILEGED ? 0 : trace_if_wanted(&trace);
    if (status != 0)
        return status;
    if (fit != FITS_OTHER_LIBC)
        setenv("LD_PRELOAD", preload, 1);
    if (trace.leaks || trace.budgets.any) {
        setenv("HAKMEM_PROFILE", "on", 1);
        setenv("HAKMEM_PROFILE_RATE", "1", 1);
        setenv("HAKMEM_PROFILE_SAMPLES", "0", 1);
    }
    execvp(program[0], program);
    fprintf(stderr, SAYS "%s: %s\n", program[0], strerror(errno));
    return errno == ENOENT ? 127 : 126;
}

/* ---- in place of the program: another status ---- */

/* Ends as the program did. */
static int end_by(int signal)
{
    sigset_t one;
    sigaction(signal, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
    setrlimit(RLIMIT_CORE, &(struct rlimit){0});
    sigemptyset(&one);
    sigaddset(&one, signal);
    kill(getpid(), signal);
    sigprocmask(SIG_UNBLOCK, &one, NULL);
    return 128 + signal;
}

/* Signals of a terminal reach the program by themselves. Returns how it ended. */
static int wait_for(pid_t program, const sigset_t *all)
{
    for (;;) {
        siginfo_t about;
        int status;
        int signal = sigwaitinfo(all, &about);
        if (signal > 0 && signal != SIGCHLD) {
            if (about.si_code != SI_KERNEL)
                kill(program, signal);
            continue;
        }
        if (waitpid(program, &status, WNOHANG | WUNTRACED) != program)
            continue;
        if (!WIFSTOPPED(status))
            return status;
        kill(getpid(), SIGSTOP);
    }
}

/* What the tracer told up to the program's end. */
struct told {
    bool lost, exceeded, unchecked;
    bool over; /* else the tracer itself was ended */
};

static struct told told_read(int file)
{
    struct told told = {.over = false};
    for (char byte; !told.over && read(file, &byte, 1) == 1;) {
        told.lost |= byte == BYTE_LOST;
        told.exceeded |= byte == BYTE_EXCEEDED;
        told.unchecked |= byte == BYTE_UNCHECKED;
        told.over |= byte == BYTE_OVER;
    }
    return told;
}

/* Of a program that ended with 0. */
static int status_of(const struct told *told, const struct trace *trace, int status_of_lost)
{
    if (told->exceeded)
        return EXCEEDED;
    if (told->lost && status_of_lost != 0)
        return status_of_lost;
    if (trace->budgets.any && !told->over)
        fprintf(stderr, SAYS "the budgets are not checked: the process that does it was ended\n");
    return trace->budgets.any && (told->unchecked || !told->over) ? FAILED : 0;
}

static int run_in_place(struct trace trace, int status_of_lost, const char *preload, char **program)
{
    int tell[2];
    sigset_t all;
    sigset_t before;
    if (pipe_apart(tell) != 0)
        return failed("pipe", errno);
    fcntl(tell[1], F_SETFL, O_NONBLOCK); /* nobody may read it any more */
    trace.told = tell[1];
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    /* A parent that ignores it would never be told. */
    struct sigaction child;
    sigaction(SIGCHLD, &(struct sigaction){.sa_handler = SIG_DFL}, &child);
    pid_t number = fork();
    if (number < 0)
        return failed("fork", errno);
    if (number == 0) {
        sigaction(SIGCHLD, &child, NULL);
        sigprocmask(SIG_SETMASK, &before, NULL);
        _exit(run_program(trace, preload, program));
    }
    close(tell[1]);
    int status = wait_for(number, &all);
    struct told told = told_read(tell[0]); /* this waits for what is still to be written of it */
    if (WIFSIGNALED(status))
        return end_by(WTERMSIG(status));
    return WEXITSTATUS(status) != 0 ? WEXITSTATUS(status)
                                    : status_of(&told, &trace, status_of_lost);
}

static const char *given(const char *word) { return strcmp(word, "-") != 0 ? word : NULL; }

int run(char **words)
{
    size_t end = 0;
    while (words[end] != NULL && strcmp(words[end], "--") != 0)
        end++;
    if (end < 5 || words[end] == NULL || words[end + 1] == NULL)
        return FAILED;
    words[end] = NULL;
    char **program = words + end + 1;
    int status_of_lost = (int)strtol(words[2], NULL, 10);
    struct trace trace = {.told = -1,
                          .profile = given(words[1]),
                          .leaks = strcmp(words[2], "no") != 0,
                          .file = given(words[3]),
                          .reporter = words + 5};
    const char *wrong;
    if (!budgets_read(words[4], &trace.budgets, &wrong)) {
        fprintf(stderr, SAYS "%s: expected %s\n", wrong,
                strcmp(wrong, "--max-allocations") == 0
                    ? "a number of calls, as in --max-allocations=1e6"
                    : "a size in bytes or with K, M or G, as in --max-peak=200M");
        return FAILED;
    }
    return status_of_lost == 0 && !trace.budgets.any
               ? run_program(trace, words[0], program)
               : run_in_place(trace, status_of_lost, words[0], program);
}
