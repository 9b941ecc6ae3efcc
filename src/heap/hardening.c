#include "heap/hardening.h"

#include "back/map.h"
#include "base/atomic.h"
#include "base/defs.h"
#include "base/memory.h"
#include "base/policy.h"
#include "os/os.h"

/* Bytes of freed blocks of one class that a thread holds back where quarantine_bytes does not say.
 * The peak of a Python program that has all its memory from malloc is 48 MiB if nothing is held
 * back, 50 with 32 KiB and 53 with 128 KiB. */
#define HELD_BYTES (32 * KiB)

#define PAGE 4096 /* guard_table is of such pages */

const struct guard_plan *guard_plans;

static COLD void harden(void)
{
    bool preset = policy.preset != 0;
    hardening.zeroes = unless_auto(policy.zero_freed, preset) != 0;
    hardening.shuffles = unless_auto(policy.shuffle, preset) != 0;
    hardening.guards = unless_auto(policy.guards, preset) != 0;
    hardening.sizes = unless_auto(policy.check_sizes, preset) != 0;
    hardening.held = unless_auto(policy.quarantine_bytes, preset ? HELD_BYTES : 0);
    hardening.functions = policy.check_functions != 0;
    hardening.guards |= hardening.functions; /* so every block above a class is a huge one */
    hardening.marks = hardening.guards && os_can_guard();
    bool canaries = unless_auto(policy.canaries, preset) != 0 || hardening.functions;
    if (!canaries && !hardening.zeroes && !hardening.shuffles && hardening.held == 0)
        return;
    hardening.secret = os_random();
    hardening.factor = os_random() | 1;
    store_relaxed(&hardening.canary, CANARY_BYTES);
    /* The kernel has pages that can be guards within a mapping (Linux 6.13), of 4 KiB. */
    if (hardening.marks && os_page == PAGE)
        guard_plans = guard_table;
    hardening.any_place = hardening.shuffles || guard_plans != NULL;
}

void hardening_start(void)
{
    static const size_t *const wanted[] = {&policy.canaries, &policy.zero_freed,
                                           &policy.shuffle,  &policy.quarantine_bytes,
                                           &policy.guards,   &policy.check_sizes};
    size_t any = policy.preset | policy.check_functions;
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        any |= unless_auto(*wanted[i], 0);
    if (unlikely(any != 0))
        harden();
}

void canary_touch(void *p, unsigned cls)
{
    uint64_t zero = 0;
    __atomic_compare_exchange_n(canary_at(p, cls), &zero, 0, false, __ATOMIC_RELAXED,
                                __ATOMIC_RELAXED);
}

void canary_set(void *p, unsigned cls) { store_relaxed(canary_at(p, cls), canary_of(p)); }

/* What the canaries of blocks of new differ by from those of malloc: a bit in each byte but the
 * first, so that nothing that overwrites some bytes looks so. */
static uint64_t maker_bits(enum maker maker) { return (uint64_t)maker * 0x0202020202020200; }

static SLOW enum maker maker_by(const void *p, uint64_t found)
{
    enum maker maker = MAKER_MALLOC;
    while (maker != MAKER_UNKNOWN && found != (canary_of(p) ^ maker_bits(maker)))
        maker++;
    return maker;
}

static inline enum misuse judge(const void *p, uint64_t found)
{
    if (likely(found == canary_of(p)))
        return MISUSE_NONE;
    if (found == 0)
        return MISUSE_FREE;
    bool noted = hardening.functions && maker_by(p, found) != MAKER_UNKNOWN;
    return noted ? MISUSE_FUNCTION : MISUSE_OVERRUN;
}

void canary_mark(void *p, unsigned cls, enum maker maker)
{
    store_relaxed(canary_at(p, cls), canary_of(p) ^ maker_bits(maker));
}

enum maker canary_maker(const void *p, unsigned cls)
{
    return maker_by(p, load_relaxed(canary_at(p, cls)));
}

enum misuse canary_look(const void *p, unsigned cls)
{
    return judge(p, load_relaxed(canary_at(p, cls)));
}

enum misuse canary_take(void *p, unsigned cls, bool alone)
{
    uint64_t *at = canary_at(p, cls);
    uint64_t found = load_relaxed(at);
    enum misuse what = judge(p, found);
    if (unlikely(what != MISUSE_NONE))
        return what;
    if (alone)
        store_relaxed(at, 0);
    else if (unlikely(!__atomic_compare_exchange_n(at, &found, 0, false, __ATOMIC_ACQ_REL,
                                                   __ATOMIC_RELAXED)))
        what = judge(p, found);
    return what;
}

SLOW bool canary_is_whole(const void *p, uint64_t found)
{
    return judge(p, found) != MISUSE_OVERRUN;
}

bool block_is_zero(const void *p, unsigned cls) { return is_zero(p, size_classes[cls].size); }

static struct chance shared;

uint64_t random_shared(void) { return random_next(&shared); }

void random_stir(struct chance *chance, uint64_t by)
{
    store_relaxed(&chance->state, load_relaxed(&chance->state) ^ by);
}

void random_fork_child(uint64_t by) { random_stir(&shared, by); }

uint64_t random_next(struct chance *chance)
{
    uint64_t state = load_relaxed(&chance->state) + MIXED_STEP;
    store_relaxed(&chance->state, state);
    return mixed(state ^ hardening.secret);
}

/* ---- blocks of no bytes ---- */

/* Addresses that malloc(0) chooses among in a hardened heap; beyond, it returns blocks of 8 bytes.
 * They take 1 MiB of address space without memory, and 8 KiB of bits. Other numbers were not
 * measured. */
#define ZERO_SIZED 65536

#define WORDS (ZERO_SIZED / 64)
#define REGION (ZERO_SIZED * CLASS_GRAIN)

static char *region;           /* atomic; null before the first call */
static uint64_t in_use[WORDS]; /* atomic: addresses in use */

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
        uint64_t found = load_relaxed(&in_use[word]);
        while (~found != 0) {
            uint64_t above = ~found & ~low_bits((unsigned)(random_shared() % 64));
            unsigned number = lowest_bit(above != 0 ? above : ~found);
            uint64_t bit = (uint64_t)1 << number;
            found = __atomic_fetch_or(&in_use[word], bit, __ATOMIC_RELAXED);
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
    *word = &in_use[offset / CLASS_GRAIN / 64];
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
