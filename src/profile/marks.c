#include "profile/marks.h"

#include "base/atomic.h"
#include "base/memory.h"
#include "os/os.h"
#include "profile/samples.h"

static struct watch_mark marks[MARKS_MOST];

static bool has_name(const struct watch_mark *mark, const char *name)
{
    unsigned i = 0;
    for (; i < MARK_NAME - 1 && name[i] != '\0'; i++)
        if (mark->name[i] != name[i])
            return false;
    return mark->name[i] == '\0';
}

COLD void mark_count(const char *name)
{
    unsigned place = 0;
    while (place < MARKS_MOST && marks[place].count > 0 && !has_name(&marks[place], name))
        place++;
    if (place == MARKS_MOST)
        return;
    struct watch_mark *mark = &marks[place];
    for (unsigned i = 0; mark->count == 0 && i < MARK_NAME - 1 && name[i] != '\0'; i++)
        mark->name[i] = name[i];
    double in_use = samples_in_use();
    store_relaxed(&mark->time, os_nanoseconds());
    __atomic_store(&mark->in_use, &in_use, __ATOMIC_RELAXED);
    store_release(&mark->count, mark->count + 1);
}

bool mark_read(unsigned place, struct watch_mark *copy)
{
    if (place >= MARKS_MOST)
        return false;
    const struct watch_mark *mark = &marks[place];
    uint64_t count = load_acquire(&mark->count);
    if (count == 0)
        return false;
    copy->count = count;
    copy->time = load_relaxed(&mark->time);
    __atomic_load(&mark->in_use, &copy->in_use, __ATOMIC_RELAXED);
    bytes_copy(copy->name, mark->name, MARK_NAME);
    return true;
}

const struct watch_marks watch_marks = {
    .bytes = sizeof watch_marks,
    .most = MARKS_MOST,
    .marks = marks,
};
