/* The public functions for what the process writes of itself: its sheet, and heap profiles. */
#include <errno.h>

#include "hakmem/hakmem.h"
#include "life/life.h"
#include "life/profiling.h"
#include "life/recording.h"
#include "life/settings.h"
#include "os/os.h"
#include "sheet/own.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT int hakmem_sheet(int fd, int format)
{
    KEEP_ERRNO;
    if (format != HAKMEM_SHEET_TEXT && format != HAKMEM_SHEET_OPENMETRICS)
        return EINVAL;
    return sheet_write_own(fd, format == HAKMEM_SHEET_TEXT ? FORM_TEXT : FORM_OPENMETRICS).number;
}

EXPORT void hakmem_mark(const char *name)
{
    KEEP_ERRNO;
    if (name == NULL)
        return;
    thread_cache(); /* the process's start, too */
    recording_mark(name);
}

static int profile_change(size_t on)
{
    struct cache *mine = thread_cache(); /* the process's start, too */
    return option_change("profile", on, mine) == CHANGED ? 0 : EAGAIN;
}

EXPORT int hakmem_profile_start(void)
{
    int error = profile_change(1);
    return error != 0 || profile_watch() ? error : EAGAIN;
}

EXPORT int hakmem_profile_stop(void) { return profile_change(0); }

EXPORT int hakmem_profile_write(int fd)
{
    KEEP_ERRNO;
    return profile_write(fd);
}
