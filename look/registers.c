#include "registers.h"

#include <elf.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#ifndef NT_X86_XSTATE
#define NT_X86_XSTATE 0x202
#endif
#ifndef NT_ARM_TLS
#define NT_ARM_TLS 0x401
#endif
#ifndef NT_ARM_SYSTEM_CALL
#define NT_ARM_SYSTEM_CALL 0x404
#endif

/* Adds a set, if there is one; how many words it has. */
static size_t read_set(pid_t thread, struct registers *registers, int set)
{
    struct iovec to = {registers->words + registers->count,
                       (WORDS_MOST - registers->count) * sizeof *registers->words};
    if (ptrace(PTRACE_GETREGSET, thread, (void *)(uintptr_t)set, &to) != 0)
        return 0;
    size_t words = to.iov_len / sizeof *registers->words;
    registers->count += words;
    return words;
}

#if defined(__x86_64__)
enum { CALL = 15, STACK = 19, THREAD = 21, WORDS = 27 }; /* orig_rax, rsp, fs_base */

static bool read_general(pid_t thread, struct registers *registers)
{
    if (read_set(thread, registers, NT_PRSTATUS) < WORDS)
        return false;
    registers->stack = registers->words[STACK];
    registers->thread = registers->words[THREAD];
    registers->call = (int)registers->words[CALL];
    return true;
}
#elif defined(__aarch64__)
enum { STACK = 31, WORDS = 34 };

static bool read_general(pid_t thread, struct registers *registers)
{
    struct iovec call = {&registers->call, sizeof registers->call};
    if (read_set(thread, registers, NT_PRSTATUS) < WORDS)
        return false;
    registers->stack = registers->words[STACK];
    if (read_set(thread, registers, NT_ARM_TLS) > 0)
        registers->thread = registers->words[WORDS];
    return ptrace(PTRACE_GETREGSET, thread, (void *)NT_ARM_SYSTEM_CALL, &call) == 0;
}
#else
#error "of this processor it is not known which register is which"
#endif

/* No function keeps anything in a register of vectors over a call, which a system call is to it.
 * What is there then was left by others: malloc, for one. */
bool registers_read(pid_t thread, struct registers *registers)
{
    *registers = (struct registers){0};
    if (!read_general(thread, registers))
        return false;
    if (registers->call < 0 && read_set(thread, registers, NT_X86_XSTATE) == 0)
        read_set(thread, registers, NT_PRFPREG);
    return true;
}

bool registers_end_thread(const struct registers *registers) { return registers->call == SYS_exit; }
