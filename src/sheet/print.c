#include "sheet/print.h"

#include <string.h>

#include "base/text.h"
#include "os/self.h"

static const struct {
    char name[12], title[40];
} lines[] = {
#define LINE(line, name, title) {name, title},
    HEAP_LINES(LINE)
#undef LINE
};

#define PROGRAM_MOST 4096

static void add_program(struct text *t)
{
    char path[PROGRAM_MOST / 16];
    os_program_path(path, sizeof path);
    const char *name = strrchr(path, '/');
    name = name != NULL ? name + 1 : path;
    text_add_foreign(t, *name != 0 ? name : "program", sizeof path);
}

/* ---- for people ---- */

#define CLASSES_SHOWN 10

static uint64_t tenths_of(uint64_t part, uint64_t whole)
{
    return whole == 0 ? 0 : (uint64_t)((double)part * 10 / (double)whole + 0.5);
}

/* Two values for "%lu.%lu". */
#define TENTHS(tenths) (tenths) / 10, (tenths) % 10
#define IN_MIB(bytes) TENTHS(tenths_of(bytes, MiB))

static void add_line(struct text *t, const char *title, int64_t bytes, uint64_t resident)
{
    char amount[32], part[32];
    uint64_t size = bytes < 0 ? 0 - (uint64_t)bytes : (uint64_t)bytes;
    uint64_t tenths = tenths_of(size, MiB), percent = tenths_of(size * 100, resident);
    const char *const signs[] = {"", "-"};
    text_of(amount, sizeof amount, "%s%lu.%lu", signs[bytes < 0 && tenths > 0], TENTHS(tenths));
    text_of(part, sizeof part, "%s%lu.%lu", signs[bytes < 0 && percent > 0], TENTHS(percent));
    text_write(t, "  %-40s%9s%7s\n", title, amount, part);
}

static void add_head(struct text *t, const struct heap *heap, const struct totals *totals)
{
    add_program(t);
    text_write(t, " (PID %u), hakmem %s: ", os_process(), heap->tables.version);
    text_write(t, "%lu.%lu MiB resident (at most %lu.%lu), %lu.%lu MiB in blocks in use\n",
               IN_MIB(totals->resident), IN_MIB(totals->most), IN_MIB(heap->live_bytes));
}

/* The next class with less live memory than the last that was shown, or as much and a larger size.
 */
static const struct class_sum *class_below(const struct heap *heap, const struct class_sum *last)
{
    const struct class_sum *best = NULL;
    for (unsigned cls = 0; cls < heap->tables.slabs.classes; cls++) {
        const struct class_sum *sum = &heap->classes[cls];
        uint64_t live = sum->live * sum->size;
        uint64_t before = last != NULL ? last->live * last->size : UINT64_MAX;
        if (sum->live > 0 && (live < before || (live == before && sum > last)) &&
            (best == NULL || live > best->live * best->size))
            best = sum;
    }
    return best;
}

static void add_classes(struct text *t, const struct heap *heap)
{
    const struct class_sum *sum = class_below(heap, NULL);
    if (sum == NULL)
        return;
    text_add(t, "size classes with the most memory in use\n"
                "     size   blocks in use      MiB   free blocks      MiB   in caches\n");
    for (unsigned n = 0; sum != NULL && n < CLASSES_SHOWN; n++, sum = class_below(heap, sum)) {
        text_write(t, "%9u%16lu%7lu.%lu%14lu%7lu.%lu%12lu\n", sum->size, sum->live,
                   IN_MIB(sum->live * sum->size), sum->free, IN_MIB(sum->free * sum->size),
                   sum->cached + sum->in_transfer);
    }
}

static void add_counters(struct text *t, const struct heap *heap)
{
    text_write(
        t,
        "since the start: %lu.%lu MiB freed, %lu.%lu MiB returned to the kernel, %lu.%lu MiB "
        "of it used again\n",
        IN_MIB(heap->freed), IN_MIB(heap->returned), IN_MIB(heap->taken_again));
}

static void add_limits(struct text *t, const struct heap *heap)
{
    static const char names[HEAP_LIMIT_COUNT][20] = {
#define NAME(limit, name, words) words,
        HEAP_LIMITS(NAME)
#undef NAME
    };
    bool any = false;
    for (unsigned i = 0; i < HEAP_LIMIT_COUNT; i++) {
        if (heap->limits[i] == UINT64_MAX)
            continue;
        text_write(t, "%s%s %lu.%lu", any ? ", " : "limits in MiB: ", names[i],
                   IN_MIB(heap->limits[i]));
        any = true;
    }
    if (any)
        text_write(t, "; of the heap count %lu.%lu\n", IN_MIB(heap->held));
}

static void add_swapped(struct text *t, const struct totals *totals)
{
    if (totals->swapped[0] + totals->swapped[1] > 0)
        text_write(t,
                   "in swap, not resident: %lu.%lu MiB of the heap, %lu.%lu MiB of other memory\n",
                   IN_MIB(totals->swapped[0]), IN_MIB(totals->swapped[1]));
}

static void add_requested(struct text *t, const struct heap *heap)
{
    const struct requested *requested = &heap->requested;
    if (requested->samples == 0)
        return;
    text_write(t,
               "of the blocks in use the program requested %lu.%lu MiB, %lu.%lu%% (standard error "
               "%lu.%lu%%): estimated from %lu samples\n",
               IN_MIB(requested_of(requested->share, heap->live_bytes)),
               TENTHS(requested_of(requested->share, 1000)),
               TENTHS(requested_of(requested->error, 1000)), requested->samples);
}

static void print_text(struct text *t, const struct heap *heap, const struct totals *totals)
{
    add_head(t, heap, totals);
    text_add(t, "heap                                              MiB      %\n");
    for (unsigned line = 0; line < HEAP_LINE_COUNT; line++)
        add_line(t, lines[line].title, (int64_t)heap->resident[line], totals->resident);
    add_line(t, "not accounted for", totals->unexplained, totals->resident);
    text_add(t, "other\n");
    add_line(t, "program, libraries, mapped files", (int64_t)totals->kinds[KIND_FILE],
             totals->resident);
    add_line(t, "stacks", (int64_t)totals->kinds[KIND_STACK], totals->resident);
    add_line(t, "other anonymous memory", (int64_t)totals->kinds[KIND_ANONYMOUS], totals->resident);
    add_swapped(t, totals);
    add_limits(t, heap);
    add_requested(t, heap);
    add_classes(t, heap);
    add_counters(t, heap);
}

/* ---- OpenMetrics ---- */

static void add_family(struct text *t, const char *name, const char *type, const char *help)
{
    size_t n = strlen(name);
    text_write(t, "# TYPE %s %s\n", name, type);
    if (n > 6 && strcmp(name + n - 6, "_bytes") == 0)
        text_write(t, "# UNIT %s bytes\n", name);
    text_write(t, "# HELP %s %s\n", name, help);
}

static void add_sample(struct text *t, const char *name, const char *label, const char *value,
                       int64_t number)
{
    text_add(t, name);
    if (label != NULL)
        text_write(t, "{%s=\"%s\"}", label, value);
    text_write(t, "%s%lu\n", number < 0 ? " -" : " ",
               number < 0 ? 0 - (uint64_t)number : (uint64_t)number);
}

static void add_gauge(struct text *t, const char *name, const char *help, uint64_t value)
{
    add_family(t, name, "gauge", help);
    add_sample(t, name, NULL, NULL, (int64_t)value);
}

static void add_counter(struct text *t, const char *name, const char *total, const char *help,
                        uint64_t value)
{
    add_family(t, name, "counter", help);
    add_sample(t, total, NULL, NULL, (int64_t)value);
}

static void add_requested_metrics(struct text *t, const struct heap *heap)
{
    const struct requested *requested = &heap->requested;
    if (requested->samples == 0)
        return;
    add_gauge(t, "hakmem_requested_bytes",
              "Of the blocks in use, what the program requested: an estimate.",
              requested_of(requested->share, heap->live_bytes));
    add_gauge(t, "hakmem_requested_error_bytes", "The standard error of hakmem_requested_bytes.",
              requested_of(requested->error, heap->live_bytes));
    add_gauge(t, "hakmem_requested_samples", "The blocks that hakmem_requested_bytes is made from.",
              requested->samples);
}

static void print_metrics(struct text *t, const struct heap *heap, const struct totals *totals)
{
    uint64_t living = 0;
    for (size_t i = 0; i < heap->cache_count; i++)
        living += heap->caches[i].living;
    add_family(t, "hakmem_build_info", "gauge", "The version of the library.");
    add_sample(t, "hakmem_build_info", "version", heap->tables.version, 1);
    add_gauge(t, "hakmem_resident_memory_bytes", "Resident memory of the process (RSS).",
              totals->resident);
    add_gauge(t, "hakmem_live_bytes", "Memory in blocks in use.", heap->live_bytes);
    add_requested_metrics(t, heap);
    add_gauge(t, "hakmem_swapped_bytes", "Memory of the process in swap, not resident.",
              totals->swapped[0] + totals->swapped[1]);
    add_family(t, "hakmem_heap_resident_bytes", "gauge", "Resident memory of the heap, by use.");
    for (unsigned line = 0; line < HEAP_LINE_COUNT; line++)
        add_sample(t, "hakmem_heap_resident_bytes", "use", lines[line].name,
                   (int64_t)heap->resident[line]);
    add_sample(t, "hakmem_heap_resident_bytes", "use", "unexplained", totals->unexplained);
    add_family(t, "hakmem_other_resident_bytes", "gauge",
               "Resident memory outside of the heap, by kind.");
    for (unsigned kind = KIND_HEAP + 1; kind < KINDS; kind++)
        add_sample(t, "hakmem_other_resident_bytes", "kind", kind_names[kind],
                   (int64_t)totals->kinds[kind]);
    add_gauge(t, "hakmem_returnable_bytes",
              "Free memory of the heap that can go back to the kernel at once.",
              totals->returnable);
    add_counter(t, "hakmem_freed_bytes", "hakmem_freed_bytes_total",
                "Memory that the program has freed.", heap->freed);
    add_counter(t, "hakmem_returned_bytes", "hakmem_returned_bytes_total",
                "Memory returned to the kernel.", heap->returned);
    add_counter(t, "hakmem_taken_again_bytes", "hakmem_taken_again_bytes_total",
                "Returned memory that was used again.", heap->taken_again);
    add_gauge(t, "hakmem_thread_caches", "Threads that have a cache.", living);
    text_add(t, "# EOF\n");
}

size_t sheet_print(enum form form, const struct heap *heap, const struct totals *totals, char *to,
                   size_t room)
{
    struct text t;
    text_init(&t, to, room);
    if (form == FORM_OPENMETRICS)
        print_metrics(&t, heap, totals);
    else
        print_text(&t, heap, totals);
    return t.used;
}
