/* What is copied and cleared while a lock is held. Libc's memcpy and memset, of which compilers
 * make use where they see a loop of that kind, may be replaced by another library's, which may
 * allocate. */
#ifndef HAKMEM_BASE_COPY_H
#define HAKMEM_BASE_COPY_H

#include "base/asm.h"

typedef uint64_t copied_word __attribute__((may_alias));
typedef uint64_t copied_pair __attribute__((vector_size(16), may_alias, aligned(8)));

/* n words, from the first on: `to` may lie below `from` and overlap it. */
FAST void words_move(void *to, const void *from, size_t n)
{
    copied_word *t = to;
    const copied_word *f = from, *end = f + n;
    for (; f + 4 <= end; f += 4, t += 4) {
        copied_pair first = ((const copied_pair *)f)[0], second = ((const copied_pair *)f)[1];
        ((copied_pair *)t)[0] = first;
        ((copied_pair *)t)[1] = second;
        FORGET(t);
    }
    if (f + 2 <= end) {
        *(copied_pair *)t = *(const copied_pair *)f;
        FORGET(t);
        f += 2, t += 2;
    }
    if (f < end)
        *t = *f;
}

FAST void words_fill(void *p, uint64_t value, size_t n)
{
    copied_word *at = p, *end = at + n;
    for (; at + 4 <= end; at += 4) {
        ((copied_pair *)at)[0] = ((copied_pair *)at)[1] = (copied_pair){value, value};
        FORGET(at);
    }
    for (; at < end; at++) {
        *at = value;
        FORGET(at);
    }
}

/* `bytes` is a multiple of 8, as p is. */
FAST void words_clear(void *p, size_t bytes) { words_fill(p, 0, bytes / sizeof(uint64_t)); }

FAST bool words_same(const void *a, const void *b, size_t n)
{
    const copied_word *one = a, *other = b;
    for (size_t i = 0; i < n; i++)
        if (one[i] != other[i])
            return false;
    return true;
}

/* A few bytes. */
FAST void bytes_copy(char *to, const char *from, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        to[i] = from[i];
        FORGET(to);
    }
}

#endif
