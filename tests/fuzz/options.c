/* Options from two files and the environment, against a slow and obvious reading of
 * docs/options.md.
 *
 * An input is: a byte of flags, how many bytes one read gives, then three parts with 0xff between:
 * /etc/hakmem.conf, the file that HAKMEM_CONFIG names, and the environment, its variables with a
 * zero between. Everything else that options are read from is in this file. */
#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "bytes.h"
/* Whole, for what it keeps between two calls: a process reads its options once. */
#include "options/options.c" // NOLINT(bugprone-suspicious-include)

#define PART_END 0xff
#define VARIABLES_MOST 6
#define LINES_SAID 1024

enum { /* flags */
       NO_SYSTEM_FILE = 1,
       SYSTEM_FILE_DENIED = 2,
       SYSTEM_FILE_BREAKS = 4,
       CONFIG_MISSING = 8,
       CONFIG_BREAKS = 16,
       NO_ENVIRONMENT = 32,
       SECURE = 64,
};

/* ---- the system that options come from ---- */

struct part {
    const uint8_t *start;
    size_t length;
};

static struct {
    unsigned flags;
    size_t read_most;
    struct part files[2]; /* the system's, the named one */
    char *variables[VARIABLES_MOST + 1];
    unsigned opened;      /* of the file that is open: 1 + its number */
    size_t given;         /* of its bytes */
    unsigned said;        /* lines on standard error */
    unsigned system_file; /* opens of it */
} world;

int os_open(const char *path, int *error)
{
    bool named = strcmp(path, SYSTEM_FILE) != 0;
    *error = 0;
    if (named && (world.flags & CONFIG_MISSING) != 0)
        *error = ENOENT;
    else if (!named && (world.flags & SYSTEM_FILE_DENIED) != 0)
        *error = EACCES;
    else if (!named && (world.flags & NO_SYSTEM_FILE) != 0)
        *error = ENOENT;
    if (*error != 0)
        return -1;
    MUST(world.opened == 0, "%s: the file before is still open", path);
    world.opened = named ? 2 : 1;
    world.given = 0;
    return 3;
}

size_t os_read(int file, void *buffer, size_t room, int *error)
{
    MUST(file == 3 && world.opened != 0, "no such file is open");
    const struct part *part = &world.files[world.opened - 1];
    size_t most = room < world.read_most ? room : world.read_most;
    size_t left = part->length - world.given;
    size_t got = left < most ? left : most;
    unsigned breaks = world.opened == 1 ? SYSTEM_FILE_BREAKS : CONFIG_BREAKS;
    *error = got == 0 && (world.flags & breaks) != 0 ? EIO : 0;
    memcpy(buffer, part->start + world.given, got);
    world.given += got;
    return got;
}

void os_close(int file)
{
    MUST(file == 3 && world.opened != 0, "no such file is open");
    world.opened = 0;
}

bool os_secure(void) { return (world.flags & SECURE) != 0; }

char **os_environment(void) { return (world.flags & NO_ENVIRONMENT) != 0 ? NULL : world.variables; }

void os_print_error(const char *words, size_t length)
{
    MUST(length > 8 && memcmp(words, "hakmem: ", 8) == 0, "a line that does not begin as ours");
    MUST(words[length - 1] == '\n', "a line without its end: %.*s", (int)length, words);
    for (size_t i = 0; i + 1 < length; i++)
        MUST(words[i] >= ' ' && words[i] <= '~', "byte %d in a line", words[i]);
    world.said++;
}

/* ---- what docs/options.md says ---- */

static struct {
    size_t values[OPTIONS];
    unsigned wrong;
} expected;

static bool equal(struct words words, const char *other, bool any_case)
{
    if (words.length != strlen(other))
        return false;
    for (size_t i = 0; i < words.length; i++)
        if (any_case ? tolower((unsigned char)words.start[i]) != other[i]
                     : words.start[i] != toupper((unsigned char)other[i]))
            return false;
    return true;
}

static const struct option *option_named(struct words name, bool any_case)
{
    for (unsigned i = 0; i < OPTIONS; i++)
        if (equal(name, options[i].name, any_case))
            return &options[i];
#define RENAMED(old, now)            \
    if (equal(name, #old, any_case)) \
        return option_named((struct words){#now, strlen(#now)}, true);
#include "base/options.def"
    return NULL;
}

static bool is_gone(struct words name)
{
#define GONE(old, instead)       \
    if (equal(name, #old, true)) \
        return true;
#include "base/options.def"
    return false;
}

static bool one_of(struct words words, const char *const *names)
{
    for (; *names != NULL; names++)
        if (equal(words, *names, true))
            return true;
    return false;
}

/* False where it is no value of the type. Numbers too large for a size are as large as that. */
static bool value_of_words(const struct option *option, struct words words, size_t *value)
{
    static const char *const on[] = {"on", "1", "true", "yes", NULL};
    static const char *const off[] = {"off", "0", "false", "no", NULL};
    if (option->type == OPTION_SWITCH) {
        *value = one_of(words, on);
        return *value == 1 || one_of(words, off);
    }
    static const char *const none[] = {"none", "0", NULL};
    static const char *const preset[] = {"hardened", "1", NULL};
    if (option->type == OPTION_PRESET) {
        *value = one_of(words, preset);
        return *value == 1 || one_of(words, none);
    }
    static const char *const never[] = {"off", "0", NULL};
    static const char *const at_exit[] = {"exit", "1", NULL};
    if (option->type == OPTION_WHEN) {
        *value = one_of(words, at_exit);
        return *value == 1 || one_of(words, never);
    }
    if (option->type == OPTION_PATH) {
        *value = !equal(words, "none", true);
        return words.length < PATH_OPTION_MOST;
    }
    unsigned __int128 number = 0;
    size_t digits = 0;
    for (; digits < words.length && isdigit((unsigned char)words.start[digits]); digits++)
        if (number <= SIZE_MAX)
            number = number * 10 + (unsigned)(words.start[digits] - '0');
    struct words unit = {words.start + digits, words.length - digits};
    if (digits == 0)
        return false;
    if (unit.length > 0) {
        static const struct {
            enum option_type type;
            const char *name;
            uint64_t factor;
        } factors[] = {
            {OPTION_BYTES, "k", KiB},   {OPTION_BYTES, "kib", KiB}, {OPTION_BYTES, "m", MiB},
            {OPTION_BYTES, "mib", MiB}, {OPTION_BYTES, "g", GiB},   {OPTION_BYTES, "gib", GiB},
        };
        while (unit.length > 0 && unit.start[0] == ' ') {
            unit.start++;
            unit.length--;
        }
        uint64_t factor = 0;
        for (size_t i = 0; i < sizeof factors / sizeof *factors; i++)
            if (factors[i].type == option->type && equal(unit, factors[i].name, true))
                factor = factors[i].factor;
        if (factor == 0)
            return false;
        if (number <= SIZE_MAX)
            number *= factor;
    }
    *value = number < SIZE_MAX ? (size_t)number : SIZE_MAX;
    return true;
}

static void expect_value(const struct option *option, struct words words)
{
    size_t value;
    if (words.length == 0)
        return; /* not set */
    if (option->value == AUTO && equal(words, "auto", true))
        value = AUTO;
    else if (!value_of_words(option, words, &value) || value < option->least ||
             value > option->most) {
        expected.wrong++;
        return;
    }
    expected.values[option - options] = value;
}

static unsigned least_of(unsigned a, unsigned b) { return a < b ? a : b; }

/* Letters added, left out or changed. */
static unsigned letters_between(struct words a, const char *b)
{
    static unsigned table[64][64];
    size_t length = strlen(b);
    for (unsigned i = 0; i <= a.length; i++)
        for (unsigned k = 0; k <= length; k++) {
            if (i == 0 || k == 0) {
                table[i][k] = i + k;
                continue;
            }
            bool differs =
                tolower((unsigned char)a.start[i - 1]) != tolower((unsigned char)b[k - 1]);
            table[i][k] = least_of(table[i - 1][k - 1] + differs,
                                   least_of(table[i - 1][k], table[i][k - 1]) + 1);
        }
    return table[a.length][length];
}

static bool is_nearly(struct words name, const char *other)
{
    size_t length = strlen(other);
    if (name.length > 40)
        return false;
    if (name.length >= 4 && name.length < length) {
        bool begins = true, ends = true;
        for (size_t i = 0; i < name.length; i++) {
            int c = tolower((unsigned char)name.start[i]);
            begins = begins && c == tolower((unsigned char)other[i]);
            ends = ends && c == tolower((unsigned char)other[length - name.length + i]);
        }
        if (begins || ends)
            return true;
    }
    return letters_between(name, other) <= least_of((unsigned)length / 4, 3);
}

static void expect_variable(const char *variable)
{
    if (strncmp(variable, "HAKMEM_", 7) != 0 || strchr(variable, '=') == NULL)
        return;
    struct words name = {variable + 7, (size_t)(strchr(variable, '=') - variable) - 7};
    if (equal(name, "config", false) || equal(name, "complain", false))
        return;
    const char *value = name.start + name.length + 1;
    const struct option *option = option_named(name, false);
    if (option != NULL) {
        expect_value(option, (struct words){value, strlen(value)});
        return;
    }
    bool meant = is_gone(name) || is_nearly(name, "config");
    for (unsigned i = 0; i < OPTIONS; i++)
        meant = meant || is_nearly(name, options[i].name);
    expected.wrong += meant;
}

static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

static struct words without_blanks(struct words words)
{
    for (; words.length > 0 && is_blank(words.start[0]); words.length--)
        words.start++;
    while (words.length > 0 && is_blank(words.start[words.length - 1]))
        words.length--;
    return words;
}

static bool makes_safer(const struct option *option)
{
    static const char *const names[] = {"preset",  "canaries", "zero_freed",  "quarantine_bytes",
                                        "shuffle", "guards",   "check_sizes", "check_frees"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(option->name, names[i]) == 0)
            return true;
    return false;
}

static void expect_line(struct words line)
{
    while (line.length > 0 && is_blank(line.start[0])) {
        line.start++;
        line.length--;
    }
    const char *comment = memchr(line.start, '#', line.length);
    if (comment != NULL)
        line.length = (size_t)(comment - line.start);
    bool too_long = line.length >= LINE_MOST;
    line = without_blanks(line);
    const char *equals = memchr(line.start, '=', line.length);
    if (too_long || equals == NULL) {
        expected.wrong += too_long || line.length > 0;
        return;
    }
    struct words name = {line.start, (size_t)(equals - line.start)};
    const struct option *option = option_named(without_blanks(name), true);
    if (option == NULL)
        expected.wrong++;
    else if ((world.flags & SECURE) == 0 || makes_safer(option))
        expect_value(option,
                     without_blanks((struct words){equals + 1, line.length - name.length - 1}));
}

static void expect_file(const struct part *file, bool breaks)
{
    const char *at = (const char *)file->start;
    const char *end = at + file->length;
    const char *newline;
    for (; (newline = memchr(at, '\n', (size_t)(end - at))) != NULL; at = newline + 1)
        expect_line((struct words){at, (size_t)(newline - at)});
    if (!breaks) /* else it is not known whether the line ends there */
        expect_line((struct words){at, (size_t)(end - at)});
}

static const char *variable_named(const char *name)
{
    for (char **v = world.variables; *v != NULL; v++)
        if (strncmp(*v, name, strlen(name)) == 0)
            return (*v)[strlen(name)] != '\0' ? *v + strlen(name) : NULL;
    return NULL;
}

static void expect_all(void)
{
    unsigned flags = world.flags;
    for (unsigned i = 0; i < OPTIONS; i++)
        expected.values[i] = options[i].value;
    expected.wrong = 0;
    if ((flags & SYSTEM_FILE_DENIED) != 0)
        expected.wrong++;
    else if ((flags & NO_SYSTEM_FILE) == 0)
        expect_file(&world.files[0], (flags & SYSTEM_FILE_BREAKS) != 0);
    if ((flags & SECURE) != 0)
        expected.wrong = 0; /* nothing is said */
    if ((flags & (NO_ENVIRONMENT | SECURE)) != 0)
        return;
    if (variable_named("HAKMEM_CONFIG=") != NULL) {
        if ((flags & CONFIG_MISSING) == 0)
            expect_file(&world.files[1], (flags & CONFIG_BREAKS) != 0);
        expected.wrong += (flags & (CONFIG_MISSING | CONFIG_BREAKS)) != 0;
    }
    for (char **v = world.variables; *v != NULL; v++)
        expect_variable(*v);
}

/* ---- one input ---- */

static struct policy policy_first;

static void compare(bool quiet)
{
    unsigned lines = quiet ? 0 : least_of(expected.wrong, COMPLAINTS_MOST);
    MUST(world.said == lines, "%u wrong values, %u lines, expected %u", expected.wrong, world.said,
         lines);
    for (unsigned i = 0; i < OPTIONS; i++) {
        const struct option *option = &options[i];
        size_t value = option_value(option);
        MUST(value == expected.values[i], "%s: %zu, expected %zu", option->name, value,
             expected.values[i]);
        MUST((value == AUTO && option->value == AUTO) ||
                 (value >= option->least && value <= option->most),
             "%s: %zu is out of its bounds", option->name, value);
        char written[32];
        struct text text;
        text_init(&text, written, sizeof written);
        option_add_value(&text, option, value);
        MUST(option_set(option, words_of(written)) && option_value(option) == value,
             "%s: %zu is written as %s, which is read as %zu", option->name, value, written,
             option_value(option));
    }
}

static struct part part_until(struct bytes *bytes)
{
    const uint8_t *start = bytes->at;
    const uint8_t *end = bytes->left > 0 ? memchr(start, PART_END, bytes->left) : NULL;
    size_t length = end != NULL ? (size_t)(end - start) : bytes->left;
    size_t used = length + (end != NULL);
    bytes->at += used;
    bytes->left -= used;
    return (struct part){start, length};
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (policy_first.stack_bytes == 0)
        policy_first = policy;
    policy = policy_first;
    complaints = 0;
    silent = false;
    memset(&world, 0, sizeof world);
    struct bytes bytes = {data, size};
    world.flags = next_byte(&bytes);
    world.read_most = next_byte(&bytes) + 1;
    world.files[0] = part_until(&bytes);
    world.files[1] = part_until(&bytes);
    /* An environment of its own, which is written to. */
    char *environment = malloc(bytes.left + 1);
    memcpy(environment, bytes.at, bytes.left);
    environment[bytes.left] = '\0';
    char *at = environment, *end = environment + bytes.left;
    for (unsigned i = 0; at < end && i < VARIABLES_MOST; at += strlen(at) + 1)
        world.variables[i++] = at;

    expect_all();
    const char *turn = variable_named("HAKMEM_COMPLAIN=");
    if ((world.flags & (NO_ENVIRONMENT | SECURE)) != 0)
        turn = NULL;
    bool quiet = turn != NULL && strcmp(turn, "done") == 0;
    bool first = turn != NULL && strcmp(turn, "once") == 0;
    options_start();
    compare(quiet);
    if (first)
        MUST(strcmp(turn, expected.wrong > 0 ? "done" : "once") == 0, "COMPLAIN is %s", turn);
    MUST(world.opened == 0, "a file stays open");
    free(environment);
    return 0;
}
