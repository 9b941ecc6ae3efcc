/* What the kernel counts of this process's memory, in bytes. The reader calls no malloc, which
 * would be work for the allocator under test. */
#ifndef HAKMEM_TESTS_STATM_H
#define HAKMEM_TESTS_STATM_H

#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct statm {
    size_t mapped, resident;
};

static inline struct statm statm_read(void)
{
    char text[256], *next;
    int file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    ssize_t length = file < 0 ? -1 : read(file, text, sizeof text - 1);
    if (file >= 0)
        close(file);
    if (length <= 0) {
        perror("/proc/self/statm");
        abort();
    }
    text[length] = 0;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t mapped = strtoul(text, &next, 10) * page;
    return (struct statm){mapped, strtoul(next, NULL, 10) * page};
}

#endif
