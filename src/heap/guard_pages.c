#include "heap/guard_pages.h"

#include "base/hardening.h"
#include "os/os.h"

#define PAGE 4096 /* the table is of such pages */

const struct guard_plan *guard_plans;

COLD void guard_pages_start(void)
{
    if (hardened() && hardening.marks && os_page == PAGE)
        guard_plans = guard_table;
}
