#include "profile/python_layouts.h"

/* clang-format off */
/* Version                3.9  3.10  3.11  3.12  3.13  3.14 3.13t 3.14t */
#define LAYOUTS(FIELD)                                                       \
    FIELD(thread_frame,        24,   24,    0,    0,   72,   72,   72,   72) \
    FIELD(thread_cframe,        0,   48,   56,   56,    0,    0,    0,    0) \
    FIELD(thread_status,        0,    0,    0,   24,   32,   32,   32,   32) \
    FIELD(cframe_frame,         0,    0,    8,    0,    0,    0,    0,    0) \
    FIELD(cframe_previous,      0,    8,   16,    8,    0,    0,    0,    0) \
    FIELD(cframe_has_frame,     0,    0,    1,    1,    0,    0,    0,    0) \
    FIELD(frame_code,          32,   32,   32,    0,    0,    0,    0,    0) \
    FIELD(frame_previous,      24,   24,   48,    8,    8,    8,    8,    8) \
    FIELD(frame_at,           104,   96,   56,   56,   56,   56,   56,   56) \
    FIELD(frame_owner,          0,    0,    0,   70,   70,   74,   70,   78) \
    FIELD(frame_entry,          0,    0,   68,    0,    0,    0,    0,    0) \
    FIELD(frame_copy,           0,    0,    0,    0,    0,    0,    0,   72) \
    FIELD(code_name,          112,  112,  128,  128,  128,  128,  144,  144) \
    FIELD(code_file,          104,  104,  112,  112,  112,  112,  128,  128) \
    FIELD(code_first,          40,   40,   72,   68,   68,   68,   84,   84) \
    FIELD(code_lines,         120,  120,  136,  136,  136,  136,  152,  152) \
    FIELD(code_begin,           0,    0,  184,  192,  200,  208,  216,  232) \
    FIELD(code_complete,        0,    0,  168,  176,  184,  192,  200,  208) \
    FIELD(code_copies,          0,    0,    0,    0,    0,    0,    0,  224) \
    FIELD(units,                1,    2,    0,    0,    0,    0,    0,    0) \
    FIELD(type,                 8,    8,    8,    8,    8,    8,   24,   24) \
    FIELD(length,              16,   16,   16,   16,   16,   16,   32,   32) \
    FIELD(bytes,               32,   32,   32,   32,   32,   32,   48,   48) \
    FIELD(text_hash,           24,   24,   24,   24,   24,   24,   40,   40) \
    FIELD(text_state,          32,   32,   32,   32,   32,   32,   48,   48) \
    FIELD(text_kind,            2,    2,    2,    2,    2,    2,    2,    8) \
    FIELD(text_ascii,          48,   48,   48,   40,   40,   40,   56,   56) \
    FIELD(text_compact,        72,   72,   72,   56,   56,   56,   72,   72)
/* clang-format on */

#define OF_9(field, a, b, c, d, e, f, g, h) .field = (a),
#define OF_10(field, a, b, c, d, e, f, g, h) .field = (b),
#define OF_11(field, a, b, c, d, e, f, g, h) .field = (c),
#define OF_12(field, a, b, c, d, e, f, g, h) .field = (d),
#define OF_13(field, a, b, c, d, e, f, g, h) .field = (e),
#define OF_14(field, a, b, c, d, e, f, g, h) .field = (f),
#define OF_13T(field, a, b, c, d, e, f, g, h) .field = (g),
#define OF_14T(field, a, b, c, d, e, f, g, h) .field = (h),
static const struct python_layout layouts[] SELDOM = {
    {LAYOUTS(OF_9).line_format = LINES_LNOTAB},
    {LAYOUTS(OF_10).line_format = LINES_RANGES},
    {LAYOUTS(OF_11).line_format = LINES_LOCATIONS},
    {LAYOUTS(OF_12).line_format = LINES_LOCATIONS},
    {LAYOUTS(OF_13).line_format = LINES_LOCATIONS},
    {LAYOUTS(OF_14).line_format = LINES_LOCATIONS},
    {LAYOUTS(OF_13T).line_format = LINES_LOCATIONS},
    {LAYOUTS(OF_14T).line_format = LINES_LOCATIONS},
};
#define WITH_GIL (PYTHON_MINOR_LAST - PYTHON_MINOR_FIRST + 1)
#define WITHOUT_GIL (PYTHON_MINOR_LAST - PYTHON_MINOR_FREE + 1)
static_assert(sizeof layouts / sizeof *layouts == WITH_GIL + WITHOUT_GIL, "one for each build");

const struct python_layout *python_layout(unsigned minor, bool free_threaded)
{
    unsigned first = free_threaded ? PYTHON_MINOR_FREE : PYTHON_MINOR_FIRST;
    return minor >= first && minor <= PYTHON_MINOR_LAST
               ? &layouts[minor - first + (free_threaded ? WITH_GIL : 0)]
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
