/* Text in a buffer of the caller, for reports, which must not allocate. Text that does not fit is
 * cut; a zero always ends it. Async-signal-safe. */
#ifndef HAKMEM_BASE_TEXT_H
#define HAKMEM_BASE_TEXT_H

#include "base/atomic.h"
#include "base/defs.h"

struct text {
    char *start;
    size_t room; /* with the ending zero */
    size_t used;
};

void text_init(struct text *t, char *buffer, size_t room);
void text_add(struct text *t, const char *words);

/* Words from outside of hakmem (a name, a path), `most` bytes of them: what would break the line or
 * play with a terminal becomes a question mark. */
void text_add_foreign(struct text *t, const char *words, size_t most);

/* Words and values, as printf would write them: %s, of what is hakmem's own; %.*s, of what is not,
 * as text_add_foreign does; %u and %x, with l or z for 64 bits, # for 0x; widths, with 0 for zeroes
 * and - for words at the left; %%. Nothing else. */
#define TEXT_FORMAT(from) __attribute__((format(printf, from, (from) + 1)))
void text_write(struct text *t, const char *format, ...) TEXT_FORMAT(2);

/* The same, at the start of a buffer. */
struct text text_of(char *buffer, size_t room, const char *format, ...) TEXT_FORMAT(3);

/* A file's name; %p in it stands for the process's number, and %% for %. */
void text_add_path(struct text *t, const char *from, uint64_t process);

/* As strlen, strcmp == 0, memcmp == 0 and memchr, but never a call: where these are used a lock is
 * held, and libc's functions may be replaced by others that allocate. */
FAST size_t text_length(const char *text)
{
    size_t n = 0;
    for (; text[n] != '\0'; n++)
        FORGET(text); /* or a compiler makes a call of it */
    return n;
}

FAST bool text_begins(const char *text, const char *with, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (text[i] != with[i])
            return false;
    return true;
}

FAST bool text_same(const char *a, const char *b)
{
    for (; *a == *b; a++, b++)
        if (*a == '\0')
            return true;
    return false;
}

/* Null where it is not. */
FAST const char *text_find(const char *text, size_t length, char c)
{
    for (size_t i = 0; i < length; i++)
        if (text[i] == c)
            return text + i;
    return NULL;
}

/* What an error of a file means, by its errno. */
void text_add_error(struct text *t, int error);

#endif
