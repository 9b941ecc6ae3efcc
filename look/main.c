/* hakmem's reader: what a process uses its heap for, found from outside, as JSON on standard
 * output. The command (`hakmem sheet`) calls it, and shows what it says. It never stops the
 * process, runs no code in it, and writes nothing to it.
 *
 *   look PID
 *
 * Exit status: see why.h. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core.h"
#include "heap.h"
#include "order.h"
#include "process.h"
#include "sheet.h"
#include "why.h"

enum ending ending = EXIT_DONE;

/* Pages that a look may ask for, beside some for each that is resident: a heap that means to
 * mislead leads to nothing for ever. */
#define BUDGET_LEAST 4000000u
#define BUDGET_OF_PAGE 16

/* A heap at work changes while it is looked at. So much that is not explained is little; else the
 * best of some looks is taken. */
#define LITTLE(rss) ((rss) / 100)
#define LOOKS_MOST 6

static uint64_t resident(const struct target *t)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < t->map_count; i++)
        sum += t->maps[i].rss;
    return sum;
}

static uint64_t unexplained(const struct target *t)
{
    int64_t sum = 0;
    for (size_t i = 0; i < t->map_count; i++)
        if (t->maps[i].heap)
            sum += (int64_t)t->maps[i].rss - (int64_t)t->maps[i].claimed;
    return (uint64_t)(sum < 0 ? -sum : sum);
}

static bool look_once(struct target *t, struct heap *heap, char *why, size_t room)
{
    t->budget = BUDGET_LEAST + BUDGET_OF_PAGE * (resident(t) / PAGE);
    target_begin(t);
    return tables_find(t, &heap->tables, why, room) && heap_read(t, heap, why, room);
}

/* Looks until little is left to explain, and prints the last or the best; of these the earlier one
 * is held in text. */
static bool look(int pid, char *why, size_t room)
{
    static struct heap heap;
    struct target t;
    char *best = NULL;
    uint64_t least = UINT64_MAX;
    if (!process_open(&t, pid, why, room))
        return false;
    bool seen = true;
    for (unsigned n = 0; n < LOOKS_MOST && least > LITTLE(resident(&t)); n++) {
        struct sheet sheet = {.pid = pid, .before = process_rss(pid)};
        bool mapped = n == 0 || process_maps(&t, pid, why, room);
        seen = mapped && look_once(&t, &heap, why, room);
        /* What makes no sense may have changed in the middle: mappings that came, or went. */
        if (!mapped || (!seen && ending != EXIT_NONSENSE))
            break;
        if (!seen) {
            heap_release(&heap);
            continue;
        }
        sheet.after = process_rss(pid);
        if (unexplained(&t) < least) {
            least = unexplained(&t);
            free(best);
            best = sheet_text(&t, &heap, sheet);
        }
        heap_release(&heap);
    }
    seen |= best != NULL;
    /* What it has goes before it has ended. */
    if (!process_same(pid) || (!seen && process_rss(pid) == 0))
        seen = because(why, room, EXIT_TARGET, "process %d ended while it was being read", pid);
    else if (seen && best == NULL)
        seen = because(why, room, EXIT_TARGET, "out of memory");
    if (seen)
        fputs(best, stdout);
    free(best);
    return seen;
}

static bool look_at_core(const char *path, char *why, size_t room)
{
    static struct heap heap;
    struct target t;
    if (!core_open(&t, path, why, room))
        return false;
    if (!look_once(&t, &heap, why, room))
        return core_is_cut() ? because(why, room, EXIT_TARGET,
                                       "%s: the core file is cut off (a limit of its size, or a "
                                       "full disk)",
                                       path)
                             : false;
    char *text = sheet_text(&t, &heap, (struct sheet){0});
    if (text == NULL)
        return because(why, room, EXIT_TARGET, "out of memory");
    fputs(text, stdout);
    free(text);
    heap_release(&heap);
    return true;
}

static bool order(int pid, struct order *order, char *why, size_t room)
{
    static struct tables tables;
    struct target t;
    if (!process_open(&t, pid, why, room))
        return false;
    t.budget = BUDGET_LEAST;
    target_begin(&t);
    if (!tables_find(&t, &tables, why, room) || !order_give(&t, &tables, pid, order, why, room))
        return false;
    printf("{\"pid\": %d, \"result\": %" PRIu64 "}\n", pid, order->result);
    return true;
}

static int usage(void)
{
    fprintf(stderr, "usage: look CORE | PID [purge | set NAME NUMBER]\n");
    return EXIT_USAGE;
}

int main(int argc, char **argv)
{
    char why[512] = "";
    char *end = NULL;
    long pid = argc >= 2 ? strtol(argv[1], &end, 10) : 0;
    bool is_pid = argc >= 2 && *argv[1] != 0 && *end == 0;
    if (argc < 2 || (is_pid && (pid <= 0 || pid > 1L << 30)) || (!is_pid && argc != 2))
        return usage();
    bool seen;
    if (!is_pid)
        seen = look_at_core(argv[1], why, sizeof why);
    else if (argc == 2)
        seen = look((int)pid, why, sizeof why);
    else if (argc == 3 && strcmp(argv[2], "purge") == 0)
        seen = order((int)pid, &(struct order){.kind = ORDER_PURGE}, why, sizeof why);
    else if (argc == 5 && strcmp(argv[2], "set") == 0)
        seen = order((int)pid,
                     &(struct order){
                         .kind = ORDER_SET, .name = argv[3], .value = strtoull(argv[4], &end, 10)},
                     why, sizeof why);
    else
        return usage();
    if (!seen) {
        fprintf(stderr, "%s\n", why);
        return (int)ending;
    }
    if (fflush(stdout) != 0 || ferror(stdout)) {
        perror("standard output");
        return EXIT_TARGET;
    }
    return EXIT_DONE;
}
