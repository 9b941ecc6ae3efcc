/* The thread's blocks in a hardened heap (heap/hardening.h). The stacks of its cache stay empty
 * there, so every malloc and every free takes the slow path and comes here:
 *
 *   free -> the canary says that it is in use -> zeroed -> held, in the place of one held before,
 *           chosen by chance -> that one is ready, or goes back to its slab
 *   malloc -> a ready one -> it holds zeroes still -> its canary
 *
 * No lock is taken but to fill or empty what is ready. All is the owner's; the child of a fork may
 * lose a block that was on its way in another thread. */
#ifndef HAKMEM_FRONT_HARDENED_H
#define HAKMEM_FRONT_HARDENED_H

#include "front/cache.h"
#include "heap/hardening.h"

/* A block of the class; null where there is none ready, which hardened_fill changes. What is found
 * wrong about it: something wrote to it while it was free. */
void *hardened_take(struct cache *cache, unsigned cls, struct finding *found);

/* With the cache's lock: makes some blocks ready and takes one; null without memory. */
void *hardened_fill(struct cache *cache, unsigned cls, struct finding *found);

/* Without a cache, and with the lock for that. */
void *hardened_take_alone(unsigned shard, unsigned cls, struct finding *found);

/* A block's free begins: whether something is wrong with it. `alone`: the process has no other
 * thread that frees. */
enum misuse hardened_disarm(void *p, unsigned cls, bool alone);

/* Then the thread has it; false where hardened_give must do that, with the cache's lock, since
 * blocks have to go to their slabs before. */
bool hardened_push(struct cache *cache, unsigned cls, void *p);
struct finding hardened_give(struct cache *cache, unsigned cls, void *p);

/* All that the thread has goes back; it has had some. The caller holds the cache's lock. */
struct finding hardened_put_all(struct cache *cache);

/* A free block comes into use: one of those that the profile watches, say, which come straight from
 * their shard. */
void hardened_arm(void *p, unsigned cls, struct finding *found);

/* The child of a fork chooses otherwise than its parent from here on. */
void hardened_fork_child(struct cache *mine, uint64_t chance);

/* Of what another thread has, a block to which something wrote, while slices stop (back/slices.h);
 * null where there is none among the first `*most` bytes, which it takes from that. The caller
 * holds the cache's lock. */
void *hardened_written(const struct cache *cache, size_t *most);

/* How many blocks of the class the thread has; and the bytes of metadata for all this. */
size_t hardened_count(const struct cache *cache, unsigned cls);
size_t hardened_metadata(const struct cache *cache);

#endif
