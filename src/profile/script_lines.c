#include "profile/script_lines.h"

#include "back/meta.h"
#include "base/atomic.h"
#include "base/memory.h"
#include "base/text.h"
#include "os/lock.h"
#include "os/os.h"

#define BUCKETS 4096

struct script_line *script_lines_first; /* atomic: grows at the front */

static struct {
    struct lock lock;
    struct script_line **buckets;
    size_t count;
    size_t bytes; /* atomic */
} noted = {.lock = LOCK(PROFILE)};

size_t script_lines_bytes(void) { return load_relaxed(&noted.bytes); }

void script_lines_enter(void) { lock_take(&noted.lock); }
void script_lines_leave(void) { lock_release(&noted.lock); }

/* ---- names ---- */

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
    else if (letter < 0xa0 && letter != 0x85 && letter < 0x80)
        add_octal(name, letter);
    else if (letter >= BYTES_FIRST && letter <= BYTES_LAST)
        add_octal(name, letter & 0xff);
    else if (SURROGATE(letter) || letter > 0x10ffff)
        name->bytes[name->length++] = '?';
    else
        add_utf8(name, letter);
}

/* ---- lines ---- */

static uint64_t hash_with(uint64_t hash, const struct script_name *name)
{
    for (size_t i = 0; i < name->length; i++)
        hash = (hash ^ (unsigned char)name->bytes[i]) * 0x100000001b3u;
    return mixed(hash + name->length);
}

static bool is_there(void)
{
    ASSERT(lock_held(&noted.lock));
    if (noted.buckets == NULL) {
        size_t bytes = round_up(BUCKETS * sizeof(void *), os_page);
        noted.buckets = meta_take_pages(bytes);
        store_relaxed(&noted.bytes, noted.buckets != NULL ? bytes : 0);
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
    struct script_line *one = noted.count < SCRIPT_MOST ? meta_take(bytes) : NULL;
    if (one == NULL)
        return NULL;
    store_relaxed(&noted.bytes, noted.bytes + meta_size(bytes));
    struct script_line **bucket = &noted.buckets[hash % BUCKETS];
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

static const struct script_line *line_of(const struct script_name *function,
                                         const struct script_name *file, uint32_t line)
{
    uint64_t hash = hash_with(hash_with(line, function), file);
    if (!is_there())
        return NULL;
    for (const struct script_line *one = noted.buckets[hash % BUCKETS]; one != NULL;
         one = one->next_of_bucket)
        if (one->hash == hash && line_is(one, function, file, line))
            return one;
    return line_make(hash, function, file, line);
}

uintptr_t script_line_note(const struct script_name *function, const struct script_name *file,
                           uint32_t line)
{
    const struct script_line *one = line_of(function, file, line);
    return one != NULL ? (uintptr_t)one->address : 0;
}

const struct script_line *script_lines(void) { return load_acquire(&script_lines_first); }
