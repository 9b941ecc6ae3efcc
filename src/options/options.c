#include "options/options.h"

#include <errno.h>

#include "base/atomic.h"
#include "base/memory.h"
#include "os/os.h"

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

/* If an option of this name is no more: what to do instead; else null. */
static const char *option_gone(struct words name)
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

/* Whether a name may be meant for another: with a letter in four wrong, three at most, or as the
 * other's beginning or end. */
static bool name_resembles(struct words name, const char *other)
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

/* Of the options that the name resembles that whose name differs in the fewest letters added, left
 * out or changed; or null. */
static const struct option *option_nearest(struct words name)
{
    const struct option *nearest = NULL;
    for (unsigned i = 0; i < OPTIONS; i++)
        if (name_resembles(name, options[i].name) &&
            (nearest == NULL || farness(name, options[i].name) < farness(name, nearest->name)))
            nearest = &options[i];
    return nearest;
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

static bool is_number(const struct option *option) { return option->type <= OPTION_COUNT; }

static const struct unit *unit_find(enum option_type type, struct words name)
{
    for (size_t i = 0; i < UNITS; i++)
        if (units[i].type == type && same(name, units[i].name))
            return &units[i];
    return NULL;
}

static bool path_read(const struct option *option, struct words words, size_t *value)
{
    char *path = option == &options[OPTION_NUMBER_stats_file] ? stats_path
                 : option == &options[OPTION_NUMBER_record]   ? record_path
                                                              : profile_path;
    if (words.length >= PATH_OPTION_MOST)
        return false;
    bytes_copy(path, words.start, words.length);
    path[words.length] = '\0';
    *value = !same(words, "none");
    return true;
}

/* False when it is none of the type, or too large for any option. */
static bool value_read(const struct option *option, struct words words, size_t *value)
{
    enum option_type type = option->type;
    const struct unit *unit = NULL;
    if (type == OPTION_PATH)
        return path_read(option, words, value);
    if (!is_number(option)) {
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

/* False if the value is not of its type or out of its bounds. */
static bool option_set(const struct option *option, struct words words)
{
    size_t value = AUTO;
    if (!(option_may_be_auto(option) && same(words, "auto")) &&
        (!value_read(option, words, &value) || value < option->least || value > option->most))
        return false;
    *(size_t *)((char *)&policy + option->offset) = value;
    return true;
}

/* Whether the option's value may be written by it, of a number as so many of them. */
static bool unit_fits(const struct unit *unit, const struct option *option, size_t value)
{
    return unit->type == option->type &&
           (is_number(option) ? value != 0 && value % unit->value == 0 : unit->value == value);
}

/* As it may be given, in the largest unit that is exact: "512K", "on", "auto". */
static void option_add_value(struct text *t, const struct option *option, size_t value)
{
    size_t i = 0;
    while (i < UNITS && !unit_fits(&units[i], option, value))
        i++;
    if (value == AUTO)
        text_add(t, "auto");
    else if (i == UNITS)
        text_write(t, "%zu", value);
    else if (is_number(option))
        text_write(t, "%zu%s", value / units[i].value, units[i].name);
    else
        text_add(t, units[i].name);
}

/* ---- where options come from ----
 *
 *   options_start -> file_read -> line_read -> option_take
 *                 -> environment_read       -> option_take
 *
 * Runs inside the first call of the process, perhaps before any constructor, with a lock: nothing
 * here may allocate or call a function that another preloaded library can replace. */

#define SYSTEM_FILE "/etc/hakmem.conf"
#define PREFIX "HAKMEM_"
#define FILE_NAME "CONFIG"
#define FILE_VARIABLE PREFIX FILE_NAME
#define ONCE_VARIABLE PREFIX "COMPLAIN"
#define COMPLAINTS_MOST 8
#define FILE_MOST (4 * MiB) /* of what is read; such as /dev/zero have no end */
#define LINE_MOST 256
#define PATH_SHOWN 256

struct source {
    const char *file; /* null: the environment */
    unsigned line;
};

static unsigned complaints;
static bool silent; /* another program has said it */

/* ---- what is wrong ---- */

/* Of what a user wrote: printable, and not all of it where it is long. */
static void add_words(struct text *t, struct words words, size_t most)
{
    for (size_t i = 0; i < smaller(words.length, most); i++)
        text_write(t, "%.*s", 1,
                   words.start[i] > '~' || words.start[i] < ' ' ? "?" : words.start + i);
    text_add(t, words.length > most ? "..." : "");
}

static struct words words_of(const char *text) { return (struct words){text, text_length(text)}; }

/* Unless there were as many as a user wants to read. */
COLD static void complain(const struct source *from, const struct text *what)
{
    char line[768];
    if (silent || complaints >= COMPLAINTS_MOST)
        return;
    complaints++;
    struct text t = text_of(line, sizeof line, "hakmem: ");
    add_words(&t, words_of(from->file == NULL ? "environment" : from->file), PATH_SHOWN);
    if (from->line != 0)
        text_write(&t, ":%u", from->line);
    text_write(&t, ": %s\n", what->start);
    os_print_error(t.start, t.used);
}

/* What is said, at most. */
#define WHAT_MOST 448

/* As it is given there. */
static struct text text_of_name(char what[WHAT_MOST], const struct source *from, struct words name)
{
    struct text t = text_of(what, WHAT_MOST, "%s", from->file == NULL ? PREFIX : "");
    add_words(&t, name, 40);
    return t;
}

/* In the environment in capitals. */
static void add_nearest(struct text *t, const struct source *from, const char *nearest)
{
    text_write(t, "; the nearest is %s", from->file == NULL ? PREFIX : "");
    for (; *nearest != '\0'; nearest++) {
        bool capital = from->file == NULL && *nearest >= 'a' && *nearest <= 'z';
        char letter = (char)(capital ? *nearest - 'a' + 'A' : *nearest);
        text_write(t, "%.*s", 1, &letter);
    }
}

COLD static void complain_of_name(const struct source *from, struct words name)
{
    char what[WHAT_MOST];
    struct text t = text_of_name(what, from, name);
    const char *instead = option_gone(name);
    const struct option *near = option_nearest(name);
    text_add(&t, ": there is no such option");
    if (instead != NULL)
        text_write(&t, " any more: %s", instead);
    else if (from->file == NULL && name_resembles(name, FILE_NAME))
        add_nearest(&t, from, FILE_NAME);
    else if (near != NULL)
        add_nearest(&t, from, near->name);
    complain(from, &t);
}

COLD static void complain_of_value(const struct source *from, struct words name, struct words value,
                                   const struct option *option)
{
    static const char *const kinds[] = {
        [OPTION_BYTES] = "a size from ", [OPTION_COUNT] = "a number from ",
        [OPTION_SWITCH] = "on or off",   [OPTION_PRESET] = "none or hardened",
        [OPTION_WHEN] = "exit or off",   [OPTION_PATH] = "a path of less than 1024 bytes",
    };
    char what[WHAT_MOST];
    struct text t = text_of_name(what, from, name);
    text_add(&t, "=");
    add_words(&t, value, 40);
    text_add(&t, ": expected ");
    if (option_may_be_auto(option))
        text_add(&t, is_number(option) ? "auto or " : "auto, ");
    text_add(&t, kinds[option->type]);
    if (is_number(option)) {
        option_add_value(&t, option, option->least);
        text_add(&t, " to ");
        option_add_value(&t, option, option->most);
        text_add(&t, option->type == OPTION_BYTES ? " (in bytes, or with K, M or G)" : "");
    }
    size_t now = option_value(option);
    text_add(&t, now == option->value ? "; the default stays, " : "; what was set before stays, ");
    option_add_value(&t, option, now);
    complain(from, &t);
}

COLD static void complain_of_line(const struct source *from, struct words line, const char *wrong)
{
    char what[WHAT_MOST];
    struct text t;
    text_init(&t, what, sizeof what);
    add_words(&t, line, 40);
    text_add(&t, wrong);
    complain(from, &t);
}

COLD static void complain_of_file(const struct source *from, const char *path, int error)
{
    char what[WHAT_MOST];
    struct text t = text_of(what, sizeof what, "%s", from->file == NULL ? FILE_VARIABLE "=" : "");
    if (from->file == NULL) {
        add_words(&t, words_of(path), PATH_SHOWN);
        text_add(&t, ": ");
    }
    text_add(&t, "cannot be read: ");
    text_add_error(&t, error);
    text_add(&t, "; nothing more is taken from it");
    complain(from, &t);
}

/* ---- one option ---- */

/* Programs have variables of their own that begin like ours. */
static bool is_meant_for_us(struct words name)
{
    return option_nearest(name) != NULL || option_gone(name) != NULL ||
           name_resembles(name, FILE_NAME);
}

/* Those that only make a program safer. */
static bool protects(const struct option *option)
{
    return option != NULL && option - options >= OPTION_NUMBER_preset &&
           option - options <= OPTION_NUMBER_check_frees;
}

/* An empty value is none: scripts and templates write HAKMEM_PRESET=${PRESET-}. */
static void option_take(const struct source *from, struct words name, struct words value)
{
    const struct option *option = option_find(name);
    if (os_secure() && !protects(option))
        return;
    if (option != NULL && from->file == NULL)
        for (size_t i = 0; i < name.length; i++)
            if (name.start[i] >= 'a' && name.start[i] <= 'z')
                option = NULL; /* to other programs it would be another variable */
    if (option == NULL && (from->file != NULL || is_meant_for_us(name)))
        complain_of_name(from, name);
    else if (option != NULL && value.length > 0 && !option_set(option, value))
        complain_of_value(from, name, value, option);
}

/* ---- files ---- */

static bool blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

static struct words trimmed(struct words words)
{
    while (words.length > 0 && blank(words.start[0])) {
        words.start++;
        words.length--;
    }
    while (words.length > 0 && blank(words.start[words.length - 1]))
        words.length--;
    return words;
}

static void line_read(const struct source *from, struct words line)
{
    line = trimmed(line);
    if (line.length == 0)
        return;
    const char *equals = text_find(line.start, line.length, '=');
    if (equals == NULL) {
        complain_of_line(from, line, ": expected NAME = VALUE; the line is ignored");
        return;
    }
    size_t before = (size_t)(equals - line.start);
    option_take(from, trimmed((struct words){line.start, before}),
                trimmed((struct words){equals + 1, line.length - before - 1}));
}

/* A file's line as it grows. What follows a # is never part of it. */
struct line {
    char start[LINE_MOST];
    size_t length; /* LINE_MOST: too long */
    bool comment;
};

static void line_end(struct line *line, const struct source *from)
{
    struct words words = {line->start, line->length};
    if (line->length == LINE_MOST)
        complain_of_line(from, words, ": too long; the line is ignored");
    else
        line_read(from, words);
    line->length = 0;
    line->comment = false;
}

static void line_add(struct line *line, char c)
{
    if (c == '#')
        line->comment = true;
    if (line->comment || line->length == LINE_MOST || (line->length == 0 && blank(c)))
        return;
    line->start[line->length++] = c;
}

/* Returns 0 or the number of the error; options read before the error are set. */
static int file_read(const char *path)
{
    int error;
    int file = os_open(path, &error);
    if (file < 0)
        return error;
    struct source from = {path, 1};
    struct line line = {.length = 0};
    char chunk[1024];
    size_t total = 0;
    size_t got;
    while (total <= FILE_MOST && (got = os_read(file, chunk, sizeof chunk, &error)) > 0) {
        total += got;
        for (size_t i = 0; i < got; i++) {
            if (chunk[i] != '\n') {
                line_add(&line, chunk[i]);
                continue;
            }
            line_end(&line, &from);
            from.line++;
        }
    }
    os_close(file);
    if (total > FILE_MOST)
        complain_of_line(&from, (struct words){"", 0},
                         "the file is longer than 4 MiB; the rest of it is ignored");
    else if (error == 0)
        line_end(&line, &from); /* the last line may end with the file */
    return error;
}

/* ---- the environment ---- */

/* What stands behind `beginning` in a variable; null in others. */
static char *after(char *variable, const char *beginning)
{
    for (; *beginning != '\0'; beginning++, variable++)
        if (*variable != *beginning)
            return NULL;
    return variable;
}

/* Where its value stands; null when it is not set, or empty. `name` ends with "=". */
static char *value_of(char **environment, const char *name)
{
    char *value = NULL;
    for (; *environment != NULL && value == NULL; environment++)
        value = after(*environment, name);
    return value != NULL && *value != '\0' ? value : NULL;
}

static void environment_read(char **environment)
{
    struct source from = {NULL, 0};
    for (; *environment != NULL; environment++) {
        const char *name = after(*environment, PREFIX);
        if (name == NULL || after(*environment, FILE_VARIABLE "=") != NULL ||
            after(*environment, ONCE_VARIABLE "=") != NULL)
            continue;
        const char *equals = text_find(name, text_length(name), '=');
        if (equals != NULL)
            option_take(&from, (struct words){name, (size_t)(equals - name)}, words_of(equals + 1));
    }
}

/* The command has its programs complain once: the first that has something to say writes so where
 * those that it starts will find it. */
static const char once[] = "once", done[] = "done";
static_assert(sizeof once == sizeof done, "one is written over the other");

COLD void options_start(void)
{
    if (os_secure()) { /* who started it must not control it, but who owns the system may */
        silent = true;
        file_read(SYSTEM_FILE);
        return;
    }
    char **environment = os_environment();
    char *turn = environment != NULL ? value_of(environment, ONCE_VARIABLE "=") : NULL;
    silent = turn != NULL && text_same(turn, done);
    /* Most systems have none, and some don't let a process open any; only a file that is there and
     * says nothing is worth a line. */
    int error = file_read(SYSTEM_FILE);
    if (error == EACCES || error == EISDIR)
        complain_of_file(&(struct source){SYSTEM_FILE, 0}, SYSTEM_FILE, error);
    if (environment == NULL)
        return;
    const char *path = value_of(environment, FILE_VARIABLE "=");
    if (path != NULL && (error = file_read(path)) != 0)
        complain_of_file(&(struct source){NULL, 0}, path, error);
    environment_read(environment);
    if (complaints > 0 && turn != NULL && text_same(turn, once))
        bytes_copy(turn, done, sizeof done);
}
