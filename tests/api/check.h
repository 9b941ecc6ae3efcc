/* Checks for the tests of the public functions: a failed one prints file, line, what was expected
 * and what was found, and the program goes on and ends with 1. Output goes by write(2) out of
 * static memory, so that the checks add no calls of the allocator.
 *
 *   TEST(malloc_zero_is_unique)
 *   {
 *       CHECK(do_malloc(0) != do_malloc(0), "malloc(0): expected two addresses");
 *   }
 *
 *   int main(void) { return tests_main("values"); }
 *
 * STRESS_HAKMEM_NAMES as in ../stress/names.h. */
#ifndef HAKMEM_TESTS_CHECK_H
#define HAKMEM_TESTS_CHECK_H

#include "../stress/names.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define CHECK_UNDER_THREAD_SANITIZER 0
#if defined(__SANITIZE_THREAD__)
#undef CHECK_UNDER_THREAD_SANITIZER
#define CHECK_UNDER_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#undef CHECK_UNDER_THREAD_SANITIZER
#define CHECK_UNDER_THREAD_SANITIZER 1
#endif
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define KiB ((size_t)1 << 10)
#define MiB ((size_t)1 << 20)

/* Proves that the malloc under test is active, else ends the program. HAKMEM_TESTS_ANY_MALLOC=1
 * in the environment lets any malloc pass, to try the tests themselves. */
void check_start(const char *program);

/* Whether HAKMEM_TESTS_ANY_MALLOC is set: checks of what hakmem alone promises are left out. */
bool check_any_malloc(void);

/* The program's exit status; prints how many checks were made. */
int check_end(void);

/* Whether every check since the start of the program has passed. */
bool check_all_passed(void);

/* As "ENOMEM"; strerror would allocate for numbers that it does not know. */
const char *error_name(int error);

extern const char *check_test; /* the test that runs */

/* A test of the program, which is run where it stands among the others: TEST(name) { ... } */
#define TEST(name) TEST_AT(__LINE__, name, false)
#define TEST_FIRST(name) TEST_AT(0, name, false)          /* before all others */
#define TEST_IN_CHILD(name) TEST_AT(__LINE__, name, true) /* as in_child does */
#define TEST_AT(place, name, in_child)                                                    \
    static void name(void);                                                               \
    static struct test name##_test = {#name, name, (in_child), (place), NULL};            \
    __attribute__((constructor)) static void name##_add(void) { test_add(&name##_test); } \
    static void name(void)

struct test {
    const char *name;
    void (*run)(void);
    bool in_child;
    unsigned place;
    struct test *next;
};
void test_add(struct test *test);
void tests_run(void);

/* check_start, all tests, and the result of check_end. */
int tests_main(const char *program);

bool check_result(bool passed, const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* The value is whether it passed. `...`: what is checked, as for printf, with expected and found.
 */
#define CHECK(condition, ...) check_result((condition), __FILE__, __LINE__, __VA_ARGS__)

#define CHECK_SIZE(what, found, expected) \
    check_size((what), (found), (expected), __FILE__, __LINE__)
#define CHECK_ERROR(what, found, expected) \
    check_error((what), (found), (expected), __FILE__, __LINE__)
#define CHECK_NULL(what, p) check_null((what), (p), __FILE__, __LINE__)
#define CHECK_ALIGNED(p, to) check_aligned((p), (to), __FILE__, __LINE__)
#define CHECK_BYTES(p, value, n) check_bytes((p), (value), (n), __FILE__, __LINE__)

/* A null pointer here ends the program: what follows would only fail by it. */
#define NEED(what, p) check_need((what), (p), __FILE__, __LINE__)

bool check_size(const char *what, size_t found, size_t expected, const char *file, int line);
bool check_error(const char *what, int found, int expected, const char *file, int line);
bool check_null(const char *what, void *p, const char *file, int line);
bool check_aligned(void *p, size_t to, const char *file, int line);
bool check_bytes(const void *p, unsigned char value, size_t n, const char *file, int line);
void *check_need(const char *what, void *p, const char *file, int line);

/* Bytes that follow from their place and a number, over n bytes, and their check. */
void pattern_fill(void *p, size_t n, unsigned number);
#define CHECK_PATTERN(p, n, number) pattern_check((p), (n), (number), __FILE__, __LINE__)
bool pattern_check(const void *p, size_t n, unsigned number, const char *file, int line);

/* Blocks of sizes from 1 byte to 6 MiB at once, each of them written, checked and freed. */
void use_the_heap(unsigned number);

/* ---- threads and children ---- */

/* Runs f(argument) in a thread of its own. The program ends where there is none. */
pthread_t started(void *(*f)(void *), void *argument);

/* The same, to its end. */
void in_thread(void *(*f)(void *), void *argument);

/* In n threads, each of which is given its number, from 0. */
void threads_start(pthread_t *threads, size_t n, void *(*f)(void *number));
void threads_join(const pthread_t *threads, size_t n);
void in_threads(size_t n, void *(*f)(void *number));

/* Runs f in a child, which must end with 0: after f, by the result of its checks. One that hangs is
 * ended after 300 seconds. */
void in_child(void (*f)(void));

/* How such a child ends that is given something, and what it says on standard error, of which the
 * first 64 KiB are kept until the next. */
struct child_end {
    int status; /* as of waitpid */
    const char *said;
};
struct child_end child_end(void (*f)(void *), void *argument);

/* It must end by SIGABRT, after a report of hakmem's that has these words. */
#define CHECK_ABORTS(f, argument, words) \
    check_aborts(#f, (f), (argument), (words), __FILE__, __LINE__)
bool check_aborts(const char *what, void (*f)(void *), void *argument, const char *words,
                  const char *file, int line);

#ifdef __cplusplus
}
#endif

#endif
