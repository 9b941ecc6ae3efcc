#include "front/arrays.h"

#include "back/meta.h"
#include "learn/capacity.h"
#include "os/lock.h"
#include "os/os.h"

static_assert(CLASS_FIRST_WORDS * sizeof(void *) <= CHUNK_FIRST,
              "the first arrays are in one chunk");

static_assert(((size_t)ARRAY_LEAST << (ARRAY_KINDS - 1)) * sizeof(void *) <= CHUNK_LATER,
              "each array is in one chunk");

static unsigned kind_of(size_t words)
{
    unsigned kind = 0;
    while ((size_t)ARRAY_LEAST << kind < words)
        kind++;
    return kind;
}

static bool chunk_add(struct cache *cache)
{
    if (cache->chunk_count == CHUNKS_MOST)
        return false;
    char *chunk = meta_take_pages(chunk_bytes(cache->chunk_count));
    if (chunk == NULL)
        return false;
    cache->chunks[cache->chunk_count++] = chunk;
    return true;
}

/* Goes on in the chunk of this number. */
static void chunk_begin(struct cache *cache, unsigned number)
{
    ASSERT(number < cache->chunk_count);
    cache->chunk = number;
    cache->bump = cache->chunks[number];
    cache->end = cache->bump + chunk_bytes(number);
}

bool arrays_start(struct cache *cache)
{
    cache->chunk_count = 0;
    return chunk_add(cache);
}

void arrays_reset(struct cache *cache)
{
    for (unsigned i = 0; i < ARRAY_KINDS; i++)
        cache->spare[i] = NULL;
    chunk_begin(cache, 0);
    cache->first = (void **)cache->bump;
    cache->bump += CLASS_FIRST_WORDS * sizeof(void *);
}

/* In the order in which classes are first used, so that few pages are touched. */
void **array_first(struct cache *cache, unsigned stack)
{
    ASSERT(lock_held(cache->lock));
    void **array = cache->first;
    cache->first += size_classes[stack].first + 1;
    ASSERT(cache->first <= (void **)cache->chunks[0] + CLASS_FIRST_WORDS);
    return array;
}

void **array_take(struct cache *cache, size_t words)
{
    ASSERT(lock_held(cache->lock));
    ASSERT(words >= 2);
    unsigned kind = kind_of(words);
    if (kind >= ARRAY_KINDS)
        return NULL;
    void **array = cache->spare[kind];
    if (array != NULL) {
        cache->spare[kind] = *array;
        return array;
    }
    size_t bytes = words * sizeof(void *);
    if ((size_t)(cache->end - cache->bump) < bytes) {
        if (cache->chunk + 1 == cache->chunk_count && !chunk_add(cache))
            return NULL;
        chunk_begin(cache, cache->chunk + 1);
    }
    array = (void **)cache->bump;
    ASSERT((size_t)(cache->end - cache->bump) >= bytes);
    cache->bump += bytes;
    return array;
}

void array_give(struct cache *cache, void **array, size_t words)
{
    ASSERT(lock_held(cache->lock));
    ASSERT(words >= 2);
    unsigned kind = kind_of(words);
    *array = cache->spare[kind];
    cache->spare[kind] = array;
}

void arrays_purge(struct cache *cache)
{
    ASSERT(lock_held(cache->lock));
    /* Pages may be larger, and others' data in them. */
    for (unsigned i = 0; i < cache->chunk_count && chunk_bytes(i) % os_page == 0; i++)
        os_purge(cache->chunks[i], chunk_bytes(i));
}
