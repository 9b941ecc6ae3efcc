#define _GNU_SOURCE /* _dl_find_object */
#include "os/resume.h"

#include "os/os.h"

#if CAN_RESUME

#pragma weak _Unwind_GetGR
#pragma weak _Unwind_GetIP
#pragma weak _Unwind_GetCFA

/* As DWARF numbers them. */
enum { BX = 3, BP = 6, R12 = 12, R13, R14, R15 };

bool resume_outside(uintptr_t code)
{
    struct dl_find_object object;
    return _dl_find_object((void *)code, &object) != 0;
}

void resume_note(struct registers *at, struct _Unwind_Context *context)
{
    at->ip = _Unwind_GetIP(context);
    at->sp = _Unwind_GetCFA(context);
    at->bx = _Unwind_GetGR(context, BX);
    at->bp = _Unwind_GetGR(context, BP);
    at->r12 = _Unwind_GetGR(context, R12);
    at->r13 = _Unwind_GetGR(context, R13);
    at->r14 = _Unwind_GetGR(context, R14);
    at->r15 = _Unwind_GetGR(context, R15);
}

bool resume_step(struct registers *at)
{
    const unsigned char *code = (const unsigned char *)at->ip;
    if (!os_readable(code))
        return false;
    if (code[0] == 0x48 && code[1] == 0x83 && code[2] == 0xc4 && code[3] < 0x80 &&
        code[3] % sizeof(uintptr_t) == 0 && code[4] == 0xc3) {
        at->sp += code[3]; /* add $n, %rsp; ret */
    } else if (code[0] == 0x5d && code[1] == 0xc3) {
        at->bp = *(const uintptr_t *)at->sp; /* pop %rbp; ret */
        at->sp += sizeof(uintptr_t);
    } else {
        return false;
    }
    at->ip = *(const uintptr_t *)at->sp;
    at->sp += sizeof(uintptr_t);
    return true;
}

/* Its unwind information says that it was called by the frame of the registers: with %rbx, which
 * points to them, their sp is where its frame ends, and the others are in memory there. */
#define AT_RBX(number, offset) ".cfi_escape 0x10, " #number ", 2, 0x73, " #offset "\n\t"
#define FRAME_END ".cfi_escape 0x0f, 3, 0x73, 8, 0x06\n\t" /* *(%rbx + 8) */
#define RETURNS_TO AT_RBX(16, 0)
#define OTHERS_LOW AT_RBX(3, 16) AT_RBX(6, 24) AT_RBX(12, 32)
#define OTHERS_HIGH AT_RBX(13, 40) AT_RBX(14, 48) AT_RBX(15, 56)

_Static_assert(offsetof(struct registers, ip) == 0 && offsetof(struct registers, sp) == 8 &&
                   offsetof(struct registers, bx) == 16 && offsetof(struct registers, r15) == 56,
               "as the unwind information of resume_walk says");

/* The parameters are in %rdi, %rsi and %rdx. */
__attribute__((naked, noinline)) _Unwind_Reason_Code
resume_walk(__attribute__((unused)) const struct registers *at,
            __attribute__((unused)) _Unwind_Trace_Fn each, __attribute__((unused)) void *argument)
{
    __asm__("push %rbx\n\t"
            ".cfi_def_cfa_offset 16\n\t"
            ".cfi_offset %rbx, -16\n\t"
            "mov %rdi, %rbx\n\t"
            "mov %rsi, %rdi\n\t"
            "mov %rdx, %rsi\n\t"
            ".cfi_remember_state\n\t" FRAME_END RETURNS_TO OTHERS_LOW OTHERS_HIGH
            "call _Unwind_Backtrace@PLT\n\t"
            ".cfi_restore_state\n\t"
            "pop %rbx\n\t"
            ".cfi_def_cfa_offset 8\n\t"
            ".cfi_restore %rbx\n\t"
            "ret");
}

#endif
