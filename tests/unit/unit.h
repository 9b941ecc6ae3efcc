/* One check for all unit tests: says where and what, and ends the program. */
#ifndef HAKMEM_TESTS_UNIT_H
#define HAKMEM_TESTS_UNIT_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define EXPECT_EQUAL(found, expected)                                                          \
    do {                                                                                       \
        unsigned long long found_ = (unsigned long long)(found);                               \
        unsigned long long expected_ = (unsigned long long)(expected);                         \
        if (found_ != expected_) {                                                             \
            fprintf(stderr, "%s:%d: %s: expected %s = %llu, found %llu\n", __FILE__, __LINE__, \
                    #found, #expected, expected_, found_);                                     \
            exit(1);                                                                           \
        }                                                                                      \
    } while (0)

#define EXPECT(condition) EXPECT_EQUAL(!!(condition), 1)

/* The same numbers on every run. */
static inline uint64_t next_random(void)
{
    static uint64_t state = 0x9e3779b97f4a7c15;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

#endif
