#include "replay/epochs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "replay/room.h"

#define SPINS 200

static const struct ops_epoch *plan;
static struct result_epoch *measured;
static atomic_uint *left; /* parts, of each epoch */
static atomic_uint now;   /* the number of the epoch */
static atomic_uint waiting;
static uint64_t pace; /* thousandths of the recorded speed; 0: as fast as possible */
static uint64_t begun;
static int statm;

static uint64_t clock_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

uint64_t epochs_time(void) { return clock_ns() - begun; }

bool epochs_begin(const struct ops_epoch *epochs, uint32_t count, struct result_epoch *results,
                  uint64_t speed)
{
    plan = epochs;
    measured = results;
    pace = speed;
    left = room_for((count + 1) * sizeof *left);
    if (left == NULL)
        return false;
    for (uint32_t i = 0; i < count; i++)
        atomic_init(&left[i], epochs[i].parts);
    statm = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    if (statm < 0)
        return false;
    begun = clock_ns();
    return true;
}

static const char *read_number(const char *text, uint64_t *value)
{
    for (*value = 0; *text >= '0' && *text <= '9'; text++)
        *value = *value * 10 + (uint64_t)(*text - '0');
    return text + (*text == ' ');
}

/* Pages that are resident, less those of files and shared memory. */
static uint64_t anonymous(void)
{
    char text[128];
    ssize_t length = pread(statm, text, sizeof text - 1, 0);
    if (length <= 0)
        return 0;
    text[length] = 0;
    uint64_t all, resident, of_files;
    read_number(read_number(read_number(text, &all), &resident), &of_files);
    return resident > of_files ? (resident - of_files) * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
}

static void sleep_until(uint64_t ns)
{
    uint64_t at = begun + ns;
    struct timespec t = {(time_t)(at / 1000000000), (long)(at % 1000000000)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
        continue;
}

/* Who waits for one epoch need not be woken for another one. */
static uint32_t group(uint32_t epoch) { return 1u << epoch % 32; }

void epoch_wait(uint32_t number)
{
    unsigned seen;
    for (unsigned spins = 0; (seen = atomic_load(&now)) < number; spins++) {
        if (spins < SPINS)
            continue;
        atomic_fetch_add(&waiting, 1);
        syscall(SYS_futex, &now, FUTEX_WAIT_BITSET_PRIVATE, seen, NULL, NULL, group(number));
        atomic_fetch_sub(&waiting, 1);
    }
}

void epoch_part_done(uint32_t number)
{
    if (atomic_fetch_sub(&left[number], 1) != 1)
        return;
    if (pace != 0)
        sleep_until(plan[number].time / pace * 1000);
    measured[number] = (struct result_epoch){epochs_time(), anonymous()};
    atomic_store(&now, number + 1);
    if (atomic_load(&waiting) != 0)
        syscall(SYS_futex, &now, FUTEX_WAKE_BITSET_PRIVATE, INT_MAX, NULL, NULL, group(number + 1));
}
