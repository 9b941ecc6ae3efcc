#include "heap/guard_pages.h"

#include "base/hardening.h"
#include "os/os.h"

#define PAGE 4096 /* the table is of such pages */

const struct guard_plan *guard_plans;

COLD void guard_pages_start(void)
{
    if (hardened() && hardening.guards && os_page == PAGE && os_can_guard())
        guard_plans = guard_table;
}
