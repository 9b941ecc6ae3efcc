/* What the public functions about the whole heap share. */
#ifndef HAKMEM_API_HEAP_H
#define HAKMEM_API_HEAP_H

#include "report/accounts.h"

/* What all memory is used for now. The caller holds no lock. */
void heap_count(struct accounts *accounts);

#endif
