/* Functions that leave errno as it was. */
#ifndef HAKMEM_OS_KEEP_ERRNO_H
#define HAKMEM_OS_KEEP_ERRNO_H

#include <errno.h>

static inline void errno_put_back(const int *before) { errno = *before; }

/* At the end of the block errno is what it is here. */
#define KEEP_ERRNO __attribute__((cleanup(errno_put_back), unused)) int errno_before = errno

#endif
