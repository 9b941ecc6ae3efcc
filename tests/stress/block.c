#include "block.h"

#include "names.h"

#include <stdio.h>
#include <string.h>

#define LINE 64
#define EDGE 256
#define SAMPLES 12
#define STEP 0x9e3779b97f4a7c15u

size_t least_alignment = 16;

static const char *const maker_names[] = {
    "malloc", "calloc", "realloc", "aligned_alloc", "posix_memalign", "memalign",
};

/* What a block must contain: word i is key + i * STEP but for the two words that carry the size and
 * the serial number. */
struct pattern {
    uint64_t key;
    uint64_t size;
    uint64_t serial;
};

static struct pattern pattern_of(const struct record *r)
{
    struct pattern p;
    p.key = mix64((uint64_t)(uintptr_t)r->block ^ mix64(r->serial + r->size * STEP));
    p.size = r->size;
    p.serial = r->serial;
    return p;
}

static inline uint64_t pattern_word(const struct pattern *p, size_t i)
{
    if (i < 2 && p->size >= 32)
        return i == 0 ? p->size : p->serial;
    return p->key + i * STEP;
}

/* The parts of a block that are filled and checked; offsets are multiples of 8. */
struct part {
    size_t offset, length;
};

static unsigned parts_of(const struct pattern *p, struct part parts[SAMPLES + 2])
{
    if (p->size <= BLOCK_WHOLE) {
        parts[0] = (struct part){0, p->size};
        return 1;
    }
    unsigned n = 0;
    parts[n++] = (struct part){0, EDGE};
    size_t between = (p->size - 2 * EDGE - LINE) / SAMPLES;
    for (unsigned i = 0; i < SAMPLES; i++) {
        uint64_t hash = mix64(p->key + i);
        size_t offset = EDGE + i * between + hash % (between - LINE);
        parts[n++] = (struct part){offset / LINE * LINE, LINE};
    }
    size_t tail = (p->size - EDGE) / 8 * 8;
    parts[n++] = (struct part){tail, p->size - tail};
    return n;
}

static void fill_part(unsigned char *block, const struct pattern *p, struct part part)
{
    size_t i = part.offset / 8;
    unsigned char *at = block + part.offset;
    size_t left = part.length;
    uint64_t word;
    for (; left >= 8 && i < 2; left -= 8, at += 8, i++) {
        word = pattern_word(p, i);
        memcpy(at, &word, 8);
    }
    for (word = p->key + i * STEP; left >= 8; left -= 8, at += 8, i++, word += STEP)
        memcpy(at, &word, 8);
    if (left != 0) {
        word = pattern_word(p, i);
        memcpy(at, &word, left);
    }
}

static void fill(struct record *r, struct worker *me)
{
    r->serial = (uint64_t)me->number << 32 | me->made++;
    struct pattern p = pattern_of(r);
    struct part parts[SAMPLES + 2];
    unsigned n = parts_of(&p, parts);
    for (unsigned i = 0; i < n; i++)
        fill_part(r->block, &p, parts[i]);
}

static void hex(char *out, const unsigned char *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out += sprintf(out, i == 0 ? "%02x" : " %02x", bytes[i]);
}

/* `now` is where the content lies, which differs from r->block after a move. */
static _Noreturn void wrong_content(const struct record *r, const unsigned char *now, size_t offset,
                                    size_t limit, const struct pattern *p, const struct worker *me,
                                    const char *when)
{
    unsigned char expected[16], found[16];
    char expected_text[64] = "", found_text[64] = "";
    size_t from = offset / 8 * 8;
    size_t n = limit - from < sizeof found ? limit - from : sizeof found;
    for (size_t i = 0; i < n; i++) {
        uint64_t word = pattern_word(p, (from + i) / 8);
        expected[i] = (unsigned char)(word >> (from + i) % 8 * 8);
    }
    memcpy(found, now + from, n);
    hex(expected_text, expected, n);
    hex(found_text, found, n);
    uint64_t head[2] = {0, 0};
    if (limit >= 16)
        memcpy(head, now, 16);
    fail("content of a block is wrong %s: block %p (content at %p) of %zu bytes, by %s, filled by "
         "thread %u as its no. %u, found by thread %u: from byte %zu expected %s, found %s; the "
         "block's first words say %llu bytes, thread %llu, no. %llu",
         when, (void *)r->block, (const void *)now, r->size, maker_names[r->maker], block_thread(r),
         (unsigned)r->serial, me->number, from, expected_text, found_text,
         (unsigned long long)head[0], (unsigned long long)(head[1] >> 32),
         (unsigned long long)(head[1] & 0xffffffffu));
}

static bool part_holds(const unsigned char *now, const struct pattern *p, struct part part)
{
    size_t i = part.offset / 8;
    const unsigned char *at = now + part.offset;
    size_t left = part.length;
    uint64_t word, found, difference = 0;
    for (; left >= 8 && i < 2; left -= 8, at += 8, i++) {
        memcpy(&found, at, 8);
        difference |= found ^ pattern_word(p, i);
    }
    for (word = p->key + i * STEP; left >= 8; left -= 8, at += 8, i++, word += STEP) {
        memcpy(&found, at, 8);
        difference |= found ^ word;
    }
    if (left != 0) {
        word = pattern_word(p, i);
        difference |= (uint64_t)(memcmp(at, &word, left) != 0);
    }
    return difference == 0;
}

/* The content that r describes must lie at `now`, as far as `limit` bytes. */
static void check(const struct record *r, const unsigned char *now, size_t limit,
                  const struct worker *me, const char *when)
{
    struct pattern p = pattern_of(r);
    struct part parts[SAMPLES + 2];
    unsigned n = parts_of(&p, parts);
    for (unsigned i = 0; i < n; i++) {
        struct part part = parts[i];
        if (part.offset >= limit)
            continue;
        if (part.length > limit - part.offset)
            part.length = limit - part.offset;
        if (part_holds(now, &p, part))
            continue;
        for (size_t at = part.offset; at < part.offset + part.length; at++)
            if (now[at] != (unsigned char)(pattern_word(&p, at / 8) >> at % 8 * 8))
                wrong_content(r, now, at, limit, &p, me, when);
        fail("a block at %p changed while it was checked by thread %u", (const void *)now,
             me->number);
    }
}

static size_t first_nonzero(const unsigned char *at, size_t from, size_t to)
{
    uint64_t any = 0, word;
    size_t i = from;
    for (; i + 8 <= to; i += 8) {
        memcpy(&word, at + i, 8);
        any |= word;
    }
    for (; i < to; i++)
        any |= at[i];
    if (any == 0)
        return to;
    for (i = from; at[i] == 0; i++)
        ;
    return i;
}

static void check_zero(const unsigned char *block, size_t size, bool all, const struct worker *me)
{
    size_t step = size <= BLOCK_WHOLE || all ? size : size / 16 / LINE * LINE;
    for (size_t from = 0; from < size; from += step) {
        size_t to = from + (step == size ? size : 2 * LINE);
        if (to > size)
            to = size;
        size_t at = first_nonzero(block, from, to);
        if (at != to)
            fail("calloc of %zu bytes gave %p to thread %u: byte %zu: expected 00, found %02x",
                 size, (const void *)block, me->number, at, block[at]);
    }
    if (block[size - 1] != 0)
        fail("calloc of %zu bytes gave %p to thread %u: last byte: expected 00, found %02x", size,
             (const void *)block, me->number, block[size - 1]);
}

/* The size that the block counts as from now on. */
static size_t size_of(void *block, size_t asked, bool all_usable, enum maker maker,
                      const struct worker *me)
{
    size_t usable = do_usable_size(block);
    if (usable < asked)
        fail("malloc_usable_size of %p, by %s(%zu), thread %u: expected at least %zu, found %zu",
             block, maker_names[maker], asked, me->number, asked, usable);
    return all_usable && usable <= 2 * asked + 64 ? usable : asked;
}

static unsigned char *ask(const struct block_wish *wish)
{
    void *block = NULL;
    switch (wish->maker) {
    case MADE_BY_MALLOC:
        return do_malloc(wish->size);
    case MADE_BY_CALLOC:
        return wish->size % 3 == 0 ? do_calloc(wish->size / 3, 3) : do_calloc(1, wish->size);
    case MADE_BY_REALLOC:
        return do_realloc(NULL, wish->size);
    case MADE_BY_ALIGNED_ALLOC:
        return do_aligned_alloc(wish->alignment, wish->size);
    case MADE_BY_POSIX_MEMALIGN:
        return do_posix_memalign(&block, wish->alignment, wish->size) == 0 ? block : NULL;
    case MADE_BY_MEMALIGN:
        return do_memalign(wish->alignment, wish->size);
    }
    return NULL;
}

void block_make(struct record *r, const struct block_wish *wish, struct worker *me)
{
    size_t alignment = wish->maker >= MADE_BY_ALIGNED_ALLOC ? wish->alignment : least_alignment;
    unsigned char *block = ask(wish);
    if (block == NULL)
        fail("%s of %zu bytes, aligned to %zu, gave NULL to thread %u", maker_names[wish->maker],
             wish->size, alignment, me->number);
    if ((uintptr_t)block % alignment != 0)
        fail("%s of %zu bytes gave %p to thread %u: expected a multiple of %zu",
             maker_names[wish->maker], wish->size, (void *)block, me->number, alignment);
    if (wish->maker == MADE_BY_CALLOC)
        check_zero(block, wish->size, wish->check_all, me);
    r->block = block;
    r->maker = wish->maker;
    r->size = size_of(block, wish->size, wish->all_usable, wish->maker, me);
    fill(r, me);
}

void block_check(const struct record *r, const struct worker *me)
{
    check(r, r->block, r->size, me, "when looked at");
}

void block_fill_anew(struct record *r, struct worker *me)
{
    check(r, r->block, r->size, me, "before it is filled anew");
    fill(r, me);
}

void block_resize(struct record *r, size_t size, bool all_usable, struct worker *me)
{
    check(r, r->block, r->size, me, "before realloc");
    unsigned char *block = do_realloc(r->block, size);
    if (block == NULL)
        fail("realloc of %p from %zu to %zu bytes gave NULL to thread %u", (void *)r->block,
             r->size, size, me->number);
    if ((uintptr_t)block % least_alignment != 0)
        fail("realloc to %zu bytes gave %p to thread %u: expected a multiple of %zu", size,
             (void *)block, me->number, least_alignment);
    check(r, block, r->size < size ? r->size : size, me, "after realloc");
    r->block = block;
    r->maker = MADE_BY_REALLOC;
    r->size = size_of(block, size, all_usable, MADE_BY_REALLOC, me);
    fill(r, me);
}

void block_free(struct record *r, const struct worker *me)
{
    if (r->block == NULL)
        return;
    check(r, r->block, r->size, me, "before free");
    do_free(r->block);
    r->block = NULL;
}

/* Of another allocator, or an older one, there is none. */
extern long hakmem_check(void) __attribute__((weak));

bool expect_sound_heap(const char *when)
{
    if (hakmem_check == NULL)
        return false;
    long found = hakmem_check();
    if (found != 0)
        fail("hakmem_check %s: expected 0, found %ld", when, found);
    return true;
}
