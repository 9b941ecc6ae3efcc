/* The symbols that a module in memory has for the loader. */
#ifndef HAKMEM_OS_SYMBOLS_H
#define HAKMEM_OS_SYMBOLS_H

#include <link.h>

#include "base/memory.h"
#include "base/text.h"

/* What of a module's dynamic section tells them. */
struct symbols {
    uintptr_t base;
    const ElfW(Sym) * table;
    const char *names;
    const uint32_t *hash;
    const uint32_t *gnu_hash;
};

/* Of a module with these parts; null: it has none. */
static inline const ElfW(Dyn) * dynamic_of(uintptr_t base, const ElfW(Phdr) * parts, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (parts[i].p_type == PT_DYNAMIC)
            return (const ElfW(Dyn) *)(base + parts[i].p_vaddr);
    return NULL;
}

/* glibc adds the module's base to these addresses in place; musl does not, nor does the kernel. */
static inline const void *in_module(uintptr_t base, uintptr_t address)
{
    return (const void *)(address < base ? base + address : address);
}

/* None where `dynamic` is null. */
static inline struct symbols symbols_of(uintptr_t base, const ElfW(Dyn) * dynamic)
{
    struct symbols s = {.base = base};
    for (; dynamic != NULL && dynamic->d_tag != DT_NULL; dynamic++) {
        const void *there = in_module(base, dynamic->d_un.d_ptr);
        if (dynamic->d_tag == DT_SYMTAB)
            s.table = there;
        else if (dynamic->d_tag == DT_STRTAB)
            s.names = there;
        else if (dynamic->d_tag == DT_HASH)
            s.hash = there;
        else if (dynamic->d_tag == DT_GNU_HASH)
            s.gnu_hash = there;
    }
    return s;
}

/* Only the hash tables tell how many symbols there are: DT_HASH in its second word, DT_GNU_HASH by
 * where the chain of its last bucket ends. */
static inline size_t symbols_count(const struct symbols *s)
{
    if (s->table == NULL || s->names == NULL)
        return 0;
    if (s->hash != NULL)
        return s->hash[1];
    if (s->gnu_hash == NULL)
        return 0;
    uint32_t buckets = s->gnu_hash[0];
    uint32_t first = s->gnu_hash[1];
    const uint32_t *bucket = s->gnu_hash + 4 + s->gnu_hash[2] * (sizeof(ElfW(Addr)) / 4);
    const uint32_t *chain = bucket + buckets;
    uint32_t last = 0;
    for (uint32_t i = 0; i < buckets; i++)
        if (bucket[i] > last)
            last = bucket[i];
    if (last < first)
        return first;
    while ((chain[last - first] & 1) == 0)
        last++;
    return last + 1;
}

/* The address of a function that is exported; null where there is none by this name. */
static inline void *symbols_function(const struct symbols *s, const char *name)
{
    size_t count = symbols_count(s);
    if (s->table == NULL || s->names == NULL)
        return NULL;
    for (size_t i = 0; i < count; i++) {
        const ElfW(Sym) *symbol = &s->table[i];
        unsigned visibility = symbol->st_other & 3;
        if (symbol->st_shndx != SHN_UNDEF && (symbol->st_info & 0xf) == STT_FUNC &&
            symbol->st_info >> 4 != STB_LOCAL &&
            (visibility == STV_DEFAULT || visibility == STV_PROTECTED) &&
            text_same(s->names + symbol->st_name, name))
            return (void *)(s->base + symbol->st_value);
    }
    return NULL;
}

#endif
