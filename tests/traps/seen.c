/* By a filter of system calls that has the kernel send SIGSYS instead; what it lets pass is told by
 * where the instruction is. */
#include "seen.h"

#include "trap.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

enum { NUMBERS_MOST = 8, GATE = 256 /* bytes of libc's syscall(), and more */ };

static long (*see_call)(long number, const long *arguments);

long kernel_said(long result) { return result == -1 ? -errno : result; }

#if defined(__x86_64__)
static void on_call(int signal, siginfo_t *info, void *context)
{
    (void)signal;
    greg_t *r = ((ucontext_t *)context)->uc_mcontext.gregs;
    const long arguments[] = {r[REG_RDI], r[REG_RSI], r[REG_RDX], r[REG_R10], r[REG_R8], r[REG_R9]};
    int before = errno;
    r[REG_RAX] = see_call(info->si_syscall, arguments);
    errno = before;
}
#elif defined(__aarch64__)
static void on_call(int signal, siginfo_t *info, void *context)
{
    (void)signal;
    unsigned long long *r = ((ucontext_t *)context)->uc_mcontext.regs;
    const long arguments[] = {(long)r[0], (long)r[1], (long)r[2],
                              (long)r[3], (long)r[4], (long)r[5]};
    int before = errno;
    r[0] = (unsigned long long)see_call(info->si_syscall, arguments);
    errno = before;
}
#endif

#define LOAD(field, half) \
    (struct sock_filter)  \
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field) + (half)*4)

void calls_see(long (*see)(long number, const long *arguments), const long *numbers)
{
    const uint64_t gate = (uintptr_t)syscall, end = gate + GATE;
    struct sock_filter rules[2 * NUMBERS_MOST + 16];
    unsigned short n = 0, count = 0;
    while (numbers[count] >= 0)
        count++;
    see_call = see;
    /* The library's and libc's code are far from each other: one test of the upper half is enough
     * where the gate has the same in all of it, and else all its calls are seen by mistake. */
    CHECK(gate >> 32 == end >> 32 && count <= NUMBERS_MOST, "the filter can't be made");
    rules[n++] = LOAD(nr, 0);
    for (unsigned short i = 0; i < count; i++)
        rules[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)numbers[i],
                                                  (uint8_t)(count - i), 0);
    rules[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    rules[n++] = LOAD(instruction_pointer, 1);
    rules[n++] =
        (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(gate >> 32), 0, 4);
    rules[n++] = LOAD(instruction_pointer, 0);
    rules[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, (uint32_t)gate, 0, 2);
    rules[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, (uint32_t)end, 1, 0);
    rules[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    rules[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP);
    const struct sigaction action = {.sa_sigaction = on_call, .sa_flags = SA_SIGINFO | SA_NODEFER};
    const struct sock_fprog program = {n, rules};
    if (sigaction(SIGSYS, &action, NULL) != 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        printf("%s: the kernel has no filters of system calls\n", check_test);
        exit(77);
    }
}
