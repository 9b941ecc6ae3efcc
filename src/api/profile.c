/* The public functions for heap profiles. */
#include <errno.h>

#include "hakmem/hakmem.h"
#include "life/life.h"
#include "life/profile_text.h"
#include "life/profiling.h"
#include "os/keep_errno.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT int hakmem_profile_start(void)
{
    thread_cache(); /* the process's start */
    return profile_switch(true) ? 0 : EAGAIN;
}

EXPORT int hakmem_profile_stop(void)
{
    thread_cache();
    return profile_switch(false) ? 0 : EAGAIN;
}

EXPORT int hakmem_profile_write(int fd)
{
    KEEP_ERRNO;
    return profile_write(fd);
}
