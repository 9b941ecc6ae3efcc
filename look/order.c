#define _GNU_SOURCE
#include "order.h"

#include <errno.h>
#include <string.h>
#include <sys/file.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "because.h"
#include "process.h"

#define WAIT_MS 2000
#define STEP_MS 2
#define WRITES_MOST 1000000u
#define NAME_MOST 256

/* Straight from the process: what target_read has kept is old. */
static bool read_now(int thread, uint64_t at, void *to, size_t bytes)
{
    struct iovec here = {to, bytes};
    struct iovec there = {(void *)(uintptr_t)at, bytes};
    return process_vm_readv(thread, &here, 1, &there, 1, 0) == (ssize_t)bytes;
}

static bool write_now(int thread, uint64_t at, void *from, size_t bytes)
{
    struct iovec here = {from, bytes};
    struct iovec there = {(void *)(uintptr_t)at, bytes};
    return process_vm_writev(thread, &here, 1, &there, 1, 0) == (ssize_t)bytes;
}

static uint64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static bool done(int thread, const struct watch_orders *w, uint32_t number)
{
    uint32_t is = 0;
    return read_now(thread, address(w->orders) + w->done_at, &is, sizeof is) && is == number;
}

static bool wait_for(int thread, const struct watch_orders *w, uint32_t number)
{
    for (uint64_t until = now_ms() + WAIT_MS; now_ms() < until && process_same();) {
        if (done(thread, w, number))
            return true;
        nanosleep(&(struct timespec){.tv_nsec = STEP_MS * 1000000}, NULL);
    }
    return done(thread, w, number);
}

/* Closes a cache's stacks to frees, so that the next one takes the slow path; how many. */
static unsigned close_stacks(int thread, const struct watch_caches *w, uint64_t at,
                             const unsigned char *cache)
{
    unsigned closed = 0;
    for (unsigned stack = 0; stack < w->stacks; stack++) {
        uint32_t closes_at = w->bins_at + stack * w->bin_bytes + w->closes_at;
        uint64_t base;
        uint64_t open;
        uint64_t none = 0;
        memcpy(&base, cache + w->cold_at + (size_t)stack * w->cold_bytes + w->base_at, sizeof base);
        memcpy(&open, cache + closes_at, sizeof open);
        if (base != 0 && open != 0)
            closed += write_now(thread, at + closes_at, &none, sizeof none);
    }
    return closed;
}

static void close_caches(int thread, const struct tables *tables)
{
    const struct watch_caches *w = &tables->caches;
    static unsigned char cache[CACHE_MOST];
    uint64_t at = 0;
    read_now(thread, address(w->every), &at, sizeof at);
    /* A list in a circle ends when its stacks are closed: each counts as one, too. */
    for (unsigned n = 0; at != 0 && n < WRITES_MOST; n++) {
        uint32_t generation;
        if (!read_now(thread, at, cache, w->size))
            return;
        memcpy(&generation, cache + w->generation_at, sizeof generation);
        if (generation != 0)
            n += close_stacks(thread, w, at, cache);
        memcpy(&at, cache + w->every_at, sizeof at);
    }
}

/* Says that stacks are closed from here, so that who obeys opens them (front/cache.h). */
static bool say_closed(int thread, const struct tables *tables)
{
    uint32_t closes = 1;
    const void *where = tables->orders.closes; /* null in an older process */
    return where == NULL || write_now(thread, address(where), &closes, sizeof closes);
}

/* The step in which orders are obeyed is due when the clock has reached `due`: now. */
static bool make_due(int thread, const struct tables *tables)
{
    const struct watch_counters *c = &tables->counters;
    const uint32_t words[] = {c->freed_at, c->freed_slices_at, c->freed_huge_at};
    uint64_t clock = 0;
    for (unsigned i = 0; i < 3; i++) {
        uint64_t word = 0;
        if (!read_now(thread, address(c->first) + words[i], &word, sizeof word))
            return false;
        clock += word;
    }
    return write_now(thread, address(tables->orders.due), &clock, sizeof clock);
}

/* Makes the step due, and has each thread's next free come to it. That stacks are closed is said
 * before they are, and again after it: somebody may have obeyed and opened some in between. */
static bool call_for_it(int thread, const struct tables *tables)
{
    if (!make_due(thread, tables) || !say_closed(thread, tables))
        return false;
    close_caches(thread, tables);
    return say_closed(thread, tables) && make_due(thread, tables);
}

/* Two commands at once would write one order of two. */
static bool become_the_only_one(const struct target *t)
{
    for (uint64_t until = now_ms() + WAIT_MS; flock(t->memory, LOCK_EX | LOCK_NB) != 0;) {
        if (errno != EWOULDBLOCK || now_ms() >= until)
            return errno != EWOULDBLOCK; /* a kernel without such locks */
        nanosleep(&(struct timespec){.tv_nsec = STEP_MS * 1000000}, NULL);
    }
    return true;
}

static size_t name_room(const struct watch_orders *w)
{
    return w->name_bytes < NAME_MOST ? w->name_bytes : NAME_MOST;
}

static void name_of(const struct watch_orders *w, const struct order *order, char *name)
{
    memset(name, 0, NAME_MOST);
    if (order->name != NULL)
        memcpy(name, order->name, strnlen(order->name, name_room(w) - 1));
}

/* Fills in the fields; the number last. */
static bool write_order(int thread, const struct watch_orders *w, const struct order *order,
                        uint32_t number)
{
    uint64_t at = address(w->orders);
    uint32_t kind = order->kind;
    uint64_t value = order->value;
    char name[NAME_MOST];
    name_of(w, order, name);
    return write_now(thread, at + w->order_at, &kind, sizeof kind) &&
           write_now(thread, at + w->value_at, &value, sizeof value) &&
           write_now(thread, at + w->name_at, name, name_room(w)) &&
           write_now(thread, at + w->asked_at, &number, sizeof number);
}

/* Where the order that waits is of the same kind and name, it gets the value of this one. */
static bool replace_waiting(int thread, const struct tables *tables, const struct order *order)
{
    const struct watch_orders *w = &tables->orders;
    uint64_t at = address(w->orders);
    uint32_t kind = 0;
    uint64_t value = order->value;
    char waits[NAME_MOST] = "";
    char name[NAME_MOST];
    name_of(w, order, name);
    return read_now(thread, at + w->order_at, &kind, sizeof kind) && kind == order->kind &&
           read_now(thread, at + w->name_at, waits, name_room(w)) &&
           memcmp(waits, name, name_room(w)) == 0 &&
           write_now(thread, at + w->value_at, &value, sizeof value) && call_for_it(thread, tables);
}

static bool is_idle(int pid, struct why *why)
{
    return because(why, EXIT_WAITS,
                   "process %d is idle: it will do so when it next frees memory; a debugger can "
                   "have it at once: gdb -p %d -batch -ex 'call (int)malloc_trim(0)'",
                   pid, pid);
}

/* Waits until the order before is done. Else the one that waits may be this one. */
static bool none_waits(const struct tables *tables, int pid, const struct order *order,
                       uint32_t asked, struct why *why)
{
    const struct watch_orders *w = &tables->orders;
    const int thread = process_thread();
    if (done(thread, w, asked))
        return true;
    bool same = replace_waiting(thread, tables, order);
    if (wait_for(thread, w, asked))
        return true;
    return same ? is_idle(pid, why)
                : because(why, EXIT_WAITS,
                          "an earlier order still waits, so this one was not given: process %d "
                          "has not called malloc or free since",
                          pid);
}

static const char *refusal(enum order_kind order, uint32_t answer)
{
    switch (answer) {
    case 2:
        return order != ORDER_SET ? "its hakmem is too old for this" : "it has no such option";
    case 3:
        return "the value is not allowed";
    case 4:
        return "this option can only be set when a process starts";
    case 5:
        return "it can't be done now: there is no memory for it, or the process is forking";
    default:
        return "it gave no answer";
    }
}

bool order_give(struct target *t, const struct tables *tables, int pid, struct order *order,
                struct why *why)
{
    const struct watch_orders *w = &tables->orders;
    const int thread = process_thread();
    uint32_t asked = 0;
    uint32_t answer = 0;
    if (!process_numbers_agree())
        return because(why, EXIT_TARGET,
                       "/proc shows another PID namespace than this command runs in, so %d may be "
                       "two processes; mount /proc anew (unshare --mount-proc), or run it outside",
                       pid);
    if (w->orders == NULL || w->name_bytes == 0 || !target_mapped(t, address(w->orders), w->size) ||
        !target_mapped(t, address(w->due), sizeof(uint64_t)))
        return because(why, EXIT_NONSENSE, "its hakmem takes no orders");
    if (!become_the_only_one(t))
        return because(why, EXIT_WAITS,
                       "another command's order to process %d still waits, so this one was not "
                       "given",
                       pid);
    if (!read_now(thread, address(w->orders) + w->asked_at, &asked, sizeof asked))
        return because(why, EXIT_TARGET, "process %d: %s", pid, strerror(errno));
    if (!none_waits(tables, pid, order, asked, why))
        return false;
    if (!write_order(thread, w, order, asked + 1) || !call_for_it(thread, tables))
        return errno == EPERM || errno == EACCES
                   ? because(why, EXIT_RIGHTS, "no permission to write to process %d", pid)
                   : because(why, EXIT_TARGET, "process %d: %s", pid, strerror(errno));
    if (!wait_for(thread, w, asked + 1))
        return is_idle(pid, why);
    if (!read_now(thread, address(w->orders) + w->answer_at, &answer, sizeof answer) ||
        !read_now(thread, address(w->orders) + w->result_at, &order->result, sizeof order->result))
        return because(why, EXIT_TARGET, "process %d: %s", pid, strerror(errno));
    if (answer == 1)
        return true;
    if (order->kind == ORDER_RECORD && order->result == EBUSY)
        return because(why, EXIT_REFUSED, "it is being recorded already");
    if (order->kind == ORDER_RECORD && answer == 5)
        return because(why, EXIT_REFUSED, "it can't make a file in %s: %s", order->name,
                       strerror((int)order->result));
    return because(why, EXIT_REFUSED, "%s", refusal(order->kind, answer));
}
