/* The kernel knows, of each thread, where its list of robust mutexes begins. Libc has that in the
 * thread's own block of memory, beside the thread's variables. So the cache whose variable lies
 * nearest is the thread's. */
#define _GNU_SOURCE
#include "threads.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FAR 65536 /* bytes between a variable and the list; other threads lie farther */

static uint64_t distance(uint64_t a, uint64_t b) { return a > b ? a - b : b - a; }

struct thread {
    int number;
    uint64_t at;
};

/* All of the process that the kernel says it of. */
static size_t threads_list(int pid, struct room *room, struct thread **threads)
{
    char path[64];
    size_t count = 0;
    size_t most = 0;
    snprintf(path, sizeof path, "/proc/%d/task", pid);
    DIR *tasks = opendir(path);
    if (tasks == NULL)
        return 0;
    for (const struct dirent *entry; (entry = readdir(tasks)) != NULL;) {
        void *list = NULL;
        size_t length;
        int number = (int)strtol(entry->d_name, NULL, 10);
        if (number <= 0 || syscall(SYS_get_robust_list, number, &list, &length) != 0)
            continue;
        struct thread *more = room_grown(room, *threads, count, &most, sizeof **threads);
        if (more == NULL)
            break;
        *threads = more;
        more[count++] = (struct thread){number, (uint64_t)(uintptr_t)list};
    }
    closedir(tasks);
    return count;
}

void threads_name(struct target *t, int pid, struct heap *heap)
{
    struct thread *threads = NULL;
    size_t count = threads_list(pid, &t->room, &threads);
    for (size_t i = 0; i < heap->cache_count; i++) {
        struct cache_sum *cache = &heap->caches[i];
        uint64_t least = FAR;
        for (size_t k = 0; k < count && cache->living && cache->mine != 0; k++)
            if (distance(cache->mine, threads[k].at) < least) {
                least = distance(cache->mine, threads[k].at);
                cache->thread = threads[k].number;
            }
    }
}
