/* Which functions allocated a block, with check_functions: a note in its canary, in the descriptor
 * of a huge block, or with what is noted of a guarded one. Thread safe, without a lock. */
#ifndef HAKMEM_WATCH_MAKERS_H
#define HAKMEM_WATCH_MAKERS_H

#include "base/misuse.h"

/* For p, any address. MAKER_UNKNOWN where no block in use begins there, or nothing is noted of it:
 * blocks that are served while a fork holds the heap. */
enum maker maker_of(const void *p);

/* Notes it of p, a block in use that the caller holds. */
void maker_note(void *p, enum maker maker);

#endif
