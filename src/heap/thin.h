/* Thin slabs: those of a class that compacts (learn/compaction.h) of which most blocks are free. In
 * the map they name the class's second stack, from which malloc never takes: what is freed there
 * goes back to the slabs, many blocks at once. Only for the files of heap/. */
#ifndef HAKMEM_HEAP_THIN_H
#define HAKMEM_HEAP_THIN_H

#include "heap/shard.h"

/* After many blocks of the class became free: begins to compact, or ends. True if it ends that has
 * left much empty. */
bool shard_settle_compaction(struct shard *shard, unsigned cls);

#endif
