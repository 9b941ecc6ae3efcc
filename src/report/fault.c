#include "report/fault.h"

#include "base/atomic.h"
#include "base/policy.h"
#include "os/self.h"
#include "profile/guarded.h"
#include "report/report.h"

/* Next to which end of the block, or in it. */
static enum misuse what_is(const char *address, const struct guarded_block *block)
{
    const char *start = load_relaxed(&block->start);
    if (address < start)
        return MISUSE_BEFORE;
    return address < start + load_relaxed(&block->bytes) ? MISUSE_USED : MISUSE_BEYOND;
}

/* The access is made again: where the program is to go on, it finds memory there. */
static bool look(const struct os_fault *fault)
{
    if (!guarded_holds(fault->address))
        return false;
    const struct guarded_block *block = guarded_near(fault->address);
    if (block == NULL)
        return false;
    report_misuse(&(struct wrong_call){.function = fault->access,
                                       .what = what_is(fault->address, block),
                                       .p = fault->address,
                                       .caller = fault->code,
                                       .fault = true});
    bool goes_on = policy.abort_on_misuse == 0;
    if (goes_on)
        guarded_open(fault->address);
    return goes_on;
}

static bool at_work; /* atomic: a thread sets the handler */

COLD bool fault_watch(void)
{
    if (__atomic_exchange_n(&at_work, true, __ATOMIC_ACQUIRE))
        return true;
    bool done = os_on_fault(look);
    store_release(&at_work, false);
    return done;
}

void fault_fork_child(void)
{
    if (at_work)
        at_work = false; /* a thread that the child does not have was at it */
}
