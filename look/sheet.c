#include "sheet.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const line_names[] = {
#define NAME(line, name, words) name,
    HEAP_LINES(NAME)
#undef NAME
};

/* A name may hold any bytes: JSON is text, so what is not ASCII is told by its number. */
static void print_text(FILE *out, const char *text)
{
    fputc('"', out);
    for (const unsigned char *c = (const unsigned char *)text; *c != 0; c++)
        if (*c == '"' || *c == '\\')
            fprintf(out, "\\%c", *c);
        else if (*c < 0x20 || *c >= 0x7f)
            fprintf(out, "\\u%04x", *c);
        else
            fputc(*c, out);
    fputc('"', out);
}

static void print_lines(FILE *out, const uint64_t *resident)
{
    fputc('{', out);
    for (unsigned line = 0; line < HEAP_LINE_COUNT; line++)
        fprintf(out, "%s\"%s\": %" PRIu64, line == 0 ? "" : ", ", line_names[line], resident[line]);
    fputc('}', out);
}

static void print_classes(FILE *out, const struct heap *heap)
{
    bool first = true;
    for (unsigned cls = 0; cls < heap->tables.slabs.classes; cls++) {
        const struct class_sum *sum = &heap->classes[cls];
        if (sum->slabs == 0)
            continue;
        fprintf(out,
                "%s\n  {\"size\": %u, \"slabs\": %" PRIu64 ", \"live\": %" PRIu64
                ", \"cached\": %" PRIu64 ", \"in_transfer\": %" PRIu64 ", \"free\": %" PRIu64
                ", \"sparse\": {\"pages\": %" PRIu64 ", \"used\": %" PRIu64 ", \"blocks\": %" PRIu64
                "}, \"resident\": ",
                first ? "" : ",", sum->size, sum->slabs, sum->live, sum->cached, sum->in_transfer,
                sum->free, sum->sparse_pages, sum->sparse_used, sum->sparse_live);
        print_lines(out, sum->resident);
        fputc('}', out);
        first = false;
    }
}

static void print_caches(FILE *out, const struct heap *heap)
{
    for (size_t i = 0; i < heap->cache_count; i++)
        fprintf(out,
                "%s\n  {\"living\": %s, \"thread\": %d, \"blocks\": %" PRIu64
                ", \"bytes\": %" PRIu64 "}",
                i == 0 ? "" : ",", heap->caches[i].living ? "true" : "false",
                heap->caches[i].thread, heap->caches[i].blocks, heap->caches[i].bytes);
}

/* What is not the heap's, and what of the heap's mappings is not explained. */
static void print_mappings(FILE *out, const struct target *t)
{
    bool first = true;
    for (size_t i = 0; i < t->map_count; i++) {
        const struct mapping *m = &t->maps[i];
        if (m->rss == 0 && m->claimed == 0)
            continue;
        fprintf(out,
                "%s\n  {\"start\": %" PRIu64 ", \"bytes\": %" PRIu64 ", \"resident\": %" PRIu64
                ", \"heap\": %" PRIu64 ", \"huge_pages\": %" PRIu64 ", \"access\": \"%c%c%c\""
                ", \"name\": ",
                first ? "" : ",", m->start, m->end - m->start, m->rss, m->claimed, m->huge,
                m->readable ? 'r' : '-', m->writable ? 'w' : '-', m->executable ? 'x' : '-');
        print_text(out, m->name);
        fprintf(out, ", \"kind\": \"%s\"}", kind_names[mapping_kind(t, m)]);
        first = false;
    }
}

static void print_requested(FILE *out, const struct requested *requested)
{
    if (requested->samples == 0)
        fprintf(out, "null");
    else
        fprintf(out,
                "{\"samples\": %" PRIu64 ", \"share\": %.6f, \"error\": %.6f, \"blocks\": %.0f}",
                requested->samples, requested->share, requested->error, requested->blocks);
}

static void print_limits(FILE *out, const struct heap *heap)
{
    static const char *const names[] = {
#define NAME(limit, name, words) #name,
        HEAP_LIMITS(NAME)
#undef NAME
    };
    fprintf(out, "\"held\": %" PRIu64 ", \"limits\": {", heap->held);
    for (unsigned i = 0; i < HEAP_LIMIT_COUNT; i++) {
        fprintf(out, "%s\"%s\": ", i == 0 ? "" : ", ", names[i]);
        if (heap->limits[i] == UINT64_MAX)
            fputs("null", out);
        else
            fprintf(out, "%" PRIu64, heap->limits[i]);
    }
    fputs("}", out);
}

static void print(FILE *out, const struct target *t, const struct heap *heap, struct sheet sheet)
{
    const struct totals totals = totals_of(t, heap);
    fprintf(out,
            "{\"pid\": %d, \"version\": \"%s\",\n \"resident\": {\"before\": %" PRIu64
            ", \"after\": %" PRIu64 ", \"mappings\": %" PRIu64
            "},\n \"swapped\": {\"heap\": %" PRIu64 ", \"others\": %" PRIu64 "},\n \"heap\": ",
            sheet.pid, heap->tables.version, sheet.before, sheet.after, totals.resident,
            totals.swapped[0], totals.swapped[1]);
    print_lines(out, heap->resident);
    fprintf(out,
            ",\n \"live_bytes\": %" PRIu64 ", \"free_bytes\": %" PRIu64
            ", \"huge_blocks\": %" PRIu64 ", \"huge_bytes\": %" PRIu64 ", \"superslabs\": %" PRIu64
            ",\n \"freed\": %" PRIu64 ", \"returned\": %" PRIu64 ", \"taken_again\": %" PRIu64
            ", \"skipped\": %" PRIu64 ",\n ",
            heap->live_bytes, heap->free_bytes, heap->huge_blocks, heap->huge_bytes,
            heap->superslabs, heap->freed, heap->returned, heap->taken_again, heap->skipped);
    print_limits(out, heap);
    fprintf(out, ",\n \"classes\": [");
    print_classes(out, heap);
    fprintf(out, "],\n \"requested\": ");
    print_requested(out, &heap->requested);
    fprintf(out, ",\n \"marks\": [");
    for (unsigned i = 0; i < heap->mark_count; i++) {
        fprintf(out, "%s{\"count\": %" PRIu64 ", \"name\": ", i == 0 ? "" : ", ",
                heap->marks[i].count);
        print_text(out, heap->marks[i].name);
        fputc('}', out);
    }
    fprintf(out, "],\n \"caches\": [");
    print_caches(out, heap);
    fprintf(out, "],\n \"mappings\": [");
    print_mappings(out, t);
    fprintf(out, "]}\n");
}

char *sheet_text(const struct target *t, const struct heap *heap, struct sheet sheet)
{
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    if (out == NULL)
        return NULL;
    print(out, t, heap, sheet);
    if (fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}
