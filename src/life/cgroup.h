/* The limits of memory that the kernel sets to the process's control group (cgroup) and to all
 * groups above it, of version 2 and 1. What is not there, can't be read or makes no sense is no
 * limit. */
#ifndef HAKMEM_LIFE_CGROUP_H
#define HAKMEM_LIFE_CGROUP_H

#include "base/defs.h"

#define NO_LIMIT SIZE_MAX

struct cgroup_memory {
    size_t limit; /* bytes, the lowest of all; or NO_LIMIT */
    bool close;   /* a group is close to its limit */
};

/* 0, or the error with which the process can't ask, as in some sandboxes: then nothing is known.
 * With purge.c's lock; a few microseconds for each file. */
int cgroup_read(struct cgroup_memory *memory);

/* ---- parts of it, which read nothing ---- */

/* The group that limits memory, as a file /proc/PID/cgroup names it. */
struct cgroup {
    bool first;       /* of version 1 */
    const char *path; /* from the root of its tree, which is no part of it; not ended by a zero */
    size_t length;
};

/* False where the text names none. */
bool cgroup_find(const char *text, size_t length, struct cgroup *group);

/* Cuts off the last name; false where it is the root. */
bool cgroup_parent(struct cgroup *group);

/* The number that a file holds, or `none`. */
size_t cgroup_number(const char *text, size_t length, size_t none);

/* The number after `name` in a file of such lines, or 0. */
size_t cgroup_line(const char *text, size_t length, const char *name);

#endif
