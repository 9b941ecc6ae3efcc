/* How much memory the program uses, in slices and huge blocks, and how much free memory is kept
 * beside it: it is dirty, that is free and not given back to the kernel.
 *
 * What is kept is to save work, not to make the process larger than its work makes it: together
 * the two are at most a little more than was ever in use (learn/keep.h). A program that needs more
 * than ever first has what it left idle given back. */
#ifndef HAKMEM_BACK_USE_H
#define HAKMEM_BACK_USE_H

#include "base/defs.h"
#include "base/policy.h"

/* Each is atomic. What is of slices is written under the superslabs' lock, what is of huge blocks
 * under the lock DIRTY, `most` under either, `vain` and what follows under purge.c's lock. */
struct use {
    size_t slices, huge; /* bytes in use */
    size_t dirty_slices; /* free slices that may hold pages */
    size_t dirty_huge;   /* bytes of freed huge blocks whose mappings are kept */
    size_t stacked;      /* of `slices`, what threads keep in stacks of large blocks; about */
    size_t most;         /* bytes that were in use at once, without those */
    size_t vain;         /* bytes that lately went back in vain (learn/returns.h) */
    size_t spare;        /* of what is in use, what is in no block; as found last */
    size_t held;         /* what is in use, and dirty: the sum of the first four */

    size_t huge_most;                /* of `huge`, at once */
    size_t huge_blocks, blocks_most; /* huge blocks in use, and most at once; no lock */
};
extern struct use use HIDDEN;

/* Whether more is held than ever, and more than may be: then all stacks serve before more fresh
 * memory does, and what is idle goes back until no more is held than was in use at once. From
 * use_shrinks(true) to use_shrinks(false), with purge.c's lock. */
bool use_grown(void);
void use_shrinks(bool does);

/* Bytes in use in blocks, about; and whether that is little of what was. */
size_t use_live(void);
bool use_low(void);

/* Limits of memory, those of containers and those that options set, as numbers of bytes; SIZE_MAX
 * where there is none. Each is atomic, and right with any value of the others. life/limits.c
 * writes them, but for `look`, `grown` and `waits`. */
struct limits {
    size_t keep;  /* what may be dirty or stacked */
    size_t full;  /* where more is held, little of that may be kept; at most `soft` */
    size_t soft;  /* the option soft_limit_bytes */
    size_t hard;  /* the option hard_limit_bytes: what may be held */
    size_t look;  /* where so much is dirty, it is time to look after it */
    size_t grown; /* where so much is held, what is idle is to serve before fresh memory */
    size_t space; /* addresses that may be mapped (ulimit -v, ulimit -d), as it was read last */
    bool shrinks; /* and goes back */
    bool stays;   /* what lies idle is kept, within these */
    bool waits;   /* it waits for a thread that gives it back by time (life/scavenger.h) */
    bool unread;  /* those of containers are to be read, and were not yet */
    bool watched; /* whether passing the soft limit is still to be noted */
    bool passed;  /* it is, and nobody has acted on it */
};
extern struct limits limits HIDDEN;

/* Counts bytes of fresh memory before they are taken; false, and nothing, where the hard limit
 * forbids it. use_hold_anyway counts what the kernel gave unasked, as with huge pages. use_let_go
 * is for memory that went back to the kernel, or that the kernel did not give. */
bool use_hold(size_t bytes);
void use_hold_anyway(size_t bytes);
void use_let_go(size_t bytes);

/* After something became dirty, with the lock of its kind. */
void use_dirtied(void);

/* Sets `look`, from what is held and may be kept; after limits were set or memory went back. */
void use_set_look(void);

/* Bytes that are dirty. */
size_t use_dirty(void);

/* Whether idle memory goes back. */
bool use_returns(void);

/* Bytes came into use; `fresh`: they were not dirty before. If too much is kept now, purge_due is.
 * And bytes were freed. With the lock of their kind. */
void use_slices_more(size_t bytes, bool fresh);
void use_huge_more(size_t bytes, bool fresh);
void use_slices_less(size_t bytes);
void use_huge_less(size_t bytes);

/* A huge block begins, and ends. Any thread, with or without a lock. */
void use_block_more(void);
void use_block_less(void);

/* Bytes that are dirty or stacked beyond what may be kept; and whether none would be, if so many
 * more were in use. */
size_t use_excess(void);
bool use_keeps_little(size_t more);

/* The allocation clock at which the slow path has something to do again (life/purge.h). */
extern size_t purge_due HIDDEN; /* atomic */

#endif
