/* The constants of laws.def: LAW_NAME for each line. They are constant expressions, so code that
 * uses one is the code that a number would give.
 *
 * -D TRY_NAME=,value tries another value without a change of the table; CMake's HAKMEM_LAWS writes
 * such flags. */
#ifndef HAKMEM_LEARN_LAWS_H
#define HAKMEM_LEARN_LAWS_H

#include "base/defs.h"

/* The value of the table, or what stands after the comma of TRY_NAME. */
#define LAW_SECOND(first, second, ...) second
#define LAW_CHOSEN(...) LAW_SECOND(__VA_ARGS__)

/* A value may be more than an int holds: gcc and clang have such enumerators in C11 too. */
#define LAW(name, value, what, shown, figure) LAW_##name = LAW_CHOSEN(TRY_##name, value, 0),
__extension__ enum {
#include "learn/laws.def"
};

#endif
