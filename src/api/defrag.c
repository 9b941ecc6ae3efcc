/* The public functions for programs that move their blocks. */
#include "api/slow.h"
#include "front/past.h"
#include "hakmem/hakmem.h"
#include "life/life.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT int hakmem_defrag_hint(const void *p)
{
    if (p == NULL || block_usable(p, "hakmem_defrag_hint", RETURN_ADDRESS) == 0)
        return 0;
    return map_bin(p) >= BIN_FIRST && past_attracts(thread_cache(), p);
}

EXPORT void *hakmem_defrag_malloc(size_t n) { return slow_malloc_past(n); }

EXPORT void hakmem_defrag_free(void *p) { slow_free_past(p, RETURN_ADDRESS); }

EXPORT size_t hakmem_defrag_gain(void) { return past_gain(thread_cache()); }
