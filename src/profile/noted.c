#include "profile/noted.h"

#include "back/meta.h"
#include "base/atomic.h"
#include "base/memory.h"
#include "base/text.h"
#include "os/lock.h"
#include "os/os.h"

static size_t bytes_taken; /* atomic */

size_t noted_bytes(void) { return load_relaxed(&bytes_taken); }

/* For ever; null without memory. */
static void *take(size_t bytes)
{
    void *p = bytes <= META_MOST ? meta_take(bytes) : NULL;
    if (p != NULL)
        add_relaxed(&bytes_taken, meta_size(bytes));
    return p;
}

/* ---- modules ---- */

#define MODULE_BUCKETS 64
#define ID_MOST 64    /* bytes */
#define NAME_MOST 400 /* bytes; of a longer one, or in a longer folder, the file is not known */

struct seen_module *modules_last; /* atomic: grows at the front */

static struct {
    struct lock lock;
    struct seen_module *buckets[MODULE_BUCKETS];
    uintptr_t shifts;
    struct { /* addresses around the last one that was looked up: are they of a module noted? */
        uintptr_t start, bytes;
        bool noted;
    } around;
} seen = {.lock = LOCK(PROFILE)};

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
    return &seen.buckets[mixed(module->start) % MODULE_BUCKETS];
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
    struct seen_module *one = take(bytes);
    if (one == NULL)
        return NULL;
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

/* ---- lines of scripts ---- */

#define LINE_BUCKETS 4096

struct script_line *script_lines_first; /* atomic: grows at the front */

static struct {
    struct lock lock;
    struct script_line **buckets;
    size_t count;
} noted = {.lock = LOCK(PROFILE)};

void script_lines_enter(void) { lock_take(&noted.lock); }
void script_lines_leave(void) { lock_release(&noted.lock); }

static void add_octal(struct script_name *name, unsigned byte)
{
    char *to = name->bytes + name->length;
    to[0] = '\\';
    to[1] = (char)('0' + (byte >> 6));
    to[2] = (char)('0' + (byte >> 3 & 7));
    to[3] = (char)('0' + (byte & 7));
    name->length += 4;
}

static bool is_plain(uint32_t letter)
{
    return letter > ' ' && letter < 0x7f && letter != '\\' && letter != ':';
}

static void add_utf8(struct script_name *name, uint32_t letter)
{
    unsigned more = letter < 0x800 ? 1 : letter < 0x10000 ? 2 : 3;
    static const uint8_t heads[] = {0, 0xc0, 0xe0, 0xf0};
    name->bytes[name->length++] = (char)(heads[more] | letter >> 6 * more);
    while (more-- > 0)
        name->bytes[name->length++] = (char)(0x80 | (letter >> 6 * more & 0x3f));
}

/* Python has a byte that is no UTF-8 as one of these (PEP 383). */
#define BYTES_FIRST 0xdc80u
#define BYTES_LAST 0xdcffu
#define SURROGATE(letter) ((letter) >> 11 == 0xd800u >> 11)

void script_name_add(struct script_name *name, uint32_t letter)
{
    if (name->length + 4 > name->most)
        name->most = name->length; /* nothing after what is left out */
    else if (is_plain(letter))
        name->bytes[name->length++] = (char)letter;
    else if (letter < 0x80)
        add_octal(name, letter);
    else if (letter >= BYTES_FIRST && letter <= BYTES_LAST)
        add_octal(name, letter & 0xff);
    else if (SURROGATE(letter) || letter > 0x10ffff)
        name->bytes[name->length++] = '?';
    else
        add_utf8(name, letter);
}

static bool is_there(void)
{
    ASSERT(lock_held(&noted.lock));
    if (noted.buckets == NULL) {
        size_t bytes = round_up(LINE_BUCKETS * sizeof(void *), os_page);
        noted.buckets = meta_take_pages(bytes);
        add_relaxed(&bytes_taken, noted.buckets != NULL ? bytes : 0);
    }
    return noted.buckets != NULL;
}

static bool line_is(const struct script_line *one, const struct script_name *function,
                    const struct script_name *file, uint32_t line)
{
    return one->line == line && one->function_bytes == function->length &&
           one->file_bytes == file->length &&
           text_begins(one->names, function->bytes, function->length) &&
           text_begins(one->names + function->length, file->bytes, file->length);
}

static struct script_line *line_make(uint64_t hash, const struct script_name *function,
                                     const struct script_name *file, uint32_t line)
{
    size_t bytes = sizeof(struct script_line) + function->length + file->length + 1;
    struct script_line *one = noted.count < SCRIPT_MOST ? take(bytes) : NULL;
    if (one == NULL)
        return NULL;
    struct script_line **bucket = &noted.buckets[hash % LINE_BUCKETS];
    *one = (struct script_line){.next = script_lines_first,
                                .next_of_bucket = *bucket,
                                .address = SCRIPT_FIRST + (uintptr_t)one,
                                .hash = hash,
                                .line = line,
                                .function_bytes = (uint32_t)function->length,
                                .file_bytes = (uint32_t)file->length};
    bytes_copy(one->names, function->bytes, function->length);
    bytes_copy(one->names + function->length, file->bytes, file->length);
    one->names[function->length + file->length] = '\0';
    *bucket = one;
    noted.count++;
    store_release(&script_lines_first, one);
    return one;
}

uintptr_t script_line_note(const struct script_name *function, const struct script_name *file,
                           uint32_t line)
{
    uint64_t hash =
        bytes_hash(bytes_hash(line, function->bytes, function->length), file->bytes, file->length);
    if (!is_there())
        return 0;
    const struct script_line *one = noted.buckets[hash % LINE_BUCKETS];
    while (one != NULL && (one->hash != hash || !line_is(one, function, file, line)))
        one = one->next_of_bucket;
    if (one == NULL)
        one = line_make(hash, function, file, line);
    return one != NULL ? (uintptr_t)one->address : 0;
}

const struct script_line *script_lines(void) { return load_acquire(&script_lines_first); }
