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

#include "process.h"

#define NEAR 65536 /* bytes between a variable and the list, at most */

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

static int by_place(const void *a, const void *b)
{
    const struct thread *left = a;
    const struct thread *right = b;
    return left->at < right->at ? -1 : left->at > right->at;
}

/* The thread that lies nearest, if it lies near; 0 otherwise. */
static int nearest(const struct thread *threads, size_t count, uint64_t at)
{
    size_t low = 0;
    for (size_t high = count; low < high;) {
        size_t middle = low + (high - low) / 2;
        if (threads[middle].at < at)
            low = middle + 1;
        else
            high = middle;
    }
    uint64_t least = NEAR;
    int number = 0;
    for (size_t i = low > 0 ? low - 1 : 0; i < count && i <= low; i++)
        if (distance(threads[i].at, at) < least) {
            least = distance(threads[i].at, at);
            number = threads[i].number;
        }
    return number;
}

void threads_name(struct target *t, int pid, struct heap *heap)
{
    struct thread *threads = NULL;
    size_t count = process_numbers_agree() ? threads_list(pid, &t->room, &threads) : 0;
    if (count == 0)
        return;
    qsort(threads, count, sizeof *threads, by_place);
    for (size_t i = 0; i < heap->cache_count; i++) {
        struct cache_sum *cache = &heap->caches[i];
        if (cache->living && cache->mine != 0)
            cache->thread = nearest(threads, count, cache->mine);
    }
}
