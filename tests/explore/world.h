/* Replaces everything below the caches while exploring: a few blocks of one class, each of which is
 * free, the program's, or in a cache. It also has the program's calls, which do what api/slow.c
 * does. */
#ifndef HAKMEM_TESTS_WORLD_H
#define HAKMEM_TESTS_WORLD_H

#include "front/cache.h"

#define BLOCKS 4

/* Before a scenario: all blocks, of so many bytes, are free. A new stack holds 512 bytes of them.
 */
void world_begin(size_t block_size);

/* A new cache, known to others as that of this thread of the scenario. Its stack, limit and lock
 * are watched. */
struct cache *world_cache(unsigned thread);

void *program_malloc(void);
void program_free(void *p);

/* The calling thread ends, with its cache. */
void program_end(void);

/* From one thread to another: the receiver waits. */
void program_hand(void *p);
void *program_receive(void);

/* The program's blocks, a set by number; free ones. */
extern unsigned world_held, world_free;

/* From now on each call that begins must see the slow path. */
extern bool world_closed;

/* Of the program's blocks only p is known any more. */
void world_keeps_only(const void *p);

/* Each block is free, the program's, or in this cache, which is emptied. By nobody but the caller.
 */
void world_audit(struct cache *cache);

#endif
