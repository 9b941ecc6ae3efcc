#include "base/text.h"
#include "base/memory.h"

#include <errno.h>
#include <stdarg.h>

void text_init(struct text *t, char *buffer, size_t room)
{
    t->start = buffer;
    t->room = room;
    t->used = 0;
    buffer[0] = '\0';
}

static void text_add_char(struct text *t, char c)
{
    if (t->used + 1 < t->room) {
        t->start[t->used++] = c;
        t->start[t->used] = '\0';
    }
}

void text_add(struct text *t, const char *words)
{
    while (*words != '\0')
        text_add_char(t, *words++);
}

void text_add_foreign(struct text *t, const char *words, size_t most)
{
    for (; most > 0 && *words != '\0'; words++, most--)
        text_add_char(t, (unsigned char)*words < ' ' || *words == 0x7f ? '?' : *words);
}

static void add_pad(struct text *t, char c, size_t used, size_t width)
{
    for (; used < width; used++)
        text_add_char(t, c);
}

static void add_digits(struct text *t, uint64_t n, unsigned base, char pad, size_t width)
{
    char digits[20];
    unsigned count = 0;
    do {
        digits[count++] = "0123456789abcdef"[n % base];
        n /= base;
    } while (n != 0);
    add_pad(t, pad, count, width);
    while (count > 0)
        text_add_char(t, digits[--count]);
}

static void add_column(struct text *t, const char *words, bool left, size_t width)
{
    size_t length = text_length(words);
    add_pad(t, ' ', length, left ? 0 : width);
    text_add(t, words);
    add_pad(t, ' ', length, left ? width : 0);
}

/* What stands behind a %; returns its end. */
static const char *add_value(struct text *t, const char *format, va_list *values)
{
    bool hex = *format == '#', left = *format == '-';
    format += hex | left;
    char pad = *format == '0' ? '0' : ' ';
    size_t width = 0;
    for (; *format >= '0' && *format <= '9'; format++)
        width = width * 10 + (size_t)(*format - '0');
    bool wide = *format == 'l' || *format == 'z';
    format += wide;
    if (*format == 's') {
        add_column(t, va_arg(*values, const char *), left, width);
    } else if (*format == '.') {
        size_t most = (size_t)va_arg(*values, int);
        text_add_foreign(t, va_arg(*values, const char *), most);
        format += 2;
    } else if (*format == '%') {
        text_add_char(t, '%');
    } else {
        uint64_t n = wide ? va_arg(*values, size_t) : va_arg(*values, unsigned);
        text_add(t, hex ? "0x" : "");
        add_digits(t, n, *format == 'x' ? 16 : 10, pad, width);
    }
    return format + 1;
}

static void write_values(struct text *t, const char *format, va_list *values)
{
    while (*format != '\0')
        if (*format == '%')
            format = add_value(t, format + 1, values);
        else
            text_add_char(t, *format++);
}

void text_write(struct text *t, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    write_values(t, format, &values);
    va_end(values);
}

struct text text_of(char *buffer, size_t room, const char *format, ...)
{
    struct text t;
    va_list values;
    text_init(&t, buffer, room);
    va_start(values, format);
    write_values(&t, format, &values);
    va_end(values);
    return t;
}

void text_add_path(struct text *t, const char *from, uint64_t process)
{
    for (const char *c = from; *c != '\0'; c++) {
        if (c[0] == '%' && c[1] == 'p')
            text_write(t, "%lu", process);
        else
            text_add_char(t, *c);
        c += c[0] == '%' && (c[1] == 'p' || c[1] == '%');
    }
}

void text_add_error(struct text *t, int error)
{
    static const struct {
        int error;
        char words[56];
    } known[] SELDOM = {
        {ENOENT, "there is no such file"},
        {EACCES, "permission denied"},
        {EPERM, "permission denied"},
        {EISDIR, "it is a directory"},
        {ENOTDIR, "not a directory"},
        {ENOSPC, "no space left on device"},
        {EDQUOT, "no space left in the quota"},
        {EFBIG, "too large for the limit of file sizes (ulimit -f)"},
        {EROFS, "read-only file system"},
        {ENOMEM, "out of memory"},
        {EMFILE, "too many open files"},
        {EPIPE, "nobody reads it"},
        {ENXIO, "it is a pipe that nobody reads, or a socket"},
    };
    for (unsigned i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].error == error) {
            text_add(t, known[i].words);
            return;
        }
    text_write(t, "error %u", (unsigned)error);
}
