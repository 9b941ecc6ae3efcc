/* The reader of another process's heap (look/), on this process's own, of which each input changes
 * words wherever the reader looks: it must end soon, stay within its own memory, count no page
 * twice, and write nothing but printable text. */
#include <ctype.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/watch.h"
#include "bytes.h"
#include "hakmem/hakmem.h"
#include "look/process.h"
#include "look/samples.h"
#include "look/sheet.h"
#include "sheet/heap.h"
#include "sheet/target.h"

#define PAGES_MOST 4096
#define PATCHES_MOST 48
#define BUDGET 20000

static struct target own;
static uint64_t pages[PAGES_MOST]; /* that the reader looks at, of an unchanged heap */
static size_t page_count;
static bool learning;

static struct {
    uint64_t at, value;
} patches[PATCHES_MOST];
static size_t patch_count;

/* Of each mapping, what is resident; it does not change any more. */
static uint8_t **resident;

static bool read_own(const struct target *t, uint64_t page, void *to)
{
    const struct mapping *m = target_mapping(t, page);
    if (m == NULL || !m->readable)
        return false;
    /* What is not hakmem's may have gone meanwhile. */
    if (pread(t->memory, to, PAGE, (off_t)page) != PAGE)
        return false;
    if (learning && page_count < PAGES_MOST)
        pages[page_count++] = page;
    for (size_t i = 0; i < patch_count; i++)
        if (patches[i].at - page <= PAGE - sizeof patches[i].value)
            memcpy((char *)to + (patches[i].at - page), &patches[i].value, sizeof patches[i].value);
    return true;
}

static void presence(const struct target *t, uint64_t page, size_t n, uint8_t *present)
{
    const struct mapping *m = target_mapping(t, page);
    for (size_t i = 0; i < n; i++, page += PAGE) {
        if (m == NULL || page >= m->end)
            m = target_mapping(t, page);
        if (m != NULL && page >= m->start && resident[m - t->maps] != NULL)
            present[i] = resident[m - t->maps][(page - m->start) / PAGE];
    }
}

/* A heap with all kinds of blocks, some of them free; few classes, as each takes time. */
static void heap_make(void)
{
    static void *some[600];
    static const size_t sizes[] = {40, 160, 700, 1900, 2500};
    MUST(hakmem_option_set("profile_rate", 4096) == 0 && hakmem_profile_start() == 0, "a profile");
    for (unsigned i = 0; i < 600; i++) {
        size_t size = i % 200 == 0 ? 2200000 : i % 50 == 0 ? 70000 + i : sizes[i % 5];
        some[i] = hakmem_malloc(size);
    }
    for (unsigned i = 0; i < 600; i += 1 + i % 3)
        if (i % 200 != 0)
            hakmem_free(some[i]);
    hakmem_free(some[200]); /* kept */
    hakmem_profile_stop();
}

static bool look(struct heap *heap)
{
    struct why why = {EXIT_DONE, ""};
    room_release(&own.room); /* mappings and pages are in that of the first look */
    own.budget = BUDGET;
    for (size_t i = 0; i < own.map_count; i++) {
        own.maps[i].claimed = 0;
        own.maps[i].heap = false;
    }
    MUST(target_begin(&own), "no memory");
    bool seen = tables_read(&own, (uint64_t)(uintptr_t)&hakmem_watch, &heap->tables, &why) &&
                heap_read(&own, heap, &why);
    MUST(seen || *why.line != 0, "it failed and did not say why");
    return seen;
}

int LLVMFuzzerInitialize(int *count, char ***arguments)
{
    (void)count;
    (void)arguments;
    static struct heap heap;
    struct why why;
    heap_make();
    MUST(process_open(&own, getpid(), &why), "%s", why.line);
    MUST(target_begin(&own), "no memory");
    own.room = (struct room){0};
    resident = calloc(own.map_count, sizeof *resident);
    MUST(resident != NULL, "no memory");
    for (size_t i = 0; i < own.map_count; i++) {
        struct mapping *m = &own.maps[i];
        if (m->end - m->start > (uint64_t)1 << 32) {
            m->readable = m->writable = false; /* a sanitizer's: to walk through it takes long */
            continue;
        }
        if (m->rss == 0)
            continue;
        size_t n = (size_t)((m->end - m->start) / PAGE);
        resident[i] = calloc(n, 1);
        MUST(resident[i] != NULL, "no memory");
        own.presence(&own, m->start, n, resident[i]);
    }
    own.read_page = read_own;
    own.presence = presence;
    learning = true;
    MUST(look(&heap), "an unchanged heap");
    MUST(heap.requested.samples > 0 && samples_read(&own, &heap.tables.profile), "its samples");
    MUST(heap.skipped == 0 && heap.huge_blocks > 0 && heap.superslabs > 0, "it is seen in full");
    learning = false;
    return 0;
}

static uint64_t changed(struct bytes *bytes, uint64_t at)
{
    uint64_t was = 0;
    if (pread(own.memory, &was, sizeof was, (off_t)at) < 0)
        was = 0;
    unsigned how = next_byte(bytes);
    uint64_t page = pages[next_number(bytes, 2) % page_count];
    switch (how % 6) {
    case 0:
        return page + next_number(bytes, 2) % PAGE;
    case 1:
        return was + (uint64_t)(int64_t)(int8_t)next_byte(bytes) * (how < 128 ? 1 : PAGE);
    case 2:
        return was ^ next_number(bytes, 8);
    case 3:
        return next_number(bytes, 3);
    case 4:
        return 0;
    default:
        return UINT64_MAX - next_byte(bytes);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct heap heap;
    struct bytes bytes = {data, size};
    for (patch_count = 0; bytes.left > 0 && patch_count < PATCHES_MOST;) {
        uint64_t at = pages[next_number(&bytes, 2) % page_count] +
                      next_number(&bytes, 2) % (PAGE - sizeof(uint64_t) + 1);
        patches[patch_count].at = at;
        patches[patch_count++].value = changed(&bytes, at);
    }
    if (look(&heap)) {
        uint64_t counted = 0;
        uint64_t claimed = 0;
        for (unsigned line = 0; line < HEAP_LINE_COUNT; line++)
            counted += heap.resident[line];
        for (size_t i = 0; i < own.map_count; i++) {
            MUST(own.maps[i].claimed <= own.maps[i].end - own.maps[i].start, "counted twice");
            claimed += own.maps[i].claimed;
        }
        MUST(counted == claimed, "%zu bytes in lines, %zu in mappings", (size_t)counted,
             (size_t)claimed);
        char *text = sheet_text(&own, &heap, (struct sheet){.pid = 1});
        for (const char *c = text; c != NULL && *c != 0; c++)
            MUST(isprint((unsigned char)*c) || *c == '\n', "byte %d", *c);
        free(text);
        size_t count;
        own.budget = BUDGET;
        if (samples_read(&own, &heap.tables.profile))
            samples_of((uint64_t)(uintptr_t)text, &count);
    }
    return 0;
}
