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

/* What an error of a file means, by its errno. */
void text_add_error(struct text *t, int error);

#endif
