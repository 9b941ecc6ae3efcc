#include "profile/python_layouts.h"

static const struct python_layout layouts[] SELDOM = {
    [0] = {.thread_frame = 24,
           .frame_code = 32,
           .frame_previous = 24,
           .frame_at = 104,
           .code_name = 112,
           .code_file = 104,
           .code_first = 40,
           .code_lines = 120,
           .units = 1,
           .line_format = LINES_LNOTAB,
           .text_ascii = 48,
           .text_compact = 72},
    [1] = {.thread_frame = 24,
           .thread_cframe = 48,
           .cframe_previous = 8,
           .frame_code = 32,
           .frame_previous = 24,
           .frame_at = 96,
           .code_name = 112,
           .code_file = 104,
           .code_first = 40,
           .code_lines = 120,
           .units = 2,
           .line_format = LINES_RANGES,
           .text_ascii = 48,
           .text_compact = 72},
    [2] = {.thread_cframe = 56,
           .cframe_has_frame = true,
           .cframe_frame = 8,
           .cframe_previous = 16,
           .frame_code = 32,
           .frame_previous = 48,
           .frame_at = 56,
           .frame_entry = 68,
           .code_name = 128,
           .code_file = 112,
           .code_first = 72,
           .code_lines = 136,
           .code_begin = 184,
           .code_complete = 168,
           .line_format = LINES_LOCATIONS,
           .text_ascii = 48,
           .text_compact = 72},
    [3] = {.thread_cframe = 56,
           .thread_status = 24,
           .cframe_has_frame = true,
           .cframe_frame = 0,
           .cframe_previous = 8,
           .frame_code = 0,
           .frame_previous = 8,
           .frame_at = 56,
           .frame_owner = 70,
           .code_name = 128,
           .code_file = 112,
           .code_first = 68,
           .code_lines = 136,
           .code_begin = 192,
           .code_complete = 176,
           .line_format = LINES_LOCATIONS,
           .text_ascii = 40,
           .text_compact = 56},
    [4] = {.thread_frame = 72,
           .thread_status = 32,
           .frame_code = 0,
           .frame_previous = 8,
           .frame_at = 56,
           .frame_owner = 70,
           .code_name = 128,
           .code_file = 112,
           .code_first = 68,
           .code_lines = 136,
           .code_begin = 200,
           .code_complete = 184,
           .line_format = LINES_LOCATIONS,
           .text_ascii = 40,
           .text_compact = 56},
    [5] = {.thread_frame = 72,
           .thread_status = 32,
           .frame_code = 0,
           .frame_previous = 8,
           .frame_at = 56,
           .frame_owner = 74,
           .code_name = 128,
           .code_file = 112,
           .code_first = 68,
           .code_lines = 136,
           .code_begin = 208,
           .code_complete = 192,
           .line_format = LINES_LOCATIONS,
           .text_ascii = 40,
           .text_compact = 56},
};
static_assert(sizeof layouts / sizeof *layouts == PYTHON_MINOR_LAST - PYTHON_MINOR_FIRST + 1,
              "one for each version");

const struct python_layout *python_layout(unsigned minor)
{
    return minor >= PYTHON_MINOR_FIRST && minor <= PYTHON_MINOR_LAST
               ? &layouts[minor - PYTHON_MINOR_FIRST]
               : NULL;
}

/* ---- lines ---- */

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
