/* What the cases share. */
#ifndef HAKMEM_TESTS_MISUSE_CASES_H
#define HAKMEM_TESTS_MISUSE_CASES_H

#include "../stress/names.h"

#include <errno.h>
#include <stdbool.h>

struct test_case {
    const char *name;
    void (*run)(size_t n);
    struct test_case *next;
};
extern struct test_case *test_cases;

/* One, which is given a number: CASE(name) { ... } */
#define CASE(name)                                            \
    static void name(size_t n);                               \
    __attribute__((constructor)) static void name##_add(void) \
    {                                                         \
        static struct test_case self = {#name, name, NULL};   \
        self.next = test_cases;                               \
        test_cases = &self;                                   \
    }                                                         \
    static __attribute__((noinline)) void name(__attribute__((unused)) size_t n)

/* Set during a wrong call: with hakmem_ names, libc's malloc is watched then. */
extern volatile bool malloc_forbidden;

void *get(size_t n);

/* Says which address the report must name. */
void culprit(const void *p);
void wrong_free(void *p);
void watched_free(void *p);

#endif
