/* The fuzzer's bytes, read from the front. After the last byte all are 0, so any bytes are an
 * input. A broken invariant ends the program, and the fuzzer keeps the input. */
#ifndef HAKMEM_TESTS_FUZZ_BYTES_H
#define HAKMEM_TESTS_FUZZ_BYTES_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define MUST(condition, ...)                                                  \
    do {                                                                      \
        if (!(condition)) {                                                   \
            fprintf(stderr, "\n%s:%d: %s: ", __FILE__, __LINE__, #condition); \
            fprintf(stderr, __VA_ARGS__);                                     \
            fputc('\n', stderr);                                              \
            abort();                                                          \
        }                                                                     \
    } while (0)

struct bytes {
    const uint8_t *at;
    size_t left;
};

static inline unsigned next_byte(struct bytes *bytes)
{
    if (bytes->left == 0)
        return 0;
    bytes->left--;
    return *bytes->at++;
}

/* The first byte is the highest. */
static inline uint64_t next_number(struct bytes *bytes, unsigned count)
{
    uint64_t number = 0;
    while (count-- > 0)
        number = number << 8 | next_byte(bytes);
    return number;
}

/* libFuzzer's two; a target has the second, and the first where it needs one. */
int LLVMFuzzerInitialize(int *count, char ***arguments);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
