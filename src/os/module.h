/* The module that code is in, found without a lock, and what it exports. */
#ifndef HAKMEM_OS_MODULE_H
#define HAKMEM_OS_MODULE_H

#include "base/defs.h"

struct module {
    uintptr_t start, end; /* where its code and data are */
    uintptr_t base;       /* what its file's addresses are added to */
    const void *dynamic;  /* its dynamic section */
};

/* False where there is none, and always with a libc that would take a lock for it, and outside of
 * the shared library. */
bool module_at(uintptr_t address, struct module *found);

/* The address of what a module exports, a function or data, and its bytes; null where it has none
 * by this name, or no hash table in GNU's format. */
const void *module_symbol(const struct module *module, const char *name, size_t *bytes);

#endif
