#include "api/functions.h"

#include "api/blocks.h"
#include "watch/address.h"

SLOW void *function_note(void *p, enum maker maker)
{
    if (p != NULL)
        maker_note(p, maker);
    return p;
}

SLOW bool function_fits(void *p, enum maker maker, const char *function, const void *caller)
{
    enum maker found = maker_of(p);
    if (found != maker && found != MAKER_UNKNOWN) {
        report_at_once(function, MISUSE_FUNCTION, p, caller);
        return false;
    }
    if (found != MAKER_UNKNOWN && maker != MAKER_MALLOC)
        maker_note(p, MAKER_MALLOC);
    return true;
}

size_t resized_find(void *p, unsigned *found, const void *caller)
{
    size_t usable = block_find(p, found, "realloc", caller);
    bool fits =
        !hardening.functions || usable == 0 || function_fits(p, MAKER_MALLOC, "realloc", caller);
    return fits ? usable : 0;
}
