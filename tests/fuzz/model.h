/* The heap as a program sees it: blocks whose content depends on their number, and what is known of
 * them. Every call is checked against hakmem.h. */
#ifndef HAKMEM_TESTS_FUZZ_MODEL_H
#define HAKMEM_TESTS_FUZZ_MODEL_H

#include <stdbool.h>

#include "bytes.h"

#define BLOCKS 4096

struct block {
    unsigned char *p;     /* null: none */
    size_t asked, usable; /* bytes */
    size_t align;         /* that was asked for; 0: none, and freed by free_sized */
    uint32_t number;      /* its content follows from it */
};

#define IMPOSSIBLE ((size_t)1 << 47) /* bytes: no processor's programs have more addresses */

extern struct block blocks[BLOCKS];
extern size_t blocks_bytes; /* usable, of all of them */
extern bool damaged; /* a misuse went unnoticed, as it may: from here on owners may share blocks */

/* From now on the `after`th call of the kernel for memory fails, and `count` from there. */
void kernel_fails(unsigned after, unsigned count);

extern bool kernel_failed; /* a call since this was made false */
extern bool kernel_kept;   /* the same, of one that gives memory back */

struct block *next_block(struct bytes *bytes);

/* A size, mostly near a bound: of a class, of whole slices, of huge blocks. */
size_t next_size(struct bytes *bytes);
size_t next_align(struct bytes *bytes);

/* The threads that act: 0 is the caller. In turn, never two at once. */
#define THREADS 4
void thread_does(unsigned thread, void (*act)(struct bytes *), struct bytes *bytes);
void thread_ends(unsigned thread);

/* One act, its kind and all that it needs taken from the bytes. */
void heap_act(struct bytes *bytes);

/* Whether there may be so many bytes more. */
bool block_fits(size_t size);

/* What malloc and its kin returned for `size` bytes at a multiple of `align` (0: of no matter),
 * where errno was 0 before. */
void block_begin(struct block *block, unsigned char *p, size_t size, size_t align);

/* All of it that is looked at; up to `most` bytes of it at p; that bytes are 0. */
void block_check(const struct block *block);
void block_check_content(const struct block *block, const unsigned char *p, size_t most);
void check_zero(const unsigned char *p, size_t size);

/* That none overlaps another; that this one doesn't. */
void blocks_check_order(void);
void block_check_apart(const struct block *block);

/* The block ends, its content checked, however the bytes say. */
void block_end(struct block *block, unsigned how);

/* Ends all threads and all blocks; then the heap must be whole and empty. */
void heap_end(void);

/* Whether whoever runs it wants to see each act, and what hakmem says: FUZZ_SHOW is set. */
bool shows(void);
extern bool showing; /* or it is of interest in any case */

extern unsigned reports; /* of misuse, so far */

/* Before the first call: sets an option, unless whoever runs the fuzzer did. */
void option_default(const char *variable, const char *value);

void heap_start(void);

#endif
