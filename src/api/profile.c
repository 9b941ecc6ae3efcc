/* The public functions for heap profiles. */
#include "hakmem/hakmem.h"
#include "life/profile_text.h"
#include "os/keep_errno.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT int hakmem_profile_start(void) { return hakmem_option_set("profile", 1); }

EXPORT int hakmem_profile_stop(void) { return hakmem_option_set("profile", 0); }

EXPORT int hakmem_profile_write(int fd)
{
    KEEP_ERRNO;
    return profile_write(fd);
}
