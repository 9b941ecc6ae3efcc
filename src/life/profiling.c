#include "life/profiling.h"

#include "base/atomic.h"
#include "front/cacheless.h"
#include "heap/classes.h"
#include "heap/shards.h"
#include "os/lock.h"
#include "profile/samples.h"

COLD bool profile_switch(bool on)
{
    ASSERT(lock_none_held());
    if (!lock_enter(&cacheless_lock))
        return false;
    bool done = !on || samples_start();
    if (done && on)
        shards_start_sampled();
    if (done && on != load_relaxed(&profile_on)) {
        done = classes_close(on);
        store_relaxed(&profile_on, done == on);
    }
    lock_release(&cacheless_lock);
    return done;
}
