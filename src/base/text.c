#include "base/text.h"

#include <errno.h>

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

static void text_add_base(struct text *t, uint64_t n, unsigned base)
{
    char digits[20];
    unsigned count = 0;
    do {
        digits[count++] = "0123456789abcdef"[n % base];
        n /= base;
    } while (n != 0);
    while (count > 0)
        text_add_char(t, digits[--count]);
}

void text_add_number(struct text *t, uint64_t n) { text_add_base(t, n, 10); }

void text_add_hex(struct text *t, uint64_t n)
{
    text_add(t, "0x");
    text_add_base(t, n, 16);
}

void text_add_byte(struct text *t, unsigned byte)
{
    static const char digits[] = "0123456789abcdef";
    text_add_char(t, digits[byte >> 4 & 15]);
    text_add_char(t, digits[byte & 15]);
}

void text_add_address(struct text *t, uint64_t address)
{
    for (unsigned i = 0; i < sizeof address; i++)
        text_add_byte(t, (unsigned)(address >> (56 - 8 * i) & 0xff));
}

void text_add_path(struct text *t, const char *from, uint64_t process)
{
    for (const char *c = from; *c != '\0'; c++) {
        if (c[0] == '%' && c[1] == 'p')
            text_add_number(t, process);
        else
            text_add_char(t, *c);
        c += c[0] == '%' && (c[1] == 'p' || c[1] == '%');
    }
}

void text_add_error(struct text *t, int error)
{
    if (error == ENOENT) {
        text_add(t, "there is no such file");
    } else if (error == EACCES || error == EPERM) {
        text_add(t, "permission denied");
    } else if (error == EISDIR) {
        text_add(t, "it is a directory");
    } else if (error == ENOTDIR) {
        text_add(t, "not a directory");
    } else if (error == ENOSPC) {
        text_add(t, "no space left on device");
    } else if (error == EDQUOT) {
        text_add(t, "no space left in the quota");
    } else if (error == EFBIG) {
        text_add(t, "too large for the limit of file sizes (ulimit -f)");
    } else if (error == EROFS) {
        text_add(t, "read-only file system");
    } else if (error == ENOMEM) {
        text_add(t, "out of memory");
    } else if (error == EMFILE) {
        text_add(t, "too many open files");
    } else if (error == EPIPE) {
        text_add(t, "nobody reads it");
    } else {
        text_add(t, "error ");
        text_add_number(t, (uint64_t)error);
    }
}
