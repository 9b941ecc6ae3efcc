/* Why a heap can't be read, in one line. The numbers are those with which hakmem/look ends. */
#ifndef HAKMEM_SHEET_WHY_H
#define HAKMEM_SHEET_WHY_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

enum ending {
    EXIT_DONE = 0,
    EXIT_USAGE = 2,
    EXIT_TARGET = 3, /* there is no such process or file, or it can't be read */
    EXIT_RIGHTS = 4,
    EXIT_WITHOUT = 5,  /* there is no hakmem in it */
    EXIT_NONSENSE = 6, /* what it says of its heap makes no sense, or is of an unknown format */
    EXIT_WAITS = 7,    /* the order is given, and not yet done */
    EXIT_REFUSED = 8
};

struct why {
    enum ending ending;
    char line[512];
};

/* Writes the line, and returns false. */
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
