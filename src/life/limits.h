/* Limits of memory: those of the process's containers (cgroup.h), which are read from time to time,
 * and those that options set. What follows from them is in back/use.h. */
#ifndef HAKMEM_LIFE_LIMITS_H
#define HAKMEM_LIFE_LIMITS_H

#include "back/use.h"
#include "base/atomic.h"
#include "base/policy.h"
#include "life/cgroup.h"

/* Whether options say anything but what holds without a call. */
static inline bool limits_wanted(void)
{
    return unlikely(policy.keep_bytes != AUTO) || unlikely(policy.soft_limit_bytes != 0) ||
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

/* Reads them. With purge.c's lock. */
void limits_look(void);

/* The lowest limit of a container, as it was read last; or NO_LIMIT. */
size_t limits_container(void);

#endif
