/* What every other file uses: attributes for hot and cold functions, sizes, small arithmetic on
 * bits and numbers, assertions. No OS, no globals. */
#ifndef HAKMEM_BASE_DEFS_H
#define HAKMEM_BASE_DEFS_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

/* A fast function is part of a path that runs on every call; a slow one is entered now and then,
 * and then works on many blocks; a cold one runs once, or at the end. */
#define FAST static inline __attribute__((always_inline))
#define SLOW __attribute__((noinline))
#define COLD __attribute__((noinline, cold))
/* Constants that hardly any process reads: they lie apart from the others (tools/layout.py). */
#define SELDOM __attribute__((section(".rodata_seldom")))

/* Where the function that says so returns to: who called it. */
#define RETURN_ADDRESS __builtin_extract_return_addr(__builtin_return_address(0))

/* On data that fast paths read: known to be ours, it is addressed directly. */
#define HIDDEN __attribute__((visibility("hidden")))

#define KiB ((size_t)1 << 10)
#define MiB ((size_t)1 << 20)
#define GiB ((size_t)1 << 30)

#define CACHE_LINE 64

static inline size_t larger(size_t a, size_t b) { return a > b ? a : b; }
static inline size_t smaller(size_t a, size_t b) { return a < b ? a : b; }
static inline size_t excess(size_t have, size_t most) { return have > most ? have - most : 0; }

static inline bool is_power_of_two(size_t x) { return x != 0 && (x & (x - 1)) == 0; }

/* `step` is a power of two; x must be at most SIZE_MAX - step + 1. */
static inline size_t round_up(size_t x, size_t step) { return (x + step - 1) & ~(step - 1); }

static inline unsigned lowest_bit(uint64_t x) { return (unsigned)__builtin_ctzll(x); }
static inline unsigned highest_bit(uint64_t x) { return 63u - (unsigned)__builtin_clzll(x); }
static inline unsigned count_bits(uint64_t x) { return (unsigned)__builtin_popcountll(x); }

/* The lowest n bits, n from 0 to 64. */
static inline uint64_t low_bits(unsigned n)
{
    return n >= 64 ? ~(uint64_t)0 : ((uint64_t)1 << n) - 1;
}

/* The positions in `set` at which a run of n ones begins, n from 1 to 64. */
static inline uint64_t run_starts(uint64_t set, unsigned n)
{
    for (unsigned have = 1; have < n;) {
        unsigned step = have < n - have ? have : n - have;
        set &= set >> step;
        have += step;
    }
    return set;
}

/* The length of the longest run of ones: halving steps up, then down, so that the cost is
 * logarithmic in the length. */
static inline unsigned longest_run(uint64_t set)
{
    if (set == 0)
        return 0;
    if (set == ~(uint64_t)0)
        return 64;
    unsigned length = 1;
    uint64_t starts[6];
    unsigned step = 0;
    starts[0] = set;
    while (step < 5) {
        uint64_t next = starts[step] & (starts[step] >> (1u << step));
        if (next == 0)
            break;
        starts[++step] = next;
    }
    length = 1u << step;
    uint64_t run = starts[step];
    while (step-- > 0) {
        uint64_t longer = run & (starts[step] >> length);
        if (longer != 0) {
            run = longer;
            length += 1u << step;
        }
    }
    return length;
}

/* Random numbers, and hashes: SplitMix64 of Steele, Lea and Flood, 2014. A state grows by
 * MIXED_STEP for each number, and the number is the state, mixed. */
#define MIXED_STEP 0x9e3779b97f4a7c15u /* 2^64 / the golden ratio: steps that never repeat */

static inline uint64_t mixed(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

/* ---- assertions ----
 *
 * Conditions that debug builds check. HAKMEM_ASSERT turns them on, together with the
 * ranks and holders of locks (os/lock.h); CMake sets it for Debug builds and for libhakmem-debug.
 * (It is not NDEBUG, because tests are compiled without NDEBUG against a release library, and a
 * lock must have one size on both sides.) A release build only compiles them. */

#ifndef HAKMEM_ASSERT
#define HAKMEM_ASSERT 0
#endif

#if HAKMEM_ASSERT

/* Writes what and where to standard error, and the locks that the thread holds; then ends the
 * process at once. Allocates nothing, takes no lock, and asks no handler of the program's, which
 * might do either. Defined one layer above, in os/lock.c. */
COLD __attribute__((noreturn)) void assertion_failed(const char *file, unsigned line,
                                                     const char *function, const char *what);

#define ASSERT(x) (likely(x) ? (void)0 : assertion_failed(__FILE__, __LINE__, __func__, #x))

#else
#define ASSERT(x) ((void)sizeof(!(x)))
#endif

#endif
