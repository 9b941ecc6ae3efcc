#include "api/slow.h"

#include "api/sampled.h"
#include "base/policy.h"
#include "base/text.h"
#include "profile/rate.h"

const char by_token[] = "token ";

SLOW void name_begin(struct name_text *room, const char *name, size_t token)
{
    if (!closed_for(CLOSED_PROFILED) || name == NULL)
        return;
    if (name == by_token) {
        text_of(room->text, sizeof room->text, "%s%zu", by_token, token);
        name = room->text;
    }
    struct sampler *sampler = sampler_mine();
    if (sampler != NULL)
        sampler->name = name;
}

SLOW void name_end(void)
{
    struct sampler *sampler = cache_current()->sampler;
    if (sampler != NULL)
        sampler->name = NULL;
}

SLOW void *slow_malloc_named(size_t n, const char *name, size_t token)
{
    if (likely(!closed_for(CLOSED_PROFILED)))
        return slow_malloc(n);
    struct name_text room;
    name_begin(&room, name, token);
    void *p = slow_malloc(n);
    name_end();
    return p;
}

SLOW void *slow_calloc_named(size_t n, const char *name, size_t token)
{
    if (likely(!closed_for(CLOSED_PROFILED)))
        return slow_calloc(n);
    struct name_text room;
    name_begin(&room, name, token);
    void *p = slow_calloc(n);
    name_end();
    return p;
}

SLOW void *slow_realloc_named(void *p, size_t n, size_t usable, const char *name, size_t token)
{
    if (likely(!closed_for(CLOSED_PROFILED)))
        return slow_realloc(p, n, usable);
    struct name_text room;
    name_begin(&room, name, token);
    p = slow_realloc(p, n, usable);
    name_end();
    return p;
}

SLOW void *slow_aligned_named(size_t align, size_t n, const char *name, size_t token)
{
    if (likely(!closed_for(CLOSED_PROFILED)))
        return slow_aligned(align, n);
    struct name_text room;
    name_begin(&room, name, token);
    void *p = slow_aligned(align, n);
    name_end();
    return p;
}
