/* Lines of scripts: the functions, files and lines that frames of an interpreter are at. Each gets
 * an address, where no code can be, so that it can stand in a call stack; it keeps it, as it is
 * noted for ever. */
#ifndef HAKMEM_PROFILE_SCRIPT_LINES_H
#define HAKMEM_PROFILE_SCRIPT_LINES_H

#include "base/defs.h"

/* Of addresses that no processor can have. Below it is where the line is noted. */
#define SCRIPT_FIRST ((uintptr_t)1 << 60)
#define SCRIPT_STEP 16 /* at least from one to the next */
#define SCRIPT_MOST ((size_t)1 << 17)

/* Bytes of a name that are noted; what is longer is cut. */
#define SCRIPT_FUNCTION_MOST 200
#define SCRIPT_FILE_MOST 400

struct script_line {
    struct script_line *next;           /* noted before it; constant, as most of it is */
    struct script_line *next_of_bucket; /* noted before it */
    uint64_t address, hash;
    uint32_t line; /* 0: unknown */
    uint32_t function_bytes, file_bytes;
    uint32_t recorded; /* the recording that has it; atomic, and the only field that changes */
    char names[];      /* the function's, the file's, and a zero */
};

/* Names as they are noted: UTF-8, in which bytes that would not be, blanks, colons, backslashes and
 * what controls a terminal are \ooo, in octal. */
struct script_name {
    size_t length, most;
    char *bytes;
};
void script_name_add(struct script_name *name, uint32_t letter);

/* Around script_line_note; what is found in between belongs to this thread. The caller holds a
 * cache's lock or its like (os/rank.h). */
void script_lines_enter(void);
void script_lines_leave(void);

/* A function at a line; 0 where there is no memory, or there are too many. The names' bytes are
 * copied. */
uintptr_t script_line_note(const struct script_name *function, const struct script_name *file,
                           uint32_t line);

/* The line with an address that was noted; null for any other address. */
static inline struct script_line *script_line_at(uintptr_t address)
{
    return address >> 60 == 1 ? (struct script_line *)(address - SCRIPT_FIRST) : NULL;
}

/* The one noted last; null: none. */
const struct script_line *script_lines(void);

/* Bytes of metadata for these, for ever. */
size_t script_lines_bytes(void);

/* Where its address is, for who reads from outside. */
extern struct script_line *script_lines_first HIDDEN;

#endif
