/* Limits of memory: those of the process's containers, which are read from time to time, and those
 * that options set. What follows from them is in back/use.h. */
#ifndef HAKMEM_LIFE_LIMITS_H
#define HAKMEM_LIFE_LIMITS_H

#include "back/use.h"
#include "base/atomic.h"
#include "base/policy.h"

/* Whether options or a limit of addresses say anything but what holds without a call. */
static inline bool limits_wanted(void)
{
    return unlikely(load_relaxed(&limits.space) != SIZE_MAX) ||
           unlikely(policy.keep_bytes != AUTO) || unlikely(policy.soft_limit_bytes != 0) ||
           unlikely(policy.hard_limit_bytes != 0) || unlikely(!policy.container_limits);
}

/* After options are known, or one of them was changed. */
void limits_set(void);

/* After keep_bytes has changed: whether the soft limit is passed stays as it was found. */
void limits_keep(void);

/* As the process ends: the kernel takes all, and soon. */
void limits_end(void);

/* Whether it is time to read the limits of containers. Needs no lock. */
bool limits_due(void);

/* Reads them, and those of addresses. With purge.c's lock. */
void limits_look(void);

/* The lowest limit of a container, as it was read last; or NO_LIMIT. */
size_t limits_container(void);

/* ---- containers ----
 *
 * The limits that the kernel sets to the process's control group (cgroup) and to all groups above
 * it, of version 2 and 1. What is not there, can't be read or makes no sense is no limit. */

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

/* The number after `name` and a space in a file of such lines, or 0. */
size_t cgroup_line(const char *text, size_t length, const char *name);

#endif
