/* Reports accesses to guarded blocks that are free, and to the pages beside them
 * (profile/guarded.h). It handles SIGSEGV for that, and passes on each other one to the handler
 * that was there. */
#ifndef HAKMEM_REPORT_FAULT_H
#define HAKMEM_REPORT_FAULT_H

#include "base/defs.h"

/* False where the signal can't be handled. To be called again now and then, as the program may have
 * set its own handler meanwhile. The caller holds no lock: libc's sigaction may be replaced. */
bool fault_watch(void);
void fault_fork_child(void);

#endif
