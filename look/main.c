/* hakmem's reader: what a process uses its heap for, found from outside, as JSON on standard
 * output. The command (`hakmem sheet`) calls it, and shows what it says. It never stops the
 * process, runs no code in it, and writes nothing to it.
 *
 *   look PID
 *
 * Exit status: see why.h. */
#include <stdio.h>
#include <stdlib.h>

#include "heap.h"
#include "process.h"
#include "sheet.h"
#include "why.h"

enum ending ending = EXIT_DONE;

#define BUDGET_LEAST 4000000u

static uint64_t resident_pages(const struct target *t)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < t->map_count; i++)
        sum += t->maps[i].rss / PAGE;
    return sum;
}

static bool look(int pid, char *why, size_t room)
{
    static struct heap heap;
    struct target t;
    uint64_t before = process_rss(pid);
    if (!process_open(&t, pid, why, room))
        return false;
    t.budget = BUDGET_LEAST + 16 * resident_pages(&t);
    target_begin(&t);
    if (!tables_find(&t, &heap.tables, why, room) || !heap_read(&t, &heap, why, room))
        return process_same(pid) ? false
                                 : because(why, room, EXIT_TARGET,
                                           "process %d ended while it was looked at", pid);
    uint64_t after = process_rss(pid);
    if (!process_same(pid))
        return because(why, room, EXIT_TARGET, "process %d ended while it was looked at", pid);
    sheet_print(stdout, &t, &heap, (struct sheet){.pid = pid, .before = before, .after = after});
    heap_release(&heap);
    return true;
}

int main(int argc, char **argv)
{
    char why[512] = "";
    char *end = NULL;
    long pid = argc == 2 ? strtol(argv[1], &end, 10) : 0;
    if (pid <= 0 || pid > 1L << 30 || *end != 0) {
        fprintf(stderr, "usage: look PID\n");
        return EXIT_USAGE;
    }
    if (!look((int)pid, why, sizeof why)) {
        fprintf(stderr, "%s\n", why);
        return (int)ending;
    }
    if (fflush(stdout) != 0 || ferror(stdout)) {
        perror("standard output");
        return EXIT_TARGET;
    }
    return EXIT_DONE;
}
