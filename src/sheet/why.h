/* Why a heap can't be read, in one line. The numbers are those with which hakmem/look ends. */
#ifndef HAKMEM_SHEET_WHY_H
#define HAKMEM_SHEET_WHY_H

#include <stdbool.h>

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

/* Says it, and returns false. */
bool why_set(struct why *why, enum ending ending, const char *line);

#endif
