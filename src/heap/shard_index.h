/* Shards are known by their indices. */
#ifndef HAKMEM_HEAP_SHARD_INDEX_H
#define HAKMEM_HEAP_SHARD_INDEX_H

#define SHARDS_MOST 64

/* The last one is no thread's: blocks that a profile watches come from it, and their slabs name
 * BIN_SAMPLED in the map. */
#define SHARD_SAMPLED (SHARDS_MOST - 1)

#endif
