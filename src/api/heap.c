/* The public functions about the heap as a whole. */
#include "api/heap.h"

#include <errno.h>
#include <string.h>

#include "api/slow.h"
#include "hakmem/hakmem.h"
#include "life/life.h"
#include "life/upkeep.h"
#include "os/os.h"

#define EXPORT __attribute__((visibility("default")))

void heap_count(struct census *census)
{
    thread_cache(); /* the process's start */
    heap_lock_all();
    census_count(census);
    heap_unlock_all();
}

EXPORT size_t hakmem_purge(void) { return upkeep_all(thread_cache(), 0); }

EXPORT size_t hakmem_good_size(size_t n)
{
    if (n <= CLASS_MOST)
        return size_classes[class_of(n)].size;
    return n > MOST_BYTES ? 0 : round_up(n, page_size());
}

EXPORT size_t hakmem_stats(struct hakmem_stats *stats, size_t size)
{
    struct census census;
    heap_count(&census);
    const struct hakmem_stats all = {
        .mapped = census.mapped,
        .program = census.program,
        .thread_caches = census.cached,
        .transfer = census.waiting,
        .free_in_slabs = census.free_in_slabs,
        .rest = census.rest,
        .retained = census.retained,
        .untouched = census.untouched,
        .kept = census.kept,
        .metadata = census.metadata,
        .map = census.map,
        .mapped_most = os_mapped_most(),
        .superslabs = census.superslabs,
        .slabs = census.slabs,
        .large_blocks = census.runs,
        .huge_blocks = census.huge,
        .kept_mappings = census.kept_mappings,
        .threads = census.caches,
        .refills = census.refills,
        .flushes = census.flushes,
    };
    size_t known = size < sizeof all ? size : sizeof all;
    memcpy(stats, &all, known);
    memset((char *)stats + known, 0, size - known);
    return sizeof all;
}

EXPORT int hakmem_check_frees(int on) { return upkeep_check_frees(thread_cache(), on != 0); }

EXPORT unsigned hakmem_version(void) { return HAKMEM_VERSION; }

EXPORT long hakmem_check(void)
{
    struct census census;
    thread_cache(); /* the process's start */
    heap_lock_all();
    size_t breaches = census_check(&census, heap_quiet());
    heap_unlock_all();
    if (breaches == SIZE_MAX) {
        errno = ENOMEM;
        return -1;
    }
    census_report(&census);
    return (long)breaches;
}
