/* Closes all caches: from then on each call of each thread takes the slow path, and blocks go
 * straight from and to the bits of their slabs, where every wrong free is seen at once. A thread in
 * a tight loop never takes the slow path by itself, so its cache is taken from it. It costs nothing
 * while caches are open. */
#ifndef HAKMEM_FRONT_CLOSER_H
#define HAKMEM_FRONT_CLOSER_H

#include "base/defs.h"

extern bool caches_closed HIDDEN; /* atomic */

/* Closes or opens all caches. When it returns every thread is in the middle of one call through its
 * cache at most on x86; elsewhere it is soon. */
void caches_close(bool closed);

/* Opens the stacks of all caches to frees again that were closed from outside (life/settings.h). */
void caches_reopen(void);

#endif
