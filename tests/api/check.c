#include "check.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#ifdef API_STATIC
#include <hakmem/hakmem.h>
#endif

#define FAILURES_SHOWN 20

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
