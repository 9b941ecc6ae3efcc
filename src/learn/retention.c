#include "learn/retention.h"

#include "base/assert.h"

/* Below that, chance decides. */
#define TELLING (256 * KiB)

/* What goes back is not wanted again at once. */
#define STEPS 8

static size_t bounded(size_t epoch, size_t least, size_t most)
{
    return epoch < least ? least : epoch > most ? most : epoch;
}

void retention_step(struct retention *r, struct purge_counters now, size_t least, size_t most)
{
    ASSERT(least <= most);
    ASSERT(now.purged >= r->since.purged && now.taken >= r->since.taken);
    size_t purged = now.purged - r->since.purged;
    size_t refaulted = now.refaulted - r->since.refaulted;
    size_t taken = now.taken - r->since.taken;
    size_t telling = purged < taken ? purged : taken;
    telling = telling > TELLING ? telling : TELLING;
    size_t epoch = bounded(r->epoch, least, most);
    r->epoch = epoch;
    r->steps++;
    if (refaulted > telling / 5)
        epoch *= RETENTION_GROWTH;
    else if (r->steps < STEPS || taken < purged)
        return;
    else if (purged > TELLING && refaulted < purged / 20)
        epoch /= 2;
    *r = (struct retention){bounded(epoch, least, most), now, 0};
}
