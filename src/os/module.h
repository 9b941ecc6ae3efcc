/* Modules in memory: the one that code is in, found without a lock; what one exports and says of
 * itself; and names for addresses. */
#ifndef HAKMEM_OS_MODULE_H
#define HAKMEM_OS_MODULE_H

#include "base/defs.h"
#include "base/text.h"

struct module {
    uintptr_t start, end; /* where its code and data are */
    uintptr_t base;       /* what its file's addresses are added to */
    const void *dynamic;  /* its dynamic section */
    const void *tables;   /* for unwinding */
    const char *name;     /* of its file, as the loader has it; empty for the program */
};

/* False where there is none, and always with a libc that would take a lock for it, and outside of
 * the shared library. */
bool module_at(uintptr_t address, struct module *found);

/* Whether a module with these tables has the address: another one may, at another time. Also of a
 * module that another thread may be closing. */
bool module_is_at(uintptr_t address, const void *tables);

/* The loader itself; false as for module_at. */
bool module_loader(struct module *found);

/* The part of a module that has the code at an address, in whole pages. */
struct module_part {
    uintptr_t start, end;
    uint64_t offset;         /* of its start in the file */
    const unsigned char *id; /* the module's build id; null: none */
    size_t id_bytes;
};

/* False where the module's head is not in memory. */
bool module_part_at(const struct module *module, uintptr_t address, struct module_part *found);

/* The address of what a module exports, a function or data, and its bytes; null where it has none
 * by this name, or no hash table in GNU's format. */
const void *module_symbol(const struct module *module, const char *name, size_t *bytes);

/* ---- names of addresses and functions, in all modules ---- */

/* Adds " name+0xOFFSET (module+0xOFFSET)" for an address of code or static data in a loaded module,
 * as far as it is known; false, and nothing, where there is no module. The name is one that the
 * module exports; the offset in it is for addr2line. */
bool module_add_name(struct text *text, uintptr_t address);

/* The address of a function that a loaded module exports, also where the loader lets only other
 * modules see it (RTLD_LOCAL); null if there is none. Of several, that of the module loaded first.
 */
void *module_function(const char *name);

#endif
