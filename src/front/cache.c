#include "front/cache.h"

/* Its stacks are empty, and full. Threads that share it move a top that means nothing. */
#define CLOSED_BIN                         \
    {                                      \
        (void *)WINDOW_BASE, NULL, NULL, 0 \
    }
#define CLOSED_AHEAD              \
    {                             \
        (void *)WINDOW_BASE, NULL \
    }
#define CLOSED_CACHE                                                            \
    {                                                                           \
        .bins = {[0 ... BINS - 1] = CLOSED_BIN},                                \
        .ahead = {[0 ... AHEAD_CLASSES - 1] = CLOSED_AHEAD}, .whole = NO_WHOLE, \
    }

struct cache cache_none = CLOSED_CACHE;
struct cache cache_gone = CLOSED_CACHE;

__thread struct cache *cache_mine = &cache_none;
