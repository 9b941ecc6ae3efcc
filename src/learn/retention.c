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
    size_t telling = purged < taken ? purged : taken;
    telling = larger(telling, LAW_EPOCH_TELLING); /* below that, chance decides */
    size_t epoch = bounded(r->epoch, least, most);
    r->epoch = epoch;
    r->steps++;
    if (refaulted > telling / LAW_EPOCH_GROWS_ABOVE)
        epoch *= LAW_EPOCH_GROWTH;
    else if (r->steps < LAW_EPOCH_STEPS || taken < purged)
        return; /* what goes back is not wanted again at once */
    else if (purged > LAW_EPOCH_TELLING &&
             refaulted < purged / (LAW_EPOCH_GROWS_ABOVE * LAW_EPOCH_GROWTH))
        epoch /= LAW_CLEARLY;
    *r = (struct retention){bounded(epoch, least, most), now, 0};
}
