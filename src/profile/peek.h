/* Reads memory at addresses that may be wrong. Whether a page is there is asked for (os_readable),
 * but not again for some milliseconds: so whoever reads makes sure that what is rightly there stays
 * meanwhile, and what goes away was there for long. Thread safe, without a lock. */
#ifndef HAKMEM_PROFILE_PEEK_H
#define HAKMEM_PROFILE_PEEK_H

#include "base/defs.h"

/* When something is read; what was asked at other moments does not count. */
struct peek {
    uint64_t moment;
};
struct peek peek_begin(void);

/* The bytes there, as they are now; null where they are not all there, or there are none. */
const void *peek_at(const struct peek *peek, uintptr_t address, size_t bytes);

/* A number there; 0 where it is not there, or not where such a number would be. */
uintptr_t peek_word(const struct peek *peek, uintptr_t address);
uint32_t peek_half(const struct peek *peek, uintptr_t address);
uint8_t peek_byte(const struct peek *peek, uintptr_t address);

#endif
