#include "options/options.h"

#include "base/memory.h"

const struct option options[OPTIONS] SELDOM = {
#define OPTION(name, type, value, least, most, help) \
    {#name, OPTION_##type, (value), (least), (most), offsetof(struct policy, name)},
#include "base/options.def"
};

#define OPTION(name, type, value, least, most, help)                                \
    static_assert((value) == AUTO || (size_t)(value) - (least) <= (most) - (least), \
                  #name ": the default is out of bounds");                          \
    static_assert(OPTION_##type != OPTION_SWITCH || ((least) == 0 && (most) == 1),  \
                  #name ": a switch is 0 or 1");
#include "base/options.def"

/* ---- names ---- */

static char lower(char c) { return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c; }

static bool begins(const char *b, struct words a)
{
    for (size_t i = 0; i < a.length; i++)
        if (b[i] == '\0' || lower(a.start[i]) != lower(b[i]))
            return false;
    return true;
}

static bool same(struct words a, const char *b) { return begins(b, a) && b[a.length] == '\0'; }

static const struct renamed {
    char old[24];
    unsigned now;
} renamed[] SELDOM = {
#define RENAMED(old, name) {#old, OPTION_NUMBER_##name},
#include "base/options.def"
};

#define RENAMES (sizeof renamed / sizeof renamed[0])

const struct option *option_find(struct words name)
{
    for (unsigned i = 0; i < OPTIONS; i++)
        if (same(name, options[i].name))
            return &options[i];
    for (unsigned i = 0; i < RENAMES; i++)
        if (same(name, renamed[i].old))
            return &options[renamed[i].now];
    return NULL;
}

#define NAME_MOST 40 /* of a wrong name; the rest makes no difference */

static const struct gone {
    char name[24], instead[104];
} gone[] SELDOM = {
#define GONE(name, instead) {#name, instead},
#include "base/options.def"
};

const char *option_gone(struct words name)
{
    for (unsigned i = 0; i < sizeof gone / sizeof gone[0]; i++)
        if (same(name, gone[i].name))
            return gone[i].instead;
    return NULL;
}

/* Levenshtein's distance, row by row. */
static unsigned distance(struct words a, const char *b)
{
    unsigned row[NAME_MOST + 1];
    for (unsigned i = 0; i <= a.length; i++)
        row[i] = i;
    for (unsigned j = 1; b[j - 1] != '\0'; j++) {
        unsigned diagonal = row[0];
        row[0] = j;
        for (unsigned i = 1; i <= a.length; i++) {
            unsigned changed = diagonal + (lower(a.start[i - 1]) != lower(b[j - 1]));
            unsigned other = (row[i] < row[i - 1] ? row[i] : row[i - 1]) + 1;
            diagonal = row[i];
            row[i] = changed < other ? changed : other;
        }
    }
    return row[a.length];
}

/* A name that was cut short is nearer than any that was mistyped. */
static unsigned farness(struct words name, const char *option)
{
    return distance(name, option) + (begins(option, name) ? 0 : 2 * NAME_MOST);
}

#define PART_LEAST 4 /* letters of a name; fewer may begin or end anybody's */
#define WRONG_MOST 3

bool name_resembles(struct words name, const char *other)
{
    size_t length = text_length(other);
    if (name.length > NAME_MOST)
        return false;
    if (name.length >= PART_LEAST && name.length < length &&
        (begins(other, name) || same(name, other + length - name.length)))
        return true;
    size_t wrong = length / 4 < WRONG_MOST ? length / 4 : WRONG_MOST;
    return distance(name, other) <= wrong;
}

const struct option *option_nearest(struct words name)
{
    const struct option *nearest = NULL;
    for (unsigned i = 0; i < OPTIONS; i++)
        if (name_resembles(name, options[i].name) &&
            (nearest == NULL || farness(name, options[i].name) < farness(name, nearest->name)))
            nearest = &options[i];
    return nearest;
}

bool option_is_meant(struct words name)
{
    return option_nearest(name) != NULL || option_gone(name) != NULL;
}

/* ---- values ---- */

/* What may stand for a value, or behind a number; of those that are equal the first is written. */
static const struct unit {
    enum option_type type;
    char name[12];
    size_t value;
} units[] SELDOM = {
    {OPTION_BYTES, "G", GiB},       {OPTION_BYTES, "GiB", GiB}, {OPTION_BYTES, "M", MiB},
    {OPTION_BYTES, "MiB", MiB},     {OPTION_BYTES, "K", KiB},   {OPTION_BYTES, "KiB", KiB},
    {OPTION_SWITCH, "on", 1},       {OPTION_SWITCH, "true", 1}, {OPTION_SWITCH, "yes", 1},
    {OPTION_SWITCH, "1", 1},        {OPTION_SWITCH, "off", 0},  {OPTION_SWITCH, "false", 0},
    {OPTION_SWITCH, "no", 0},       {OPTION_SWITCH, "0", 0},    {OPTION_PRESET, "none", 0},
    {OPTION_PRESET, "hardened", 1}, {OPTION_PRESET, "0", 0},    {OPTION_PRESET, "1", 1},
    {OPTION_WHEN, "off", 0},        {OPTION_WHEN, "exit", 1},   {OPTION_WHEN, "0", 0},
    {OPTION_WHEN, "1", 1},          {OPTION_PATH, "none", 0},   {OPTION_PATH, "set", 1},
};
#define UNITS (sizeof units / sizeof units[0])

static const struct unit *unit_find(enum option_type type, struct words name)
{
    for (size_t i = 0; i < UNITS; i++)
        if (units[i].type == type && same(name, units[i].name))
            return &units[i];
    return NULL;
}

static char *path_of(const struct option *option)
{
    switch (option - options) {
    case OPTION_NUMBER_stats_file:
        return stats_path;
    case OPTION_NUMBER_record:
        return record_path;
    default:
        return profile_path;
    }
}

static bool path_read(const struct option *option, struct words words, size_t *value)
{
    char *path = path_of(option);
    if (words.length >= PATH_OPTION_MOST)
        return false;
    bytes_copy(path, words.start, words.length);
    path[words.length] = '\0';
    *value = words.length > 0 && !same(words, "none");
    return true;
}

/* False when it is none of the type, or too large for any option. */
static bool value_read(const struct option *option, struct words words, size_t *value)
{
    enum option_type type = option->type;
    const struct unit *unit = NULL;
    if (type == OPTION_PATH)
        return path_read(option, words, value);
    if (type >= OPTION_SWITCH && type <= OPTION_WHEN) {
        unit = unit_find(type, words);
        if (unit != NULL)
            *value = unit->value;
        return unit != NULL;
    }
    size_t number = 0;
    size_t digits = 0;
    while (digits < words.length && words.start[digits] >= '0' && words.start[digits] <= '9') {
        size_t digit = (size_t)(words.start[digits++] - '0');
        if (__builtin_mul_overflow(number, 10, &number) ||
            __builtin_add_overflow(number, digit, &number))
            return false;
    }
    *value = number;
    if (digits == 0 || digits == words.length)
        return digits != 0;
    while (digits < words.length && words.start[digits] == ' ')
        digits++;
    unit = unit_find(type, (struct words){words.start + digits, words.length - digits});
    return unit != NULL && !__builtin_mul_overflow(number, unit->value, value);
}

bool option_set(const struct option *option, struct words words)
{
    size_t value = AUTO;
    if (!(option_may_be_auto(option) && same(words, "auto")) &&
        (!value_read(option, words, &value) || value < option->least || value > option->most))
        return false;
    *(size_t *)((char *)&policy + option->offset) = value;
    return true;
}

void option_add_value(struct text *t, const struct option *option, size_t value)
{
    if (value == AUTO) {
        text_add(t, "auto");
        return;
    }
    if (option_has_words(option)) {
        for (size_t i = 0; i < UNITS; i++)
            if (units[i].type == option->type && units[i].value == value) {
                text_add(t, units[i].name);
                return;
            }
    }
    const struct unit *unit = NULL;
    if (option->type == OPTION_BYTES && value != 0)
        for (size_t i = 0; i < UNITS && unit == NULL; i++)
            if (units[i].type == OPTION_BYTES && value % units[i].value == 0)
                unit = &units[i];
    text_add_number(t, unit != NULL ? value / unit->value : value);
    if (unit != NULL)
        text_add(t, unit->name);
}
