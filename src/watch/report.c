#include "watch/report.h"

#include <stdlib.h>

#include "base/text.h"
#include "os/os.h"

static const char *const words[] = {
    [MISUSE_NONE] = "",
    [MISUSE_FOREIGN] = ("no block begins at this address: it was never allocated here, or its "
                        "memory has gone back since it was freed"),
    [MISUSE_UNALIGNED] = "no block can begin at this address: it is not a multiple of 16",
    [MISUSE_INTERIOR] = "this address is inside a block, not at its start",
    [MISUSE_FREE] = "this block is free already (freed twice, or used after it was freed)",
};

COLD _Noreturn void report_misuse(const char *function, enum misuse what, const void *p)
{
    char line[512];
    struct text text;
    text_init(&text, line, sizeof line);
    text_add(&text, "hakmem: ");
    text_add(&text, function);
    text_add(&text, "(");
    text_add_hex(&text, (uintptr_t)p);
    text_add(&text, "): ");
    text_add(&text, words[what]);
    text_add(&text, " (thread ");
    text_add_number(&text, os_thread_id());
    text_add(&text, "). The program is stopped; run it under a debugger to see who called.\n");
    os_print_error(text.start, text.used);
    abort();
}
