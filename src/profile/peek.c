#include "profile/peek.h"

#include "base/atomic.h"
#include "os/os.h"

#define PAGE_BITS 12 /* a page of any system is as many of these */
#define ADDRESS_BITS 56
#define BYTES_MOST ((size_t)1 << 20)

static bool page_there(struct peek *peek, uintptr_t page)
{
    uintptr_t *known = &peek->pages[page % PEEK_PAGES];
    if (*known == page)
        return true;
    if (!os_readable((const void *)(page << PAGE_BITS)))
        return false;
    *known = page;
    return true;
}

const void *peek_at(struct peek *peek, uintptr_t address, size_t bytes)
{
    if (bytes == 0 || bytes > BYTES_MOST || address >> ADDRESS_BITS != 0)
        return NULL;
    uintptr_t last = (address + bytes - 1) >> PAGE_BITS;
    for (uintptr_t page = address >> PAGE_BITS; page <= last; page++)
        if (page == 0 || !page_there(peek, page))
            return NULL;
    return (const void *)address;
}

uintptr_t peek_word(struct peek *peek, uintptr_t address)
{
    const uintptr_t *word =
        address % sizeof *word == 0 ? peek_at(peek, address, sizeof *word) : NULL;
    return word != NULL ? load_relaxed(word) : 0;
}

uint32_t peek_half(struct peek *peek, uintptr_t address)
{
    const uint32_t *half =
        address % sizeof *half == 0 ? peek_at(peek, address, sizeof *half) : NULL;
    return half != NULL ? load_relaxed(half) : 0;
}

uint8_t peek_byte(struct peek *peek, uintptr_t address)
{
    const uint8_t *byte = peek_at(peek, address, 1);
    return byte != NULL ? load_relaxed(byte) : 0;
}
