#include "life/limits.h"

#include <errno.h>

#include "base/memory.h"
#include "base/policy.h"
#include "base/text.h"
#include "base/watch.h"
#include "learn/keep.h"
#include "os/lock.h"
#include "os/os.h"

static struct {
    size_t limit;                   /* the lowest, as it was read last */
    size_t moment;                  /* when that was, in milliseconds */
    bool denied;                    /* the process may not ask */
} containers = {.limit = NO_LIMIT}; /* each is atomic */

size_t limits_container(void) { return load_relaxed(&containers.limit); }

static size_t or_none(size_t limit) { return limit == 0 ? NO_LIMIT : limit; }

/* From what is known of all kinds. Addresses count as memory: whoever else in the process wants
 * some can't have what is kept. */
static void apply(struct cgroup_memory memory)
{
    size_t all = smaller(memory.limit, load_relaxed(&limits.space));
    size_t soft = or_none(load_relaxed(&policy.soft_limit_bytes));
    size_t hard = or_none(load_relaxed(&policy.hard_limit_bytes));
    size_t keep = smaller(load_relaxed(&policy.keep_bytes),
                          keep_under_limit(smaller(all, smaller(soft, hard))));
    if (memory.close)
        keep = smaller(keep, LAW_LITTLE);
    store_relaxed(&limits.keep, keep);
    store_relaxed(&limits.stays, load_relaxed(&policy.keep_bytes) == KEEP_ALL);
    store_relaxed(&limits.full, smaller(keep_full(all), soft));
    store_relaxed(&limits.soft, soft);
    store_relaxed(&limits.hard, hard);
    use_set_look();
}

COLD void limits_keep(void)
{
    apply((struct cgroup_memory){load_relaxed(&containers.limit), false});
}

COLD void limits_set(void)
{
    if (!load_relaxed(&policy.container_limits))
        store_relaxed(&limits.unread, false);
    limits_keep();
    bool passed = load_relaxed(&use.held) > load_relaxed(&limits.soft);
    store_relaxed(&limits.watched, !passed);
    store_relaxed(&limits.passed, passed);
    store_relaxed(&purge_due, clock_now());
}

void limits_end(void)
{
    store_relaxed(&containers.denied, true);
    store_relaxed(&limits.keep, SIZE_MAX);
    store_relaxed(&limits.full, SIZE_MAX);
    store_relaxed(&limits.stays, true);
}

bool limits_due(void)
{
    if (!load_relaxed(&policy.container_limits) || load_relaxed(&containers.denied))
        return false;
    if (load_relaxed(&containers.limit) == NO_LIMIT && use_dirty() < LAW_IDLE_PART * LAW_LITTLE)
        return false;
    return load_relaxed(&limits.unread) ||
           os_milliseconds() - load_relaxed(&containers.moment) >= 2 * LAW_HOLD_MS;
}

static void read_space(void);

/* What is denied once will be so for ever, as in a sandbox. What is known then still holds. */
COLD void limits_look(void)
{
    ASSERT(lock_rank_held(RANK_PURGE));
    struct cgroup_memory memory;
    int error = cgroup_read(&memory);
    read_space();
    store_relaxed(&containers.moment, os_milliseconds());
    store_relaxed(&limits.unread, false);
    if (error == 0)
        store_relaxed(&containers.limit, memory.limit);
    else
        memory = (struct cgroup_memory){load_relaxed(&containers.limit), false};
    store_relaxed(&containers.denied, error != 0 && error != EMFILE && error != ENFILE);
    apply(memory);
}

const struct watch_limits watch_limits = {
    .bytes = sizeof watch_limits,
    .held = &use.held,
    .soft = &limits.soft,
    .hard = &limits.hard,
    .container = &containers.limit,
};

/* ---- what the files say ---- */

/* Whether a list of names with commas has this one. */
static bool listed(const char *list, size_t length, const char *name)
{
    size_t n = text_length(name);
    for (size_t at = 0; at + n <= length; at++)
        if ((at == 0 || list[at - 1] == ',') && (at + n == length || list[at + n] == ',') &&
            text_begins(list + at, name, n))
            return true;
    return false;
}

/* A process whose group lies outside of what its namespace shows has a path that begins by "..":
 * there only the root is known. */
static bool leads_out(const struct cgroup *group)
{
    static const char out[] = "/..";
    const size_t n = sizeof out - 1;
    return group->length >= n && text_begins(group->path, out, n) &&
           (group->length == n || group->path[n] == '/');
}

/* Lines are "number:controllers:path", where version 2 names no controllers. A path may hold
 * anything but the end of the line. Where both versions are in use, one of them limits memory. */
bool cgroup_find(const char *text, size_t length, struct cgroup *group)
{
    bool found = false;
    const char *end = text + length;
    for (const char *line = text, *next; line < end; line = next) {
        const char *stop = text_find(line, (size_t)(end - line), '\n');
        if (stop == NULL)
            break; /* the rest of it is missing */
        next = stop + 1;
        const char *list = text_find(line, (size_t)(stop - line), ':');
        const char *path =
            list != NULL ? text_find(list + 1, (size_t)(stop - list - 1), ':') : NULL;
        if (path == NULL || path[1] != '/')
            continue;
        size_t list_length = (size_t)(path - list - 1);
        bool first = listed(list + 1, list_length, "memory");
        if (!first && (list_length > 0 || found))
            continue;
        *group = (struct cgroup){first, path + 1, (size_t)(stop - path - 1)};
        if (group->length == 1 || leads_out(group))
            group->length = 0;
        found = true;
        if (first)
            break;
    }
    return found;
}

bool cgroup_parent(struct cgroup *group)
{
    if (group->length == 0)
        return false;
    do
        group->length--;
    while (group->length > 0 && group->path[group->length] != '/');
    return true;
}

size_t cgroup_number(const char *text, size_t length, size_t none)
{
    size_t number = 0;
    size_t at = 0;
    for (; at < length && text[at] >= '0' && text[at] <= '9'; at++)
        if (__builtin_mul_overflow(number, 10, &number) ||
            __builtin_add_overflow(number, (size_t)(text[at] - '0'), &number))
            return none;
    return at > 0 && (at == length || text[at] == '\n' || text[at] == ' ') ? number : none;
}

size_t cgroup_line(const char *text, size_t length, const char *name)
{
    size_t n = text_length(name);
    const char *end = text + length;
    for (const char *line = text; line < end;) {
        const char *stop = text_find(line, (size_t)(end - line), '\n');
        size_t rest = (size_t)((stop != NULL ? stop : end) - line);
        if (rest > n && line[n] == ' ' && text_begins(line, name, n))
            return cgroup_number(line + n + 1, rest - n - 1, 0);
        line = stop != NULL ? stop + 1 : end;
    }
    return 0;
}

/* ---- reading them ---- */

static const struct version {
    char root[24];
    char limits[2][24]; /* files; the first one is not exceeded, the second one slows down */
    char usage[24];
    char idle[24]; /* the line of memory.stat for page cache that the kernel would drop first */
} versions[2] = {
    {"/sys/fs/cgroup", {"memory.max", "memory.high"}, "memory.current", "inactive_file"},
    {"/sys/fs/cgroup/memory",
     {"memory.limit_in_bytes"},
     "memory.usage_in_bytes",
     "total_inactive_file"},
};

#define ROOM 8192
#define LEVELS_MOST 32

static char path[ROOM], content[ROOM]; /* lock: purge */

/* The content of a file of the group that `path` names; how long it is. */
static size_t read_group(size_t path_length, const char *name)
{
    int ignored;
    text_of(path + path_length, ROOM - path_length, "/%s", name);
    return os_read_file(path, content, ROOM, &ignored);
}

/* A group without a limit has "max" in the file, or the largest number of whole pages. */
static size_t read_limit(size_t path_length, const char *name)
{
    size_t limit = cgroup_number(content, read_group(path_length, name), NO_LIMIT);
    return limit < PTRDIFF_MAX - MiB ? limit : NO_LIMIT;
}

static bool group_is_close(size_t path_length, const struct version *version, size_t limit)
{
    size_t usage = cgroup_number(content, read_group(path_length, version->usage), 0);
    if (!keep_limit_is_close(limit, usage))
        return false;
    size_t idle = cgroup_line(content, read_group(path_length, "memory.stat"), version->idle);
    return keep_limit_is_close(limit, excess(usage, idle));
}

int cgroup_read(struct cgroup_memory *memory)
{
    ASSERT(lock_rank_held(RANK_PURGE));
    int error;
    struct cgroup group;
    *memory = (struct cgroup_memory){NO_LIMIT, false};
    size_t length = os_read_file("/proc/self/cgroup", content, ROOM, &error);
    if (error != 0 || !cgroup_find(content, length, &group))
        return error;
    const struct version *version = &versions[group.first];
    const size_t root = text_length(version->root);
    bytes_copy(path, version->root, root);
    while (root + group.length + sizeof version->usage + 1 >= ROOM)
        cgroup_parent(&group);
    bytes_copy(path + root, group.path, group.length);
    group.path = path + root;
    for (unsigned level = 0; level < LEVELS_MOST; level++) {
        size_t lowest = NO_LIMIT;
        for (unsigned i = 0; i < 2 && version->limits[i][0] != 0; i++)
            lowest = smaller(lowest, read_limit(root + group.length, version->limits[i]));
        if (lowest != NO_LIMIT)
            memory->close |= group_is_close(root + group.length, version, lowest);
        memory->limit = smaller(memory->limit, lowest);
        if (!cgroup_parent(&group))
            break;
    }
    return 0;
}

/* The kernel's columns: a limit stands after 25 characters and a space, that of now first. The call
 * that asks for one may be denied. */
static void read_space(void)
{
    int error;
    size_t length = os_read_file("/proc/self/limits", content, ROOM, &error);
    size_t all = or_none(cgroup_line(content, length, "Max address space        "));
    size_t data = or_none(cgroup_line(content, length, "Max data size            "));
    if (error == 0)
        store_relaxed(&limits.space, smaller(all, data));
}
