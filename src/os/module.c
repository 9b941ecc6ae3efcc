#define _GNU_SOURCE /* dl_iterate_phdr, _dl_find_object */
#include "os/module.h"

#include "base/memory.h"
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

/* ---- names of addresses and functions ---- */

#define NAME_MOST 120 /* bytes of a name that are shown */
#define PATH_MOST 240

struct search {
    uintptr_t address;
    bool found;
    uintptr_t base;      /* of the module */
    const char *module;  /* its path; empty for the program */
    const char *symbol;  /* null if none is exported there */
    uintptr_t symbol_at; /* its address */
};

static struct symbols symbols_of_loaded(const struct dl_phdr_info *info)
{
    return symbols_of(info->dlpi_addr,
                      dynamic_of(info->dlpi_addr, info->dlpi_phdr, info->dlpi_phnum));
}

static void find_symbol(struct search *search, const struct symbols *s)
{
    size_t count = symbols_count(s);
    if (s->table == NULL || s->names == NULL)
        return;
    for (size_t i = 0; i < count; i++) {
        const ElfW(Sym) *symbol = &s->table[i];
        uintptr_t start = s->base + symbol->st_value;
        unsigned type = symbol->st_info & 0xf;
        if (symbol->st_shndx == SHN_UNDEF || (type != STT_FUNC && type != STT_OBJECT) ||
            search->address - start >= symbol->st_size)
            continue;
        search->symbol = s->names + symbol->st_name;
        search->symbol_at = start;
        return;
    }
}

static int find_in_module(struct dl_phdr_info *info, size_t bytes, void *argument)
{
    (void)bytes;
    struct search *search = argument;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        uintptr_t start = info->dlpi_addr + part->p_vaddr;
        if (part->p_type == PT_LOAD && search->address - start < part->p_memsz)
            search->found = true;
    }
    if (!search->found)
        return 0;
    search->base = info->dlpi_addr;
    search->module = info->dlpi_name;
    const struct symbols s = symbols_of_loaded(info);
    find_symbol(search, &s);
    return 1;
}

/* Finds what dladdr would find, without the lock that dlopen holds while constructors run. */
bool module_add_name(struct text *text, uintptr_t address)
{
    struct search search = {.address = address};
    char program[PATH_MOST + 1];
    dl_iterate_phdr(find_in_module, &search);
    if (!search.found)
        return false;
    if (search.symbol != NULL)
        text_write(text, " %.*s+%#lx", NAME_MOST, search.symbol, address - search.symbol_at);
    if (search.module == NULL || search.module[0] == '\0') {
        os_program_path(program, sizeof program);
        search.module = program;
    }
    text_write(text, " (%.*s+%#lx)", PATH_MOST, search.module, address - search.base);
    return true;
}

struct wanted {
    const char *name;
    void *found;
};

static int find_function(struct dl_phdr_info *info, size_t bytes, void *argument)
{
    (void)bytes;
    struct wanted *wanted = argument;
    const struct symbols s = symbols_of_loaded(info);
    wanted->found = symbols_function(&s, wanted->name);
    return wanted->found != NULL;
}

void *module_function(const char *name)
{
    struct wanted wanted = {name, NULL};
    dl_iterate_phdr(find_function, &wanted);
    return wanted.found;
}
