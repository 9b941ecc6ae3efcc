/* What a process that looks from outside begins with: hakmem_watch names all tables of
 * base/watch.h, and a note of the file says where it is. Notes lie at the start of a loaded file,
 * so they are found without symbols, in programs that are linked statically, and in core files. */
#include "base/watch.h"

#include "hakmem/hakmem.h"

#define TEXT(x) #x
#define VALUE(x) TEXT(x)

HIDDEN __attribute__((used)) const struct hakmem_watch hakmem_watch = {
    .magic = WATCH_MAGIC,
    .bytes = sizeof hakmem_watch,
    .format = WATCH_FORMAT,
    .version =
        VALUE(HAKMEM_VERSION_MAJOR) "." VALUE(HAKMEM_VERSION_MINOR) "." VALUE(HAKMEM_VERSION_PATCH),
#define TABLE(name) .name = &watch_##name,
    WATCH_TABLES(TABLE, TABLE)
#undef TABLE
};

/* Name and description are padded to four bytes. The description is the distance from itself. */
__asm__(".pushsection .note.hakmem, \"a\", %note\n"
        ".balign 4\n"
        ".long 2f - 1f, 4f - 3f, " VALUE(WATCH_NOTE) "\n"
                                                     "1: .asciz \"hakmem\"\n"
                                                     "2: .balign 4\n"
                                                     "3: .long hakmem_watch - 3b\n"
                                                     "4: .balign 4\n"
                                                     ".popsection\n");
