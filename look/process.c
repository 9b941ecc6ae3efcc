#include "process.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "because.h"
#include "sheet/target.h"

/* The process that was opened: its number as a name in /proc, the kernel's handle of it, or -1
 * where there is none (before Linux 5.3, or where numbers differ), and when it started. And the
 * thread by which it is asked for: the first one may have ended before the others. */
static char name[48];
static int handle = -1;
static uint64_t started;
static int process, thread;

static uint64_t start_of(int pid)
{
    char own[16];
    snprintf(own, sizeof own, "%d", pid);
    return kernel_start(own);
}

bool process_numbers_agree(void)
{
    char own[32] = "";
    return readlink("/proc/self", own, sizeof own - 1) > 0 && strtol(own, NULL, 10) == getpid();
}

bool process_same(void)
{
    struct pollfd ended = {.fd = handle, .events = POLLIN};
    if (handle >= 0 && poll(&ended, 1, 0) != 0)
        return false;
    return start_of(process) == started;
}

int process_thread(void) { return thread; }

/* Opens it by a thread that has memory: an ended one has none. The number of an error. */
static int open_by(struct target *t, int by)
{
    int error = kernel_open(t, name);
    if (error == 0)
        error = kernel_maps(t, name);
    if (error == 0 && t->map_count > 0) {
        thread = by;
        return 0;
    }
    target_forget(t);
    kernel_close(t);
    return error != 0 ? error : ESRCH;
}

static int open_any(struct target *t, int pid)
{
    char path[32];
    thread = pid;
    snprintf(name, sizeof name, "%d", pid);
    int error = open_by(t, pid);
    if (error != ESRCH)
        return error;
    snprintf(path, sizeof path, "/proc/%d/task", pid);
    DIR *tasks = opendir(path);
    for (const struct dirent *entry;
         error != 0 && tasks != NULL && (entry = readdir(tasks)) != NULL;) {
        int other = (int)strtol(entry->d_name, NULL, 10);
        if (other == pid || other <= 0)
            continue;
        snprintf(name, sizeof name, "%d/task/%d", pid, other);
        int found = open_by(t, other);
        error = found != ESRCH ? found : error;
    }
    if (tasks != NULL)
        closedir(tasks);
    return error;
}

bool process_open(struct target *t, int pid, struct why *why)
{
    process = pid;
    started = start_of(pid);
    if (started == 0)
        return kill(pid, 0) != 0 && errno == EPERM
                   ? because(why, EXIT_RIGHTS,
                             "process %d is hidden (/proc is mounted with hidepid); try as root",
                             pid)
                   : because(why, EXIT_TARGET, "there is no process %d", pid);
    handle = process_numbers_agree() ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
    int error = open_any(t, pid);
    if (error == EACCES || error == EPERM)
        return because(why, EXIT_RIGHTS,
                       "no permission to read process %d: it is another user's, or protected "
                       "(kernel.yama.ptrace_scope, prctl(PR_SET_DUMPABLE)); try as root",
                       pid);
    if (error == ESRCH)
        return because(why, EXIT_TARGET, "process %d has ended, or is a kernel thread", pid);
    return error == 0 || because(why, EXIT_TARGET, "/proc/%d: %s", pid, strerror(error));
}

bool process_maps(struct target *t, struct why *why)
{
    int error = kernel_maps(t, name);
    if (error == EINVAL)
        return because(why, EXIT_TARGET, "/proc/%d/smaps: a line is not understood", process);
    if (error != 0)
        return because(why, EXIT_TARGET, "/proc/%d/smaps: %s", process, strerror(error));
    if (t->map_count == 0)
        return because(why, EXIT_TARGET,
                       "process %d has no memory: it has ended, or is a kernel thread", process);
    return true;
}

uint64_t process_rss(void) { return kernel_bytes(name, "smaps_rollup", "Rss:"); }
