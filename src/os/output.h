/* Files and descriptors to write to. Async-signal-safe, nothing allocates; errors are numbers as of
 * errno, 0 where there is none. A pipe that nobody reads and a file that is at its limit are
 * errors, and no signals, while the caller blocks signals (os_signals_block). */
#ifndef HAKMEM_OS_OUTPUT_H
#define HAKMEM_OS_OUTPUT_H

#include "base/policy.h"

/* Writes all of it; waits a second for a descriptor that does not wait by itself. */
int output_write(int file, const char *text, size_t length);

/* A file that is there in whole or not at all: it is written beside, and then renamed. */
struct output {
    int file;
    const char *path;
    char beside[PATH_OPTION_MOST + 320];
};

int output_begin(struct output *output, const char *path);

/* After a beginning without an error. `error`: what went wrong since, which it returns, after all
 * that was written is gone. */
int output_end(struct output *output, int error);

#endif
