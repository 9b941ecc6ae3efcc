/*
 * Plain heaps: what a block costs beyond the bytes asked for, when nothing is ever freed (live),
 * after very many replacements (age), and before there is any (start).
 */
#include "memory.h"

#include <fcntl.h>
#include <unistd.h>

static size_t between_draw(const struct params *p, uint64_t bits)
{
    return size_draw(bits, p->min, params_span(p));
}

static size_t mixed_draw(const struct params *p, uint64_t bits)
{
    (void)p;
    return mix_draw(bits);
}

typedef size_t draw_fn(const struct params *p, uint64_t bits);

/* ---- live: blocks of `iterations` KiB together, none of them freed */

static void live_run(const struct params *p, struct outcome *out, draw_fn *draw)
{
    const uint64_t budget = p->iterations * 1024;
    struct random rng = random_start(p->seed, 0);
    uint64_t count = 0, live = 0;
    for (uint64_t bytes = 0; bytes < budget; count++)
        bytes += draw(p, random_next(&rng));
    void **block = own_touched(count * sizeof *block);
    struct usage usage;
    usage_start(&usage);
    rng = random_start(p->seed, 0);

    clock_start();
    for (uint64_t i = 0; i < count; i++) {
        size_t size = draw(p, random_next(&rng));
        block[i] = filled_make(size);
        live += size;
    }
    clock_stop(out);

    outcome_add(out, "live-ratio", "ratio", (double)usage_rest(&usage) / (double)live);
    out->operations = count;
    out->checksum = live;
    for (uint64_t i = 0; i < count; i++)
        filled_drop(block[i], p);
    own_release(block, count * sizeof *block);
}

void work_live(const struct params *p, struct outcome *out) { live_run(p, out, between_draw); }

void work_live_mix(const struct params *p, struct outcome *out) { live_run(p, out, mixed_draw); }

/* ---- age: the same steady state after N and ten times N replacements */

static void age_turns(void **slot, const struct params *p, uint64_t turns, struct random *rng,
                      uint64_t *live, uint64_t *checksum)
{
    for (uint64_t i = 0; i < turns; i++) {
        void **place = &slot[random_low(random_next(rng), p->slots)];
        if (*place != NULL)
            *live -= filled_drop(*place, p);
        size_t size = mix_draw(random_next(rng));
        *place = filled_make(size);
        *live += size;
        *checksum = *checksum * 31 + size;
    }
}

void work_age(const struct params *p, struct outcome *out)
{
    const size_t slot_bytes = p->slots * sizeof(void *);
    void **slot = own_touched(slot_bytes);
    struct random rng = random_start(p->seed, 0);
    uint64_t live = 0, checksum = 0;
    struct usage usage;
    usage_start(&usage);

    clock_start();
    age_turns(slot, p, p->iterations, &rng, &live, &checksum);
    const double young = (double)usage_rest(&usage) / (double)live;
    age_turns(slot, p, 9 * p->iterations, &rng, &live, &checksum);
    clock_stop(out);
    const double old = (double)usage_rest(&usage) / (double)live;

    outcome_add(out, "young-ratio", "ratio", young);
    outcome_add(out, "old-ratio", "ratio", old);
    outcome_add(out, "creep", "ratio", old / young);
    out->operations = 20 * p->iterations;
    out->checksum = checksum;
    for (uint64_t i = 0; i < p->slots; i++)
        if (slot[i] != NULL)
            filled_drop(slot[i], p);
    own_release(slot, slot_bytes);
}

/* ---- start: one block in a process that has not asked for any */

/* A line of /proc/self/smaps at a time, in a buffer on the stack. */
struct lines {
    int file;
    size_t used, at;
    char text[4096];
};

static char *line_next(struct lines *l)
{
    for (;;) {
        char *end = memchr(l->text + l->at, '\n', l->used - l->at);
        if (end != NULL) {
            char *line = l->text + l->at;
            *end = '\0';
            l->at = (size_t)(end - l->text) + 1;
            return line;
        }
        memmove(l->text, l->text + l->at, l->used - l->at);
        l->used -= l->at;
        l->at = 0;
        ssize_t got = read(l->file, l->text + l->used, sizeof l->text - l->used);
        if (got <= 0)
            return NULL;
        l->used += (size_t)got;
    }
}

/* Whether what a mapping holds is the program's, and there under any allocator: the program, the C
 * library, the loader and the stack. */
static bool is_programs_own(const char *mapping, const char *program)
{
    const char *const parts[] = {"/libc.so", "/libc-", "/ld-", "[stack]", program};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strstr(mapping, parts[i]) != NULL)
            return true;
    return false;
}

/* Anonymous and private pages in bytes of all mappings but the program's own. */
static uint64_t allocators_own(void)
{
    struct lines l = {.file = open("/proc/self/smaps", O_RDONLY | O_CLOEXEC)};
    char program[2048];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (l.file < 0 || length < 0)
        give_up(EXIT_SYSTEM, "/proc/self doesn't tell what is mapped");
    program[length] = '\0';
    uint64_t kib = 0;
    bool counts = false;
    for (char *line; (line = line_next(&l)) != NULL;) {
        static const char field[] = "Anonymous:";
        if (strncmp(line, field, sizeof field - 1) == 0)
            kib += counts ? strtoul(line + sizeof field - 1, NULL, 10) : 0;
        else if (line[0] < 'A' || line[0] > 'Z') /* an address: a mapping begins */
            counts = !is_programs_own(line, program);
    }
    close(l.file);
    return kib * 1024;
}

void work_start(const struct params *p, struct outcome *out)
{
    void **block = own_touched(p->iterations * sizeof *block);
    clock_start();
    for (uint64_t i = 0; i < p->iterations; i++)
        block[i] = filled_make(p->min);
    clock_stop(out);
    const uint64_t table = (p->iterations * sizeof *block + 4095) / 4096 * 4096;
    outcome_add(out, "start", "KiB", (double)(allocators_own() - table) / 1024);
    out->operations = p->iterations;
    out->checksum = p->iterations * p->min;
    for (uint64_t i = 0; i < p->iterations; i++)
        filled_drop(block[i], p);
    own_release(block, p->iterations * sizeof *block);
}
