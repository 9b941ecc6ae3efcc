/* What the calls of a stack are in, noted for ever: modules, as one may be unloaded before its
 * calls get their names, and lines of scripts. Thread safe. */
#ifndef HAKMEM_PROFILE_NOTED_H
#define HAKMEM_PROFILE_NOTED_H

#include "base/defs.h"
#include "os/module.h"

/* Bytes of metadata for all this. */
size_t noted_bytes(void);

/* ---- modules ----
 *
 * The addresses of one that was unloaded may be another's by the time that names are looked up. So
 * each module is noted when it is first seen in a stack, as lines that a heap profile has of it. */

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

/* Above all addresses of code, and below those of lines of scripts. */
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
 * Thread safe. The caller holds a cache's lock or its like (os/lock.h). */
bool modules_see(const struct modules_met *met, uintptr_t *frames, unsigned count);

/* Whether other modules of those that were noted are closed now than when this was asked last:
 * their addresses may be others' soon. Without a lock. */
bool modules_closed(void);

/* The one noted last; null: none. */
struct seen_module *modules_seen(void);

/* Where its address is, for who reads from outside. */
extern struct seen_module *modules_last HIDDEN;

/* ---- lines of scripts ----
 *
 * The functions, files and lines that frames of an interpreter are at. Each gets an address, where
 * no code can be, so that it can stand in a call stack; it keeps it. */

/* Of addresses that no processor can have. Below it is where the line is noted. */
#define SCRIPT_FIRST ((uintptr_t)1 << 60)
#define SCRIPT_STEP 16 /* at least from one to the next */
#define SCRIPT_MOST ((size_t)1 << 17)

/* Bytes of a name that are noted; what is longer is cut. */
#define SCRIPT_FUNCTION_MOST 200
#define SCRIPT_FILE_MOST 400

struct script_line {
    struct script_line *next;           /* noted before it; constant, as most of it is */
    struct script_line *next_of_bucket; /* noted before it */
    uint64_t address, hash;
    uint32_t line; /* 0: unknown */
    uint32_t function_bytes, file_bytes;
    uint32_t recorded; /* the recording that has it; atomic, and the only field that changes */
    char names[];      /* the function's, the file's, and a zero */
};

/* Names as they are noted: UTF-8, in which bytes that would not be, blanks, colons, backslashes and
 * what controls a terminal are \ooo, in octal. */
struct script_name {
    size_t length, most;
    char *bytes;
};
void script_name_add(struct script_name *name, uint32_t letter);

/* Around script_line_note; what is found in between belongs to this thread. The caller holds a
 * cache's lock or its like (os/lock.h). */
void script_lines_enter(void);
void script_lines_leave(void);

/* A function at a line; 0 where there is no memory, or there are too many. The names' bytes are
 * copied. */
uintptr_t script_line_note(const struct script_name *function, const struct script_name *file,
                           uint32_t line);

/* The line with an address that was noted; null for any other address. */
static inline struct script_line *script_line_at(uintptr_t address)
{
    return address >> 60 == 1 ? (struct script_line *)(address - SCRIPT_FIRST) : NULL;
}

/* The one noted last; null: none. */
const struct script_line *script_lines(void);

/* Where its address is, for who reads from outside. */
extern struct script_line *script_lines_first HIDDEN;

#endif
