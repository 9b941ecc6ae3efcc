/* The numbers that the rest reads, made from the table of options. options/ writes them before the
 * first cache exists. Those that change later (life/settings.c, life/life.c) are atomic. Sizes in
 * bytes, switches 0 or 1. */
#ifndef HAKMEM_BASE_POLICY_H
#define HAKMEM_BASE_POLICY_H

#include "base/defs.h"

struct policy {
#define OPTION(name, type, value, least, most, help) size_t name;
#include "base/options.def"
};

extern struct policy policy HIDDEN;

/* Of the options stats_file, profile_file and record. */
#define PATH_OPTION_MOST 1024
extern char stats_path[PATH_OPTION_MOST] HIDDEN;
extern char profile_path[PATH_OPTION_MOST] HIDDEN;
extern char record_path[PATH_OPTION_MOST] HIDDEN;

/* In place of a number: hakmem finds it out. Only an option whose default it is can be so. */
#define AUTO SIZE_MAX

static inline size_t unless_auto(size_t set, size_t otherwise)
{
    return set == AUTO ? otherwise : set;
}

/* The most of keep_bytes, more than there can be: then nothing goes back because it lies idle. */
#define KEEP_ALL (1024 * GiB)

/* Of `learn`: nothing is found out; what would be changed is, and not done; it is done. */
enum { LEARN_FROZEN, LEARN_OBSERVE, LEARN };

#endif
