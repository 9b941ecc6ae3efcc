/* Where the unwinder is to stop. For code without unwind information the compiler's unwinder looks
 * at the code itself: whether it is where a signal handler returns to. That code may be gone: a
 * program that made it and unmaps it at its end, as Mono does, still has its calls on the stack. So
 * where an address has no information and can't be read, it is said to be the outermost call.
 *
 * The shared library is linked with --wrap=_Unwind_Find_FDE, by which the unwinder asks for what it
 * knows of an address. */
#include "os/os.h"

struct bases { /* of the addresses in the information: libgcc's struct dwarf_eh_bases */
    void *text, *data, *function;
};

HIDDEN const void *__real__Unwind_Find_FDE(void *code, struct bases *bases);
HIDDEN const void *__wrap__Unwind_Find_FDE(void *code, struct bases *bases);

/* By the processor's numbers of registers: the stack pointer's, and of where a call returns to. */
#if defined(__x86_64__)
#define STACK_POINTER 7
#define RETURN 16
#elif defined(__aarch64__)
#define STACK_POINTER 31
#define RETURN 30
#endif

#ifdef RETURN
/* DWARF, .eh_frame: a common entry, and after it one of all addresses. */
static const struct {
    uint32_t length, id;
    uint8_t version, augmentation, code_align, data_align, return_column;
    uint8_t rules[7]; /* the frame is at the stack pointer; where it returns to is not known */
    struct {
        uint32_t length, back; /* to the common entry */
        uint64_t begin, bytes;
    } __attribute__((packed)) all;
} __attribute__((packed)) outermost = {
    .length = 16,
    .version = 1,
    .code_align = 1,
    .data_align = 0x78, /* -8 */
    .return_column = RETURN,
    .rules = {0x0c, STACK_POINTER, 0, 0x07, RETURN}, /* def_cfa, undefined */
    .all = {20, 24, 0, UINT64_MAX},
};
static_assert(sizeof outermost == 20 + 24, "the two entries, each after its length");

const void *__wrap__Unwind_Find_FDE(void *code, struct bases *bases)
{
    const void *known = __real__Unwind_Find_FDE(code, bases);
    /* It looks at nine bytes, from the one after this on. */
    if (known != NULL || (os_readable(code) && os_readable((const char *)code + 2)))
        return known;
    *bases = (struct bases){NULL, NULL, NULL};
    return &outermost.all;
}
#else
const void *__wrap__Unwind_Find_FDE(void *code, struct bases *bases)
{
    return __real__Unwind_Find_FDE(code, bases);
}
#endif
