#include "check.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef API_STATIC
#include <hakmem/hakmem.h>
#endif

#define FAILURES_SHOWN 20
#define CHILD_SECONDS 300 /* until a child counts as one that hangs */

const char *check_test = "start";
static const char *program_name;
static unsigned long checks, failures;

const char *error_name(int error)
{
#ifdef __GLIBC__
    const char *name = strerrorname_np(error);
    return name != NULL ? name : "no error of the system";
#else
    return strerror(error); /* has no names, but a word for every number */
#endif
}

static void say(int file, const char *format, va_list arguments)
{
    char line[1024];
    int length = vsnprintf(line, sizeof line, format, arguments);
    if (length >= (int)sizeof line)
        length = (int)sizeof line - 1;
    if (length > 0 && write(file, line, (size_t)length) < 0)
        _exit(99);
}

__attribute__((format(printf, 2, 3))) static void say_to(int file, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    say(file, format, arguments);
    va_end(arguments);
}

bool check_any_malloc(void) { return getenv("HAKMEM_TESTS_ANY_MALLOC") != NULL; }

#ifdef API_STATIC
static void prove_in_force(void)
{
    bool in_force = (void *)malloc == (void *)hakmem_malloc;
    if (!in_force && !check_any_malloc()) {
        say_to(STDERR_FILENO, "%s: malloc in force: expected hakmem's, found another\n",
               program_name);
        _exit(1);
    }
    say_to(STDOUT_FILENO, "%s: malloc is from the program itself\n", program_name);
}
#elif !defined(STRESS_HAKMEM_NAMES)
static void prove_in_force(void)
{
    Dl_info where;
    void *address = dlsym(RTLD_DEFAULT, "malloc");
    if (address == NULL || dladdr(address, &where) == 0) {
        say_to(STDERR_FILENO, "%s: cannot tell which object provides malloc\n", program_name);
        _exit(1);
    }
    bool in_force = strstr(where.dli_fname, "libhakmem") != NULL;
    if (!in_force && !check_any_malloc()) {
        say_to(STDERR_FILENO, "%s: malloc in force: expected libhakmem, found %s\n", program_name,
               where.dli_fname);
        _exit(1);
    }
    say_to(STDOUT_FILENO, "%s: malloc is from %s\n", program_name, where.dli_fname);
}
#endif

void check_start(const char *program)
{
    program_name = program;
#ifdef STRESS_HAKMEM_NAMES
    say_to(STDOUT_FILENO, "%s: calls hakmem_malloc and its family\n", program_name);
#else
    prove_in_force();
#endif
}

int check_end(void)
{
    say_to(STDOUT_FILENO, "%s: %lu checks, %lu failed\n", program_name, checks, failures);
    return failures != 0;
}

bool check_all_passed(void) { return failures == 0; }

static struct test *tests;

void test_add(struct test *test)
{
    struct test **at = &tests;
    while (*at != NULL && (*at)->place <= test->place)
        at = &(*at)->next;
    test->next = *at;
    *at = test;
}

void tests_run(void)
{
    for (const struct test *test = tests; test != NULL; test = test->next) {
        check_test = test->name;
        if (test->in_child)
            in_child(test->run);
        else
            test->run();
    }
}

int tests_main(const char *program)
{
    check_start(program);
    tests_run();
    return check_end();
}

bool check_result(bool passed, const char *file, int line, const char *format, ...)
{
    int kept = errno;
    __atomic_fetch_add(&checks, 1, __ATOMIC_RELAXED);
    if (passed)
        return true;
    unsigned long before = __atomic_fetch_add(&failures, 1, __ATOMIC_RELAXED);
    if (before < FAILURES_SHOWN) {
        char what[768];
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(what, sizeof what, format, arguments);
        va_end(arguments);
        const char *name = strrchr(file, '/');
        say_to(STDERR_FILENO, "%s:%d: %s: %s\n", name != NULL ? name + 1 : file, line, check_test,
               what);
    } else if (before == FAILURES_SHOWN) {
        say_to(STDERR_FILENO, "%s: more failures, not shown\n", program_name);
    }
    errno = kept;
    return false;
}

bool check_size(const char *what, size_t found, size_t expected, const char *file, int line)
{
    return check_result(found == expected, file, line, "%s: expected %zu, found %zu", what,
                        expected, found);
}

bool check_error(const char *what, int found, int expected, const char *file, int line)
{
    return check_result(found == expected, file, line, "%s: expected %d (%s), found %d (%s)", what,
                        expected, error_name(expected), found, error_name(found));
}

bool check_null(const char *what, void *p, const char *file, int line)
{
    return check_result(p == NULL, file, line, "%s: expected NULL, found %p", what, p);
}

bool check_aligned(void *p, size_t to, const char *file, int line)
{
    return check_result((uintptr_t)p % to == 0, file, line,
                        "address: expected a multiple of %zu, found %p", to, p);
}

bool check_bytes(const void *p, unsigned char value, size_t n, const char *file, int line)
{
    const unsigned char *byte = p;
    if (n == 0 || (byte[0] == value && memcmp(byte, byte + 1, n - 1) == 0))
        return check_result(true, file, line, " ");
    size_t i = 0;
    while (i + 1 < n && byte[i] == value)
        i++;
    return check_result(false, file, line,
                        "block %p of %zu bytes, byte %zu: expected %02x, found "
                        "%02x",
                        p, n, i, value, byte[i]);
}

void *check_need(const char *what, void *p, const char *file, int line)
{
    if (!check_result(p != NULL, file, line, "%s: expected a block, found NULL (%s)", what,
                      error_name(errno)))
        _exit(1);
    return p;
}

/* A word from its place; the multiplier spreads the number over all bytes. */
static inline uint64_t pattern_word(size_t i, unsigned number)
{
    return (i + 1) * 0x9e3779b97f4a7c15u + number * 0xd1b54a32d192ed03u;
}

void pattern_fill(void *p, size_t n, unsigned number)
{
    unsigned char *at = p;
    size_t i = 0;
    uint64_t word;
    for (; i < n / 8; i++) {
        word = pattern_word(i, number);
        memcpy(at + 8 * i, &word, 8);
    }
    word = pattern_word(i, number);
    memcpy(at + 8 * i, &word, n % 8);
}

static bool wrong_byte(const unsigned char *block, size_t n, size_t from, uint64_t word,
                       const char *file, int line)
{
    unsigned k = 0;
    while (block[from + k] == (unsigned char)(word >> 8 * k))
        k++;
    return check_result(
        false, file, line, "content of block %p, byte %zu of %zu: expected %02x, found %02x",
        (const void *)block, from + k, n, (unsigned)(word >> 8 * k & 0xff), block[from + k]);
}

bool pattern_check(const void *p, size_t n, unsigned number, const char *file, int line)
{
    const unsigned char *at = p;
    size_t i = 0;
    uint64_t word, found;
    for (; i < n / 8; i++) {
        word = pattern_word(i, number);
        memcpy(&found, at + 8 * i, 8);
        if (found != word)
            return wrong_byte(at, n, 8 * i, word, file, line);
    }
    word = pattern_word(i, number);
    if (memcmp(at + 8 * i, &word, n % 8) != 0)
        return wrong_byte(at, n, 8 * i, word, file, line);
    return check_result(true, file, line, " ");
}

static size_t next_size(size_t n) { return n < 6 * MiB ? n + n / 2 + 1 : 1; }

void use_the_heap(unsigned number)
{
    enum { N = 40 };
    unsigned char *blocks[N];
    size_t n = 1;
    for (unsigned i = 0; i < N; i++, n = next_size(n)) {
        blocks[i] = NEED("malloc", do_malloc(n));
        blocks[i][0] = blocks[i][n - 1] = (unsigned char)(i + number);
    }
    n = 1;
    for (unsigned i = 0; i < N; i++, n = next_size(n)) {
        unsigned char expected = (unsigned char)(i + number);
        CHECK(blocks[i][0] == expected && blocks[i][n - 1] == expected,
              "ends of a block of %zu bytes: expected %02x, found %02x and %02x", n, expected,
              blocks[i][0], blocks[i][n - 1]);
        do_free(blocks[i]);
    }
}

/* ---- threads and children ---- */

pthread_t started(void *(*f)(void *), void *argument)
{
    pthread_t thread;
    int error = pthread_create(&thread, NULL, f, argument);
    if (!check_result(error == 0, __FILE__, __LINE__, "pthread_create: %s", error_name(error)))
        _exit(1);
    return thread;
}

void in_thread(void *(*f)(void *), void *argument) { pthread_join(started(f, argument), NULL); }

void threads_start(pthread_t *threads, size_t n, void *(*f)(void *))
{
    for (size_t i = 0; i < n; i++)
        threads[i] = started(f, (void *)i);
}

void threads_join(const pthread_t *threads, size_t n)
{
    for (size_t i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
}

void in_threads(size_t n, void *(*f)(void *))
{
    pthread_t threads[n];
    threads_start(threads, n, f);
    threads_join(threads, n);
}

static int status_of(pid_t child)
{
    int status = -1;
    check_result(child > 0 && waitpid(child, &status, 0) == child, __FILE__, __LINE__, "fork: %s",
                 error_name(errno));
    return status;
}

void in_child(void (*f)(void))
{
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        alarm(CHILD_SECONDS);
        f();
        fflush(stdout);
        _exit(!check_all_passed());
    }
    int status = status_of(child);
    check_result(status == 0, __FILE__, __LINE__, "status of the child: expected 0, found %#x",
                 (unsigned)status);
}

struct child_end child_end(void (*f)(void *), void *argument)
{
    static char said[64 * KiB];
    int ends[2];
    if (!check_result(pipe(ends) == 0, __FILE__, __LINE__, "pipe: %s", error_name(errno)))
        _exit(1);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        const struct rlimit none = {0, 0};
        setrlimit(RLIMIT_CORE, &none);
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        alarm(CHILD_SECONDS);
        f(argument);
        _exit(!check_all_passed());
    }
    close(ends[1]);
    size_t length = 0;
    ssize_t got;
    while ((got = read(ends[0], said + length, sizeof said - 1 - length)) > 0)
        length += (size_t)got;
    said[length] = 0;
    close(ends[0]);
    return (struct child_end){status_of(child), said};
}

bool check_aborts(const char *what, void (*f)(void *), void *argument, const char *words,
                  const char *file, int line)
{
    struct child_end end = child_end(f, argument);
    return check_result(WIFSIGNALED(end.status) && WTERMSIG(end.status) == SIGABRT &&
                            strncmp(end.said, "hakmem: ", 8) == 0 && strstr(end.said, words),
                        file, line,
                        "%s(%p): expected SIGABRT and a report with '%s', found status %#x and: %s",
                        what, argument, words, (unsigned)end.status, end.said);
}
