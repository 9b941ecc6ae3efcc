/* Guarded blocks: each lies alone in a page, between pages that nobody can touch. Nobody can touch
 * a freed one either, until many others were freed. Its first or its last byte is next to a guard,
 * and the rest of the page has a pattern that free compares. Who allocated and who freed it is
 * noted. The map does not know these blocks. Thread safe, without a lock; a fork loses at most the
 * places that other threads were changing. */
#ifndef HAKMEM_PROFILE_GUARDED_H
#define HAKMEM_PROFILE_GUARDED_H

#include "base/atomic.h"
#include "base/defs.h"
#include "base/misuse.h"

/* Guarded blocks in use or free and inaccessible, at most. Bounds their memory at 1 MiB, and 112
 * KiB of notes; other numbers were not measured. */
#define GUARDED_PLACES 256

#define GUARDED_FRAMES 24

struct guarded_call {
    unsigned thread, depth;
    uintptr_t frames[GUARDED_FRAMES]; /* innermost first: where the call is, not where it returns */
};

/* What was noted of a block, which may be free. It changes while other threads go on. */
struct guarded_block {
    const char *start;
    size_t bytes; /* as requested */
    bool freed;
    uint8_t maker;                           /* enum maker; atomic */
    struct guarded_call allocated, freed_by; /* atomic */
};

/* Makes the places, all free. False without memory. One thread at a time. */
bool guarded_start(void);

/* How many of the GUARDED_PLACES are free. */
size_t guarded_places_free(void);

/* A block of n bytes, at most a page, at a multiple of 16, all zero; null where no place is free.
 * `random` decides at which end of its page. */
void *guarded_take(size_t n, uint64_t random, const struct guarded_call *by);

extern struct guarded_region {
    char *start; /* atomic; null before guarded_start */
    size_t bytes;
} guarded_region HIDDEN;

/* Whether p is where guarded blocks and their guards are. */
FAST bool guarded_holds(const void *p)
{
    const char *start = load_acquire(&guarded_region.start);
    return unlikely(start != NULL) && (size_t)((const char *)p - start) < guarded_region.bytes;
}

/* Frees p, which guarded_holds; MISUSE_OVERRUN and MISUSE_UNDERRUN say that the rest of its page
 * was written to, and it is free. */
enum misuse guarded_give(void *p, const struct guarded_call *by);

/* Leaves p, which guarded_holds, n bytes: 1 to what it has. What it has no more gets the pattern,
 * as the rest of its page has it. MISUSE_OVERRUN and MISUSE_UNDERRUN as above, and it has n bytes.
 */
enum misuse guarded_shrink(const void *p, size_t n);

/* What is wrong with p, which guarded_holds, as a block in use. */
enum misuse guarded_look(const void *p);

/* The bytes requested of p, which guarded_holds; 0 where no block in use begins there. */
size_t guarded_usable(const void *p);

/* Where the maker of p is noted, which guarded_holds, MAKER_MALLOC at first; null where no block in
 * use begins there. guarded_give does not free those of another one. */
uint8_t *guarded_maker(const void *p);

/* The block next to an address that guarded_holds: what it lies in, or else the nearer one. Null
 * where there was none. */
const struct guarded_block *guarded_near(const void *address);

/* Lets the page of an address be touched: the program goes on after an access that was reported. */
void guarded_open(const void *address);

/* For the accounting: bytes of blocks in use, of their pages, and of what is noted of all. */
struct guarded_parts {
    size_t used, pages, notes;
};
struct guarded_parts guarded_parts(void);

#endif
