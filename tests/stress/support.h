/* What the stress programs share besides blocks: options, random numbers, time, the end after a
 * failure, and which malloc is active. Nothing here allocates from the allocator under test. */
#ifndef HAKMEM_TESTS_SUPPORT_H
#define HAKMEM_TESTS_SUPPORT_H

#include <stddef.h>
#include <stdint.h>

#define KiB ((size_t)1 << 10)
#define MiB ((size_t)1 << 20)

/* A counter through a mixing function: every seed gives its own sequence, equal on every machine.
 */
struct randomness {
    uint64_t state;
};

static inline uint64_t mix64(uint64_t x)
{
    x = (x ^ (x >> 31)) * 0x7fb5d329728ea185u;
    x = (x ^ (x >> 27)) * 0x81dadef4bc2dd44du;
    return x ^ (x >> 33);
}

static inline uint64_t random_next(struct randomness *r)
{
    r->state += 0x9e3779b97f4a7c15u;
    return mix64(r->state);
}

/* A sequence of its own for each (seed, a, b). */
struct randomness random_start(uint64_t seed, uint64_t a, uint64_t b);

/* `--name VALUE`: either a number, which may end in k or M (thousands, millions), or a text. */
struct known_option {
    const char *name;
    uint64_t *number;
    const char **text;
};

/* Reads the options that stand in argv from `first` on. An option that is not in `known`, whose
 * last entry has no name, ends the program. */
void options_read(const char *program, int argc, char **argv, int first,
                  const struct known_option *known);

double seconds_now(void);
size_t peak_rss_mib(void);
size_t rss_mib(void);

/* Zeroed pages straight from the kernel; ends the program when there are none. */
void *pages_from_kernel(size_t bytes);

/* Prints which object provides malloc; with `wanted`, ends the program unless that object's path
 * contains it. With STRESS_HAKMEM_NAMES it only says that hakmem_malloc is called. */
void show_malloc_in_force(const char *program, const char *wanted);

/* After `seconds` the program says that it hangs, and aborts. Call again to set anew. */
void watchdog(unsigned seconds);

/* One line on stderr, then abort. */
_Noreturn void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
