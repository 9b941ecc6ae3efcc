#include "profile.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "because.h"
#include "sheet/profile.h"

#define SITES_MOST 4000000     /* of a list that leads to itself, too */
#define PROFILE_MORE_MOST 8192 /* of lines from elsewhere */
#define MODULES_READ_MOST 100000
#define SITE_MOST 1024 /* bytes, without its frames */

static struct {
    struct site site;
    /* After it, as a site has them. */
    unsigned char more[FRAMES_MOST * sizeof(uintptr_t) + SITE_NAME_MOST + 1];
} one;

/* False where it is none. */
static bool site_read(struct target *t, const struct watch_profile *w, uint64_t at)
{
    unsigned char site[SITE_MOST];
    if (!target_read(t, at, site, w->size))
        return false;
    size_t tally = tally_bytes(w);
    memcpy(&one.site.total, site + w->total_at, tally);
    memcpy(&one.site.live, site + w->live_at, tally);
    memcpy(&one.site.peak, site + w->peak_at, tally);
    memcpy(&one.site.depth, site + w->depth_at, sizeof one.site.depth);
    one.site.since = 0;
    if (w->since_at != 0)
        memcpy(&one.site.since, site + w->since_at, sizeof one.site.since);
    uint64_t name = 0;
    if (w->name_at != 0)
        memcpy(&name, site + w->name_at, sizeof name);
    size_t frames = one.site.depth * sizeof(uintptr_t);
    if (one.site.depth > FRAMES_MOST || name > SITE_NAME_MOST ||
        !target_read(t, at + w->size, one.more, frames + name))
        return false;
    one.more[frames + name] = '\0';
    return true;
}

bool profile_sites(struct target *t, const struct watch_profile *w,
                   bool (*each)(void *to, uint64_t site), void *to)
{
    uint64_t buckets = 0;
    uint64_t most = w->buckets;
    unsigned count = 0;
    if (!target_read(t, address(w->sites), &buckets, sizeof buckets))
        return target_mapped(t, address(w->sites), sizeof buckets); /* never written: no profile */
    if ((w->site_buckets != NULL &&
         !target_read(t, address(w->site_buckets), &most, sizeof most)) ||
        most > BUCKETS_MOST)
        return false;
    for (uint64_t i = 0; buckets != 0 && i < most; i++) {
        uint64_t at = 0;
        /* A page that was never written has no site. */
        if (!target_read(t, buckets + i * sizeof at, &at, sizeof at))
            continue;
        for (uint64_t next; at != 0; at = next)
            if (++count > SITES_MOST || !target_read(t, at + w->next_at, &next, sizeof next) ||
                !each(to, at))
                return false;
    }
    return true;
}

/* One pass over all sites. */
struct pass {
    struct target *t;
    const struct watch_profile *w;
    struct profile_sums sums;
    FILE *out;
    struct profile_more *more;
    uint64_t printed;
};

static bool sum(void *to, uint64_t site)
{
    struct pass *pass = to;
    if (!site_read(pass->t, pass->w, site))
        return false;
    if (one.site.total.samples > 0)
        profile_sum(&pass->sums, &one.site);
    return true;
}

bool profile_sum_all(struct target *t, const struct watch_profile *w, struct profile_sums *sums)
{
    struct pass pass = {.t = t, .w = w, .sums.no_errors = w->tally_bytes == 0};
    target_read(t, address(w->rate), &pass.sums.rate, sizeof pass.sums.rate);
    target_read(t, address(w->lost), &pass.sums.lost, sizeof pass.sums.lost);
    target_read(t, address(w->memory), &pass.sums.memory, sizeof pass.sums.memory);
    if (w->course != NULL)
        target_read(t, address(w->course), &pass.sums.course, sizeof pass.sums.course);
    bool summed = profile_sites(t, w, sum, &pass);
    *sums = pass.sums;
    return summed;
}

static char line[PROFILE_LINE_MOST + PROFILE_MORE_MOST];

static bool print(void *to, uint64_t site)
{
    struct pass *pass = to;
    struct text t;
    if (!site_read(pass->t, pass->w, site))
        return false;
    if (one.site.total.samples == 0)
        return true;
    text_init(&t, line, sizeof line);
    profile_add_site(&t, &pass->sums, &one.site);
    if (pass->more != NULL && !pass->more->add(pass->more, site, &t))
        return true;
    fputs(line, pass->out);
    pass->printed++;
    return true;
}

static bool modules_print(FILE *out, struct target *t, const struct watch_profile *w)
{
    static char lines[MODULE_LINES_MOST];
    unsigned char module[256];
    struct text text;
    uint64_t at = 0;
    uint32_t bytes;
    if (w->modules == NULL)
        return true; /* an older library's */
    if (!target_read(t, address(w->modules), &at, sizeof at))
        return target_mapped(t, address(w->modules), sizeof at);
    for (unsigned count = 0; at != 0; count++) {
        if (count > MODULES_READ_MOST || !target_read(t, at, module, w->module_size))
            return false;
        memcpy(&bytes, module + w->module_bytes_at, sizeof bytes);
        if (bytes >= sizeof lines || !target_read(t, at + w->module_size, lines, bytes))
            return false;
        text_init(&text, line, sizeof line);
        profile_add_module(&text, lines, bytes);
        fputs(line, out);
        memcpy(&at, module + w->module_next_at, sizeof at);
    }
    return true;
}

/* The process's number; `task` is what /proc calls it, or one of its threads, which may have begun
 * later. */
static void process_of(const char *task, char *process, size_t room)
{
    char text[256];
    snprintf(process, room, "%s", task);
    snprintf(text, sizeof text, "/proc/%s/status", task);
    FILE *file = fopen(text, "re");
    while (file != NULL && fgets(text, sizeof text, file) != NULL)
        if (strncmp(text, "Tgid:", 5) == 0)
            snprintf(process, room, "%lu", strtoul(text + 5, NULL, 10));
    if (file != NULL)
        fclose(file);
}

static bool maps_print(FILE *out, const char *process, struct why *why)
{
    char text[4096];
    snprintf(text, sizeof text, "/proc/%s/maps", process);
    FILE *maps = fopen(text, "re");
    if (maps == NULL)
        return because(why, EXIT_TARGET, "%s: %s", text, strerror(errno));
    for (size_t got; (got = fread(text, 1, sizeof text, maps)) > 0;)
        fwrite(text, 1, got, out);
    fclose(maps);
    return true;
}

/* Of another process, as it has them; null where it is none. */
static const struct script_line *script_line_read(struct target *t, const struct watch_profile *w,
                                                  uint64_t at, uint64_t *next)
{
    static struct {
        struct script_line line;
        char names[SCRIPT_FUNCTION_MOST + SCRIPT_FILE_MOST];
    } one;
    unsigned char line[256];
    if (!target_read(t, at, line, w->line_size))
        return NULL;
    memcpy(next, line + w->line_next_at, sizeof *next);
    memcpy(&one.line.address, line + w->line_address_at, sizeof one.line.address);
    memcpy(&one.line.line, line + w->line_number_at, sizeof one.line.line);
    memcpy(&one.line.function_bytes, line + w->line_function_at, sizeof one.line.function_bytes);
    memcpy(&one.line.file_bytes, line + w->line_file_at, sizeof one.line.file_bytes);
    size_t function = one.line.function_bytes, file = one.line.file_bytes;
    bool possible = function <= SCRIPT_FUNCTION_MOST && file <= SCRIPT_FILE_MOST &&
                    target_read(t, at + w->line_size, one.line.names, function + file);
    return possible ? &one.line : NULL;
}

static bool script_lines_print(FILE *out, struct target *t, const struct watch_profile *w)
{
    struct text text;
    uint64_t at = 0;
    if (w->lines == NULL)
        return true; /* an older library's */
    if (!target_read(t, address(w->lines), &at, sizeof at))
        return target_mapped(t, address(w->lines), sizeof at);
    for (unsigned count = 0; at != 0; count++) {
        const struct script_line *one = script_line_read(t, w, at, &at);
        if (one == NULL || count > SCRIPT_MOST)
            return false;
        text_init(&text, line, sizeof line);
        profile_add_script_line(&text, one);
        fputs(line, out);
    }
    return true;
}

static void marks_print(FILE *out, struct target *t, const struct tables *tables)
{
    static struct watch_mark marks[MARKS_MOST];
    unsigned count = marks_read(t, tables, marks);
    struct timespec now;
    struct text text;
    clock_gettime(CLOCK_MONOTONIC, &now);
    uint64_t ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
    for (unsigned i = 0; i < count; i++) {
        text_init(&text, line, sizeof line);
        profile_add_mark(&text, &marks[i], ns > marks[i].time ? ns - marks[i].time : 0);
        fputs(line, out);
    }
}

bool profile_print(FILE *out, struct target *t, const struct tables *tables, const char *process,
                   uint64_t pid, struct profile_more *more, struct why *why)
{
    struct pass pass = {.t = t, .w = &tables->profile, .out = out, .more = more};
    struct text text;
    char number[48];
    if (pass.w->sites == NULL)
        return because(why, EXIT_REFUSED, "its hakmem is too old to take heap profiles");
    if (!profile_sum_all(t, pass.w, &pass.sums))
        return because(why, EXIT_NONSENSE,
                       "its description of the heap profile is invalid: the memory is corrupt, or "
                       "forged");
    pass.sums.pid = pid;
    text_init(&text, line, sizeof line);
    profile_add_head(&text, &pass.sums);
    fputs(line, out);
    marks_print(out, t, tables);
    if (!profile_sites(t, pass.w, print, &pass))
        return because(why, EXIT_NONSENSE, "its heap profile changed while it was being read");
    text_init(&text, line, sizeof line);
    if (more != NULL && more->add_sites != NULL)
        pass.printed += more->add_sites(more, &text);
    profile_add_end(&text, pass.printed);
    process_of(process, number, sizeof number);
    profile_add_times(&text, kernel_times(number));
    fputs(line, out);
    if (!modules_print(out, t, pass.w))
        return because(why, EXIT_NONSENSE, "its list of modules is invalid");
    if (!maps_print(out, process, why))
        return false;
    return script_lines_print(out, t, pass.w) ||
           because(why, EXIT_NONSENSE, "its list of script lines is invalid");
}
