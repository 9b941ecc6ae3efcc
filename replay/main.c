/* The player of 'hakmem replay': makes the calls of a recorded process once more, on the malloc
 * that is preloaded, and measures the memory that this takes.
 *
 *   replay OPS RESULT SPEED
 *
 * What it needs itself comes from files and shared memory, so that its anonymous memory is that of
 * the malloc, but for stacks. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "replay/epochs.h"
#include "replay/play.h"
#include "replay/room.h"

#define FAILED 3

static int fail(const char *what, int error)
{
    dprintf(STDERR_FILENO, "hakmem replay: %s: %s\n", what, strerror(error));
    return FAILED;
}

static char *map_file(const char *path, int how, size_t *length)
{
    int file = open(path, (how & PROT_WRITE ? O_RDWR : O_RDONLY) | O_CLOEXEC);
    struct stat found;
    if (file < 0 || fstat(file, &found) != 0)
        return NULL;
    *length = (size_t)found.st_size;
    void *p = mmap(NULL, *length, how, MAP_SHARED, file, 0);
    int error = errno;
    close(file);
    errno = error;
    return p == MAP_FAILED ? NULL : p;
}

static bool is_sound(const struct ops_head *head, size_t length)
{
    return length >= sizeof *head && memcmp(head->magic, OPS_MAGIC, sizeof head->magic) == 0 &&
           head->format == OPS_FORMAT && head->threads != 0 &&
           head->ops_at + head->ops * sizeof(struct op) <= length;
}

static uint64_t cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static uint64_t faults(void)
{
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return (uint64_t)(used.ru_minflt + used.ru_majflt);
}

int main(int count, char **words)
{
    if (count != 4)
        return fail("replay OPS RESULT SPEED", EINVAL);
    size_t length, room;
    char *file = map_file(words[1], PROT_READ, &length);
    if (file == NULL)
        return fail(words[1], errno);
    const struct ops_head *head = (const struct ops_head *)file;
    if (!is_sound(head, length))
        return fail(words[1], EINVAL);
    struct result_head *result =
        (struct result_head *)map_file(words[2], PROT_READ | PROT_WRITE, &room);
    if (result == NULL || room < sizeof *result + head->epochs * sizeof(struct result_epoch))
        return fail(words[2], result == NULL ? errno : EINVAL);
    static struct play play;
    play.ops = (const struct op *)(file + head->ops_at);
    play.threads = (const struct ops_thread *)(file + head->threads_at);
    play.slots = room_for((head->slots + 1) * sizeof *play.slots);
    play.running = room_for(head->threads * sizeof *play.running);
    if (play.slots == NULL || play.running == NULL ||
        !epochs_begin((const struct ops_epoch *)(file + head->epochs_at), head->epochs,
                      (struct result_epoch *)(result + 1), strtoull(words[3], NULL, 10)))
        return fail("memory", errno);
    uint64_t cpu = cpu_ns(), faulted = faults();
    if (!play_thread(&play, 0))
        return fail("a thread", EAGAIN);
    epoch_wait(head->epochs);
    result->time = epochs_time();
    result->cpu = cpu_ns() - cpu;
    result->faults = faults() - faulted;
    result->failed = atomic_load(&play.failed);
    result->done = 1;
    return 0;
}
