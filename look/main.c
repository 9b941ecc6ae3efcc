/* hakmem's reader: what a process uses its heap for, found from outside, as JSON on standard
 * output. The command (`hakmem sheet`) calls it, and shows what it says. It never stops the
 * process, runs no code in it, and writes nothing to it.
 *
 *   look PID
 *
 * Exit status: see sheet/target.h. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "because.h"
#include "core.h"
#include "find.h"
#include "order.h"
#include "process.h"
#include "profile.h"
#include "run.h"
#include "samples.h"
#include "sheet.h"
#include "sheet/heap.h"
#include "threads.h"

static bool look_once(struct target *t, struct heap *heap, struct why *why)
{
    target_allow(t);
    return (target_begin(t) || because(why, EXIT_TARGET, "out of memory")) &&
           tables_find(t, &heap->tables, why) && heap_read(t, heap, why);
}

/* Looks until little is left to explain, and prints the last or the best; of these the earlier one
 * is held in text. */
static bool look(int pid, struct why *why)
{
    static struct heap heap;
    struct target t;
    char *best = NULL;
    uint64_t least = UINT64_MAX;
    if (!process_open(&t, pid, why))
        return false;
    bool seen = true;
    for (unsigned n = 0; n < LOOKS_MOST && least > little_of(&t); n++) {
        struct sheet sheet = {.pid = pid, .before = process_rss()};
        bool mapped = n == 0 || process_maps(&t, why);
        seen = mapped && look_once(&t, &heap, why);
        /* What makes no sense may have changed in the middle: mappings that came, or went. */
        if (!mapped || (!seen && why->ending != EXIT_NONSENSE))
            break;
        if (!seen)
            continue;
        sheet.after = process_rss();
        uint64_t unexplained = (uint64_t)llabs(totals_of(&t, &heap).unexplained);
        if (unexplained < least) {
            least = unexplained;
            free(best);
            threads_name(&t, pid, &heap);
            best = sheet_text(&t, &heap, sheet);
        }
    }
    seen |= best != NULL;
    /* What it has goes before it has ended. */
    if (!process_same() || (!seen && process_rss() == 0))
        seen = because(why, EXIT_TARGET, "process %d ended while it was being read", pid);
    else if (seen && best == NULL)
        seen = because(why, EXIT_TARGET, "out of memory");
    if (seen)
        fputs(best, stdout);
    free(best);
    return seen;
}

static bool look_at_core(const char *path, struct why *why)
{
    static struct heap heap;
    struct target t;
    if (!core_open(&t, path, why))
        return false;
    if (!look_once(&t, &heap, why))
        return core_is_cut() ? because(why, EXIT_TARGET,
                                       "%s: the core file is cut off (a limit of its size, or a "
                                       "full disk)",
                                       path)
                             : false;
    char *text = sheet_text(&t, &heap, (struct sheet){0});
    if (text == NULL)
        return because(why, EXIT_TARGET, "out of memory");
    fputs(text, stdout);
    free(text);
    return true;
}

/* Opens a process and finds its tables. */
static bool open_tables(struct target *t, struct tables *tables, int pid, struct why *why)
{
    if (!process_open(t, pid, why))
        return false;
    target_allow(t);
    return target_begin(t) && tables_find(t, tables, why);
}

static bool order(int pid, struct order *order, struct why *why)
{
    static struct tables tables;
    struct target t;
    if (!open_tables(&t, &tables, pid, why) || !order_give(&t, &tables, pid, order, why))
        return false;
    printf("{\"pid\": %d, \"result\": %" PRIu64 "}\n", pid, order->result);
    return true;
}

static bool profile(int pid, bool by_size, struct why *why)
{
    static struct tables tables;
    struct target t;
    struct profile_more sizes = {.add = samples_add_sizes};
    char name[16];
    snprintf(name, sizeof name, "%d", pid);
    if (!open_tables(&t, &tables, pid, why))
        return false;
    if (by_size && !samples_read(&t, &tables.profile))
        return because(
            why, EXIT_NONSENSE,
            "its description of the samples is invalid: the memory is corrupt, or forged");
    if (!profile_print(stdout, &t, &tables, name, 0, by_size ? &sizes : NULL, why))
        return false;
    return process_same() ||
           because(why, EXIT_TARGET, "process %d ended while it was being read", pid);
}

static int usage(void)
{
    fprintf(
        stderr,
        "usage: look CORE | PID [purge | set NAME NUMBER | mark NAME | record FOLDER | profile |"
        " sites]\n");
    return EXIT_USAGE;
}

int main(int argc, char **argv)
{
    if (argc > 2 && strcmp(argv[1], "run") == 0)
        return run(argv + 2);
    struct why why = {EXIT_DONE, ""};
    char *end = NULL;
    long pid = argc >= 2 ? strtol(argv[1], &end, 10) : 0;
    bool is_pid = argc >= 2 && *argv[1] != 0 && *end == 0;
    if (argc < 2 || (is_pid && (pid <= 0 || pid > 1L << 30)) || (!is_pid && argc != 2))
        return usage();
    bool seen;
    if (!is_pid)
        seen = look_at_core(argv[1], &why);
    else if (argc == 2)
        seen = look((int)pid, &why);
    else if (argc == 3 && strcmp(argv[2], "purge") == 0)
        seen = order((int)pid, &(struct order){.kind = ORDER_PURGE}, &why);
    else if (argc == 3 && strcmp(argv[2], "profile") == 0)
        seen = profile((int)pid, false, &why);
    else if (argc == 3 && strcmp(argv[2], "sites") == 0)
        seen = profile((int)pid, true, &why);
    else if (argc == 4 && strcmp(argv[2], "record") == 0)
        seen = order((int)pid, &(struct order){.kind = ORDER_RECORD, .name = argv[3]}, &why);
    else if (argc == 4 && strcmp(argv[2], "mark") == 0)
        seen = order((int)pid, &(struct order){.kind = ORDER_MARK, .name = argv[3]}, &why);
    else if (argc == 5 && strcmp(argv[2], "set") == 0)
        seen = order((int)pid,
                     &(struct order){
                         .kind = ORDER_SET, .name = argv[3], .value = strtoull(argv[4], &end, 10)},
                     &why);
    else
        return usage();
    if (!seen) {
        fprintf(stderr, "%s\n", why.line);
        return (int)why.ending;
    }
    if (fflush(stdout) != 0 || ferror(stdout)) {
        perror("standard output");
        return EXIT_TARGET;
    }
    return EXIT_DONE;
}
