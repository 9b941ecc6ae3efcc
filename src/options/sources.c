/*   options_start -> sources_read -> file_read -> line_read -> option_take
 *                                 -> environment_read       -> option_take
 *
 * Runs inside the first call of the process, perhaps before any constructor, with a lock: nothing
 * here may allocate or call a function that another preloaded library can replace. */
#include "options/options.h"

#include <errno.h>

#include "base/atomic.h"
#include "base/memory.h"
#include "os/os.h"

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
    size_t shown = words.length > most ? most : words.length;
    for (size_t i = 0; i < shown; i++) {
        char c[2] = {words.start[i], '\0'};
        if (c[0] < ' ' || c[0] > '~')
            c[0] = '?';
        text_add(t, c);
    }
    if (shown < words.length)
        text_add(t, "...");
}

static struct words words_of(const char *text) { return (struct words){text, text_length(text)}; }

struct complaint {
    char line[768];
    struct text text;
};

/* False when there were as many as a user wants to read. */
static bool complaint_begin(struct complaint *c, const struct source *from)
{
    if (silent || complaints >= COMPLAINTS_MOST)
        return false;
    complaints++;
    struct text *t = &c->text;
    text_init(t, c->line, sizeof c->line);
    text_add(t, "hakmem: ");
    if (from->file == NULL) {
        text_add(t, "environment");
    } else {
        add_words(t, words_of(from->file), PATH_SHOWN);
        if (from->line != 0)
            text_write(t, ":%u", from->line);
    }
    text_add(t, ": ");
    return true;
}

static void complaint_end(struct complaint *c)
{
    text_add(&c->text, "\n");
    os_print_error(c->text.start, c->text.used);
}

COLD static void complaint_name(struct complaint *c, const struct source *from, struct words name)
{
    if (from->file == NULL)
        text_add(&c->text, PREFIX);
    add_words(&c->text, name, 40);
}

COLD static void complain_of_name(const struct source *from, struct words name)
{
    struct complaint c;
    if (!complaint_begin(&c, from))
        return;
    struct text *t = &c.text;
    complaint_name(&c, from, name);
    const char *instead = option_gone(name);
    if (instead != NULL) {
        text_write(t, ": there is no such option any more: %s", instead);
        complaint_end(&c);
        return;
    }
    text_add(t, ": there is no such option");
    const struct option *near = option_nearest(name);
    const char *nearest = near != NULL ? near->name : "";
    if (from->file == NULL && name_resembles(name, FILE_NAME))
        nearest = FILE_NAME;
    if (*nearest != '\0')
        text_add(t, from->file == NULL ? "; the nearest is " PREFIX : "; the nearest is ");
    for (; *nearest != '\0'; nearest++) {
        bool capital = from->file == NULL && *nearest >= 'a' && *nearest <= 'z';
        char letter[2] = {(char)(capital ? *nearest - 'a' + 'A' : *nearest), '\0'};
        text_add(t, letter);
    }
    complaint_end(&c);
}

COLD static void complain_of_value(const struct source *from, struct words name, struct words value,
                                   const struct option *option)
{
    static const char *const kinds[][2] = {
        [OPTION_BYTES] = {"a size from ", " (in bytes, or with K, M or G)"},
        [OPTION_COUNT] = {"a number from ", ""},
    };
    struct complaint c;
    if (!complaint_begin(&c, from))
        return;
    struct text *t = &c.text;
    complaint_name(&c, from, name);
    text_add(t, "=");
    add_words(t, value, 40);
    text_add(t, ": expected ");
    if (option->type == OPTION_SWITCH) {
        text_add(t, option_may_be_auto(option) ? "auto, on or off" : "on or off");
    } else if (option->type == OPTION_PRESET) {
        text_add(t, "none or hardened");
    } else if (option->type == OPTION_WHEN) {
        text_add(t, "exit or off");
    } else if (option->type == OPTION_PATH) {
        text_add(t, "a path of less than 1024 bytes");
    } else {
        text_add(t, option_may_be_auto(option) ? "auto or " : "");
        text_add(t, kinds[option->type][0]);
        option_add_value(t, option, option->least);
        text_add(t, " to ");
        option_add_value(t, option, option->most);
        text_add(t, kinds[option->type][1]);
    }
    size_t now = option_value(option);
    text_add(t, now == option->value ? "; the default stays, " : "; what was set before stays, ");
    option_add_value(t, option, now);
    complaint_end(&c);
}

COLD static void complain_of_line(const struct source *from, struct words line, const char *what)
{
    struct complaint c;
    if (!complaint_begin(&c, from))
        return;
    add_words(&c.text, line, 40);
    text_add(&c.text, what);
    complaint_end(&c);
}

COLD static void complain_of_file(const struct source *from, const char *path, int error)
{
    struct complaint c;
    if (!complaint_begin(&c, from))
        return;
    if (from->file == NULL) {
        text_add(&c.text, FILE_VARIABLE "=");
        add_words(&c.text, words_of(path), PATH_SHOWN);
        text_add(&c.text, ": ");
    }
    text_add(&c.text, "cannot be read: ");
    text_add_error(&c.text, error);
    text_add(&c.text, "; nothing more is taken from it");
    complaint_end(&c);
}

/* ---- one option ---- */

/* Programs have variables of their own that begin like ours. */
static bool is_meant_for_us(struct words name)
{
    return option_is_meant(name) || name_resembles(name, FILE_NAME);
}

/* Those that only make a program safer. */
static bool protects(const struct option *option)
{
    return option != NULL && option - options >= OPTION_NUMBER_preset &&
           option - options <= OPTION_NUMBER_check_frees;
}

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
    else if (option != NULL && !option_set(option, value))
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

/* Where its value stands; null when it is not set. `name` ends with "=". */
static char *value_of(char **environment, const char *name)
{
    char *value = NULL;
    for (; *environment != NULL && value == NULL; environment++)
        value = after(*environment, name);
    return value;
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

static void sources_read(void)
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

COLD void options_start(void) { sources_read(); }
