/* What the cases share. */
#ifndef HAKMEM_TESTS_MISUSE_CASES_H
#define HAKMEM_TESTS_MISUSE_CASES_H

#include "../stress/names.h"

#include <errno.h>
#include <stdbool.h>

struct test_case {
    const char *name;
    void (*run)(size_t number);
};

#define CASE(name)  \
    {               \
#name, name \
    }
extern const struct test_case situations[]; /* ended by a null name */

/* Set during a wrong call: with hakmem_ names, libc's malloc is watched then. */
extern volatile bool malloc_forbidden;

void *get(size_t n);

/* Says which address the report must name. */
void culprit(const void *p);
void wrong_free(void *p);
void watched_free(void *p);

#endif
