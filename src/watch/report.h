/* Reports of misuse: one line that says what, where and what to do, then the end of the program.
 * Async-signal-safe, never through malloc. */
#ifndef HAKMEM_WATCH_REPORT_H
#define HAKMEM_WATCH_REPORT_H

#include "base/misuse.h"

/* Reports that the program passed p to `function`, and aborts. */
_Noreturn void report_misuse(const char *function, enum misuse what, const void *p);

#endif
