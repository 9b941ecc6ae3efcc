#define _GNU_SOURCE /* _dl_find_object */
#include "os/module.h"

#include <link.h>

#include "base/text.h"
#include "os/symbols.h"

#if defined(DLFO_EH_SEGMENT_TYPE) && defined(HAKMEM_SHARED)

bool module_at(uintptr_t address, struct module *found)
{
    struct dl_find_object object;
    if (_dl_find_object((void *)address, &object) != 0)
        return false;
    *found = (struct module){(uintptr_t)object.dlfo_map_start, (uintptr_t)object.dlfo_map_end,
                             object.dlfo_link_map->l_addr, object.dlfo_link_map->l_ld};
    return true;
}

#else

bool module_at(uintptr_t address, struct module *found)
{
    (void)address;
    (void)found;
    return false;
}

#endif

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
