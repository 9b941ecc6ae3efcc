#include "process.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "because.h"
#include "sheet/kernel.h"

/* The process that was opened: its number as a name in /proc, the kernel's handle of it, or -1
 * where there is none (before Linux 5.3, or where numbers differ), and when it started. */
static char name[16];
static int handle = -1;
static uint64_t started;

/* When it started, in ticks since the machine did: field 22 of stat, the 20th behind the name,
 * which may hold anything. 0 where there is no such process. */
static uint64_t start_of(int pid)
{
    char path[64];
    char line[1024];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *file = fopen(path, "re");
    size_t n = file != NULL ? fread(line, 1, sizeof line - 1, file) : 0;
    if (file != NULL)
        fclose(file);
    line[n] = 0;
    const char *at = strrchr(line, ')');
    for (unsigned field = 2; at != NULL && field < 22; field++)
        at = strchr(at + 1, ' ');
    return at != NULL ? strtoull(at, NULL, 10) : 0;
}

bool process_numbers_agree(void)
{
    char own[32] = "";
    return readlink("/proc/self", own, sizeof own - 1) > 0 && strtol(own, NULL, 10) == getpid();
}

bool process_same(int pid)
{
    struct pollfd ended = {.fd = handle, .events = POLLIN};
    if (handle >= 0 && poll(&ended, 1, 0) != 0)
        return false;
    return start_of(pid) == started;
}

bool process_open(struct target *t, int pid, struct why *why)
{
    started = start_of(pid);
    if (started == 0)
        return because(why, EXIT_TARGET, "there is no process %d", pid);
    handle = process_numbers_agree() ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
    snprintf(name, sizeof name, "%d", pid);
    switch (kernel_open(t, name)) {
    case 0:
        return process_maps(t, pid, why);
    case EACCES:
    case EPERM:
        return because(why, EXIT_RIGHTS,
                       "no permission to read process %d: it is another user's, or protected "
                       "(kernel.yama.ptrace_scope, prctl(PR_SET_DUMPABLE)); try as root",
                       pid);
    case ESRCH:
        return because(why, EXIT_TARGET, "process %d has ended, or is a kernel thread", pid);
    default:
        return because(why, EXIT_TARGET, "/proc/%d/mem: %s", pid, strerror(errno));
    }
}

bool process_maps(struct target *t, int pid, struct why *why)
{
    int error = kernel_maps(t, name);
    if (error == EINVAL)
        return because(why, EXIT_TARGET, "/proc/%d/smaps: a line is not understood", pid);
    if (error != 0)
        return because(why, EXIT_TARGET, "/proc/%d/smaps: %s", pid, strerror(error));
    if (t->map_count == 0)
        return because(why, EXIT_TARGET,
                       "process %d has no memory: it has ended, or is a kernel thread", pid);
    return true;
}

uint64_t process_rss(int pid)
{
    (void)pid;
    return kernel_bytes(name, "smaps_rollup", "Rss:");
}
