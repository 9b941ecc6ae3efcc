/*
 * Clock, counters and resident memory of a row. Nothing here calls malloc
 * between clock_start and clock_stop.
 */
#include "random.h"
#include "suite.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

static uint64_t wall_start, cpu_start;
static struct rusage usage_start;

void clock_start(void)
{
    getrusage(RUSAGE_SELF, &usage_start);
    cpu_start = clock_of(CLOCK_PROCESS_CPUTIME_ID);
    wall_start = clock_now();
}

void clock_stop(struct outcome *out)
{
    struct rusage usage;
    out->seconds = 1e-9 * (double)(clock_now() - wall_start);
    out->cpu_seconds = 1e-9 * (double)(clock_of(CLOCK_PROCESS_CPUTIME_ID) - cpu_start);
    getrusage(RUSAGE_SELF, &usage);
    out->minor_faults = usage.ru_minflt - usage_start.ru_minflt;
    out->voluntary_switches = usage.ru_nvcsw - usage_start.ru_nvcsw;
    out->involuntary_switches = usage.ru_nivcsw - usage_start.ru_nivcsw;
}

void outcome_add(struct outcome *out, const char *name, const char *unit, double value)
{
    if (out->figure_count == MOST_FIGURES)
        give_up(EXIT_SYSTEM, "more than %d figures: %s", MOST_FIGURES, name);
    out->figures[out->figure_count++] = (struct figure){name, unit, value};
}

bool peak_reset(void)
{
    int fd = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    bool done = write(fd, "5", 1) == 1;
    close(fd);
    return done;
}

/* Reads the file whole into `text` and ends it; false if it can't be read. */
static bool file_read(const char *path, char *text, size_t room)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t got = read(fd, text, room - 1);
    close(fd);
    if (got <= 0)
        return false;
    text[got] = '\0';
    return true;
}

static long field_kib(const char *path, const char *field)
{
    char text[8192];
    if (!file_read(path, text, sizeof text))
        return -1;
    const char *at = strstr(text, field);
    return at != NULL ? strtol(at + strlen(field), NULL, 10) : -1;
}

long status_kib(const char *field) { return field_kib("/proc/self/status", field); }

uint64_t resident_exact(void)
{
    long kib = field_kib("/proc/self/smaps_rollup", "\nAnonymous:");
    if (kib < 0)
        give_up(EXIT_SYSTEM, "/proc/self/smaps_rollup doesn't tell what is resident");
    return (uint64_t)kib * 1024;
}

uint64_t resident_quick(void)
{
    char text[256];
    if (!file_read("/proc/self/statm", text, sizeof text))
        give_up(EXIT_SYSTEM, "/proc/self/statm can't be read");
    char *at = text;
    strtoul(at, &at, 10); /* size */
    unsigned long resident = strtoul(at, &at, 10), shared = strtoul(at, &at, 10);
    return (resident - shared) * (uint64_t)sysconf(_SC_PAGESIZE);
}

const char *allocator_path(void)
{
    Dl_info info;
    void *address = dlsym(RTLD_DEFAULT, "malloc");
    if (address == NULL || dladdr(address, &info) == 0 || info.dli_fname == NULL)
        return "?";
    return info.dli_fname;
}

void *own_memory(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        give_up(EXIT_NO_MEMORY, "no memory for the program's own tables (%zu bytes)", bytes);
    return memory;
}

void own_release(void *memory, size_t bytes) { munmap(memory, bytes); }

uint32_t *own_permutation(uint64_t count, uint64_t seed)
{
    struct random rng = random_start(seed, UINT64_C(0x5eed));
    uint32_t *order = own_memory(count * sizeof *order);
    for (uint64_t i = 0; i < count; i++) {
        uint64_t j = random_low(random_next(&rng), i + 1);
        order[i] = order[j];
        order[j] = (uint32_t)i;
    }
    return order;
}

noreturn void give_up(int code, const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(text, sizeof text - 1, format, arguments);
    va_end(arguments);
    if (length < 0)
        length = 0;
    if ((size_t)length > sizeof text - 2)
        length = sizeof text - 2;
    text[length++] = '\n';
    if (write(STDERR_FILENO, "suite: ", 7) < 0 || write(STDERR_FILENO, text, (size_t)length) < 0)
        _exit(code);
    /* No exit handlers: after damaged content nothing of the heap is trusted. */
    _exit(code);
}
