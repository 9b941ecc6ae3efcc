#include "process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "why.h"

/* The process that was opened: the kernel's handle of it, or -1 where there are none (before Linux
 * 5.3), and when it started. */
static int handle = -1;
static uint64_t started;

static FILE *open_of(int pid, const char *name)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", pid, name);
    return fopen(path, "re");
}

/* When it started, in ticks since the machine did: field 22 of stat, the 20th behind the name,
 * which may hold anything. 0 where there is no such process. */
static uint64_t start_of(int pid)
{
    FILE *file = open_of(pid, "stat");
    char line[1024];
    size_t n = file != NULL ? fread(line, 1, sizeof line - 1, file) : 0;
    if (file != NULL)
        fclose(file);
    line[n] = 0;
    const char *at = strrchr(line, ')');
    for (unsigned field = 2; at != NULL && field < 22; field++)
        at = strchr(at + 1, ' ');
    return at != NULL ? strtoull(at, NULL, 10) : 0;
}

bool process_same(int pid)
{
    struct pollfd ended = {.fd = handle, .events = POLLIN};
    if (handle >= 0 && poll(&ended, 1, 0) != 0)
        return false;
    return start_of(pid) == started;
}

/* ---- memory ---- */

static bool read_page(const struct target *t, uint64_t page, void *to)
{
    return pread(t->memory, to, PAGE, (off_t)page) == PAGE;
}

/* Of Linux 6.7: a list of ranges, by what their pages are. Older systems' headers have it not. */
struct scan {
    uint64_t size, flags, start, end, walk_end, ranges, range_count, most, inverted, all_of, any_of,
        told;
};
struct range {
    uint64_t start, end, what;
};
#define SCAN _IOWR('f', 16, struct scan)
#define IS_PRESENT 8u
#define IS_SWAPPED 16u
#define IS_ZERO_PAGE 32u /* of no process: not resident by the kernel's count */

static bool scan(const struct target *t, uint64_t page, size_t n, uint8_t *present)
{
    struct range ranges[512];
    for (uint64_t at = page, end = page + n * PAGE; at < end;) {
        struct scan scan = {.size = sizeof scan,
                            .start = at,
                            .end = end,
                            .ranges = (uint64_t)(uintptr_t)ranges,
                            .range_count = sizeof ranges / sizeof *ranges,
                            .inverted = IS_ZERO_PAGE,
                            .all_of = IS_ZERO_PAGE,
                            .any_of = IS_PRESENT | IS_SWAPPED,
                            .told = IS_PRESENT | IS_SWAPPED};
        int found = ioctl(t->pagemap, SCAN, &scan);
        if (found < 0)
            return false;
        for (int i = 0; i < found; i++)
            for (uint64_t p = ranges[i].start; p < ranges[i].end; p += PAGE)
                present[(p - page) / PAGE] = ranges[i].what & IS_PRESENT ? RESIDENT : SWAPPED;
        if (scan.walk_end <= at)
            return true;
        at = scan.walk_end;
    }
    return true;
}

static void presence(const struct target *t, uint64_t page, size_t n, uint8_t *present)
{
    if (scan(t, page, n, present))
        return;
    uint64_t entries[1024];
    while (n > 0) {
        size_t some = n < 1024 ? n : 1024;
        ssize_t got = pread(t->pagemap, entries, some * sizeof *entries,
                            (off_t)(page / PAGE * sizeof *entries));
        if (got <= 0)
            return;
        some = (size_t)got / sizeof *entries;
        for (size_t i = 0; i < some; i++)
            present[i] = entries[i] >> 63 ? RESIDENT : entries[i] >> 62 ? SWAPPED : 0;
        present += some;
        page += some * PAGE;
        n -= some;
    }
}

bool process_open(struct target *t, int pid, char *why, size_t room)
{
    started = start_of(pid);
    if (started == 0)
        return because(why, room, EXIT_TARGET, "there is no process %d", pid);
    handle = (int)syscall(SYS_pidfd_open, pid, 0);
    *t = (struct target){.read_page = read_page, .presence = presence};
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/mem", pid);
    t->memory = open(path, O_RDONLY | O_CLOEXEC);
    int failed = errno;
    snprintf(path, sizeof path, "/proc/%d/pagemap", pid);
    t->pagemap = t->memory >= 0 ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (t->memory >= 0 && t->pagemap < 0)
        failed = errno;
    if (t->pagemap >= 0)
        return process_maps(t, pid, why, room);
    if (failed == EACCES || failed == EPERM)
        return because(why, room, EXIT_RIGHTS,
                       "no permission to read process %d: it is another user's, or protected "
                       "(kernel.yama.ptrace_scope, prctl(PR_SET_DUMPABLE)); try as root",
                       pid);
    if (failed == ESRCH)
        return because(why, room, EXIT_TARGET, "process %d has ended, or is a kernel thread", pid);
    return because(why, room, EXIT_TARGET, "%s: %s", path, strerror(failed));
}

/* ---- what is mapped ---- */

static bool begins(const char *line, const char *with, uint64_t *kib)
{
    size_t n = strlen(with);
    if (strncmp(line, with, n) != 0)
        return false;
    *kib = strtoull(line + n, NULL, 10);
    return true;
}

static struct mapping *mapping_add(struct target *t)
{
    if ((t->map_count & (t->map_count - 1)) == 0) {
        size_t room = t->map_count == 0 ? 1 : 2 * t->map_count;
        struct mapping *more = realloc(t->maps, room * sizeof *more);
        if (more == NULL)
            return NULL;
        t->maps = more;
    }
    struct mapping *m = &t->maps[t->map_count++];
    *m = (struct mapping){0};
    return m;
}

/* The next number of a line in base 16, behind which `next` has to come. */
static bool number(const char **at, uint64_t *value, char next)
{
    char *end;
    *value = strtoull(*at, &end, 16);
    bool is_one = end != *at && *end == next;
    *at = end + is_one;
    return is_one;
}

/* START-END ACCESS OFFSET DEVICE INODE NAME */
static bool mapping_read(struct mapping *m, const char *line)
{
    uint64_t major;
    uint64_t minor;
    if (!number(&line, &m->start, '-') || !number(&line, &m->end, ' ') || strlen(line) < 5)
        return false;
    m->readable = line[0] == 'r';
    m->writable = line[1] == 'w';
    m->executable = line[2] == 'x';
    line += 5;
    if (!number(&line, &m->offset, ' ') || !number(&line, &major, ':') ||
        !number(&line, &minor, ' '))
        return false;
    m->file = strtoull(line, NULL, 10) != 0;
    line += strcspn(line, " ");
    m->name = strdup(line + strspn(line, " "));
    return m->name != NULL;
}

bool process_maps(struct target *t, int pid, char *why, size_t room)
{
    for (size_t i = 0; i < t->map_count; i++)
        free(t->maps[i].name);
    free(t->maps);
    t->maps = NULL;
    t->map_count = 0;
    FILE *file = open_of(pid, "smaps");
    if (file == NULL)
        return because(why, room, EXIT_TARGET, "/proc/%d/smaps: %s", pid, strerror(errno));
    char *line = NULL;
    size_t length = 0;
    bool whole = true;
    for (ssize_t n; whole && (n = getline(&line, &length, file)) > 0;) {
        line[n - 1] = line[n - 1] == '\n' ? 0 : line[n - 1];
        uint64_t kib;
        if (line[0] >= 'A' && line[0] <= 'Z') {
            struct mapping *m = t->map_count > 0 ? &t->maps[t->map_count - 1] : NULL;
            if (m != NULL && begins(line, "Rss:", &kib))
                m->rss = kib * 1024;
            else if (m != NULL && begins(line, "AnonHugePages:", &kib))
                m->huge = kib * 1024;
            continue;
        }
        struct mapping *m = mapping_add(t);
        whole = m != NULL && mapping_read(m, line);
    }
    free(line);
    fclose(file);
    if (!whole)
        return because(why, room, EXIT_TARGET, "/proc/%d/smaps: a line is not understood", pid);
    if (t->map_count == 0)
        return because(why, room, EXIT_TARGET,
                       "process %d has no memory: it has ended, or is a kernel thread", pid);
    return true;
}

uint64_t process_rss(int pid)
{
    FILE *file = open_of(pid, "smaps_rollup");
    char line[256];
    uint64_t kib = 0;
    while (file != NULL && fgets(line, sizeof line, file) != NULL && !begins(line, "Rss:", &kib))
        ;
    if (file != NULL)
        fclose(file);
    return kib * 1024;
}
