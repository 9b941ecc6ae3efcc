/* Canaries: in a hardened heap the last 8 bytes of each block of a class hold a word that nobody
 * can guess while the block is in use, and zero while it is free. So each free sees whether the
 * block is in use and whether something wrote beyond its end, or beyond the start of the next one.
 * The program can't use these bytes. */
#ifndef HAKMEM_HEAP_CANARY_H
#define HAKMEM_HEAP_CANARY_H

#include "base/asm.h"
#include "base/atomic.h"
#include "base/defs.h"
#include "base/hardening.h"
#include "base/misuse.h"
#include "heap/classes.h"

/* What is hardened, by the options; before the first block. */
void hardening_start(void);

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

#endif
