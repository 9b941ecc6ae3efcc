#include "life/settings.h"

#include "base/memory.h"
#include "base/policy.h"
#include "base/watch.h"
#include "life/limits.h"
#include "life/profiling.h"
#include "life/purge.h"
#include "life/recording.h"
#include "options/options.h"
#include "os/lock.h"

/* The program's function for the soft limit is not called here, but in the program's next call that
 * takes the slow path. */
static void change_limits(void (*set)(void))
{
    purge_stop(); /* the limits of containers are read under the same lock */
    set();
    purge_go_on();
    purge_beyond();
}

enum changed option_change(const char *name, size_t value, struct cache *mine)
{
    const struct option *option = option_find((struct words){name, text_length(name)});
    if (option == NULL)
        return CHANGE_NO_OPTION;
    if (!(value == AUTO && option_may_be_auto(option)) &&
        (value < option->least || value > option->most))
        return CHANGE_NOT_ALLOWED;
    size_t *field = (size_t *)((char *)&policy + option->offset);
    switch (option - options) {
    case OPTION_NUMBER_check_frees:
        purge_check_frees(mine, value != 0);
        break;
    case OPTION_NUMBER_profile:
        if (!profile_switch(value != 0))
            return CHANGE_NOT_NOW;
        break;
    case OPTION_NUMBER_profile_rss:
        if (value != 0 && !profile_switch(true))
            return CHANGE_NOT_NOW;
        break;
    case OPTION_NUMBER_guards_a_second:
        if (!guards_switch(value))
            return CHANGE_NOT_NOW;
        break;
    case OPTION_NUMBER_profile_rate:
    case OPTION_NUMBER_profile_samples:
    case OPTION_NUMBER_profile_scripts:
    case OPTION_NUMBER_abort_on_misuse:
    case OPTION_NUMBER_compact:
    case OPTION_NUMBER_thread_bytes:
    case OPTION_NUMBER_keep_bytes:
    case OPTION_NUMBER_soft_limit_bytes:
    case OPTION_NUMBER_hard_limit_bytes:
    case OPTION_NUMBER_report_no_memory:
        break;
    default:
        return CHANGE_AT_START_ONLY;
    }
    store_relaxed(field, value);
    if (option - options == OPTION_NUMBER_keep_bytes)
        change_limits(limits_keep);
    if (option - options == OPTION_NUMBER_soft_limit_bytes ||
        option - options == OPTION_NUMBER_hard_limit_bytes)
        change_limits(limits_set);
    return CHANGED;
}

struct orders orders;

COLD void orders_obey(struct cache *mine)
{
    if (fork_holds_locks())
        return; /* the thread that forks may be the one that calls */
    uint32_t asked = load_acquire(&orders.asked);
    bool obeyed = __atomic_exchange_n(&orders.taken, asked, __ATOMIC_ACQ_REL) == asked;
    if (load_relaxed(&closed_from_outside) != 0)
        heap_open_ordered();
    if (obeyed)
        return;
    orders.name[ORDER_NAME - 1] = 0;
    if (orders.order == ORDER_PURGE) {
        orders.result = purge_all(mine, 0);
        orders.answer = CHANGED;
    } else if (orders.order == ORDER_SET) {
        orders.result = (load_relaxed(&closings) & CLOSED_PROFILED) != 0;
        orders.answer = option_change(orders.name, orders.value, mine);
    } else if (orders.order == ORDER_RECORD) {
        orders.result = (uint64_t)recording_start(orders.name);
        orders.answer = orders.result == 0 ? CHANGED : CHANGE_NOT_NOW;
    } else if (orders.order == ORDER_MARK) {
        recording_mark(orders.name);
        orders.answer = CHANGED;
    } else {
        orders.answer = CHANGE_NO_OPTION;
    }
    store_release(&orders.done, asked);
}

const struct watch_orders watch_orders = {
    .bytes = sizeof watch_orders,
    .size = sizeof(struct orders),
    .asked_at = offsetof(struct orders, asked),
    .done_at = offsetof(struct orders, done),
    .order_at = offsetof(struct orders, order),
    .answer_at = offsetof(struct orders, answer),
    .value_at = offsetof(struct orders, value),
    .result_at = offsetof(struct orders, result),
    .name_at = offsetof(struct orders, name),
    .name_bytes = ORDER_NAME,
    .orders = &orders,
    .due = &purge_due,
    .closes = &closed_from_outside,
};
