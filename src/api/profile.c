/* The public functions for heap profiles. */
#include <errno.h>

#include "hakmem/hakmem.h"
#include "life/life.h"
#include "life/profile_text.h"
#include "life/settings.h"
#include "os/os.h"

#define EXPORT __attribute__((visibility("default")))

static int profile_change(size_t on)
{
    struct cache *mine = thread_cache(); /* the process's start, too */
    return option_change("profile", on, mine) == CHANGED ? 0 : EAGAIN;
}

EXPORT int hakmem_profile_start(void) { return profile_change(1); }

EXPORT int hakmem_profile_stop(void) { return profile_change(0); }

EXPORT int hakmem_profile_write(int fd)
{
    KEEP_ERRNO;
    return profile_write(fd);
}
