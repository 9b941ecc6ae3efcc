/*
 * Buffers that change their size. All rows write first and last byte of what
 * they get and verify both after the next call, so content must move along.
 */
#include "block.h"
#include "random.h"
#include "work.h"

struct buffer {
    unsigned char *bytes;
    size_t size; /* 0: none */
};

/* `kept` of its bytes, which are now there; what stood last is cut off where it shrinks. */
static void buffer_verify(const struct buffer *b, const unsigned char *bytes, size_t kept)
{
    const unsigned char written = (unsigned char)b->size;
    if (kept != 0 && (bytes[0] != written || (kept == b->size && bytes[kept - 1] != written)))
        give_up(EXIT_CONTENT, "a buffer of %zu bytes lost its content: %zu were kept", b->size,
                kept);
}

static void buffer_resize(struct buffer *b, size_t size, const struct params *p)
{
    size_t kept = b->size < size ? b->size : size;
    unsigned char *bytes = realloc(b->bytes, size);
    if (bytes == NULL)
        give_up(EXIT_NO_MEMORY, "realloc(%zu) found no memory", size);
    buffer_verify(b, bytes, kept);
    /* Only pages that are new: a program fills what it asked for, and writes the rest once. */
    if (p->touch == TOUCH_PAGES && size > kept)
        block_touch(bytes + kept, size - kept, TOUCH_PAGES);
    bytes[0] = (unsigned char)size;
    bytes[size - 1] = (unsigned char)size;
    KEEP(bytes);
    *b = (struct buffer){bytes, size};
}

static void buffer_drop(struct buffer *b)
{
    buffer_verify(b, b->bytes, b->size);
    free(b->bytes);
    *b = (struct buffer){0};
}

static struct buffer *buffers_make(const struct params *p)
{
    return own_memory(p->slots * sizeof(struct buffer));
}

static void buffers_drop(struct buffer *buffer, const struct params *p)
{
    for (uint64_t i = 0; i < p->slots; i++)
        buffer_drop(&buffer[i]);
    own_release(buffer, p->slots * sizeof *buffer);
}

/* The size that a buffer has next; one that is out of the row's bounds is freed instead. */
typedef size_t next_size(const struct buffer *b, const struct params *p);

/* Buffers in turn, or `anywhere`. */
static ALWAYS_INLINE void resize_by(next_size *next, bool anywhere, const struct params *p,
                                    struct outcome *out)
{
    struct buffer *buffer = buffers_make(p);
    struct random rng = random_start(p->seed, 0);
    uint64_t sum = 0, slot = 0;

    clock_start();
    for (uint64_t i = 0; i < p->iterations; i++) {
        struct buffer *b = &buffer[anywhere ? random_low(random_next(&rng), p->slots) : slot];
        if (++slot == p->slots)
            slot = 0;
        size_t size = next(b, p);
        if (size < p->min || size > p->max) {
            buffer_drop(b);
            continue;
        }
        buffer_resize(b, size, p);
        sum += size;
    }
    clock_stop(out);
    out->operations = p->iterations;
    out->checksum = sum;
    buffers_drop(buffer, p);
}

static inline size_t size_grown(const struct buffer *b, const struct params *p)
{
    return b->size == 0 ? p->min : p->batch > 0 ? b->size + p->batch : 2 * b->size;
}

static inline size_t size_half_more(const struct buffer *b, const struct params *p)
{
    return b->size == 0 ? p->min : b->size + b->size / 2;
}

static inline size_t size_halved(const struct buffer *b, const struct params *p)
{
    return b->size == 0 ? p->max : b->size / 2;
}

void work_grow(const struct params *p, struct outcome *out)
{
    resize_by(size_grown, false, p, out);
}

void work_shrink(const struct params *p, struct outcome *out)
{
    resize_by(size_halved, false, p, out);
}

void work_realloc(const struct params *p, struct outcome *out)
{
    resize_by(size_half_more, true, p, out);
}

void work_resize_same(const struct params *p, struct outcome *out)
{
    struct buffer *buffer = buffers_make(p);
    for (uint64_t i = 0; i < p->slots; i++)
        buffer_resize(&buffer[i], p->min, p);

    uint64_t slot = 0;
    clock_start();
    for (uint64_t i = 0; i < p->iterations; i++) {
        buffer_resize(&buffer[slot], p->min, p);
        if (++slot == p->slots)
            slot = 0;
    }
    clock_stop(out);
    out->operations = p->iterations;
    out->checksum = p->iterations * p->min;
    buffers_drop(buffer, p);
}
