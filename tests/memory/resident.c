#include "resident.h"

#include "support.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static size_t field(const char *text, const char *name)
{
    const char *at = strstr(text, name);
    if (at == NULL)
        fail("smaps_rollup has no line \"%s\"", name + 1);
    return strtoul(at + strlen(name), NULL, 10) * KiB;
}

struct resident resident_of(pid_t pid)
{
    char path[64] = "/proc/self/smaps_rollup", text[4096];
    if (pid != 0)
        snprintf(path, sizeof path, "/proc/%d/smaps_rollup", (int)pid);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = file < 0 ? -1 : read(file, text, sizeof text - 1);
    if (got <= 0)
        fail("%s cannot be read", path);
    close(file);
    text[got] = 0;
    return (struct resident){
        .all = field(text, "\nRss:"),
        .anonymous = field(text, "\nAnonymous:"),
        .private_dirty = field(text, "\nPrivate_Dirty:"),
    };
}
