/* A process is looked at when the last of its threads is at its end: the kernel stops it there
 * (PTRACE_EVENT_EXIT), all its memory still being there. Its other threads have ended by then, or
 * were ended by the kernel because one called exit or a signal ended all: their registers are noted
 * when they stop in the same way. If a thread executes another program, the others end as well, but
 * that one does not, so nothing is looked at. */
#define _GNU_SOURCE
#include "trace.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ended.h"
#include "registers.h"
#include "tasks.h"

#define EVENTS                                                                            \
    (PTRACE_O_TRACEEXIT | PTRACE_O_TRACEEXEC | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | \
     PTRACE_O_TRACEVFORK)

#define KCMP_VM 1

int trace_begin(pid_t program)
{
    struct task *task = task_get(program);
    if (task == NULL)
        return ENOMEM;
    task->announced = true;
    return ptrace(PTRACE_SEIZE, program, NULL, (void *)EVENTS) == 0 ? 0 : errno;
}

/* It may have been killed meanwhile, which a later stop or end tells. */
static void resume(pid_t number, int signal)
{
    ptrace(PTRACE_CONT, number, NULL, (void *)(intptr_t)signal);
}

static pid_t event_message(pid_t number)
{
    unsigned long message = 0;
    ptrace(PTRACE_GETEVENTMSG, number, NULL, &message);
    return (pid_t)message;
}

/* Its creator has stopped because it made it. Which of both stops is seen first is not certain. */
static void announced(pid_t creator, int event)
{
    struct task *task = task_get(event_message(creator));
    if (task == NULL)
        return;
    task->announced = true;
    task->borrows |= event == PTRACE_EVENT_VFORK;
    if (task->waits) {
        task->waits = false;
        resume(task->number, 0);
    }
}

/* Those whose creator was killed in the middle. */
static void release_orphans(void)
{
    for (struct task *task = NULL; (task = task_after(task, 0)) != NULL;)
        if (task->waits && task_after(NULL, task->creator) == NULL) {
            task->waits = false;
            resume(task->number, 0);
        }
}

/* What the kernel has of a thread in such a file. */
static FILE *of_thread(const struct task *task, const char *name)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task/%d/%s", task->process, task->number, name);
    return fopen(path, "re");
}

#define EXITING 0x4u /* in the kernel's flags of a thread */

/* Whether the kernel is ending it, or has. One that ends by itself while its process does may not
 * stop at its end any more. */
static bool is_exiting(const struct task *task)
{
    char line[512] = "";
    FILE *file = of_thread(task, "stat");
    if (file == NULL)
        return true;
    bool there = fgets(line, sizeof line, file) != NULL;
    fclose(file);
    const char *rest = strrchr(line, ')'); /* its name ends, and six fields follow */
    for (int i = 0; rest != NULL && i < 7; i++)
        rest = strchr(rest + 1, ' ');
    return !there || (rest != NULL && (strtoul(rest, NULL, 10) & EXITING) != 0);
}

/* Whether it is to end as others do: it stops at its end, or is too far in it to stop. */
static bool is_killed(const struct task *task)
{
    char line[256];
    unsigned long long pending = -1ull;
    FILE *file = of_thread(task, "status");
    if (file == NULL)
        return true;
    while (fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, "SigPnd:", 7) == 0)
            pending = strtoull(line + 7, NULL, 16);
    fclose(file);
    return (pending >> (SIGKILL - 1) & 1) != 0;
}

/* One of a process that is not at its end, and whether it is killed; null where there is none. */
static const struct task *living(pid_t process, bool *killed)
{
    for (const struct task *task = NULL; (task = task_after(task, process)) != NULL;) {
        if (task->ends)
            continue;
        *killed = is_killed(task); /* in this order: one that is dead is killed no more */
        if (!is_exiting(task))
            return task;
    }
    return NULL;
}

static void note_registers(struct task *task)
{
    if (task->registers == NULL)
        task->registers = malloc(sizeof *task->registers);
    if (task->registers != NULL && !registers_read(task->number, task->registers)) {
        free(task->registers);
        task->registers = NULL;
    }
}

/* One that was made by vfork or the like and has executed nothing since. */
static bool borrows_memory(const struct task *first)
{
    return first->borrows || (task_after(NULL, first->creator) != NULL &&
                              syscall(SYS_kcmp, first->number, first->creator, KCMP_VM, 0, 0) == 0);
}

static void look(const struct trace *trace, const struct task *last, int signal)
{
    const struct registers **threads = NULL;
    size_t count = 0;
    struct task *first = task_find(last->process);
    for (const struct task *task = NULL; (task = task_after(task, last->process)) != NULL;)
        count += task->registers != NULL;
    if (first == NULL || first->reported || borrows_memory(first))
        return;
    first->reported = true;
    threads = malloc((count + 1) * sizeof(const struct registers *));
    if (threads == NULL)
        return;
    count = 0;
    for (const struct task *task = NULL; (task = task_after(task, last->process)) != NULL;)
        if (task->registers != NULL)
            threads[count++] = task->registers;
    ended_look(trace, last->process, last->number, threads, count, signal);
    free(threads);
}

static int signal_of_end(const struct task *task) { return event_message(task->number) & 0x7f; }

/* Threads at their end go on, unless those that are left may have no stop: then the memory has to
 * stay until they are gone. */
static void settle(const struct trace *trace, pid_t process)
{
    bool killed;
    const struct task *left = living(process, &killed);
    if (left != NULL && killed)
        return;
    for (struct task *task = NULL; (task = task_after(task, process)) != NULL;) {
        if (!task->stays)
            continue;
        task->stays = false;
        int signal = signal_of_end(task);
        if (left == NULL && signal != SIGKILL)
            look(trace, task, signal);
        resume(task->number, 0);
    }
}

/* A thread is at its end. */
static void at_end(const struct trace *trace, struct task *task)
{
    task->ends = task->stays = true;
    if (signal_of_end(task) != SIGKILL)
        note_registers(task);
    bool killed;
    if (task->registers != NULL && registers_end_thread(task->registers) &&
        living(task->process, &killed) != NULL) {
        /* It ends by itself: what it had is nobody's now. But the stack of the first thread
         * stays: up to where it is in use others may have pointers into it. */
        task->registers->count = 0;
        if (task->number != task->process) {
            free(task->registers);
            task->registers = NULL;
        }
    }
    settle(trace, task->process);
}

/* Of its process no other thread is left, and it has the number of the process. */
static void executed(const struct trace *trace, pid_t number)
{
    tasks_drop(number, number);
    struct task *task = task_get(number);
    if (task == NULL)
        return;
    pid_t before = event_message(number);
    if (before != number)
        task_drop(before);
    task = task_get(number);
    free(task->registers);
    task->registers = NULL;
    task->process = number;
    task->announced = true;
    task->ends = task->stays = task->borrows = task->reported = false;
    if (number == trace->program)
        ended_program_runs(number);
}

static void stopped(const struct trace *trace, pid_t number, int status)
{
    struct task *task = task_get(number);
    int signal = WSTOPSIG(status);
    int event = status >> 16;
    if (task == NULL) {
        resume(number, 0);
        return;
    }
    switch (event) {
    case 0:
        resume(number, signal);
        return;
    case PTRACE_EVENT_STOP:
        if (!task->announced)
            task->waits = true;
        else if (signal == SIGTRAP)
            resume(number, 0);
        else
            ptrace(PTRACE_LISTEN, number, NULL, NULL); /* until SIGCONT */
        return;
    case PTRACE_EVENT_FORK:
    case PTRACE_EVENT_VFORK:
    case PTRACE_EVENT_CLONE:
        announced(number, event);
        break;
    case PTRACE_EVENT_EXEC:
        executed(trace, number);
        break;
    case PTRACE_EVENT_EXIT:
        at_end(trace, task);
        return;
    default:
        break;
    }
    resume(number, 0);
}

/* The kernel has forgotten it. Registers of others of its process may still be wanted. */
static void gone(const struct trace *trace, pid_t number)
{
    struct task *task = task_find(number);
    if (task == NULL)
        return;
    pid_t process = task->process;
    task->ends = true;
    if (number == process)
        tasks_drop(process, 0);
    else if (task->registers == NULL)
        task_drop(number);
    settle(trace, process);
    release_orphans();
}

void trace_all(const struct trace *trace)
{
    int status;
    for (;;) {
        pid_t number = waitpid(-1, &status, __WALL);
        if (number < 0 && errno == EINTR)
            continue;
        if (number < 0)
            break;
        if (WIFSTOPPED(status)) {
            stopped(trace, number, status);
            continue;
        }
        if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
            ended_killed(trace, number);
        if (number == trace->program)
            ended_program(trace);
        gone(trace, number);
    }
    ended_all(trace);
}
