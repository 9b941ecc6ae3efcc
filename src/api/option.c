/* The public functions for options. */
#include "base/text.h"
#include "hakmem/hakmem.h"
#include "life/life.h"
#include "life/purge.h"
#include "life/settings.h"
#include "options/options.h"
#include <errno.h>

__attribute__((visibility("default"))) int hakmem_option(const char *name, uint64_t *value)
{
    thread_cache(); /* the process's start, where options are read */
    const struct option *option =
        name != NULL ? option_find((struct words){name, text_length(name)}) : NULL;
    if (option == NULL)
        return ENOENT;
    *value = option_value(option);
    return 0;
}

__attribute__((visibility("default"))) int hakmem_option_set(const char *name, uint64_t value)
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
