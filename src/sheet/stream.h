/* Outputs that are no files to be put in place of others: devices, pipes, and descriptors by a
 * name, such as /dev/stderr. What is meant for them is written to them as they are. */
#ifndef HAKMEM_SHEET_STREAM_H
#define HAKMEM_SHEET_STREAM_H

#include "base/text.h"
#include "os/calls.h"

#include <sys/stat.h>

/* Nothing waits for somebody who reads a pipe. */
#define STREAM_FLAGS (O_WRONLY | O_APPEND | O_NONBLOCK | O_NOCTTY)

static inline bool is_stream(const char *path)
{
    static const char names[][10] = {"/dev/std", "/dev/fd/", "/proc/"};
    struct stat about;
    for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++)
        if (text_begins(path, names[i], text_length(names[i])))
            return true;
    return CALL(SYS_newfstatat, AT_FDCWD, path, &about, 0) == 0 && !S_ISREG(about.st_mode) &&
           !S_ISDIR(about.st_mode);
}

#endif
