/* hakmem's own public functions: about the whole heap, for options, and for programs that move
 * their blocks. */
#include <errno.h>
#include <string.h>

#include "api/door.h"
#include "api/slow.h"
#include "base/memory.h"
#include "base/text.h"
#include "base/watch.h"
#include "front/refill.h"
#include "hakmem/hakmem.h"
#include "heap/shards.h"
#include "life/life.h"
#include "life/limits.h"
#include "life/profiling.h"
#include "life/purge.h"
#include "life/recording.h"
#include "life/settings.h"
#include "options/options.h"
#include "os/os.h"
#include "report/accounts.h"
#include "sheet/own.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT size_t hakmem_purge(void) { return purge_all(thread_cache(), 0); }

EXPORT size_t hakmem_good_size(size_t n)
{
    size_t page = page_size(); /* the process's start, before what is hardened is known */
    if (n <= CLASS_MOST - hardening.canary)
        return class_usable(class_of(least_of(n, 1)));
    return n > MOST_BYTES ? 0 : round_up(n, page);
}

EXPORT size_t hakmem_stats(struct hakmem_stats *stats, size_t size)
{
    struct accounts accounts;
    heap_count(&accounts);
    size_t container = limits_container();
    accounts.stats.container_limit = container == NO_LIMIT ? 0 : container;
    size_t known = smaller(size, sizeof accounts.stats);
    memcpy(stats, &accounts.stats, known);
    memset((char *)stats + known, 0, size - known);
    return sizeof accounts.stats;
}

EXPORT void hakmem_on_soft_limit(hakmem_soft_limit_called called, void *argument)
{
    soft_limit_listen(called, argument);
}

EXPORT int hakmem_check_frees(int on) { return purge_check_frees(thread_cache(), on != 0); }

EXPORT unsigned hakmem_version(void) { return HAKMEM_VERSION; }

EXPORT long hakmem_check(void)
{
    struct accounts accounts;
    thread_cache(); /* the process's start */
    heap_lock_all();
    size_t breaches = heap_check(&accounts, heap_quiet());
    heap_unlock_all();
    if (breaches == SIZE_MAX) {
        errno = ENOMEM;
        return -1;
    }
    heap_check_report(&accounts);
    return (long)breaches;
}

/* ---- options ---- */

EXPORT int hakmem_option(const char *name, uint64_t *value)
{
    thread_cache(); /* the process's start, where options are read */
    const struct option *option =
        name != NULL ? option_find((struct words){name, text_length(name)}) : NULL;
    if (option == NULL)
        return ENOENT;
    *value = option_value(option);
    return 0;
}

EXPORT int hakmem_option_set(const char *name, uint64_t value)
{
    struct cache *mine = thread_cache();
    if (name == NULL)
        return ENOENT;
    switch (option_change(name, value, mine)) {
    case CHANGED:
        if (soft_limit_waits())
            soft_limit_act(mine);
        return 0;
    case CHANGE_NO_OPTION:
        return ENOENT;
    case CHANGE_NOT_ALLOWED:
        return EINVAL;
    case CHANGE_NOT_NOW:
        return EAGAIN;
    default:
        return EPERM;
    }
}

/* ---- for programs that move their blocks ---- */

EXPORT int hakmem_defrag_hint(const void *p)
{
    if (p == NULL || block_usable(p, "hakmem_defrag_hint", RETURN_ADDRESS) == 0)
        return 0;
    struct door door;
    if (map_bin(p) < BIN_FIRST || !enter(&door))
        return 0;
    bool attracts = past_attracts(door.cache, p);
    leave(&door);
    return attracts;
}

EXPORT void *hakmem_defrag_malloc(size_t n) { return slow_malloc_past(n); }

EXPORT void hakmem_defrag_free(void *p) { slow_free_past(p, RETURN_ADDRESS); }

EXPORT size_t hakmem_defrag_gain(void)
{
    struct door door;
    if (!enter(&door))
        return 0;
    size_t gain = shards_gain();
    leave(&door);
    return gain;
}

/* ---- what the process writes of itself ---- */

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

/* ---- seen from outside ----
 *
 * What a process that looks from outside begins with: hakmem_watch names all tables of
 * base/watch.h, and a note of the file says where it is. Notes lie at the start of a loaded file,
 * so they are found without symbols, in programs that are linked statically, and in core files. */

#define TEXT(x) #x
#define VALUE(x) TEXT(x)

HIDDEN __attribute__((used)) const struct hakmem_watch hakmem_watch = {
    .magic = WATCH_MAGIC,
    .bytes = sizeof hakmem_watch,
    .format = WATCH_FORMAT,
    .version =
        VALUE(HAKMEM_VERSION_MAJOR) "." VALUE(HAKMEM_VERSION_MINOR) "." VALUE(HAKMEM_VERSION_PATCH),
#define TABLE(name) .name = &watch_##name,
    WATCH_TABLES(TABLE, TABLE)
#undef TABLE
};

/* Name and description are padded to four bytes. The description is the distance from itself. */
__asm__(".pushsection .note.hakmem, \"a\", %note\n"
        ".balign 4\n"
        ".long 2f - 1f, 4f - 3f, " VALUE(WATCH_NOTE) "\n"
                                                     "1: .asciz \"hakmem\"\n"
                                                     "2: .balign 4\n"
                                                     "3: .long hakmem_watch - 3b\n"
                                                     "4: .balign 4\n"
                                                     ".popsection\n");
