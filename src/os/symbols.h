/* The symbols that a module in memory has for the loader. */
#ifndef HAKMEM_OS_SYMBOLS_H
#define HAKMEM_OS_SYMBOLS_H

#include "base/defs.h"

#include <link.h>

/* What of a module's dynamic section tells its symbols. */
struct symbols {
    const ElfW(Sym) * table;
    const char *names;
    const uint32_t *hash;
    const uint32_t *gnu_hash;
};

/* glibc adds the module's base to these addresses in place; musl does not, nor does the kernel. */
static inline const void *in_module(uintptr_t base, uintptr_t address)
{
    return (const void *)(address < base ? base + address : address);
}

static inline struct symbols symbols_of(uintptr_t base, const ElfW(Dyn) * dynamic)
{
    struct symbols s = {NULL, NULL, NULL, NULL};
    for (; dynamic->d_tag != DT_NULL; dynamic++) {
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

#endif
