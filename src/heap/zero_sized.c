#include "heap/zero_sized.h"

#include "base/atomic.h"
#include "heap/canary.h"
#include "os/os.h"

/* Addresses that malloc(0) chooses among in a hardened heap; beyond, it returns blocks of 8 bytes.
 * They take 1 MiB of address space without memory, and 8 KiB of bits. Other numbers were not
 * measured. */
#define ZERO_SIZED 65536

#define WORDS (ZERO_SIZED / 64)
#define REGION (ZERO_SIZED * CLASS_GRAIN)

static char *region;          /* atomic; null before the first call */
static uint64_t taken[WORDS]; /* atomic: addresses in use */

static COLD char *region_make(void)
{
    size_t before, mapped;
    char *none = NULL;
    char *made = os_map_block(REGION, 0, os_page, &before, &mapped);
    if (made == NULL || __atomic_compare_exchange_n(&region, &none, made, false, __ATOMIC_ACQ_REL,
                                                    __ATOMIC_ACQUIRE))
        return made;
    os_unmap(made - before, mapped); /* another thread was first */
    return none;
}

SLOW void *zero_sized_take(void)
{
    char *start = load_acquire(&region);
    if (start == NULL)
        start = region_make();
    size_t first = random_shared() % WORDS;
    for (size_t i = 0; i < WORDS && start != NULL; i++) {
        size_t word = (first + i) % WORDS;
        uint64_t found = load_relaxed(&taken[word]);
        while (~found != 0) {
            uint64_t above = ~found & ~low_bits((unsigned)(random_shared() % 64));
            unsigned number = lowest_bit(above != 0 ? above : ~found);
            uint64_t bit = (uint64_t)1 << number;
            found = __atomic_fetch_or(&taken[word], bit, __ATOMIC_RELAXED);
            if (!(found & bit))
                return start + (word * 64 + number) * CLASS_GRAIN;
        }
    }
    return NULL;
}

/* The word and the bit of p; false where it is not in the region. */
static bool place(const void *p, uint64_t **word, uint64_t *bit)
{
    const char *start = load_acquire(&region);
    size_t offset = (size_t)((const char *)p - start);
    if (start == NULL || offset >= REGION)
        return false;
    *word = &taken[offset / CLASS_GRAIN / 64];
    *bit = offset % CLASS_GRAIN == 0 ? (uint64_t)1 << offset / CLASS_GRAIN % 64 : 0;
    return true;
}

SLOW enum misuse zero_sized_give(const void *p)
{
    uint64_t *word, bit;
    if (!place(p, &word, &bit))
        return MISUSE_FOREIGN;
    if (bit == 0)
        return MISUSE_INTERIOR;
    return __atomic_fetch_and(word, ~bit, __ATOMIC_RELAXED) & bit ? MISUSE_NONE : MISUSE_FREE;
}

SLOW enum misuse zero_sized_look(const void *p)
{
    uint64_t *word, bit;
    if (!place(p, &word, &bit))
        return MISUSE_FOREIGN;
    if (bit == 0)
        return MISUSE_BEYOND;
    return load_relaxed(word) & bit ? MISUSE_NONE : MISUSE_FREE;
}

SLOW bool zero_sized_holds(const void *p)
{
    uint64_t *word, bit;
    return place(p, &word, &bit) && (load_relaxed(word) & bit) != 0;
}

size_t zero_sized_mapped(void) { return load_relaxed(&region) != NULL ? REGION + 2 * os_page : 0; }
