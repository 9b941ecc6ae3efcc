/* Memory and text that are copied, filled, compared and searched while a lock is held. Libc's
 * memcpy and memset, of which compilers make use where they see a loop of that kind, may be
 * replaced by another library's, which may allocate. */
#ifndef HAKMEM_BASE_MEMORY_H
#define HAKMEM_BASE_MEMORY_H

#include "base/atomic.h"

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

/* Words that other threads may read or write meanwhile: each was right at some time. */
FAST void words_copy_shared(void *to, const void *from, size_t n)
{
    for (size_t i = 0; i < n; i++)
        store_relaxed((copied_word *)to + i, load_relaxed((const copied_word *)from + i));
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

/* A hash of so many bytes, at any address. By two words at a time, as a multiplication waits for
 * the one before it. */
static inline uint64_t bytes_hash(uint64_t hash, const void *start, size_t bytes)
{
    typedef uint64_t any_word __attribute__((may_alias, aligned(1)));
    const size_t word = sizeof(any_word);
    const char *at = start;
    uint64_t a = hash, b = bytes;
    size_t i = 0;
    for (; i + 2 * word <= bytes; i += 2 * word) {
        a = (a ^ *(const any_word *)(at + i)) * MIXED_STEP;
        b = (b ^ *(const any_word *)(at + i + word)) * MIXED_STEP;
        a ^= a >> 32;
        b ^= b >> 32;
    }
    for (; i + word <= bytes; i += word)
        a = (a ^ *(const any_word *)(at + i)) * MIXED_STEP;
    if (i < bytes && bytes >= word)
        b = (b ^ *(const any_word *)(at + bytes - word)) * MIXED_STEP;
    for (; i < bytes && bytes < word; i++)
        a = (a ^ (unsigned char)at[i]) * MIXED_STEP;
    return mixed(a + b * MIXED_STEP);
}

/* Whether it holds zeroes. `size` is a multiple of 16, as p is. */
static inline bool is_zero(const void *p, size_t size)
{
    typedef uint64_t pair __attribute__((vector_size(16), may_alias));
    const pair *at = p, *end = at + size / sizeof *at;
    pair found = {0, 0};
    for (; at + 4 <= end; at += 4)
        found |= (at[0] | at[1]) | (at[2] | at[3]);
    for (; at < end; at++)
        found |= *at;
    return (found[0] | found[1]) == 0;
}

/* ---- text ----
 *
 * As strlen, memcmp == 0, strcmp == 0 and memchr. */
FAST size_t text_length(const char *text)
{
    size_t n = 0;
    for (; text[n] != '\0'; n++)
        FORGET(text); /* or a compiler makes a call of it */
    return n;
}

FAST bool text_begins(const char *text, const char *with, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (text[i] != with[i])
            return false;
    return true;
}

FAST bool text_same(const char *a, const char *b)
{
    for (; *a == *b; a++, b++)
        if (*a == '\0')
            return true;
    return false;
}

/* Null where it is not. */
FAST const char *text_find(const char *text, size_t length, char c)
{
    for (size_t i = 0; i < length; i++)
        if (text[i] == c)
            return text + i;
    return NULL;
}

#endif
