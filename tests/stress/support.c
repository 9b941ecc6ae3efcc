#include "support.h"
#include "statm.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#ifdef STRESS_STATIC
#include <hakmem/hakmem.h>
#endif

struct randomness random_start(uint64_t seed, uint64_t a, uint64_t b)
{
    struct randomness r = {mix64(mix64(mix64(seed + 1) + a + 1) + b + 1)};
    return r;
}

static uint64_t number_of(const char *name, const char *text)
{
    char *end;
    uint64_t value = strtoull(text, &end, 10);
    if (*end == 'k') {
        value *= 1000;
        end++;
    } else if (*end == 'M') {
        value *= 1000000;
        end++;
    }
    if (end == text || *end != 0)
        fail("%s %s: not a number", name, text);
    return value;
}

_Noreturn static void fail_unknown(const char *program, const char *found,
                                   const struct known_option *known)
{
    char names[512] = "";
    for (size_t used = 0; known->name != NULL && used < sizeof names; known++)
        used += (size_t)snprintf(names + used, sizeof names - used, " %s %s", known->name,
                                 known->number != NULL ? "N" : "TEXT");
    fail("%s: unknown option %s; there are%s", program, found, names);
}

void options_read(const char *program, int argc, char **argv, int first,
                  const struct known_option *known)
{
    for (int i = first; i < argc; i += 2) {
        const struct known_option *option = known;
        while (option->name != NULL && strcmp(argv[i], option->name) != 0)
            option++;
        if (option->name == NULL)
            fail_unknown(program, argv[i], known);
        if (i + 1 == argc)
            fail("%s needs a value", option->name);
        if (option->number != NULL)
            *option->number = number_of(option->name, argv[i + 1]);
        else
            *option->text = argv[i + 1];
    }
}

double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

size_t peak_rss_mib(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (size_t)usage.ru_maxrss >> 10;
}

size_t rss_mib(void) { return statm_read().resident >> 20; }

void *pages_from_kernel(size_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        fail("mmap of %zu bytes for the test itself failed", bytes);
    return p;
}

void show_malloc_in_force(const char *program, const char *wanted)
{
#ifdef STRESS_HAKMEM_NAMES
    (void)wanted;
    printf("%s: calls hakmem_malloc and its family\n", program);
#elif defined(STRESS_STATIC)
    (void)wanted;
    if ((void *)malloc != (void *)hakmem_malloc)
        fail("%s: malloc in force: expected hakmem's, found another", program);
    printf("%s: malloc is from the program itself\n", program);
#else
    Dl_info where;
    void *address = dlsym(RTLD_DEFAULT, "malloc");
    if (address == NULL || dladdr(address, &where) == 0 || where.dli_fname == NULL)
        fail("%s: cannot tell which object provides malloc", program);
    printf("%s: malloc is from %s\n", program, where.dli_fname);
    if (wanted != NULL && strstr(where.dli_fname, wanted) == NULL)
        fail("%s: malloc in force: expected an object named *%s*, found %s", program, wanted,
             where.dli_fname);
#endif
    fflush(stdout);
}

static void on_alarm(int number)
{
    static const char text[] = "watchdog: no end in sight, taken for a hang\n";
    (void)number;
    if (write(STDERR_FILENO, text, sizeof text - 1) < 0)
        _exit(99);
    abort();
}

void watchdog(unsigned seconds)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_alarm;
    sigaction(SIGALRM, &action, NULL);
    alarm(seconds);
}

void fail(const char *format, ...)
{
    char line[1024];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(line, sizeof line - 1, format, arguments);
    va_end(arguments);
    if (length < 0)
        length = 0;
    if ((size_t)length > sizeof line - 2)
        length = (int)sizeof line - 2;
    line[length++] = '\n';
    fflush(stdout);
    if (write(STDERR_FILENO, line, (size_t)length) < 0)
        _exit(99);
    abort();
}
