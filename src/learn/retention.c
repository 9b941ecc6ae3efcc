#include "learn/retention.h"

#include "base/assert.h"

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
    size_t telling = smaller(purged, taken);
    size_t epoch = bounded(r->epoch, least, most);
    r->epoch = epoch;
    r->steps++;
    if (refaulted > telling / LAW_EPOCH_GROWS_ABOVE)
        epoch *= LAW_EPOCH_GROWTH;
    else if (r->steps < LAW_IN_A_ROW || taken < purged)
        return; /* what goes back is not wanted again at once */
    else if (refaulted < purged / (LAW_EPOCH_GROWS_ABOVE * LAW_EPOCH_GROWTH))
        epoch /= LAW_CLEARLY;
    *r = (struct retention){bounded(epoch, least, most), now, 0};
}
