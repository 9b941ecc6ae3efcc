#include "profile/modules.h"

#include "back/meta.h"
#include "base/atomic.h"
#include "base/memory.h"
#include "base/text.h"
#include "os/lock.h"
#include "os/module.h"
#include "os/os.h"
#include "os/self.h"

#define BUCKETS 64
#define ID_MOST 64    /* bytes */
#define NAME_MOST 400 /* bytes; of a longer one, or in a longer folder, the file is not known */

struct seen_module *modules_last; /* atomic: grows at the front */

static struct {
    struct lock lock;
    struct seen_module *buckets[BUCKETS];
    uintptr_t shifts;
    size_t bytes; /* atomic */
    struct { /* addresses around the last one that was looked up: are they of a module noted? */
        uintptr_t start, bytes;
        bool noted;
    } around;
} seen = {.lock = LOCK(PROFILE)};

size_t modules_bytes(void) { return load_relaxed(&seen.bytes); }

struct seen_module *modules_seen(void) { return load_acquire(&modules_last); }

/* A relative name was one in the folder that was the current one when the module was opened. If the
 * program has gone to another one since, the file is not known. */
static bool find_file(struct text *t, const struct module *module)
{
    static char folder[NAME_MOST];
    if (module->name[0] == '/') {
        text_add(t, module->name);
        return true;
    }
    if (!os_folder(folder, sizeof folder))
        return false;
    text_write(t, "%s/%s", folder, module->name);
    int error;
    int opened = os_open(t->start, &error);
    if (opened >= 0)
        os_close(opened);
    return opened >= 0;
}

/* The kernel knows the program's file and its own. */
static bool has_file(const struct module *module)
{
    size_t length = text_length(module->name);
    return text_find(module->name, length, '/') != NULL && length < NAME_MOST;
}

static void add_lines(struct text *t, const struct module *module, const struct module_part *part,
                      uintptr_t shift)
{
    static char path[2 * NAME_MOST + 1];
    struct text file;
    text_init(&file, path, sizeof path);
    if (has_file(module) && find_file(&file, module)) {
        text_write(t, "%016lx-%016lx r-xp %016lx 00:00 0 %.*s\n", part->start + shift,
                   part->end + shift, part->offset, (int)sizeof path, path);
    }
    if (part->id_bytes == 0)
        return;
    text_write(t, "# build-id %016lx ", part->start + shift);
    for (size_t i = 0; i < part->id_bytes; i++)
        text_write(t, "%02x", part->id[i]);
    text_add(t, "\n");
}

static struct seen_module **bucket_of(const struct module *module)
{
    return &seen.buckets[mixed(module->start) % BUCKETS];
}

/* The file may have been built anew since. A loaded module has its first page in memory. */
static bool has_id(const struct seen_module *one)
{
    return one->id_there == NULL ||
           text_begins((const char *)one->id_there, (const char *)one->id, one->id_bytes);
}

static struct seen_module *find(const struct module *module, uintptr_t address)
{
    struct seen_module *one = *bucket_of(module);
    while (one != NULL &&
           (address - one->start >= one->end - one->start || one->module_end != module->end ||
            one->base != module->base || one->dynamic != module->dynamic ||
            one->tables != module->tables || !text_same(one->name, module->name) || !has_id(one)))
        one = one->next_of_bucket;
    return one;
}

/* Whether some module noted has, or had, this address. What is between two is asked about again and
 * again: code that the program makes lies there. */
static bool is_noted(uintptr_t address)
{
    if (address - seen.around.start < seen.around.bytes)
        return seen.around.noted;
    uintptr_t start = 0, end = UINTPTR_MAX;
    bool noted = false;
    for (const struct seen_module *one = modules_last; one != NULL && !noted; one = one->next) {
        noted = address - one->start < one->end - one->start;
        if (noted || (one->end <= address && one->end > start))
            start = noted ? one->start : one->end;
        if (noted || (one->start > address && one->start < end))
            end = noted ? one->end : one->start;
    }
    seen.around.start = start;
    seen.around.bytes = end - start;
    seen.around.noted = noted;
    return noted;
}

/* 0 where the addresses were nobody's. */
static bool shift_of(const struct module_part *part, uintptr_t *shift)
{
    const struct seen_module *one = modules_last;
    *shift = 0;
    while (one != NULL && (part->start >= one->end || one->start >= part->end))
        one = one->next;
    if (one == NULL)
        return true;
    if (seen.shifts == MODULES_MOST)
        return false;
    *shift = (MODULES_FIRST + seen.shifts++) << MODULES_SHIFT;
    return true;
}

static bool part_of(const struct module *module, uintptr_t address, struct module_part *part)
{
    if (!module_part_at(module, address, part))
        return false;
    if (part->id == NULL || part->id_bytes > ID_MOST)
        part->id_bytes = 0;
    return true;
}

static struct seen_module *note(const struct module *module, uintptr_t address)
{
    static char lines[MODULE_LINES_MOST];
    struct module_part part;
    struct text t;
    uintptr_t shift;
    text_init(&t, lines, sizeof lines);
    if (!part_of(module, address, &part) || !shift_of(&part, &shift))
        return NULL;
    add_lines(&t, module, &part, shift);
    size_t name = text_length(module->name) + 1;
    size_t bytes = sizeof(struct seen_module) + t.used + 1 + name + part.id_bytes;
    struct seen_module *one = bytes <= META_MOST ? meta_take(bytes) : NULL;
    if (one == NULL)
        return NULL;
    store_relaxed(&seen.bytes, seen.bytes + meta_size(bytes));
    bool checked =
        part.id_bytes > 0 && (uintptr_t)part.id - module->start <= os_page - part.id_bytes;
    char *name_at = one->lines + t.used + 1, *id_at = name_at + name;
    struct seen_module **bucket = bucket_of(module);
    *one = (struct seen_module){.next = modules_last,
                                .next_of_bucket = *bucket,
                                .start = part.start,
                                .end = part.end,
                                .shift = shift,
                                .module_end = module->end,
                                .base = module->base,
                                .dynamic = module->dynamic,
                                .tables = module->tables,
                                .name = name_at,
                                .id_there = checked ? part.id : NULL,
                                .id = (const unsigned char *)id_at,
                                .id_bytes = part.id_bytes,
                                .bytes = (uint32_t)t.used};
    bytes_copy(one->lines, lines, t.used + 1);
    bytes_copy(name_at, module->name, name);
    bytes_copy(id_at, (const char *)part.id, part.id_bytes);
    *bucket = one;
    seen.around.bytes = 0;
    store_release(&modules_last, one);
    return one;
}

static const struct module *met_at(const struct modules_met *met, uintptr_t address)
{
    for (unsigned i = 0; i < met->count; i++)
        if (address - met->of[i].start < met->of[i].end - met->of[i].start)
            return &met->of[i];
    return NULL;
}

void modules_meet(struct modules_met *met, const uintptr_t *frames, unsigned count)
{
    met->count = 0;
    for (unsigned i = 0; i < count && met->count < MODULES_MET; i++)
        if (frames[i] >> MODULES_SHIFT == 0 && met_at(met, frames[i]) == NULL)
            met->count += module_at(frames[i], &met->of[met->count]);
}

/* Null where it is in none, or it can't be noted. */
static const struct seen_module *module_of(const struct modules_met *met, uintptr_t address)
{
    const struct module *module = met_at(met, address);
    if (module == NULL)
        return NULL;
    const struct seen_module *one = find(module, address);
    if (one == NULL && (seen.shifts < MODULES_MOST || !is_noted(address)))
        one = note(module, address);
    return one;
}

bool modules_closed(void)
{
    static uintptr_t closed; /* a sum over these; atomic */
    uintptr_t sum = 0;
    for (const struct seen_module *one = modules_seen(); one != NULL; one = one->next)
        sum += module_is_at(one->start, one->tables) ? 0 : mixed((uintptr_t)one);
    return __atomic_exchange_n(&closed, sum, __ATOMIC_RELAXED) != sum;
}

/* Few calls of a stack are in another module than their callers. */
bool modules_see(const struct modules_met *met, uintptr_t *frames, unsigned count)
{
    bool all = true;
    const struct seen_module *one = NULL;
    lock_take(&seen.lock);
    for (unsigned i = 0; i < count; i++) {
        if (frames[i] >> MODULES_SHIFT != 0)
            continue;
        if (one == NULL || frames[i] - one->start >= one->end - one->start)
            one = module_of(met, frames[i]);
        if (one != NULL)
            frames[i] += one->shift;
        else if (is_noted(frames[i]))
            frames[i] += MODULES_NOBODYS;
        all &= one != NULL;
    }
    lock_release(&seen.lock);
    return all;
}
