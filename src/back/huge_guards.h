/* Where the guard behind a huge block begins (huge.h). */
#ifndef HAKMEM_BACK_HUGE_GUARDS_H
#define HAKMEM_BACK_HUGE_GUARDS_H

#include "back/huge_block.h"

/* Of a block with guards so many bytes can be touched from now on, whole pages within its length.
 * Those that come are zero. False, and nothing has changed, where the kernel does not give more;
 * where it does not take what is too many, those stay and can be touched. */
bool huge_guards_move(struct huge *h, size_t usable);

#endif
