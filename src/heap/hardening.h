/* What a hardened heap has beside its blocks: a word behind each block of a class, pages between
 * them that nobody can touch, and blocks of no bytes. */
#ifndef HAKMEM_HEAP_HARDENING_H
#define HAKMEM_HEAP_HARDENING_H

#include "base/atomic.h"
#include "base/defs.h"
#include "base/misuse.h"
#include "base/policy.h"
#include "heap/classes.h"
#include "os/os.h"

/* What is hardened, by the options; before the first block. */
void hardening_start(void);

/* ---- canaries ----
 *
 * The last 8 bytes of each block of a class hold a word that nobody can guess while the block is in
 * use, and zero while it is free. So each free sees whether the block is in use and whether
 * something wrote beyond its end, or beyond the start of the next one. The program can't use these
 * bytes. */

#define CANARY_BYTES 8

/* Never zero, but its first byte is: a string that fills the block ends there, for who reads it,
 * and a zero that was written one byte too far does no harm. Who reads the canary of one block
 * learns that of no other: both halves of the product are in it. */
FAST uint64_t canary_of(const void *p)
{
    unsigned __int128 product =
        (unsigned __int128)((uintptr_t)p ^ hardening.secret) * hardening.factor;
    uint64_t secret = (uint64_t)product ^ (uint64_t)(product >> 64);
    return (secret & ~(uint64_t)0xff) | 0x100;
}

FAST uint64_t *canary_at(const void *p, unsigned cls)
{
    return (uint64_t *)((uintptr_t)p + size_classes[cls].size - CANARY_BYTES);
}

/* Bytes of a class's block that the program may use. */
FAST size_t class_usable(unsigned cls) { return size_classes[cls].size - hardening.canary; }

/* Writes the canary of a block that comes into use. */
void canary_set(void *p, unsigned cls);

/* Writes to the block's last page without a change: where there is no memory yet, to read it first
 * would cost a page fault more. */
void canary_touch(void *p, unsigned cls);

/* The same says which functions allocated it: MAKER_MALLOC at first. */
void canary_mark(void *p, unsigned cls, enum maker maker);

/* MAKER_UNKNOWN where no block is in use, or its canary was overwritten. */
enum maker canary_maker(const void *p, unsigned cls);

/* What is wrong with a block of a class that should be in use, as one of malloc: free, overrun, or
 * allocated by new. */
enum misuse canary_look(const void *p, unsigned cls);

/* The same, and it is in use no more: of any number of calls for one block, on any threads, one
 * finds nothing wrong. An exchange takes as long as all the rest, so a thread that is alone does
 * without. */
enum misuse canary_take(void *p, unsigned cls, bool alone);

/* Whether a word may be the canary of the block at p, in use or free. */
bool canary_is_whole(const void *p, uint64_t found);

/* Whether the whole block holds zeroes, as free ones do if `zeroes`. */
bool block_is_zero(const void *p, unsigned cls);

struct chance {
    uint64_t state; /* atomic */
};

/* A number that the program can't foresee. Many threads may share the state. */
uint64_t random_next(struct chance *chance);

/* The same from a state of the whole process. */
uint64_t random_shared(void);

/* From now on other numbers follow: in the child of a fork, so that it differs from its parent. */
void random_stir(struct chance *chance, uint64_t by);
void random_fork_child(uint64_t by);

/* ---- guard pages ----
 *
 * Nobody can touch some of the pages of each slab of small blocks, so a read or a write that goes a
 * page beyond a block, or before it, ends the program. The blocks that have a byte in such a page
 * are never handed out: to their slab they are always free. */

/* Of each slab of a class. */
struct guard_plan {
    uint16_t pages;  /* a set bit: nobody can touch the page; 0 for blocks of whole slices */
    uint16_t places; /* blocks that have no byte there */
    uint16_t words;  /* where in guard_words a set bit says of each block that it is one of these */
};
extern const struct guard_plan guard_table[CLASSES] HIDDEN;
extern const uint64_t guard_words[] HIDDEN;

/* The table, or null without guard pages. Constant after the process's start. */
extern const struct guard_plan *guard_plans HIDDEN;

/* How many blocks of a slab can be handed out. */
FAST unsigned guard_places(unsigned cls)
{
    return likely(guard_plans == NULL) ? size_classes[cls].blocks : guard_plans[cls].places;
}

/* Those of a word of a slab's bits. */
FAST uint64_t guard_word(unsigned cls, unsigned index)
{
    return likely(guard_plans == NULL) ? ~(uint64_t)0 : guard_words[guard_plans[cls].words + index];
}

FAST uint64_t guard_pages_of(unsigned cls)
{
    return likely(guard_plans == NULL) ? 0 : guard_plans[cls].pages;
}

/* Whether nobody can touch the page of an address in a slab of the class. */
FAST bool guard_pages_hold(const void *p, unsigned cls)
{
    uint64_t pages = guard_pages_of(cls);
    return unlikely(pages != 0) &&
           (pages >> ((uintptr_t)p % SLICE >> lowest_bit(os_page)) & 1) != 0;
}

/* Whether the block of the class that begins at p is never handed out. */
FAST bool guard_pages_bar(const void *p, unsigned cls)
{
    if (likely(guard_plans == NULL))
        return false;
    const struct size_class *c = &size_classes[cls];
    unsigned number = blocks_before(c, (uintptr_t)p % SLICE);
    return number >= c->blocks || (guard_word(cls, number / 64) >> number % 64 & 1) == 0;
}

/* ---- blocks of no bytes ----
 *
 * What malloc(0) returns where there are guards: addresses in a region that nobody can touch. */

/* An address chosen by chance, a multiple of 16; null where none is left. The caller holds its
 * cache's lock, or that of threads without one; the other functions need none. */
void *zero_sized_take(void);

/* Frees p; MISUSE_FOREIGN where it is not in the region. */
enum misuse zero_sized_give(const void *p);

/* What is wrong with p as one in use; MISUSE_FOREIGN where it is not in the region, MISUSE_BEYOND
 * between two addresses. */
enum misuse zero_sized_look(const void *p);

/* Whether p is in use. */
bool zero_sized_holds(const void *p);

/* For the accounting: bytes of the region, 0 where there is none. */
size_t zero_sized_mapped(void);

#endif
