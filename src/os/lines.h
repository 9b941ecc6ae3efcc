/* Files of /proc, line by line, into a buffer of the caller. */
#ifndef HAKMEM_OS_LINES_H
#define HAKMEM_OS_LINES_H

#include <errno.h>

#include "base/memory.h"
#include "base/text.h"
#include "os/calls.h"

struct lines {
    int file;
    char *text; /* of `room` bytes; a line of half as many is cut */
    size_t room;
    size_t from, to; /* what is read and not yet told */
    bool cut;        /* the line that was told last has a rest, which is left out */
};

/* The next line, without its end; null after the last. */
static inline char *line_next(struct lines *lines)
{
    const size_t most = lines->room / 2;
    for (;;) {
        char *start = lines->text + lines->from;
        size_t there = lines->to - lines->from;
        const char *end = text_find(start, there, '\n');
        if (end == NULL && there < most) {
            bytes_copy(lines->text, start, there);
            lines->from = 0;
            lines->to = there;
            long got = call_read(lines->file, lines->text + there, most);
            if (got <= 0 && got != -EINTR)
                return NULL;
            lines->to += got > 0 ? (size_t)got : 0;
            continue;
        }
        size_t length = end != NULL ? (size_t)(end - start) : most - 1;
        bool is_rest = lines->cut;
        start[length] = '\0';
        lines->from += length + 1;
        lines->cut = end == NULL;
        if (!is_rest)
            return start;
    }
}

/* The number at the start of a text, behind blanks; `*end` is what follows. */
static inline uint64_t number_at(const char *text, unsigned base, const char **end)
{
    uint64_t value = 0;
    for (; *text == ' ' || *text == '\t'; text++)
        ;
    for (;; text++) {
        unsigned digit = base;
        if (*text >= '0' && *text <= '9')
            digit = (unsigned)(*text - '0');
        else if (*text >= 'a' && *text <= 'f')
            digit = (unsigned)(*text - 'a') + 10;
        if (digit >= base)
            break;
        value = value * base + digit;
    }
    *end = text;
    return value;
}

#endif
