/* The numbers that the rest reads, made from the table of options. Plain data: only policy/ writes
 * it, before the first cache exists. Sizes in bytes, switches 0 or 1. */
#ifndef HAKMEM_BASE_POLICY_H
#define HAKMEM_BASE_POLICY_H

#include "base/defs.h"

struct policy {
#define OPTION(name, type, value, least, most, help) size_t name;
#include "base/options.def"
};

extern struct policy policy HIDDEN;

/* Of `learn`: nothing is found out; what would be changed is, and not done; it is done. */
enum { LEARN_FROZEN, LEARN_OBSERVE, LEARN };

#endif
