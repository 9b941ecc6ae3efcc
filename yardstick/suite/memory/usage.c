/* Resident and live memory, sampled while a row runs and read at rest. */
#include "memory.h"

#include <errno.h>

void usage_start(struct usage *u)
{
    resident_exact(); /* once before, so that its own stack is there */
    *u = (struct usage){.baseline = resident_exact()};
}

static uint64_t above(const struct usage *u, uint64_t now)
{
    return now > u->baseline ? now - u->baseline : 0;
}

uint64_t usage_sample(struct usage *u, uint64_t live)
{
    uint64_t resident = above(u, resident_quick());
    if (resident > u->peak_resident)
        u->peak_resident = resident;
    if (live > u->peak_live)
        u->peak_live = live;
    u->resident_sum += (double)resident;
    u->live_sum += (double)live;
    return resident;
}

uint64_t usage_rest(const struct usage *u) { return above(u, resident_exact()); }

void usage_report(const struct usage *u, struct outcome *out)
{
    outcome_add(out, "peak-ratio", "ratio", (double)u->peak_resident / (double)u->peak_live);
    outcome_add(out, "average-ratio", "ratio", u->resident_sum / u->live_sum);
}

void sleep_ms(uint64_t ms)
{
    struct timespec left = {.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000) * 1000000};
    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        continue;
}

void *own_touched(size_t bytes)
{
    unsigned char *memory = own_memory(bytes);
    for (size_t at = 0; at < bytes; at += PAGE_STEP) {
        memory[at] = 0;
        KEEP(memory);
    }
    return memory;
}
