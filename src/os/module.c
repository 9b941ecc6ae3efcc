#define _GNU_SOURCE /* _dl_find_object */
#include "os/module.h"

#include <link.h>

#include "base/text.h"
#include "os/os.h"
#include "os/symbols.h"

#if defined(DLFO_EH_SEGMENT_TYPE) && defined(HAKMEM_SHARED)

bool module_at(uintptr_t address, struct module *found)
{
    struct dl_find_object object;
    if (_dl_find_object((void *)address, &object) != 0)
        return false;
    *found = (struct module){(uintptr_t)object.dlfo_map_start,
                             (uintptr_t)object.dlfo_map_end,
                             object.dlfo_link_map->l_addr,
                             object.dlfo_link_map->l_ld,
                             object.dlfo_eh_frame,
                             object.dlfo_link_map->l_name};
    return true;
}

bool module_is_at(uintptr_t address, const void *tables)
{
    struct dl_find_object object;
    return _dl_find_object((void *)address, &object) == 0 && object.dlfo_eh_frame == tables;
}

bool module_loader(struct module *found) { return module_at(_r_debug.r_ldbase, found); }

#else

bool module_at(uintptr_t address, struct module *found)
{
    (void)address;
    (void)found;
    return false;
}

bool module_is_at(uintptr_t address, const void *tables)
{
    (void)address;
    (void)tables;
    return false;
}

bool module_loader(struct module *found)
{
    (void)found;
    return false;
}

#endif

/* Of the notes of one part. */
static void find_id(const char *at, size_t bytes, struct module_part *found)
{
    const ElfW(Nhdr) * note;
    while (bytes >= sizeof *note) {
        note = (const ElfW(Nhdr) *)at;
        size_t name = round_up((size_t)note->n_namesz, 4), all = sizeof *note + name;
        if (name > bytes || note->n_descsz > bytes || all + note->n_descsz > bytes)
            return;
        if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == sizeof "GNU" &&
            text_begins(at + sizeof *note, "GNU", sizeof "GNU")) {
            found->id = (const unsigned char *)at + all;
            found->id_bytes = note->n_descsz;
            return;
        }
        all += round_up((size_t)note->n_descsz, 4);
        if (all >= bytes)
            return;
        at += all;
        bytes -= all;
    }
}

bool module_part_at(const struct module *module, uintptr_t address, struct module_part *found)
{
    const ElfW(Ehdr) *head = (const ElfW(Ehdr) *)module->start;
    *found = (struct module_part){0};
    if (!os_readable(head) || !text_begins((const char *)head->e_ident, ELFMAG, SELFMAG) ||
        head->e_phoff > os_page || head->e_phentsize != sizeof(ElfW(Phdr)) ||
        head->e_phoff + head->e_phnum * sizeof(ElfW(Phdr)) > os_page)
        return false;
    const ElfW(Phdr) *part = (const ElfW(Phdr) *)(module->start + head->e_phoff);
    for (const ElfW(Phdr) *end = part + head->e_phnum; part < end; part++) {
        uintptr_t start = module->base + part->p_vaddr, bytes = part->p_filesz;
        uintptr_t before = start % os_page; /* in its first page */
        if (part->p_type == PT_LOAD && address - start < bytes) {
            found->start = start - before;
            found->end = round_up(start + bytes, os_page);
            found->offset = part->p_offset - before;
        } else if (part->p_type == PT_NOTE && found->id == NULL && bytes < os_page &&
                   os_readable((const void *)start) && os_readable((const void *)(start + bytes))) {
            find_id((const char *)start, bytes, found);
        }
    }
    return found->end != 0;
}

/* As the linker makes it of a name. */
static uint32_t gnu_hash(const char *name)
{
    uint32_t hash = 5381;
    for (; *name != '\0'; name++)
        hash = hash * 33 + (unsigned char)*name;
    return hash;
}

/* A word of bits for each few symbols: whether there may be one with this hash. */
static bool may_have(const uint32_t *table, uint32_t hash)
{
    const unsigned bits = 8 * sizeof(ElfW(Addr));
    const ElfW(Addr) *words = (const ElfW(Addr) *)(table + 4);
    ElfW(Addr) word = words[hash / bits % table[2]];
    return (word >> hash % bits & word >> (hash >> table[3]) % bits & 1) != 0;
}

static const ElfW(Sym) * symbol_of(const struct symbols *s, const char *name)
{
    const uint32_t *table = s->gnu_hash;
    uint32_t hash = gnu_hash(name);
    if (table == NULL || s->table == NULL || s->names == NULL || !may_have(table, hash))
        return NULL;
    const uint32_t *buckets = table + 4 + table[2] * (sizeof(ElfW(Addr)) / sizeof *table);
    uint32_t first = table[1];
    uint32_t at = buckets[hash % table[0]];
    if (at < first)
        return NULL;
    const uint32_t *chain = buckets + table[0];
    for (;; at++) {
        const ElfW(Sym) *symbol = &s->table[at];
        if ((chain[at - first] | 1) == (hash | 1) && symbol->st_shndx != SHN_UNDEF &&
            text_same(s->names + symbol->st_name, name))
            return symbol;
        if ((chain[at - first] & 1) != 0)
            return NULL;
    }
}

const void *module_symbol(const struct module *module, const char *name, size_t *bytes)
{
    struct symbols s = symbols_of(module->base, module->dynamic);
    const ElfW(Sym) *symbol = symbol_of(&s, name);
    if (symbol == NULL)
        return NULL;
    *bytes = symbol->st_size;
    return (const void *)(module->base + symbol->st_value);
}
