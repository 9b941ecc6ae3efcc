/* Calls of malloc and its relatives to which the program gives a name, for heap profiles. Their
 * fast bodies are those without a name. The slow path is told the name by a variable of the thread,
 * and only while a profile is on: nothing else costs an instruction more. */
#ifndef HAKMEM_API_NAMED_H
#define HAKMEM_API_NAMED_H

#include "base/defs.h"

/* A name is a string; or this one, which stands for "token NUMBER". Null is no name. */
extern const char by_token[] HIDDEN;

/* As those of api/slow.h, under the name. `token` matters with by_token alone. */
void *slow_malloc_named(size_t n, const char *name, size_t token);
void *slow_calloc_named(size_t n, const char *name, size_t token);
void *slow_realloc_named(void *p, size_t n, size_t usable, const char *name, size_t token);
void *slow_aligned_named(size_t align, size_t n, const char *name, size_t token);

/* Around any other call: what this thread allocates from name_begin to name_end has the name. */
struct name_text {
    char text[32];
};
void name_begin(struct name_text *room, const char *name, size_t token);
void name_end(void);

#endif
