/* Starts a program under a filter that answers some system calls with an error, as containers do:
 *
 *   filter ERROR CALL,CALL... PROGRAM ARGUMENTS...     ERROR is EPERM or ENOSYS, or DONE: the
 *                                                      answer is success, and nothing is done */
#include "architecture.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct {
    const char *name;
    unsigned number;
} calls[] = {
    {"madvise", SYS_madvise},
    {"prctl", SYS_prctl},
    {"mremap", SYS_mremap},
    {"getrandom", SYS_getrandom},
    {"set_robust_list", SYS_set_robust_list},
    {"rseq", SYS_rseq},
    {"sched_getaffinity", SYS_sched_getaffinity},
};
#define CALLS (sizeof calls / sizeof *calls)

int main(int argc, char **argv)
{
    if (argc < 4) {
        fprintf(stderr, "filter ERROR CALL,CALL... PROGRAM ARGUMENTS...\n");
        return 2;
    }
    unsigned error = strcmp(argv[1], "EPERM") == 0  ? EPERM
                     : strcmp(argv[1], "DONE") == 0 ? 0
                                                    : ENOSYS;
    struct sock_filter rules[2 * CALLS + 5] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    };
    unsigned short n = 4;
    for (char *name = strtok(argv[2], ","); name != NULL; name = strtok(NULL, ",")) {
        size_t i = 0;
        while (i < CALLS && strcmp(calls[i].name, name) != 0)
            i++;
        if (i == CALLS || n + 3u > sizeof rules / sizeof *rules) {
            fprintf(stderr, "filter: %s is not known here\n", name);
            return 2;
        }
        rules[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[i].number, 0, 1);
        rules[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error);
    }
    rules[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {n, rules};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        printf("filter: this kernel gives no filters (%s): skipped\n", strerror(errno));
        return 77;
    }
    execv(argv[3], argv + 3);
    perror(argv[3]);
    return 1;
}
