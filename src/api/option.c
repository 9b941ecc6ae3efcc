/* The public function that returns an option's value. */
#include <errno.h>
#include <string.h>

#include "hakmem/hakmem.h"
#include "life/life.h"
#include "options/options.h"

__attribute__((visibility("default"))) int hakmem_option(const char *name, uint64_t *value)
{
    thread_cache(); /* the process's start, where options are read */
    const struct option *option =
        name != NULL ? option_find((struct words){name, strlen(name)}) : NULL;
    if (option == NULL)
        return ENOENT;
    *value = option_value(option);
    return 0;
}
