/* Reads memory at addresses that may be wrong. Which pages are there is asked once for each in a
 * walk (os_readable): whoever reads makes sure that what is rightly there stays. */
#ifndef HAKMEM_PROFILE_PEEK_H
#define HAKMEM_PROFILE_PEEK_H

#include "base/defs.h"

#define PEEK_PAGES 64
struct peek {
    uintptr_t pages[PEEK_PAGES]; /* their numbers, each at its remainder; 0: none */
};

/* The bytes there, as they are now; null where they are not all there. */
const void *peek_at(struct peek *peek, uintptr_t address, size_t bytes);

/* A number there; 0 where it is not there, or not where such a number would be. */
uintptr_t peek_word(struct peek *peek, uintptr_t address);
uint32_t peek_half(struct peek *peek, uintptr_t address);
uint8_t peek_byte(struct peek *peek, uintptr_t address);

#endif
