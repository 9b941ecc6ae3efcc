#include "profile/marks.h"

#include "base/atomic.h"
#include "base/text.h"
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
    mark->time = os_nanoseconds();
    mark->in_use = samples_in_use();
    store_release(&mark->count, mark->count + 1);
}

const struct watch_mark *mark_at(unsigned place)
{
    return place < MARKS_MOST && load_acquire(&marks[place].count) > 0 ? &marks[place] : NULL;
}

const struct watch_marks watch_marks = {
    .bytes = sizeof watch_marks,
    .most = MARKS_MOST,
    .marks = marks,
};
