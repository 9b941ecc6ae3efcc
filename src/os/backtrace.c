#define _GNU_SOURCE /* _dl_find_object */
#include "os/backtrace.h"

#include <link.h>
#include <unwind.h>

#include "base/atomic.h"
#include "os/os.h"

/* Only with _dl_find_object does a sample have a stack, and only in the shared library. */
#if defined(DLFO_EH_SEGMENT_TYPE) && defined(HAKMEM_SHARED) && defined(__x86_64__)
#define CAN_RESUME 1
#else
#define CAN_RESUME 0
#endif
#if defined(DLFO_EH_SEGMENT_TYPE) && defined(HAKMEM_SHARED) && defined(__aarch64__)
#define CAN_FOLLOW 1
#else
#define CAN_FOLLOW 0
#endif

/* Whether code is hakmem's own. Only the shared library knows: there all code of its module is. */
#ifdef HAKMEM_SHARED
extern const char __ehdr_start[] HIDDEN, etext[] HIDDEN; /* the linker's */

static bool is_ours(uintptr_t code)
{
    return code - (uintptr_t)__ehdr_start < (uintptr_t)etext - (uintptr_t)__ehdr_start;
}
#else
static bool is_ours(uintptr_t code)
{
    (void)code;
    return false;
}
#endif

#pragma weak _Unwind_Backtrace
#pragma weak _Unwind_GetIPInfo
#pragma weak _Unwind_GetCFA
#pragma weak _Unwind_GetIP
#pragma weak _Unwind_GetGR

bool backtrace_possible(void)
{
    return _Unwind_Backtrace != NULL && _Unwind_GetIPInfo != NULL && _Unwind_GetCFA != NULL;
}

/* What the unwinder may read beyond a frame to find the next: more than nearly every frame has. */
#define AHEAD ((size_t)1 << 10)
#define STEP_MOST ((size_t)1 << 20)

/* Whether there is memory where the next frame may be. A stack that the program made for itself may
 * end with an address that belongs to no call, and beyond it there may be nothing. */
static bool is_in_reach(struct frames *trace, uintptr_t frame)
{
    if (trace->present_until == 0)
        return true;
    uintptr_t end = frame + AHEAD;
    if (frame > trace->present_until + STEP_MOST)
        return false;
    for (; trace->present_until < end; trace->present_until += os_page)
        if (!os_readable((const void *)trace->present_until))
            return false;
    return true;
}

/* ---- code without unwind information ----
 *
 * By the frame pointer, if what it points to may be a frame: it lies further out on the stack, and
 * has the address after a call. On x86-64 it lies where the frame ends, so that the unwinder can go
 * on with the caller's. On AArch64 a frame may end anywhere above it, and all that follow are found
 * in the same way, as compilers keep frame pointers there. */

#if CAN_RESUME || CAN_FOLLOW

/* libgcc's; what it knows of an address is not of interest here. */
struct dwarf_eh_bases {
    void *text, *data, *function;
};
extern const void *_Unwind_Find_FDE(void *code, struct dwarf_eh_bases *bases);

/* Whether there is code without unwind information. */
static bool resume_needed(uintptr_t code)
{
    struct dwarf_eh_bases bases;
    return _Unwind_Find_FDE((void *)code, &bases) == NULL;
}

/* Interpreters that were made at run time, such as Java's, return to where nothing is called. */
#define NEAR ((uintptr_t)1 << 28)
static bool is_near(uintptr_t code, uintptr_t other)
{
    struct dl_find_object object;
    return code - other + NEAR < 2 * NEAR && _dl_find_object((void *)code, &object) != 0 &&
           _dl_find_object((void *)other, &object) != 0 && os_readable((const void *)code);
}

static bool goes_on(const struct frames *trace)
{
    return trace->count > 0 && trace->count < trace->most && !trace->whole;
}
#endif

#if CAN_RESUME

/* What a frame's code goes on with. Where it is certain how that returns, as it only gives up its
 * frame, that is how it is passed: the trampolines through which Python calls its functions for
 * perf do so. */
struct registers {
    uintptr_t ip, sp;
    uintptr_t bx, bp, r12, r13, r14, r15; /* that a call leaves as they were */
};

/* As DWARF numbers them. */
enum { BX = 3, BP = 6, R12 = 12, R13, R14, R15 };

/* Those of the frame that the unwinder is at. */
static void resume_note(struct registers *at, struct _Unwind_Context *context)
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
static bool step_by_pointer(struct frames *trace, struct registers *at)
{
    if (at->bp < at->sp || at->bp % sizeof(uintptr_t) != 0 || !is_in_reach(trace, at->bp))
        return false;
    const uintptr_t *frame = (const uintptr_t *)at->bp;
    if (!is_after_call(frame[1]) && !is_near(frame[1], at->ip))
        return false;
    uintptr_t sp = at->bp + 2 * sizeof *frame, bp = frame[0];
    if (bp < sp || bp % sizeof(uintptr_t) != 0 || !is_in_reach(trace, bp))
        bp = sp;
    *at = (struct registers){frame[1], sp, sp, bp, sp, sp, sp, sp};
    return true;
}

/* To the caller's; false where that is not certain. There is stack memory above at->sp. */
static bool resume_step(struct frames *trace, struct registers *at)
{
    return os_readable((const void *)at->ip) && (step_by_code(at) || step_by_pointer(trace, at));
}

/* _Unwind_Backtrace with the frame of these registers as the second; the first is this function,
 * whose unwind information says that it was called by the frame of the registers: with %rbx, which
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
static __attribute__((naked, noinline, used)) _Unwind_Reason_Code
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
#elif CAN_FOLLOW

struct registers {
    uintptr_t fp; /* where the caller's and the address that the frame returns to are */
};

enum { FP = 29 }; /* as DWARF numbers them */

static void resume_note(struct registers *at, struct _Unwind_Context *context)
{
    at->fp = _Unwind_GetGR(context, FP);
}

/* Of an address that a function may have signed before it stored it. */
static uintptr_t without_signature(uintptr_t code)
{
    register uintptr_t x30 __asm__("x30") = code;
    __asm__("hint #7" : "+r"(x30)); /* xpaclri, which older processors skip */
    return x30;
}

static bool is_after_call(uintptr_t code)
{
    const uint32_t *after = (const uint32_t *)code;
    if (code % sizeof *after != 0 || code < sizeof *after || !os_readable(after - 1))
        return false;
    uint32_t call = after[-1];
    return (call & 0xfc000000) == 0x94000000 || /* bl */
           (call & 0xfffffc1f) == 0xd63f0000 || /* blr */
           (call & 0xfefff800) == 0xd63f0800;   /* the same of a signed address */
}
#endif

/* ---- frames ---- */

/* False where the walk ends with it. */
static bool add_call(struct frames *trace, uintptr_t call, uintptr_t stack)
{
    if (trace->stacks != NULL)
        trace->stacks[trace->count] = stack;
    trace->frames[trace->count++] = call;
    trace->whole = trace->knows_rest != NULL && trace->knows_rest(trace);
    return !trace->whole;
}

static _Unwind_Reason_Code add_frame(struct _Unwind_Context *context, void *argument)
{
    struct frames *trace = argument;
    int before_call = 0;
    uintptr_t address = _Unwind_GetIPInfo(context, &before_call);
    if (address == 0)
        return _URC_END_OF_STACK;
    /* What was above the caller is ours, too. */
    if (address == (uintptr_t)trace->caller)
        trace->count = 0;
    if (trace->count == 0 && is_ours(address))
        return _URC_NO_REASON;
    if (trace->count == trace->most || !is_in_reach(trace, _Unwind_GetCFA(context)))
        return _URC_END_OF_STACK;
#if CAN_RESUME || CAN_FOLLOW
    if (trace->at != NULL)
        resume_note(trace->at, context);
#endif
    return add_call(trace, before_call ? address : address - 1, _Unwind_GetCFA(context))
               ? _URC_NO_REASON
               : _URC_END_OF_STACK;
}

#if CAN_RESUME || CAN_FOLLOW

/* Whether the walk ended with code that has no unwind information. Few programs have such code:
 * registers are noted only in a second walk. */
static bool ends_early(struct frames *trace, struct registers *at)
{
    if (trace->present_until == 0 || !goes_on(trace) ||
        !resume_needed(trace->frames[trace->count - 1]))
        return false;
    trace->at = at;
    trace->count = 0;
    _Unwind_Backtrace(add_frame, trace);
    trace->at = NULL;
    return true;
}
#endif

#if CAN_RESUME
static _Unwind_Reason_Code add_further(struct _Unwind_Context *context, void *argument)
{
    return is_ours(_Unwind_GetIP(context)) ? _URC_NO_REASON : add_frame(context, argument);
}

static void go_on(struct frames *trace)
{
    struct registers at = {0};
    if (!ends_early(trace, &at))
        return;
    trace->at = &at;
    while (goes_on(trace) && resume_needed(trace->frames[trace->count - 1]) &&
           resume_step(trace, &at)) {
        struct registers from = at;
        unsigned before = trace->count;
        if (resume_needed(at.ip - 1))
            add_call(trace, at.ip - 1, at.sp);
        else
            resume_walk(&from, add_further, trace);
        if (trace->count == before)
            break;
    }
    trace->at = NULL;
}
#elif CAN_FOLLOW
static void go_on(struct frames *trace)
{
    struct registers at = {0};
    uintptr_t inner = (uintptr_t)&at;
    if (!ends_early(trace, &at))
        return;
    while (goes_on(trace) && at.fp > inner && at.fp % sizeof(uintptr_t) == 0 &&
           is_in_reach(trace, at.fp)) {
        const uintptr_t *frame = (const uintptr_t *)at.fp;
        uintptr_t ip = without_signature(frame[1]);
        if (!is_after_call(ip) && !is_near(ip, trace->frames[trace->count - 1]))
            return;
        inner = at.fp;
        at.fp = frame[0];
        if (!is_ours(ip))
            add_call(trace, ip - 1, at.fp > inner ? at.fp : inner + 2 * sizeof *frame);
    }
}
#else
static void go_on(struct frames *trace) { (void)trace; }
#endif

/* The unwinder ends the process where it does not find the code that calls it, which is so while
 * the program starts. */
static bool started; /* atomic */
void backtrace_start(void) { store_relaxed(&started, true); }

/* With _dl_find_object (glibc 2.35) the unwinder takes no lock of the dynamic linker. It has one of
 * its own for frames that a program registers: in the shared library nobody registers any, as the
 * unwinder is not the program's. */
#if defined(DLFO_EH_SEGMENT_TYPE) && defined(HAKMEM_SHARED)
#define TAKES_NO_LOCK true
#else
#define TAKES_NO_LOCK false
#endif

void backtrace_fill(struct frames *trace)
{
    trace->count = 0;
    if (!backtrace_possible())
        return;
    _Unwind_Backtrace(add_frame, trace);
    go_on(trace);
}

void backtrace_fill_cheaply(struct frames *trace)
{
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    trace->count = 0;
    trace->present_until = (here | (os_page - 1)) + 1;
    if (TAKES_NO_LOCK && load_relaxed(&started))
        backtrace_fill(trace);
}
