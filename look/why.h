/* How this program ends, and how it says why it can't do what it was asked for. */
#ifndef HAKMEM_LOOK_WHY_H
#define HAKMEM_LOOK_WHY_H

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

extern enum ending ending;

/* Writes one line, and returns false. */
__attribute__((format(printf, 4, 5))) static inline bool
because(char *why, size_t room, enum ending status, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(why, room, format, list);
    va_end(list);
    ending = status;
    return false;
}

#endif
