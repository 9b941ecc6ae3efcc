/* The public functions for programs that move their blocks. */
#include "api/door.h"
#include "api/slow.h"
#include "front/past.h"
#include "hakmem/hakmem.h"
#include "heap/shards.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT int hakmem_defrag_hint(const void *p)
{
    if (p == NULL || block_usable(p, "hakmem_defrag_hint", RETURN_ADDRESS) == 0)
        return 0;
    struct door door;
    if (map_bin(p) < BIN_FIRST || !enter(&door))
        return 0;
    bool attracts = past_attracts(door.cache, p);
    leave(&door);
    return attracts;
}

EXPORT void *hakmem_defrag_malloc(size_t n) { return slow_malloc_past(n); }

EXPORT void hakmem_defrag_free(void *p) { slow_free_past(p, RETURN_ADDRESS); }

EXPORT size_t hakmem_defrag_gain(void)
{
    struct door door;
    if (!enter(&door))
        return 0;
    size_t gain = shards_gain();
    leave(&door);
    return gain;
}
