/* Where a search for leaks begins: all memory of a process that is not the heap's. */
#ifndef HAKMEM_LOOK_ROOTS_H
#define HAKMEM_LOOK_ROOTS_H

#include "leaks.h"
#include "sheet/heap.h"

/* Calls `each` for it, part by part. Of stacks, from what the stack pointer points to on. */
void roots_each(struct target *t, const struct heap *heap, const struct registers *const *threads,
                size_t thread_count, void (*each)(void *to, uint64_t from, uint64_t end), void *to);

#endif
