#include "roots.h"

#include <string.h>

#include "sheet/target.h"

#define RED_ZONE 128 /* bytes below the stack pointer that a function may use */

/* Memory that a program can keep pointers in. Of files that it only reads, only pages that were
 * written count: the loader does so before it protects them. */
static bool may_refer(const struct mapping *m)
{
    if (!m->readable || m->heap || strncmp(m->name, "[v", 2) == 0)
        return false;
    return m->writable || !m->file || m->anonymous > 0;
}

/* Where a thread's stack begins to be in use, if the mapping is one: the thread's own memory lies
 * at the end of its stack, and the first thread's stack has a name. Else where the mapping begins.
 */
static uint64_t used_from(const struct mapping *m, const struct registers *const *threads,
                          size_t thread_count)
{
    uint64_t from = m->end;
    for (size_t i = 0; i < thread_count; i++) {
        uint64_t stack = threads[i]->stack;
        bool here = stack >= m->start && stack < m->end;
        bool own = threads[i]->thread >= stack && threads[i]->thread < m->end;
        if (here && (own || strcmp(m->name, "[stack]") == 0) && stack < from)
            from = stack;
    }
    if (from == m->end)
        return m->start;
    return from - m->start > RED_ZONE ? from - RED_ZONE : m->start;
}

void roots_each(struct target *t, const struct heap *heap, const struct registers *const *threads,
                size_t thread_count, void (*each)(void *to, uint64_t from, uint64_t end), void *to)
{
    const struct span *span = spans_from(heap->seen, 0);
    for (size_t i = 0; i < t->map_count; i++) {
        const struct mapping *m = &t->maps[i];
        if (!may_refer(m))
            continue;
        uint64_t from = used_from(m, threads, thread_count);
        while (from < m->end) {
            while (span != NULL && span->end <= from)
                span = spans_from(heap->seen, span->end);
            uint64_t end = span != NULL && span->start < m->end ? span->start : m->end;
            if (end > from)
                each(to, from, end);
            from = span != NULL && span->start < m->end ? span->end : m->end;
        }
    }
}
