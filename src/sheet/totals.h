/* What a look adds up to. */
#ifndef HAKMEM_SHEET_TOTALS_H
#define HAKMEM_SHEET_TOTALS_H

#include "sheet/heap.h"

/* What a mapping is of. */
enum kind { KIND_HEAP, KIND_FILE, KIND_STACK, KIND_ANONYMOUS, KINDS };
extern const char kind_names[KINDS][12];
enum kind mapping_kind(const struct target *t, const struct mapping *m);

struct totals {
    uint64_t resident;     /* all of it, by the kernel */
    uint64_t kinds[KINDS]; /* of that, in mappings of the kind, and not the heap's */
    int64_t unexplained;   /* of the heap's mappings: what changed meanwhile */
    uint64_t returnable;   /* of the heap: what could go back at once */
    uint64_t swapped[2];   /* not resident, but in swap: of the heap, of all else */
    uint64_t most;         /* that was ever resident (VmHWM); 0 where nobody asked */
};

struct totals totals_of(const struct target *t, const struct heap *heap);

/* A heap at work changes while it is looked at. So much that is not explained is little; else the
 * best of LOOKS_MOST looks is taken. */
uint64_t little_of(const struct target *t);
#define LOOKS_MOST 6

#endif
