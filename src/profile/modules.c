#include "profile/modules.h"

#include "back/meta.h"
#include "base/atomic.h"
#include "base/memory.h"
#include "base/text.h"
#include "os/lock.h"
#include "os/module.h"
#include "os/self.h"

#define BUCKETS 64
#define ID_MOST 64    /* bytes */
#define NAME_MOST 400 /* bytes; of a longer one, or in a longer folder, the file is not known */

struct seen_module *modules_last; /* atomic: grows at the front */

static struct {
    struct lock lock;
    struct seen_module *buckets[BUCKETS];
    uintptr_t shifts;
} seen = {.lock = LOCK(PROFILE)};

struct seen_module *modules_seen(void) { return load_acquire(&modules_last); }

/* A relative name was one in the folder that was the current one when the module was opened. */
static void add_file(struct text *t, const struct module *module)
{
    static char folder[NAME_MOST];
    if (module->name[0] != '/' && os_folder(folder, sizeof folder)) {
        text_add_foreign(t, folder, NAME_MOST);
        text_add(t, "/");
    }
    text_add_foreign(t, module->name, NAME_MOST);
    text_add(t, "\n");
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
    if (has_file(module)) {
        text_add_address(t, part->start + shift);
        text_add(t, "-");
        text_add_address(t, part->end + shift);
        text_add(t, " r-xp ");
        text_add_address(t, part->offset);
        text_add(t, " 00:00 0 ");
        add_file(t, module);
    }
    if (part->id == NULL || part->id_bytes > ID_MOST)
        return;
    text_add(t, "# build-id ");
    text_add_address(t, part->start + shift);
    text_add(t, " ");
    for (size_t i = 0; i < part->id_bytes; i++)
        text_add_byte(t, part->id[i]);
    text_add(t, "\n");
}

static struct seen_module **bucket_of(const struct module *module)
{
    return &seen.buckets[mixed(module->start) % BUCKETS];
}

static struct seen_module *find(const struct module *module, uintptr_t address)
{
    struct seen_module *one = *bucket_of(module);
    while (one != NULL &&
           (address - one->start >= one->end - one->start || one->module_end != module->end ||
            one->base != module->base || one->dynamic != module->dynamic ||
            one->tables != module->tables || !text_same(one->name, module->name)))
        one = one->next_of_bucket;
    return one;
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
    *shift = (MODULES_FIRST + seen.shifts) << MODULES_SHIFT;
    return seen.shifts++ < MODULES_MOST;
}

static struct seen_module *note(const struct module *module, uintptr_t address)
{
    static char lines[MODULE_LINES_MOST];
    struct module_part part;
    struct text t;
    uintptr_t shift;
    text_init(&t, lines, sizeof lines);
    if (!module_part_at(module, address, &part) || !shift_of(&part, &shift))
        return NULL;
    add_lines(&t, module, &part, shift);
    size_t name = text_length(module->name) + 1;
    size_t bytes = sizeof(struct seen_module) + t.used + 1 + name;
    struct seen_module *one = bytes <= META_MOST ? meta_take(bytes) : NULL;
    if (one == NULL)
        return NULL;
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
                                .name = one->lines + t.used + 1,
                                .bytes = (uint32_t)t.used};
    bytes_copy(one->lines, lines, t.used + 1);
    bytes_copy(one->lines + t.used + 1, module->name, name);
    *bucket = one;
    store_release(&modules_last, one);
    return one;
}

/* Few calls of a stack are in another module than their callers. */
bool modules_see(uintptr_t *frames, unsigned count)
{
    bool all = true;
    const struct seen_module *one = NULL;
    struct module module;
    lock_take(&seen.lock);
    for (unsigned i = 0; i < count; i++) {
        if (frames[i] >> MODULES_SHIFT != 0)
            continue;
        if (one == NULL || frames[i] - one->start >= one->end - one->start) {
            if (!module_at(frames[i], &module)) {
                all = false;
                continue;
            }
            one = find(&module, frames[i]);
            if (one == NULL)
                one = note(&module, frames[i]);
        }
        if (one != NULL)
            frames[i] += one->shift;
    }
    lock_release(&seen.lock);
    return all;
}
