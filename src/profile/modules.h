/* The modules that calls of a stack are in. One may be unloaded before its calls get their names,
 * and its addresses may be another's by then. So each is noted when it is first seen in a stack,
 * for ever, as lines that a heap profile has of it. */
#ifndef HAKMEM_PROFILE_MODULES_H
#define HAKMEM_PROFILE_MODULES_H

#include "base/defs.h"
#include "os/module.h"

#define MODULE_LINES_MOST 1024

struct seen_module {
    struct seen_module *next;           /* seen before it; constant, as most of it is */
    struct seen_module *next_of_bucket; /* the same, of its bucket */
    uintptr_t start, end;               /* its code */
    uintptr_t shift;                    /* what is added to its addresses, as they were another's */
    uintptr_t module_end, base;
    const void *dynamic, *tables;
    const char *name; /* behind its lines */
    const unsigned char
        *id_there;           /* where the module has its build id, null: not looked at again */
    const unsigned char *id; /* as it was, behind the name */
    size_t id_bytes;
    uint32_t recorded; /* the recording that has it; atomic, and the only field that changes */
    uint32_t bytes;    /* of its lines */
    char lines[]; /* a mapping as the kernel describes it, and "# build-id START ID", each where
                     it is known and with a line feed; then a zero */
};

/* Above all addresses of code, and below those of scripts (script_lines.h). */
#define MODULES_SHIFT 48
#define MODULES_FIRST ((uintptr_t)1 << 11)
#define MODULES_MOST ((uintptr_t)1 << 10)

/* What is added to an address that was a module's, and is now in none (code that the program made),
 * or in one for which no other number was left. */
#define MODULES_NOBODYS ((MODULES_FIRST + MODULES_MOST) << MODULES_SHIFT)

/* The modules of a stack, as the loader has them; calls in further ones count as in none. */
#define MODULES_MET 16
struct modules_met {
    unsigned count;
    struct module of[MODULES_MET];
};

/* Looks the modules of calls up. Without a lock: a library may have put a function of its own
 * before the loader's, and allocate in it. */
void modules_meet(struct modules_met *met, const uintptr_t *frames, unsigned count);

/* Notes these modules of the calling thread's calls. Where code lies that was another module's, the
 * address becomes one that is nobody's else. False where some calls are in none that is noted.
 * Thread safe. The caller holds a cache's lock or its like (os/rank.h). */
bool modules_see(const struct modules_met *met, uintptr_t *frames, unsigned count);

/* Whether other modules of those that were noted are closed now than when this was asked last:
 * their addresses may be others' soon. Without a lock. */
bool modules_closed(void);

/* Bytes of metadata for these, for ever. */
size_t modules_bytes(void);

/* The one noted last; null: none. */
struct seen_module *modules_seen(void);

/* Where its address is, for who reads from outside. */
extern struct seen_module *modules_last HIDDEN;

#endif
