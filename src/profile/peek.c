#include "profile/peek.h"

#include "base/atomic.h"
#include "os/os.h"

#define PAGE_BITS 12 /* a page of any system is as many of these */
#define ADDRESS_BITS 56
#define BYTES_MOST ((size_t)1 << 20)

#define MOMENT 16 /* milliseconds */
#define MOMENT_BITS (64 - (ADDRESS_BITS - PAGE_BITS))

/* Pages that were there: the number of each, and when. */
#define PAGES 512
static uint64_t pages[PAGES]; /* atomic */

struct peek peek_begin(void)
{
    return (struct peek){os_milliseconds() / MOMENT & low_bits(MOMENT_BITS)};
}

static bool page_there(const struct peek *peek, uintptr_t page)
{
    uint64_t *known = &pages[page % PAGES];
    uint64_t now = (uint64_t)page << MOMENT_BITS | peek->moment;
    if (likely(load_relaxed(known) == now))
        return true;
    if (!os_readable((const void *)(page << PAGE_BITS)))
        return false;
    store_relaxed(known, now);
    return true;
}

const void *peek_at(const struct peek *peek, uintptr_t address, size_t bytes)
{
    if (bytes == 0 || bytes > BYTES_MOST || address >> ADDRESS_BITS != 0)
        return NULL;
    uintptr_t last = (address + bytes - 1) >> PAGE_BITS;
    for (uintptr_t page = address >> PAGE_BITS; page <= last; page++)
        if (page == 0 || !page_there(peek, page))
            return NULL;
    return (const void *)address;
}

static const void *number_at(const struct peek *peek, uintptr_t address, size_t bytes)
{
    return address % bytes == 0 ? peek_at(peek, address, bytes) : NULL;
}

uintptr_t peek_word(const struct peek *peek, uintptr_t address)
{
    const uintptr_t *word = number_at(peek, address, sizeof *word);
    return word != NULL ? load_relaxed(word) : 0;
}

uint32_t peek_half(const struct peek *peek, uintptr_t address)
{
    const uint32_t *half = number_at(peek, address, sizeof *half);
    return half != NULL ? load_relaxed(half) : 0;
}

uint8_t peek_byte(const struct peek *peek, uintptr_t address)
{
    const uint8_t *byte = peek_at(peek, address, 1);
    return byte != NULL ? load_relaxed(byte) : 0;
}
