/* Which line an instruction of Python's belongs to: the tables of code objects, in the three
 * formats that they have had. Pure functions; any bytes may be passed. */
#ifndef HAKMEM_PROFILE_LINE_TABLES_H
#define HAKMEM_PROFILE_LINE_TABLES_H

#include "base/defs.h"

enum line_format {
    LINES_LNOTAB,   /* 3.9: pairs of bytes, how much further in the code, and in lines */
    LINES_RANGES,   /* 3.10: the same, of ranges, some of which are of no line (PEP 626) */
    LINES_LOCATIONS /* 3.11: entries of varying length, with columns (PEP 657) */
};

/* `at`: bytes from the code's begin; 0 where it has no line. */
uint32_t line_in_table(enum line_format format, const uint8_t *table, size_t bytes, uint32_t first,
                       uint32_t at);

#endif
