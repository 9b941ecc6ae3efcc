#include "profile/line_tables.h"

#define NO_LINE (-128)

static uint32_t in_lnotab(const uint8_t *table, size_t bytes, uint32_t first, uint32_t at)
{
    uint32_t line = first;
    uint32_t reached = 0;
    for (size_t i = 0; i + 1 < bytes; i += 2) {
        reached += table[i];
        if (reached > at)
            break;
        line += (uint32_t)(int8_t)table[i + 1];
    }
    return line;
}

static uint32_t in_ranges(const uint8_t *table, size_t bytes, uint32_t first, uint32_t at)
{
    uint32_t line = first;
    uint32_t end = 0;
    for (size_t i = 0; i + 1 < bytes; i += 2) {
        int change = table[i + 1] < 0x80 ? table[i + 1] : table[i + 1] - 0x100;
        end += table[i];
        if (change != NO_LINE)
            line += (uint32_t)change;
        if (at < end)
            return change != NO_LINE ? line : 0;
    }
    return 0;
}

/* Kinds of entries. The others add 0 to a line, or 1 or 2. */
enum { ONE_LINE = 10, NO_COLUMNS = 13, LONG = 14, NONE = 15 };
#define UNIT 2 /* bytes of code */

/* Six bits a byte, the lowest first; the lowest of all is the sign. */
static uint32_t signed_number(const uint8_t *table, size_t bytes, size_t at)
{
    uint32_t number = 0;
    for (unsigned shift = 0; at < bytes && shift < 32; shift += 6) {
        uint8_t byte = table[at++];
        number |= (uint32_t)(byte & 0x3f) << shift;
        if ((byte & 0x40) == 0)
            break;
    }
    return (number & 1) != 0 ? -(number >> 1) : number >> 1;
}

static uint32_t in_locations(const uint8_t *table, size_t bytes, uint32_t first, uint32_t at)
{
    uint32_t line = first;
    uint32_t end = 0;
    for (size_t i = 0; i < bytes;) {
        unsigned kind = table[i] >> 3 & 15;
        end += UNIT * ((table[i] & 7u) + 1);
        if (kind == LONG || kind == NO_COLUMNS)
            line += signed_number(table, bytes, i + 1);
        else if (kind >= ONE_LINE && kind < NO_COLUMNS)
            line += kind - ONE_LINE;
        if (at < end)
            return kind != NONE ? line : 0;
        for (i++; i < bytes && table[i] < 0x80; i++) /* only an entry's first byte has this bit */
            ;
    }
    return 0;
}

uint32_t line_in_table(enum line_format format, const uint8_t *table, size_t bytes, uint32_t first,
                       uint32_t at)
{
    return format == LINES_LNOTAB   ? in_lnotab(table, bytes, first, at)
           : format == LINES_RANGES ? in_ranges(table, bytes, first, at)
                                    : in_locations(table, bytes, first, at);
}
