#define _GNU_SOURCE /* _dl_find_object */
#include "os/resume.h"

#include "os/os.h"

#if CAN_RESUME

#pragma weak _Unwind_GetGR
#pragma weak _Unwind_GetIP
#pragma weak _Unwind_GetCFA

/* As DWARF numbers them. */
enum { BX = 3, BP = 6, R12 = 12, R13, R14, R15 };

/* libgcc's; what it knows of an address is not of interest here. */
struct dwarf_eh_bases {
    void *text, *data, *function;
};
extern const void *_Unwind_Find_FDE(void *code, struct dwarf_eh_bases *bases);

bool resume_needed(uintptr_t code)
{
    struct dwarf_eh_bases bases;
    return _Unwind_Find_FDE((void *)code, &bases) == NULL;
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

/* By its instructions. */
static bool step_by_code(struct registers *at)
{
    const unsigned char *code = (const unsigned char *)at->ip;
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

#define CALL_MOST 7 /* bytes */

/* How long an indirect call is, by the byte after its first; 0 where it is none. */
static unsigned call_length(unsigned char operand)
{
    static const unsigned char more[] = {0, 1, 4, 0};
    unsigned mode = operand >> 6, base = operand & 7;
    if ((operand >> 3 & 7) != 2)
        return 0;
    if (mode == 0 && base == 5)
        return 6; /* relative to here */
    return 2 + more[mode] + (mode != 3 && base == 4);
}

static bool is_after_call(uintptr_t code)
{
    const unsigned char *after = (const unsigned char *)code;
    if (code < CALL_MOST || !os_readable(after - CALL_MOST) || !os_readable(after))
        return false;
    if (after[-5] == 0xe8)
        return true;
    for (int length = 2; length <= CALL_MOST; length++)
        if (after[-length] == 0xff && call_length(after[1 - length]) == (unsigned)length)
            return true;
    return false;
}

/* What else the caller's registers have is not known. They get the stack pointer: where its unwind
 * information makes use of one, at least no memory is read that is not there. */
/* Interpreters that were made at run time, such as Java's, return to where nothing is called. */
#define NEAR ((uintptr_t)1 << 28)
static bool is_near(uintptr_t code, uintptr_t other)
{
    struct dl_find_object object;
    return code - other + NEAR < 2 * NEAR && _dl_find_object((void *)code, &object) != 0 &&
           _dl_find_object((void *)other, &object) != 0 && os_readable((const void *)code);
}

static bool step_by_pointer(struct registers *at, bool (*in_reach)(void *to, uintptr_t stack),
                            void *to)
{
    if (at->bp < at->sp || at->bp % sizeof(uintptr_t) != 0 ||
        !in_reach(to, at->bp + 2 * sizeof(uintptr_t)))
        return false;
    const uintptr_t *frame = (const uintptr_t *)at->bp;
    if (!is_after_call(frame[1]) && !is_near(frame[1], at->ip))
        return false;
    uintptr_t sp = at->bp + 2 * sizeof *frame, bp = frame[0];
    if (bp < sp || bp % sizeof(uintptr_t) != 0 || !in_reach(to, bp))
        bp = sp;
    *at = (struct registers){frame[1], sp, sp, bp, sp, sp, sp, sp};
    return true;
}

bool resume_step(struct registers *at, bool (*in_reach)(void *to, uintptr_t stack), void *to)
{
    return os_readable((const void *)at->ip) &&
           (step_by_code(at) || step_by_pointer(at, in_reach, to));
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
