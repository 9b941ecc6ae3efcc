#define _GNU_SOURCE
#include "sheet/target.h"

#include <errno.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>

#include "base/text.h"
#include "os/calls.h"

/* ---- memory of a look ---- */

#define REGION ((size_t)1 << 20)
#define ALIGN ((size_t)16)
#define FIRST 64 /* members of an array */

struct region {
    struct region *next;
    size_t bytes;
};

void *room_get(struct room *room, size_t bytes)
{
    if (bytes > SIZE_MAX / 4) {
        room->short_of = true;
        return NULL;
    }
    bytes = (bytes + ALIGN - 1) & ~(ALIGN - 1);
    if (bytes > room->left) {
        size_t length = (bytes + 2 * sizeof(struct region) + REGION - 1) & ~(REGION - 1);
        long start = CALL(SYS_mmap, NULL, length, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        struct region *region = (struct region *)start;
        if (CALL_FAILED(start)) {
            room->short_of = true;
            return NULL;
        }
        *region = (struct region){room->regions, length};
        room->regions = region;
        room->at = (char *)region + 2 * sizeof *region;
        room->left = length - 2 * sizeof *region;
    }
    void *got = room->at;
    room->at += bytes;
    room->left -= bytes;
    return got;
}

void *room_grown(struct room *room, void *array, size_t count, size_t *most, size_t each)
{
    if (count < *most)
        return array;
    size_t more = *most == 0 ? FIRST : 2 * *most;
    void *to = room_get(room, more * each);
    if (to == NULL)
        return NULL;
    if (count > 0)
        memcpy(to, array, count * each);
    *most = more;
    return to;
}

void room_release(struct room *room)
{
    for (struct region *region = room->regions; region != NULL;) {
        struct region *next = region->next;
        CALL(SYS_munmap, region, region->bytes);
        region = next;
    }
    *room = (struct room){0};
}

/* ---- spans ---- */

void spans_start(struct spans *spans, struct room *room)
{
    *spans = (struct spans){.room = room};
    const void *random = (const void *)getauxval(AT_RANDOM); /* 16 bytes of the kernel's */
    if (random != NULL)
        memcpy(&spans->chance, random, sizeof spans->chance);
}

bool spans_meet(const struct spans *spans, uint64_t start, uint64_t end)
{
    for (const struct span *span = spans->root; span != NULL;
         span = end <= span->start ? span->left : span->right)
        if (start < span->end && end > span->start)
            return true;
    return false;
}

static uint64_t drawn(struct spans *spans)
{
    spans->chance = spans->chance * 6364136223846793005u + 1442695040888963407u;
    return spans->chance >> 16;
}

/* Takes a tree apart: what lies below the address, and the rest. */
static void split(struct span *tree, uint64_t at, struct span **below, struct span **rest)
{
    while (tree != NULL)
        if (tree->start < at) {
            *below = tree;
            below = &tree->right;
            tree = tree->right;
        } else {
            *rest = tree;
            rest = &tree->left;
            tree = tree->left;
        }
    *below = NULL;
    *rest = NULL;
}

bool spans_add(struct spans *spans, uint64_t start, uint64_t end, uint32_t number)
{
    if (end <= start || spans_meet(spans, start, end))
        return false;
    struct span *span = room_get(spans->room, sizeof *span);
    if (span == NULL)
        return false;
    *span = (struct span){start, end, number, drawn(spans), NULL, NULL};
    struct span **to = &spans->root;
    while (*to != NULL && (*to)->rank >= span->rank)
        to = start < (*to)->start ? &(*to)->left : &(*to)->right;
    split(*to, start, &span->left, &span->right);
    *to = span;
    return true;
}

const struct span *spans_from(const struct spans *spans, uint64_t at)
{
    const struct span *first = NULL;
    for (const struct span *span = spans->root; span != NULL;)
        if (span->start >= at) {
            first = span;
            span = span->left;
        } else {
            span = span->right;
        }
    return first;
}

/* ---- what is looked at ---- */

/* Pages that were read: descriptors lie close to each other. And the presence of pages in some
 * chunks of address space: a heap is walked in the order of addresses. */
#define PAGES_KEPT 1024
#define CHUNK_PAGES 1024
#define CHUNK ((uint64_t)CHUNK_PAGES * PAGE)
#define CHUNKS_KEPT 64
#define NONE UINT64_MAX

/* Steps; some for each page that is resident. */
#define BUDGET_LEAST 4000000u
#define BUDGET_OF_PAGE 32

/* The addresses apart, so that no memory is touched for what is not read. */
struct kept {
    uint64_t pages[PAGES_KEPT], chunks[CHUNKS_KEPT];
    unsigned char bytes[PAGES_KEPT][PAGE];
    uint8_t present[CHUNKS_KEPT][CHUNK_PAGES];
};

bool target_begin(struct target *t)
{
    if (t->kept == NULL)
        t->kept = room_get(&t->room, sizeof *t->kept);
    if (t->scratch == NULL)
        t->scratch = room_get(&t->room, SCRATCH);
    if (t->kept == NULL || t->scratch == NULL)
        return false;
    for (size_t i = 0; i < PAGES_KEPT; i++)
        t->kept->pages[i] = NONE;
    for (size_t i = 0; i < CHUNKS_KEPT; i++)
        t->kept->chunks[i] = NONE;
    return true;
}

void target_allow(struct target *t)
{
    t->budget = BUDGET_LEAST;
    for (size_t i = 0; i < t->map_count; i++)
        t->budget += BUDGET_OF_PAGE * (t->maps[i].rss / PAGE);
}

void target_forget(struct target *t)
{
    room_release(&t->room);
    t->maps = NULL;
    t->map_count = t->map_most = 0;
    t->kept = NULL;
    t->scratch = NULL;
}

struct mapping *target_add(struct target *t, const char *name)
{
    struct mapping *more =
        room_grown(&t->room, t->maps, t->map_count, &t->map_most, sizeof *t->maps);
    if (more == NULL)
        return NULL;
    t->maps = more;
    struct mapping *m = &t->maps[t->map_count];
    *m = (struct mapping){0};
    size_t bytes = strlen(name) + 1;
    char *copy = room_get(&t->room, bytes);
    if (copy == NULL)
        return NULL;
    m->name = memcpy(copy, name, bytes);
    t->map_count++;
    return m;
}

bool target_spend(struct target *t)
{
    if (t->budget == 0)
        return false;
    t->budget--;
    return true;
}

static const uint8_t *chunk_at(struct target *t, uint64_t address)
{
    size_t i = address / CHUNK % CHUNKS_KEPT;
    struct kept *kept = t->kept;
    if (kept->chunks[i] != address) {
        memset(kept->present[i], 0, sizeof kept->present[i]);
        if (target_spend(t))
            t->presence(t, address, CHUNK_PAGES, kept->present[i]);
        kept->chunks[i] = address;
    }
    return kept->present[i];
}

void target_presence(struct target *t, uint64_t page, size_t n, uint8_t *present)
{
    while (n > 0) {
        uint64_t start = page - page % CHUNK;
        size_t from = (size_t)(page - start) / PAGE;
        size_t some = CHUNK_PAGES - from < n ? CHUNK_PAGES - from : n;
        memcpy(present, chunk_at(t, start) + from, some);
        present += some;
        page += some * PAGE;
        n -= some;
    }
}

static const unsigned char *page_at(struct target *t, uint64_t address)
{
    size_t i = address / PAGE % PAGES_KEPT;
    struct kept *kept = t->kept;
    if (kept->pages[i] == address)
        return kept->bytes[i];
    uint8_t there;
    target_presence(t, address, 1, &there);
    const struct mapping *m = there ? NULL : target_mapping(t, address);
    if ((!there && (m == NULL || !m->file)) || !target_spend(t))
        return NULL;
    kept->pages[i] = NONE;
    if (!t->read_page(t, address, kept->bytes[i]))
        return NULL;
    kept->pages[i] = address;
    return kept->bytes[i];
}

bool target_read(struct target *t, uint64_t at, void *to, size_t bytes)
{
    unsigned char *out = to;
    if (at > UINT64_MAX - CHUNK - bytes)
        return false;
    while (bytes > 0) {
        size_t from = at % PAGE;
        size_t n = PAGE - from < bytes ? PAGE - from : bytes;
        const unsigned char *page = page_at(t, at - from);
        if (page == NULL)
            return false;
        memcpy(out, page + from, n);
        out += n;
        at += n;
        bytes -= n;
    }
    return true;
}

struct mapping *target_mapping(const struct target *t, uint64_t at)
{
    size_t low = 0, high = t->map_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (at >= t->maps[middle].end)
            low = middle + 1;
        else
            high = middle;
    }
    return low < t->map_count && at >= t->maps[low].start ? &t->maps[low] : NULL;
}

bool target_mapped(const struct target *t, uint64_t at, uint64_t bytes)
{
    uint64_t end = at + bytes;
    if (end < at)
        return false;
    const struct mapping *m = target_mapping(t, at);
    for (const struct mapping *last = t->maps + t->map_count; m != NULL && m < last; m++) {
        if (m->start > at)
            return false;
        if (m->end >= end)
            return true;
        at = m->end;
    }
    return false;
}

bool why_set(struct why *why, enum ending ending, const char *line)
{
    text_of(why->line, sizeof why->line, "%s", line);
    why->ending = ending;
    return false;
}

static int open_of(const char *process, const char *name)
{
    char path[64];
    text_of(path, sizeof path, "/proc/%s/%s", process, name);
    return call_open(path, O_RDONLY);
}

/* ---- memory ---- */

static bool read_page(const struct target *t, uint64_t page, void *to)
{
    return call_read_at(t->memory, to, PAGE, page) == PAGE;
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
    struct range *ranges = t->scratch;
    for (uint64_t at = page, end = page + n * PAGE; at < end;) {
        struct scan scan = {.size = sizeof scan,
                            .start = at,
                            .end = end,
                            .ranges = (uint64_t)(uintptr_t)ranges,
                            .range_count = SCRATCH / sizeof *ranges,
                            .inverted = IS_ZERO_PAGE,
                            .all_of = IS_ZERO_PAGE,
                            .any_of = IS_PRESENT | IS_SWAPPED,
                            .told = IS_PRESENT | IS_SWAPPED};
        int found = (int)CALL(SYS_ioctl, t->pagemap, SCAN, &scan);
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
    uint64_t *entries = t->scratch;
    const size_t most = SCRATCH / sizeof *entries;
    while (n > 0) {
        size_t some = n < most ? n : most;
        long got = call_read_at(t->pagemap, entries, some * sizeof *entries,
                                page / PAGE * sizeof *entries);
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

int kernel_open(struct target *t, const char *process)
{
    *t = (struct target){.read_page = read_page, .presence = presence, .pagemap = -1};
    t->memory = open_of(process, "mem");
    if (t->memory >= 0)
        t->pagemap = open_of(process, "pagemap");
    if (t->pagemap >= 0)
        return 0;
    int error = t->memory < 0 ? -t->memory : -t->pagemap;
    kernel_close(t);
    return error;
}

void kernel_close(struct target *t)
{
    if (t->memory >= 0)
        call_close(t->memory);
    if (t->pagemap >= 0)
        call_close(t->pagemap);
    t->memory = t->pagemap = -1;
}

/* ---- lines ---- */

#define LINES_ROOM 16384 /* for a path of 4,096 bytes */

/* Opens a file of a process; 0, or the number of an error. */
static int lines_open(struct lines *lines, struct room *room, const char *process, const char *name)
{
    *lines = (struct lines){.text = room_get(room, LINES_ROOM), .room = LINES_ROOM};
    lines->file = lines->text != NULL ? open_of(process, name) : -ENOMEM;
    return lines->file < 0 ? -lines->file : 0;
}

static bool begins(const char *line, const char *with, uint64_t *bytes)
{
    size_t n = strlen(with);
    if (strncmp(line, with, n) != 0)
        return false;
    *bytes = number_at(line + n, 10, &line) * 1024;
    return true;
}

/* ---- what is mapped ---- */

/* The next number of a line in base 16, behind which `next` has to come. */
static bool number(const char **at, uint64_t *value, char next)
{
    const char *end;
    *value = number_at(*at, 16, &end);
    bool is_one = end != *at && *end == next;
    *at = end + is_one;
    return is_one;
}

/* START-END ACCESS OFFSET DEVICE INODE NAME */
static int mapping_read(struct target *t, const char *line)
{
    struct mapping new = {0};
    uint64_t major;
    uint64_t minor;
    if (!number(&line, &new.start, '-') || !number(&line, &new.end, ' ') || strlen(line) < 5)
        return EINVAL;
    new.readable = line[0] == 'r';
    new.writable = line[1] == 'w';
    new.executable = line[2] == 'x';
    line += 5;
    if (!number(&line, &new.offset, ' ') || !number(&line, &major, ':') ||
        !number(&line, &minor, ' '))
        return EINVAL;
    new.file = number_at(line, 10, &line) != 0;
    line += strcspn(line, " ");
    struct mapping *m = target_add(t, line + strspn(line, " "));
    if (m == NULL)
        return ENOMEM;
    new.name = m->name;
    *m = new;
    return 0;
}

int kernel_maps(struct target *t, const char *process)
{
    struct lines lines;
    target_forget(t);
    int error = lines_open(&lines, &t->room, process, "smaps");
    if (error != 0)
        return error;
    for (char *line; error == 0 && (line = line_next(&lines)) != NULL;) {
        struct mapping *m = t->map_count > 0 ? &t->maps[t->map_count - 1] : NULL;
        if (line[0] < 'A' || line[0] > 'Z')
            error = mapping_read(t, line);
        else if (m != NULL && !begins(line, "Rss:", &m->rss) &&
                 !begins(line, "Anonymous:", &m->anonymous) &&
                 !begins(line, "AnonHugePages:", &m->huge))
            begins(line, "Swap:", &m->swapped);
    }
    call_close(lines.file);
    return error;
}

uint64_t kernel_bytes(const char *process, const char *file, const char *word)
{
    struct room room = {0};
    struct lines lines;
    uint64_t bytes = 0;
    if (lines_open(&lines, &room, process, file) == 0) {
        for (char *line; (line = line_next(&lines)) != NULL && !begins(line, word, &bytes);)
            ;
        call_close(lines.file);
    }
    room_release(&room);
    return bytes;
}

/* ---- when ---- */

#define TICKS_A_SECOND 100 /* to what /proc says, with every processor that hakmem has */
#define STAT_MOST 768      /* of the name and what follows it, up to the start */

uint64_t kernel_start(const char *process)
{
    char text[STAT_MOST];
    int file = open_of(process, "stat");
    long got = file >= 0 ? call_read(file, text, sizeof text - 1) : 0;
    if (file >= 0)
        call_close(file);
    text[got > 0 ? got : 0] = 0;
    /* Field 22. The second is the name in brackets, which may hold anything. */
    const char *at = strrchr(text, ')');
    for (unsigned field = 2; at != NULL && field < 22; field++)
        at = strchr(at + 1, ' ');
    return at != NULL ? number_at(at, 10, &at) : 0;
}

static uint64_t milliseconds(clockid_t clock)
{
    struct timespec now = {0, 0};
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

struct times kernel_times(const char *process)
{
    uint64_t now = milliseconds(CLOCK_REALTIME), start = kernel_start(process);
    uint64_t booted = now - milliseconds(CLOCK_BOOTTIME);
    return (struct times){start != 0 ? booted + start * 1000 / TICKS_A_SECOND : 0, now};
}
