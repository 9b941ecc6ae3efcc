#include "life/profiling.h"

#include "base/atomic.h"
#include "front/cacheless.h"
#include "heap/classes.h"
#include "heap/shards.h"
#include "os/lock.h"
#include "os/os.h"
#include "os/self.h"
#include "profile/samples.h"

/* Forks that hold the heap for long are waited for so many times. */
#define TRIES_MOST 1000

COLD bool profile_switch(bool on)
{
    static const struct ahead_offsets ahead = {
        .at = offsetof(struct cache, ahead), .step = sizeof(struct ahead), .count = AHEAD_CLASSES};
    ASSERT(lock_none_held());
    for (unsigned waited = 0; !lock_enter(&cacheless_lock); waited++) {
        if (waited == TRIES_MOST)
            return false;
        os_let_pass(1);
    }
    bool done = !on || samples_start();
    if (done && on)
        shards_start_sampled();
    if (done && on != load_relaxed(&profile_on)) {
        done = classes_close(on ? &ahead : NULL);
        store_release(&profile_on, done == on);
    }
    lock_release(&cacheless_lock);
    return done;
}

COLD void profile_begin(void)
{
    static const char line[] SELDOM =
        "hakmem: profile: it is off: there is no memory for it, or the "
        "system's pages are not of 4 KiB\n";
    if (!profile_switch(true))
        os_print_error(line, sizeof line - 1);
}
