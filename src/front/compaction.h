/* Frees of a class that compacts (learn/compaction.h). The owner alone calls these. */
#ifndef HAKMEM_FRONT_COMPACTION_H
#define HAKMEM_FRONT_COMPACTION_H

#include "base/misuse.h"
#include "front/cache.h"

/* After a flush: whether the class begins to compact. Then its stack is to be emptied. */
bool compaction_try(struct cache *cache, unsigned cls);

/* How many times classes began to. */
size_t compactions_begun(void);

/* A flush is not a malloc. */
void compaction_flushed(struct cold_bin *cold);

enum compaction_free {
    COMPACTION_DONE,  /* the block is free */
    COMPACTION_ENDED, /* it is, and the class has compacted: what it left empty may go back */
    COMPACTION_NOT,   /* the rest of the slow path is to free it */
};

/* Frees p, of a class that compacts; `*found` is what came to light. */
enum compaction_free compaction_free(struct cache *cache, unsigned cls, void *p,
                                     struct finding *found);

#endif
