/* Says why something can't be done, with details. */
#ifndef HAKMEM_LOOK_BECAUSE_H
#define HAKMEM_LOOK_BECAUSE_H

#include <stdarg.h>
#include <stdio.h>

#include "sheet/target.h"

/* Returns false. */
__attribute__((format(printf, 3, 4))) static inline bool
because(struct why *why, enum ending ending, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(why->line, sizeof why->line, format, list);
    va_end(list);
    why->ending = ending;
    return false;
}

#endif
